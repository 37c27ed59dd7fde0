"""Drivers and mappers as their users have them, each in a program of its own in `drivers`: connecting with all that they
ask at the start, errors when a statement is prepared, prepared statements, transactions, types. A program that waits
for ever is ended, and its test fails."""

import subprocess

from common import WithServer
from support import drivers

# Each takes about a second.
SECONDS = 60


class Drivers(WithServer):
    def run_program(self, *command):
        """Runs a driver's program, which says `done` at its end."""
        try:
            done = subprocess.run(
                [str(part) for part in command], env=self.server.environment(), capture_output=True, text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            self.fail(f"no end after {SECONDS} s; it said:\n{(error.stdout or b'').decode()}")
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr[-4000:]}")
        self.assertEqual(done.stdout.splitlines()[-1:], ["done"])

    def run_python(self, name):
        self.run_program(drivers.python(), drivers.HERE / name)

    def run_node(self, name):
        node, directory = drivers.node()
        self.run_program(node, directory / name)

    def test_asyncpg(self):
        self.run_python("asyncpg_driver.py")

    def test_pg8000(self):
        self.run_python("pg8000_driver.py")

    def test_sqlalchemy(self):
        self.run_python("sqlalchemy_mapper.py")

    def test_node_postgres(self):
        self.run_node("pg.mjs")

    def test_postgres_js(self):
        self.run_node("postgres.mjs")

    def test_sequelize(self):
        self.run_node("sequelize.mjs")

    def test_typeorm(self):
        self.run_node("typeorm.mjs")
