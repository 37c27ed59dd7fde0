"""PostgreSQL's isolation specs, some of them: each permutation of steps gives on Clearway what it gives on PostgreSQL. The
short form of scripts/isolation-specs."""

import unittest

import isolation_specs
from support import regression_files

# Foreign keys, upserts, row locks, SERIALIZABLE, NOTIFY; those with few waits. With the number of their permutations.
SPECS = {
    "async-notify": 6,
    "fk-contention": 3,
    "fk-deadlock": 14,
    "index-only-scan": 6,
    "insert-conflict-do-nothing": 2,
    "insert-conflict-do-update": 2,
    "multixact-no-deadlock": 1,
    "nowait": 6,
    "propagate-lock-delete": 8,
    "read-only-anomaly-2": 2,
    "read-only-anomaly-3": 1,
    "read-write-unique": 2,
}


class IsolationSpecs(unittest.TestCase):
    def test_permutations_agree(self):
        folder = regression_files.folder() / "specs"
        ours, theirs = isolation_specs.started()
        try:
            for name, permutations in SPECS.items():
                outcome = isolation_specs.compare(folder / f"{name}.spec", ours, theirs)
                print(outcome.row(), flush=True)
                with self.subTest(spec=name):
                    self.assertEqual(outcome.different, [])
                    self.assertEqual(outcome.same, permutations, outcome.left_out)
            ours.stop()
        finally:
            ours.kill()
            theirs.kill()
