#!/usr/bin/env python3
"""Runs PostgreSQL's regression files statement by statement on the engine and on a PostgreSQL beside it, and counts the
equal answers. The files come from Debian's source package (support/regression_files.py); a path takes any other.

An answer is the rows as the wire has them in text form, with their columns' names and types, and the command's tag; or an
error's SQLSTATE, message and detail. Where a query has no ORDER BY, the rows may come in any order. psql's own commands
(lines that begin with a backslash) are left out.

A statement that asks for what Clearway refuses by name (`LEFT_OUT`: inheritance, partitions, rules, triggers, users' own
functions, types that it will not have) or for the text of a plan is left out on both sides, and so is each later statement
that names something which such a statement was to make. The rest is what the shares are of. An answer may depend on the
order of rows with equal keys (regress_ties.py lists these): then both servers are asked again, PostgreSQL with an index that
has the keys instead of a sort, or both without what the ties decide. Equal answers to that are *in order*, and count as the
same; a *tie* does not.

    scripts/regress                           # the files of the table in docs/log.md, after test_setup.sql
    scripts/regress join window               # two of them
    scripts/regress --show all join           # each answer that differs, with both sides
    scripts/regress --show differ join        # those that are no error
    scripts/regress --why join window         # the errors given instead, by number
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
from regress_ties import tie  # noqa: E402
from support import regression_files, servers, tools  # noqa: E402

# What a statement is made of: a comment, a string, a quoted name, a dollar-quoted text, the end, or any other character.
def token(plain):
    """A pattern of them, given that of a string without a letter in front."""
    return re.compile(
        rf"""--[^\n]* | /\*.*?\*/ | [eE]'(?:\\.|''|[^'\\])*' | u&'(?:''|[^'])*' | {plain} | "(?:""|[^"])*"
            | (\$\w*\$).*?\1 | (?P<end>;) | (?P<copied>\bfrom\s+stdin\b[^;]*;[^\n]*\n) | \w+ | .""",
        re.VERBOSE | re.DOTALL | re.IGNORECASE,
    )


TOKEN = token("'(?:''|[^'])*'")
# The same where backslashes escape in all strings.
ESCAPING = token(r"'(?:\\.|''|[^'\\])*'")
CONFORMING = re.compile(r"^(?:re)?set\s+standard_conforming_strings\b(?P<off>.*\boff\b)?", re.IGNORECASE)


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
    pattern = TOKEN
    while at < len(text):
        token = pattern.match(text, at)
        at = token.end()
        if token["end"] is None and token["copied"] is None:
            continue
        data, statement = None, text[start:at]
        if token["copied"] is not None:
            end = text.find("\\.\n", at)
            if end >= 0:
                data, at = text[at:end], end + 3
        start = at
        if setting := CONFORMING.match(without_comments(statement)):
            pattern = ESCAPING if setting["off"] else TOKEN
        yield statement.strip(), data
    if text[start:].strip():
        yield text[start:].strip(), None


def is_ordered(sql):
    """Whether the statement itself has an ORDER BY; one in parentheses orders no rows of the answer."""
    outside, depth = [], 0
    for token in TOKEN.finditer(sql):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0 and not token[0].startswith(("--", "/*", "'", '"')):
            outside.append(token[0])
    return re.search(r"\border\s+by\b", "".join(outside), re.IGNORECASE) is not None


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
        # The numbers of types that the file has made are each server's own.
        types = [result.ftype(column) for column in range(result.nfields)]
        types = [oid if oid < 16384 else None for oid in types]
        columns = [(result.fname(column), oid) for column, oid in enumerate(types)]
        rows = [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]
        if not is_ordered(sql):
            rows.sort(key=repr)
        return result.command_status, columns, rows
    parts = (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL)
    return tuple((result.error_field(part) or b"").decode() for part in parts)


# What is left out on both sides: a name for it, and how a statement that asks for it looks.
LEFT_OUT = {
    "variables of psql": r"^:\w",
    "plans": r"^explain\b",
    "inheritance": r"\binherits?\b|^\s*alter\s+table\s.*\bno\s+inherit\b",
    "partitions": r"\bpartition\s+(by\s+(range|list|hash)|of)\b|\b(attach|detach)\s+partition\b",
    "rules": r"^(create(\s+or\s+replace)?|drop|alter)\s+rule\b",
    "triggers": r"^(create(\s+or\s+replace)?(\s+constraint)?|drop|alter)\s+(event\s+)?trigger\b|\b(enable|disable)\s+trigger\b",
    "functions": r"^(create(\s+or\s+replace)?|drop|alter)\s+(function|procedure|routine|aggregate|operator|cast)\b|^(do|call)\b",
    "types": r"\b(money|varbit|bit(\s+varying)?\s*\(\d+\)|tsvector|tsquery|xml|(int[48]|num|date|ts|tstz)(multi)?range)\b",
}
MADE = re.compile(
    r"^create(\s+or\s+replace)?(\s+(temp|temporary|unlogged|constraint|recursive))*\s+"
    r"(table|view|function|procedure|aggregate|operator\s+class|type|domain|index|sequence)\s+(if\s+not\s+exists\s+)?"
    r'(\w+\.)?"?(?P<name>\w+)',
    re.IGNORECASE,
)


class Filter:
    """Knows which statements of a file do not apply."""

    def __init__(self):
        self.missing = set()

    def leaves_out(self, sql):
        """Why a statement is left out, or None. What it was to make is missing from there on."""
        bare = without_comments(sql)
        found = next((name for name, look in LEFT_OUT.items() if re.search(look, bare, re.IGNORECASE | re.DOTALL)), None)
        if found is None:
            words = {word.lower() for word in re.findall(r"\w+", bare)}
            found = "follows from one left out" if words & self.missing else None
        made = MADE.match(bare)
        if made and found:
            self.missing.add(made["name"].lower())
        elif made:
            self.missing.discard(made["name"].lower())
        return found


def without_comments(sql):
    """The statement with single blanks."""
    return " ".join(re.sub(r"--[^\n]*(\n|$)|/\*.*?\*/", " ", sql, flags=re.DOTALL).split())


def kind(ours, file="", sql=""):
    """How an answer differs."""
    if isinstance(ours[0], str) and len(ours[0]) == 5:
        return "refused" if ours[0] == "0A000" else "other errors"
    return "tie" if tie(file, without_comments(sql)) else "differ"


# What lets a server read rows with equal keys in the order of their table: here a sort does, there an index.
HERE_IN_ORDER = ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"]
THERE_IN_ORDER = ["enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_incremental_sort", "enable_hashagg"]


def is_same_in_order(both, file, sql):
    """Whether both servers give the same answer to a statement of this file when ties come in the order of the table."""
    index = tie(file, without_comments(sql))[1]
    if isinstance(index, tuple):
        decided = without_comments(sql).replace(*index)
        return answer(both[0], decided, None) == answer(both[1], decided, None)
    both[1].execute(f"create index in_order on {index}")
    answers = []
    for connection, settings in zip(both, (HERE_IN_ORDER, THERE_IN_ORDER)):
        for setting in settings:
            connection.execute(f"set {setting} = off")
        answers.append(answer(connection, sql, None))
        for setting in settings:
            connection.execute(f"reset {setting}")
    both[1].execute("drop index in_order")
    return answers[0] == answers[1]


def reason(ours):
    """Why an answer differs, in short: the error that was given instead, without the names in it."""
    if kind(ours) != "differ":
        return f"{ours[0]} " + re.sub(r'"[^"]*"', '"…"', ours[1])
    return "another answer"


class Outcome:
    """What came of one file."""

    def __init__(self, name):
        self.name, self.total, self.same, self.in_order = name, 0, 0, 0
        self.left_out, self.kinds, self.reasons = collections.Counter(), collections.Counter(), collections.Counter()
        self.different = []

    @property
    def counted(self):
        return self.total - self.left_out.total()

    @property
    def share(self):
        return self.same / self.counted if self.counted else 1.0

    def row(self):
        kinds = " | ".join(str(self.kinds[name]) for name in KINDS)
        left_out = self.left_out.total()
        same = f"{self.same} of {self.counted} | {self.share:.0%} | {self.in_order}"
        return f"| {self.name} | {self.total} | {left_out} | {same} | {kinds} |"


KINDS = ["refused", "other errors", "tie", "differ"]
TABLE = """| file | statements | left out | same | share | in order | refused | other errors | tie | differ |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def compare(path, setup, show=None, binary=None):
    """Runs one file on two fresh servers, after the statements of `setup`; `binary`: the one that is built."""
    # The settings that the files are written for.
    dates = {"timezone": "PST8PDT", "datestyle": "Postgres, MDY"}
    config = "".join(f'{name} = "{value}"\n' for name, value in dates.items())
    ours = servers.Clearway(binary or tools.build(), servers.scratch("regress"), 'shared_buffers = "64MB"\n' + config).start()
    settings = [("fsync", "off"), *dates.items()]
    theirs = servers.Postgres(servers.scratch("regress-peer"), settings).start()
    both = connect(ours), connect(theirs)
    for connection in both:
        connection.execute("set statement_timeout = '30s'")
    applies, outcome = Filter(), Outcome(path.stem)
    for sql, data in statements(with_files(setup.read_text(), setup.parent.parent)) if setup else ():
        if applies.leaves_out(sql) is None:
            for connection in both:
                answer(connection, sql, data)
    for sql, data in statements(with_files(path.read_text(), path.parent.parent)):
        outcome.total += 1
        if left_out := applies.leaves_out(sql):
            outcome.left_out[left_out] += 1
            continue
        found, wanted = (answer(connection, sql, data) for connection in both)
        if found == wanted:
            outcome.same += 1
            continue
        how = kind(found, path.stem, sql)
        if how == "tie" and is_same_in_order(both, path.stem, sql):
            outcome.same += 1
            outcome.in_order += 1
            continue
        outcome.kinds[how] += 1
        outcome.reasons[reason(found)] += 1
        if how == "differ":
            outcome.different.append((sql, found, wanted))
        if show in ("all", how):
            print(f"{sql}\n  ours   {str(found)[:600]}\n  theirs {str(wanted)[:600]}\n")
    for connection in both:
        connection.close()
    ours.stop()
    theirs.kill()
    return outcome


# The files whose subject Clearway has.
FILES = """select select_distinct join subselect with union aggregates groupingsets window arrays strings case limit insert update
delete returning merge numeric create_view temp truncate copy copy2 copyselect prepare portals btree_index""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=FILES, help="names of PostgreSQL's files, or paths")
    parser.add_argument("--show", choices=["all", *KINDS], help="show both answers to these")
    parser.add_argument("--why", action="store_true", help="count the errors that were given instead")
    parser.add_argument("--setup", type=pathlib.Path, help="another file of statements that make the tables")
    options = parser.parse_args()
    tools.need("initdb", "postgres")
    print(TABLE, flush=True)
    for name in options.files:
        path = pathlib.Path(name)
        if not path.suffix:
            path = regression_files.folder() / "sql" / f"{name}.sql"
        if not path.exists():
            sys.exit(f"{path} does not exist: a file of PostgreSQL's is called by its name alone, as in {' '.join(FILES[:3])}")
        outcome = compare(path, options.setup or path.parent / "test_setup.sql", options.show)
        print(outcome.row(), flush=True)
        for text, count in outcome.reasons.most_common() if options.why else ():
            print(f"{count:6} {text}")


if __name__ == "__main__":
    main()
