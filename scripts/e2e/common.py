"""One server for all tests of a class."""

import unittest

from support import servers, tools


class WithServer(unittest.TestCase):
    """Starts a server with an empty database before the first test, and stops it cleanly after the last."""

    configuration = 'shared_buffers = "64MB"\n'

    @classmethod
    def setUpClass(cls):
        cls.directory = servers.scratch("e2e")
        cls.server = servers.Clearway(tools.build(), cls.directory, cls.configuration).start()

    @classmethod
    def tearDownClass(cls):
        # A clean stop is itself under test: it must end with code 0.
        cls.server.stop()

    def assert_balanced(self):
        """pgbench's invariant."""
        sums = self.server.sql(
            "select sum(abalance) from pgbench_accounts; select sum(tbalance) from pgbench_tellers;"
            " select sum(bbalance) from pgbench_branches; select sum(delta) from pgbench_history"
        ).split("\n")
        self.assertEqual(len(sums), 4)
        self.assertEqual(len({value or "0" for value in sums}), 1, sums)
