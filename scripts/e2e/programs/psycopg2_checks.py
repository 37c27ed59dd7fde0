"""psycopg2: client-side parameters, COPY, named cursors, notifications, large parameters lists, extensions."""

import datetime
import decimal
import io
import select

import psycopg2
from psycopg2 import errors, extensions, extras, sql

from harness import check, keep, refused, serve


def connect(autocommit=True, **more):
    connection = keep(psycopg2.connect("", **more))
    connection.autocommit = autocommit
    return connection


def people(connection):
    cursor = connection.cursor()
    cursor.execute("create table people (id int primary key, name text, born date)")
    extras.execute_values(cursor, "insert into people values %s", [(n, f"name {n}", datetime.date(2000, 1, n)) for n in range(1, 21)])
    return cursor


@check
def types(see):
    cursor = connect().cursor()
    values = [1, 2**40, 2.5, decimal.Decimal("1.50"), "é'\\", True, None, b"\x00\xff", datetime.date(2024, 2, 29), datetime.time(1, 2, 3),
              datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.timedelta(days=2, seconds=3), [1, 2], ["a", None]]
    for value in values:
        cursor.execute("select %s", [value])
        see(cursor.fetchone()[0], cursor.description[0].type_code)


@check
def mogrify(see):
    cursor = connect().cursor()
    see(cursor.mogrify("select %s, %s", ["it's", [1, 2]]))
    cursor.execute("select * from (values (1, 'x'), (2, 'y')) v (a, b) where a in %s", [(1, 5)])
    see(cursor.fetchall())


@check
def execute_values_with_returning(see):
    cursor = people(connect())
    see(extras.execute_values(cursor, "insert into people (id, name) values %s returning id", [(n, "x") for n in range(100, 110)], page_size=4, fetch=True))


@check
def execute_batch(see):
    cursor = people(connect())
    extras.execute_batch(cursor, "update people set name = %s where id = %s", [(f"new {n}", n) for n in range(1, 21)], page_size=6)
    cursor.execute("select count(*) from people where name like 'new%'")
    see(cursor.fetchone())


@check
def dict_and_named_cursors_of_rows(see):
    connection = connect()
    people(connection)
    for factory in (extras.DictCursor, extras.RealDictCursor, extras.NamedTupleCursor):
        cursor = connection.cursor(cursor_factory=factory)
        cursor.execute("select id, name from people where id < 3 order by id")
        see(cursor.fetchall())


@check
def copy_expert(see):
    cursor = people(connect())
    cursor.copy_expert("copy people from stdin with csv", io.StringIO('50,"a,b",2001-01-01\n51,,\n'))
    out = io.StringIO()
    cursor.copy_expert("copy (select * from people where id >= 50 order by id) to stdout with (format csv, header, null '-')", out)
    see(out.getvalue())


@check
def copy_from_and_to(see):
    cursor = people(connect())
    cursor.copy_from(io.StringIO("60\tx\t\\N\n"), "people", columns=("id", "name", "born"))
    out = io.StringIO()
    cursor.copy_to(out, "people", columns=("id", "name"), sep="|")
    see(sorted(out.getvalue().splitlines())[-3:])


@check
def transactions(see):
    connection = connect(False)
    cursor = people(connection)
    connection.commit()
    cursor.execute("delete from people")
    connection.rollback()
    cursor.execute("select count(*) from people")
    see(cursor.fetchone(), connection.info.transaction_status)
    refused(see, cursor.execute, "select 1 / 0")
    refused(see, cursor.execute, "select 1")


@check
def savepoints(see):
    connection = connect(False)
    cursor = people(connection)
    cursor.execute("savepoint one")
    try:
        cursor.execute("insert into people values (1)")
    except errors.UniqueViolation as error:
        see(error.pgcode)
        cursor.execute("rollback to savepoint one")
    cursor.execute("select count(*) from people")
    see(cursor.fetchone())
    connection.commit()


@check
def sessions(see):
    connection = connect(False)
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    cursor = connection.cursor()
    cursor.execute("show transaction_isolation")
    see(cursor.fetchone())
    refused(see, cursor.execute, "create table t (n int)")


@check
def serializable_session(see):
    connection = connect(False)
    connection.set_session(isolation_level=extensions.ISOLATION_LEVEL_SERIALIZABLE)
    cursor = connection.cursor()
    cursor.execute("show transaction_isolation")
    see(cursor.fetchone())


@check
def named_cursor(see):
    connection = connect(False)
    people(connection)
    with connection.cursor("c", scrollable=True) as cursor:
        cursor.itersize = 7
        cursor.execute("select id from people order by id")
        see([row[0] for row in cursor])
        cursor.scroll(-3)
        see(cursor.fetchone())


@check
def notifications(see):
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("listen news")
    cursor.execute("notify news, 'payload'")
    select.select([connection], [], [], 2)
    connection.poll()
    see([(notice.channel, notice.payload) for notice in connection.notifies])


@check
def notices_of_the_server(see):
    connection = connect()
    connection.cursor().execute("drop table if exists nowhere; create schema if not exists public")
    see(connection.notices)


@check
def status_messages_and_counts(see):
    cursor = people(connect())
    for statement in ("update people set name = 'x' where id < 5", "delete from people where id < 5", "select * from people", "begin", "rollback", "truncate people"):
        cursor.execute(statement)
        see(cursor.statusmessage, cursor.rowcount)


@check
def sql_composition(see):
    connection = connect()
    cursor = people(connection)
    query = sql.SQL("select {} from {} where {} = %s").format(sql.Identifier("name"), sql.Identifier("people"), sql.Identifier("id"))
    see(query.as_string(connection))
    cursor.execute(query, [2])
    see(cursor.fetchone())


@check
def errors_as_classes(see):
    cursor = people(connect())
    for statement in ("insert into people values (1)", "select * from nowhere", "select nothing from people", "select 'x'::int", "insert into people (name) values ('x')"):
        refused(see, cursor.execute, statement)


@check
def uuid_and_json(see):
    import uuid

    connection = connect()
    extras.register_uuid(conn_or_curs=connection)
    cursor = connection.cursor()
    cursor.execute("select %s", [uuid.UUID(int=5)])
    see(cursor.fetchone())
    cursor.execute("select %s::jsonb, '[1]'::json", [extras.Json({"a": None})])
    see(cursor.fetchone())


@check
def hstore_is_looked_for(see):
    see(extras.HstoreAdapter.get_oids(connect()))


@check
def asynchronous_connection(see):
    def wait():
        while (state := connection.poll()) != extensions.POLL_OK:
            select.select([connection.fileno()] * (state == extensions.POLL_READ), [connection.fileno()] * (state == extensions.POLL_WRITE), [], 3)

    connection = keep(psycopg2.connect("", async_=True))
    wait()
    cursor = connection.cursor()
    cursor.execute("select generate_series(1, 3)")
    wait()
    see(cursor.fetchall())


@check
def cancel(see):
    import threading

    connection = connect()
    threading.Timer(0.3, connection.cancel).start()
    refused(see, connection.cursor().execute, "select pg_sleep(20)")


serve()
