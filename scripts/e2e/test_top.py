"""`clearway top` in a terminal: one session holds a row, others wait, and the operator finds and ends it."""

import json
import subprocess
import time
import unittest

from support import servers, tools

PATIENCE = 60
WAITING = 20
HOLD = "begin; update hot set n = n + 1; select 'held', pg_sleep(600);"
WAIT = "update hot set n = n + 1;"


class Screen:
    """A terminal of 80 columns and 24 lines, in which a command runs."""

    def __init__(self, command, environment):
        self.command = command
        self.socket = servers.scratch("top") / "tmux"
        self.environment = environment

    def tmux(self, *words):
        command = [tools.find("tmux"), "-u", "-S", str(self.socket), *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout

    def __enter__(self):
        command = f"{self.command}; echo ended with $?; sleep {PATIENCE}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command)
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")

    def shows(self, what):
        """The text of the screen, as soon as it has `what`, a string or a condition."""
        holds = what if callable(what) else lambda text: what in text
        deadline = time.monotonic() + PATIENCE
        while not holds(text := self.tmux("capture-pane", "-p")):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {PATIENCE} s the screen does not show {what}:\n{text}")
            time.sleep(0.1)
        return text

    def press(self, *keys):
        self.tmux("send-keys", *keys)


class Top(unittest.TestCase):
    def test_the_one_that_keeps_twenty_is_found_and_ended(self):
        tools.need("psql", "tmux")
        clearway = tools.build()
        with servers.Clearway(clearway, servers.scratch("top")) as server:
            server.start()
            server.run("psql", "-qc", "create table hot (n int); insert into hot values (0)")
            sessions = [self.psql(server, HOLD)]
            try:
                deadline = time.monotonic() + PATIENCE
                while "held" not in self.figures(clearway, server)["statements"]:
                    self.assertLess(time.monotonic(), deadline)
                sessions += [self.psql(server, WAIT) for _ in range(WAITING)]
                with Screen(f"{clearway} top --interval 300ms", server.environment()) as screen:
                    self.end_the_holder(screen)
                self.assertEqual(self.figures(clearway, server)["blocked"], 0)
                deadline = time.monotonic() + PATIENCE
                while server.run("psql", "-Atc", "select n from hot").stdout.strip() != str(WAITING):
                    self.assertLess(time.monotonic(), deadline)
            finally:
                for session in sessions:
                    session.kill()
                    session.wait()

    def end_the_holder(self, screen):
        screen.shows(f"{WAITING} wait for locks")
        # The one that keeps all others is the first of the table.
        screen.press("Down", "Enter")
        text = screen.shows("statement of")
        self.assertIn("pg_sleep(600)", text)
        screen.press("Escape")
        text = screen.shows("STATEMENT")
        self.assertIn("Timeout:PgSleep", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        screen.press("x")
        screen.shows("? y/n")
        screen.press("n")
        screen.shows("nothing was done")
        screen.press("x")
        screen.shows("? y/n")
        screen.press("y")
        screen.shows("was told to end")
        screen.shows("0 wait for locks")
        screen.press("2")
        screen.shows("CONFLICTS/S")
        screen.press("q")
        screen.shows("ended with 0")

    @staticmethod
    def psql(server, sql):
        return subprocess.Popen(
            [tools.find("psql"), "-qAtc", sql], env=server.environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    @staticmethod
    def figures(clearway, server):
        """What `--json` says, with the statements together and the number of those that others keep."""
        command = [clearway, "top", "--once", "--json", "--interval", "200ms"]
        done = subprocess.run(command, env=server.environment(), capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        figures["statements"] = " ".join(session["statement"] for session in figures["sessions"])
        figures["blocked"] = sum(bool(session["blocked_by"]) for session in figures["sessions"])
        return figures
