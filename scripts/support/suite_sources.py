"""The source distributions whose tests scripts/driver-suites runs, from PyPI. They are fetched when they are needed and are
not part of this repository."""

import os
import pathlib
import shutil
import subprocess
import sys

from . import drivers, tools

LISTING = tools.ROOT / "scripts" / "e2e" / "suites" / "sources.txt"


def python():
    """The path of a Python with what the tests import."""
    return drivers.python("python-suites", "../suites/requirements.txt")


def fetch():
    """Fetches what is missing of the packages and sources."""
    python()
    for name in ("Django", "SQLAlchemy"):
        folder(name)


def folder(name):
    """The unpacked source distribution of a listed name; fetched into the build folder the first time."""
    place = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", tools.ROOT / "target")) / "driver-suites"
    wanted = [line for line in LISTING.read_text().splitlines() if line.startswith(f"{name}==")]
    if len(wanted) != 1:
        sys.exit(f"{LISTING} lists {name} {len(wanted)} times")
    unpacked = place / wanted[0].lower().replace("==", "-")
    if not unpacked.exists():
        _fetch(place, name, wanted[0])
    return unpacked


def _fetch(place, name, wanted):
    place.mkdir(parents=True, exist_ok=True)
    pip = [python(), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--no-binary", name]
    # pip asks the package for its metadata, and builds nothing of it in C.
    environment = {**os.environ, "DISABLE_SQLALCHEMY_CEXT": "1"}
    subprocess.run([*pip, "--dest", place, wanted], check=True, env=environment)
    for archive in place.glob("*.tar.gz"):
        shutil.unpack_archive(archive, place)
        archive.unlink()
