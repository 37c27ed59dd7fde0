"""Asks Clearway and a PostgreSQL beside it the same random queries, and compares their rows.

Joins, queries inside queries, aggregates, grouping sets, window functions, set operators and common table expressions,
also recursive ones, over four small tables and three views (scripts/e2e/random_query.py). A query is known by its seed and
number, and is always the same. Both servers work on a query at the same time, for as many workers as --jobs says.

    scripts/random-queries                          # 2,000 queries
    scripts/random-queries --queries 100000         # the campaign
    scripts/random-queries --seed 7 --only 1234     # one query, with both answers

The rows must be the same, in any order unless the query has one. A query that Clearway refuses (0A000) is counted by its
reason. One that PostgreSQL does not answer within --timeout, or with an internal error of its own, is left out; one that
takes Clearway alone longer is counted as slow. Ends with 1 if an answer differs.
"""

import argparse
import collections
import dataclasses
import multiprocessing
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import random_query  # noqa: E402
from peer import awaited, connect  # noqa: E402
from support import servers, tools  # noqa: E402

TOO_LONG = "57014"
INTERNAL = "XX000"

# Queries that a worker process is given together.
AT_ONCE = 25


def without_zeros(value):
    """A number without the zeros at its end. Of numbers that are equal, such as 1.0 and 1.00, max() gives either, and
    ORDER BY puts either first."""
    if value is None or not re.fullmatch(rb"-?\d+\.\d+", value):
        return value
    return value.rstrip(b"0").rstrip(b".")


def comparable(rows, sql):
    """Rows as they may be compared: in their order if the query has one, else sorted."""
    rows = [tuple(without_zeros(value) for value in row) for row in rows]
    return rows if re.search(r" order by [^()]*$", sql) else sorted(rows, key=repr)


def prepare(connections, seed):
    """Makes the tables on both servers."""
    for connection in connections:
        for statement in random_query.setup(seed):
            connection.execute(statement)


@dataclasses.dataclass
class Found:
    """What came of some queries."""

    same: int = 0
    failed: int = 0  # of the same: with one error on both
    left_out: int = 0
    refused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    slow: list = dataclasses.field(default_factory=list)
    different: list = dataclasses.field(default_factory=list)

    def add(self, other):
        """Adds what came of other queries."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def summary(self):
        """The counts, in a line."""
        return (
            f"{self.same} the same ({self.failed} of them errors), {len(self.different)} different, "
            f"{self.refused.total()} refused, {len(self.slow)} slow, {self.left_out} left out"
        )


class Comparison:
    """Random queries on two connections, and what came of them."""

    def __init__(self, ours, theirs, seed, timeout="2s"):
        self.ours, self.theirs, self.seed, self.found = ours, theirs, seed, Found()
        for connection in (ours, theirs):
            connection.execute(f"set statement_timeout = '{timeout}'")

    def ask(self, number):
        """Asks both the query of this number; both answers."""
        sql = random_query.query(self.seed, number)
        # Both work on it at the same time.
        for connection in (self.ours, self.theirs):
            connection.pgconn.send_query(sql.encode())
        ours, theirs = (awaited(connection) for connection in (self.ours, self.theirs))
        found = self.found
        if isinstance(theirs, tuple) and theirs[0] in (TOO_LONG, INTERNAL):
            found.left_out += 1
        elif isinstance(ours, tuple):
            if ours[0] == TOO_LONG:
                found.slow.append((number, sql))
            elif ours[0] == "0A000" and not isinstance(theirs, tuple):
                found.refused[re.sub(r'"[^"]*"', '"…"', ours[1])] += 1
            elif isinstance(theirs, tuple) and ours[0] == theirs[0]:
                found.same += 1
                found.failed += 1
            else:
                found.different.append((number, sql, ours, theirs))
        elif isinstance(theirs, list) and comparable(ours, sql) == comparable(theirs, sql):
            found.same += 1
        else:
            found.different.append((number, sql, ours, theirs))
        return sql, ours, theirs


def shown(number, sql, ours, theirs):
    """A query and both answers, of which the rows that only one has."""
    if isinstance(ours, list) and isinstance(theirs, list):
        a, b = collections.Counter(ours), collections.Counter(theirs)
        ours = f"{len(ours)} rows, of them alone {list((a - b).elements())[:5]}"
        theirs = f"{len(theirs)} rows, of them alone {list((b - a).elements())[:5]}"
    return f"query {number}: {sql}\n  ours   {str(ours)[:600]}\n  theirs {str(theirs)[:600]}"


def connect_worker(servers_of_both, seed, timeout):
    """Gives a worker process its connections."""
    global worker
    worker = Comparison(*(connect(server) for server in servers_of_both), seed, timeout)


def ask_some(numbers):
    """Asks the queries of these numbers in a worker process."""
    worker.found = Found()
    for number in numbers:
        worker.ask(number)
    return len(numbers), worker.found


def run(both, options):
    """Asks the queries of the options in worker processes, with a line of progress every ten seconds; what came of them."""
    whole = Found()
    last = options.first + options.queries
    parts = [range(first, min(first + AT_ONCE, last)) for first in range(options.first, last, AT_ONCE)]
    began = said = time.monotonic()
    asked = 0
    with multiprocessing.Pool(options.jobs, connect_worker, (both, options.seed, options.timeout)) as pool:
        for count, found in pool.imap_unordered(ask_some, parts):
            for one in found.different[: max(0, options.show - len(whole.different))]:
                print(shown(*one), flush=True)
            for number, sql in found.slow[: max(0, options.show - len(whole.slow))]:
                print(f"slow, query {number}: {sql}", flush=True)
            whole.add(found)
            asked += count
            if time.monotonic() - said > 10:
                said = time.monotonic()
                rate = asked / (said - began)
                print(f"{asked} of {options.queries}, {rate:.0f} a second: {whole.summary()}", flush=True)
    return whole


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/random-queries", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="which tables and queries (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first query (default: 0)")
    parser.add_argument("--only", type=int, help="ask this query alone, and show both answers")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes that ask (default: 2)")
    parser.add_argument("--timeout", default="2s", help="statement_timeout of both servers (default: 2s)")
    parser.add_argument("--show", type=int, default=20, help="how many differing answers to show (default: 20)")
    options = parser.parse_args()
    tools.need("initdb", "postgres")
    ours = servers.Clearway(tools.build(), servers.scratch("random"), 'shared_buffers = "64MB"\n').start()
    theirs = servers.Postgres(servers.scratch("random-peer"), [("fsync", "off")]).start()
    try:
        both = connect(ours), connect(theirs)
        prepare(both, options.seed)
        if options.only is not None:
            comparison = Comparison(*both, options.seed, options.timeout)
            print(shown(options.only, *comparison.ask(options.only)))
            found = comparison.found
        else:
            found = run((ours, theirs), options)
        print(found.summary())
        for reason, count in found.refused.most_common():
            print(f"{count:6} {reason}")
    finally:
        ours.kill()
        theirs.kill()
    sys.exit(1 if found.different else 0)


if __name__ == "__main__":
    main()
