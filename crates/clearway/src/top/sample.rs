//! One look at a server: what its views say at a moment.
//!
//! Counters count from the server's start; [`figures`](super::figures) makes rates of two looks.

use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::{Client, ResultSet};

/// The class of the wait of a session that is active and waits for nothing.
pub(super) const RUNNING: &str = "CPU";

/// The answers of one round trip, in the order of the fields of [`Sample`].
const LOOK: &str = "
select version(), pg_is_in_recovery(), extract(epoch from clock_timestamp()) as now,
    extract(epoch from clock_timestamp() - pg_postmaster_start_time()) as up,
    pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, '0/0') as log;
select sum(xact_commit) as commits, sum(xact_rollback) as rollbacks, sum(blks_hit) as found, sum(blks_read) as read,
    sum(temp_bytes) as temporary, sum(deadlocks) as deadlocks from pg_stat_database;
select checkpoints_timed + checkpoints_req as checkpoints, buffers_checkpoint as written from pg_stat_bgwriter;
select pid, usename, datname, application_name, host(client_addr) as client, state, wait_event_type, wait_event,
    extract(epoch from clock_timestamp() - coalesce(query_start, backend_start)) as statement_seconds,
    extract(epoch from clock_timestamp() - xact_start) as transaction_seconds,
    case when wait_event_type = 'Lock' then array_to_string(pg_blocking_pids(pid), ',') end as blockers, query
    from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid;
select application_name, client_addr, state, sync_state, replay_lag,
    pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, replay_lsn)
    as behind from pg_stat_replication order by application_name;
select name, mode, conflicts, sleeps, wait_p99_ns from clearway_latches where conflicts > 0;
";

/// The classes of what sessions wait for, many times an interval.
const WAITS: &str =
    "select coalesce(wait_event_type, 'CPU') as class, count(*) as sessions from pg_stat_activity
    where backend_type = 'client backend' and state = 'active' and pid <> pg_backend_pid() group by 1";

/// A look at a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) version: String,
    pub(super) is_standby: bool,
    /// The server's clock, seconds since 1970.
    pub(super) now: f64,
    /// Seconds since the server's start.
    pub(super) up: f64,
    /// The end of the log, bytes.
    pub(super) log: f64,
    pub(super) commits: f64,
    pub(super) rollbacks: f64,
    /// Pages found in the buffer pool, and read into it.
    pub(super) found: f64,
    pub(super) read: f64,
    /// Bytes of temporary files.
    pub(super) temporary: f64,
    pub(super) deadlocks: f64,
    pub(super) checkpoints: f64,
    /// Pages that checkpoints have written.
    pub(super) written: f64,
    pub(super) sessions: Vec<Session>,
    pub(super) standbys: Vec<Standby>,
    pub(super) latches: Vec<Latch>,
}

/// A client's session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Session {
    pub(super) pid: i64,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) application: String,
    /// The client's address; empty on a Unix-domain socket.
    pub(super) client: String,
    pub(super) state: String,
    /// Class and event of its wait; both are empty if it runs.
    pub(super) wait_class: String,
    pub(super) wait_event: String,
    /// Seconds since its last statement began.
    pub(super) statement_seconds: f64,
    /// Seconds since its transaction began, if it has one.
    pub(super) transaction_seconds: Option<f64>,
    /// The sessions that keep the lock it waits for.
    pub(super) blockers: Vec<i64>,
    /// The number of sessions that wait for it, directly or behind others; [`waiters`](super::waiters) counts them.
    pub(super) waiters: usize,
    pub(super) statement: String,
}

impl Session {
    /// True if it is in a statement.
    pub(super) fn is_active(&self) -> bool {
        self.state == "active"
    }

    /// True if it has a transaction open and does nothing in it.
    pub(super) fn is_idle_in_transaction(&self) -> bool {
        self.state.starts_with("idle in transaction")
    }
}

