"""Everyday tools show the same on the engine and on PostgreSQL 15, but for the checks that known_failures.txt lists with
their reasons: a part of scripts/tool-checks, which takes minutes and installs more than a gigabyte. Each commit runs the
tools that most others are made of, and one of the rest in turn."""

import subprocess
import unittest

import tool_checks
from support import checked_tools, tools

EACH_TIME = {"psql", "client_programs", "psycopg", "sqlalchemy", "django"}


def in_turn():
    """The tools of this commit."""
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=tools.ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    rest = [tool for tool in checked_tools.TOOLS if tool.name not in EACH_TIME]
    turn = rest[int(counted or 0) % len(rest)]
    return [tool for tool in checked_tools.TOOLS if tool.name in EACH_TIME or tool is turn]


class Tools(unittest.TestCase):
    def test_every_check_but_the_known_failures_agrees_with_postgres(self):
        names = {tool.name for tool in checked_tools.TOOLS}
        self.assertLessEqual(EACH_TIME, names)
        known = tool_checks.known_failures()
        self.assertLessEqual(set(known), names)
        both = tool_checks.Servers()
        try:
            for tool in in_turn():
                outcome = both.run(tool)
                print(f"{outcome.tool} {len(outcome.checks) - len(outcome.failing())}/{len(outcome.checks)}", end=" ", flush=True)
                with self.subTest(tool=tool.name):
                    unexpected = tool_checks.unexpected(outcome, known)
                    self.assertFalse(unexpected, "\n".join(unexpected))
        finally:
            both.end()
