"""`clearway rewind`: a former primary that went on by itself becomes a standby of the server that took over."""

import os
import random
import subprocess
import time
import unittest

from support import flipping_relay, servers, tools

# The log since the fork has to be there, and no slot keeps it.
CONFIGURATION = (
    'shared_buffers = "16MB"\ncheckpoint_timeout = "1h"\nmax_wal_size = "64MB"\nwal_keep_size = "512MB"\n'
    "autovacuum = false\n"
)
UNFINISHED = "a rewind of it was not finished"
TABLES = {
    "pgbench_accounts": "aid", "pgbench_tellers": "tid", "pgbench_branches": "bid",
    "pgbench_history": "mtime, aid, delta, tid", "common": "id", "long_values": "id",
}


class Rewind(unittest.TestCase):
    def setUp(self):
        self.directory = servers.scratch("rewind")
        self.seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
        self.random = random.Random(self.seed)
        self.first = self.server(servers.Clearway, "first").start()
        self.first.run("pgbench", "-i", "-q")
        self.first.sql(
            "create table common (id int primary key, who text); insert into common select g, 'both' from generate_series(1, 500) g;"
            " create table long_values (id int primary key, text text);"
            " insert into long_values select g, repeat(md5(g::text), 2000) from generate_series(1, 20) g;"
            " create table dropped_there (id int); insert into dropped_there values (1);"
            " create table dropped_here (id int); insert into dropped_here values (1);"
            " create table open_at_the_fork (id int)"
        )
        self.second = self.server(servers.Standby, "second", self.first).start()

    def server(self, kind, name, *more):
        (self.directory / name).mkdir(exist_ok=True)
        made = kind(tools.build(), self.directory / name, *more, configuration=CONFIGURATION)
        self.addCleanup(made.kill)
        return made

    def load(self, server):
        server.run("pgbench", "-n", "-c", 2, "-t", 150)

    def part(self, stop):
        """The second server is promoted, and both go on. A transaction that is open meanwhile commits on the first."""
        session = servers.Prompt(self.first)
        session.ask("begin; insert into open_at_the_fork values (1);")
        self.load(self.first)
        servers.await_replay(self.first, self.second)
        self.assertEqual(self.second.sql("select pg_promote()"), "t")
        session.ask("commit;")
        session.close()
        # A hint that it has committed is written to the file behind the fork.
        self.assertEqual(self.first.sql("select count(*) from open_at_the_fork; checkpoint"), "1")
        for server, gone in [(self.first, "dropped_here"), (self.second, "dropped_there")]:
            self.load(server)
            name = "first" if server is self.first else "second"
            server.sql(
                f"update common set who = '{name}' where id % 7 = 0; insert into common values ({len(name)} + 1000, '{name}');"
                f" drop table {gone}; create table only_{name} as select generate_series(1, 300) as id;"
                f" update long_values set text = repeat('{name}', 9000) where id % 3 = 0;"
                f" create index on common (who)"
            )
        (self.first.stop if stop else self.first.kill)()

    def rewind(self, *options, port=None):
        source = f"host=127.0.0.1 port={port or self.second.port}"
        command = [tools.build(), "rewind", "--from", source, "--data", self.first.data, *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def rewound(self, *options):
        process = self.rewind(*options)
        said = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, 0, f"seed {self.seed}: {said}")
        return said

    def says(self, *command):
        """The words of a command that fails on the first directory."""
        done = subprocess.run(
            [tools.build(), *command, "--data", self.first.data], capture_output=True, text=True, timeout=60
        )
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stdout + done.stderr

    def assert_follows(self):
        """The first directory is a standby's, has what the second server has, and goes on with it."""
        self.assertIn("is a standby's", self.says("serve", "--listen", "127.0.0.1:0"))
        former = self.server(servers.Standby, "first", self.second)
        former.start()
        self.load(self.second)
        servers.await_replay(self.second, former)
        for table, key in TABLES.items():
            rows = f"select * from {table} order by {key}"
            self.assertTrue(former.sql(rows) == self.second.sql(rows), f"seed {self.seed}: {table} differs")
        self.assertEqual(former.sql("select count(*) from common where who = 'first'"), "0")
        self.assertEqual(former.sql("select count(*) from open_at_the_fork"), "0")
        self.assertEqual(former.sql("select count(*) from only_second"), "300")
        self.assertEqual(
            former.sql("select relname from pg_class where relname in ('only_first', 'dropped_there', 'dropped_here')"),
            "dropped_here",
        )
        former.stop()
        check = subprocess.run(
            [tools.build(), "check", "--data", former.data], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_a_stopped_in_order(self):
        self.part(stop=True)
        before = {path: path.read_bytes() for path in self.first.data.rglob("*") if path.is_file()}
        said = self.rewound("--dry-run")
        self.assertRegex(said, r"would fetch \d+ of \d+ pages")
        after = {path: path.read_bytes() for path in self.first.data.rglob("*") if path.is_file()}
        self.assertTrue(before == after, "a dry run has changed a file")
        said = self.rewound("--slot", "former", "--create-slot")
        self.assertRegex(said, r"rewound .* pages")
        self.assertEqual(self.second.sql("select slot_name from pg_replication_slots"), "former")
        self.assert_follows()

    def test_b_killed_and_the_rewind_killed_too(self):
        self.part(stop=False)
        marker = self.first.data / "rewind.unfinished"
        # The first attempt gets no page any more as soon as it is about to change something.
        relay = flipping_relay.FlippingRelay(self.second.port)
        relay.holds = marker.exists
        unfinished = 0
        for attempt in range(12):
            process = self.rewind(port=None if attempt else relay.port)
            deadline = time.monotonic() + 60
            while process.poll() is None and not marker.exists():
                self.assertLess(time.monotonic(), deadline, f"seed {self.seed}: nothing was begun")
                time.sleep(0.001)
            try:
                process.wait(self.random.uniform(0.01, 0.3) if attempt else 0)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate(timeout=60)
            if marker.exists():
                unfinished += 1
                source = f"host=127.0.0.1 port={self.second.port}"
                self.assertIn(UNFINISHED, self.says("serve", "--listen", "127.0.0.1:0"))
                self.assertIn(UNFINISHED, self.says("standby", "--listen", "127.0.0.1:0", "--from", source))
                self.assertIn(UNFINISHED, self.says("check"))
        self.assertGreater(unfinished, 0, f"seed {self.seed}")
        # Wherever the kills came, the last attempt ends it, or finds that there is nothing to do.
        self.rewound()
        self.assert_follows()

    def test_c_what_needs_no_rewind(self):
        self.load(self.first)
        self.first.stop()
        self.assertEqual(self.second.sql("select pg_promote()"), "t")
        self.assertIn("nothing to do", self.rewound())
        empty = self.directory / "empty"
        empty.mkdir()
        source = f"host=127.0.0.1 port={self.second.port}"
        done = subprocess.run(
            [tools.build(), "rewind", "--from", source, "--data", empty], capture_output=True, text=True, timeout=60
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no database in it to rewind", done.stderr)
        # The first server's directory is in use, once it follows.
        former = self.server(servers.Standby, "first", self.second).start()
        began = time.monotonic()
        process = self.rewind()
        self.assertIn("another server is using", process.communicate(timeout=60)[0])
        self.assertLess(time.monotonic() - began, 30)
        former.stop()

    def test_d_a_byte_that_changes_on_the_way_is_noticed(self):
        self.part(stop=True)
        relay = flipping_relay.FlippingRelay(self.second.port)
        # A length that has changed makes the other side wait for bytes that never come.
        impatient = self.directory / "impatient.toml"
        impatient.write_text('wal_receiver_timeout = "2s"\n')
        noticed = 0
        for _ in range(4):
            relay.at = self.random.randrange(5_000, 300_000)
            process = self.rewind("--config", impatient, port=relay.port)
            said = process.communicate(timeout=60)[0]
            if process.returncode != 0:
                noticed += 1
                self.assertRegex(said, "broke the protocol|was changed|has been silent|no whole record", f"seed {self.seed}")
        self.assertGreater(noticed, 0, f"seed {self.seed}")
        self.rewound()
        self.assert_follows()
