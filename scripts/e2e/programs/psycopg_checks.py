"""psycopg 3: parameters and types in text and binary, COPY, pipelines, cursors, transactions, notices, adaptation."""

import datetime
import decimal
import ipaddress
import uuid

import psycopg
from psycopg import pq, rows, sql
from psycopg.types import json as types_json

from harness import check, keep, refused, serve

VALUES = {
    "smallint": 7, "int": -(2**31), "bigint": 2**62, "text": "naïve 🦀", "varchar(8)": "seven", "char(4)": "ab",
    "numeric": decimal.Decimal("-12345.6780"), "real": 1.5, "double precision": 2.1, "bool": True, "bytea": b"\x00\xff\\",
    "date": datetime.date(2024, 2, 29), "time": datetime.time(12, 30, 15, 250), "timestamp": datetime.datetime(2024, 2, 29, 12, 30, 15, 1),
    "timestamptz": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc), "interval": datetime.timedelta(days=3, seconds=4.5),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"), "int[]": [1, None, 3], "text[]": ["a", 'b"c', None], "oid": 12,
}


def connect(**more):
    more.setdefault("autocommit", True)
    return keep(psycopg.connect("", **more))


def people(connection):
    connection.execute("create table people (id int primary key, name text, height numeric)")
    connection.cursor().executemany("insert into people values (%s, %s, %s)", [(n, f"name {n}", n / 4) for n in range(1, 11)])
    return connection


