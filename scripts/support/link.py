"""A link between a standby and its primary that fails as networks do, and as networks should not.

The checksum of TCP misses one damaged segment in 65,536, and none of those that a broken card, a proxy or a tunnel changes
behind it. So beside connections that end or stall there are bytes that change, get lost, come twice or out of order. Only
what the primary sends is damaged: docs/replication/standby.md ("Damaged log") says that reports of the standby are not protected.
"""

import collections
import random
import select
import socket
import threading
import time

# A piece that is to arrive behind the next one does not wait for that longer.
HELD_SECONDS_MAX = 0.2


class Link:
    """Listens on a port of its own and passes bytes on to `target`; `disturb` makes the next ones go wrong."""

    BREAKS = ["cut", "truncate", "delay", "stall"]
    DAMAGES = ["flip", "drop", "repeat", "reorder"]
    KINDS = BREAKS + DAMAGES

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
        self.due = collections.deque()
        # How often each damage was done.
        self.done = collections.Counter()
        threading.Thread(target=self._accept, daemon=True).start()

    def disturb(self, kind):
        """`cut`: all connections end now. `truncate`: they end in the middle of what is sent next. `delay`: for a second
        each piece takes 20 ms. `stall`: for half a second nothing passes. Of the next piece, `flip` changes a bit, `drop`
        leaves some bytes out, `repeat` sends some twice, `reorder` sends it behind the one that follows it."""
        now = time.monotonic()
        if kind == "cut":
            self._close_all()
        elif kind == "truncate":
            self.truncate_after = self.random.randrange(1, 60_000)
        elif kind == "delay":
            self.slow_until = now + 1
        elif kind == "stall":
            self.stalled_until = now + 0.5
        elif kind in self.DAMAGES:
            self.due.append(kind)
        else:
            raise ValueError(kind)

    def heal(self):
        """Damage that is due and was not done is not done."""
        self.due.clear()

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

    def _damaged(self, piece):
        """The pieces to send instead of one of the server's, and one to hold back."""
        if not self.due:
            return [piece], None
        kind = self.due.popleft()
        self.done[kind] += 1
        start = self.random.randrange(len(piece))
        end = self.random.randrange(start, len(piece)) + 1
        if kind == "flip":
            piece = bytearray(piece)
            piece[start] ^= 1 << self.random.randrange(8)
            return [bytes(piece)], None
        if kind == "drop":
            return [piece[:start] + piece[end:]], None
        if kind == "repeat":
            return [piece[:end], piece[start:]], None
        return [], piece

    def _carry(self, pair):
        client, server = pair
        held, held_until = None, 0.0
        try:
            while True:
                readable, _, _ = select.select(pair, [], [], HELD_SECONDS_MAX / 4 if held else 0.2)
                if held and time.monotonic() > held_until:
                    client.sendall(held)
                    held = None
                for end in readable:
                    piece = end.recv(32_768)
                    if not piece:
                        return
                    while time.monotonic() < self.stalled_until:
                        time.sleep(0.01)
                    if time.monotonic() < self.slow_until:
                        time.sleep(0.02)
                    if end is client:
                        server.sendall(piece)
                        continue
                    if self.truncate_after is not None:
                        left, self.truncate_after = self.truncate_after, self.truncate_after - len(piece)
                        if self.truncate_after <= 0:
                            self.truncate_after = None
                            client.sendall(piece[:left])
                            return
                    pieces, later = self._damaged(piece)
                    for sent in pieces:
                        client.sendall(sent)
                    if pieces and held:
                        client.sendall(held)
                        held = None
                    if later:
                        held, held_until = (held or b"") + later, time.monotonic() + HELD_SECONDS_MAX
        except OSError:
            pass
        finally:
            with self.lock:
                self.pairs.discard(pair)
            client.close()
            server.close()
