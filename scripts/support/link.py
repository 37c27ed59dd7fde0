"""A link between a standby and its primary that fails as networks do."""

import random
import select
import socket
import threading
import time


class Link:
    """Listens on a port of its own and passes bytes on to `target`; `disturb` makes the next ones go wrong."""

    KINDS = ["cut", "truncate", "delay", "stall"]

    def __init__(self, target, seed):
        self.target = target
        self.random = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = set()
        self.truncate_after = None
        self.slow_until = 0.0
        self.stalled_until = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def disturb(self, kind):
        """`cut`: all connections end now. `truncate`: they end in the middle of what is sent next. `delay`: for a second
        each piece takes 20 ms. `stall`: for half a second nothing passes."""
        now = time.monotonic()
        if kind == "cut":
            self._close_all()
        elif kind == "truncate":
            self.truncate_after = self.random.randrange(1, 60_000)
        elif kind == "delay":
            self.slow_until = now + 1
        elif kind == "stall":
            self.stalled_until = now + 0.5

    def close(self):
        self.listener.close()
        self._close_all()

    def _close_all(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, 5)
            except OSError:
                client.close()
                continue
            pair = (client, server)
            with self.lock:
                self.pairs.add(pair)
            threading.Thread(target=self._carry, args=(pair,), daemon=True).start()

    def _carry(self, pair):
        client, server = pair
        try:
            while True:
                readable, _, _ = select.select(pair, [], [], 0.2)
                for end in readable:
                    piece = end.recv(32_768)
                    if not piece:
                        return
                    while time.monotonic() < self.stalled_until:
                        time.sleep(0.01)
                    if time.monotonic() < self.slow_until:
                        time.sleep(0.02)
                    if end is server and self.truncate_after is not None:
                        left, self.truncate_after = self.truncate_after, self.truncate_after - len(piece)
                        if self.truncate_after <= 0:
                            self.truncate_after = None
                            client.sendall(piece[:left])
                            return
                    (server if end is client else client).sendall(piece)
        except OSError:
            pass
        finally:
            with self.lock:
                self.pairs.discard(pair)
            client.close()
            server.close()
