"""A standby behind a link that changes what it carries, while its primary would recycle the log that has to be sent again."""

import time
import unittest

from support import link, servers, tools, views

# A reply of which a length was flipped is waited for no longer than that.
CONFIGURATION = 'max_wal_size = "32MB"\nautovacuum = false\nwal_receiver_timeout = "2s"\n'
ROWS = 30_000


class DamagedLink(unittest.TestCase):
    def setUp(self):
        self.directory = servers.scratch("damaged-link")
        (self.directory / "primary").mkdir()
        (self.directory / "standby").mkdir()
        self.primary = servers.Clearway(tools.build(), self.directory / "primary", CONFIGURATION).start()
        self.addCleanup(self.primary.kill)
        self.primary.sql("create table mark (moved int); insert into mark values (0);"
                         " create table t (id int primary key, v text)")
        self.link = link.Link(("127.0.0.1", self.primary.port), seed=1)
        self.addCleanup(self.link.close)
        self.standby = servers.Standby(
            tools.build(), self.directory / "standby", self.primary, CONFIGURATION, ["--slot", "standby", "--create-slot"],
            port_of_primary=self.link.port,
        )
        self.addCleanup(self.standby.kill)
        self.standby.start()
        servers.await_replay(self.primary, self.standby)

    def fill(self, round_number):
        first = round_number * ROWS
        self.primary.sql(
            f"insert into t select g, repeat('v', 300) from generate_series({first}, {first + ROWS - 1}) g"
        )

    def rows(self, server):
        return server.sql("select count(*), sum(id) from t")

    def test_a_flipped_bit_heals_though_the_primary_recycles_its_log(self):
        """Each stream of log has a bit flipped, until the primary has logged several times what it would keep."""
        before = self.standby.sql("select pg_last_wal_replay_lsn()")
        for number in range(6):
            self.link.disturb("flip")
            self.fill(number)
            self.primary.sql("checkpoint")
            views.check_slot(self.primary, self.standby)
        self.assertGreaterEqual(self.link.done["flip"], 3)
        self.primary.sql("checkpoint")
        status = self.primary.sql("select wal_status from pg_replication_slots where slot_name = 'standby'")
        self.assertEqual(status, "reserved")
        self.link.heal()
        views.check_both(self.primary, self.standby, synchronous=False)
        self.assertEqual(self.rows(self.standby), self.rows(self.primary))
        # The primary goes on to recycle, now that the standby has the log.
        kept = self.primary.sql("select restart_lsn from pg_replication_slots")
        self.assertGreater(servers.position(kept), servers.position(before))
        self.assertIn("sends no whole log record at", self.standby.last_log(200))

    def test_nothing_passes_and_the_slot_waits(self):
        """Each piece of the stream has a bit flipped. The slot stays, the standby says that it waits, and a restart of it goes
        on from the same record."""
        replayed = self.standby.sql("select pg_last_wal_replay_lsn()")
        self.link.due.extend(["flip"] * 100_000)
        for number in range(4):
            self.fill(number)
            self.primary.sql("checkpoint")
        kept = self.primary.sql("select restart_lsn from pg_replication_slots where slot_name = 'standby'")
        # What was flipped may be behind some whole records.
        self.assertLessEqual(
            servers.position(kept), servers.position(self.standby.sql("select pg_last_wal_receive_lsn()"))
        )
        self.assertNotEqual(self.rows(self.standby), self.rows(self.primary))
        views.await_shown(self.standby, "select status from pg_stat_wal_receiver", "waiting")
        views.await_shown(self.standby, views.THREADS, "startup|Timeout|RecoveryRetrieveRetryInterval")
        self.assertGreaterEqual(
            servers.position(self.standby.sql("select pg_last_wal_replay_lsn()")), servers.position(replayed)
        )
        self.standby.kill()
        self.primary.sql("checkpoint")
        self.link.heal()
        began = time.monotonic()
        self.standby.start()
        views.check_both(self.primary, self.standby, synchronous=False)
        self.assertEqual(self.rows(self.standby), self.rows(self.primary))
        self.assertLess(time.monotonic() - began, 60)
        self.standby.stop()
        self.primary.stop()
        for server in (self.primary, self.standby):
            server.run(tools.build(), "check", "--data", server.data)


if __name__ == "__main__":
    unittest.main()
