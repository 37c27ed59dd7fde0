"""Asks Clearway and a PostgreSQL beside it the same random queries, and compares their rows.

Joins, queries inside queries, aggregates, grouping sets, window functions, set operators and common table expressions,
also recursive ones, over four small tables and three views (scripts/e2e/random_query.py). A query is known by its seed and number, and is always the same.

    scripts/random-queries                          # 2,000 queries
    scripts/random-queries --queries 100000         # the campaign
    scripts/random-queries --seed 7 --only 1234     # one query, with both answers

The rows must be the same, in any order unless the query has one. A query that Clearway refuses (0A000) is counted by its
reason. One that PostgreSQL does not answer within --timeout is left out; one that takes Clearway alone longer is counted
as slow. Ends with 1 if an answer differs.
"""

import argparse
import collections
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import random_query  # noqa: E402
from peer import answer, connect  # noqa: E402
from support import servers, tools  # noqa: E402

TOO_LONG = "57014"


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


class Comparison:
    """Random queries on two connections, and what came of them."""

    def __init__(self, ours, theirs, seed, timeout="2s"):
        self.ours, self.theirs, self.seed = ours, theirs, seed
        self.same = self.left_out = 0
        self.refused = collections.Counter()
        self.slow, self.different = [], []
        for connection in (ours, theirs):
            for statement in random_query.setup(seed):
                connection.execute(statement)
            connection.execute(f"set statement_timeout = '{timeout}'")

    def ask(self, number):
        """Asks both the query of this number; both answers."""
        sql = random_query.query(self.seed, number)
        theirs = answer(self.theirs, sql)
        if isinstance(theirs, tuple) and theirs[0] == TOO_LONG:
            self.left_out += 1
            return sql, None, theirs
        ours = answer(self.ours, sql)
        if isinstance(ours, tuple):
            if ours[0] == TOO_LONG:
                self.slow.append((number, sql))
            elif ours[0] == "0A000" and not isinstance(theirs, tuple):
                self.refused[re.sub(r'"[^"]*"', '"…"', ours[1])] += 1
            elif isinstance(theirs, tuple) and ours[0] == theirs[0]:
                self.same += 1
            else:
                self.different.append((number, sql, ours, theirs))
        elif isinstance(theirs, list) and comparable(ours, sql) == comparable(theirs, sql):
            self.same += 1
        else:
            self.different.append((number, sql, ours, theirs))
        return sql, ours, theirs

    def summary(self):
        """The counts, in a line."""
        return (
            f"{self.same} the same, {len(self.different)} different, {self.refused.total()} refused, "
            f"{len(self.slow)} slow, {self.left_out} left out"
        )


def shown(number, sql, ours, theirs):
    """A query and both answers, of which the rows that only one has."""
    if isinstance(ours, list) and isinstance(theirs, list):
        a, b = collections.Counter(ours), collections.Counter(theirs)
        ours = f"{len(ours)} rows, of them alone {list((a - b).elements())[:5]}"
        theirs = f"{len(theirs)} rows, of them alone {list((b - a).elements())[:5]}"
    return f"query {number}: {sql}\n  ours   {str(ours)[:600]}\n  theirs {str(theirs)[:600]}"


def run(comparison, options):
    """Asks the queries of the options, with a line of progress every ten seconds."""
    said = time.monotonic()
    for count, number in enumerate(range(options.first, options.first + options.queries), 1):
        before = len(comparison.different), len(comparison.slow)
        comparison.ask(number)
        if len(comparison.different) > before[0] and len(comparison.different) <= options.show:
            print(shown(*comparison.different[-1]), flush=True)
        if len(comparison.slow) > before[1] and len(comparison.slow) <= options.show:
            print(f"slow, query {number}: {comparison.slow[-1][1]}", flush=True)
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"{count} of {options.queries}: {comparison.summary()}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/random-queries", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="which tables and queries (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first query (default: 0)")
    parser.add_argument("--only", type=int, help="ask this query alone, and show both answers")
    parser.add_argument("--timeout", default="2s", help="statement_timeout of both servers (default: 2s)")
    parser.add_argument("--show", type=int, default=20, help="how many differing answers to show (default: 20)")
    options = parser.parse_args()
    tools.need("initdb", "postgres")
    ours = servers.Clearway(tools.build(), servers.scratch("random"), 'shared_buffers = "64MB"\n').start()
    theirs = servers.Postgres(servers.scratch("random-peer"), [("fsync", "off")]).start()
    try:
        comparison = Comparison(connect(ours), connect(theirs), options.seed, options.timeout)
        if options.only is not None:
            print(shown(options.only, *comparison.ask(options.only)))
        else:
            run(comparison, options)
        print(comparison.summary())
        for reason, count in comparison.refused.most_common():
            print(f"{count:6} {reason}")
    finally:
        ours.kill()
        theirs.kill()
    sys.exit(1 if comparison.different else 0)


if __name__ == "__main__":
    main()
