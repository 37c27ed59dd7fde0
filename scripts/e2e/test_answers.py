"""The answers that the engine's tables promise (crates/engine/tests/answers) are those of PostgreSQL."""

import pathlib
import re
import unittest

import psycopg
from psycopg import pq

from support import servers, tools

TABLES = pathlib.Path(__file__).resolve().parents[2] / "crates/engine/tests/answers"
ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text):
    return "".join(ESCAPES.get(character, character) for character in text)


def unescaped(text):
    meant = {written[1]: character for character, written in ESCAPES.items()}
    parts = iter(text)
    return "".join(meant[next(parts)] if character == "\\" else character for character in parts)


def shown(value):
    """A value as the tables show it."""
    if value is None:
        return "NULL"
    text = value.decode()
    hidden = not text or text.strip() != text or any(character in text for character in "|,'\n\r\t\\")
    return f"'{escaped(text)}'" if hidden else text


def copied(pgconn, result, given):
    """Does what COPY asks for: the data that it gives, and the result that follows."""
    data = ""
    if result.status == pq.ExecStatus.COPY_IN:
        pgconn.put_copy_data(unescaped(given).encode())
        pgconn.put_copy_end()
    else:
        while (part := pgconn.get_copy_data(0))[0] > 0:
            data += escaped(bytes(part[1]).decode())
    result = pgconn.get_result()
    while pgconn.get_result():
        pass
    return data, result


def type_name(connection, result, column):
    return connection.execute("select format_type(%s, null)", (result.ftype(column),)).fetchone()[0]


def answer(connection, line):
    """What a line's statement comes to."""
    what, sql = line.split(": ", 1) if line.startswith(("types: ", "names: ")) else ("rows", line)
    sql, _, given = sql.rpartition(" <") if " from stdin" in sql and " <" in sql else (sql, "", "")
    result, data = connection.pgconn.exec_(sql.encode()), ""
    if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT):
        data, result = copied(connection.pgconn, result, given.removeprefix(" "))
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return "ERROR " + result.error_field(pq.DiagnosticField.SQLSTATE).decode()
    if what == "types":
        return "|".join(type_name(connection, result, column) for column in range(result.nfields))
    if what == "names":
        return "|".join(result.fname(column).decode() for column in range(result.nfields))
    if result.status == pq.ExecStatus.COMMAND_OK:
        return data or result.command_status.decode()
    rows = ([result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples))
    return ", ".join("|".join(map(shown, row)) for row in rows)


def lines(table):
    """The statements of a table with the answers that it promises, and the first version that gives the answer, if a line
    before the statement names one."""
    first = 0
    for line in map(str.strip, table.read_text().splitlines()):
        if version := re.fullmatch(r"# PostgreSQL ([0-9]+)\.([0-9]+) and later", line):
            first = int(version[1]) * 10_000 + int(version[2])
        elif line and not line.startswith("#"):
            sql, _, promised = line.rpartition("=>")
            yield sql.strip(), promised.strip(), first
            first = 0


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tools.need("initdb", "postgres")
        settings = [("fsync", "off"), ("timezone", "UTC"), ("datestyle", "ISO, MDY")]
        cls.server = servers.Postgres(servers.scratch("e2e-peer"), settings).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def connect(self, database):
        return psycopg.connect(host=str(self.server.sockets), port=self.server.port, user=self.server.user,
                               dbname=database, autocommit=True)

    def test_the_tables_are_postgresqls(self):
        tables = sorted(TABLES.glob("*.txt"))
        self.assertTrue(tables)
        for table in tables:
            with self.subTest(table=table.stem), self.connect("postgres") as administrator:
                administrator.execute(f'create database "{table.stem}"')
                with self.connect(table.stem) as connection:
                    version = connection.info.server_version
                    different = [f"{sql}\n  promised   {promised}\n  PostgreSQL {found}" for sql, promised, first in lines(table)
                                 if (found := answer(connection, sql)) != promised and version >= first]
                self.assertFalse(different, "\n".join(different))
