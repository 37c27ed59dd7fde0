#!/usr/bin/env python3
"""Runs PostgreSQL's isolation specs on Clearway and on a PostgreSQL beside it, and compares what each permutation of steps
gives. The specs come from Debian's source package (support/regression_files.py); a path takes any other.

A step is sent when the one before has ended, or has been waiting for another session of the spec for longer than a search
for deadlocks takes (pg_blocking_pids). What a permutation gives is, in this order for each step sent: its outcome, or that it waits; and the outcomes of those that waited and have
ended by then, by session. An outcome is the rows, sorted where the statement has no ORDER BY, an error's SQLSTATE and
message, and notices. The wait of a step marked `*` is not compared, nor are the plans that EXPLAIN tells.

A permutation in which Clearway refuses a statement by name (0A000), or lacks what such a statement was to make, is left out;
so is a spec whose setup is refused.

    scripts/isolation-specs                        # all: about 10 minutes
    scripts/isolation-specs fk-deadlock multixact  # those whose names contain a word
    scripts/isolation-specs --show lock-update     # what differs, with both sides

Ends with 1 if a permutation differs.
"""

import argparse
import collections
import pathlib
import select
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from psycopg import pq  # noqa: E402

from peer import connect  # noqa: E402
from regress import is_ordered  # noqa: E402
from support import isolation_spec, regression_files, servers, tools  # noqa: E402

# A step that has neither ended nor waits for another session after this time has failed.
PATIENCE = 60.0
# Time between two looks at a step that has not ended.
LOOK = 0.01
# A step that has been waiting for so long stays so: both servers look for deadlocks earlier, unless the spec says when.
DEADLOCK_TIMEOUT, WAITS = "20ms", 0.2

REFUSED = "0A000"
# What a statement meets that names what a refused one was to make: no function, relation, type or schema.
LACKS = {"42883", "42P01", "42704", "3F000"}


class LeftOut(Exception):
    """Clearway refuses a statement by name."""


class Stuck(Exception):
    """A permutation cannot go on: the session of its next step waits for a later one."""


class Client:
    """A session of a spec."""

    def __init__(self, server):
        self.connection = connect(server)
        self.link = self.connection.pgconn
        self.link.notice_handler = self.notice
        self.pid = self.link.backend_pid
        self.results, self.busy, self.sql = [], False, ""

    def notice(self, result):
        parts = (pq.DiagnosticField.SEVERITY_NONLOCALIZED, pq.DiagnosticField.MESSAGE_PRIMARY)
        self.results.append(tuple((result.error_field(part) or b"").decode() for part in parts))

    def send(self, sql):
        self.results, self.busy, self.sql = [], True, sql
        self.link.send_query(sql.encode())

    def look(self):
        """Whether the statement has ended; takes what has come of its answer."""
        if select.select([self.link.socket], [], [], 0)[0]:
            self.link.consume_input()
        while not self.link.is_busy():
            result = self.link.get_result()
            if result is None:
                self.busy = False
                return True
            self.results.append(told(result, self.sql))
        return False

    def run(self, sql):
        """Runs a statement to its end."""
        self.send(sql)
        deadline = time.monotonic() + PATIENCE
        while not self.look():
            if time.monotonic() > deadline:
                raise TimeoutError(sql)
            select.select([self.link.socket], [], [], LOOK)
        return self.results


def told(result, sql):
    """What a step says of a result."""
    if result.status == pq.ExecStatus.TUPLES_OK and result.fname(0) == b"QUERY PLAN":
        return ("plan",)
    if result.status == pq.ExecStatus.TUPLES_OK:
        rows = [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]
        return "rows", rows if is_ordered(sql) else sorted(rows, key=repr)
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
        return ("done",)
    parts = (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY)
    return "error", *((result.error_field(part) or b"").decode() for part in parts)


def error_of(results):
    return next((one for one in results if one[0] == "error"), None)


class Side:
    """A server, with the sessions of a spec."""

    def __init__(self, server, spec):
        self.control = Client(server)
        self.clients = [Client(server) for _ in spec.sessions]
        self.spec = spec
        self.pids = [client.pid for client in self.clients]

    def close(self):
        for client in [self.control, *self.clients]:
            client.connection.close()

    def prepare(self):
        for sql in self.spec.setups:
            self.must(self.control, sql)
        for client, session in zip(self.clients, self.spec.sessions):
            if session.setup:
                self.must(client, session.setup)

    def must(self, client, sql):
        if error := error_of(client.run(sql)):
            raise LeftOut(f"setup: {error[1]} {error[2]}")

    def tidy(self):
        for client, session in zip(self.clients, self.spec.sessions):
            if session.teardown:
                client.run(session.teardown)
            # A refused step leaves a transaction that the spec's steps did not end.
            if client.link.transaction_status != pq.TransactionStatus.IDLE:
                client.run("rollback")
        if self.spec.teardown:
            self.control.run(self.spec.teardown)

    def blocked(self, client):
        """Whether the session waits for another one of the spec."""
        listed = ",".join(map(str, self.pids))
        (rows,) = [one[1] for one in self.control.run(
            f"select (pg_blocking_pids({client.pid}) || pg_safe_snapshot_blocking_pids({client.pid})) && '{{{listed}}}'::int[]"
        )]
        return rows[0][0] == b"t"

    def settle(self, client, to_end=False):
        """Waits until the session's step has ended, or is found waiting; whether it has ended."""
        deadline, since = time.monotonic() + PATIENCE, None
        while True:
            if client.look():
                return True
            now = time.monotonic()
            if not to_end:
                since = (since or now) if self.blocked(client) else None
                if since is not None and now - since > WAITS:
                    return client.look()
            if now > deadline:
                raise TimeoutError(client.sql)
            select.select([client.link.socket], [], [], LOOK)

    def play(self, order):
        """What a permutation gives."""
        story, waiting = [], {}

        def ended(number):
            step = waiting.pop(number)
            story.append((f"{step}: ends", tuple(self.clients[number].results)))

        def look_again():
            moved = True
            while moved:
                moved = False
                for number in sorted(waiting):
                    if self.settle(self.clients[number]):
                        ended(number)
                        moved = True

        for step, open_wait in order:
            number = self.spec.session_of(step)
            client = self.clients[number]
            if number in waiting:
                if not self.settle(client):
                    # What it waits for is a step behind this one.
                    raise Stuck(story)
                ended(number)
                look_again()
            client.send(self.spec.sql_of(step))
            if self.settle(client):
                story.append((f"{step}: ends" if open_wait else step, tuple(client.results)))
            else:
                waiting[number] = step
                if not open_wait:
                    story.append((step, "waits"))
            look_again()
        for number in sorted(waiting):
            if number in waiting:
                self.settle(self.clients[number], to_end=True)
                ended(number)
        return story

    def abandon(self):
        """After a permutation that could not be ended: every session is told to stop."""
        for client in self.clients:
            client.connection.cancel()
        for client in self.clients:
            if client.busy:
                self.settle(client, to_end=True)
            client.run("rollback")


