"""Runs Django's and SQLAlchemy's own tests on Clearway and on a PostgreSQL 15 beside it, and counts those that pass on both.

The tests come from the source distributions on PyPI (scripts/e2e/suites/sources.txt). They are run in units: an app of Django's
tests, a file or folder of SQLAlchemy's. Both servers run a unit at the same time, each in an empty database.

A test counts if it sends a statement and passes on PostgreSQL. It passes here if it then passes on Clearway too: one that is
skipped here, or whose class cannot be set up, has failed. Failures are grouped by SQLSTATE and message, with names and
numbers replaced.

A data directory of Clearway has one database. Django's two are therefore two servers here, and `--keepdb` keeps its runner
from making others. Extensions that a suite would make before its first test (pgcrypto, citext, hstore) are made on
PostgreSQL beforehand; here the tests that use them fail, and the others run.

    scripts/driver-suites                            # all units: about an hour
    scripts/driver-suites django/queries             # the units whose names contain a word
    scripts/driver-suites --only test_ordering django/queries sqlalchemy/dialect   # tests whose names contain a word
    scripts/driver-suites --list-failures lookup     # each test that fails, with its error
    scripts/driver-suites --keep DIR                 # and keep each test's line of JSON, with tracebacks

Ends with 1 if a test that counts fails.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import psycopg  # noqa: E402

from support import servers, suite_sources, suite_units, tools  # noqa: E402

SUITES = HERE / "suites"
# A unit that has not ended after this time is stopped; its other tests have failed.
PATIENCE = 1800
# A statement that waits for another session of its own test, which waits for the statement, ends.
SESSION = "-c lock_timeout=5s -c statement_timeout=60s"


@dataclasses.dataclass(frozen=True)
class Failure:
    test: str
    sqlstate: str | None
    message: str

    def kind(self):
        """The class of errors that it belongs to."""
        return self.sqlstate or "", without_names(self.message)


def without_names(message):
    """The first line of a message with names and numbers replaced; of an assertion that failed, its type."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    if line.startswith("AssertionError"):
        return "AssertionError"
    line = re.sub(r'"[^"]*"|\'[^\']*\'|«[^»]*»', '"…"', line)
    return re.sub(r"\d+", "N", line)[:120]


class Tests:
    """What the tests of a unit gave on one server."""

    def __init__(self, path):
        self.outcomes, self.failures, self.statements = {}, {}, collections.Counter()
        for line in path.read_text().splitlines() if path.exists() else ():
            self._take(json.loads(line))

    def _take(self, line):
        # SQLAlchemy's names have the server's version.
        name = re.sub(r"(postgresql\+\w+?)_\d+_\d+", r"\1", line["test"])
        self.statements[name] += line["statements"]
        if line["outcome"] == "failed":
            self.failures.setdefault(name, Failure(name, line.get("sqlstate"), line.get("message", "")))
        if self.outcomes.get(name) != "failed":
            self.outcomes[name] = line["outcome"]

    def that_count(self):
        return [name for name, outcome in self.outcomes.items() if outcome == "passed" and self.statements[name]]

    def failure(self, name):
        """What became of a test that has not passed."""
        if name in self.failures:
            return self.failures[name]
        for before in (f"setUpClass ({name.rpartition('.')[0]})", "setup"):
            if name not in self.outcomes and before in self.failures:
                return dataclasses.replace(self.failures[before], test=name)
        outcome = self.outcomes.get(name, "not run")
        return Failure(name, None, f"{outcome} here")


@dataclasses.dataclass
class Outcome:
    unit: suite_units.Unit
    counted: int
    failures: list

    def passed(self):
        return self.counted - len(self.failures)


def row(name, passed, counted):
    share = f"{100 * passed / counted:.1f} %" if counted else ""
    return f"{name:44} {passed:6} of {counted:6} {share:>8}"


def address(database):
    """Socket directory, port and name of a database, as the suites' settings read them."""
    server, name = database
    return f"{server.sockets} {server.port} {name}"


