"""PostgreSQL 15's own regression tests and isolation specs, from Debian's source package. They are fetched when they are
needed and are not part of this repository."""

import os
import pathlib
import subprocess
import sys
import tarfile

from . import tools

PACKAGE = "postgresql-15"
# The folders that are kept, and where they are in the source.
KEPT = {"sql": "src/test/regress/sql/", "data": "src/test/regress/data/", "specs": "src/test/isolation/specs/"}


def folder():
    """The folder that has `sql`, `data` and `specs`; fetched into the build folder the first time."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", tools.ROOT / "target"))
    place = target / "postgresql-regress"
    if not all((place / part).exists() for part in KEPT):
        _fetch(place)
    return place


def _fetch(place):
    """Downloads the source package and unpacks its regression tests."""
    place.mkdir(parents=True, exist_ok=True)
    lists = place / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options = [
        *("-o", f"Dir::Etc::SourceList={_sources(place)}", "-o", "Dir::Etc::SourceParts=-"),
        *("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={place}"),
    ]
    subprocess.run(["apt-get", *options, "update", "-qq"], check=True, stdout=subprocess.DEVNULL)
    archive = _download(place, options)
    with tarfile.open(archive) as whole:
        for member in whole:
            for part, source in KEPT.items():
                _, found, file = member.name.partition(source)
                if found and member.isfile() and "/" not in file:
                    (place / part).mkdir(exist_ok=True)
                    (place / part / file).write_bytes(whole.extractfile(member).read())
    for leftover in [*place.glob("*.tar.*"), *place.glob("*.dsc")]:
        leftover.unlink()


def _download(place, options):
    """The source archive of the newest version that a mirror still has: an index may name one that is gone."""
    listed = subprocess.run(["apt-cache", *options, "madison", PACKAGE], check=True, capture_output=True, text=True).stdout
    versions = list(dict.fromkeys(line.split("|")[1].strip() for line in listed.splitlines() if "|" in line))
    for version in versions:
        command = ["apt-get", *options, "source", "-qq", "--download-only", f"{PACKAGE}={version}"]
        got = subprocess.run(command, cwd=place, capture_output=True, text=True)
        if archives := list(place.glob("*.orig.tar.*")):
            return archives[0]
    sys.exit(f"no mirror has the source of {PACKAGE} ({', '.join(versions) or 'no version is listed'}):\n{got.stderr if versions else ''}")


def _sources(place):
    """The machine's own package sources, asked for sources instead of programs."""
    lines = []
    for one in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.list"))]:
        if one.exists():
            lines += [line.replace("deb ", "deb-src ", 1) for line in one.read_text().splitlines() if line.startswith("deb ")]
    if lines:
        (place / "sources.list").write_text("\n".join(lines) + "\n")
        return place / "sources.list"
    blocks = [one.read_text() for one in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"))]
    text = "\n\n".join(blocks).replace("Types: deb\n", "Types: deb-src\n").replace("Types: deb deb-src\n", "Types: deb-src\n")
    (place / "all.sources").write_text(text + "\n")
    return place / "all.sources"
