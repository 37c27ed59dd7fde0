"""Programs that want the CPUs and the disk of a machine while servers are measured on it."""

import contextlib
import subprocess
import sys
import tempfile

from . import tools

BUSY_LOOP = ["sh", "-c", "while :; do :; done"]
# Writes four pages and syncs them, again and again, in a file of 64 MB.
SYNCING_FILES = [sys.executable, "-c", """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
at = 0
while True:
    os.pwrite(file, bytes(32768), at)
    os.fsync(file)
    at = (at + 32768) % (64 << 20)
"""]


def options(parser):
    """Adds the options that say what runs beside the servers."""
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="measure beside N busy loops, each a login session")
    parser.add_argument("--beside-syncs", action="store_true", help="measure beside a program that writes and syncs a file")


def text(arguments):
    """What runs beside the servers, for a line under a table."""
    found = [f"{arguments.beside} busy loops"] if arguments.beside else []
    if arguments.beside_syncs:
        found.append("a program that syncs a file")
    return "beside " + " and ".join(found) if found else "on a quiet machine"


@contextlib.contextmanager
def beside(arguments):
    """Runs what the options ask for meanwhile. The kernel ends the programs with this one."""
    tools.need("setpriv")
    with tempfile.TemporaryDirectory(prefix="clearway-beside-") as directory:
        commands = [BUSY_LOOP] * arguments.beside
        if arguments.beside_syncs:
            commands.append([*SYNCING_FILES, directory])
        started = []
        try:
            for command in commands:
                # A login session each, as other services are: Linux shares the CPUs out by them (autogroup).
                started.append(subprocess.Popen(
                    [tools.find("setpriv"), "--pdeathsig", "KILL", *command], start_new_session=True
                ))
            yield
        finally:
            for process in started:
                process.kill()
                process.wait()
