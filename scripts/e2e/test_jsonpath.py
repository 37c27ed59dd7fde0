"""Paths of SQL/JSON against PostgreSQL: random documents and paths by each function, each answer compared as text."""

import os
import random

from peer import BesidePostgres

from support import random_paths

SEED = int(os.environ.get("SEED", "8"))
COUNT = int(os.environ.get("COUNT", "400"))


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Jsonpath(BesidePostgres):
    def setUp(self):
        print(f"SEED={SEED}", end=" ", flush=True)
        self.draw = random.Random(SEED)

    def arguments(self, between=","):
        document, path = random_paths.document(self.draw), random_paths.path(self.draw)
        return f"{quoted(document)}::jsonb {between} {quoted(path)}::jsonpath"

    def test_items(self):
        rest = f"{quoted(random_paths.VARIABLES)}::jsonb"
        self.assert_same([f"select jsonb_path_query({self.arguments()}, {rest})" for _ in range(4 * COUNT)])

    def test_silent_calls(self):
        rest = f"{quoted(random_paths.VARIABLES)}::jsonb, true"
        names = ["jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first", "jsonb_path_exists", "jsonb_path_match"]
        names += [name + "_tz" for name in names]
        self.assert_same([f"select {self.draw.choice(names)}({self.arguments()}, {rest})" for _ in range(2 * COUNT)])

    def test_operators(self):
        operators = self.draw.choices(["@?", "@@"], k=COUNT)
        self.assert_same([f"select {self.arguments(operator)}" for operator in operators])

    def test_existence(self):
        rest = f"{quoted(random_paths.VARIABLES)}::jsonb"
        names = ["jsonb_path_exists", "jsonb_path_match"]
        self.assert_same([f"select {self.draw.choice(names)}({self.arguments()}, {rest})" for _ in range(COUNT)])
