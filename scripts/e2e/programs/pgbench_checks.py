"""pgbench and sysbench: their ways of loading and running, with scripts of each kind, and the sums that must agree."""

import os
import re

from harness import DATABASE, HOST, PORT, USER, check, command, serve


def bench(see, *options, **more):
    """Notes how a run ended: the lines that say what it did, without its times."""
    lines = command("pgbench", *options, **more)
    for line in lines:
        if re.match(r"(number of (transactions actually|failed)|transaction type|scaling factor|query mode|exit code|pgbench: error|pgbench: fatal|ERROR)", line):
            see(re.sub(r"/\S+/script-\d+", "script", line))


def loaded(*options):
    # Its progress and its times are of no interest.
    failed = [line for line in command("pgbench", "-i", "-q", "-s", 1, *options) if "error" in line or "exit code" in line]
    assert not failed, failed


def sql(see, text):
    see(*command("psql", "-XAtq", "-c", text))


def sums(see):
    sql(see, "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history), (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches), (select count(*) from pgbench_history)")


def script(text):
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"script-{os.getpid()}.sql")
    with open(path, "w") as file:
        file.write(text)
    return path


@check
def initialization(see):
    loaded()
    sql(see, "select count(*), count(distinct bid), sum(abalance) from pgbench_accounts; select count(*) from pgbench_tellers")


@check
def initialization_in_the_server(see):
    loaded("-I", "dtGvp")
    sql(see, "select count(*) from pgbench_accounts")


@check
def initialization_with_foreign_keys(see):
    loaded("--foreign-keys")
    sql(see, "select count(*) from pg_constraint where contype = 'f'")


@check
def initialization_with_fillfactor_and_unlogged_tables(see):
    loaded("--fillfactor=80", "--unlogged-tables")
    sql(see, "select relname, relpersistence, reloptions from pg_class where relname = 'pgbench_accounts'")


def partitions(see, method):
    loaded("--partitions=3", f"--partition-method={method}")
    sql(see, "select count(*) from pgbench_accounts")


@check
def initialization_with_partitions(see):
    partitions(see, "hash")


def mode(name):
    def run(see):
        loaded()
        bench(see, "-n", "-c", 2, "-t", 50, "-M", name)
        sums(see)

    run.__name__ = f"{name}_protocol"
    return check(run)


for name in ("simple", "extended", "prepared"):
    mode(name)


@check
def builtin_scripts(see):
    loaded()
    for name in ("select-only", "simple-update"):
        bench(see, "-n", "-b", name, "-c", 2, "-j", 2, "-t", 50, "-M", "prepared")
    bench(see, "-n", "-b", "tpcb-like@2", "-b", "select-only@3", "-t", 40)


@check
def a_vacuum_before_and_connections_anew(see):
    loaded()
    bench(see, "-C", "-c", 2, "-t", 10, "-S")
    bench(see, "-v", "-t", 5)


@check
def script_with_variables_and_functions(see):
    loaded()
    bench(see, "-n", "-t", 20, "-D", "top=50", "-f", script("\\set id random(1, :top)\n\\set even (:id % 2) = 0\n\\if :even\nupdate pgbench_accounts set abalance = abalance + 1 where aid = :id;\n\\else\nselect abalance from pgbench_accounts where aid = :id \\gset\n\\endif\n\\sleep 1 ms\n"))


@check
def script_in_a_pipeline(see):
    loaded()
    bench(see, "-n", "-M", "extended", "-t", 20, "-f", script("\\startpipeline\nselect 1;\nselect count(*) from pgbench_tellers;\ninsert into pgbench_history (tid) values (1);\n\\endpipeline\n"))
    sql(see, "select count(*) from pgbench_history")


@check
def script_that_fails(see):
    loaded()
    bench(see, "-n", "-t", 3, "-f", script("select 1 / 0;\n"))


@check
def retries_after_a_failed_serialization(see):
    loaded()
    bench(see, "-n", "-c", 4, "-t", 25, "--max-tries=1000", "-b", "tpcb-like", PGOPTIONS="-c default_transaction_isolation=repeatable\\ read")
    sums(see)


@check
def serializable_transactions(see):
    loaded()
    bench(see, "-n", "-c", 4, "-t", 25, "--max-tries=1000", PGOPTIONS="-c default_transaction_isolation=serializable")
    sums(see)


@check
def rate_and_latency_limit(see):
    loaded()
    lines = command("pgbench", "-n", "-S", "-R", 200, "-L", 1000, "-T", 1, "-r")
    see([line for line in lines if re.match("pgbench: error|exit code", line)], any("statement latencies" in line for line in lines))


def sysbench(name):
    def run(see):
        address = [f"--pgsql-host={HOST}", f"--pgsql-port={PORT}", f"--pgsql-user={USER}", f"--pgsql-db={DATABASE}", "--pgsql-password=none"]
        words = ["sysbench", name, "--db-driver=pgsql", *address, "--tables=2", "--table-size=500", "--threads=2", "--time=0", "--events=60"]
        for step in ("prepare", "run"):
            see(*sorted(" ".join(line.split()) for line in command(*words, step) if re.search("total number of events|FATAL|exit code", line)))
        sql(see, "select count(*) = 500 or count(*) > 500 from sbtest1")
        command(*words, "cleanup")
        sql(see, "select to_regclass('sbtest1') is null")

    run.__name__ = f"sysbench_{name}"
    return check(run)


for name in ("oltp_read_write", "oltp_point_select", "oltp_update_index", "oltp_insert", "oltp_delete", "select_random_ranges"):
    sysbench(name)


serve()
