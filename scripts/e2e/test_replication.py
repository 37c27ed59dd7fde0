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

# Values too long for a page, each of which says itself what it is: a backup is taken while they change.
LETTERS = """
    create table letters (id int primary key, body text);
    alter table letters alter body set storage external;
    insert into letters select g, repeat(md5(g::text), 700) from generate_series(1, 40) g;
"""
WRITE_A_LETTER = "\\set id random(1, 40)\nupdate letters set body = repeat(md5(random()::text), 700) where id = :id;\n"
WHOLE_LETTERS = "select count(*) filter (where body = repeat(left(body, 32), 700)), count(*) from letters"


class Replication(WithServer):
    configuration = 'shared_buffers = "64MB"\ncheckpoint_timeout = "2s"\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run("pgbench", "-i", "-q", "-s", 1)
        cls.server.sql(LETTERS)

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
        letters = self.server.directory / "letters.sql"
        letters.write_text(WRITE_A_LETTER)
        mixed = ["-b", "tpcb-like@4", "-f", f"{letters}@1"]
        return self.program("pgbench", "-n", *mixed, "-M", "prepared", "-c", 4, "-T", seconds)

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
        deadline = time.monotonic() + 60
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
        load = None
        for _ in range(2):
            receiver = self.program("pg_receivewal", "-D", archive, "--slot", "archive", "--synchronous")
            if not load:
                # The slot has no position yet: the archive begins with the segment of this moment.
                self.await_value("select active from pg_replication_slots where slot_name = 'archive'", "t")
                start = self.position()
                load = self.load(6)
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
            self.assertEqual(copy.sql(WHOLE_LETTERS), "40|40")
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
        data.mkdir(mode=0o700)
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

    # Recovery with an archive, and timelines.

    def recover(self, data, archive, *options):
        """Runs `clearway recover`."""
        return subprocess.run(
            [tools.build(), "recover", "--data", data, "--archive", archive, *map(str, options)],
            capture_output=True,
            text=True,
            timeout=120,
        )

    def archived_story(self, name):
        """A backup, and an archive of what came behind it: two rows of `story`, with the position between them."""
        archive = self.archive(name)
        self.server.run("pg_receivewal", "-D", archive, "--slot", name, "--create-slot")
        receiver = self.program("pg_receivewal", "-D", archive, "--slot", name, "--synchronous")
        self.await_value(f"select active from pg_replication_slots where slot_name = '{name}'", "t")
        backup = self.server.directory / f"{name}-backup"
        self.server.sql("drop table if exists story; create table story (id int primary key, what text)")
        self.server.run("pg_basebackup", "-D", backup, "-c", "fast")
        self.server.run("pgbench", "-n", "-b", "tpcb-like", "-c", 2, "-t", 50)
        self.server.sql("insert into story values (1, 'kept')")
        between = self.position()
        time.sleep(0.1)
        moment = time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(time.time() + 1))
        time.sleep(1.5)
        self.server.sql("insert into story values (2, 'a mistake')")
        self.server.run("pgbench", "-n", "-b", "tpcb-like", "-c", 2, "-t", 50)
        self.await_slot(name, self.position())
        receiver.send_signal(signal.SIGINT)
        self.finished(receiver)
        self.server.run("pg_receivewal", "--slot", name, "--drop-slot")
        return backup, archive, between, moment

    def opened(self, data):
        """A server on a directory."""
        directory = servers.scratch("recovered")
        copy = servers.Clearway(tools.build(), directory, self.configuration)
        copy.data.parent.mkdir(parents=True, exist_ok=True)
        os.rename(data, copy.data)
        copy.start()
        self.addCleanup(copy.stop)
        return copy

    def copied(self, backup, name):
        copy = backup.parent / name
        subprocess.run(["cp", "-a", backup, copy], check=True)
        return copy

    def test_g_recovery_to_a_position_a_time_and_the_end(self):
        backup, archive, between, moment = self.archived_story("points")
        for number, (point, rows) in enumerate(
            [
                (f"lsn:{between >> 32:X}/{between & 0xFFFFFFFF:X}", "1"),
                (moment, "1"),
                (None, "2"),
            ]
        ):
            with self.subTest(point=point):
                data = self.copied(backup, f"points-{number}")
                recovered = self.recover(data, archive, *(["--recover-to", point] if point else []))
                self.assertEqual(recovered.returncode, 0, recovered.stderr)
                self.assertIn("timeline 2 begins there", recovered.stdout)
                checked = subprocess.run([tools.build(), "check", "--data", data], capture_output=True, text=True)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                copy = self.opened(data)
                self.assertEqual(copy.sql("select count(*) from story"), rows)
                original, self.server = self.server, copy
                try:
                    self.assert_balanced()
                finally:
                    self.server = original
        data = self.copied(backup, "points-gap")
        newest = max(path.name for path in archive.iterdir())
        os.rename(archive / newest, archive / f"{newest[:16]}{int(newest[16:24], 16) + 1:08X}.partial")
        refused = self.recover(data, archive)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn(f"lacks log segment {newest[:24]}", refused.stderr)

    def test_h_receivewal_follows_a_server_onto_its_new_timeline(self):
        """The archive of a server that is gone goes on with that of the copy that took its place."""
        backup, archive, _, _ = self.archived_story("follow")
        data = self.copied(backup, "follow-copy")
        recovered = self.recover(data, archive)
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        copy = self.opened(data)
        original, self.server = self.server, copy
        try:
            copy.sql("insert into story values (3, 'on timeline 2')")
            receiver = self.program("pg_receivewal", "-D", archive, "--synchronous", "-v")
            self.await_value("select state from pg_stat_replication", "streaming")
            end = self.position()
            deadline = time.monotonic() + 20
            while self.server.sql("select flush_lsn from pg_stat_replication") != f"{end >> 32:X}/{end & 0xFFFFFFFF:X}":
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            receiver.send_signal(signal.SIGINT)
            output = self.finished(receiver)
            self.assertIn("switched to timeline 2", output)
            self.assertTrue((archive / "00000002.history").exists())
            number = end // SEGMENT
            name = f"00000002{number >> 8:08X}{number & 0xFF:08X}"
            ours = (copy.data / "pg_wal" / name).read_bytes()[: end % SEGMENT]
            self.assertTrue((archive / f"{name}.partial").read_bytes()[: end % SEGMENT] == ours)
            # A backup of the new timeline, with either way of getting its log.
            for method in ("stream", "fetch"):
                target = self.server.directory / f"on-2-{method}"
                self.server.run("pg_basebackup", "-D", target, "-c", "fast", "-X", method)
                subprocess.run([tools.find("pg_verifybackup"), "-n", target], check=True, capture_output=True)
                checked = subprocess.run([tools.build(), "check", "--data", target], capture_output=True, text=True)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        finally:
            self.server = original
        # The first backup again, through the switch.
        data = self.copied(backup, "follow-again")
        recovered = self.recover(data, archive)
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        self.assertIn("timeline 3 begins there", recovered.stdout)
        self.assertEqual(self.opened(data).sql("select count(*) from story"), "3")
