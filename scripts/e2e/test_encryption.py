"""A server as it stands on a network: a superuser with a password, a certificate, and rules that let in nothing else.
PostgreSQL's programs, drivers, and a standby, all with `sslmode=verify-full`; what comes without is refused."""

import os
import pty
import select
import shutil
import subprocess
import unittest

from support import checked_tools, drivers, servers, tools, views

PASSWORD = "correct horse 'battery"


class Secured(servers.Clearway):
    """Clients reach it over TCP, and have to know it by its certificate."""

    user = "owner"

    @property
    def address(self):
        return {
            **super().address, "PGHOST": "localhost", "PGPASSWORD": PASSWORD, "PGSSLMODE": "verify-full",
            "PGSSLROOTCERT": str(self.directory / "root.crt"), "PGCHANNELBINDING": "require",
        }


class SecuredStandby(Secured):
    """Follows `primary`, which it knows by its certificate."""

    def __init__(self, binary, directory, primary):
        super().__init__(binary, directory)
        self.primary = primary

    def command(self):
        source = (
            f"host=localhost port={self.primary.port} user=owner passfile={self.directory / 'pass'} sslmode=verify-full "
            f"sslrootcert={self.primary.directory / 'root.crt'} channel_binding=require"
        )
        return [
            self.binary, "standby", "--from", source, "--data", self.data, "--listen", f"127.0.0.1:{self.port}",
            "--socket-dir", self.sockets, "--config", self.configuration,
        ]


class Encryption(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.binary = tools.build()
        cls.directory = servers.scratch("encryption")
        cls.server = Secured(cls.binary, cls.directory)
        (cls.directory / "password").write_text(PASSWORD + "\n")
        made = ["init", "--data", cls.server.data, "--username", "owner", "--pwfile", cls.directory / "password"]
        for command in [made, ["cert", "--data", cls.server.data]]:
            subprocess.run([cls.binary, *command], check=True, capture_output=True, text=True)
        shutil.copy(cls.server.data / "server.crt", cls.directory / "root.crt")
        (cls.server.data / "pg_hba.conf").write_text("hostssl all,replication all samehost scram-sha-256\n")
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_programs(self):
        shown = self.server.sql(
            "select ssl, version, current_user, current_setting('ssl') from pg_stat_ssl where pid = pg_backend_pid()"
        )
        self.assertEqual(shown, "t|TLSv1.3|owner|on")
        self.server.run("pgbench", "-i", "-q")
        for protocol in ["simple", "extended", "prepared"]:
            self.server.run("pgbench", "-n", "-M", protocol, "-c", "4", "-t", "25")
        self.assertEqual(self.server.sql("select count(*) from pgbench_history"), "300")
        self.server.run("pg_basebackup", "-D", self.directory / "copy", "-X", "stream")
        self.server.run("pg_verifybackup", "-n", self.directory / "copy")
        dumped = self.server.run("pg_dump", "-t", "pgbench_branches").stdout
        self.assertIn("CREATE TABLE public.pgbench_branches", dumped)

    def test_a_password_is_set_by_psql(self):
        self.server.sql("create role guest login")
        typed = "new password"
        self.type_into(typed, "psql", "-XAtq", "-c", "\\password guest")
        self.assertEqual(self.server.run("psql", "-XAtqc", "select 1", PGUSER="guest", PGPASSWORD=typed).stdout, "1\n")

    def type_into(self, text, *command):
        """Runs a program on a terminal of its own, and answers each of its two questions by a line."""
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(tools.find(command[0]), command, self.server.environment())
        said = b""
        try:
            for questions in (1, 2):
                while said.count(b": ") < questions:
                    self.assertTrue(select.select([terminal], [], [], 60)[0], said)
                    said += os.read(terminal, 1024)
                os.write(terminal, text.encode() + b"\n")
            try:
                while more := os.read(terminal, 1024):
                    said += more
            except OSError:
                # The terminal's other end has closed.
                pass
        finally:
            _, status = os.waitpid(child, 0)
            os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, said)

    def test_what_comes_otherwise_is_refused(self):
        for change, expected in [
            ({"PGSSLMODE": "disable", "PGCHANNELBINDING": "prefer"}, "no encryption"),
            ({"PGPASSWORD": "wrong"}, "password authentication failed"),
            ({"PGHOST": str(self.server.sockets), "PGSSLMODE": "prefer", "PGCHANNELBINDING": "prefer"}, "no pg_hba.conf entry"),
        ]:
            done = self.server.run("psql", "-XAtqc", "select 1", check=False, **change)
            self.assertNotEqual(done.returncode, 0, change)
            self.assertIn(expected, done.stderr)

    def run_program(self, *command):
        done = subprocess.run(
            [str(part) for part in command], env=self.server.environment(), capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr[-4000:]}")
        self.assertEqual(done.stdout.splitlines()[-1:], ["done"])

    def test_drivers(self):
        self.run_program(drivers.python(), drivers.HERE / "encrypted.py")
        node, directory = drivers.node()
        self.run_program(node, directory / "encrypted.mjs")
        self.run_program(*checked_tools.java(), drivers.HERE / "Encrypted.java")

    def test_the_bench_measures_it(self):
        passwords = self.directory / "bench.pass"
        passwords.write_text(f"localhost:{self.server.port}:postgres:owner:{PASSWORD}\n")
        os.chmod(passwords, 0o600)
        self.server.run("pgbench", "-i", "-q")

        def bench(mode):
            source = (f"host=localhost port={self.server.port} user=owner dbname=postgres passfile={passwords} sslmode={mode} "
                      f"sslrootcert={self.directory / 'root.crt'}")
            return subprocess.run(
                [self.binary, "bench", "server", "--connect", source, "--clients", "2", "--duration", "200ms", "--rounds", "1"],
                capture_output=True, text=True, timeout=60,
            )

        done = bench("verify-full channel_binding=require")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("TLSv1.3, scale 1; the balances add up.", done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 6, done.stdout)
        refused = bench("disable")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no encryption", refused.stderr)

    def test_a_standby_follows(self):
        directory = servers.scratch("encryption-standby")
        (directory / "pass").write_text(f"localhost:{self.server.port}:replication:owner:{PASSWORD}\n")
        os.chmod(directory / "pass", 0o600)
        standby = SecuredStandby(self.binary, directory, self.server)
        # It has the primary's rules and certificate by its own means.
        shutil.copy(self.directory / "root.crt", directory / "root.crt")
        standby.start(wait=0)
        try:
            self.server.sql("create table followed as select 42 as answer")
            streaming = "select count(*) from pg_stat_replication where state = 'streaming'"
            views.await_shown(self.server, streaming, "1")
            shown = self.server.sql(
                "select s.ssl from pg_stat_ssl s join pg_stat_replication r on r.pid = s.pid"
            )
            self.assertEqual(shown, "t")
        finally:
            standby.kill()
