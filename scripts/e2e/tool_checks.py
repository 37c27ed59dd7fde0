"""Runs programs of checks, one a tool, on the engine and on a PostgreSQL 15 beside it, and counts the checks in which both
servers show the tool the same.

A program (scripts/e2e/programs) prints the names of its checks, and then runs each whose name it reads from its standard
input. What a check saw, a list of texts, and the error that ended it, if any, go back as one line of JSON. Lines of the
protocol begin with `::`; whatever else the tool prints is passed over. So this runner decides what happens between two
checks:

1. Every schema is dropped and an empty `public` made: a check finds nothing of the one before it.
2. A check that is not answered in `SECONDS` failed. Its program is ended, and a new one goes on with the next check.
3. Each tool gets a server of the engine on an empty directory, and an empty database of PostgreSQL.

A check that ends with an error on PostgreSQL is a fault of the check itself, and is shown as one.

    scripts/tool-checks                       # all tools
    scripts/tool-checks psql jdbc             # two of them
    scripts/tool-checks --why psql            # the first line of each difference
    scripts/tool-checks --show psql           # all that both sides saw
    scripts/tool-checks --only savepoint psql # the checks whose name has this word
    scripts/tool-checks --take-out            # and take out of known_failures.txt what passes

It exits with 1 if a check fails that known_failures.txt does not list, or passes although it does.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import queue
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import psycopg  # noqa: E402

from support import checked_tools, servers, tools  # noqa: E402

KNOWN = HERE / "known_failures.txt"
MARK = "::"
SECONDS = 30
# A program's start: a tool may be compiled, and everything at once may be started beside it.
SECONDS_TO_START = 120


class NoAnswer(Exception):
    pass


class Program:
    """A running program of checks, against one server."""

    def __init__(self, command, server, environment):
        self.log = (server.directory / "program.log").open("ab")
        self.process = subprocess.Popen(
            [str(part) for part in command], env=server.environment(**environment, PGAPPNAME="checks"),
            cwd=server.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, errors="replace",
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.checks = self._answer(SECONDS_TO_START)

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(MARK):
                self.lines.put(line.removeprefix(MARK))
        self.lines.put(None)

    def _answer(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise NoAnswer(f"no answer after {seconds} s") from None
        if line is None:
            said = pathlib.Path(self.log.name).read_text(errors="replace").splitlines()[-8:]
            raise NoAnswer("\n".join([f"the program ended with {self.process.wait()}", *said]))
        return json.loads(line)

    def ask(self, check):
        """What the check saw: texts, the last of them the error that ended it."""
        self.process.stdin.write(check + "\n")
        self.process.stdin.flush()
        answer = self._answer(SECONDS)
        return Seen(answer["seen"], answer.get("error"))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@dataclasses.dataclass
class Seen:
    lines: list
    error: str | None = None

    def all(self):
        return [*self.lines, *([f"error: {self.error}"] if self.error is not None else [])]


class Side:
    """One server, and how a program's checks went on it."""

    def __init__(self, server):
        self.server = server
        self.secret = [str(server.sockets), str(server.directory), str(server.port)]

    def administrator(self, database="postgres"):
        return psycopg.connect(
            host=str(self.server.sockets), port=self.server.port, user=self.server.user, dbname=database, autocommit=True
        )

    def clean(self):
        """Drops every schema. A session that is in the way keeps it waiting, then the caller ends the program."""
        with self.administrator() as connection:
            connection.execute("set statement_timeout = '5s'")
            if self.server.name == "postgres":
                for (transaction,) in connection.execute("select gid from pg_prepared_xacts").fetchall():
                    connection.execute(f"rollback prepared '{transaction}'")
            schemas = connection.execute(
                "select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"
            ).fetchall()
            for (schema,) in schemas:
                connection.execute(f'drop schema "{schema}" cascade')
            connection.execute("create schema public")
            if self.server.name == "postgres":
                # As a new database has it.
                connection.execute("alter schema public owner to pg_database_owner; grant usage on schema public to public")

    def run(self, command, environment, only):
        """The checks' names, and what each saw. The runner goes on with a new program after one that gave no answer."""
        program = Program(command, self.server, environment)
        checks = program.checks
        seen = {}
        for check in checks:
            if only not in check:
                continue
            try:
                if program is None:
                    program = Program(command, self.server, environment)
                try:
                    self.clean()
                except psycopg.Error:
                    program.end()
                    program = Program(command, self.server, environment)
                    self.clean()
                seen[check] = self.without_address(program.ask(check))
            except (NoAnswer, OSError, psycopg.Error) as error:
                seen[check] = Seen([], str(error))
                if program is not None:
                    program.end()
                    program = None
        if program is not None:
            program.end()
        return [check for check in checks if only in check], seen

    def without_address(self, seen):
        """What a check saw, without what is the server's address."""

        def clear(text):
            for secret in self.secret:
                text = text.replace(secret, "ADDRESS")
            return text

        return Seen([clear(line) for line in seen.lines], None if seen.error is None else clear(seen.error))


@dataclasses.dataclass
class Outcome:
    tool: str
    checks: list
    ours: dict
    theirs: dict
    seconds: float

    def failing(self):
        return [check for check in self.checks if self.faulty(check) or self.ours[check] != self.theirs[check]]

    def faulty(self, check):
        """Whether it is PostgreSQL that does not answer the check as it should."""
        return self.theirs[check].error is not None

    def why(self, check):
        """The first difference, on one line."""
        if self.faulty(check):
            return f"on PostgreSQL: {self.theirs[check].error}"
        ours, theirs = self.ours[check].all(), self.theirs[check].all()
        for number in range(max(len(ours), len(theirs))):
            pair = [side[number] if number < len(side) else "(nothing)" for side in (ours, theirs)]
            if pair[0] != pair[1]:
                return " / wanted: ".join(_short(text) for text in pair)
        return ""

    def row(self):
        failing = self.failing()
        return (self.tool, len(self.checks) - len(failing), len(self.checks), f"{self.seconds:.1f}", ", ".join(failing))