def refusal(story):
    """The first statement of a story that Clearway refuses by name."""
    for _, results in story:
        error = None if isinstance(results, str) else error_of(results)
        if error and error[1] == REFUSED:
            return error[2]
    return None


def one_side(side, order):
    """What a permutation gives on a server, as far as it goes on."""
    side.prepare()
    try:
        story = side.play(order)
    except Stuck as stuck:
        side.abandon()
        story = [*stuck.args[0], ("the next step", "cannot be sent")]
    except TimeoutError as error:
        side.abandon()
        story = [("a step does not end", str(error))]
    side.tidy()
    return story


class Outcome:
    """The permutations of a spec by what became of them."""

    def __init__(self, name):
        self.name, self.same, self.left_out, self.different = name, 0, collections.Counter(), []

    def row(self):
        left = sum(self.left_out.values())
        return f"{self.name:36} {self.same:5} same {len(self.different):4} differ {left:5} left out"


def compare(path, ours, theirs):
    """Runs a spec on both servers."""
    spec = isolation_spec.read(path.stem, path.read_text())
    outcome, sides = Outcome(spec.name), []
    try:
        sides = [Side(server, spec) for server in (theirs, ours)]
        for order in spec.orders():
            expected = one_side(sides[0], order)
            try:
                found = one_side(sides[1], order)
            except LeftOut as reason:
                # The other permutations have the same setup.
                outcome.left_out[str(reason)] = len(spec.orders())
                break
            if found == expected:
                outcome.same += 1
            elif (why := refusal(found)) is not None:
                outcome.left_out[why] += 1
            else:
                outcome.different.append((" ".join(step for step, _ in order), expected, found))
    finally:
        for side in sides:
            side.close()
    return outcome


def show(outcome):
    for steps, expected, found in outcome.different:
        print(f"  permutation {steps}")
        for number in range(max(len(expected), len(found))):
            theirs = expected[number] if number < len(expected) else "(nothing)"
            ours = found[number] if number < len(found) else "(nothing)"
            mark = " " if theirs == ours else "!"
            print(f"  {mark} PostgreSQL {theirs}\n  {mark} Clearway   {ours}" if mark == "!" else f"    both       {ours}")


def started():
    """Both servers, ours first."""
    settings = f'deadlock_timeout = "{DEADLOCK_TIMEOUT}"\nshared_buffers = "64MB"\n'
    ours = servers.Clearway(tools.build(), servers.scratch("isolation"), settings).start()
    peer = [("fsync", "off"), ("deadlock_timeout", DEADLOCK_TIMEOUT), ("max_prepared_transactions", "10")]
    return ours, servers.Postgres(servers.scratch("isolation-peer"), peer).start()


def parsed():
    parser = argparse.ArgumentParser(
        prog="scripts/isolation-specs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of specs' names, or paths (default: all)")
    parser.add_argument("--show", action="store_true", help="show each permutation that differs")
    return parser.parse_args()


def chosen(words):
    folder = regression_files.folder() / "specs"
    paths = [pathlib.Path(word) for word in words if word.endswith(".spec")]
    names = [word for word in words if not word.endswith(".spec")]
    if names or not words:
        paths += [path for path in sorted(folder.glob("*.spec")) if not names or any(word in path.stem for word in names)]
    if not paths:
        sys.exit(f"no spec's name contains {' or '.join(words)}; they are in {folder}")
    return paths


def main():
    options = parsed()
    tools.need("initdb", "postgres")
    paths = chosen(options.words)
    ours, theirs = started()
    total, reasons = collections.Counter(), collections.Counter()
    try:
        for path in paths:
            outcome = compare(path, ours, theirs)
            print(outcome.row(), flush=True)
            if options.show:
                show(outcome)
            total.update(same=outcome.same, differ=len(outcome.different), left_out=sum(outcome.left_out.values()))
            reasons.update(outcome.left_out)
    finally:
        ours.stop()
        theirs.kill()
    judged = total["same"] + total["differ"]
    share = 100 * total["same"] / judged if judged else 0
    print(f"{total['same']} of {judged} permutations agree ({share:.1f} %); {total['left_out']} are left out:")
    for reason, count in reasons.most_common():
        print(f"  {count:5}  {reason}")
    sys.exit(1 if total["differ"] else 0)


if __name__ == "__main__":
    main()
