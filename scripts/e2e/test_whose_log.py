"""Who may follow whom, and what a directory is when it is started again: promotions, copies, and damage to copies."""

import subprocess
import time
import unittest

from support import flipping_relay, servers, tools

CONFIGURATION = 'shared_buffers = "16MB"\nmax_wal_size = "64MB"\nwal_keep_size = "256MB"\nautovacuum = false\n'


def files(directory):
    """Names and contents, except of what an open server writes beside its database."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*")) if path.is_file()
    }


class WhoseLog(unittest.TestCase):
    def setUp(self):
        self.directory = servers.scratch("whose-log")
        self.primary = servers.Clearway(tools.build(), self.place("primary"), CONFIGURATION).start()
        self.addCleanup(self.primary.kill)
        self.primary.sql("create table t (id int primary key, who text);"
                         " insert into t select g, 'common' from generate_series(1, 1000) g")

    def place(self, name):
        directory = self.directory / name
        directory.mkdir()
        return directory

    def standby(self, name, of=None, configuration=CONFIGURATION, **more):
        made = servers.Standby(tools.build(), self.place(name), of or self.primary, configuration, application=name, **more)
        self.addCleanup(made.kill)
        return made

    def says(self, server, expected_code=1, options=()):
        """What a start says that must end by itself."""
        done = subprocess.run([*server.command(), *options], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, expected_code, done.stderr)
        return done.stderr

    def rows(self, server):
        return server.sql("select who, count(*) from t group by who order by who")

    def write(self, server, first, count):
        for number in range(first, first + count):
            server.sql(f"insert into t values ({number}, '{server.directory.name}')")

    def basebackup(self, name, *options):
        copy = self.standby(name)
        self.primary.run("pg_basebackup", "-D", copy.data, "-c", "fast", "-h", "127.0.0.1", *options)
        return copy

    def refused(self, server, statement):
        done = server.run("psql", "-XAtq", "-v", "VERBOSITY=verbose", "-c", statement, check=False)
        self.assertNotEqual(done.returncode, 0, statement)
        return done.stderr

    def test_siblings_that_are_promoted_at_once_do_not_follow_each_other(self):
        alice, bob = self.standby("alice").start(), self.standby("bob").start()
        for one in (alice, bob):
            servers.await_replay(self.primary, one)
        self.primary.kill()
        for one in (alice, bob):
            self.assertEqual(one.sql("select pg_promote()"), "t")
        # The same statements, so that the logs have records of the same lengths at the same positions.
        self.write(alice, 3000, 10)
        self.write(bob, 3000, 10)
        alice.kill()
        self.write(bob, 4000, 20)
        before = files(alice.data)
        alice.primary_port = bob.port
        said = self.says(alice)
        self.assertIn("their histories part at 0/", said)
        self.assertIn("base backup", said)
        self.assertEqual(files(alice.data) == before, True, "something was written before the histories were compared")
        # Each is what it was.
        served = alice.serve().start()
        self.addCleanup(served.kill)
        self.assertEqual(self.rows(served), "alice|10\ncommon|1000")
        self.assertEqual(self.rows(bob), "bob|30\ncommon|1000")
        served.stop()
        bob.stop()

    def test_a_copy_that_was_served_does_not_follow_the_original(self):
        copy = self.basebackup("copy")
        served = copy.serve().start()
        self.addCleanup(served.kill)
        self.write(served, 3000, 10)
        served.kill()
        self.write(self.primary, 3000, 40)
        before = files(copy.data)
        said = self.says(copy)
        self.assertIn("the two logs part at 0/", said)
        self.assertEqual(files(copy.data) == before, True, "something was written before the logs were compared")
        served.start()
        self.assertEqual(self.rows(served), "common|1000\ncopy|10")
        served.stop()

    def test_a_copy_that_asks_to_be_a_standby_becomes_one(self):
        copy = self.basebackup("copy", "-R")
        served = copy.serve()
        said = self.says(served)
        self.assertIn("clearway standby --data", said)
        signal = copy.data / "standby.signal"
        self.assertTrue(signal.exists())
        # As it says: without a server to follow, which is in postgresql.auto.conf.
        command = copy.command()
        at = command.index("--from")
        copy.command = lambda: command[:at] + command[at + 2:]
        copy.start()
        self.assertFalse(signal.exists())
        self.write(self.primary, 3000, 5)
        servers.await_replay(self.primary, copy)
        self.assertEqual(self.rows(copy), self.rows(self.primary))
        copy.stop()

    def test_the_same_command_starts_a_promoted_standby_as_a_primary(self):
        standby = self.standby("standby", options=["--slot", "one", "--create-slot"]).start()
        servers.await_replay(self.primary, standby)
        self.assertEqual(standby.sql("select pg_promote()"), "t")
        self.write(standby, 3000, 1)
        for primary_is_there in (True, False):
            if not primary_is_there:
                self.primary.kill()
            standby.kill()
            standby.start()
            self.assertEqual(standby.sql("select pg_is_in_recovery()"), "f")
            self.assertIn("is a primary on timeline 2", standby.last_log())
            self.write(standby, 4000 + primary_is_there, 1)
        standby.stop()
        self.primary.start()
        self.assertIn("this standby's log is on timeline 2", self.says(standby, options=["--rejoin"]))

    def test_a_start_does_not_need_the_primary(self):
        standby = self.standby("standby", options=["--slot", "one", "--create-slot"]).start()
        servers.await_replay(self.primary, standby)
        standby.kill()
        self.primary.run(
            "psql", f"host={self.primary.sockets} port={self.primary.port} user=clearway replication=true",
            "-c", "DROP_REPLICATION_SLOT one",
        )
        self.primary.kill()
        standby.start()
        self.assertEqual(self.rows(standby), "common|1000")
        # The slot is made as soon as the primary is there.
        self.primary.start()
        self.write(self.primary, 3000, 1)
        servers.await_replay(self.primary, standby)
        self.assertEqual(self.primary.sql("select slot_name, active from pg_replication_slots"), "one|t")
        standby.stop()

    def test_a_standby_that_has_diverged_refuses_to_be_read(self):
        ahead, behind = self.standby("ahead").start(), self.standby("behind").start()
        for one in (ahead, behind):
            servers.await_replay(self.primary, one)
        behind.kill()
        self.write(self.primary, 3000, 5)
        servers.await_replay(self.primary, ahead)
        self.primary.kill()
        behind.start()
        self.assertEqual(behind.sql("select pg_promote()"), "t")
        self.write(behind, 4000, 5)
        ahead.kill()
        ahead.primary_port = behind.port
        ahead.start()
        deadline = time.monotonic() + 60
        while ahead.sql("select status from pg_stat_wal_receiver") != "diverged":
            self.assertLess(time.monotonic(), deadline, ahead.last_log())
            time.sleep(0.05)
        self.assertIn("55000", self.refused(ahead, "select count(*) from t"))
        # It knows it from its first moment on, also when there is no server that could say so.
        ahead.kill()
        behind.kill()
        ahead.start()
        self.assertIn("55000", self.refused(ahead, "select count(*) from t"))
        ahead.kill()
        ahead.configuration.write_text(CONFIGURATION + "diverged_standby_reads = true\n")
        ahead.start()
        self.assertEqual(self.rows(ahead), "common|1000\nprimary|5")
        ahead.stop()

    def test_a_copy_that_is_damaged_on_the_way_is_refused(self):
        relay = flipping_relay.FlippingRelay(self.primary.port)
        self.addCleanup(relay.listener.close)
        # Behind the first answers, in the tables' files; each flip in another page.
        for number, at in enumerate((20_000, 45_000, 60_000)):
            standby = self.standby(f"standby{number}", port_of_primary=relay.port)
            relay.at = at
            said = self.says(standby)
            self.assertFalse((standby.data / "control").exists(), said)
        standby.start()
        self.assertEqual(self.rows(standby), "common|1000")
        standby.stop()

    def test_a_copy_that_is_damaged_on_disk_is_refused(self):
        copy = self.basebackup("copy")
        largest = max((copy.data / "base").iterdir(), key=lambda path: path.stat().st_size)
        content = bytearray(largest.read_bytes())
        content[len(content) // 2] ^= 1
        largest.write_bytes(content)
        self.assertIn(f'"base/{largest.name}" is damaged', self.says(copy))
        self.assertIn(f'"base/{largest.name}" is damaged', self.says(copy.serve()))
        content[len(content) // 2] ^= 1
        largest.write_bytes(content)
        copy.start()
        self.assertEqual(self.rows(copy), "common|1000")
        copy.stop()


if __name__ == "__main__":
    unittest.main()
