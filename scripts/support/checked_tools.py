"""The tools that programs of checks drive (scripts/e2e/programs), and how each program is started.

A tool is a `Tool`: its name, and a function that installs what is missing and gives the program's command. Packages for
Python and Node are pinned by the listings beside the programs; those of Debian are the release's.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import typing

from . import drivers, tools

PROGRAMS = tools.ROOT / "scripts" / "e2e" / "programs"


@dataclasses.dataclass(frozen=True)
class Tool:
    name: str
    command: typing.Callable[[], list]


def packages(*wanted):
    """Installs those of Debian's packages that are missing; the services that they bring do not start."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n", *wanted], capture_output=True, text=True
    ).stdout
    present = {line.split()[1] for line in listed.splitlines() if line.startswith("ii")}
    if missing := [name for name in wanted if name not in present]:
        with _no_services():
            tools.install(missing)


class _no_services:
    """Meanwhile Debian's packages start no services, unless the machine has a rule of its own."""

    rule = pathlib.Path("/usr/sbin/policy-rc.d")

    def __enter__(self):
        self.ours = os.geteuid() == 0 and not self.rule.exists()
        if self.ours:
            self.rule.write_text("#!/bin/sh\nexit 101\n")
            self.rule.chmod(0o755)

    def __exit__(self, *_):
        if self.ours:
            self.rule.unlink()


def environment():
    """What the programs find beside the server's address: a Python with all packages, for commands that lie beside it."""
    python = drivers.python("python-tools", "../programs/requirements.txt")
    return {"TOOLS_BIN": str(python.parent), "PGPASSWORD": "none", "PYTHONWARNINGS": "ignore"}


def _python(name, *debian):
    def command():
        tools.need("psql", "pgbench", "pg_dump")
        packages(*debian)
        return [drivers.python("python-tools", "../programs/requirements.txt"), PROGRAMS / f"{name}.py"]

    return Tool(name.removesuffix("_checks"), command)


def _node_directory():
    """Where npm has installed what `package.json` lists, with the programs beside it: modules are looked for there."""
    binaries = drivers.python().parent

    def install(directory):
        shutil.copy(PROGRAMS / "package.json", directory)
        drivers.npm_install(binaries, directory)

    directory = drivers.installed("node-tools", PROGRAMS / "package.json", install)
    for program in PROGRAMS.glob("*.mjs"):
        shutil.copy(program, directory)
    return binaries / "node", directory


def _node(name):
    def command():
        node, directory = _node_directory()
        return [node, "--no-warnings", directory / f"{name}.mjs"]

    return Tool(name.removesuffix("_checks"), command)


def _prisma():
    node, directory = _node_directory()
    wanted, made = PROGRAMS / "schema.prisma", directory / "prisma-client" / "schema.prisma"
    if not made.exists() or made.stat().st_mtime < wanted.stat().st_mtime:
        shutil.copy(wanted, directory)
        # Only its migrations need the engine that it would fetch; none is run.
        environment = {**os.environ, "PRISMA_SCHEMA_ENGINE_BINARY": "/bin/false", "PRISMA_HIDE_UPDATE_MESSAGE": "1", "CHECKPOINT_DISABLE": "1"}
        subprocess.run(
            [node, "node_modules/prisma/build/index.js", "generate", "--config", "prisma.config.mjs"],
            cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    return [node, "--no-warnings", directory / "prisma_checks.mjs"]


def java():
    """The beginning of a command that runs a program's source beside PostgreSQL's JDBC driver."""
    packages("default-jdk-headless", "libpostgresql-jdbc-java")
    return ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", "/usr/share/java/postgresql.jar"]


def _java():
    return [*java(), PROGRAMS / "Jdbc.java"]


def _ruby():
    packages("ruby-activerecord", "ruby-sequel", "ruby-pg")
    return ["ruby", "-W0", PROGRAMS / "activerecord_checks.rb"]


def _perl():
    packages("libdbd-pg-perl", "libdbix-class-perl")
    return ["perl", PROGRAMS / "dbd_pg_checks.pl"]


def _php():
    packages("php-cli", "php-pgsql")
    return ["php", "-d", "pcre.jit=0", PROGRAMS / "pdo_checks.php"]


def _go():
    packages("golang-go", "golang-github-lib-pq-dev", "golang-github-jackc-pgx-v4-dev")
    built = drivers.TARGET / "drivers" / "go"
    # Debian's sources of libraries lie in one GOPATH.
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(built / "cache"), "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", built / "checks", PROGRAMS / "go_checks.go"], env=environment, check=True)
    return [built / "checks"]


TOOLS = [
    _python("psql_checks"),
    _python("psycopg_checks"),
    _python("psycopg2_checks"),
    _python("asyncpg_checks"),
    _python("pg8000_checks"),
    _python("sqlalchemy_checks"),
    _python("alembic_checks"),
    _python("django_checks"),
    _python("peewee_checks"),
    _python("pony_checks"),
    _python("tortoise_checks"),
    _python("pandas_checks"),
    _python("pgcli_checks"),
    _python("pg_activity_checks"),
    _node("pg_checks"),
    _node("postgres_checks"),
    _node("sequelize_checks"),
    _node("typeorm_checks"),
    _node("knex_checks"),
    _node("drizzle_checks"),
    _node("kysely_checks"),
    Tool("prisma", _prisma),
    Tool("jdbc", _java),
    Tool("activerecord", _ruby),
    Tool("dbd_pg", _perl),
    Tool("pdo", _php),
    _python("odbc_checks", "odbc-postgresql", "unixodbc"),
    Tool("go", _go),
    _python("client_programs_checks"),
    _python("pgbench_checks", "sysbench"),
    _python("pgbouncer_checks", "pgbouncer"),
    _python("monitoring_checks", "check-postgres", "prometheus-postgres-exporter"),
]
