"""What a long transaction on the primary costs a standby: the script that measures it, and how it reckons."""

import json
import os
import pathlib
import statistics
import subprocess
import threading
import time
import unittest
from math import comb

from support import cycles, servers, thread_time, tools


class LongTransaction(unittest.TestCase):
    def test_a_short_run_ends_with_its_tables(self):
        out = servers.scratch("long-transaction-test") / "out.json"
        done = subprocess.run(
            [tools.ROOT / "scripts" / "standby-long-transaction", "--smoke", "--variants", "bitmap", "--cycles", "2",
             "--write-rate", "100", "--out", str(out)],
            capture_output=True, text=True, timeout=600,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("CPU µs a read", done.stdout)
        self.assertIn("KiB behind", done.stdout)
        runs = json.loads(out.read_text())["runs"]
        self.assertEqual([run["hold"] for run in runs], ["xid", "snapshot"])
        for run in runs:
            self.assertEqual(len(run["open"]), 2)
            for curve in ("reads", "writes"):
                for span in cycles.spans(run["open"], 3, run["seconds"]):
                    phase = cycles.phase(run[curve], *span)
                    self.assertGreaterEqual(phase.seconds, 0.9, (curve, span))
                    self.assertGreater(phase.count, 1, (curve, span))
                    self.assertGreater(phase.cpu_us, 1, (curve, span))
            # A wait has no part in it: two CPUs cannot have used more than this.
            used = run["reads"][-1][2] - run["reads"][0][2]
            self.assertLess(used, os.cpu_count() * (run["seconds"] + 5) * 1e9)


class Cycles(unittest.TestCase):
    def test_a_cycle_is_held_against_its_neighbours(self):
        found = cycles.in_cycles([100, 90, 120, 66, 100])
        self.assertEqual([(one.closed, one.open) for one in found], [(110, 90), (110, 66)])
        self.assertAlmostEqual(found[1].ratio, 0.6)
        self.assertEqual(cycles.in_cycles([100, 90]), [], "a cycle that has not ended is none")

    def test_phases_lie_between_openings_and_closings(self):
        self.assertEqual(cycles.spans([(10, 20), (30, 40)], 3, 50), [(3, 10), (10, 20), (20, 30), (30, 40), (40, 50)])

    def test_seconds_that_lie_in_two_phases_belong_to_none(self):
        # (time, rate since the one before, nanoseconds up to now); the transaction is opened at 2.5.
        points = [(0, 0, 0), (1, 100, 1_000_000), (2, 100, 2_000_000), (3, 999, 9_000_000), (4, 50, 9_500_000)]
        closed, opened = cycles.phase(points, 0, 2.5), cycles.phase(points, 2.5, 4)
        self.assertEqual((closed.seconds, closed.rate, closed.cpu_us_each), (2, 100, 10))
        self.assertEqual((opened.seconds, opened.rate, opened.cpu_us_each), (1, 50, 10))

    def test_seconds_are_as_long_as_they_were(self):
        phase = cycles.phase([(0, 0, 0), (1.25, 80, 0), (2, 100, 0)], 0, 2)
        self.assertEqual(phase.count, 100 + 75)

    def test_bounds_of_a_median(self):
        for count in range(1, 40):
            found = cycles.typical(range(count))
            skipped = found.low
            self.assertEqual(found.high, count - 1 - skipped)
            self.assertEqual(found.median, statistics.median(range(count)))
            outside = [2 * sum(comb(count, below) for below in range(bound + 1)) / 2**count for bound in (skipped, skipped + 1)]
            if count >= 6:
                self.assertLessEqual(outside[0], 0.05, count)
                self.assertGreater(outside[1], 0.05, count)
            else:
                self.assertEqual(skipped, 0)


class ThreadTime(unittest.TestCase):
    def test_only_threads_of_the_name_count_and_only_while_they_run(self):
        names = pathlib.Path("/proc/self/task")
        go_on = threading.Event()

        def named(name, work):
            (names / str(threading.get_native_id()) / "comm").write_text(name)
            began = time.thread_time()
            while work and time.thread_time() - began < 0.2:
                pass
            go_on.wait(60)

        threads = [
            threading.Thread(target=named, args=arguments)
            for arguments in [("clearway session", True), ("clearway sender", True), ("replay", False), ("replay-1", False)]
        ]
        for thread in threads:
            thread.start()
        sessions, replay, workers = (
            thread_time.ThreadTime(os.getpid(), name) for name in ("clearway session", "replay*", "replay-*")
        )
        deadline = time.monotonic() + 60
        while sessions.nanoseconds() < 0.19e9 and time.monotonic() < deadline:
            time.sleep(0.01)
        replay.nanoseconds(), workers.nanoseconds()
        go_on.set()
        for thread in threads:
            thread.join()
        # What has ended still counts.
        self.assertTrue(0.19e9 <= sessions.nanoseconds() < 0.35e9, sessions.used)
        self.assertEqual((len(replay.used), len(workers.used)), (2, 1))
        self.assertLess(replay.nanoseconds(), 0.1e9)
