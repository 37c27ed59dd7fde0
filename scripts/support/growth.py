"""The curves of `scripts/compare-growth`: what grows, and what is measured at each of its sizes.

A curve brings a server to a size, which is never smaller than the one before, and has measures. A measure is a function of
a server and a size that returns a number. Nothing is made smaller again, so that a curve costs one filling.
"""

import contextlib
import pathlib
import random
import re
import resource
import socket
import struct
import time

from . import servers, tools

# Clients of the measures that do not vary them.
CLIENTS = 4
# Sessions that pgbench can open in a second, at least, on a machine with other work.
CONNECTED_A_SECOND = 200
# Rows inserted by one statement: progress on long work, and memory that does not grow with the table.
ROWS_AT_ONCE = 500_000
TABLES_AT_ONCE = 100


def pgbench(server, arguments, script, clients, *more, **environment):
    """Transactions a second of a script, prepared."""
    # pgbench counts the time in which it connects.
    seconds = arguments.duration + clients // CONNECTED_A_SECOND
    path = server.directory / "script.sql"
    path.write_text(script)
    done = server.run(
        "pgbench", "-n", "-M", "prepared", "-f", path, "-c", clients, "-T", seconds, *more, seconds=seconds + 300, **environment,
    )
    found = re.search(r"tps = ([0-9.]+) \(without", done.stdout)
    processed = re.search(r"transactions actually processed: ([0-9]+)", done.stdout)
    failed = re.search(r"number of failed transactions: ([0-9]+)", done.stdout)
    if processed and processed.group(1) == "0":
        # All of the time went into connecting, or into waiting for each other.
        return 0.0
    if not found or not failed or failed.group(1) != "0":
        raise RuntimeError(f"{server.name}: pgbench said\n{done.stdout}\n{done.stderr}")
    return float(found.group(1))


def memory_kib(server):
    """What the server's processes have for themselves, with their shares of what they share."""
    total = 0
    for process in servers.processes(server):
        with contextlib.suppress(OSError):
            rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(re.search(r"^Pss: +([0-9]+)", rollup, re.MULTILINE).group(1))
    return total


class Curve:
    """`unit`: of the sizes. `measures`: by name, the unit of a number, and the function, which returns None where it has
    nothing new to say in a further round."""

    def __init__(self, arguments):
        self.arguments = arguments

    def grow(self, server, size):
        """Brings the server to this size."""

    def beside(self, server):
        """The server with the others that belong to it: they stand still while another one is measured."""
        return [server]

    def end(self, server):
        """Gives back what the next curve must not find."""


class Rows(Curve):
    """Rows of one table with a primary key, under fixed buffers: key look-ups of random rows, and updates of them."""

    name, unit, sizes = "rows", "rows", [10_000, 100_000, 1_000_000, 10_000_000]

    def __init__(self, arguments):
        super().__init__(arguments)
        self.filled = {}
        self.measures = {"read": ("TPS", self.read), "update": ("TPS", self.update)}

    def grow(self, server, size):
        if server.name not in self.filled:
            server.sql("create table grown (id int primary key, number int, filler char(84))")
        first = self.filled.get(server.name, 0)
        for start in range(first, size, ROWS_AT_ONCE):
            last = min(start + ROWS_AT_ONCE, size)
            server.sql(f"insert into grown select g, 0, 'a row' from generate_series({start + 1}, {last}) g")
        self.filled[server.name] = size
        server.sql("vacuum analyze grown")
        server.sql("checkpoint")

    def read(self, server, size):
        return pgbench(
            server, self.arguments, f"\\set id random(1, {size})\nselect number from grown where id = :id;\n", CLIENTS
        )

    def update(self, server, size):
        return pgbench(
            server, self.arguments, f"\\set id random(1, {size})\nupdate grown set number = number + 1 where id = :id;\n",
            CLIENTS,
        )

    def end(self, server):
        server.sql("drop table grown")


