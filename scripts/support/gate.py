"""A link that an experiment closes: each connection tells by its start-up message who has made it, and what a closed link carries
waits, as behind a network that drops every packet, until it is open again."""

import select
import socket
import threading
import time

LOOK_SECONDS = 0.05


def application_name(name):
    """The part of a start-up message that gives this name."""
    return b"application_name\0" + name.encode() + b"\0"


class Gate:
    """Listens on a port of its own and passes bytes on to `target`. `closed_for` holds the names that it is closed for; a
    connection belongs to the one among `names` whose mark (`marks`) is in what it begins with, and to None without."""

    def __init__(self, target, names=()):
        self.target = target
        self.marks = {name: application_name(name) for name in names}
        self.closed_for = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _name_in(self, piece):
        found = [name for name, mark in self.marks.items() if mark in piece]
        return found[0] if found else None

    def _await_open(self, name):
        while name in self.closed_for:
            time.sleep(LOOK_SECONDS)

    def _carry(self, client):
        server = None
        try:
            name = None
            server = socket.create_connection(self.target, 5)
            pair = (client, server)
            while True:
                readable, _, _ = select.select(pair, [], [], LOOK_SECONDS)
                for end in readable:
                    piece = end.recv(32_768)
                    if end is client and name is None:
                        # A request for encryption may come before it.
                        name = self._name_in(piece)
                    self._await_open(name)
                    if not piece:
                        return
                    (server if end is client else client).sendall(piece)
        except OSError:
            pass
        finally:
            for end in (client, server):
                if end is not None:
                    end.close()
