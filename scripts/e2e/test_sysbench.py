"""sysbench's OLTP scripts through its pgsql driver."""

import re

from common import WithServer

SCRIPTS = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_update_index", "oltp_update_non_index",
    "oltp_insert", "oltp_delete", "oltp_write_only",
]


class Sysbench(WithServer):
    def sysbench(self, script, command, **more):
        options = {
            "db-driver": "pgsql", "pgsql-host": self.server.sockets, "pgsql-port": self.server.port,
            "pgsql-user": "clearway", "pgsql-password": "none", "pgsql-db": "postgres", "tables": 2,
            "table-size": 2000, **more,
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return self.server.run("sysbench", *arguments, script, command).stdout

    def test_every_script(self):
        self.sysbench("oltp_read_write", "prepare")
        self.assertEqual(self.server.sql("select count(*) from sbtest1"), "2000")
        for script in SCRIPTS:
            for mode in ("auto", "disable"):
                with self.subTest(script=script, prepared=mode):
                    shown = self.sysbench(script, "run", **{"threads": 4, "time": 1, "db-ps-mode": mode})
                    done = re.search(r"transactions: +([0-9]+)", shown)
                    self.assertIsNotNone(done, shown)
                    self.assertGreater(int(done.group(1)), 4, shown)
        self.sysbench("oltp_read_write", "cleanup")
