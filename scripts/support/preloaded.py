"""Unmodified programs of Debian, alone or with a library under their locks: each does a piece of work, whose result is checked,
and says how much of it a second it did."""

import contextlib
import hashlib
import pathlib
import random
import re
import socket
import subprocess
import threading
import time

from . import servers, sysbench, tools
from .mariadb import Mariadb

CLIENTS = 16
# Steps of lock_pairs that take about as long, and those with which it does nothing but lock.
MICROSECOND = 500
NOTHING = -1


def preloading(library, latch):
    """The words in front of a command that put `latch` under its locks; none without one."""
    return ["env", f"LD_PRELOAD={library}", f"CLEARWAY_LATCH={latch}"] if latch else []


class WrongResult(Exception):
    """A program's result was another one under the library."""


def must(condition, what):
    if not condition:
        raise WrongResult(what)


class Compressor:
    """A program that reads a file and writes another one, always the same."""

    def __init__(self, scratch, smoke, command):
        self.command = command
        tools.need(command[0])
        self.text = scratch / "text"
        if not self.text.exists():
            # Words, some of them often: what compresses, and has equal lines to sort.
            numbers = random.Random(9)
            lines = (f"{int(numbers.paretovariate(0.3)) % 100_000:x} {numbers.random():.4f}\n"
                     for _ in range(20_000 if smoke else 400_000))
            self.text.write_text("".join(lines))
        self.digest = None

    def measure(self, before):
        began = time.perf_counter()
        with self.text.open("rb") as text:
            done = subprocess.run([*before, *self.command], stdin=text, stdout=subprocess.PIPE, check=True)
        took = time.perf_counter() - began
        digest = hashlib.sha256(done.stdout).digest()
        must(self.digest in (None, digest), "other bytes")
        self.digest = digest
        return self.text.stat().st_size / took


class Pairs:
    """Acquisitions of one lock by a program of ours."""

    def __init__(self, scratch, smoke, kind, threads, steps=0):
        self.program = scratch / "lock_pairs"
        self.arguments = [kind, str(threads), "20" if smoke else "300", str(steps)]
        if not self.program.exists():
            source = pathlib.Path(__file__).with_name("lock_pairs.c")
            subprocess.run(["cc", "-O2", "-pthread", "-o", self.program, source], check=True)

    def measure(self, before):
        done = subprocess.run([*before, self.program, *self.arguments], capture_output=True, text=True)
        must(done.returncode == 0, done.stdout + done.stderr)
        return float(done.stdout)


class Memory(servers.Server):
    """A server that keeps values in memory, of one round."""

    def __init__(self, directory, command):
        super().__init__(directory)
        self.port = servers.free_port()
        self.words = [word.format(port=self.port, directory=directory) for word in command]

    def command(self):
        return self.words

    def answers(self):
        with contextlib.suppress(OSError), self.connection():
            return True
        return False

    def connection(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)


