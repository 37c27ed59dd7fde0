"""Django's and SQLAlchemy's own tests: as many pass as passed before, and none fails but those that are listed with the reason.
The short form of scripts/driver-suites."""

import unittest

import driver_suites
from support.suite_units import Unit

# The tests that pass at least.
FLOORS = {
    Unit("django", "django/transactions", "transactions"): 84,
    Unit("django", "django/get_or_create", "get_or_create"): 48,
    Unit("django", "django/select_for_update", "select_for_update"): 33,
    Unit("sqlalchemy", "sqlalchemy/on_conflict", "test/dialect/postgresql/test_on_conflict.py"): 32,
    Unit("sqlalchemy", "sqlalchemy/transaction", "test/engine/test_transaction.py"): 96,
}

# What fails, by a part of its name.
KNOWN = {
    "test_on_conflict_do_update_constraint_can_be_index": "a parameter in the predicate of ON CONFLICT matches no partial index",
    "test_on_conflict_do_update_exotic_targets_six": "a parameter in the predicate of ON CONFLICT matches no partial index",
    "twophase": "PREPARE TRANSACTION is not supported",
    "two_phase": "PREPARE TRANSACTION is not supported",
}


class DriverSuites(unittest.TestCase):
    def test_as_many_pass_as_before(self):
        both = driver_suites.Servers()
        try:
            for unit, floor in FLOORS.items():
                outcome = both.run(unit)
                print(driver_suites.row(unit.name, outcome.passed(), outcome.counted), flush=True)
                with self.subTest(unit=unit.name):
                    self.assertGreaterEqual(outcome.passed(), floor)
                    unknown = [one for one in outcome.failures if not any(part in one.test for part in KNOWN)]
                    self.assertFalse(unknown, unknown)
        finally:
            both.end()
