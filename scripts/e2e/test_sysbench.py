"""sysbench's OLTP scripts through its pgsql driver."""

import re

from common import WithServer
from support import sysbench


class Sysbench(WithServer):
    def sysbench(self, script, command, **more):
        return sysbench.run(self.server, script, command, **{"tables": 2, "table-size": 2000, **more})

    def test_every_script(self):
        self.sysbench("oltp_read_write", "prepare")
        self.assertEqual(self.server.sql("select count(*) from sbtest1"), "2000")
        for script in sysbench.SCRIPTS:
            for mode in ("auto", "disable"):
                with self.subTest(script=script, prepared=mode):
                    # So many transactions, in whatever time: a disk may stand still for seconds.
                    events = {"threads": 4, "events": 200, "time": 0}
                    shown = self.sysbench(script, "run", **{**events, "db-ps-mode": mode})
                    done = re.search(r"transactions: +([0-9]+)", shown)
                    self.assertIsNotNone(done, shown)
                    self.assertEqual(int(done.group(1)), 200, shown)
        self.sysbench("oltp_read_write", "cleanup")
