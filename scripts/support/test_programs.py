"""The programs of tests, built by cargo and run without it."""

import json
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Program(NamedTuple):
    """What cargo has built: the package's directory, the target's name, the file, and whether it is a test."""

    package: pathlib.Path
    target: str
    path: str
    is_test: bool

    @property
    def name(self):
        return f"{self.package.relative_to(ROOT)} {self.target}"


class Ended(NamedTuple):
    """The end of a program."""

    succeeded: bool
    said: str
    seconds: float


def build(arguments):
    """The programs that these arguments of `cargo test` choose, in the order of their names."""
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if built.returncode != 0:
        sys.exit(built.returncode)
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"]:
            package = pathlib.Path(message["manifest_path"]).parent
            program = Program(package, message["target"]["name"], message["executable"], message["profile"]["test"])
            programs.append(program)
    return sorted(programs)


def run(program, *arguments, **environment):
    """Runs a test in its package's directory, as cargo does."""
    begun = time.monotonic()
    ended = subprocess.run(
        [program.path, *arguments], cwd=program.package,
        env=os.environ | {"CARGO_MANIFEST_DIR": str(program.package)} | environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return Ended(ended.returncode == 0, ended.stdout, time.monotonic() - begun)
