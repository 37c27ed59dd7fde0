"""TPC-H's 22 queries on Clearway and on a PostgreSQL beside it: their answers, and their times.

The data are made by tpchgen-cli at the scale asked for. Both servers have the standard's tables with their primary keys
and indexes on the columns that refer to other tables, were analysed, have the same shared buffers and work_mem, and use
no parallel workers. Each query runs on both in turn, --rounds times, in an order that turns from round to round; shown
are the medians and their ratio. It is not an audited result.

    scripts/tpch                            # scale 0.1, about 3 minutes
    scripts/tpch --scale 0.01 --rounds 1    # only whether the answers are the same
    scripts/tpch --only 17,20 --explain     # some queries, with Clearway's plans

Ends with 1 if an answer differs.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from peer import answer, connect  # noqa: E402
from support import drivers, servers, tools  # noqa: E402
from support.tpch_queries import INDEXES, QUERIES, TABLES  # noqa: E402

MEMORY = {"shared_buffers": "256MB", "work_mem": "32MB"}


def generated(scale, directory):
    """Makes the data; the directory of the files."""
    program = drivers.python("tpch", "tpch-requirements.txt").parent / "tpchgen-cli"
    subprocess.run(
        [program, "csv", "--scale-factor", str(scale), "--output-dir", directory], check=True, stdout=subprocess.DEVNULL
    )
    return directory


def load(connection, data):
    """Makes and fills the tables."""
    for table, (columns, key) in TABLES.items():
        connection.execute(f"create table {table} ({columns}, primary key ({key}))")
        with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin (format csv, header true)") as copy:
            with (data / f"{table}.csv").open("rb") as file:
                while block := file.read(1 << 20):
                    copy.write(block)
    for statement in INDEXES:
        connection.execute(statement)
    connection.execute("vacuum analyze")


def timed(connection, sql):
    began = time.monotonic()
    found = answer(connection, sql)
    return found, time.monotonic() - began


def started(directories):
    """Both servers, ours first."""
    settings = "".join(f'{name} = "{value}"\n' for name, value in MEMORY.items())
    ours = servers.Clearway(tools.build(), directories[0], settings).start()
    peer = [*MEMORY.items(), ("fsync", "off"), ("max_parallel_workers_per_gather", "0"), ("max_wal_size", "4GB")]
    return ours, servers.Postgres(directories[1], peer).start()


def compare(both, numbers, rounds, timeout):
    """Runs the queries; of each its number, the medians, and the answers if they differ."""
    for connection in both:
        connection.execute(f"set statement_timeout = '{timeout}'")
    results = []
    for number in numbers:
        times, answers = ([], []), [None, None]
        for turn in range(rounds):
            for side in (0, 1) if turn % 2 == 0 else (1, 0):
                answers[side], seconds = timed(both[side], QUERIES[number])
                times[side].append(seconds)
        ours, theirs = (statistics.median(side) for side in times)
        same = answers[0] == answers[1] and isinstance(answers[0], list)
        results.append({"query": number, "clearway": ours, "postgres": theirs, "same": same})
        print(f"{number:5}  {1000 * ours:9.1f}  {1000 * theirs:9.1f}  {ours / theirs:6.2f}  {'' if same else 'DIFFERENT'}", flush=True)
        if not same:
            print(f"  ours   {str(answers[0])[:400]}\n  theirs {str(answers[1])[:400]}", flush=True)
    return results


def explained(connection, numbers):
    for number in numbers:
        plan = answer(connection, f"explain {QUERIES[number]}")
        print(f"query {number}")
        for line in plan if isinstance(plan, list) else [plan]:
            print("   ", line[0].decode() if isinstance(line[0], bytes) else line)


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/tpch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.1, help="1 is about a gigabyte (default: 0.1)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each query runs on each server (default: 5)")
    parser.add_argument("--only", help="the numbers of some queries, with commas between them")
    parser.add_argument("--timeout", default="60s", help="statement_timeout of both servers (default: 60s)")
    parser.add_argument("--explain", action="store_true", help="show Clearway's plans first")
    parser.add_argument("--out", type=pathlib.Path, help="write the medians to this file, as JSON")
    options = parser.parse_args()
    numbers = [int(number) for number in options.only.split(",")] if options.only else list(QUERIES)
    unknown = [number for number in numbers if number not in QUERIES]
    if unknown:
        parser.error(f"there is no query {unknown[0]}; TPC-H has 1 to 22")
    tools.need("initdb", "postgres")
    ours, theirs = started((servers.scratch("tpch"), servers.scratch("tpch-peer")))
    try:
        data = generated(options.scale, servers.scratch("tpch-data"))
        both = connect(ours), connect(theirs)
        for connection in both:
            load(connection, data)
        if options.explain:
            explained(both[0], numbers)
        print("query   Clearway, ms  PostgreSQL, ms  ratio")
        results = compare(both, numbers, options.rounds, options.timeout)
        ratios = [result["clearway"] / result["postgres"] for result in results]
        mean = math.exp(statistics.mean(math.log(ratio) for ratio in ratios))
        print(f"geometric mean of the ratios {mean:.2f}, largest {max(ratios):.2f}")
        if options.out:
            options.out.write_text(json.dumps({"scale": options.scale, "rounds": options.rounds, "queries": results}, indent=1) + "\n")
    finally:
        ours.kill()
        theirs.kill()
    sys.exit(0 if all(result["same"] for result in results) else 1)


if __name__ == "__main__":
    main()
