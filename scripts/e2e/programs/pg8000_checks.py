"""pg8000: a driver in Python alone, with its two interfaces, DB-API and native."""

import datetime
import decimal
import io

import pg8000.dbapi
import pg8000.native

from harness import DATABASE, PORT, USER, check, keep, serve

ADDRESS = {"user": USER, "host": "127.0.0.1", "port": PORT, "database": DATABASE, "password": "none"}


def native():
    return keep(pg8000.native.Connection(**ADDRESS))


def people():
    connection = native()
    connection.run("create table people (id int primary key, name text)")
    connection.run("insert into people select n, 'name ' || n from generate_series(1, 10) n")
    return connection


def refused(see, work, *arguments, **more):
    try:
        work(*arguments, **more)
    except pg8000.exceptions.DatabaseError as error:
        fields = error.args[0]
        see("refused", fields["C"], fields["M"], fields.get("D"), fields.get("P"))


@check
def types(see):
    connection = native()
    for kind, value in {"int": 5, "bigint": 2**40, "numeric": decimal.Decimal("1.50"), "text": "é'", "bool": False, "bytea": b"\x00\x01",
                        "date": datetime.date(2024, 2, 29), "timestamp": datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "float8": 2.5,
                        "interval": datetime.timedelta(days=1, seconds=2), "int[]": [1, None], "text[]": ["a,b", "c"]}.items():
        see(kind, connection.run(f"select cast(:v as {kind})", v=value), connection.columns[0]["type_oid"])


@check
def json_values(see):
    see(native().run("select cast(:v as jsonb), cast('[1]' as json)", v={"a": [1, None]}))


@check
def uuid_and_network(see):
    see(native().run("select cast('12345678-1234-5678-1234-567812345678' as uuid)"))
    see(native().run("select cast('10.0.0.1' as inet)"))


@check
def prepared(see):
    statement = people().prepare("select name from people where id = :id")
    see(statement.run(id=1), statement.run(id=2), statement.run(id=99))
    statement.close()


@check
def columns(see):
    connection = people()
    connection.run("select id, name as n from people where id = 1")
    see([(column["name"], column["type_oid"], column["type_size"], column["column_attrnum"], column["format"]) for column in connection.columns])


@check
def copy_both_ways(see):
    connection = people()
    connection.run("copy people from stdin with (format csv)", stream=io.StringIO('20,"a,b"\n21,\n'))
    out = io.StringIO()
    connection.run("copy (select * from people where id >= 20 order by 1) to stdout", stream=out)
    see(out.getvalue())


@check
def transaction(see):
    connection = people()
    connection.run("start transaction")
    connection.run("delete from people")
    connection.run("rollback")
    see(connection.run("select count(*) from people"), connection.row_count)


@check
def errors(see):
    connection = people()
    refused(see, connection.run, "insert into people values (1, 'again')")
    refused(see, connection.run, "select nothing from people")
    refused(see, connection.run, "selec")
    see(connection.run("select 1"))


@check
def db_api(see):
    connection = keep(pg8000.dbapi.connect(**ADDRESS))
    cursor = connection.cursor()
    cursor.execute("create table t (n int, s text)")
    cursor.executemany("insert into t values (%s, %s)", [(1, "a"), (2, None)])
    connection.commit()
    cursor.execute("select * from t where n > %s order by n", (0,))
    see(cursor.fetchone(), cursor.fetchall(), [(c[0], c[1]) for c in cursor.description])
    cursor.execute("update t set s = 'x'")
    see(cursor.rowcount)


@check
def two_phase(see):
    connection = keep(pg8000.dbapi.connect(**ADDRESS))
    connection.cursor().execute("create table t (n int)")
    connection.commit()
    xid = connection.xid(0, "gid", "")
    connection.tpc_begin(xid)
    connection.cursor().execute("insert into t values (1)")
    connection.tpc_prepare()
    connection.tpc_commit(xid)
    cursor = connection.cursor()
    cursor.execute("select count(*) from t")
    see(cursor.fetchone())


@check
def notices_and_parameters(see):
    connection = native()
    connection.run("drop table if exists nowhere")
    see([notice[b"M"] for notice in connection.notices], connection.parameter_statuses["server_encoding"])


@check
def notifications(see):
    connection = native()
    connection.run("listen news")
    connection.run("notify news, 'x'")
    see([(channel, payload) for _, channel, payload in connection.notifications])


@check
def several_statements(see):
    see(native().run("create table t (n int); insert into t values (1); select count(*) from t"))


@check
def literal_and_identifier(see):
    see(pg8000.native.identifier("a b"), pg8000.native.literal("it's"), native().run(f"select {pg8000.native.literal([1, 2])}"))


serve()
