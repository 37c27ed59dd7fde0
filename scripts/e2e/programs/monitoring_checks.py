"""Programs that watch a server: check_postgres, prometheus-postgres-exporter, and the queries of Grafana's data source."""

import re
import socket
import subprocess
import time
import urllib.request

import psycopg

from harness import DATABASE, HOST, PORT, USER, check, command, keep, serve


def nagios(action, *options, setup=None):
    """A check of check_postgres: how it ended, without the numbers of this moment."""

    def run(see):
        if setup:
            # PostgreSQL tells others what a session has counted when it ends, at the latest.
            with psycopg.connect("", autocommit=True) as connection:
                connection.execute(setup)
        lines = command("check_postgres", f"--action={action}", f"--host={HOST}", f"--port={PORT}", f"--dbuser={USER}", f"--db={DATABASE}", *options)
        for line in lines:
            # This moment's numbers, the server's address, and databases that nobody uses.
            said = re.sub(r"\(host:\S+\) \(port=\d+\) ?| ?template\d=\S+| ?template\d\S* \S+( \(\d+ (kB|bytes)\))?", "", line.split("|")[0])
            see(re.sub(" +", " ", re.sub(r"\d[\d.]*( (kB|MB|bytes))?", "N", said)).replace("seconds", "second").rstrip())

    run.__name__ = f"check_postgres {action}"
    return check(run)


TABLE = "create table watched (id serial primary key, s text); insert into watched (s) select 'x' from generate_series(1, 500)"

nagios("connection")
nagios("backends", "--warning=90", "--critical=100")
nagios("database_size", "--warning=10GB", "--critical=20GB")
nagios("table_size", "--warning=10GB", "--critical=20GB", "--include=watched", setup=TABLE)
nagios("index_size", "--warning=10GB", "--critical=20GB", "--include=watched_pkey", setup=TABLE)
nagios("relation_size", "--warning=10GB", "--critical=20GB", "--include=watched", setup=TABLE)
nagios("bloat", "--warning=100M", "--critical=200M", setup=TABLE)
nagios("locks", "--warning=100", "--critical=200")
nagios("query_time", "--warning=10 min", "--critical=20 min")
nagios("txn_time", "--warning=10 min", "--critical=20 min")
nagios("txn_idle", "--warning=10 min", "--critical=20 min")
nagios("txn_wraparound")
nagios("last_analyze", "--include=watched", "--warning=1d", "--critical=2d", setup=TABLE + "; analyze watched; select pg_sleep(1)")
nagios("last_vacuum", "--include=watched", "--warning=1d", "--critical=2d", setup=TABLE)
nagios("last_autovacuum", "--include=watched", "--warning=1d", "--critical=2d", setup=TABLE)
nagios("hitratio", "--warning=1%", "--critical=0%")
nagios("commitratio", "--warning=1%", "--critical=0%")
nagios("sequence", "--warning=85%", "--critical=95%", setup=TABLE)
nagios("timesync", "--warning=2", "--critical=5")
nagios("custom_query", "--query=select 7 as result", "--valtype=integer", "--warning=10", "--critical=20")
nagios("prepared_txns", "--warning=1000", "--critical=2000")
nagios("autovac_freeze")
nagios("dbstats")
nagios("disabled_triggers")
nagios("fsm_pages")


