"""PostgreSQL's regression files: at least as many statements have its answer as had it before, and none differs without
an error. The short form of scripts/regress."""

import unittest
from concurrent.futures import ThreadPoolExecutor

import regress
from support import regression_files, tools

# The statements that have PostgreSQL's answer, and those that differ without an error: docs/log.md says why, mostly because an
# earlier one is refused.
FLOORS = {
    "select": (67, 0),
    "join": (442, 0),
    "strings": (438, 0),
    "union": (130, 0),
    "aggregates": (338, 0),
    "with": (253, 0),
    "window": (228, 0),
    "arrays": (418, 0),
    "returning": (59, 0),
    "inet": (95, 0),
    "macaddr": (30, 0),
    "jsonb": (924, 0),
    "interval": (336, 0),
    "date": (264, 0),
    "timestamp": (149, 0),
    "timestamptz": (336, 0),
    "timetz": (50, 0),
    "horology": (268, 0),
    "enum": (159, 0),
    "domain": (354, 1),
    # Before PostgreSQL 15.20 a row type that a constraint names may change: an answer that is another one than ours.
    "alter_table": (1022, 4),
    "create_index": (342, 4),
    "generated": (249, 0),
    "copy2": (135, 0),
    "copy": (39, 0),
    "constraints": (223, 3),
    "sequence": (257, 0),
    "identity": (186, 0),
    "temp": (98, 0),
}


class RegressionFiles(unittest.TestCase):
    def test_as_many_statements_agree_as_before(self):
        tools.need("initdb", "postgres")
        folder = regression_files.folder() / "sql"
        binary = tools.build()

        def compared(name):
            return regress.compare(folder / f"{name}.sql", folder / "test_setup.sql", binary=binary)

        # A statement waits for one server after the other: a second file has the CPUs meanwhile.
        with ThreadPoolExecutor(2) as files:
            for outcome in files.map(compared, FLOORS):
                print(outcome.row(), flush=True)
                same, differ = FLOORS[outcome.name]
                with self.subTest(file=outcome.name):
                    self.assertGreaterEqual(outcome.same, same, outcome.reasons)
                    self.assertLessEqual(outcome.kinds["differ"], differ, outcome.different)
