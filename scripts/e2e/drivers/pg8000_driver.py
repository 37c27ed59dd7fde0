"""pg8000, a driver of Python alone: it speaks the protocol without libpq."""

import pg8000.dbapi
import pg8000.native

from checks import COLUMNS, DATABASE, PORT, SOCKET, USER, VALUES, equal


def raises(exception, sqlstate, work, *arguments, **more):
    try:
        work(*arguments, **more)
    except exception as error:
        equal(error.args[0]["C"], sqlstate)
        return
    raise AssertionError(f"no {sqlstate}")


def native():
    unix = f"{SOCKET}/.s.PGSQL.{PORT}"
    with_connection = pg8000.native.Connection(USER, unix_sock=unix, database=DATABASE, timeout=10)
    run = with_connection.run
    raises(pg8000.native.DatabaseError, "42601", run, "selec 1")
    raises(pg8000.native.DatabaseError, "42P01", run, "select * from missing where id = :id", id=1)
    statement = with_connection.prepare("select cast(:n as int) + 1")
    for number in range(5):
        equal(statement.run(n=number), [[number + 1]])
    statement.close()
    with_connection.close()


def dbapi():
    connection = pg8000.dbapi.connect(user=USER, host="127.0.0.1", port=PORT, database=DATABASE, timeout=10)
    cursor = connection.cursor()
    cursor.execute(f"create table pg8000_types ({COLUMNS})")
    cursor.execute(f"insert into pg8000_types values ({', '.join(['%s'] * len(VALUES))})", VALUES)
    cursor.execute("select * from pg8000_types")
    equal(tuple(cursor.fetchone()), VALUES)
    connection.commit()
    raises(pg8000.dbapi.DatabaseError, "42P01", cursor.execute, "select * from missing")
    raises(pg8000.dbapi.DatabaseError, "25P02", cursor.execute, "select 1")
    connection.rollback()
    cursor.execute("delete from pg8000_types")
    connection.rollback()
    cursor.executemany("insert into pg8000_types (i, t) values (%s, %s)", [(n, f"row {n}") for n in range(50)])
    connection.commit()
    cursor.execute("select count(*) from pg8000_types")
    equal(cursor.fetchone()[0], 51)
    connection.close()


for check in (native, dbapi):
    print(check.__name__, flush=True)
    check()
print("done")
