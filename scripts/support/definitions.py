"""Clients that change definitions while the server is killed, and what must be there after recovery."""

import subprocess
import threading

from . import tools

# One round of a table's life. {step} is the number of the statement, so that no two states hold the same rows.
LIFE = [
    ("create table {table} (id int primary key, v int)", lambda rows, step: []),
    ("insert into {table} select i, {step} from generate_series(1, 300) i", lambda rows, step: [step] * 300),
    ("create index {table}_v on {table} (v)", lambda rows, step: rows),
    ("insert into {table} select i, {step} from generate_series(301, 400) i", lambda rows, step: rows + [step] * 100),
    ("drop index {table}_v", lambda rows, step: rows),
    ("truncate {table}", lambda rows, step: []),
    ("insert into {table} select i, {step} from generate_series(1, 50) i", lambda rows, step: [step] * 50),
    ("begin; create index {table}_v on {table} (v); rollback", lambda rows, step: rows),
    ("create index {table}_v on {table} (v)", lambda rows, step: rows),
    ("drop table {table}", lambda rows, step: None),
]

# A commit that removes files is on disk when it is acknowledged, whatever synchronous_commit says.
REMOVES = ("drop", "truncate")


class DefinitionClient(threading.Thread):
    """Creates, fills, truncates and drops one table over and over through one psql, and remembers what was acknowledged."""

    def __init__(self, server, number, synchronous):
        super().__init__(daemon=True)
        self.table = f"defined_{number}"
        self.server = server
        self.synchronous = synchronous
        # The rows after each statement, None without a table; the first is what a round begins with.
        self.states = [None]
        self.acknowledged = 0
        self.durable = 0
        self.psql = subprocess.Popen(
            [tools.find("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"], env=server.environment(), text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def say(self, text, step):
        """Runs a statement; whether it was acknowledged."""
        try:
            self.psql.stdin.write(f"{text};\n\\echo {step}\n")
        except (BrokenPipeError, ValueError):
            return False
        return self.psql.stdout.readline().strip() == str(step)

    def run(self):
        setting = "on" if self.synchronous else "off"
        if not self.say(f"set synchronous_commit = {setting}; drop table if exists {self.table}", 0):
            return
        step = 0
        while True:
            text, effect = LIFE[step % len(LIFE)]
            step += 1
            self.states.append(effect(self.states[-1], step))
            if not self.say(text.format(table=self.table, step=step), step):
                return
            self.acknowledged = step
            if self.synchronous or text.startswith(REMOVES):
                self.durable = step

    def problem(self):
        """After recovery: what is wrong with the table, or None. Statements after the last durable one may be lost."""
        self.join(60)
        if self.is_alive():
            return f"{self.table}: psql has not noticed that its server was killed"
        complaints = self.psql.stderr.read()
        if "ERROR" in complaints:
            return f"{self.table}: statement {len(self.states) - 1}: {complaints}"
        possible = self.states[self.durable:]
        found = [self.look(condition) for condition in ("true", "id > 0", "v > 0")]
        for rows in possible:
            wanted = "none" if rows is None else f"{len(rows)}|{sum(rows)}"
            if found == [wanted] * len(found):
                return None
        return (
            f"{self.table} (synchronous_commit {'on' if self.synchronous else 'off'}): found {found} by scan and by index;"
            f" statements {self.durable} (durable) to {self.acknowledged} (acknowledged) were to leave"
            f" {[rows and (len(rows), sum(rows)) for rows in possible]}"
        )

    def look(self, condition):
        query = f"select count(*), coalesce(sum(v), 0) from {self.table} where {condition}"
        done = self.server.run("psql", "-XAtq", "-v", "VERBOSITY=sqlstate", "-c", query, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
        return "none" if "42P01" in done.stderr else done.stderr.strip()


class Checkpoints(threading.Thread):
    """Asks for a checkpoint several times a second until the server is gone."""

    def __init__(self, server, pause):
        super().__init__(daemon=True)
        self.environment = server.environment()
        self.pause = pause
        self.ended = threading.Event()
        self.count = 0

    def run(self):
        psql = subprocess.Popen(
            [tools.find("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"], env=self.environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        with psql:
            try:
                while not self.ended.wait(self.pause):
                    psql.stdin.write("checkpoint;\n\\echo done\n")
                    if psql.stdout.readline() != "done\n":
                        break
                    self.count += 1
            except (BrokenPipeError, ValueError):
                pass
            psql.kill()
