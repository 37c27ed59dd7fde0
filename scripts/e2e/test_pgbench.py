"""pgbench: all its ways to initialise, its built-in scripts in every mode, custom scripts, many clients."""

import re

from common import WithServer

CUSTOM = r"""
\set aid random(1, 100000)
\set low random(1, 100)
\set shift :aid % 7
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*), min(tbalance), max(tbalance) FROM pgbench_tellers WHERE tid BETWEEN :low AND :low + 5;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid \gset
\if :shift = 0
INSERT INTO notes VALUES (:client_id, :aid, 'seven');
\else
INSERT INTO notes VALUES (:client_id, :aid, 'other');
\endif
COMMIT;
"""

class Pgbench(WithServer):
    def tps(self, *arguments, **more):
        """Runs pgbench; transactions done. None may have failed."""
        done = self.server.run("pgbench", *arguments, **more)
        failed = re.search(r"number of failed transactions: ([0-9]+)", done.stdout)
        self.assertEqual(failed.group(1), "0", done.stdout)
        self.assertNotIn("error", done.stderr.lower().replace("client-side", ""), done.stderr)
        return int(re.search(r"transactions actually processed: ([0-9]+)", done.stdout).group(1))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run("pgbench", "-i", "-s", 1)

    def test_a_initialise_step_by_step(self):
        for steps in ("d", "t", "g", "v", "p", "dtgvp"):
            self.server.run("pgbench", "-i", "-s", 1, "-I", steps)
        self.assertEqual(self.server.sql("select count(*) from pgbench_accounts"), "100000")
        self.server.run("pgbench", "-i", "-I", "f")
        keys = "select count(*) from pg_constraint where contype = 'f'"
        self.assertEqual(self.server.sql(keys), "5")
        self.server.run("pgbench", "-i", "-s", 1)
        self.assertEqual(self.server.sql(keys), "0")

    def test_b_initialise_on_the_server(self):
        self.server.run("pgbench", "-i", "-s", 2, "-I", "dtGvp")
        self.assertEqual(self.server.sql("select count(*), min(aid), max(aid) from pgbench_accounts"), "200000|1|200000")
        self.assertEqual(self.server.sql("select count(*) from pgbench_tellers"), "20")

    def test_c_initialise_with_fillfactor(self):
        self.server.run("pgbench", "-i", "-q", "-s", 1, "-F", 90)
        self.assertEqual(self.server.sql("select count(*) from pgbench_accounts"), "100000")

    def test_d_builtin_scripts_in_every_mode(self):
        for script in ("select-only", "simple-update", "tpcb-like"):
            for mode in ("simple", "extended", "prepared"):
                with self.subTest(script=script, mode=mode):
                    self.assertGreater(self.tps("-b", script, "-M", mode, "-c", 4, "-j", 2, "-T", 1), 10)

    def test_e_sums_agree_after_a_run(self):
        self.server.run("pgbench", "-i", "-q", "-s", 1)
        done = self.tps("-b", "tpcb-like", "-M", "prepared", "-c", 8, "-j", 2, "-t", 200)
        self.assertEqual(done, 1600)
        self.assert_balanced()
        self.assertEqual(self.server.sql("select count(*) from pgbench_history"), "1600")

    def test_f_custom_script(self):
        self.server.sql("create table notes (client int, aid int, what varchar(10))")
        script = self.server.directory / "custom.sql"
        script.write_text(CUSTOM)
        for mode in ("simple", "extended", "prepared"):
            with self.subTest(mode=mode):
                self.assertEqual(self.tps("-n", "-f", script, "-M", mode, "-c", 3, "-t", 50), 150)
        self.assertEqual(self.server.sql("select count(*) from notes"), "450")

    def test_g_500_clients(self):
        self.server.stop()
        self.server.configuration.write_text('shared_buffers = "64MB"\nmax_connections = 520\n')
        self.server.start()
        self.assertGreater(self.tps("-n", "-b", "select-only", "-M", "prepared", "-c", 500, "-j", 4, "-t", 4), 1_999)
        self.assertGreater(self.tps("-n", "-b", "tpcb-like", "-M", "prepared", "-c", 500, "-j", 4, "-t", 2), 999)
        self.assert_balanced()

    def test_h_a_client_per_transaction(self):
        self.assertEqual(self.tps("-n", "-C", "-b", "select-only", "-c", 4, "-t", 50), 200)
