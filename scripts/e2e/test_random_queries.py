"""Random queries beside PostgreSQL: the short form of scripts/random-queries."""

import os

from peer import BesidePostgres
from random_queries import Comparison, shown

SEED = int(os.environ.get("SEED", "1"))


class RandomQueries(BesidePostgres):
    def test_joins_subqueries_aggregates_and_windows(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        comparison = Comparison(self.ours, self.theirs, SEED)
        for number in range(2000):
            comparison.ask(number)
        print(comparison.summary(), end=" ", flush=True)
        self.assertEqual([], [shown(*found) for found in comparison.different])
        self.assertLess(comparison.left_out + comparison.refused.total() + len(comparison.slow), 200, comparison.summary())
