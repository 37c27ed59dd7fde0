"""Random queries beside PostgreSQL: the short form of scripts/random-queries."""

import os

from peer import BesidePostgres
from random_queries import Comparison, prepare, shown

SEED = int(os.environ.get("SEED", "1"))


class RandomQueries(BesidePostgres):
    def test_joins_subqueries_aggregates_and_windows(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        prepare((self.ours, self.theirs), SEED)
        comparison = Comparison(self.ours, self.theirs, SEED)
        for number in range(2000):
            comparison.ask(number)
        found = comparison.found
        print(found.summary(), end=" ", flush=True)
        self.assertEqual([], [shown(*one) for one in found.different])
        self.assertLess(found.left_out + found.refused.total() + len(found.slow) + found.failed, 200, found.summary())
