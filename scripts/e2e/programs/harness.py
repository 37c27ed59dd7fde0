"""What the programs of checks in Python share: a check is a function that gets `see`, which notes what the tool showed.
tool_checks.py says what the program and its runner tell each other."""

import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys

HOST = os.environ["PGHOST"]
PORT = int(os.environ["PGPORT"])
USER = os.environ["PGUSER"]
DATABASE = os.environ["PGDATABASE"]
# An address for tools that want TCP and a URL.
URL = f"{USER}:none@127.0.0.1:{PORT}/{DATABASE}"
TOOLS = os.environ["TOOLS_BIN"]

_checks = {}
_opened = []


def check(function):
    """Makes a function a check, named by its name."""
    _checks[function.__name__.replace("_", " ")] = function
    return function


def keep(opened):
    """What `close` ends after the check, also after one that failed."""
    _opened.append(opened)
    return opened


def refused(see, work, *arguments):
    """Notes the SQLSTATE and the message with which `work` must fail."""
    try:
        work(*arguments)
    except Exception as error:
        see("refused", *state(error))
        return
    raise AssertionError("no error")


def state(error):
    """SQLSTATE and message of a driver's error, also of one that a mapper has wrapped."""
    error = getattr(error, "orig", None) or error.__cause__ or error
    diagnosis = getattr(error, "diag", None)
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return sqlstate, getattr(diagnosis, "message_primary", None) or str(error).splitlines()[0]


def command(*words, text_in=None, seconds=25, errors=True, **environment):
    """What a command line program prints; its errors follow, and its exit code if it is not 0, unless they are of no interest."""
    done = subprocess.run(
        [str(word) for word in words], input=text_in, capture_output=True, text=True, timeout=seconds,
        env={**os.environ, "PATH": f"/usr/lib/postgresql/15/bin:{os.environ['PATH']}:/usr/sbin", **environment},
    )
    if not errors:
        return done.stdout.splitlines()
    ending = [f"exit code {done.returncode}"] if done.returncode else []
    return [*done.stdout.splitlines(), *done.stderr.splitlines(), *ending]


def _text(value):
    if isinstance(value, memoryview):
        value = bytes(value)
    return value if isinstance(value, str) else repr(value)


async def _with_loop(function, see):
    await function(see)


def serve():
    """Runs the checks that the runner names."""
    print("::" + json.dumps(list(_checks)), flush=True)
    for line in sys.stdin:
        function = _checks[line.rstrip("\n")]
        seen, answer = [], {}

        def see(*values):
            seen.append(" ".join(_text(value) for value in values))

        try:
            outcome = function(see)
            if inspect.iscoroutine(outcome):
                asyncio.run(asyncio.wait_for(outcome, 20))
        except BaseException as error:
            answer["error"] = f"{type(error).__name__}: {' '.join(str(part) for part in state(error) if part)}"
        while _opened:
            try:
                _opened.pop().close()
            except Exception:
                pass
        gc.collect()
        print("\n::" + json.dumps({"seen": seen, **answer}), flush=True)