@check
def connects(see):
    connection = connect()
    see(connection.info.parameter_status("server_encoding"), connection.info.parameter_status("integer_datetimes"))
    see(connection.info.server_version // 10000, connection.info.transaction_status, connection.info.encoding)


def types(see, binary):
    connection = connect()
    for kind, value in VALUES.items():
        mark = "%b" if binary else "%s"
        row = connection.execute(f"select {mark}::{kind} as v", [value], binary=binary)
        see(kind, row.fetchone()[0], row.description[0].type_code)


@check
def types_in_text(see):
    types(see, False)


@check
def types_in_binary(see):
    types(see, True)


@check
def nulls_and_untyped_parameters(see):
    connection = connect()
    see(connection.execute("select %s::text, %s, %s::int is null", [None, "x", None]).fetchone())
    see(connection.execute("select %(a)s + %(b)s as sum", {"a": 1, "b": 2}).fetchone())
    refused(see, connection.execute, "select %s + 1", ["x"])


@check
def json_and_jsonb(see):
    connection = connect()
    value = {"a": [1, 2.5, None, {"b": "é"}]}
    see(connection.execute("select %s::json, %s::jsonb", [types_json.Json(value), types_json.Jsonb(value)]).fetchone())
    see(connection.execute("select %s::jsonb -> 'a' ->> 1", [types_json.Jsonb(value)]).fetchone())


@check
def network_addresses(see):
    row = connect().execute("select %s, %s", [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_network("10.0.0.0/8")])
    see(row.fetchone(), [column.type_code for column in row.description])


@check
def special_dates(see):
    connection = connect()
    see(connection.execute("select 'infinity'::date::text, '-infinity'::timestamp::text").fetchone())
    refused(see, lambda: connection.execute("select 'infinity'::date").fetchone())


@check
def description(see):
    cursor = connect().execute("select 1::int as i, 'x'::varchar(5) as v, 1.5::numeric(6,2) as n, now() as t, array['a'] as l")
    for column in cursor.description:
        see(column.name, column.type_code, column.display_size, column.internal_size, column.precision, column.scale, column.type_display)


@check
def row_factories(see):
    connection = people(connect())
    for factory in (rows.dict_row, rows.namedtuple_row, rows.scalar_row):
        see(connection.cursor(row_factory=factory).execute("select id, name from people where id < 3 order by id").fetchall())


@check
def composed_sql(see):
    connection = people(connect())
    query = sql.SQL("select {columns} from {table} where {key} = {value}").format(
        columns=sql.SQL(", ").join(map(sql.Identifier, ["id", "name"])), table=sql.Identifier("public", "people"),
        key=sql.Identifier("id"), value=sql.Literal(3),
    )
    see(query.as_string(connection), connection.execute(query).fetchall())


@check
def many_rows_at_once(see):
    connection = people(connect())
    cursor = connection.cursor()
    cursor.executemany("insert into people values (%s, %s, 1) returning id", [(20, "a"), (21, "b")], returning=True)
    while True:
        see(cursor.fetchone(), cursor.statusmessage)
        if not cursor.nextset():
            break
    see(cursor.rowcount)


@check
def any_of_a_list(see):
    connection = people(connect())
    see(connection.execute("select id from people where id = any(%s) order by 1", [[1, 5, 99]]).fetchall())
    see(connection.execute("select id from people where name = any(%s) order by 1", [["name 2"]]).fetchall())


@check
def prepared_statements(see):
    connection = people(connect(prepare_threshold=2))
    for number in range(5):
        see(connection.execute("select name from people where id = %s", [number]).fetchone())
    see(connection.execute("select statement, parameter_types::text, from_sql from pg_prepared_statements order by name").fetchall())
    connection.execute("alter table people add column extra int")
    see(connection.execute("select * from people where id = %s", [1], prepare=True).fetchone())


@check
def copy_text(see):
    connection = people(connect())
    with connection.cursor().copy("copy people from stdin") as copy:
        copy.write_row((50, "tab\tand\\", None))
        copy.write_row((51, None, decimal.Decimal("0.5")))
    with connection.cursor().copy("copy (select * from people where id >= 50 order by id) to stdout") as copy:
        see(*copy.rows())


@check
def copy_csv(see):
    connection = people(connect())
    with connection.cursor().copy("copy (select * from people where id < 3 order by id) to stdout (format csv, header)") as copy:
        see(b"".join(copy))


@check
def copy_binary(see):
    connection = people(connect())
    with connection.cursor().copy("copy people from stdin (format binary)") as copy:
        copy.set_types(["int4", "text", "numeric"])
        copy.write_row((50, "fifty", decimal.Decimal("1.25")))
    with connection.cursor().copy("copy (select * from people where id >= 10 order by id) to stdout (format binary)") as copy:
        copy.set_types(["int4", "text", "numeric"])
        see(*copy.rows())


@check
def copy_that_fails(see):
    connection = people(connect())

    def twice():
        with connection.cursor().copy("copy people from stdin") as copy:
            copy.write_row((1, "again", None))

    def interrupted():
        with connection.cursor().copy("copy people from stdin") as copy:
            copy.write_row((90, "x", None))
            raise KeyError("mine")

    refused(see, twice)
    refused(see, interrupted)
    see(connection.execute("select count(*) from people").fetchone(), connection.info.transaction_status)


@check
def pipeline(see):
    connection = people(connect())
    with connection.pipeline() as pipeline:
        one = connection.execute("insert into people values (30, 'x', 1) returning id")
        two = connection.execute("select count(*) from people")
        pipeline.sync()
        see(one.fetchone(), two.fetchone())


@check
def pipeline_with_an_error(see):
    connection = people(connect())
    try:
        with connection.pipeline():
            connection.execute("insert into people values (30, 'x', 1)")
            connection.execute("insert into people values (30, 'twice', 1)")
            connection.execute("insert into people values (31, 'y', 1)")
    except psycopg.Error as error:
        see(error.sqlstate)
    see(connection.execute("select count(*) from people").fetchone(), connection.info.transaction_status)


@check
def transactions(see):
    connection = people(connect(autocommit=False))
    connection.commit()
    with connection.transaction():
        connection.execute("delete from people where id = 1")
    try:
        with connection.transaction():
            connection.execute("delete from people")
            raise KeyError("roll back")
    except KeyError:
        see("rolled back")
    see(connection.execute("select count(*) from people").fetchone(), connection.info.transaction_status)
    refused(see, connection.execute, "select 1 / 0")
    refused(see, connection.execute, "select 1")
    connection.rollback()


@check
def nested_transactions(see):
    connection = people(connect())
    with connection.transaction():
        connection.execute("delete from people where id = 1")
        try:
            with connection.transaction():
                connection.execute("delete from people where id = 2")
                connection.execute("select 1 / 0")
        except psycopg.errors.DivisionByZero as error:
            see(error.sqlstate)
        with connection.transaction(force_rollback=True):
            connection.execute("delete from people")
    see(connection.execute("select count(*) from people").fetchone())


@check
def isolation_and_read_only(see):
    connection = connect(autocommit=False)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    see(connection.execute("select current_setting('transaction_isolation'), current_setting('transaction_read_only')").fetchone())
    refused(see, connection.execute, "create table t (n int)")
    connection.rollback()


@check
def serializable(see):
    connection = connect(autocommit=False)
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    connection.deferrable = True
    see(connection.execute("show transaction_isolation").fetchone())


@check
def server_cursor(see):
    connection = people(connect(autocommit=False))
    with connection.cursor("named") as cursor:
        cursor.itersize = 3
        cursor.execute("select id from people order by id")
        see([row[0] for row in cursor])
    with connection.cursor("scrolling", scrollable=True) as cursor:
        cursor.execute("select id from people order by id")
        cursor.scroll(5)
        see(cursor.fetchmany(2))
        cursor.scroll(1, mode="absolute")
        see(cursor.fetchone())


@check
def cursor_with_hold(see):
    connection = people(connect())
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute("select id from people order by id")
        connection.execute("drop table people")
        see(cursor.fetchmany(3))


@check
def streaming(see):
    connection = people(connect())
    see([row[0] for row in connection.cursor().stream("select id from people where id > %s order by id", [4])])


@check
def error_fields(see):
    connection = people(connect())
    for statement in ("insert into people values (1)", "insert into people (name) values ('x')", "select nothing from people", "selec 1", "select 'x'::int"):
        try:
            connection.execute(statement)
        except psycopg.Error as error:
            d = error.diag
            see(type(error).__name__, d.sqlstate, d.severity, d.message_primary, d.message_detail, d.message_hint, d.statement_position,
                d.schema_name, d.table_name, d.column_name, d.constraint_name)


@check
def check_violation_fields(see):
    connection = connect()
    connection.execute("create table c (n int constraint positive check (n > 0))")
    try:
        connection.execute("insert into c values (-1)")
    except psycopg.errors.CheckViolation as error:
        see(error.diag.constraint_name, error.diag.table_name, error.diag.message_detail)


@check
def notices(see):
    connection = connect()
    connection.add_notice_handler(lambda notice: see(notice.severity, notice.sqlstate, notice.message_primary))
    connection.execute("drop table if exists missing")
    connection.execute("create table if not exists t (n int)")
    connection.execute("create table if not exists t (n int)")
    connection.execute("rollback")


@check
def listen_and_notify(see):
    connection, other = connect(), connect()
    connection.execute("listen news")
    other.execute("notify news, 'hello'")
    other.execute("select pg_notify('news', 'again')")
    for notification in connection.notifies(timeout=2, stop_after=2):
        see(notification.channel, notification.payload)


@check
def cancel(see):
    import threading

    connection = connect()
    threading.Timer(0.3, connection.cancel).start()
    refused(see, connection.execute, "select pg_sleep(20)")
    see(connection.execute("select 1").fetchone())


@check
def custom_enum(see):
    from psycopg.types.enum import EnumInfo, register_enum
    import enum

    connection = connect()
    connection.execute("create type mood as enum ('sad', 'ok')")
    info = EnumInfo.fetch(connection, "mood")
    register_enum(info, connection, enum.Enum("Mood", {"sad": "sad", "ok": "ok"}))
    see(info.labels, connection.execute("select 'ok'::mood").fetchone())


@check
def composite_type(see):
    from psycopg.types.composite import CompositeInfo, register_composite

    connection = connect()
    connection.execute("create type point3 as (x int, y int, label text)")
    register_composite(CompositeInfo.fetch(connection, "point3"), connection)
    see(connection.execute("select row(1, 2, 'a')::point3").fetchone())


@check
def ranges(see):
    from psycopg.types.range import Range

    see(connect().execute("select %s::int4range, int4range(1, 5) @> 3", [Range(1, 10)]).fetchone())


@check
def table_row_as_a_type(see):
    from psycopg.types.composite import CompositeInfo

    connection = people(connect())
    info = CompositeInfo.fetch(connection, "people")
    see(info.name, info.field_names)


@check
def two_phase_commit(see):
    connection = people(connect(autocommit=False))
    connection.commit()
    xid = connection.xid(1, "gtrid", "bqual")
    connection.tpc_begin(xid)
    connection.execute("delete from people")
    connection.tpc_prepare()
    see([str(one.gtrid) for one in connect().tpc_recover()])
    connection.tpc_rollback()
    see(connection.execute("select count(*) from people").fetchone())


@check
def advisory_locks(see):
    connection, other = connect(), connect()
    see(connection.execute("select pg_advisory_lock(5)").fetchone(), other.execute("select pg_try_advisory_lock(5)").fetchone())
    see(connection.execute("select pg_advisory_unlock(5)").fetchone(), other.execute("select pg_try_advisory_lock(5)").fetchone())


@check
def locked_rows(see):
    connection, other = people(connect(autocommit=False)), connect()
    connection.commit()
    connection.execute("select * from people where id = 1 for update")
    refused(see, other.execute, "select * from people where id = 1 for update nowait")
    see(other.execute("select id from people order by id for update skip locked limit 1").fetchone())
    connection.rollback()


@check
def big_values(see):
    connection = connect()
    connection.execute("create table big (t text, b bytea)")
    connection.execute("insert into big values (%s, %b)", ["x" * 100_000, bytes(100_000)])
    see(connection.execute("select length(t), length(b) from big").fetchone())


@check
def low_level_libpq(see):
    connection = people(connect()).pgconn
    result = connection.exec_params(b"select id, name from people where id = $1", [b"2"], param_types=[23])
    see(result.status == pq.ExecStatus.TUPLES_OK, result.get_value(0, 1), result.ftable(0) > 0, result.ftablecol(1), result.ftype(0), result.fmod(1), result.fsize(0))
    connection.prepare(b"p", b"select $1::int + 1")
    described = connection.describe_prepared(b"p")
    see(described.nparams, described.param_type(0), described.fname(0), described.ftype(0))


serve()
