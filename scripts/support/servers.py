"""Servers on scratch directories. Each is ended by its process id, also when the script is interrupted."""

import atexit
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from . import postgres_programs, tools

_running = []


def _end_all(*_):
    for server in list(_running):
        server.kill()


atexit.register(_end_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


PORTS_GIVEN, GIVING = set(), threading.Lock()


def free_port():
    """A TCP port on which no server listens, and which no other thread has been given."""
    while True:
        with GIVING, socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if port not in PORTS_GIVEN:
                PORTS_GIVEN.add(port)
                return port


class Server:
    """A server process with a Unix-domain socket in `sockets`."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.sockets = self.directory / "s"
        self.sockets.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.process = None

    @property
    def address(self):
        """The environment by which client programs find this server."""
        return {}

    @property
    def sysbench_address(self):
        """The options by which sysbench finds this server."""
        raise NotImplementedError

    def environment(self, **more):
        """A whole environment for a client's process."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, **self.address, **more}

    def command(self):
        raise NotImplementedError

    def start(self, wait=60):
        """Starts the server and waits until it accepts a session."""
        with self.log.open("ab") as log:
            # A session of its own, as a service has: Linux shares CPUs out by session, and a server that shared one with
            # pgbench would be scheduled otherwise than PostgreSQL, whose processes leave it by themselves.
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.directory, start_new_session=True
            )
        _running.append(self)
        if wait:
            self.wait_until_ready(wait)
        return self

    def wait_until_ready(self, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self.answers():
                return
            time.sleep(0.02)
        raise RuntimeError(f"the server did not start:\n{self.last_log()}")

    def answers(self):
        """Whether a session can be opened."""
        raise NotImplementedError

    def last_log(self, lines=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def stop(self, seconds=60):
        """A clean shutdown."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the server did not stop in {seconds} s:\n{self.last_log()}") from None
        if self in _running:
            _running.remove(self)
        if code != 0:
            raise RuntimeError(f"the server stopped with code {code}:\n{self.last_log()}")

    def kill(self):
        """kill -9."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self in _running:
            _running.remove(self)

    def run(self, *command, check=True, seconds=300, text_in=None, **more):
        """Runs a client program against this server."""
        program = tools.find(command[0]) or command[0]
        done = subprocess.run(
            [program, *map(str, command[1:])],
            env=self.environment(**more),
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=seconds,
            input=text_in,
        )
        if check and done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}\n"
                f"server log:\n{self.last_log()}"
            )
        return done

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class LibpqServer(Server):
    """A server for PostgreSQL's clients."""

    user = "clearway"

    def __init__(self, directory):
        super().__init__(directory)
        self.port = free_port()

    @property
    def address(self):
        return {"PGHOST": str(self.sockets), "PGPORT": str(self.port), "PGUSER": self.user, "PGDATABASE": "postgres"}

    @property
    def sysbench_address(self):
        return {
            "db-driver": "pgsql", "pgsql-host": self.sockets, "pgsql-port": self.port, "pgsql-user": self.user,
            "pgsql-password": "none", "pgsql-db": "postgres",
        }

    def answers(self):
        run = subprocess.run(
            [tools.find("psql"), "-XAtqc", "select 1"], env=self.environment(), capture_output=True, text=True
        )
        return run.returncode == 0

    def sql(self, text):
        """Runs SQL through psql; the rows, fields joined by |."""
        done = self.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text)
        return done.stdout.removesuffix("\n")


class Clearway(LibpqServer):
    """`clearway serve`, with further options of its command line."""

    name = "clearway"

    def __init__(self, binary, directory, configuration="", options=()):
        super().__init__(directory)
        self.binary = binary
        self.options = options
        self.configuration = self.directory / "clearway.toml"
        self.configuration.write_text(configuration)

    def command(self):
        return [
            self.binary, "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port}",
            "--socket-dir", self.sockets, "--config", self.configuration, *self.options,
        ]


class Standby(Clearway):
    """`clearway standby`, which follows the server `primary` (or what listens on `port_of_primary`)."""

    name = "standby"

    def __init__(self, binary, directory, primary, configuration="", options=(), port_of_primary=None, application=None):
        super().__init__(binary, directory, configuration, options)
        self.primary_host = "127.0.0.1"
        self.primary_port = port_of_primary or primary.port
        self.application = application or "standby"

    def command(self):
        source = f"host={self.primary_host} port={self.primary_port} application_name={self.application}"
        return [
            self.binary, "standby", "--from", source, "--data", self.data, "--listen", f"127.0.0.1:{self.port}",
            "--socket-dir", self.sockets, "--config", self.configuration, *self.options,
        ]

    def serve(self):
        """The same directory and port as a server of its own: what it is after a promotion."""
        server = Clearway.__new__(Clearway)
        server.__dict__.update(self.__dict__)
        server.process = None
        return server


