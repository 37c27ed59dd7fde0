"""Everyday tools show the same on the engine and on PostgreSQL 15, but for the checks that known_failures.txt lists with
their reasons. The short form of scripts/tool-checks."""

import unittest

import tool_checks
from support import checked_tools


class Tools(unittest.TestCase):
    def test_every_check_but_the_known_failures_agrees_with_postgres(self):
        both = tool_checks.Servers()
        known = tool_checks.known_failures()
        self.assertLessEqual(set(known), {tool.name for tool in checked_tools.TOOLS})
        try:
            for tool in checked_tools.TOOLS:
                outcome = both.run(tool)
                print(f"{outcome.tool} {len(outcome.checks) - len(outcome.failing())}/{len(outcome.checks)}", end=" ", flush=True)
                with self.subTest(tool=tool.name):
                    unexpected = tool_checks.unexpected(outcome, known)
                    self.assertFalse(unexpected, "\n".join(unexpected))
        finally:
            both.end()
