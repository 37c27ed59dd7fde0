"""A PostgreSQL 15 beside the engine: both are asked the same, and their answers are compared byte for byte."""

import unittest

import psycopg
from psycopg import pq

from support import servers, tools


def connect(server):
    return psycopg.connect(
        host=str(server.sockets), port=server.port, user=server.user, dbname="postgres", autocommit=True
    )


def answer(connection, sql, binary=False):
    """The rows as the wire has them, or the error's SQLSTATE and message."""
    result = connection.pgconn.exec_params(sql.encode(), [], result_format=1) if binary else connection.pgconn.exec_(sql.encode())
    return found(result)


def awaited(connection):
    """The answer to a statement that was sent and not waited for."""
    last = None
    while result := connection.pgconn.get_result():
        last = result
    return found(last)


def found(result):
    """The rows of a result, or its error."""
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return [
            tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)
        ]
    field = result.error_field
    parts = (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL)
    return tuple((field(part) or b"").decode() for part in parts)


class BesidePostgres(unittest.TestCase):
    """Starts both servers before the first test and stops the engine's cleanly after the last."""

    @classmethod
    def setUpClass(cls):
        tools.need("initdb", "postgres")
        cls.server = servers.Clearway(tools.build(), servers.scratch("e2e"), 'shared_buffers = "64MB"\n').start()
        settings = [("fsync", "off"), ("timezone", "UTC"), ("datestyle", "ISO, MDY")]
        cls.postgres = servers.Postgres(servers.scratch("e2e-peer"), settings).start()
        cls.ours, cls.theirs = connect(cls.server), connect(cls.postgres)

    @classmethod
    def tearDownClass(cls):
        cls.ours.close()
        cls.theirs.close()
        cls.server.stop()
        cls.postgres.kill()

    def both(self, sql):
        """Runs a statement on both, which must succeed."""
        for connection in (self.ours, self.theirs):
            connection.execute(sql)

    def assert_same(self, statements, binary=False, known=frozenset()):
        """All answers agree; the differences are shown together."""
        different = []
        for sql in statements:
            ours, theirs = (answer(connection, sql, binary) for connection in (self.ours, self.theirs))
            if ours != theirs and sql not in known:
                different.append(f"{sql[:200]}\n  ours   {str(ours)[:400]}\n  theirs {str(theirs)[:400]}")
        shown = "\n".join(different[:30])
        self.assertFalse(different, f"{len(different)} of {len(statements)} differ:\n{shown}")
