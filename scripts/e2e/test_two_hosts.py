"""A primary and its standby on two hosts, each a network namespace (`support/hosts.py`): every connection goes over TCP and
TLS, and each end is known by its certificate (`sslmode=verify-full`, `channel_binding=require`, a password from a file).

The cable between them is cut, loses frames, delays and reorders them. What `scripts/standby-kills` holds is held here in a
short form, with synchronous replication.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import time
import unittest

from support import hosts, ledger, servers, tools, views

PASSWORD = "correct horse 'battery"
CONFIGURATION = (
    'shared_buffers = "16MB"\ncheckpoint_timeout = "1h"\nwal_keep_size = "512MB"\nwal_receiver_timeout = "2s"\n'
    'wal_sender_timeout = "2s"\nautovacuum = false\n'
)
RULES = "local all all trust\nhostssl all,replication owner 198.18.0.0/30 scram-sha-256\n"
TABLES = {
    "pgbench_accounts": "aid", "pgbench_tellers": "tid", "pgbench_branches": "bid",
    "pgbench_history": "mtime, aid, delta, tid", "ledger": "client, seq", "mark": "moved",
}


class OnHost(servers.Clearway):
    """A server on a host. The tests' own statements come through its Unix-domain socket, which no cable carries."""

    user = "owner"

    def __init__(self, binary, directory, host, configuration=CONFIGURATION):
        super().__init__(binary, directory, configuration)
        self.host = host
        self.source = None
        self.listens = True

    def follow(self, source, *options):
        """From the next start on it is a standby of `source`, a connection string."""
        self.source, self.options = source, options
        return self

    def command(self):
        kind = ["serve"] if self.source is None else ["standby", "--from", self.source]
        listen = f"{self.host.address}:{self.port}" if self.listens else "none"
        return self.host.command(
            self.binary, *kind, "--data", self.data, "--listen", listen, "--port", self.port,
            "--socket-dir", self.sockets, "--config", self.configuration, *self.options,
        )

    def admit(self):
        """Writes its rules and its certificate, which names its address."""
        subprocess.run(
            [self.binary, "cert", "--data", self.data, "--name", self.host.address, "--replace"],
            check=True, capture_output=True,
        )
        (self.data / "pg_hba.conf").write_text(RULES)
        shutil.copy(self.data / "server.crt", self.directory / "root.crt")

    def conninfo(self, directory, application="standby"):
        """How the other host reaches it, with a password file in `directory`."""
        file = pathlib.Path(directory) / f"pass-{self.port}"
        file.write_text(f"{self.host.address}:{self.port}:*:owner:{PASSWORD}\n")
        os.chmod(file, 0o600)
        return (
            f"host={self.host.address} port={self.port} user=owner passfile={file} sslmode=verify-full "
            f"sslrootcert={self.directory / 'root.crt'} channel_binding=require application_name={application}"
        )


class TwoHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
        cls.random = random.Random(cls.seed)
        cls.network = hosts.TwoHosts(cls.seed)
        cls.addClassCleanup(cls.network.close)
        cls.directory = servers.scratch("two-hosts")
        binary = tools.build()
        cls.primary = OnHost(binary, cls.directory / "primary", cls.network.one)
        cls.standby = OnHost(binary, cls.directory / "standby", cls.network.two)
        for server in (cls.primary, cls.standby):
            cls.addClassCleanup(server.kill)
        password = cls.directory / "password"
        password.write_text(PASSWORD + "\n")
        subprocess.run(
            [binary, "init", "--data", cls.primary.data, "--username", "owner", "--pwfile", password],
            check=True, capture_output=True,
        )
        cls.primary.admit()
        cls.primary.start()
        cls.primary.run("pgbench", "-i", "-q")
        cls.primary.sql(f"{ledger.TABLE}; create table mark (moved int); insert into mark values (0)")

    def on_two(self, *command, check=True):
        """Runs a program on the standby's host."""
        done = subprocess.run(
            self.network.two.command(tools.find(command[0]) or command[0], *command[1:]),
            env=servers.Server.environment(self.standby), capture_output=True, text=True, timeout=120,
            cwd=self.directory,
        )
        if check:
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}{self.primary.last_log()}")
        return done

    def load(self, transactions=150):
        self.primary.run("pgbench", "-n", "-c", 2, "-t", transactions)

    def test_a_programs_of_postgresql(self):
        source = self.primary.conninfo(self.directory)
        shown = self.on_two(
            "psql", f"{source} dbname=postgres", "-XAtqc",
            "select ssl, version, client_addr from pg_stat_ssl join pg_stat_activity using (pid) where pid = pg_backend_pid()",
        )
        self.assertEqual(shown.stdout, f"t|TLSv1.3|{self.network.two.address}\n")
        for change, expected in [
            ("sslmode=disable channel_binding=prefer", "no encryption"),
            (f"sslrootcert={self.directory / 'password'}", "root certificate"),
            ("passfile=/dev/null", "password"),
        ]:
            refused = self.on_two("psql", f"{source} dbname=postgres {change}", "-wXAtqc", "select 1", check=False)
            self.assertNotEqual(refused.returncode, 0, change)
            self.assertIn(expected, refused.stderr)
        self.network.disturb("reorder", 5)
        self.on_two("pg_basebackup", "-d", source, "-D", self.directory / "copy", "-c", "fast", "-X", "stream")
        self.on_two("pg_verifybackup", "-n", self.directory / "copy")
        archive = self.directory / "archive"
        archive.mkdir()
        self.on_two("pg_receivewal", "-d", source, "-D", archive, "-S", "archive", "--create-slot")
        self.load()
        end = self.primary.sql("select pg_current_wal_flush_lsn()")
        self.network.disturb("lose", 5)
        self.on_two("pg_receivewal", "-d", source, "-D", archive, "-S", "archive", "--endpos", end, "--synchronous")
        self.assertTrue(list(archive.iterdir()))
        self.on_two("pg_receivewal", "-d", source, "-S", "archive", "--drop-slot")
        self.network.heal()

    def start_standby(self):
        """The standby, for whose acknowledgement commits wait from then on."""
        self.standby.follow(self.primary.conninfo(self.standby.directory), "--slot", "standby", "--create-slot")
        # Its rules and certificate are its own, and the copy goes into an empty directory: it listens from then on.
        self.standby.listens = False
        self.standby.start()
        self.standby.stop()
        self.standby.admit()
        self.standby.listens = True
        self.standby.start()
        self.primary.configuration.write_text(CONFIGURATION + "synchronous_standby_names = 'standby'\n")
        self.primary.stop()
        self.primary.start()
        views.check_both(self.primary, self.standby, synchronous=True)

    def assert_same(self, told, one, other):
        servers.await_replay(one, other)
        for table, key in TABLES.items():
            rows = f"select * from {table} order by {key}"
            self.assertTrue(one.sql(rows) == other.sql(rows), f"seed {self.seed}: {table} differs")
        for server in (one, other):
            self.assertIsNone(told.wrong(server), f"seed {self.seed}")

    def test_b_a_standby_over_a_network_that_fails(self):
        self.start_standby()
        told = ledger.Ledger(2)
        kinds = [*hosts.TwoHosts.KINDS, "kill standby", "kill primary"]
        for kind in self.random.sample(kinds, len(kinds)):
            before = sum(told.told)
            told.start(self.primary)
            time.sleep(0.3)
            if kind == "kill standby":
                self.standby.kill()
                self.standby.start()
            elif kind == "kill primary":
                self.primary.kill()
                self.primary.start()
            else:
                # A cut is longer than both sides' patience.
                self.network.disturb(kind, 3.0 if kind == "cut" else 1.0)
                time.sleep(3.2 if kind == "cut" else 1.0)
                self.assertGreater(self.network.done[kind], 0, kind)
            told.stop(60)
            self.network.heal()
            self.assertGreater(sum(told.told), before, f"{kind}: {told.ended_by}")
            views.check_both(self.primary, self.standby, synchronous=True)
            self.assert_same(told, self.primary, self.standby)
        self.take_over(told)

    def take_over(self, told):
        """The cable is cut under load for good. The standby takes over, and has what was acknowledged; the former primary
        goes on for a while, is rewound over the network once that is mended, and follows."""
        told.start(self.primary)
        time.sleep(0.3)
        self.network.cut()
        self.assertEqual(self.standby.sql("select pg_promote()"), "t")
        time.sleep(0.5)
        self.primary.sql("set synchronous_commit = local; update mark set moved = -1; checkpoint")
        self.primary.kill()
        told.stop(60)
        self.assertIsNone(told.wrong(self.standby), f"seed {self.seed}: an acknowledged commit is not there")
        self.standby.run("pgbench", "-n", "-c", 2, "-t", 50)
        self.network.heal()
        source = self.standby.conninfo(self.primary.directory, "former")
        rewound = subprocess.run(
            self.network.one.command(self.primary.binary, "rewind", "--from", source, "--data", self.primary.data),
            capture_output=True, text=True, timeout=120,
        )
        self.assertEqual(rewound.returncode, 0, rewound.stderr)
        self.assertTrue(re.search(r"rewound .* pages", rewound.stdout), rewound.stdout)
        self.primary.configuration.write_text(CONFIGURATION)
        self.primary.follow(source).start()
        self.assert_same(told, self.standby, self.primary)
        self.assertNotEqual(self.primary.sql("select moved from mark"), "-1")
        for server in (self.primary, self.standby):
            server.stop()
            check = subprocess.run(
                [server.binary, "check", "--data", server.data], capture_output=True, text=True, timeout=120
            )
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