class Prompt:
    """A session that stays: statements in, rows out."""

    END = "(end)"

    def __init__(self, server):
        self.server = server
        self.process = subprocess.Popen(
            [tools.find("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"], env=server.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )

    def ask(self, text):
        self.process.stdin.write(f"{text}\n\\echo {self.END}\n")
        self.process.stdin.flush()
        rows = []
        for line in self.process.stdout:
            if line.strip() == self.END:
                return "\n".join(rows)
            rows.append(line.rstrip("\n"))
        raise RuntimeError(f"{self.server.name}: {text}\n{self.process.stderr.read()}\n{self.server.last_log()}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def position(text):
    """A position such as 0/1A2B as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def await_replay(primary, standby, seconds=60, by_way_of=()):
    """Waits until the standby has replayed what the primary has committed by now; how long that took, in seconds.

    `by_way_of`: the standbys between the two, whose output is shown too if it does not arrive.
    """
    wanted = position(primary.sql("select pg_current_wal_flush_lsn()"))
    began = time.monotonic()
    while True:
        reached = standby.sql("select pg_last_wal_replay_lsn()")
        if reached and position(reached) >= wanted:
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            logs = "\n".join(server.last_log() for server in (standby, *by_way_of))
            raise RuntimeError(f"the standby has replayed up to {reached}, not {wanted:x}, after {seconds} s:\n{logs}")
        time.sleep(0.02)


class Stub(LibpqServer):
    """`clearway stub-server`: answers constants."""

    name = "stub"

    def __init__(self, binary, directory):
        super().__init__(directory)
        self.binary = binary

    def command(self):
        return [self.binary, "stub-server", "--listen", f"127.0.0.1:{self.port}", "--socket-dir", self.sockets]


def without_rights(name, *directories):
    """The beginning of a command that runs as a user without rights, to whom the directories are given: `name`, or
    `nobody` where there is no such user. Empty, unless this is root, as whom database servers refuse to run."""
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam(name if name in names else "nobody")
    for directory in directories:
        shutil.chown(directory, user.pw_uid, user.pw_gid)
    return [tools.find("setpriv"), f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


class Postgres(LibpqServer):
    """PostgreSQL as packaged, of a major version that `postgres_programs` knows."""

    name = "postgres"
    user = "postgres"

    def __init__(self, directory, settings=(), version="15"):
        super().__init__(directory)
        self.version = version
        self.as_user = without_rights("postgres", self.directory, self.sockets)
        subprocess.run(
            [*self.as_user, postgres_programs.program(version, "initdb"), "-D", self.data, "-U", "postgres", "-A", "trust",
             "-E", "UTF8", "--no-locale"],
            check=True, stdout=subprocess.DEVNULL, cwd=self.directory,
        )
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write("listen_addresses = ''\n")
            configuration.write(f"unix_socket_directories = '{self.sockets}'\nport = {self.port}\n")
            for name, value in settings:
                configuration.write(f"{name} = '{value}'\n")

    def command(self):
        return [*self.as_user, postgres_programs.program(self.version, "postgres"), "-D", self.data]

    def kill(self):
        # The postmaster takes its children along when it is asked to; kill -9 would leave them for a moment.
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        super().kill()


class PostgresStandby(Postgres):
    """A standby of a PostgreSQL, of the same version. It is copied by the server's own functions, since pg_basebackup of
    Debian refuses a newer server, and the packages of those have none."""

    name = "standby"

    def __init__(self, directory, primary):
        LibpqServer.__init__(self, directory)
        self.version = primary.version
        session = Prompt(primary)
        session.ask("select pg_backup_start('standby', true);")
        shutil.copytree(primary.data, self.data, ignore=self.left_out)
        label = session.ask("select labelfile from pg_backup_stop();")
        session.close()
        (self.data / "backup_label").write_text(f"{label}\n")
        (self.data / "standby.signal").touch()
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write(f"primary_conninfo = 'host={primary.sockets} port={primary.port} user={primary.user}'\n")
            # Of each name the last line counts.
            configuration.write(f"unix_socket_directories = '{self.sockets}'\nport = {self.port}\n")
        self.data.chmod(0o700)
        self.as_user = without_rights("postgres", self.directory, self.sockets, self.data, *self.data.rglob("*"))

    @staticmethod
    def left_out(directory, names):
        """What a copy must not have: the log, which it is sent, and the number of the server's process."""
        inside = pathlib.Path(directory).name == "pg_wal"
        return [name for name in names if name == "postmaster.pid" or (inside and name != "archive_status")]


def processes(server):
    """The numbers of a server's process and of all its children."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may hold blanks.
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, left = [], [server.process.pid]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


@contextlib.contextmanager
def stopped(others):
    """Stops the processes of these servers meanwhile, so that none of them does its background work."""
    everything = [process for server in others for process in processes(server)]

    def tell(what):
        for process in everything:
            # One of them may have ended since.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, what)

    tell(signal.SIGSTOP)
    try:
        yield
    finally:
        tell(signal.SIGCONT)


# Directories that are to go when the script ends, or before.
_scratch = []


def scratch(prefix):
    """A directory that goes when the script ends, or with `remove_scratch`; readable for a server that runs as another user."""
    directory = tempfile.TemporaryDirectory(prefix=f"clearway-{prefix}-", ignore_cleanup_errors=True)
    os.chmod(directory.name, 0o755)
    atexit.register(directory.cleanup)
    # Registered last, run first: no server may still write into it.
    atexit.register(_end_all)
    _scratch.append(directory)
    return pathlib.Path(directory.name)


def remove_scratch():
    """Ends what runs and removes the directories made so far: those of a whole run are more than a disk may have left."""
    _end_all()
    while _scratch:
        _scratch.pop().cleanup()
