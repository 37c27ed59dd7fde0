"""Sessions interrupt other programs that keep the CPUs from them, and wait for their clients otherwise."""

import os
import pathlib
import subprocess
import time
import unittest
from types import SimpleNamespace

from support import other_programs, servers, tools

PATIENCE = 90


def policies(server):
    """The kernel's policies for the sessions of a server."""
    found = set()
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        try:
            if (task / "comm").read_text().startswith("clearway sessio"):
                found.add(os.sched_getscheduler(int(task.name)))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def await_policies(server, wanted):
    deadline = time.monotonic() + PATIENCE
    while (found := policies(server)) != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"after {PATIENCE} s sessions have the policies {found}, not {wanted}")
        time.sleep(0.05)


class Scheduling(unittest.TestCase):
    def test_sessions_interrupt_while_other_programs_want_the_cpus(self):
        tools.need("pgbench")
        directory = servers.scratch("scheduling")
        crowd = SimpleNamespace(beside=4 * len(os.sched_getaffinity(0)), beside_syncs=False)
        with servers.Clearway(tools.build(), directory) as server:
            server.start()
            server.run("pgbench", "-i", "-q", "-s", 1)
            load = subprocess.Popen(
                [tools.find("pgbench"), "-n", "-M", "prepared", "-c", "2", "-T", str(4 * PATIENCE), "-b", "select-only"],
                env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            try:
                await_policies(server, {os.SCHED_BATCH})
                with other_programs.beside(crowd):
                    await_policies(server, {os.SCHED_OTHER})
                await_policies(server, {os.SCHED_BATCH})
            finally:
                load.kill()
                load.wait()

    def test_a_fixed_policy_stays(self):
        tools.need("psql")
        for setting, policy in (("batch", os.SCHED_BATCH), ("normal", os.SCHED_OTHER)):
            directory = servers.scratch("scheduling")
            with servers.Clearway(tools.build(), directory, f'session_scheduling = "{setting}"\n') as server:
                server.start()
                session = servers.Prompt(server)
                self.assertEqual(session.ask("select 1;"), "1")
                self.assertEqual(policies(server), {policy}, setting)
                session.close()
