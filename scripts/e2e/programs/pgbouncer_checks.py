"""PgBouncer between clients and the server: pooling by session, transaction and statement, its console, its queries."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

import psycopg

from harness import DATABASE, HOST, PORT, USER, check, command, keep, refused, serve


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def bouncer(mode, *more):
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        os.chmod(place, 0o777)
        port = free_port()
        (place / "users").write_text(f'"{USER}" "none"\n')
        lines = [
            "[databases]", f"* = host=127.0.0.1 port={PORT}", "[pgbouncer]", "listen_addr = 127.0.0.1", f"listen_port = {port}", "unix_socket_dir =",
            "auth_type = trust", f"auth_file = {place / 'users'}", f"pool_mode = {mode}", "default_pool_size = 3", f"admin_users = {USER}",
            f"logfile = {place / 'log'}", "ignore_startup_parameters = extra_float_digits,options", *more,
        ]
        (place / "pgbouncer.ini").write_text("\n".join(lines) + "\n")
        as_user = ["-u", "nobody"] if os.geteuid() == 0 else []
        process = subprocess.Popen(["/usr/sbin/pgbouncer", "-q", *as_user, str(place / "pgbouncer.ini")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            process.kill()
            process.wait()


def connect(port, **more):
    return keep(psycopg.connect(host="127.0.0.1", port=port, user=USER, dbname=more.pop("dbname", DATABASE), autocommit=True, prepare_threshold=None, **more))


def bench(see, port, *options):
    command("pgbench", "-i", "-q")
    for line in command("pgbench", "-n", "-h", "127.0.0.1", "-p", port, *options):
        if re.match("number of (transactions|failed)|exit code|pgbench: error", line):
            see(line)
    see(*command("psql", "-XAtqc", "select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts) from pgbench_history"))


@check
def session_pooling(see):
    with bouncer("session") as port:
        bench(see, port, "-c", 3, "-t", 40, "-M", "prepared")


@check
def transaction_pooling(see):
    with bouncer("transaction") as port:
        bench(see, port, "-c", 10, "-t", 30)
        bench(see, port, "-c", 10, "-t", 30, "-M", "extended")


@check
def statement_pooling(see):
    with bouncer("statement") as port:
        connection = connect(port)
        see(connection.execute("select 1").fetchone())
        refused(see, connection.execute, "begin")


@check
def settings_are_reset(see):
    with bouncer("session", "default_pool_size = 1") as port:
        with connect(port) as connection:
            connection.execute("set work_mem = '1MB'")
            connection.execute("create temp table mine (n int)")
        see(connect(port).execute("select current_setting('work_mem'), to_regclass('mine')").fetchone())


@check
def connections_are_few(see):
    with bouncer("transaction") as port:
        clients = [connect(port) for _ in range(20)]
        for client in clients:
            client.execute("select 1")
        see(clients[0].execute("select count(*) <= 3 from pg_stat_activity where application_name like '%crowd%' or backend_type = 'none'").fetchone())


@check
def console(see):
    with bouncer("transaction") as port:
        client = connect(port)
        client.execute("select 1")
        for word in ("pools", "databases", "servers", "clients", "stats"):
            lines = command("psql", "-XAt", "-h", "127.0.0.1", "-p", port, "-d", "pgbouncer", "-c", f"show {word}")
            see(word, len(lines) > 0, any("exit code" in line for line in lines))


@check
def authentication_by_query(see):
    with bouncer("session", "auth_query = select usename, passwd from pg_shadow where usename = $1", f"auth_user = {USER}") as port:
        see(connect(port).execute("select current_user").fetchone())


@check
def reload_and_pause(see):
    with bouncer("transaction") as port:
        client = connect(port)
        client.execute("select 1")
        for word in ("pause", "resume", "reload", "reconnect"):
            see(word, *command("psql", "-XAt", "-h", "127.0.0.1", "-p", port, "-d", "pgbouncer", "-c", word))
        see(client.execute("select 2").fetchone())


@check
def server_restart_is_noticed(see):
    with bouncer("transaction", "server_check_query = select 1", "server_check_delay = 0") as port:
        client = connect(port)
        see([client.execute("select 1").fetchone() for _ in range(3)])


@check
def application_name_and_options(see):
    with bouncer("session") as port:
        see(connect(port, application_name="mine").execute("show application_name").fetchone(), connect(port, client_encoding="UTF8").execute("show client_encoding").fetchone())


serve()
