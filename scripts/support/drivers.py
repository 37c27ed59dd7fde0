"""The drivers that the end-to-end tests use, in their pinned versions: a Python with those for Python, and Node with those
for Node. They are installed once, below the target directory, and again when a version changes."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

from . import tools

HERE = tools.ROOT / "scripts" / "e2e" / "drivers"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", tools.ROOT / "target"))


def installed(name, listing, install):
    """The directory `name` of what `install` installs for this listing, a file."""
    directory = TARGET / "drivers" / name
    done = directory / "installed"
    wanted = hashlib.sha256(listing.read_bytes() + sys.version.encode()).hexdigest()
    if not done.exists() or done.read_text() != wanted:
        print(f"installing what {listing.relative_to(tools.ROOT)} lists", file=sys.stderr, flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        install(directory)
        done.write_text(wanted)
    return directory


def _install_python(directory, listing):
    # Debian's Python has no pip for its environments until this package is there.
    if subprocess.run([sys.executable, "-c", "import ensurepip"], stderr=subprocess.DEVNULL).returncode != 0:
        tools.install(["python3-venv"])
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    pip = [directory / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", HERE / listing], check=True)


def python(name="python", listing="requirements.txt"):
    """The path of a Python with the packages of a listing: the drivers, with Node beside it, if none is given."""
    environment = installed(name, HERE / listing, lambda directory: _install_python(directory, listing))
    return environment / "bin" / "python"


def npm_install(binaries, directory):
    """Installs what the `package.json` in a directory lists, with the npm among these binaries."""
    subprocess.run(
        [binaries / "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=directory, env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}, check=True,
    )


def node():
    """The command of a Node that finds the drivers, for a program in `scripts/e2e/drivers`, and its directory."""
    binaries = python().parent

    def install(directory):
        shutil.copy(HERE / "package.json", directory)
        npm_install(binaries, directory)

    directory = installed("node", HERE / "package.json", install)
    # Modules are looked for beside the program that imports them.
    for program in HERE.glob("*.mjs"):
        shutil.copy(program, directory)
    return binaries / "node", directory