/// A standby that this server sends log to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Standby {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) sync_state: String,
    /// Log that it has not replayed, bytes.
    pub(super) behind: Option<f64>,
    /// The delay of its replay, as the server writes it.
    pub(super) lag: Option<String>,
}

/// A mode of a latch class that somebody has waited for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Latch {
    pub(super) name: String,
    pub(super) mode: String,
    pub(super) conflicts: f64,
    pub(super) sleeps: f64,
    pub(super) wait_p99_ns: Option<f64>,
}

/// A row of a result, by the names of its columns.
struct Row<'r> {
    columns: &'r [String],
    values: &'r [Option<Vec<u8>>],
}

impl Row<'_> {
    fn text(&self, column: &str) -> Option<String> {
        let at = self.columns.iter().position(|name| name == column)?;
        let value = self.values.get(at)?.as_deref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    fn word(&self, column: &str) -> String {
        self.text(column).unwrap_or_default()
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }

    fn count(&self, column: &str) -> f64 {
        self.number(column).unwrap_or(0.0)
    }
}

fn rows(results: &[ResultSet], number: usize) -> impl Iterator<Item = Row<'_>> {
    results.get(number).into_iter().flat_map(|result| {
        result.rows.iter().map(|values| Row {
            columns: &result.columns,
            values,
        })
    })
}

/// Looks at the server.
pub(super) fn look(client: &mut Client) -> Result<Sample, ReceiverError> {
    Ok(read(&client.query(LOOK)?))
}

/// The number of active sessions that wait for something of each class, or run.
pub(super) fn waits(client: &mut Client) -> Result<Vec<(String, f64)>, ReceiverError> {
    let results = client.query(WAITS)?;
    Ok(rows(&results, 0)
        .map(|row| (row.word("class"), row.count("sessions")))
        .collect())
}

fn read(results: &[ResultSet]) -> Sample {
    let mut sample = Sample::default();
    for row in rows(results, 0) {
        sample.version = row.word("version");
        sample.is_standby = row.word("pg_is_in_recovery") == "t";
        (sample.now, sample.up, sample.log) = (row.count("now"), row.count("up"), row.count("log"));
    }
    for row in rows(results, 1) {
        (sample.commits, sample.rollbacks) = (row.count("commits"), row.count("rollbacks"));
        (sample.found, sample.read) = (row.count("found"), row.count("read"));
        (sample.temporary, sample.deadlocks) = (row.count("temporary"), row.count("deadlocks"));
    }
    for row in rows(results, 2) {
        (sample.checkpoints, sample.written) = (row.count("checkpoints"), row.count("written"));
    }
    sample.sessions = rows(results, 3).map(|row| session(&row)).collect();
    sample.standbys = rows(results, 4).map(|row| standby(&row)).collect();
    sample.latches = rows(results, 5).map(|row| latch(&row)).collect();
    sample
}

fn session(row: &Row<'_>) -> Session {
    let blockers = row.word("blockers");
    Session {
        pid: row.count("pid") as i64,
        user: row.word("usename"),
        database: row.word("datname"),
        application: row.word("application_name"),
        client: row.word("client"),
        state: row.word("state"),
        wait_class: row.word("wait_event_type"),
        wait_event: row.word("wait_event"),
        statement_seconds: row.count("statement_seconds").max(0.0),
        transaction_seconds: row.number("transaction_seconds"),
        blockers: blockers.split(',').filter_map(|pid| pid.parse().ok()).collect(),
        waiters: 0,
        statement: row.word("query"),
    }
}

fn standby(row: &Row<'_>) -> Standby {
    Standby {
        name: row.word("application_name"),
        state: row.word("state"),
        sync_state: row.word("sync_state"),
        behind: row.number("behind"),
        lag: row.text("replay_lag"),
    }
}

fn latch(row: &Row<'_>) -> Latch {
    Latch {
        name: row.word("name"),
        mode: row.word("mode"),
        conflicts: row.count("conflicts"),
        sleeps: row.count("sleeps"),
        wait_p99_ns: row.number("wait_p99_ns"),
    }
}