class Side:
    """A server of a kind with the databases that the suites use."""

    def __init__(self, name, default, other, user):
        self.name, self.default, self.other, self.user = name, default, other, user

    def administrator(self, database):
        server, name = database
        return psycopg.connect(host=str(server.sockets), port=server.port, user=self.user, dbname=name, autocommit=True)

    def empty(self, unit):
        """Ends all other sessions, drops every schema, and makes what the unit expects."""
        for database in (self.default, self.other):
            with self.administrator(database) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where pid <> pg_backend_pid() and backend_type = 'client backend' and datname = current_database()"
                )
                connection.execute("set statement_timeout = '60s'")
                if self.name == "postgres":
                    for (prepared,) in connection.execute("select gid from pg_prepared_xacts").fetchall():
                        connection.execute(f"rollback prepared '{prepared}'")
                listed = "select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"
                for (schema,) in connection.execute(listed).fetchall():
                    connection.execute(f'drop schema "{schema}" cascade')
                connection.execute("create schema public")
                for schema in unit.schemas():
                    connection.execute(f"create schema {schema}")
                # The suites would make them themselves, and where that is refused run no test.
                for extension in unit.extensions() if self.name == "postgres" else ():
                    connection.execute(f"create extension {extension}")

    def run(self, unit, only, record):
        """Runs a unit; what its tests gave."""
        self.empty(unit)
        server, name = self.default
        environment = {
            **os.environ, "SUITE_RECORD": str(record), "PYTHONPATH": os.pathsep.join(map(str, [SUITES, *unit.modules()])),
            "PGUSER": self.user, "PGPASSWORD": "none", "PGOPTIONS": SESSION,
            "SUITE_DEFAULT": address(self.default), "SUITE_OTHER": address(self.other),
            # So that both sides, and each run, choose alike among elements of sets.
            "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0",
        }
        url = f"postgresql+psycopg://{self.user}:none@/{name}?host={server.sockets}&port={server.port}"
        command = unit.command(suite_sources.python(), url, only)
        with record.with_suffix(".log").open("w") as log:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=unit.directory(), env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                print(f"  {unit.name} did not end on {self.name} in {PATIENCE} s", flush=True)
        return Tests(record)


class Servers:
    """Both sides."""

    def __init__(self, keep=None):
        tools.need("initdb", "postgres")
        # Both sides run what is fetched here.
        suite_sources.fetch()
        self.keep = pathlib.Path(keep).resolve() if keep else servers.scratch("suites-records")
        self.keep.mkdir(parents=True, exist_ok=True)
        # As the other side, which syncs nothing.
        binary, settings = tools.build(), 'shared_buffers = "64MB"\nsynchronous_commit = "off"\n'
        self.ours = [servers.Clearway(binary, servers.scratch(f"suites-{part}"), settings).start() for part in ("default", "other")]
        peer = [("fsync", "off"), ("timezone", "UTC"), ("max_prepared_transactions", "10")]
        self.theirs = servers.Postgres(servers.scratch("suites-peer"), peer).start()
        self.theirs.sql("create database other")
        self.sides = [
            Side("postgres", (self.theirs, "postgres"), (self.theirs, "other"), self.theirs.user),
            Side("clearway", *((server, "postgres") for server in self.ours), self.ours[0].user),
        ]

    def run(self, unit, only=""):
        """Runs a unit on both sides at once."""
        with concurrent.futures.ThreadPoolExecutor(len(self.sides)) as pool:
            started = [pool.submit(side.run, unit, only, self._record(unit, side)) for side in self.sides]
            theirs, ours = (one.result() for one in started)
        counted = theirs.that_count()
        failures = [ours.failure(name) for name in counted if ours.outcomes.get(name) != "passed"]
        return Outcome(unit, len(counted), failures)

    def _record(self, unit, side):
        path = self.keep / f"{unit.name.replace('/', '-')}.{side.name}.jsonl"
        path.unlink(missing_ok=True)
        return path

    def end(self):
        for server in self.ours:
            server.stop()
        self.theirs.kill()


def show(outcomes, each):
    """The failures by their classes, most frequent first, and each of them if asked to."""
    kinds, units = collections.Counter(), {}
    for outcome in outcomes:
        for failure in outcome.failures:
            kinds[failure.kind()] += 1
            units.setdefault(failure.kind(), collections.Counter())[outcome.unit.name] += 1
    if kinds:
        print("failures by class:")
    for (sqlstate, message), count in kinds.most_common():
        where = ", ".join(f"{name} {number}" for name, number in units[sqlstate, message].most_common(3))
        print(f"  {count:5}  {sqlstate:5}  {message}  ({where})")
    if each:
        for outcome in outcomes:
            for failure in outcome.failures:
                first = (failure.message.strip().splitlines() or [""])[0]
                print(f"{outcome.unit.name} {failure.test}\n    {failure.sqlstate or ''} {first[:300]}")


def parsed():
    parser = argparse.ArgumentParser(
        prog="scripts/driver-suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of units' names (default: all)")
    parser.add_argument("--only", default="", metavar="WORD", help="the tests whose names contain this word")
    parser.add_argument("--list-failures", action="store_true", help="list each test that fails, with its error")
    parser.add_argument("--keep", metavar="DIR", help="keep the records and logs of the runs there")
    return parser.parse_args()


def main():
    options = parsed()
    units = suite_units.chosen(options.words)
    if not units:
        sys.exit(f"no unit's name contains {' or '.join(options.words)}; there are {', '.join(suite_units.names())}")
    both, outcomes = Servers(options.keep), []
    try:
        for unit in units:
            outcomes.append(both.run(unit, options.only))
            print(row(unit.name, outcomes[-1].passed(), outcomes[-1].counted), flush=True)
    finally:
        both.end()
    for suite in dict.fromkeys(unit.suite for unit in units):
        of_suite = [outcome for outcome in outcomes if outcome.unit.suite == suite]
        print(row(f"{suite}, all", sum(one.passed() for one in of_suite), sum(one.counted for one in of_suite)))
    show(outcomes, options.list_failures)
    sys.exit(1 if any(outcome.failures for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
