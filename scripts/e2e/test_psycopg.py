"""psycopg 3: parameters both ways, errors as exceptions, COPY, prepared statements, pipelines, threads."""

import datetime
import decimal
import threading

import psycopg

from common import WithServer


class Psycopg(WithServer):
    def connect(self, **more):
        return psycopg.connect(
            host=str(self.server.sockets), port=self.server.port, user="clearway", dbname="postgres", **more
        )

    def test_types_round_trip(self):
        values = (
            True, 7, -2_000_000_000, 2**40, 2.5, decimal.Decimal("12345.678"), "naïve 🦀", "var", datetime.date(2024, 2, 29),
            datetime.datetime(2024, 2, 29, 12, 30, 15, 250000),
            datetime.datetime(2024, 2, 29, 12, 30, 15, tzinfo=datetime.timezone.utc), None,
        )
        with self.connect() as connection:
            connection.execute(
                "create table types (b boolean, s smallint, i int, l bigint, d double precision, n numeric, t text,"
                " v varchar(10), da date, ts timestamp, tz timestamptz, nothing text)"
            )
            for binary in (False, True):
                cursor = connection.cursor(binary=binary)
                cursor.execute("truncate types")
                marks = ", ".join(["%b" if binary else "%s"] * len(values))
                cursor.execute(f"insert into types values ({marks})", values)
                cursor.execute("select * from types")
                self.assertEqual(cursor.fetchone(), values, f"binary={binary}")
            connection.rollback()

    def test_errors_are_the_right_exceptions(self):
        with self.connect(autocommit=True) as connection:
            connection.execute("create table things (id int primary key, name varchar(3) not null)")
            connection.execute("insert into things values (1, 'one')")
            for sql, exception in (
                ("insert into things values (1, 'two')", psycopg.errors.UniqueViolation),
                ("insert into things values (2, null)", psycopg.errors.NotNullViolation),
                ("insert into things values (3, 'three')", psycopg.errors.StringDataRightTruncation),
                ("select * from missing", psycopg.errors.UndefinedTable),
                ("select missing from things", psycopg.errors.UndefinedColumn),
                ("select 1 / (id - id) from things", psycopg.errors.DivisionByZero),
                ("selec", psycopg.errors.SyntaxError),
                ("cluster things", psycopg.errors.FeatureNotSupported),
            ):
                with self.subTest(sql), self.assertRaises(exception):
                    connection.execute(sql)

    def test_transactions(self):
        with self.connect() as connection:
            connection.execute("create table counted (n int)")
            connection.commit()
            connection.execute("insert into counted values (1)")
            connection.rollback()
            self.assertEqual(connection.execute("select count(*) from counted").fetchone(), (0,))
            with self.assertRaises(psycopg.errors.UndefinedTable):
                connection.execute("select * from missing")
            with self.assertRaises(psycopg.errors.InFailedSqlTransaction):
                connection.execute("select 1")
            self.assertEqual(connection.info.transaction_status, psycopg.pq.TransactionStatus.INERROR)
            connection.rollback()

    def test_copy(self):
        with self.connect() as connection:
            connection.execute("create table lines (id int, text text)")
            with connection.cursor() as cursor:
                with cursor.copy("copy lines from stdin") as copy:
                    for number in range(5000):
                        copy.write_row((number, f"line {number}\twith a tab" if number % 7 else None))
                with cursor.copy("copy lines to stdout") as copy:
                    copy.set_types(["int4", "text"])
                    rows = list(copy.rows())
            self.assertEqual(len(rows), 5000)
            self.assertEqual(rows[1], (1, "line 1\twith a tab"))
            self.assertEqual(rows[7], (7, None))
            connection.commit()
            # From 3.3 on psycopg gives its caller's error back.
            with self.assertRaises((psycopg.errors.QueryCanceled, ZeroDivisionError)):
                with connection.cursor() as cursor, cursor.copy("copy lines from stdin") as copy:
                    copy.write_row((1, "half"))
                    1 / 0
            connection.rollback()
            self.assertEqual(connection.execute("select count(*) from lines").fetchone(), (5000,))

    def test_prepared_statements_and_pipelines(self):
        with self.connect(autocommit=True) as connection:
            connection.execute("create table counts (id int primary key, n int)")
            connection.execute("insert into counts select i, 0 from generate_series(1, 10) as i")
            for number in range(50):
                connection.execute("update counts set n = n + 1 where id = %s", (number % 10 + 1,), prepare=True)
            with connection.pipeline():
                cursors = [connection.execute("select n from counts where id = %s", (n,)) for n in range(1, 11)]
            self.assertEqual([cursor.fetchone() for cursor in cursors], [(5,)] * 10)
            with self.assertRaises(psycopg.errors.UniqueViolation):
                with connection.pipeline():
                    connection.execute("insert into counts values (11, 0)")
                    connection.execute("insert into counts values (1, 0)")
                    connection.execute("insert into counts values (12, 0)")
            self.assertEqual(connection.execute("select 1").fetchone(), (1,))

    def test_execute_has_the_columns_of_its_statement(self):
        with self.connect(autocommit=True) as connection:
            connection.execute("prepare both (int) as select $1 as one, 'x'::text as other")
            for binary in (False, True):
                found = connection.cursor(binary=binary).execute("execute both (5)", prepare=False)
                self.assertEqual([column.name for column in found.description], ["one", "other"])
                self.assertEqual(found.fetchall(), [(5, "x")])
            result = connection.pgconn.exec_params(b"execute both (7)", None)
            self.assertEqual(result.get_value(0, 0), b"7")

    def test_statements_leave_the_drivers_cache(self):
        with self.connect(autocommit=True) as connection:
            connection.prepare_threshold, connection.prepared_max = 0, 2
            for again in range(2):
                for number in range(6):
                    answer = connection.execute(f"select {number} + %s::int", (1,)).fetchone()
                    self.assertEqual(answer, (number + 1,), again)

    def test_a_deadlock_has_one_victim(self):
        with self.connect(autocommit=True) as connection:
            connection.execute("create table locks (id int primary key, n int)")
            connection.execute("insert into locks values (1, 0), (2, 0)")
        barrier = threading.Barrier(2)
        outcomes = []

        def work(first, second):
            with self.connect() as connection:
                try:
                    connection.execute("update locks set n = n + 1 where id = %s", (first,))
                    barrier.wait(10)
                    connection.execute("update locks set n = n + 1 where id = %s", (second,))
                    connection.commit()
                    outcomes.append("committed")
                except psycopg.errors.DeadlockDetected:
                    connection.rollback()
                    outcomes.append("deadlock")

        threads = [threading.Thread(target=work, args=pair) for pair in ((1, 2), (2, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(sorted(outcomes), ["committed", "deadlock"])

    def test_serialization_failure(self):
        with self.connect(autocommit=True) as connection:
            connection.execute("create table versions (id int primary key, n int)")
            connection.execute("insert into versions values (1, 0)")
        with self.connect() as first, self.connect(autocommit=True) as second:
            first.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self.assertEqual(first.execute("select n from versions").fetchone(), (0,))
            second.execute("update versions set n = 1")
            self.assertEqual(first.execute("select n from versions").fetchone(), (0,))
            with self.assertRaises(psycopg.errors.SerializationFailure):
                first.execute("update versions set n = 2")
            first.rollback()

    def test_cancel(self):
        with self.connect(autocommit=True) as holder, self.connect() as waiter:
            holder.execute("create table held (id int primary key)")
            holder.execute("insert into held values (1)")
            holder.execute("begin")
            holder.execute("delete from held")
            timer = threading.Timer(0.5, waiter.cancel)
            timer.start()
            with self.assertRaises(psycopg.errors.QueryCanceled):
                waiter.execute("delete from held")
            timer.join()
            waiter.rollback()
            holder.execute("rollback")
