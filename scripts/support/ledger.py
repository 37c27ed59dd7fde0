"""Commits that a server has acknowledged, each with a row of its own, and the comparison of those rows with a server's."""

import threading

from . import servers

TABLE = "create table ledger (client int, seq int, entry text, primary key (client, seq))"


def entry(client, seq):
    """What the row says: of a length that differs from row to row, and known from its key."""
    return f"{client}:{seq}:" + "x" * (seq * 37 % 400)


class Ledger:
    """Clients that insert numbered rows one after another. `told[client]` is the last number whose commit was acknowledged;
    a later one was begun at most, and its fate is not known."""

    def __init__(self, clients):
        self.told = [0] * clients
        # The last error of a client.
        self.ended_by = None

    def start(self, server):
        """Has each client insert rows into `server` until `stop` is called, or the server fails it."""
        self.stopping = threading.Event()
        self.threads = [
            threading.Thread(target=self._write, args=(server, client), daemon=True) for client in range(len(self.told))
        ]
        for thread in self.threads:
            thread.start()

    def _write(self, server, client):
        try:
            session = servers.Prompt(server)
            # The row that was in doubt may be there, and is told of now.
            count = int(session.ask(f"select count(*) from ledger where client = {client};"))
            self.told[client] = max(count, self.told[client])
            while not self.stopping.is_set():
                seq = self.told[client] + 1
                session.ask(f"insert into ledger values ({client}, {seq}, '{entry(client, seq)}');")
                self.told[client] = seq
            session.close()
        except (OSError, RuntimeError, ValueError) as error:
            # As a rule the server has died, and with it the session.
            self.ended_by = error

    def stop(self, seconds=60):
        """Waits until each client has the answer to its last statement."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(seconds)
            if thread.is_alive():
                raise RuntimeError(f"a commit was not answered within {seconds} s")

    def wrong(self, server, may_miss=False):
        """What of `server` is not as it was told, row by row; None if nothing is. With `may_miss` the last rows of a client
        may be missing, as after the loss of a primary whose commits did not wait for this server."""
        found = {}
        for line in server.sql("select client, seq, entry from ledger order by client, seq").splitlines():
            client, seq, text = line.split("|")
            rows = found.setdefault(int(client), [])
            if int(seq) != len(rows) + 1 or text != entry(int(client), int(seq)):
                return f"{server.name}: client {client}, row {seq} is {text!r} behind {len(rows)} rows"
            rows.append(text)
        for client, told in enumerate(self.told):
            count = len(found.get(client, []))
            if count > told + 1 or (count < told and not may_miss):
                return f"{server.name}: client {client} was told of {told} commits, and has {count} rows"
        return None
