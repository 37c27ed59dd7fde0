"""Clients of a cluster find its primary, and after a switchover the next one: libpq, psycopg and JDBC by several hosts, and
any client through HAProxy, whose configuration is that of docs/replication/cluster-clients.md."""

import re
import subprocess
import time
import unittest

import psycopg

from support import checked_tools, cluster, drivers, servers, tools

PAGE = tools.ROOT / "docs" / "replication" / "cluster-clients.md"


class HAProxy(cluster.Process):
    """HAProxy with the configuration of the page, on ports of this machine."""

    def __init__(self, directory, nodes):
        super().__init__("haproxy", directory)
        tools.need("haproxy")
        text = PAGE.read_text().split("## HAProxy\n")[1]
        lines = [line[4:] for line in text.splitlines() if line.startswith("    ") or not line]
        self.primary, self.replicas = servers.free_port(), servers.free_port()
        configuration = "\n".join(lines).replace("*:5000", f"127.0.0.1:{self.primary}")
        configuration = configuration.replace("*:5001", f"127.0.0.1:{self.replicas}")
        for node in nodes:
            configuration, count = re.subn(
                rf"{node.name}\.example\.org:5433( +)check port 8008",
                rf"127.0.0.1:{node.port}\1check port {node.checks}", configuration,
            )
            if count != 2:
                raise RuntimeError(f"{PAGE} names {node.name} {count} times")
        self.configuration = self.directory / "haproxy.cfg"
        self.configuration.write_text(configuration + "\n")

    def command(self):
        return [tools.find("haproxy"), "-f", self.configuration, "-db"]


class ClusterClients(unittest.TestCase):
    def setUp(self):
        tools.need("etcd", "psql")
        directory = servers.scratch("clients")
        self.cluster = cluster.Cluster(directory, etcds=1)
        self.addCleanup(self.cluster.kill)
        self.cluster.start()
        self.proxy = HAProxy(directory / "haproxy", self.cluster.nodes)
        self.addCleanup(self.proxy.kill)
        self.proxy.start()
        status = self.cluster.await_whole()
        self.first = self.cluster.primary()
        self.first.sql("create table written (client text, number int)")
        self.next = next(member["name"] for member in status["members"] if member["synchronous"])
        self.ports = [node.port for node in self.cluster.nodes]

    def libpq(self, kind):
        ports = ",".join(map(str, self.ports))
        return (f"host=127.0.0.1,127.0.0.1,127.0.0.1 port={ports} user=clearway dbname=postgres connect_timeout=2"
                f" target_session_attrs={kind}")

    def through(self, port):
        return f"host=127.0.0.1 port={port} user=clearway dbname=postgres connect_timeout=2"

    def psql(self, conninfo, statement):
        done = subprocess.run([tools.find("psql"), "-XAtqc", statement, conninfo], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def write(self, client, number, conninfo, seconds=30):
        """Writes by a connection of its own, as soon as there is one that can."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                with psycopg.connect(conninfo) as connection:
                    connection.execute("insert into written values (%s, %s)", (client, number))
                return
            except psycopg.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def await_proxy(self, seconds=30):
        """Waits until HAProxy has had its checks' answers: each node that it takes in turn is the right one."""
        deadline = time.monotonic() + seconds
        wanted = ["f"] * 3 + ["t"] * 3
        while True:
            ports = [self.proxy.primary] * 3 + [self.proxy.replicas] * 3
            found = [self.role_behind(port) for port in ports]
            if found == wanted:
                return
            if time.monotonic() > deadline:
                self.fail(f"HAProxy leads to nodes in recovery: {found}\n{self.proxy.last_log()}")
            time.sleep(0.2)

    def role_behind(self, port):
        try:
            with psycopg.connect(self.through(port)) as connection:
                return connection.execute("select pg_is_in_recovery()::text").fetchone()[0][0]
        except psycopg.Error as error:
            return str(error)

    def test_a_switchover(self):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        jdbc = subprocess.Popen(
            [*checked_tools.java(), drivers.HERE / "Failover.java", hosts], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        self.addCleanup(jdbc.kill)
        self.await_proxy()
        clients = {"psycopg": self.libpq("read-write"), "haproxy": self.through(self.proxy.primary)}
        for client, conninfo in clients.items():
            self.write(client, 1, conninfo)
        held = psycopg.connect(clients["haproxy"], autocommit=True)
        self.addCleanup(held.close)
        for kind, is_standby in [("primary", "f"), ("standby", "t"), ("prefer-standby", "t"), ("read-only", "t")]:
            self.assertEqual(self.psql(self.libpq(kind), "select pg_is_in_recovery()"), is_standby, kind)
        self.assertEqual([jdbc.stdout.readline().strip() for _ in range(2)], ["1", "t"])

        done = self.cluster.switchover(self.next)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.cluster.await_primary().name, self.next)
        with self.assertRaises(psycopg.Error):
            held.execute("insert into written values ('held', 1)")
        for client, conninfo in clients.items():
            self.write(client, 2, conninfo)
        said, _ = jdbc.communicate("go on\n", timeout=60)
        self.assertEqual((jdbc.returncode, said.split()), (0, ["gone", "2"]), said)
        written = self.psql(self.libpq("read-write"), "select client, number from written order by 1, 2")
        self.assertEqual(written.split(), [f"{client}|{n}" for client in ("haproxy", "jdbc", "psycopg") for n in (1, 2)])
        self.cluster.await_whole()
        self.await_proxy()