def _short(text, length=160):
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


class Servers:
    """Clearway and PostgreSQL, both empty for each tool."""

    def __init__(self):
        tools.need("initdb", "postgres")
        self.binary = tools.build()
        settings = [
            ("fsync", "off"), ("timezone", "UTC"), ("datestyle", "ISO, MDY"), ("listen_addresses", "127.0.0.1"),
            ("shared_buffers", "64MB"), ("max_prepared_transactions", "5"),
        ]
        self.postgres = servers.Postgres(servers.scratch("tools-peer"), settings).start()
        # The same owner of everything on both sides, since tools show it.
        self.postgres.sql("create role other superuser login")
        self.postgres.user = "other"
        self.postgres.sql("alter role postgres rename to clearway")
        self.postgres.user = "clearway"
        self.postgres.sql("drop role other")

    def run(self, tool, only=""):
        """What a tool's checks saw on both."""
        command, environment = tool.command(), checked_tools.environment()
        with psycopg.connect(
            host=str(self.postgres.sockets), port=self.postgres.port, user="clearway", dbname="template1", autocommit=True
        ) as administrator:
            administrator.execute("drop database postgres with (force)")
            administrator.execute("create database postgres")
        ours = servers.Clearway(self.binary, servers.scratch("tools"), 'shared_buffers = "64MB"\n').start()
        began = time.monotonic()
        try:
            with concurrent.futures.ThreadPoolExecutor(2) as both:
                runs = [both.submit(Side(server).run, command, environment, only) for server in (ours, self.postgres)]
                (_, seen), (checks, wanted) = [run.result() for run in runs]
        finally:
            ours.kill()
        return Outcome(tool.name, checks, {check: seen.get(check, Seen([], "not run")) for check in checks}, wanted,
                       time.monotonic() - began)

    def end(self):
        self.postgres.kill()


def known_failures():
    """The checks that fail, by tool: `tool: check`, one a line, below a heading with their reason."""
    found = {}
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            tool, _, check = line.partition(": ")
            found.setdefault(tool, set()).add(check)
    return found


def unexpected(outcome, known):
    """What differs from the list of known failures, as texts."""
    failing, listed = set(outcome.failing()), known.get(outcome.tool, set())
    return [
        *(f"{outcome.tool}: {check} fails: {outcome.why(check)}" for check in outcome.checks if check in failing - listed),
        *(f"{outcome.tool}: {check} passes; take it out of {KNOWN.name}" for check in outcome.checks if check in listed - failing),
        *(f"{outcome.tool}: {check} is in {KNOWN.name} and no check" for check in sorted(listed - set(outcome.checks))),
    ]


def take_out(outcomes):
    """Takes out of the list of known failures what passes."""
    passing = {f"{one.tool}: {check}" for one in outcomes for check in set(one.checks) - set(one.failing())}
    head, *groups = KNOWN.read_text().rstrip("\n").split("\n\n")
    left = [head]
    for group in groups:
        reason, *checks = group.splitlines()
        # A reason without checks goes with the last of them.
        if kept := [check for check in checks if check not in passing]:
            left.append("\n".join([reason, *kept]))
    KNOWN.write_text("\n\n".join(left) + "\n")


def table(outcomes):
    """One table of all, with a sum."""
    rows = [("tool", "passed", "of", "seconds", "failing"), *(outcome.row() for outcome in outcomes)]
    rows.append(("all", sum(row[1] for row in rows[1:]), sum(row[2] for row in rows[1:]), f"{sum(float(row[3]) for row in rows[1:]):.1f}", ""))
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "| --- | ---: | ---: | ---: | --- |", *lines[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", help="names of tools; all without any")
    parser.add_argument("--why", action="store_true", help="show the first line of each difference")
    parser.add_argument("--show", action="store_true", help="show all that both sides saw in the failing checks")
    parser.add_argument("--only", default="", metavar="WORD", help="the checks whose name has this word")
    parser.add_argument("--take-out", action="store_true", help="take out of known_failures.txt what passes")
    arguments = parser.parse_args()
    names = [tool.name for tool in checked_tools.TOOLS]
    if wrong := [name for name in arguments.tools if name not in names]:
        sys.exit(f"no tool is called {wrong[0]}; there are {', '.join(names)}")
    both = Servers()
    outcomes, strange = [], []
    known = known_failures()
    for tool in checked_tools.TOOLS:
        if arguments.tools and tool.name not in arguments.tools:
            continue
        outcome = both.run(tool, arguments.only)
        outcomes.append(outcome)
        if not arguments.only:
            strange += unexpected(outcome, known)
        for check in outcome.failing() if arguments.why or arguments.show else ():
            print(f"{tool.name}: {check}: {outcome.why(check)}", flush=True)
            if arguments.show:
                for side, seen in (("ours", outcome.ours), ("theirs", outcome.theirs)):
                    print("\n".join([f"  {side}:", *(f"    {line}" for text in seen[check].all() for line in text.splitlines())]))
    both.end()
    print(table(outcomes))
    if arguments.take_out:
        take_out(outcomes)
    if strange:
        print("\n" + "\n".join(strange))
    sys.exit(1 if strange else 0)


if __name__ == "__main__":
    main()
