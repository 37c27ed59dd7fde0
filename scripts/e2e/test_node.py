"""`clearway node` beside etcd: what becomes of a directory that cannot follow, of a node that is asked to end, of a cluster
in a pause, and of one whose etcd has lost its data; and a cluster that trusts no network. scripts/failover has the faults
under load."""

import signal
import subprocess
import time
import unittest

from support import cluster, secured_cluster, servers, tools

RULES = "local all all trust\nhost all,replication all samehost trust\n"


class Node(unittest.TestCase):
    def start(self, *names, **more):
        tools.need("etcd")
        self.cluster = cluster.Cluster(servers.scratch("node"), names, etcds=1, **{"synchronous": 0, **more})
        self.addCleanup(self.cluster.kill)
        self.nodes = {node.name: node for node in self.cluster.nodes}
        return self.cluster.nodes

    def lead(self, node):
        """The node leads, and the others follow it."""
        node.start()
        self.assertIs(self.cluster.await_primary(), node)
        self.cluster.start_others()
        self.cluster.await_whole()

    def assert_ends(self, node, seconds=30):
        try:
            code = node.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"{node.name} has not ended:\n{node.last_log()}")
        self.assertEqual(code, 0, node.last_log())

    def test_a_former_primary_that_is_too_far_behind_is_copied_and_keeps_its_rules(self):
        configuration = cluster.CONFIGURATION.replace('wal_keep_size = "256MB"', 'wal_keep_size = "0"')
        alice, berlin = self.start("alice", "berlin", configuration=configuration)
        # The directory is on another disk.
        disk = alice.directory / "disk"
        disk.mkdir()
        alice.data.symlink_to("disk/data")
        (disk / "data").mkdir()
        self.lead(alice)
        subprocess.run([self.cluster.binary, "cert", "--data", alice.data, "--name", "localhost"],
                       check=True, capture_output=True)
        (alice.data / "pg_hba.conf").write_text(RULES)
        kept = {name: (alice.data / name).read_bytes() for name in ("pg_hba.conf", "server.crt", "server.key")}
        alice.sql("create table numbers (id int primary key)")
        berlin.await_sql("select to_regclass('numbers')", "numbers")
        alice.kill()
        self.assertIs(self.cluster.await_primary(), berlin)
        # More than a segment, twice, and a checkpoint that leaves it behind.
        berlin.sql("create table texts (text text)")
        for number in range(2):
            berlin.sql(f"insert into numbers values ({number})")
            berlin.sql("insert into texts select repeat('x', 1800) from generate_series(1, 9500); checkpoint")
        alice.start()
        self.cluster.await_whole()
        self.assertTrue(alice.says("no longer has the log from"), alice.last_log())
        self.assertTrue(alice.says("and is copied anew"), alice.last_log())
        self.assertEqual(alice.sql("select count(*), pg_is_in_recovery() from numbers"), "2|t")
        self.assertEqual({name: (alice.data / name).read_bytes() for name in kept}, kept)
        self.assertEqual((alice.data / "server.key").stat().st_mode & 0o777, 0o600)
        self.assertTrue(alice.data.is_symlink())
        self.assertEqual(sorted(entry.name for entry in disk.iterdir()), ["data", "data.former"])

    def test_a_primary_that_leads_again_on_its_timeline_is_followed(self):
        alice, berlin, cairo = self.start("alice", "berlin", "cairo")
        self.lead(alice)
        alice.kill()
        leader = self.cluster.await_primary()
        self.assertIn(leader, (berlin, cairo))
        leader.sql("create table of_the_second (id int)")
        follower = cairo if leader is berlin else berlin
        follower.await_sql("select to_regclass('of_the_second')", "of_the_second")
        for node in (berlin, cairo):
            node.kill()
        alice.start()
        self.assertIs(self.cluster.await_primary(), alice)
        for node in (berlin, cairo):
            node.start()
        self.cluster.await_whole()
        for node in (leader, follower):
            self.assertTrue(node.says("that only it has is given up"), node.last_log())
        for node in (alice, berlin, cairo):
            self.assertEqual(node.sql("select to_regclass('of_the_second') is null"), "t")

    def test_a_node_that_is_asked_to_end_does_not_begin_anew(self):
        alice, berlin = self.start("alice", "berlin")
        self.lead(alice)
        alice.cut_from_etcd(True)
        alice.process.send_signal(signal.SIGTERM)
        # It cannot give up its office, and is fenced.
        self.assert_ends(alice)
        self.assertTrue(alice.says("this node does not lead any more"), alice.last_log())
        self.assertIs(self.cluster.await_primary(), berlin)
        alice.cut_from_etcd(False)
        alice.start()
        self.cluster.await_whole()
        alice.process.send_signal(signal.SIGTERM)
        self.assert_ends(alice)
        self.assertTrue(alice.last_log(1).endswith("shut down"), alice.last_log())

    def test_a_time_to_live_that_cannot_be_is_refused(self):
        for given in ("1s", "61min"):
            done = subprocess.run(
                [tools.build(), "node", "--etcd", "http://127.0.0.1:1", "--cluster", "c", "--name", "n", "--ttl", given,
                 "--data", servers.scratch("ttl") / "data"], capture_output=True, text=True, timeout=30,
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--ttl is 2s to 3600s", done.stderr)

    def test_in_a_pause_no_other_node_leads(self):
        alice, berlin = self.start("alice", "berlin")
        self.lead(alice)
        self.assertEqual(self.cluster.operate("pause").returncode, 0)
        refused = self.cluster.switchover("berlin")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("takeovers are held back", refused.stderr)
        alice.kill()
        time.sleep(1.5 * cluster.TTL_SECONDS)
        self.assertIsNone(self.cluster.primary())
        alice.start()
        self.assertIs(self.cluster.await_primary(), alice)
        alice.kill()
        self.assertEqual(self.cluster.operate("resume").returncode, 0)
        self.assertIs(self.cluster.await_primary(), berlin)

    def test_a_cluster_that_asks_for_certificates_and_passwords(self):
        access = secured_cluster.Secured(servers.scratch("secured") / "files")
        alice, berlin = self.start("alice", "berlin", access=access, synchronous=1)
        self.cluster.await_etcd()
        access.have_etcd_ask_for_passwords(self.cluster)
        alice.start()
        self.assertIs(self.cluster.await_primary(), alice)
        alice.sql("create role copy login replication password 'copy''s password'")
        alice.sql("create table numbers as select generate_series(1, 100) as id")
        self.cluster.start_others()
        self.cluster.await_whole()
        encrypted = "select ssl from pg_stat_ssl join pg_stat_replication using (pid)"
        self.assertEqual(alice.sql(encrypted), "t")
        for problem, options in [
            ("etcd does not answer", access.certificate_options("stranger") + access.etcd_client_options[6:]),
            ("etcd refuses", access.certificate_options("node")),
        ]:
            done = subprocess.run(
                [self.cluster.binary, "cluster", "status", "--etcd", self.cluster.endpoints(), "--cluster", "test", *options],
                capture_output=True, text=True, timeout=30,
            )
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(problem, done.stderr)
        # A node's user has no key of another cluster.
        done = subprocess.run(
            [self.cluster.binary, "cluster", "status", "--etcd", self.cluster.endpoints(), "--cluster", "tes",
             *access.etcd_client_options], capture_output=True, text=True, timeout=30,
        )
        self.assertIn("etcd refuses", done.stderr)
        self.assertEqual(self.cluster.switchover("berlin").returncode, 0)
        self.cluster.await_whole()
        self.assertEqual(berlin.sql("insert into numbers values (101); select count(*) from numbers"), "INSERT 0 1\n101")
        # etcd is started again, and knows no token any more; then its data are lost.
        for node in (alice, berlin):
            node.kill()
        access.etcdctl(self.cluster, "--user", "root:root", "del", "--prefix", "/clearway/test/")
        self.cluster.etcds[0].kill()
        self.cluster.etcds[0].start()
        berlin.start()
        self.assertIs(self.cluster.await_primary(), berlin)
        alice.start()
        self.cluster.await_whole()
        self.assertEqual(alice.sql("select count(*) from numbers"), "101")

    def test_a_standby_that_cannot_replay_does_not_lead(self):
        alice, berlin, cairo = self.start("alice", "berlin", "cairo")
        self.lead(alice)
        alice.sql("create table first (id int)")
        berlin.await_sql("select to_regclass('first')", "first")
        # The files of the tables that are made next cannot be made there.
        newest = max(int(entry.name) for entry in (berlin.data / "base").iterdir() if entry.name.isdigit())
        for number in range(newest + 1, newest + 9):
            (berlin.data / "base" / str(number)).mkdir()
        alice.sql("create table second (id int); insert into second values (1)")
        cairo.await_sql("select count(*) from second", "1")
        self.cluster.await_role(berlin, "failed")
        alice.kill()
        # By its name berlin would come first.
        self.assertIs(self.cluster.await_primary(), cairo)
