"""asyncpg: binary values of every type, prepared statements, COPY of records, cursors, transactions, introspection, pools."""

import asyncio
import datetime
import decimal
import io
import uuid

import asyncpg

from harness import DATABASE, HOST, PORT, USER, check, serve


async def connect(**more):
    return await asyncpg.connect(host=HOST, port=PORT, user=USER, database=DATABASE, timeout=10, **more)


async def people():
    connection = await connect()
    await connection.execute("create table people (id int primary key, name text, height numeric)")
    await connection.executemany("insert into people values ($1, $2, $3)", [(n, f"name {n}", decimal.Decimal(n) / 4) for n in range(1, 31)])
    return connection


async def refused(see, awaitable):
    try:
        await awaitable
    except asyncpg.PostgresError as error:
        see(type(error).__name__, error.sqlstate, error.message, getattr(error, "detail", None), getattr(error, "position", None))
        return
    raise AssertionError("no error")


def of_type(kind, *values):
    async def run(see):
        connection = await connect()
        for value in values:
            see(await connection.fetchval(f"select $1::{kind}", value))
            see(await connection.fetchval(f"select array[$1::{kind}, null]", value))

    run.__name__ = f"values_of_{kind.replace(' ', '_')}"
    return check(run)


UTC = datetime.timezone.utc
of_type("numeric", decimal.Decimal("1E+20"), decimal.Decimal("-0.00010"), decimal.Decimal("NaN"))
of_type("timestamptz", datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), datetime.datetime(1, 1, 1, tzinfo=UTC))
of_type("date", datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
of_type("interval", datetime.timedelta(days=-3, microseconds=5))
of_type("time", datetime.time(23, 59, 59, 999999))
of_type("uuid", uuid.UUID(int=2**127))
of_type("bytea", b"", b"\x00\xff")
of_type("real", 1.5, float("inf"))
of_type("jsonb", '{"a": [1, 2]}')
of_type("inet", __import__("ipaddress").ip_interface("10.0.0.1/8"))
of_type("int4range", asyncpg.Range(1, 5))
of_type("bit varying", asyncpg.BitString("0101"))
of_type("point", asyncpg.Point(1, 2))


@check
async def server_version_and_settings(see):
    connection = await connect(server_settings={"application_name": "mine", "work_mem": "8MB"})
    see(connection.get_server_version().major, connection.get_settings().application_name, await connection.fetchval("show work_mem"))


@check
async def records(see):
    connection = await people()
    row = await connection.fetchrow("select id, name, height as tall from people where id = $1", 3)
    see(dict(row), list(row.keys()), row["tall"], await connection.fetch("select 1 as a, 2 as a"))


@check
async def status_of_commands(see):
    connection = await people()
    for statement in ("update people set name = 'x' where id < 4", "delete from people where id = 1", "create table t (n int)", "select 1"):
        see(await connection.execute(statement))
    see(await connection.execute("insert into t values (1); insert into t values (2)"))


@check
async def prepared_statement(see):
    connection = await people()
    statement = await connection.prepare("select name, height from people where id = any($1::int[]) order by id")
    see([(one.name, one.type.name) for one in statement.get_attributes()], [one.name for one in statement.get_parameters()])
    see(await statement.fetch([1, 2, 99]), statement.get_statusmsg())


@check
async def explain_of_a_statement(see):
    connection = await people()
    statement = await connection.prepare("select name from people where id = $1")
    see(sorted((await statement.explain(5))[0]))


@check
async def copy_records(see):
    connection = await people()
    see(await connection.copy_records_to_table("people", records=[(50, "a", None), (51, None, decimal.Decimal(2))]))
    see(await connection.fetch("select * from people where id >= 50 order by id"))


@check
async def copy_from_a_query(see):
    connection = await people()
    out = io.BytesIO()
    see(await connection.copy_from_query("select id, name from people where id < $1 order by id", 4, output=out, format="csv", header=True))
    see(out.getvalue())


@check
async def copy_to_a_table(see):
    connection = await people()
    see(await connection.copy_to_table("people", source=io.BytesIO(b"70;x;\n71;y;2.5\n"), format="csv", delimiter=";"))
    out = io.BytesIO()
    await connection.copy_from_table("people", output=out, format="binary", columns=["id"])
    see(len(out.getvalue()))


@check
async def cursor_over_rows(see):
    connection = await people()
    async with connection.transaction():
        see([row["id"] async for row in connection.cursor("select id from people order by id", prefetch=7)])
        cursor = await connection.cursor("select id from people order by id")
        see(await cursor.fetch(3), await cursor.forward(5), await cursor.fetchrow())


@check
async def transactions(see):
    connection = await people()
    try:
        async with connection.transaction():
            await connection.execute("delete from people")
            raise KeyError
    except KeyError:
        pass
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await refused(see, connection.execute("delete from people"))
    see(await connection.fetchval("select count(*) from people"))


@check
async def nested_transactions(see):
    connection = await people()
    async with connection.transaction():
        try:
            async with connection.transaction():
                await connection.execute("delete from people")
                raise KeyError
        except KeyError:
            pass
        see(await connection.fetchval("select count(*) from people"))


@check
async def serializable(see):
    connection = await connect()
    async with connection.transaction(isolation="serializable", deferrable=True, readonly=True):
        see(await connection.fetchval("show transaction_isolation"))


@check
async def errors(see):
    connection = await people()
    await refused(see, connection.execute("insert into people values (1)"))
    await refused(see, connection.fetch("select nothing from people"))
    await refused(see, connection.fetch("select * from nowhere"))
    await refused(see, connection.fetch("select $1::int / 0", 1))
    await refused(see, connection.fetch("select nofunction(1)"))


@check
async def listener(see):
    connection, got = await connect(), asyncio.Event()

    def heard(_, pid, channel, payload):
        see(channel, payload)
        got.set()

    await connection.add_listener("news", heard)
    await connection.execute("notify news, 'hello'")
    await asyncio.wait_for(got.wait(), 3)
    await connection.remove_listener("news", heard)


@check
async def pool(see):
    await (await people()).close()
    async with asyncpg.create_pool(host=HOST, port=PORT, user=USER, database=DATABASE, min_size=2, max_size=4) as pool:
        see(await asyncio.gather(*(pool.fetchval("select name from people where id = $1", n) for n in range(1, 9))))
        async with pool.acquire() as connection:
            await connection.execute("set work_mem = '1MB'")
        see(await pool.fetchval("show work_mem"))


@check
async def reset_of_a_session(see):
    connection = await people()
    await connection.execute("set work_mem = '1MB'; create temp table t (n int)")
    await connection.reset()
    see(await connection.fetchval("show work_mem"))


@check
async def custom_codec(see):
    connection = await connect()
    await connection.set_type_codec("numeric", encoder=str, decoder=float, schema="pg_catalog", format="text")
    see(await connection.fetchval("select $1::numeric", 2.5))


@check
async def enum_type(see):
    connection = await connect()
    await connection.execute("create type mood as enum ('sad', 'ok'); create table m (m mood, l mood[])")
    await connection.execute("insert into m values ($1, $2)", "ok", ["sad", "ok"])
    see(await connection.fetchrow("select * from m"))


@check
async def composite_type(see):
    connection = await people()
    see(await connection.fetchval("select p from people p where id = 1"))


@check
async def domain_type(see):
    connection = await connect()
    await connection.execute("create domain positive as int check (value > 0)")
    see(await connection.fetchval("select $1::positive", 4))
    await refused(see, connection.fetchval("select $1::positive", -4))


@check
async def timeout_of_a_query(see):
    connection = await connect()
    try:
        await connection.fetch("select pg_sleep(20)", timeout=0.3)
    except asyncio.TimeoutError:
        see("timed out")
    see(await connection.fetchval("select 1"))


@check
async def many_statements_in_a_cache(see):
    connection = await people()
    see(sum([await connection.fetchval(f"select {n} + count(*) from people where id > $1", n) for n in range(150)]))


serve()
