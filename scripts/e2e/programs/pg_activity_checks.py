"""pg_activity: what its own library asks the server for each of its views, beside sessions that work and wait."""

import contextlib
import threading
import time

import psycopg
from pgactivity.data import Data

from harness import DATABASE, HOST, PORT, USER, check, keep, serve


def connect():
    data = Data.pg_connect(host=HOST, port=PORT, user=USER, database=DATABASE, min_duration=0)
    keep(data.pg_conn)
    return data


@contextlib.contextmanager
def one_waits_for_another():
    """Two sessions, the second of which waits for the first one's row."""
    with psycopg.connect("", application_name="holder") as holder, psycopg.connect("", autocommit=True, application_name="waiter") as waiter:
        holder.execute("create table locked (n int primary key, m int)")
        holder.execute("insert into locked values (1, 0)")
        holder.commit()
        holder.execute("update locked set m = 1")
        thread = threading.Thread(target=waiter.execute, args=("update locked set m = 2",))
        thread.start()
        time.sleep(0.5)
        try:
            yield
        finally:
            holder.rollback()
            thread.join()


@check
def version(see):
    data = connect()
    see(data.pg_num_version // 10000, data.server_encoding, data.pg_is_local())


@check
def server_information(see):
    information = connect().pg_get_server_information()
    see(information.active_connections, information.max_connections > 0, information.total_size > 0, information.uptime is not None, information.worker_processes, information.max_dbname_length)


@check
def running_queries(see):
    with one_waits_for_another():
        for process in connect().pg_get_activities():
            see(process.application_name, process.state, process.wait, process.query, process.database, process.user, process.client)


@check
def running_queries_by_age_of_transaction(see):
    with one_waits_for_another():
        see([process.application_name for process in connect().pg_get_activities(2)], [process.application_name for process in connect().pg_get_activities(3)])


@check
def waiting_queries(see):
    with one_waits_for_another():
        for process in connect().pg_get_waiting():
            see(process.application_name, process.mode, process.type, process.relation, process.query)


@check
def blocking_queries(see):
    with one_waits_for_another():
        for process in connect().pg_get_blocking():
            see(process.application_name, process.mode, process.type, process.relation, process.state, process.query)


@check
def replication(see):
    data = connect()
    see(data.pg_get_wal_senders(), data.pg_get_wal_receivers(), data.pg_get_replication_slots())


@check
def temporary_files(see):
    see(connect().pg_get_temporary_file())


@check
def cancel_and_terminate(see):
    data = connect()
    with psycopg.connect("", autocommit=True) as other:
        pid = other.info.backend_pid
        threading.Timer(0.3, data.pg_cancel_backend, [pid]).start()
        try:
            other.execute("select pg_sleep(3)")
        except psycopg.errors.QueryCanceled as error:
            see(error.sqlstate)
    with psycopg.connect("", autocommit=True) as other:
        see(data.pg_terminate_backend(other.info.backend_pid))
        time.sleep(0.2)
        try:
            other.execute("select 1")
        except psycopg.OperationalError as error:
            see(error.sqlstate)


serve()
