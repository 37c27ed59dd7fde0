"""Joins of 3 to 12 tables with skewed values: the plans that Clearway chooses, against other orders of the same joins and
against PostgreSQL 15.

The tables and the queries are those of scripts/support/join_orders.py, filled by --seed. Both servers were analysed, have
the same shared buffers and work_mem, and use no parallel workers; PostgreSQL searches all orders. Each query runs on both
in turn, --rounds times, in an order that turns from round to round; shown are the medians. Then it runs on Clearway in
--orders random orders, each forced by subqueries with OFFSET 0; `best order` is the time of the fastest, which ends the
slower ones after ten times the chosen plan's time. `work` is the number of rows that scans and joins find and look at, for
the chosen plan and for the order with the least.

    scripts/join-order                              # about 2 minutes
    scripts/join-order --scale 0.1 --rounds 1       # a look
    scripts/join-order --only 'mix 12' --explain    # some queries, with Clearway's plans

Ends with 1 if an answer differs, or if a query takes more than --bound times PostgreSQL's time and more than 5 ms.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import psycopg

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from peer import answer, connect  # noqa: E402
from support import join_orders, servers, tools  # noqa: E402

MEMORY = {"shared_buffers": "256MB", "work_mem": "32MB"}

# A query of less time than this is not judged by its ratio.
SECONDS_JUDGED = 0.005


def started():
    """Both servers, ours first."""
    settings = "".join(f'{name} = "{value}"\n' for name, value in MEMORY.items())
    ours = servers.Clearway(tools.build(), servers.scratch("join-order"), settings).start()
    peer = [*MEMORY.items(), ("fsync", "off"), ("max_parallel_workers_per_gather", "0"), ("geqo", "off"),
            ("join_collapse_limit", "12"), ("from_collapse_limit", "12")]
    return ours, servers.Postgres(servers.scratch("join-order-peer"), peer).start()


def timed(connection, sql):
    began = time.monotonic()
    found = answer(connection, sql)
    return found, time.monotonic() - began


def chosen(both, query, rounds):
    """The medians of both, and their answers."""
    times, answers = ([], []), [None, None]
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            answers[side], seconds = timed(both[side], query.sql())
            times[side].append(seconds)
    return [statistics.median(side) for side in times], answers


def sampled(connection, query, seconds, orders, seed):
    """The time and the work of the best of some orders; an order's answers are not looked at if it takes too long."""
    connection.execute(f"set statement_timeout = {1000 + round(10_000 * seconds)}")
    best_seconds, least_work, answers = math.inf, math.inf, []
    for order in query.orders(seed, orders):
        found, took = timed(connection, query.in_order(order))
        if not isinstance(found, list):
            continue
        answers.append(found)
        best_seconds = min(best_seconds, took)
        try:
            least_work = min(least_work, join_orders.work_of(connection, query.in_order(order)))
        except psycopg.errors.QueryCanceled:
            pass
    connection.execute("set statement_timeout = 0")
    return best_seconds, least_work, answers


def measure(both, query, options):
    (ours, theirs), answers = chosen(both, query, options.rounds)
    work = join_orders.work_of(both[0], query.sql())
    best_seconds, least_work, others = sampled(both[0], query, ours, options.orders, options.seed)
    same = isinstance(answers[0], list) and all(one == answers[0] for one in [answers[1], *others])
    cliff = ours > options.bound * theirs and ours > SECONDS_JUDGED
    print(
        f"{query.name:28} {1000 * ours:9.1f} {1000 * theirs:9.1f} {ours / theirs:6.2f} {1000 * best_seconds:11.1f} "
        f"{ours / best_seconds:6.2f} {work:9,} {least_work:11,}{'  CLIFF' if cliff else ''}{'' if same else '  DIFFERENT'}",
        flush=True,
    )
    if not same:
        print(f"  ours   {str(answers[0])[:300]}\n  theirs {str(answers[1])[:300]}", flush=True)
    return {"query": query.name, "clearway": ours, "postgres": theirs, "best_order": best_seconds, "work": work,
            "least_work": least_work, "same": same, "cliff": cliff}


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios)))


def parsed():
    parser = argparse.ArgumentParser(
        prog="scripts/join-order", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1, help="1 has 120,000 sales (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of the data and of the orders (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each query runs on each server (default: 5)")
    parser.add_argument("--orders", type=int, default=10, help="how many other orders are tried (default: 10)")
    parser.add_argument("--bound", type=float, default=5, help="what multiple of PostgreSQL's time is a cliff (default: 5)")
    parser.add_argument("--only", default="", help="queries whose name contains a word")
    parser.add_argument("--explain", action="store_true", help="show Clearway's plans first")
    parser.add_argument("--out", type=pathlib.Path, help="write the results to this file, as JSON")
    options = parser.parse_args()
    options.queries = [query for query in join_orders.QUERIES if options.only in query.name]
    if not options.queries:
        parser.error(f"no query's name contains '{options.only}'")
    return options


def main():
    options = parsed()
    tools.need("initdb", "postgres")
    ours, theirs = started()
    try:
        both = connect(ours), connect(theirs)
        rows = join_orders.data(options.scale, options.seed)
        for connection in both:
            join_orders.load(connection, rows)
        for query in options.queries if options.explain else ():
            print(query.name, *(row for row, in both[0].execute(f"explain {query.sql()}")), sep="\n    ")
        print(f"{'query':28} {'Clearway':>9} {'PostgreSQL':>9} {'ratio':>5} {'best order':>11} {'ratio':>6} {'work':>9} "
              f"{'least work':>11}   (ms)")
        results = [measure(both, query, options) for query in options.queries]
        print(f"geometric means: {mean([one['clearway'] / one['postgres'] for one in results]):.2f} of PostgreSQL's time, "
              f"{mean([one['clearway'] / one['best_order'] for one in results]):.2f} of the best order's")
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")
        for connection in both:
            connection.close()
    finally:
        ours.stop()
        theirs.kill()
    sys.exit(0 if all(one["same"] and not one["cliff"] for one in results) else 1)


if __name__ == "__main__":
    main()
