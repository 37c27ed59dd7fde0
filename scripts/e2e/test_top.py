"""`clearway top` in a terminal: one session holds a row, others wait, and the operator finds and ends it; and a server that
stops, restarts or idles meanwhile."""

import json
import signal
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
        command = f"{self.command}; echo ended with $?; stty -a | tr ' ' '\\n' | grep icanon; sleep {PATIENCE}"
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

    def test_a_server_that_stops_and_restarts(self):
        tools.need("psql", "tmux")
        clearway = tools.build()
        with servers.Clearway(clearway, servers.scratch("top")) as server:
            server.start()
            with Screen(f"{clearway} top --interval 300ms", server.environment()) as screen:
                screen.shows("commits/s")
                server.stop()
                text = screen.shows("no answer, trying again")
                self.assertIn("commits/s", text)
                screen.press("x")
                screen.shows("nothing was done: no answer")
                server.start()
                screen.shows(lambda text: "no answer" not in text and "q quit" in text)
            with Screen(f"{clearway} top --interval 300ms", server.environment()) as screen:
                screen.shows("q quit")
                server.process.send_signal(signal.SIGSTOP)
                try:
                    screen.press("q")
                    screen.shows("ended with 0")
                finally:
                    server.process.send_signal(signal.SIGCONT)

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        tools.need("psql", "tmux")
        clearway = tools.build()
        with servers.Clearway(clearway, servers.scratch("top")) as server:
            server.start()
            process = "sh -c 'echo $$ > pid; exec \"$@\"' sh"
            with Screen(f"cd {server.directory}; {process} {clearway} top", server.environment()) as screen:
                screen.shows("q quit")
                pid = (server.directory / "pid").read_text().strip()
                subprocess.run(["kill", "-TERM", pid], check=True)
                text = screen.shows("ended with 143")
                self.assertNotIn("commits/s", text)
                text = screen.shows("icanon")
                self.assertNotIn("-icanon", text)

    def test_looks_are_not_counted_and_intervals_join(self):
        tools.need("psql")
        clearway = tools.build()
        with servers.Clearway(clearway, servers.scratch("top")) as server:
            server.start()
            command = [clearway, "top", "--json", "--interval", "300ms"]
            with subprocess.Popen(command, env=server.environment(), stdout=subprocess.PIPE, text=True) as top:
                intervals = [json.loads(top.stdout.readline()) for _ in range(4)]
                top.kill()
            for before, after in zip(intervals, intervals[1:]):
                self.assertEqual((after["commits"], after["rollbacks"]), (0, 0))
                self.assertAlmostEqual(after["time"] - before["time"], after["interval_seconds"], places=6)

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
