#!/usr/bin/env python3
"""Runs an SQL file statement by statement on the engine and on a PostgreSQL beside it, and counts the equal answers.

Made for PostgreSQL's regression tests (src/test/regress/sql/*.sql), which are not part of this repository. An answer is
the rows as the wire has them in text form, with their columns' names and types, and the command's tag; or an error's
SQLSTATE, message and detail. Where a query has no ORDER BY, the rows may come in any order. psql's own commands
(lines that begin with a backslash) are left out.

    scripts/e2e/regress.py numeric.sql              # how many agree, and why the others do not
    scripts/e2e/regress.py --show numeric.sql       # each one that does not, with both answers
    scripts/e2e/regress.py --setup sql/test_setup.sql sql/join.sql   # after the statements that make its tables
"""

import argparse
import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from psycopg import pq  # noqa: E402

from peer import connect  # noqa: E402
from support import servers, tools  # noqa: E402

# What a statement is made of: a comment, a string, a quoted name, a dollar-quoted text, the end, or any other character.
TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*" | (\$\w*\$).*?\1 | (?P<end>;)
        | (?P<copied>\bfrom\s+stdin\b[^;]*;[^\n]*\n) | \w+ | .""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def with_files(text, folder):
    """The text with each COPY from a file of the suite's `data` folder as a COPY FROM STDIN with that file's lines."""

    def copied(found):
        data = (folder / "data" / pathlib.Path(found["file"]).name).read_text()
        return f"{found['copy']} FROM stdin{found['rest']};\n{data}\\.\n"

    return re.sub(
        r"^\\set\s+filename\s+:abs_srcdir\s+'(?P<file>[^']*)'\n(?P<copy>COPY\s+[^;:]*?)\s+FROM\s+:'filename'(?P<rest>[^;]*);\n",
        copied,
        text,
        flags=re.MULTILINE | re.IGNORECASE,
    )


def statements(text):
    """The statements of a file, each with the data that follows it if it is a COPY FROM STDIN."""
    text = re.sub(r"^\\[^.\n][^\n]*\n", "", text, flags=re.MULTILINE)
    start = at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        at = token.end()
        if token["end"] is None and token["copied"] is None:
            continue
        data, statement = None, text[start:at]
        if token["copied"] is not None:
            end = text.find("\\.\n", at)
            if end >= 0:
                data, at = text[at:end], end + 3
        start = at
        yield statement.strip(), data
    if text[start:].strip():
        yield text[start:].strip(), None


def answer(connection, sql, data):
    """What a server says to a statement."""
    link = connection.pgconn
    result = link.exec_(sql.encode())
    if result.status == pq.ExecStatus.COPY_IN:
        if data is not None:
            link.put_copy_data(data.encode())
        link.put_copy_end(None if data is not None else b"no data")
        result = link.get_result()
        while (more := link.get_result()) is not None:
            result = more
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        columns = [(result.fname(column), result.ftype(column)) for column in range(result.nfields)]
        rows = [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]
        if not re.search(r"\border\s+by\b", sql, re.IGNORECASE):
            rows.sort(key=repr)
        return result.command_status, columns, rows
    parts = (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL)
    return tuple((result.error_field(part) or b"").decode() for part in parts)


def reason(ours):
    """Why an answer differs, in short: the error that was given instead, without the names in it."""
    if isinstance(ours[0], str) and len(ours[0]) == 5:
        return f"{ours[0]} " + re.sub(r'"[^"]*"', '"…"', ours[1])
    return "another answer"


def compare(path, show, setup):
    """Runs one file on two fresh servers, after the statements of `setup`."""
    ours = servers.Clearway(tools.build(), servers.scratch("regress"), 'shared_buffers = "64MB"\n').start()
    settings = [("fsync", "off"), ("timezone", "UTC"), ("datestyle", "ISO, MDY")]
    theirs = servers.Postgres(servers.scratch("regress-peer"), settings).start()
    both = connect(ours), connect(theirs)
    for sql, data in statements(with_files(setup.read_text(), setup.parent.parent)) if setup else ():
        for connection in both:
            answer(connection, sql, data)
    total, reasons = 0, collections.Counter()
    for sql, data in statements(with_files(path.read_text(), path.parent.parent)):
        total += 1
        found, wanted = (answer(connection, sql, data) for connection in both)
        if found == wanted:
            continue
        reasons[reason(found)] += 1
        if show:
            print(f"{sql}\n  ours   {str(found)[:600]}\n  theirs {str(wanted)[:600]}\n")
    print(f"{path.name}: {total - reasons.total()} of {total} statements have PostgreSQL's answer")
    for text, count in reasons.most_common():
        print(f"{count:6} {text}")
    for connection in both:
        connection.close()
    ours.stop()
    theirs.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--show", action="store_true", help="show both answers where they differ")
    parser.add_argument("--setup", type=pathlib.Path, help="statements that make the tables, such as test_setup.sql")
    options = parser.parse_args()
    tools.need("initdb", "postgres")
    for path in options.files:
        compare(path, options.show, options.setup)


main()
