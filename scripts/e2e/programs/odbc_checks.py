"""ODBC: PostgreSQL's driver under unixODBC, through pyodbc."""

import datetime
import decimal
import uuid

import pyodbc

from harness import DATABASE, PORT, USER, check, keep, refused, serve


def connect(options="", **more):
    more.setdefault("autocommit", True)
    return keep(pyodbc.connect(f"Driver={{PostgreSQL Unicode}};Server=127.0.0.1;Port={PORT};Database={DATABASE};Uid={USER};Pwd=none;{options}", **more))


def people(options="", **more):
    connection = connect(options, **more)
    connection.execute("create table people (id serial primary key, name varchar(40) not null, height numeric(5,2), born date)")
    connection.execute("insert into people (name, height) select 'name ' || n, n / 4.0 from generate_series(1, 10) n")
    if not connection.autocommit:
        connection.commit()
    return connection


@check
def connects(see):
    connection = connect()
    see(connection.getinfo(pyodbc.SQL_DBMS_NAME), connection.getinfo(pyodbc.SQL_DBMS_VER)[:2], connection.getinfo(pyodbc.SQL_IDENTIFIER_QUOTE_CHAR), connection.getinfo(pyodbc.SQL_TXN_ISOLATION_OPTION))


@check
def types(see):
    connection = connect()
    for kind, value in {"int": 5, "bigint": 2**40, "numeric(10,3)": decimal.Decimal("1.500"), "text": "é'", "bool": True, "bytea": b"\x00\xff", "date": datetime.date(2024, 2, 29),
                        "time": datetime.time(1, 2, 3), "timestamp": datetime.datetime(2024, 2, 29, 1, 2, 3, 4000), "float8": 2.5, "uuid": uuid.UUID(int=7)}.items():
        cursor = connection.execute(f"select cast(? as {kind})", value)
        see(kind, cursor.fetchone()[0], [str(part) for part in cursor.description[0][1:]])


@check
def parameters(see):
    connection = people()
    see(connection.execute("select name from people where id = ? or name = ? order by id", 1, "name 3").fetchall(), connection.execute("select cast(? as int) is null", None).fetchone())


@check
def executemany(see):
    connection = people()
    cursor = connection.cursor()
    cursor.executemany("insert into people (name, height) values (?, ?)", [(f"m{n}", n) for n in range(100)])
    cursor.fast_executemany = True
    cursor.executemany("insert into people (name, height) values (?, ?)", [(f"f{n}", n) for n in range(100)])
    see(cursor.execute("select count(*) from people").fetchval())


@check
def row_counts(see):
    connection = people()
    see(connection.execute("update people set height = 2 where id < 4").rowcount, connection.execute("delete from people where id = 1").rowcount)


@check
def transactions(see):
    connection = people(autocommit=False)
    connection.execute("delete from people")
    connection.rollback()
    see(connection.execute("select count(*) from people").fetchval())


@check
def error_in_a_transaction(see):
    connection = people("Protocol=7.4-0;", autocommit=False)
    connection.execute("delete from people where id = 1")
    refused(see, connection.execute, "select 1 / 0")
    refused(see, connection.execute, "select 1")
    connection.rollback()


@check
def error_that_rolls_back_its_statement(see):
    connection = people("Protocol=7.4-2;", autocommit=False)
    connection.execute("delete from people where id = 1")
    refused(see, connection.execute, "select 1 / 0")
    connection.commit()
    see(connection.execute("select count(*) from people").fetchval())


@check
def tables(see):
    connection = people()
    connection.execute("create view tall as select * from people")
    for row in connection.cursor().tables(schema="public"):
        see(row.table_schem, row.table_name, row.table_type)


@check
def columns(see):
    for row in people().cursor().columns(table="people"):
        see(row.column_name, row.data_type, row.type_name, row.column_size, row.decimal_digits, row.nullable, row.column_def, row.ordinal_position)


@check
def primary_keys(see):
    for row in people().cursor().primaryKeys("people"):
        see(row.column_name, row.key_seq, row.pk_name)


@check
def foreign_keys(see):
    connection = people()
    connection.execute("create table c (p int references people on delete cascade)")
    for row in connection.cursor().foreignKeys(foreignTable="c"):
        see(row.pktable_name, row.pkcolumn_name, row.fkcolumn_name, row.delete_rule)


@check
def statistics(see):
    connection = people()
    connection.execute("create unique index people_name on people (name)")
    for row in connection.cursor().statistics("people"):
        see(row.non_unique, row.index_name, row.type, row.ordinal_position, row.column_name, row.asc_or_desc)


@check
def special_columns(see):
    for row in people().cursor().rowIdColumns("people"):
        see(row.column_name, row.type_name)


@check
def type_information(see):
    see(sorted({row.type_name for row in connect().cursor().getTypeInfo()} & {"int4", "text", "numeric", "bool", "timestamptz"}))


@check
def errors(see):
    connection = people()
    for statement in ("insert into people (id, name) values (1, 'x')", "select nothing from people", "select * from nowhere", "insert into people (name) values (null)"):
        try:
            connection.execute(statement)
        except pyodbc.Error as error:
            see(error.args[0], error.args[1].split(";\n")[0])


@check
def declared_cursor_and_fetch(see):
    connection = people("UseDeclareFetch=1;Fetch=3;", autocommit=False)
    see([row.id for row in connection.execute("select id from people order by id")])


@check
def server_side_preparation(see):
    connection = people("UseServerSidePrepare=1;")
    cursor = connection.cursor()
    see([cursor.execute("select name from people where id = ?", n).fetchone() for n in (1, 2, 3)])


@check
def client_side_parameters(see):
    connection = people("UseServerSidePrepare=0;")
    see(connection.execute("select name from people where id = ? and name = ?", 2, "name 2").fetchall())


@check
def several_results(see):
    cursor = connect().execute("select 1 as a; select 2 as b")
    see(cursor.fetchall(), cursor.nextset(), cursor.fetchall())


serve()
