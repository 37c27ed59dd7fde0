"""Writes a line of JSON for each test that a suite has run: its name, its outcome, the error that ended it, and the number
of statements that it sent. Loaded into the process that runs the suite."""

import json
import os
import traceback

import psycopg

# The name under which the making of an app's tables is told of, if it fails: then no test of the app runs.
SETUP = "setup"

_out = None
_statements = 0


def begin():
    """Counts statements from here on for the test that begins."""
    global _statements
    _statements = 0


def write(test, outcome, error=None, told=""):
    """Writes the line of a test that has ended, with the statements since it began."""
    global _out
    if _out is None:
        _out = open(os.environ["SUITE_RECORD"], "a", buffering=1)
    line = {"test": test, "outcome": outcome, "statements": _statements}
    if error is not None:
        line.update(described(error), told=told[-6000:])
    _out.write(json.dumps(line) + "\n")


def described(error):
    """The class of an error: that of the server's error it was raised from, if there is one."""
    seen, one = set(), error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        if isinstance(one, psycopg.Error) and one.sqlstate:
            return {"sqlstate": one.sqlstate, "message": one.diag.message_primary or str(one)}
        one = getattr(one, "orig", None) or one.__cause__ or one.__context__
    return {"sqlstate": None, "message": f"{type(error).__name__}: {str(error).strip()}"}


def trace(error):
    return "".join(traceback.format_exception(error))


def _counted(cursor, method):
    plain = getattr(cursor, method)

    def call(self, *arguments, **named):
        global _statements
        _statements += 1
        return plain(self, *arguments, **named)

    setattr(cursor, method, call)


for _cursor in (psycopg.Cursor, psycopg.ServerCursor, psycopg.AsyncCursor, psycopg.AsyncServerCursor):
    for _method in ("execute", "executemany"):
        _counted(_cursor, _method)