def start_session(server):
    """A connection that has logged in and says nothing more."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(server.sockets / f".s.PGSQL.{server.port}"))
    words = b"".join(word.encode() + b"\0" for word in ("user", server.user, "database", "postgres")) + b"\0"
    connection.sendall(struct.pack("!ii", 8 + len(words), 196_608) + words)
    connection.settimeout(60)
    said = b""
    # ReadyForQuery: its type, its length of 5, and that there is no transaction.
    while not said.endswith(b"Z\0\0\0\x05I"):
        more = connection.recv(65_536)
        if not more or said.startswith(b"E"):
            raise RuntimeError(f"{server.name}: a session is refused: {(said + more)!r}")
        said += more
    return connection


class Idle(Curve):
    """Sessions that do nothing, beside a few that read; the memory of such a session."""

    name, unit, sizes = "idle", "idle sessions", [10, 100, 500, 1_000, 2_000]

    def __init__(self, arguments):
        super().__init__(arguments)
        self.sessions = {}
        self.before = {}
        self.measures = {"read": ("TPS", self.read), "memory": ("KiB a session", self.memory)}

    def grow(self, server, size):
        if server.name not in self.sessions:
            server.sql("create table few as select g as id, 0 as number from generate_series(1, 1000) g")
            server.sql("alter table few add primary key (id)")
            self.sessions[server.name] = []
            # What the first clients make the server keep is not an idle session's.
            self.read(server, 0)
            self.before[server.name] = memory_kib(server)
        sessions = self.sessions[server.name]
        while len(sessions) < size:
            sessions.append(start_session(server))

    def read(self, server, _):
        return pgbench(
            server, self.arguments, "\\set id random(1, 1000)\nselect number from few where id = :id;\n", CLIENTS
        )

    def memory(self, server, size):
        return (memory_kib(server) - self.before[server.name]) / size

    def end(self, server):
        for session in self.sessions.pop(server.name):
            session.close()
        server.sql("drop table few")


class Clients(Curve):
    """Clients that all work: key look-ups of random rows, and updates of them."""

    name, unit, sizes = "clients", "clients", [1, 4, 16, 64, 256, 1_000, 2_000]
    rows = 100_000

    def __init__(self, arguments):
        super().__init__(arguments)
        self.made = set()
        self.measures = {"read": ("TPS", self.read), "update": ("TPS", self.update)}

    def grow(self, server, size):
        if server.name not in self.made:
            server.sql(f"create table busy as select g as id, 0 as number from generate_series(1, {self.rows}) g")
            server.sql("alter table busy add primary key (id)")
            self.made.add(server.name)
        server.sql("vacuum busy")
        server.sql("checkpoint")

    def read(self, server, size):
        script = f"\\set id random(1, {self.rows})\nselect number from busy where id = :id;\n"
        return pgbench(server, self.arguments, script, size)

    def update(self, server, size):
        script = f"\\set id random(1, {self.rows})\nupdate busy set number = number + 1 where id = :id;\n"
        return pgbench(server, self.arguments, script, size)

    def end(self, server):
        server.sql("drop table busy")


class Waiters(Curve):
    """Clients that all update one row, without waiting for the disk."""

    name, unit, sizes = "waiters", "clients at one row", [1, 4, 16, 64, 256, 1_000, 2_000]

    def __init__(self, arguments):
        super().__init__(arguments)
        self.made = set()
        self.measures = {"update": ("TPS", self.update)}

    def grow(self, server, size):
        if server.name not in self.made:
            server.sql("create table hot (id int primary key, number int)")
            server.sql("insert into hot values (1, 0)")
            self.made.add(server.name)
        server.sql("vacuum hot")

    def update(self, server, size):
        before = int(server.sql("select number from hot"))
        rate = pgbench(
            server, self.arguments, "update hot set number = number + 1 where id = 1;\n", size,
            PGOPTIONS="-c synchronous_commit=off",
        )
        if rate > 0 and int(server.sql("select number from hot")) <= before:
            raise RuntimeError(f"{server.name}: the row has not changed")
        return rate

    def end(self, server):
        server.sql("drop table hot")


class Relations(Curve):
    """Tables with a primary key each: a key look-up in a random one of them, and how fast the last of them were made."""

    name, unit, sizes = "relations", "tables", [10, 100, 1_000, 10_000]

    def __init__(self, arguments):
        super().__init__(arguments)
        self.count = {}
        self.created = {}
        self.measures = {"read": ("TPS", self.read), "create": ("tables a second", self.create)}

    def grow(self, server, size):
        if server.name not in self.count:
            server.sql("create schema many")
        first = self.count.get(server.name, 0)
        session = servers.Prompt(server)
        began = time.monotonic()
        for start in range(first, size, TABLES_AT_ONCE):
            statements = " ".join(
                f"create table many.t{number} (id int primary key, number int); insert into many.t{number} values (1, 2);"
                for number in range(start, min(start + TABLES_AT_ONCE, size))
            )
            session.ask(f"begin; {statements} commit;")
        self.created[server.name] = (size - first) / (time.monotonic() - began)
        session.close()
        self.count[server.name] = size
        server.sql("checkpoint")

    def read(self, server, size):
        script = f"\\set table random(0, {size - 1})\nselect number from many.t:table where id = 1;\n"
        # A name of a table cannot be a parameter.
        return pgbench(server, self.arguments, script, CLIENTS, "-M", "simple")

    def create(self, server, _):
        return self.created.pop(server.name, None)

    def end(self, server):
        session = servers.Prompt(server)
        for start in range(0, self.count[server.name], TABLES_AT_ONCE):
            numbers = range(start, min(start + TABLES_AT_ONCE, self.count[server.name]))
            session.ask(f"drop table {', '.join(f'many.t{number}' for number in numbers)};")
        session.ask("drop schema many;")
        session.close()


class Log(Curve):
    """Bytes that a transaction adds to the log: rows with a text of this size, which is stored as it is."""

    name, unit, sizes = "log", "bytes a transaction", [100, 1_000, 10_000, 100_000, 1_000_000]

    def __init__(self, arguments):
        super().__init__(arguments)
        self.made = set()
        self.measures = {"insert": ("TPS", self.insert)}

    def grow(self, server, size):
        if server.name not in self.made:
            server.sql("create table logged (text text)")
            server.sql("alter table logged alter column text set storage external")
            self.made.add(server.name)
        server.sql("truncate logged")
        server.sql("checkpoint")

    def insert(self, server, size):
        text = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=min(size, 1_000)))
        times = max(size // 1_000, 1)
        rate = pgbench(server, self.arguments, f"insert into logged values (repeat('{text}', {times}));\n", CLIENTS)
        server.sql("truncate logged")
        return rate

    def end(self, server):
        server.sql("drop table logged")


class Standby(Curve):
    """Clients that update rows of a server with a standby on the same machine: what the standby has still to replay when
    they end, and how long that takes it. Both are seen by psql, which takes some milliseconds."""

    name, unit, sizes = "standby", "clients", [1, 4, 16, 64]
    rows = 100_000

    def __init__(self, arguments):
        super().__init__(arguments)
        self.standbys = {}
        self.behind = {}
        self.measures = {
            "update": ("TPS", self.update), "lag": ("MB", self.lag), "catching up": ("s", self.catching_up),
        }

    def grow(self, server, size):
        if server.name in self.standbys:
            return
        server.sql(f"create table followed as select g as id, 0 as number from generate_series(1, {self.rows}) g")
        server.sql("alter table followed add primary key (id)")
        directory = server.directory.with_name(f"{server.directory.name}-standby")
        directory.mkdir()
        if isinstance(server, servers.Postgres):
            standby = servers.PostgresStandby(directory, server)
        else:
            standby = servers.Standby(server.binary, directory, server, server.configuration.read_text(), server.options)
        self.standbys[server.name] = standby.start()
        servers.await_replay(server, standby)

    def beside(self, server):
        return [server, self.standbys[server.name]]

    def update(self, server, size):
        script = f"\\set id random(1, {self.rows})\nupdate followed set number = number + 1 where id = :id;\n"
        rate = pgbench(server, self.arguments, script, size)
        standby = self.standbys[server.name]
        written = servers.position(server.sql("select pg_current_wal_flush_lsn()"))
        replayed = servers.position(standby.sql("select pg_last_wal_replay_lsn()"))
        self.behind[server.name] = max(written - replayed, 0) / 1e6, servers.await_replay(server, standby, seconds=600)
        return rate

    def lag(self, server, _):
        return self.behind[server.name][0]

    def catching_up(self, server, _):
        return self.behind[server.name][1]

    def end(self, server):
        self.standbys.pop(server.name).kill()
        server.sql("drop table followed")


CURVES = {curve.name: curve for curve in (Rows, Idle, Clients, Waiters, Relations, Log, Standby)}
NEEDS = ["psql", "pgbench", "setpriv"]


def need():
    """Installs what the curves need, and raises the limit of open files for two thousand sessions."""
    tools.need(*NEEDS)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
