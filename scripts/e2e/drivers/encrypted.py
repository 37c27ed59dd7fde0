"""psycopg, asyncpg and pg8000 over TLS: each knows the server by its certificate, and logs in by password."""

import asyncio
import os
import ssl

import asyncpg
import pg8000.native
import psycopg

QUERY = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
HOST, PORT, USER = os.environ["PGHOST"], int(os.environ["PGPORT"]), os.environ["PGUSER"]
PASSWORD, ROOT = os.environ["PGPASSWORD"], os.environ["PGSSLROOTCERT"]


def by_psycopg():
    with psycopg.connect("") as connection:
        assert connection.execute(QUERY).fetchone() == (True,)


async def by_asyncpg(context):
    connection = await asyncpg.connect(
        host=HOST, port=PORT, user=USER, password=PASSWORD, database="postgres", ssl=context, direct_tls=False
    )
    assert await connection.fetchval(QUERY) is True
    await connection.close()
    # It can begin with the handshake.
    context.set_alpn_protocols(["postgresql"])
    connection = await asyncpg.connect(
        host=HOST, port=PORT, user=USER, password=PASSWORD, database="postgres", ssl=context, direct_tls=True
    )
    assert await connection.fetchval(QUERY) is True
    await connection.close()


def by_pg8000(context):
    connection = pg8000.native.Connection(
        USER, host=HOST, port=PORT, password=PASSWORD, database="postgres", ssl_context=context
    )
    assert connection.run(QUERY) == [[True]]
    connection.close()


by_psycopg()
asyncio.run(by_asyncpg(ssl.create_default_context(cafile=ROOT)))
by_pg8000(ssl.create_default_context(cafile=ROOT))
print("done")
