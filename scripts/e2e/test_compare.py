"""The scripts that compare speed: that they run to their table, and what they say of wrong options."""

import json
import re
import subprocess
import unittest

from support import servers, tools


def compare(name, *arguments):
    return subprocess.run([tools.ROOT / "scripts" / name, *arguments], capture_output=True, text=True, timeout=600)


class Compare(unittest.TestCase):
    def test_a_short_comparison_ends_with_a_table(self):
        out = servers.scratch("compare-test") / "out.json"
        done = compare(
            "compare-postgres", "--smoke", "--spread", "--set", "log_flush=group", "--also", "session_scheduling=normal",
            "--postgres", "18,15", "--beside", "1", "--beside-syncs", "--out", str(out),
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        headings = done.stdout.split("\n\n")[-1].splitlines()[0].split()
        self.assertEqual(headings[:2], ["script", "clients"])
        points = json.loads(out.read_text())["points"]
        self.assertEqual(len(points), 3 * 5)
        self.assertIn("beside 1 busy loops and a program that syncs a file", done.stdout)
        self.assertEqual(
            {point["server"] for point in points},
            {"stub", "PostgreSQL 18", "PostgreSQL 15", "clearway", "clearway session_scheduling=normal"},
        )
        for point in points:
            self.assertEqual(len(point["tps"]), 1)
            self.assertGreater(point["tps"][0], 1, point)
            self.assertGreater(point["p99_ms"][0], 0, point)

    def test_a_short_tpcc_ends_with_a_table_and_consistent_tables(self):
        out = servers.scratch("tpcc-test") / "out.json"
        done = compare("tpcc", "--smoke", "--out", str(out))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the consistency conditions 1 to 4 hold on all", done.stdout)
        points = json.loads(out.read_text())["points"]
        self.assertEqual([point["server"] for point in points], ["postgres", "clearway"])
        for point in points:
            self.assertGreater(point["tps"][0], 1, point)

    def test_a_short_comparison_of_loading_ends_with_a_table(self):
        done = compare("compare-load", "--smoke")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = done.stdout.split("\n\n")[-1].splitlines()[1:]
        self.assertEqual(len(rows), 8 * 2)

    def test_a_short_comparison_of_a_writers_tail_ends_with_a_table(self):
        done = compare("compare-writer-tail", "--smoke", "--clients", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = done.stdout.split("\n\n")[-1].splitlines()[1:]
        self.assertEqual(len(rows), 2 * 2)
        for row in rows:
            self.assertGreater(float(row.split()[-1].replace(",", "")), 1, row)

    def test_short_curves_of_growth_end_with_tables(self):
        done = compare("compare-growth", "--smoke", "--curves", "rows,waiters,standby", "--postgres", "15")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        names = re.findall(r"^([a-z]+, [a-z ]+)\n[a-z ]+ +PostgreSQL 15, ", done.stdout, re.MULTILINE)
        self.assertEqual(names, [
            "rows, read", "rows, update", "waiters, update", "standby, update", "standby, lag", "standby, catching up",
        ], done.stdout)
        self.assertIn("clearway check found nothing", done.stdout)

    def test_a_short_comparison_of_a_hot_parent_ends_with_a_table(self):
        done = compare("compare-hot-parent", "--smoke", "--postgres", "15")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = done.stdout.split("\n\n")[-1].splitlines()[1:]
        self.assertEqual([row.split()[0] for row in rows], [name for name in ("hot", "spread", "counted") for _ in range(2)])
        for row in rows[1::2]:
            self.assertRegex(row, r"\d\.\d\d×")

    def test_a_short_flood_of_unfinished_logins_ends_with_a_table(self):
        done = compare("unfinished-logins", "--connections", "700", "--rounds", "1", "--duration", "0.2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = done.stdout.split("\n\n")[-1].splitlines()[1:]
        self.assertEqual([row.split()[0] for row in rows], ["silent", "tls", "password"])
        for row in rows:
            # As many as the sessions that may be there, the 64 beside them, and those that are about to end.
            self.assertLess(int(row.split()[-1]), 2 * 564 + 50, row)

    def test_a_wrong_option_is_named(self):
        wrong = [
            (["--clients", "0"], "'0' is not a whole number"),
            (["--scripts", "nonsense"], "there is no 'nonsense'; there are "),
            (["--set", "log_flush"], "'log_flush' is not of the form NAME=VALUE"),
            (["--buffers", "much"], "'much' is not an amount such as 256MB"),
        ]
        for name in ("compare-postgres", "compare-writer-tail", "tpcc", "compare-mariadb"):
            for arguments, said in wrong:
                with self.subTest(name=name, arguments=arguments):
                    done = compare(name, *arguments)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(said, done.stderr)

    def test_a_mechanism_that_does_not_exist_is_named(self):
        tools.need("initdb", "postgres", "setpriv")
        done = compare("compare-postgres", "--smoke", "--set", "log_flusch=group")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did you mean log_flush?", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
