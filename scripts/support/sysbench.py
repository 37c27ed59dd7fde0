"""sysbench's OLTP scripts against a server, and what it says of a run."""

import re

from .interleaved import Measured

# Every script of sysbench's that both kinds of servers run.
SCRIPTS = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_update_index", "oltp_update_non_index",
    "oltp_insert", "oltp_delete", "oltp_write_only",
]


def run(server, script, command, seconds=600, **options):
    """Runs a script's command (`prepare`, `run`, `cleanup`); what sysbench prints."""
    arguments = [f"--{name}={value}" for name, value in {**server.sysbench_address, **options}.items()]
    return server.run("sysbench", *arguments, script, command, seconds=seconds).stdout


def measured(shown):
    """Transactions a second and the 99th percentile, from what a run with `percentile=99` prints."""
    tps = re.search(r"transactions: +[0-9]+ +\(([0-9.]+) per sec", shown)
    p99 = re.search(r"99th percentile: +([0-9.]+)", shown)
    if not tps or not p99:
        raise RuntimeError(f"sysbench said\n{shown}")
    return Measured(float(tps.group(1)), float(p99.group(1)))
