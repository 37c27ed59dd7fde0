"""etcd's processes, and the nodes of a cluster beside them, with a gate on each link that an experiment closes."""

import hashlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

from . import gate, servers, tools

TTL_SECONDS = 3
CONFIGURATION = (
    'shared_buffers = "8MB"\nmax_wal_size = "64MB"\nwal_keep_size = "256MB"\n'
    'wal_receiver_timeout = "4s"\nwal_sender_timeout = "4s"\n'
)


class Process:
    """A program that is killed, stopped and started again."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.log = self.directory / "log"
        self.process = None
        self.is_stopped = False

    def command(self):
        raise NotImplementedError

    def environment(self):
        return os.environ

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                start_new_session=True, env=self.environment(),
            )
        servers._running.append(self)
        return self

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.is_stopped = False
        if self in servers._running:
            servers._running.remove(self)

    def stop(self):
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def last_log(self, lines=25):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


class Open:
    """A cluster without encryption and passwords, on loopback addresses."""

    scheme = "http"
    etcd_options = ()
    etcd_client_options = ()
    node_options = ()
    configuration = ""

    def addresses(self, port, replication):
        """Options of a node that listens on `port`, and that others follow through the port `replication`."""
        return ["--listen", f"127.0.0.1:{port}", "--advertise", f"host=127.0.0.1 port={replication} user=clearway"]


class Etcd(Process):
    """A member of etcd. Others reach it through a gate, which knows them."""

    def __init__(self, name, directory, access):
        super().__init__(name, directory)
        self.client_port, self.peer_port = servers.free_port(), servers.free_port()
        self.members, self.access = [], access
        self.peers = gate.Gate(("127.0.0.1", self.peer_port))

    def join(self, members):
        self.members = members
        self.peers.marks = {member.name: f"X-Server-From: {member.id():x}\r\n".encode() for member in members}

    def url(self):
        """The address by which others reach it."""
        return f"http://127.0.0.1:{self.peers.port}"

    def id(self):
        """Its number in the cluster: etcd makes it of its address and the cluster's name."""
        return int.from_bytes(hashlib.sha1((self.url() + "etcd-cluster").encode()).digest()[:8], "big")

    def cut_from(self, others):
        """No byte passes between it and these members."""
        self.peers.closed_for = {other.name for other in others}
        for other in others:
            other.peers.closed_for = other.peers.closed_for | {self.name}

    def command(self):
        client = f"{self.access.scheme}://127.0.0.1:{self.client_port}"
        members = ",".join(f"{member.name}={member.url()}" for member in self.members)
        return [
            tools.find("etcd"), "--name", self.name, "--data-dir", str(self.directory / "data"),
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", f"http://127.0.0.1:{self.peer_port}", "--initial-advertise-peer-urls", self.url(),
            "--initial-cluster", members, "--initial-cluster-token", "etcd-cluster", "--auto-compaction-retention", "1",
            "--pre-vote", *self.access.etcd_options,
        ]

    def leader(self):
        """The number of the leader of the etcd cluster, as far as it knows; 0 if it knows none."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.client_port, timeout=0.5)
            connection.request("POST", "/v3/maintenance/status", "{}")
            return int(json.loads(connection.getresponse().read()).get("leader", 0))
        except (OSError, ValueError, http.client.HTTPException):
            return 0

    def leads(self):
        return self.leader() == self.id()


class Node(Process):
    """`clearway node`."""

    def __init__(self, cluster, name, directory):
        super().__init__(name, directory)
        self.cluster = cluster
        self.port, self.checks = servers.free_port(), servers.free_port()
        self.data = self.directory / "data"
        self.configuration = self.directory / "clearway.toml"
        self.configuration.write_text(cluster.configuration + cluster.access.configuration)
        # What others follow it through, and what it reaches each etcd through.
        self.replication = gate.Gate(("127.0.0.1", self.port), cluster.names)
        self.to_etcd = [gate.Gate(("127.0.0.1", etcd.client_port)) for etcd in cluster.etcds]

    def command(self):
        access = self.cluster.access
        endpoints = ",".join(f"{access.scheme}://127.0.0.1:{link.port}" for link in self.to_etcd)
        return [
            self.cluster.binary, "node", "--etcd", endpoints, "--cluster", "test", "--name", self.name,
            "--data", self.data, "--checks", f"127.0.0.1:{self.checks}", "--ttl", f"{TTL_SECONDS}s",
            "--synchronous", str(self.cluster.synchronous), "--config", self.configuration,
            *access.addresses(self.port, self.replication.port), *access.etcd_client_options, *access.node_options,
        ]

    def check(self, path):
        """The status of a check, or None without an answer."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.checks, timeout=0.5)
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None

    def sql(self, statement):
        """The answer of psql."""
        done = subprocess.run(
            [tools.find("psql"), "-XAtc", statement, "-h", "127.0.0.1", "-p", str(self.port), "-U", "clearway", "postgres"],
            capture_output=True, text=True, timeout=60,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{statement}: {done.stderr}\n{self.last_log()}")
        return done.stdout.strip()

    def await_sql(self, statement, wanted, seconds=30):
        """Waits until the statement has this answer."""
        deadline = time.monotonic() + seconds
        while (answer := self.sql(statement)) != wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{statement}: {answer!r} after {seconds} s\n{self.last_log()}")
            time.sleep(0.05)

    def says(self, words):
        """True if its output has these words."""
        return words in self.log.read_text(errors="replace")

    def environment(self):
        return {**os.environ, **self.cluster.preloaded, "SLOW_DISK": str(self.directory / "slow")}

    def slow_down(self, is_slow):
        """Each sync takes 400 ms more, in a cluster whose disks can be slow."""
        mark = self.directory / "slow"
        if is_slow:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    def cut_from_etcd(self, is_cut):
        for link in self.to_etcd:
            link.closed_for = {None} if is_cut else set()


class Cluster:
    """Nodes and etcd's members, all on this machine."""

    def __init__(self, directory, names=("alice", "berlin", "cairo"), etcds=3, synchronous=1, configuration=CONFIGURATION,
                 access=Open()):
        self.binary, self.access = tools.build(), access
        self.names, self.synchronous, self.configuration = names, synchronous, configuration
        self.etcds = [Etcd(f"etcd{number}", directory / f"etcd{number}", access) for number in range(1, etcds + 1)]
        for etcd in self.etcds:
            etcd.join(self.etcds)
            etcd.start()
        self.preloaded = {}
        self.nodes = [Node(self, name, directory / name) for name in names]

    def have_slow_disks(self, directory):
        """Disks can be slow from each node's next start on."""
        library = directory / "slow_disk.so"
        source = pathlib.Path(__file__).with_name("slow_disk.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
        self.preloaded = {"LD_PRELOAD": str(library)}

    def start(self):
        for node in self.nodes:
            node.start()

    def await_etcd(self, seconds=30):
        """Waits until each member of etcd listens."""
        deadline = time.monotonic() + seconds
        for etcd in self.etcds:
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", etcd.client_port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                raise RuntimeError(f"{etcd.name} does not listen after {seconds} s\n{etcd.last_log()}")

    def start_others(self):
        """Starts the nodes that have never run."""
        for node in self.nodes:
            if node.process is None:
                node.start()

    def operate(self, *words, seconds=30):
        """`clearway cluster`, ended."""
        command = [self.binary, "cluster", *words, "--etcd", self.endpoints(), "--cluster", "test"]
        command += self.access.etcd_client_options
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds)

    def endpoints(self):
        """Of etcd, without a gate."""
        return ",".join(f"{self.access.scheme}://127.0.0.1:{etcd.client_port}" for etcd in self.etcds)

    def status(self):
        """What `clearway cluster status --json` says, or None while etcd does not answer."""
        done = self.operate("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def switchover(self, to):
        return self.operate("switchover", "--to", to, seconds=120)

    def primary(self):
        """The node whose check says that it is the primary, or None."""
        found = [node for node in self.nodes if not node.is_stopped and node.check("/primary") == 200]
        return found[0] if found else None

    def await_primary(self, seconds=30):
        """The node that leads, once there is one."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            primary = self.primary()
            if primary is not None:
                return primary
            time.sleep(0.05)
        raise RuntimeError(f"no node leads after {seconds} s\n{self.logs()}")

    def await_role(self, node, role, seconds=30):
        """Waits until the node tells the others that this is its role."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            members = (self.status() or {}).get("members", [])
            if any(member["name"] == node.name and member["role"] == role for member in members):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{node.name} is not {role} after {seconds} s\n{self.logs()}")

    def heal(self):
        """All processes run, and all links are open."""
        for process in [*self.etcds, *self.nodes]:
            if process.is_stopped:
                process.go_on()
            if process.process.poll() is not None:
                process.start()
        for node in self.nodes:
            node.cut_from_etcd(False)
            node.replication.closed_for = set()
            node.slow_down(False)
        for etcd in self.etcds:
            etcd.peers.closed_for = set()

    def await_whole(self, seconds=60):
        """Waits until a node leads, the others follow it, and one of them is synchronous. The status."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.status()
            members = (status or {}).get("members", [])
            roles = sorted(member["role"] for member in members if member["age_s"] <= TTL_SECONDS)
            wanted = ["leader"] + ["standby"] * (len(self.nodes) - 1)
            if roles == wanted and sum(member["synchronous"] for member in members) >= self.synchronous:
                primary = self.primary()
                if primary is not None and primary.name == status["leader"]["name"]:
                    return status
            time.sleep(0.1)
        raise RuntimeError(f"the cluster is not whole after {seconds} s: {json.dumps(status)}\n{self.logs()}")

    def logs(self):
        return "\n".join(f"--- {node.name}\n{node.last_log()}" for node in self.nodes)

    def kill(self):
        for process in [*self.nodes, *self.etcds]:
            process.kill()
