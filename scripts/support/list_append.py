"""Clients that append to lists on whichever node is the primary, and a checker of what they were told.

Each transaction appends one number to one list and reads the whole list. So the answers tell the order: per list each
answer must be a beginning of the list at the end, a number that was acknowledged must be in it, and an answer that came
before another transaction began must be a beginning of that one's answer. Two primaries that both acknowledge cannot pass."""

import threading
import time
from typing import NamedTuple

import psycopg
from psycopg import pq

PATIENCE_SECONDS = 2.0
LISTS = 3


class Answer(NamedTuple):
    """A transaction that was acknowledged."""

    key: int
    number: int
    began: float
    ended: float
    items: tuple


class Wrong(Exception):
    """An answer that no order explains."""


class Session:
    """A connection on which one statement runs at a time, with a limit on the wait but not on the answer."""

    def __init__(self, port):
        self.connection = psycopg.connect(
            f"host=127.0.0.1 port={port} user=clearway dbname=postgres connect_timeout=2", autocommit=True
        )
        self.libpq = self.connection.pgconn

    def send(self, statement):
        self.libpq.send_query_params(statement.encode(), None)

    def answer(self, until):
        """The first field of the answer; TimeoutError while there is none, OSError for an error."""
        import select
        row = None
        while True:
            while self.libpq.is_busy():
                left = until - time.monotonic()
                if left <= 0 or not select.select([self.libpq.socket], [], [], left)[0]:
                    raise TimeoutError
                try:
                    self.libpq.consume_input()
                except psycopg.Error as error:
                    raise OSError(str(error)) from None
            result = self.libpq.get_result()
            if result is None:
                return row
            if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                raise OSError(result.error_message.decode(errors="replace"))
            row = result.get_value(0, 0) if result.ntuples else b""

    def close(self):
        self.connection.close()


class Appenders:
    """The clients. `answers` holds what was acknowledged, late answers too."""

    def __init__(self, cluster, clients=4):
        self.cluster, self.clients = cluster, clients
        self.answers, self.late = [], []
        self.lock = threading.Lock()
        self.numbers = 0
        self.first_key = 0

    def begin(self):
        """New lists, and the clients."""
        self.first_key += LISTS
        session = Session(self.cluster.primary().port)
        session.connection.execute("create table if not exists lists (key int primary key, items text not null)")
        for key in self.keys():
            session.connection.execute("insert into lists values (%s, '')", (key,))
        session.close()
        self.answers = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(self.clients)]
        for thread in self.threads:
            thread.start()

    def keys(self):
        return range(self.first_key, self.first_key + LISTS)

    def _next(self):
        with self.lock:
            self.numbers += 1
            return self.numbers

    def _run(self, client):
        session = None
        while not self.stopping.is_set():
            if session is None:
                primary = self.cluster.primary()
                try:
                    session = Session(primary.port) if primary is not None else None
                except psycopg.Error:
                    pass
                if session is None:
                    time.sleep(0.05)
                    continue
            number = self._next()
            key = self.first_key + number % LISTS
            began = time.monotonic()
            try:
                session.send(f"update lists set items = items || ' {number}' where key = {key} returning items")
                self._note(key, number, began, session.answer(began + PATIENCE_SECONDS))
            except TimeoutError:
                # Its server may be stopped: what it answers when it goes on counts, too.
                with self.lock:
                    self.late.append((session, key, number, began))
                session = None
            except (OSError, psycopg.Error):
                session.close()
                session = None

    def _note(self, key, number, began, items):
        answer = Answer(key, number, began, time.monotonic(), tuple(map(int, items.split())))
        with self.lock:
            self.answers.append(answer)

    def end(self):
        """Ends the clients, and takes late answers."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
        late, self.late = self.late, []
        count = 0
        for session, key, number, began in late:
            try:
                self._note(key, number, began, session.answer(time.monotonic() + 1))
                count += 1
            except (TimeoutError, OSError, psycopg.Error):
                pass
            session.close()
        return count

    def longest_gap(self, since):
        """The longest time without an acknowledgement of a transaction that began in it, in seconds, from `since` on."""
        ended = sorted(answer.ended for answer in self.answers if answer.ended >= since)
        return max((later - earlier for earlier, later in zip([since, *ended], ended)), default=float("inf"))

    def check(self):
        """Wrong, if the answers do not fit the lists."""
        session = Session(self.cluster.primary().port)
        rows = session.connection.execute("select key, items from lists where key = any(%s)", (list(self.keys()),))
        final = {key: tuple(map(int, items.split())) for key, items in rows.fetchall()}
        session.close()
        for key, items in final.items():
            if len(set(items)) != len(items):
                raise Wrong(f"list {key} has a number twice: {items}")
        for answer in self.answers:
            whole = final.get(answer.key, ())
            if answer.number not in whole:
                raise Wrong(f"acknowledged and lost: {answer.number} of list {answer.key}")
            if whole[: len(answer.items)] != answer.items:
                raise Wrong(f"list {answer.key} was shown as {answer.items}, and is {whole}")
            if answer.items[-1] != answer.number:
                raise Wrong(f"{answer.number} was appended to list {answer.key}, and the answer was {answer.items}")
        for key in self.keys():
            self._check_real_time([answer for answer in self.answers if answer.key == key])
        return len(self.answers)

    @staticmethod
    def _check_real_time(answers):
        """A transaction that began after another one's answer comes behind it."""
        by_end = sorted(answers, key=lambda answer: answer.ended)
        longest, done = 0, 0
        for answer in sorted(answers, key=lambda answer: answer.began):
            while done < len(by_end) and by_end[done].ended < answer.began:
                longest = max(longest, len(by_end[done].items))
                done += 1
            if len(answer.items) <= longest:
                raise Wrong(f"{answer.number} began after {longest} items of list {answer.key} were shown, and was shown "
                            f"{len(answer.items)}")
