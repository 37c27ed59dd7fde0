"""A link to a server that changes one bit of what comes back, or holds it."""

import socket
import threading
import time


class FlippingRelay:
    """Passes bytes on to a server, and flips one bit of the `at`-th byte of what comes back on the next connection. Nothing
    comes back while `holds()` is true."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.at = None
        self.holds = lambda: False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            at, self.at = self.at, None
            threading.Thread(target=self.carry, args=(client, server, None, lambda: False), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, at, self.holds), daemon=True).start()

    def carry(self, source, sink, at, holds):
        passed = 0
        try:
            while piece := source.recv(65_536):
                if at is not None and passed <= at < passed + len(piece):
                    piece = bytearray(piece)
                    piece[at - passed] ^= 1
                passed += len(piece)
                while holds():
                    time.sleep(0.01)
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