def add_together(server, add, count):
    """Each of several clients adds one, `count` times."""
    def adds():
        with server.connection() as connection, connection.makefile("rb") as answers:
            for _ in range(count):
                connection.sendall(add)
                said.append(answers.readline())
    said = []
    clients = [threading.Thread(target=adds) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    numbers = sorted(int(line.strip().lstrip(b":")) for line in said)
    must(numbers == list(range(1, 4 * count + 1)), f"{len(set(numbers))} of {4 * count} additions")


class KeyValue:
    """A key-value server and its load generator."""

    def __init__(self, scratch, smoke):
        tools.need(*self.programs)
        self.scratch, self.smoke, self.round = scratch, smoke, 0

    def prepare(self, server):
        """Makes what is added to, if the server does not."""

    def measure(self, before):
        self.round += 1
        directory = self.scratch / f"{self.programs[0]}-{self.round}"
        server = Memory(directory, [*before, *self.words]).start()
        try:
            self.prepare(server)
            add_together(server, self.add, 20 if self.smoke else 500)
            return self.load(server)
        finally:
            server.stop()


class Memcached(KeyValue):
    programs = ["memcached", "memcslap"]
    words = ["memcached", "-l", "127.0.0.1", "-p", "{port}", "-t", "4", "-u", "nobody"]
    add = b"incr count 1\r\n"

    def prepare(self, server):
        with server.connection() as connection, connection.makefile("rb") as answers:
            connection.sendall(b"set count 0 0 1\r\n0\r\n")
            must(answers.readline() == b"STORED\r\n", "a value that is not stored")

    def load(self, server):
        each = 100 if self.smoke else 6_000
        said = server.run("memcslap", f"--servers=127.0.0.1:{server.port}", f"--concurrency={CLIENTS}",
                          f"--execute-number={each}", "--test=set").stdout
        found = re.search(r"Time to set +([0-9]+) keys by +[0-9]+ threads: +([0-9.]+) seconds", said)
        must(found and int(found[1]) == CLIENTS * each, said)
        return int(found[1]) / float(found[2])


class Redis(KeyValue):
    programs = ["redis-server", "redis-benchmark"]
    words = ["redis-server", "--port", "{port}", "--save", "", "--io-threads", "2", "--io-threads-do-reads", "yes"]
    add = b"INCR count\r\n"

    def load(self, server):
        said = server.run("redis-benchmark", "-p", server.port, "-n", 200 if self.smoke else 40_000,
                          "-c", CLIENTS, "-t", "set", "--csv").stdout
        found = re.search(r'"SET","([0-9.]+)"', said)
        must(found, said)
        return float(found[1])


class PreloadedMariadb(Mariadb):
    """MariaDB with a library under its locks, or none."""

    before = ()

    def command(self):
        words = super().command()
        return [*words[: len(self.as_user)], *self.before, *words[len(self.as_user):]]


class Sysbench:
    """MariaDB under sysbench: so many updates, each of which adds one to a row."""

    ROWS = {"tables": 2, "table-size": 10_000}

    def __init__(self, scratch, smoke):
        tools.need("sysbench", "mariadbd", "mariadb-install-db", "my_print_defaults", "mariadb", "setpriv")
        (scratch / "mariadb").mkdir()
        # Commits that do not wait for the disk: its time is not that of locks.
        self.server = PreloadedMariadb(scratch / "mariadb", [("innodb-flush-log-at-trx-commit", 0)])
        self.events = 200 if smoke else 10_000
        self.server.start()
        sysbench.run(self.server, "oltp_update_index", "prepare", **self.ROWS)
        self.server.stop()

    def sum(self):
        asked = "+".join(f"(select sum(k) from sbtest{table + 1})" for table in range(self.ROWS["tables"]))
        said = self.server.run("mariadb", f"--socket={self.server.socket}", "--user=root", "--batch", "--skip-column-names",
                               "test", f"--execute=select {asked}").stdout
        return int(said)

    def measure(self, before):
        self.server.before = before
        self.server.start()
        try:
            at_first = self.sum()
            said = sysbench.run(self.server, "oltp_update_index", "run", 600, **self.ROWS,
                                **{"threads": CLIENTS, "time": 0, "events": self.events, "percentile": 99})
            added = self.sum() - at_first
            must(added == self.events, f"{self.events} updates have added {added}")
            return sysbench.measured(said).tps
        finally:
            self.server.stop()


PROGRAMS = {
    "one mutex, 1 thread": lambda *scratch: Pairs(*scratch, "m", 1, NOTHING),
    "one recursive mutex, 1 thread": lambda *scratch: Pairs(*scratch, "c", 1, NOTHING),
    "one rwlock, 1 reader": lambda *scratch: Pairs(*scratch, "r", 1, NOTHING),
    "one rwlock, 1 writer": lambda *scratch: Pairs(*scratch, "w", 1, NOTHING),
    "one mutex, 2 threads": lambda *scratch: Pairs(*scratch, "m", 2),
    "one mutex, 8 threads": lambda *scratch: Pairs(*scratch, "m", 8),
    "one mutex, 32 threads": lambda *scratch: Pairs(*scratch, "m", 32),
    "one mutex for 1 us, 2 threads": lambda *scratch: Pairs(*scratch, "m", 2, MICROSECOND),
    "one mutex for 1 us, 8 threads": lambda *scratch: Pairs(*scratch, "m", 8, MICROSECOND),
    "one mutex for 1 us, 32 threads": lambda *scratch: Pairs(*scratch, "m", 32, MICROSECOND),
    "one rwlock, 8 readers": lambda *scratch: Pairs(*scratch, "r", 8),
    "one rwlock, 8 writers": lambda *scratch: Pairs(*scratch, "w", 8),
    "pigz -p 4": lambda *scratch: Compressor(*scratch, ["pigz", "-n", "-p", "4", "-2", "-c"]),
    "xz -T 4": lambda *scratch: Compressor(*scratch, ["xz", "-T", "4", "-0", "--block-size=256KiB", "-c"]),
    "sort --parallel=4": lambda *scratch: Compressor(*scratch, ["sort", "--parallel=4", "-S", "256M"]),
    "memcached": Memcached,
    "redis": Redis,
    "mariadb": Sysbench,
}
