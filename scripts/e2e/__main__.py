"""End-to-end tests: unmodified PostgreSQL 15 clients, drivers, mappers and sysbench against a real server process,
and values compared with a PostgreSQL that runs beside it.

    scripts/e2e/run              # all of them
    scripts/e2e/run pgbench      # those whose name contains a word
"""

import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from support import servers, tools  # noqa: E402


class Timed(unittest.TextTestResult):
    """Says how long each test took."""

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        super(unittest.TextTestResult, self).addSuccess(test)
        self.stream.writeln(f"ok, {time.monotonic() - self.began:.1f} s")
        self.stream.flush()


class Suite(unittest.TestSuite):
    """Removes the directories of a class behind its last test."""

    def _tearDownPreviousClass(self, test, result):
        before = getattr(result, "_previousTestClass", None)
        super()._tearDownPreviousClass(test, result)
        if before is not None and before != test.__class__:
            servers.remove_scratch()


def cases(suite, word):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from cases(part, word)
        elif word in part.id():
            yield part


def main():
    tools.need("psql", "pgbench", "pg_dump", "sysbench")
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    found = unittest.defaultTestLoader.discover(str(HERE), pattern="test_*.py")
    suite = Suite(cases(found, word))
    if suite.countTestCases() == 0:
        sys.exit(f"no end-to-end test is called anything with {word!r}")
    outcome = unittest.TextTestRunner(verbosity=2, resultclass=Timed).run(suite)
    # A test that was skipped has not shown anything.
    sys.exit(0 if outcome.wasSuccessful() and not outcome.skipped else 1)


main()
