"""asyncpg: it prepares every statement, and asks for each with Flush instead of Sync."""

import asyncio
import io

import asyncpg

from checks import COLUMNS, DATABASE, PORT, SOCKET, USER, VALUES, equal

# A driver that waits for an answer which does not come would wait for ever.
SECONDS = 10


async def raises(exception, awaitable):
    try:
        await asyncio.wait_for(awaitable, SECONDS)
    except exception as error:
        return error
    raise AssertionError(f"no {exception.__name__}")


async def errors_at_prepare(connection):
    await raises(asyncpg.PostgresSyntaxError, connection.prepare("selec 1"))
    error = await raises(asyncpg.UndefinedTableError, connection.prepare("select * from missing"))
    equal(error.sqlstate, "42P01")
    equal(error.position, "15")
    await raises(asyncpg.UndefinedColumnError, connection.fetch("select missing from pg_type"))
    await raises(asyncpg.FeatureNotSupportedError, connection.execute("create function f() returns int language sql as 'select 1'"))
    equal(await asyncio.wait_for(connection.fetchval("select 1"), SECONDS), 1)


async def types(connection):
    await connection.execute(f"create table asyncpg_types ({COLUMNS})")
    marks = ", ".join(f"${number}" for number in range(1, len(VALUES) + 1))
    await connection.execute(f"insert into asyncpg_types values ({marks})", *VALUES)
    equal(tuple(await connection.fetchrow("select * from asyncpg_types")), VALUES)
    equal(await connection.fetchval("select n from asyncpg_types where d = $1", VALUES[4]), VALUES[3])


async def prepared_statements(connection):
    await connection.execute("create table asyncpg_rows (id int primary key, name text)")
    await connection.executemany("insert into asyncpg_rows values ($1, $2)", [(n, f"row {n}") for n in range(200)])
    statement = await connection.prepare("select name from asyncpg_rows where id = $1")
    equal([parameter.name for parameter in statement.get_parameters()], ["int4"])
    for number in (0, 17, 199):
        equal(await statement.fetchval(number), f"row {number}")
    error = await raises(asyncpg.UniqueViolationError, connection.execute("insert into asyncpg_rows values (1, 'twice')"))
    equal(error.sqlstate, "23505")


async def transactions(connection):
    count = "select count(*) from asyncpg_rows"
    async with connection.transaction(isolation="repeatable_read"):
        await connection.execute("delete from asyncpg_rows where id >= 100")
        equal(await connection.fetchval(count), 100)
        # A cursor is a portal that suspends.
        names = [row["name"] async for row in connection.cursor("select name from asyncpg_rows order by id", prefetch=7)]
        equal(len(names), 100)
    try:
        async with connection.transaction():
            await connection.execute("delete from asyncpg_rows")
            raise KeyError("to roll back")
    except KeyError:
        pass
    equal(await connection.fetchval(count), 100)


async def copy(connection):
    lines = io.BytesIO(b"".join(b"%d\tcopied\n" % n for n in range(1000, 1500)))
    await connection.copy_to_table("asyncpg_rows", source=lines)
    equal(await connection.fetchval("select count(*) from asyncpg_rows where name = 'copied'"), 500)
    # Records go in the binary format.
    await connection.copy_records_to_table("asyncpg_rows", records=[(number, "recorded") for number in range(2000, 2300)])
    equal(await connection.fetchval("select count(*) from asyncpg_rows where name = 'recorded'"), 300)


async def a_pool():
    async with asyncpg.create_pool(host=SOCKET, port=PORT, user=USER, database=DATABASE, min_size=2, max_size=4) as pool:
        async def one(number):
            # Giving a connection back sends RESET ALL, CLOSE ALL, UNLISTEN * and more.
            return await pool.fetchval("select $1::int + 1", number)

        equal(await asyncio.gather(*(one(number) for number in range(20))), list(range(1, 21)))


async def main():
    connection = await asyncpg.connect(host=SOCKET, port=PORT, user=USER, database=DATABASE, timeout=SECONDS)
    for check in (errors_at_prepare, types, prepared_statements, transactions, copy):
        print(check.__name__, flush=True)
        await asyncio.wait_for(check(connection), SECONDS)
    print("a_pool", flush=True)
    await asyncio.wait_for(a_pool(), SECONDS)
    await connection.close()


asyncio.run(main())
print("done")
