"""`clearway standby` beside its primary, with PostgreSQL's clients on both."""

import subprocess
import time

from common import WithServer
from support import servers, tools


class Standby(WithServer):
    # wal_keep_size: a standby without a slot is killed under load, and a checkpoint before it is back must not remove its log.
    configuration = (
        'shared_buffers = "32MB"\ncheckpoint_timeout = "2s"\nmax_wal_size = "64MB"\nwal_keep_size = "512MB"\n'
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run("pgbench", "-i", "-q", "-s", 1)

    def standby(self, name, options=(), configuration=None, **more):
        """A standby of the class's server, in a directory that is not there."""
        directory = self.directory / name
        directory.mkdir()
        made = servers.Standby(
            tools.build(), directory, self.server, configuration or self.configuration, options, **more
        )
        self.addCleanup(made.kill)
        return made

    def load(self, server, seconds, script="tpcb-like", clients=4):
        process = subprocess.Popen(
            [tools.find("pgbench"), "-n", "-b", script, "-M", "prepared", "-c", str(clients), "-T", str(seconds)],
            env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def finished(self, process):
        output = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, 0, output)
        return output

    def refused(self, server, statement):
        """The error that a statement gets."""
        done = server.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-c", statement, check=False)
        self.assertNotEqual(done.returncode, 0, statement)
        return done.stderr

    def assert_same_tables(self, one, other):
        for table, key in [
            ("pgbench_accounts", "aid"), ("pgbench_tellers", "tid"), ("pgbench_branches", "bid"),
            ("pgbench_history", "mtime, aid, delta, tid"),
        ]:
            rows = f"select * from {table} order by {key}"
            self.assertEqual(one.sql(rows) == other.sql(rows), True, f"{table} differs")

    def assert_sums_agree(self, server):
        """In one snapshot, the balances are those of the history."""
        sums = server.sql(
            "begin isolation level repeatable read; select sum(abalance) from pgbench_accounts;"
            " select sum(tbalance) from pgbench_tellers; select sum(bbalance) from pgbench_branches;"
            " select sum(delta) from pgbench_history; commit"
        ).split("\n")
        self.assertEqual(len({value or "0" for value in sums}), 1, sums)

    def test_a_follows_under_load_and_reads_meanwhile(self):
        standby = self.standby("follows").start()
        self.assertEqual(standby.sql("select pg_is_in_recovery()"), "t")
        self.assertEqual(self.server.sql("select pg_is_in_recovery()"), "f")
        load = self.load(self.server, 6)
        reads = self.load(standby, 5, "select-only", 2)
        looks = 0
        while load.poll() is None:
            self.assert_sums_agree(standby)
            looks += 1
        self.assertGreater(looks, 3)
        self.finished(reads)
        self.finished(load)
        servers.await_replay(self.server, standby)
        self.assert_same_tables(self.server, standby)
        self.assertEqual(
            self.server.sql("select state, application_name from pg_stat_replication"), "streaming|standby"
        )
        self.assertEqual(standby.sql("select status from pg_stat_wal_receiver"), "streaming")
        for statement, sqlstate in [
            ("insert into pgbench_branches values (9, 0)", "25006"),
            ("update pgbench_branches set bbalance = 0", "25006"),
            ("delete from pgbench_history", "25006"),
            ("create table t (id int)", "25006"),
            ("drop table pgbench_history", "25006"),
            ("truncate pgbench_history", "25006"),
            ("vacuum pgbench_history", "25006"),
            ("select * from pgbench_branches for update", "25006"),
        ]:
            self.assertIn(sqlstate, self.refused(standby, statement), statement)
        standby.stop()

    def test_b_definitions_arrive(self):
        standby = self.standby("definitions").start()
        self.server.sql(
            "create table notes (id serial primary key, text text); insert into notes (text) values ('one'), ('two')"
        )
        servers.await_replay(self.server, standby)
        self.assertEqual(standby.sql("select id, text from notes order by id"), "1|one\n2|two")
        self.server.sql(
            "create index notes_text on notes (text); create table bin (id int);"
            " insert into bin values (1); truncate bin"
        )
        servers.await_replay(self.server, standby)
        self.assertEqual(standby.sql("select count(*) from bin"), "0")
        self.assertIn("notes_text", standby.sql("select indexname from pg_indexes where tablename = 'notes'"))
        self.server.sql("drop table notes; drop table bin")
        servers.await_replay(self.server, standby)
        self.assertIn("42P01", self.refused(standby, "select * from notes"))
        standby.stop()

    def test_c_goes_on_after_each_has_been_away(self):
        standby = self.standby("away", ["--slot", "away", "--create-slot"]).start()
        for _ in range(2):
            standby.kill()
            self.finished(self.load(self.server, 1))
            standby.start()
            servers.await_replay(self.server, standby)
            self.assert_same_tables(self.server, standby)
        self.server.kill()
        type(self).server = self.server.start()
        self.finished(self.load(self.server, 1))
        servers.await_replay(self.server, standby)
        self.assert_same_tables(self.server, standby)
        standby.stop()
        check = subprocess.run(
            [tools.build(), "check", "--data", standby.data], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        serve = subprocess.run(
            [tools.build(), "serve", "--data", standby.data, "--listen", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=60,
        )
        self.assertNotEqual(serve.returncode, 0)
        self.assertIn("clearway promote", serve.stderr)
        self.server.run(
            "psql", f"host={self.server.sockets} port={self.server.port} user=clearway replication=true",
            "-c", "DROP_REPLICATION_SLOT away",
        )

    def test_d_a_report_is_cancelled_when_replay_has_waited(self):
        configuration = self.configuration + 'max_standby_streaming_delay = "1s"\n'
        standby = self.standby("cancels", configuration=configuration).start()
        report = subprocess.Popen(
            [tools.find("psql"), "-XAtq", "-v", "VERBOSITY=verbose"],
            env=standby.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.addCleanup(lambda: report.poll() is None and report.kill())
        report.stdin.write("begin isolation level repeatable read; select count(*) from pgbench_branches;\n")
        report.stdin.flush()
        self.assertEqual(report.stdout.readline(), "1\n")
        for _ in range(50):
            self.server.sql("update pgbench_branches set bbalance = bbalance + 0")
        self.server.sql("vacuum pgbench_branches")
        # What vacuum logs is durable with the next commit.
        self.server.sql("update pgbench_tellers set tbalance = tbalance + 0 where tid = 1")
        servers.await_replay(self.server, standby)
        report.stdin.write("select count(*) from pgbench_branches;\n")
        report.stdin.flush()
        report.stdin.close()
        self.assertIn("40001", report.stdout.read())
        report.wait(30)
        standby.stop()

    def test_e_is_promoted(self):
        standby = self.standby("promoted").start()
        self.finished(self.load(self.server, 1))
        servers.await_replay(self.server, standby)
        self.promote(standby)
        self.assertEqual(standby.sql("select pg_is_in_recovery()"), "f")
        self.assert_same_tables(self.server, standby)
        self.finished(self.load(standby, 1))
        self.assert_sums_agree(standby)
        again = subprocess.run(
            [tools.build(), "promote", "--data", standby.data], capture_output=True, text=True, timeout=90
        )
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("not a standby", again.stderr)
        # A standby of the promoted one, on its timeline.
        after = servers.Standby(tools.build(), self.directory / "after", standby, self.configuration)
        self.addCleanup(after.kill)
        after.start()
        self.finished(self.load(standby, 1))
        servers.await_replay(standby, after)
        self.assert_same_tables(standby, after)
        after.stop()
        standby.stop()
        served = standby.serve().start()
        self.addCleanup(served.kill)
        self.assert_sums_agree(served)
        served.stop()

    def test_f_pg_promote(self):
        standby = self.standby("asked").start()
        self.assertEqual(standby.sql("select pg_promote()"), "t")
        standby.sql("create table made (id int); insert into made values (1)")
        self.assertEqual(standby.sql("select count(*) from made"), "1")
        standby.stop()

    def test_g_a_former_primary_is_refused(self):
        """Its log went on where the new primary's begins; the error names both positions and the way out."""
        first = servers.Clearway(tools.build(), self.directory / "first", self.configuration).start()
        self.addCleanup(first.kill)
        first.run("pgbench", "-i", "-q", "-s", 1)
        second = servers.Standby(tools.build(), self.directory / "second", first, self.configuration)
        self.addCleanup(second.kill)
        second.start()
        self.assertEqual(second.sql("select pg_promote()"), "t")
        self.finished(self.load(first, 1))
        first.stop()
        former = self.start_former(first, second)
        self.assertIn("base backup", former)
        second.stop()

    def promote(self, standby):
        done = subprocess.run(
            [tools.build(), "promote", "--data", standby.data], capture_output=True, text=True, timeout=90
        )
        self.assertEqual(done.returncode, 0, done.stderr + standby.last_log())

    def test_h_a_standby_feeds_another(self):
        """Copied from a standby under load, a second one follows that, and goes along when it is promoted."""
        first = self.standby("feeds", application="feeds").start()
        load = self.load(self.server, 9)
        time.sleep(1)
        directory = self.directory / "is-fed"
        directory.mkdir()
        second = servers.Standby(tools.build(), directory, first, self.configuration, application="is-fed")
        self.addCleanup(second.kill)
        second.start()
        looks = 0
        while load.poll() is None:
            self.assert_sums_agree(second)
            looks += 1
        self.assertGreater(looks, 2)
        self.finished(load)
        for standby in (first, second):
            servers.await_replay(self.server, standby)
            self.assert_same_tables(self.server, standby)
        shown = "select state, application_name from pg_stat_replication"
        self.assertEqual(first.sql(shown), "streaming|is-fed")
        self.assertEqual(self.server.sql(shown), "streaming|feeds")
        # The one in the middle is away, and the last one waits for it.
        first.kill()
        self.finished(self.load(self.server, 1))
        first.start()
        servers.await_replay(self.server, second, by_way_of=[first])
        # The primary writes meanwhile: its last log has come in part to one, and in part to the other.
        load = self.load(self.server, 4)
        time.sleep(1)
        self.promote(first)
        self.finished(self.load(first, 2))
        servers.await_replay(first, second)
        self.assert_same_tables(first, second)
        self.assert_sums_agree(second)
        self.assertEqual(second.sql("select pg_is_in_recovery(), received_tli from pg_stat_wal_receiver"), "t|2")
        self.finished(load)
        second.kill()
        second.start()
        self.finished(self.load(first, 1))
        servers.await_replay(first, second)
        self.assert_same_tables(first, second)
        second.stop()
        check = subprocess.run(
            [tools.build(), "check", "--data", second.data], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        first.stop()

    def test_i_pg_basebackup_copies_a_standby(self):
        # Nothing keeps the log between the end of pg_basebackup and the start of the copy, but wal_keep_size.
        standby = self.standby("copied", application="copied").start()
        load = self.load(self.server, 12)
        copies = []
        for method in ("stream", "fetch"):
            directory = self.directory / f"copy-{method}"
            directory.mkdir()
            copy = servers.Standby(
                tools.build(), directory, standby, self.configuration, application=f"copy_{method}"
            )
            self.addCleanup(copy.kill)
            standby.run("pg_basebackup", "-D", copy.data, "-X", method, "-c", "fast", "-P")
            copies.append(copy)
        for copy in copies:
            copy.start()
            self.assert_sums_agree(copy)
        self.finished(load)
        for copy in copies:
            servers.await_replay(self.server, copy)
            self.assert_same_tables(self.server, copy)
            copy.stop()
        # As a database of its own.
        served = copies[0].serve()
        done = subprocess.run(
            [tools.build(), "serve", "--data", served.data, "--listen", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=60,
        )
        self.assertNotEqual(done.returncode, 0)
        recovered = subprocess.run(
            [tools.build(), "recover", "--data", served.data], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        served.start()
        self.addCleanup(served.kill)
        self.assert_same_tables(standby, served)
        self.finished(self.load(served, 1))
        self.assert_sums_agree(served)
        served.stop()
        standby.stop()

    def test_j_a_promotion_that_fails_is_reported_and_can_be_repeated(self):
        standby = self.standby("fails", application="fails").start()
        # In the way of the new timeline's history.
        in_the_way = standby.data / "pg_wal" / "00000002.history.new"
        in_the_way.mkdir()
        command = [tools.build(), "promote", "--data", standby.data]
        failed = subprocess.run(command, capture_output=True, text=True, timeout=90)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("is not promoted", failed.stderr)
        self.assertIn("00000002.history", failed.stderr)
        self.assertEqual(standby.sql("select pg_is_in_recovery()"), "t")
        self.assertEqual(standby.sql("select pg_promote(true, 1)"), "f")
        in_the_way.rmdir()
        self.promote(standby)
        self.assertEqual(standby.sql("select pg_is_in_recovery()"), "f")
        self.finished(self.load(standby, 1))
        self.assert_sums_agree(standby)
        standby.stop()

    def start_former(self, first, second):
        """Starts the former primary as a standby; what it says when it refuses to become one."""
        log = self.directory / "former.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [
                    tools.build(), "standby", "--from", f"host=127.0.0.1 port={second.port}", "--data", first.data,
                    "--listen", f"127.0.0.1:{servers.free_port()}",
                ],
                stdout=output, stderr=output,
            )
        self.addCleanup(lambda: process.poll() is None and process.kill())
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        self.assertEqual(process.poll(), 1, log.read_text())
        return log.read_text()
