"""pg_receivewal and pg_basebackup, unmodified, against a server under load."""

import os
import pathlib
import signal
import subprocess
import tarfile
import time

from common import WithServer
from support import servers, tools

SEGMENT = 16 << 20


class Replication(WithServer):
    configuration = 'shared_buffers = "64MB"\ncheckpoint_timeout = "2s"\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run("pgbench", "-i", "-q", "-s", 1)

    def program(self, *command):
        """Starts a program against the server."""
        path = tools.find(command[0])
        process = subprocess.Popen(
            [path, *map(str, command[1:])],
            env=self.server.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def load(self, seconds):
        """pgbench in the background."""
        return self.program("pgbench", "-n", "-b", "tpcb-like", "-M", "prepared", "-c", 4, "-T", seconds)

    def finished(self, process, code=0):
        output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, code, output)
        return output

    def archive(self, name):
        directory = self.server.directory / name
        directory.mkdir()
        return directory

    def position(self):
        """Up to where the log is durable."""
        shown = self.server.run(
            "psql", f"{self.connection()} replication=true", "-Atc", "IDENTIFY_SYSTEM"
        ).stdout.split("|")[2]
        high, low = shown.split("/")
        return int(high, 16) << 32 | int(low, 16)

    def connection(self):
        return f"host={self.server.sockets} port={self.server.port} user=clearway"

    def received(self, directory):
        """The end of what an archive holds."""
        newest = max(path.name.removesuffix(".partial") for path in directory.iterdir())
        return (int(newest[8:16], 16) << 8 | int(newest[16:], 16)) * SEGMENT

    def await_slot(self, name, position):
        """Waits until the slot's follower has made durable what stands before `position`."""
        self.await_value(
            "select count(*) from pg_replication_slots where slot_name = '%s'" % name, "1"
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            shown = self.server.sql(f"select restart_lsn from pg_replication_slots where slot_name = '{name}'")
            if shown:
                high, low = shown.split("/")
                if int(high, 16) << 32 | int(low, 16) >= position:
                    return
            time.sleep(0.05)
        self.fail(f"slot {name} is at {shown}, not at {position:x}")

    def await_value(self, query, wanted):
        deadline = time.monotonic() + 20
        while self.server.sql(query) != wanted:
            self.assertLess(time.monotonic(), deadline, query)
            time.sleep(0.05)

    def assert_same_log(self, archive, start, end):
        """The archive agrees byte by byte with the server's log between two positions; both are there."""
        compared = 0
        for number in range(start // SEGMENT, (end - 1) // SEGMENT + 1):
            name = f"00000001{number >> 8:08X}{number & 0xFF:08X}"
            there = archive / name
            there = there if there.exists() else archive / f"{name}.partial"
            begin, stop = max(start - number * SEGMENT, 0), min(end - number * SEGMENT, SEGMENT)
            ours = (self.server.data / "pg_wal" / name).read_bytes()
            self.assertEqual(len(ours), SEGMENT)
            self.assertTrue(there.read_bytes()[begin:stop] == ours[begin:stop], name)
            compared += stop - begin
        self.assertEqual(compared, end - start)

    def test_a_receivewal_with_a_slot_under_load_killed_and_started_again(self):
        archive = self.archive("archive")
        self.server.run("pg_receivewal", "-D", archive, "--slot", "archive", "--create-slot")
        # One more keeps the server's log, to compare.
        keeper = self.connection() + " replication=true"
        self.server.run("psql", keeper, "-c", "CREATE_REPLICATION_SLOT keeper PHYSICAL RESERVE_WAL")
        start = self.server.sql("select restart_lsn from pg_replication_slots where slot_name = 'keeper'")
        start = int(start.split("/")[1], 16)
        load = self.load(6)
        for _ in range(2):
            receiver = self.program("pg_receivewal", "-D", archive, "--slot", "archive", "--synchronous")
            time.sleep(1.5)
            self.assertIsNone(receiver.poll())
            receiver.kill()
            receiver.communicate()
            self.await_value("select active from pg_replication_slots where slot_name = 'archive'", "f")
        receiver = self.program("pg_receivewal", "-D", archive, "--slot", "archive", "--synchronous")
        self.finished(load)
        end = self.position()
        self.await_slot("archive", end)
        self.assertEqual(
            self.server.sql("select state, application_name from pg_stat_replication"), "streaming|pg_receivewal"
        )
        receiver.send_signal(signal.SIGINT)
        self.finished(receiver)
        self.assert_same_log(archive, start, end)
        self.server.run("psql", keeper, "-c", "DROP_REPLICATION_SLOT keeper")
        self.server.run("pg_receivewal", "--slot", "archive", "--drop-slot")
        self.assertEqual(self.server.sql("select count(*) from pg_replication_slots"), "0")

    def test_b_receivewal_without_a_slot_ends_with_the_server(self):
        archive = self.archive("plain")
        receiver = self.program("pg_receivewal", "-D", archive, "--no-loop", "-v")
        self.await_value("select state from pg_stat_replication", "streaming")
        self.server.sql("create table last_words (id int primary key); insert into last_words values (1)")
        self.server.stop()
        output = receiver.communicate(timeout=60)[0]
        self.assertNotIn("panic", output)
        newest = max(self.archive_segments(archive))
        name = newest.name.removesuffix(".partial")
        ours, theirs = (self.server.data / "pg_wal" / name).read_bytes(), newest.read_bytes()
        # The last checkpoint is in it, and nothing of the server's log lies behind.
        self.assertTrue(theirs == ours, "the log to its end")
        self.server.start()

    def archive_segments(self, archive):
        return [path for path in archive.iterdir() if path.name[:8] == "00000001"]

    def assert_starts(self, data):
        """The copy is sound, and as good as what it was copied from."""
        checked = subprocess.run(
            [tools.build(), "check", "--data", data], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        directory = servers.scratch("copy")
        copy = servers.Clearway(tools.build(), directory, self.configuration)
        copy.data.parent.mkdir(parents=True, exist_ok=True)
        os.rename(data, copy.data)
        copy.start()
        original, self.server = self.server, copy
        try:
            self.assert_balanced()
            self.assertEqual(copy.sql("select count(*) from pgbench_accounts"), "100000")
            copy.run("pgbench", "-n", "-b", "tpcb-like", "-c", 2, "-t", 20)
            self.assert_balanced()
            return int(copy.sql("select count(*) from pgbench_history"))
        finally:
            self.server = original
            copy.stop()

    def backup(self, name, *options):
        """A backup under load; its directory."""
        target = self.server.directory / name
        before = int(self.server.sql("select count(*) from pgbench_history"))
        load = self.load(3)
        time.sleep(0.5)
        done = self.server.run("pg_basebackup", "-D", target, "-c", "fast", *options)
        self.finished(load)
        self.assertNotIn("error", done.stderr.lower())
        return target, before

    def test_c_basebackup_plain_with_streamed_log(self):
        target, before = self.backup("plain-stream", "-X", "stream", "-P", "-v")
        # The log's records are not PostgreSQL's, so they are not read.
        subprocess.run([tools.find("pg_verifybackup"), "-n", target], check=True, capture_output=True)
        self.assertGreater(self.assert_starts(target), before)

    def test_d_basebackup_plain_with_fetched_log(self):
        target, before = self.backup("plain-fetch", "-X", "fetch", "--no-manifest")
        self.assertGreater(self.assert_starts(target), before)

    def test_e_basebackup_as_tar(self):
        target, before = self.backup("tar", "-F", "t", "-X", "stream")
        data = pathlib.Path(target) / "data"
        data.mkdir()
        with tarfile.open(target / "base.tar") as archive:
            archive.extractall(data)
        with tarfile.open(target / "pg_wal.tar") as archive:
            archive.extractall(data / "pg_wal")
        self.assertGreater(self.assert_starts(data), before)

    def test_f_a_backup_without_its_log_is_refused(self):
        target, _ = self.backup("without", "-X", "none")
        checked = subprocess.run(
            [tools.build(), "check", "--data", target], capture_output=True, text=True, timeout=120
        )
        self.assertNotEqual(checked.returncode, 0)
        self.assertIn("position", checked.stdout + checked.stderr)