def metrics():
    """What the exporter tells of the server, as names of its metrics, and what it complains about."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        ["prometheus-postgres-exporter", f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={"DATA_SOURCE_NAME": f"postgresql://{USER}:none@127.0.0.1:{PORT}/{DATABASE}?sslmode=disable"}, cwd="/tmp",
    )
    try:
        for _ in range(50):
            try:
                text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
                break
            except OSError:
                time.sleep(0.1)
    finally:
        process.kill()
        said = process.stderr.read()
    found = dict(re.findall(r"^(pg_[a-z_]+)(?:\{[^}]*\})? (\S+)$", text, re.MULTILINE))
    return found, [re.sub(r'.*err="?', "", line)[:300] for line in said.splitlines() if "level=error" in line]


@check
def exporter_is_up(see):
    found, complaints = metrics()
    see(found.get("pg_up"), found.get("pg_exporter_last_scrape_error"), complaints)


def exporter(prefix):
    def run(see):
        found, _ = metrics()
        see(*sorted(name for name in found if name.startswith(prefix)))

    run.__name__ = f"exporter's {prefix.removesuffix('_')}"
    return check(run)


for prefix in ("pg_stat_database_", "pg_stat_activity_", "pg_locks_", "pg_stat_bgwriter_", "pg_settings_shared", "pg_database_", "pg_replication_", "pg_static"):
    exporter(prefix)


def grafana(name, *queries):
    """Queries as Grafana's data source sends them: its macros written out."""

    def run(see):
        connection = keep(psycopg.connect("", autocommit=True, cursor_factory=psycopg.ClientCursor))
        connection.execute("create table metric (time timestamptz not null, host text, value double precision)")
        connection.execute("insert into metric select timestamptz '2024-01-01 00:00Z' + n * interval '20 s', 'h' || n % 2, n from generate_series(0, 59) n")
        for query in queries:
            see(connection.execute(query).fetchall())

    run.__name__ = f"Grafana's {name}"
    return check(run)


WITHIN = "\"time\" BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-01T00:15:00Z'"
grafana("version", "SELECT current_setting('server_version_num')::int/100 > 1400", "SELECT 1 FROM pg_extension WHERE extname = 'timescaledb'")
grafana("time series", f"SELECT \"time\" AS \"time\", value, host AS metric FROM metric WHERE {WITHIN} ORDER BY 1 LIMIT 5")
grafana("groups by time", f"SELECT floor(extract(epoch from \"time\")/300)*300 AS \"time\", host AS metric, avg(value) AS value FROM metric WHERE {WITHIN} GROUP BY 1, host ORDER BY 1, 2")
grafana("groups by unix time", "SELECT floor((extract(epoch from time)::bigint)/300)*300 AS time, max(value) FROM metric WHERE extract(epoch from time) >= 1704067200 AND extract(epoch from time) <= 1704068100 GROUP BY time ORDER BY time, 2 LIMIT 3",
        "SELECT date_bin('300 s', time, '2000-01-01') AS t, count(*) FROM metric GROUP BY t ORDER BY t")
grafana("window functions", f"SELECT time, value - lag(value) OVER (PARTITION BY host ORDER BY time) AS delta FROM metric WHERE {WITHIN} ORDER BY time, host LIMIT 4",
        "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY value) FROM metric")
grafana("list of tables", "SELECT quote_ident(table_name) AS \"table\" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache') AND table_type = 'BASE TABLE' ORDER BY 1",
        "SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns WHERE quote_ident(table_name) = 'metric' ORDER BY 1")
grafana("schemas of the search path", "SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) AS i, string_to_array(current_setting('search_path'),',') s")
grafana("template variables", "SELECT DISTINCT host FROM metric ORDER BY 1", "SELECT host AS __text, min(value)::text AS __value FROM metric GROUP BY host ORDER BY host")
grafana("annotations", f"SELECT extract(epoch from time) AS time, extract(epoch from time + interval '1 minute') AS timeend, host || ' restarted' AS text, array_to_string(array[host, 'a'], ',') AS tags FROM metric WHERE {WITHIN} AND value = 30")
grafana("statistics of a server", "SELECT sum(numbackends) > 0, max(xact_commit) >= 0 FROM pg_stat_database", "SELECT state IS NOT NULL, count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1",
        "SELECT relname, n_live_tup >= 0, seq_scan >= 0 FROM pg_stat_user_tables", "SELECT pg_database_size(current_database()) > 0, pg_size_pretty(pg_total_relation_size('metric')) IS NOT NULL")


serve()
