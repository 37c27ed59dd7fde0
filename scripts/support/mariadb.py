"""MariaDB on a scratch directory."""

import socket
import subprocess

from . import servers, tools

# The byte with which the server greets a client, behind the length and number of the packet: the protocol's version.
GREETING = 10


class Mariadb(servers.Server):
    """MariaDB 10.11 as packaged, with nothing from /etc. Root has no password, and the database is `test`."""

    name = "mariadb"

    def __init__(self, directory, settings=()):
        super().__init__(directory)
        self.as_user = servers.without_rights("mysql", self.directory, self.sockets)
        self.socket = self.sockets / "mariadb"
        self.settings = [f"--{name}={value}" for name, value in settings]
        done = subprocess.run(
            [*self.as_user, tools.find("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}",
             "--auth-root-authentication-method=normal"],
            cwd=self.directory, capture_output=True, text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db:\n{done.stdout}{done.stderr}")

    @property
    def sysbench_address(self):
        return {"db-driver": "mysql", "mysql-socket": self.socket, "mysql-user": "root", "mysql-db": "test"}

    def command(self):
        return [
            *self.as_user, tools.find("mariadbd"), "--no-defaults", f"--datadir={self.data}",
            f"--socket={self.socket}", "--skip-networking", *self.settings,
        ]

    def answers(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            try:
                client.connect(str(self.socket))
                greeting = client.recv(5)
            except OSError:
                return False
            return len(greeting) == 5 and greeting[4] == GREETING
