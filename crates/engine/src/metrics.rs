//! Counts and states of an engine for monitoring systems, in the manner of Prometheus.
//!
//! [`METRICS`] names them all: the base of a name, without the `_total` that a counter's name ends with, and the unit last.
//! Counters count since the engine was opened. [`Engine::metrics`] reads what the engine counts anyway; nothing is counted for
//! the reader's sake. A reading takes the mutex of the list of sessions twice, for their counts and for their states, and that
//! of followers and slots twice, which no session waits for that runs statements. Of a session's texts it takes the name of one
//! that sends the log, and no other text.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::activity::SessionGlance;
use crate::clock;
use crate::engine::Engine;
use crate::session_counts::CountedWork;
use clearway_storage::Lsn;
use clearway_storage::retention::FollowerProgress;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It never falls.
    Counter,
    /// It is what it is now.
    Gauge,
}

impl MetricKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        }
    }
}

/// A metric: its name, its labels and its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name; that of a counter lacks its `_total`.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The meaning, without a full stop.
    pub help: &'static str,
}

/// A value of a metric, and its labels' values in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The values of the labels.
    pub labels: Vec<String>,
    /// The value.
    pub value: f64,
}

/// A metric with its values; one without labels has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The metric.
    pub metric: &'static Metric,
    /// The values.
    pub samples: Vec<Sample>,
}

macro_rules! metrics {
    ($($id:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(static $id: Metric = Metric {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics, in the order in which they are read.
        pub static METRICS: &[&Metric] = &[$(&$id),*];
    };
}

metrics! {
    START = Gauge "clearway_start_time_seconds" [] "Time at which the database was opened, in seconds since 1970";
    IS_STANDBY = Gauge "clearway_is_standby" [] "1 while the server is a standby, 0 while it is a primary";
    TRANSACTIONS = Counter "clearway_transactions" ["outcome"] "Transactions that ended: commit or rollback";
    STATEMENTS = Counter "clearway_statements" ["outcome"] "Statements that ended: ok or error";
    ROWS = Counter "clearway_rows" [] "Rows that statements returned or changed";
    DEADLOCKS = Counter "clearway_deadlocks" [] "Deadlocks that an error ended";
    CONFLICTS = Counter "clearway_recovery_conflicts" ["reason"] "Statements of a standby that replay ended: lock or snapshot";
    SESSIONS = Gauge "clearway_sessions" ["state"] "Sessions by their state";
    WAITS = Gauge "clearway_session_waits" ["class", "event"] "Sessions in a statement that wait, by what they wait for";
    SESSIONS_MAX = Gauge "clearway_sessions_max" [] "The setting max_connections";
    SNAPSHOT_TRANSACTIONS = Gauge "clearway_oldest_snapshot_transactions" [] "Transactions that began since the oldest one that a session's snapshot, or a standby, may need";
    TRANSACTION_SECONDS = Gauge "clearway_oldest_transaction_seconds" [] "Age of the oldest open transaction";
    BUFFER_HITS = Counter "clearway_buffer_hits" [] "Pages that sessions found in the buffer pool";
    BUFFER_READS = Counter "clearway_buffer_reads" [] "Pages that sessions read from files, each into a frame of the buffer pool";
    BUFFER_WRITES = Counter "clearway_buffer_writes" ["by"] "Pages written to files: by sessions, or by checkpoints";
    TEMPORARY_FILES = Counter "clearway_temporary_files" [] "Temporary files that statements made";
    TEMPORARY_BYTES = Counter "clearway_temporary_bytes" [] "Bytes written to temporary files";
    WAL_END = Gauge "clearway_wal_end_bytes" [] "Position of the end of the log, in bytes since the database was made; a promotion or a rewind may take it back";
    WAL_FLUSHED = Gauge "clearway_wal_flushed_bytes" [] "Position up to which the log is durable; likewise";
    WAL_SYNCS = Counter "clearway_wal_syncs" [] "Syncs of the log";
    WAL_SINCE_CHECKPOINT = Gauge "clearway_wal_since_redo_bytes" [] "Log that a recovery would replay";
    CHECKPOINTS = Counter "clearway_checkpoints" ["reason"] "Checkpoints, and restartpoints of a standby: due by time, or requested by a statement or the size of the log";
    CHECKPOINT_WRITE = Counter "clearway_checkpoint_write_seconds" [] "Time that these took to write pages";
    CHECKPOINT_SYNC = Counter "clearway_checkpoint_sync_seconds" [] "Time that these took to make files durable";
    STANDBYS = Gauge "clearway_standbys" ["sync_state"] "Standbys that are sent the log, by their part in synchronous commits";
    STANDBY_LAG_BYTES = Gauge "clearway_standby_lag_bytes" ["application_name", "pid"] "Durable log that a standby has not replayed; of an archive, which replays none, nothing is said";
    STANDBY_LAG_SECONDS = Gauge "clearway_standby_lag_seconds" ["application_name", "pid"] "Age of the oldest log that a standby was sent and has not replayed, or if that is more of what it replayed last, when it said so; 0 if it lacks nothing";
    SLOT_KEPT = Gauge "clearway_slot_kept_bytes" ["slot"] "Durable log that a replication slot keeps";
    SLOT_ACTIVE = Gauge "clearway_slot_active" ["slot"] "1 while a standby uses the slot";
    LATCH_CONFLICTS = Counter "clearway_latch_conflicts" ["class", "mode"] "Acquisitions of latches of the process that found them taken";
    LATCH_SLEEPS = Counter "clearway_latch_sleeps" ["class", "mode"] "Sleeps in waits for latches of the process";
}

/// Readings in the making.
#[derive(Default)]
struct Readings(Vec<Reading>);

impl Readings {
    fn put(&mut self, metric: &'static Metric, samples: impl IntoIterator<Item = (Vec<String>, f64)>) {
        let sample = |(labels, value): (Vec<String>, f64)| {
            debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
            Sample { labels, value }
        };
        self.0.push(Reading {
            metric,
            samples: samples.into_iter().map(sample).collect(),
        });
    }

    fn one(&mut self, metric: &'static Metric, value: f64) {
        self.put(metric, [(Vec::new(), value)]);
    }

    /// Values of a metric with one label.
    fn by<const N: usize>(&mut self, metric: &'static Metric, values: [(&str, u64); N]) {
        self.put(
            metric,
            values.map(|(label, value)| (vec![label.to_owned()], value as f64)),
        );
    }
}

/// Microseconds between 1970-01-01 and 2000-01-01 UTC.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

impl Engine {
    /// All metrics with their values, in the order of [`METRICS`].
    pub fn metrics(&self) -> Vec<Reading> {
        let mut readings = Readings::default();
        let work = self.counted_work();
        let sessions = self.glances();
        let followers = self.storage().retention.followers();
        readings.one(&START, (self.started_at_us + EPOCH_2000_US) as f64 / 1e6);
        readings.one(&IS_STANDBY, f64::from(u8::from(self.is_standby())));
        self.read_work(&work, &mut readings);
        self.read_sessions(&sessions, &followers, &mut readings);
        self.read_pages(&work, &mut readings);
        self.read_log(&mut readings);
        self.read_replication(&sessions, &followers, &mut readings);
        read_latches(&mut readings);
        readings.0
    }

    fn read_work(&self, work: &CountedWork, readings: &mut Readings) {
        readings.by(
            &TRANSACTIONS,
            [("commit", work.commits), ("rollback", work.rollbacks)],
        );
        readings.by(&STATEMENTS, [("ok", work.statements), ("error", work.errors)]);
        readings.one(&ROWS, work.rows as f64);
        readings.one(&DEADLOCKS, work.deadlocks as f64);
        let conflicts = self.conflict_counts();
        readings.by(
            &CONFLICTS,
            [("lock", conflicts.lock), ("snapshot", conflicts.snapshot)],
        );
    }

    fn read_sessions(
        &self,
        sessions: &[SessionGlance],
        followers: &[FollowerProgress],
        readings: &mut Readings,
    ) {
        use crate::activity::SessionState as S;
        let states = [
            S::Idle,
            S::Active,
            S::IdleInTransaction,
            S::IdleInFailedTransaction,
        ];
        let of = |state: S| sessions.iter().filter(|session| session.state == state).count() as u64;
        readings.by(&SESSIONS, states.map(|state| (state.name(), of(state))));
        let mut waits: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for session in sessions.iter().filter(|session| session.state == S::Active) {
            if let Some(event) = session.wait {
                *waits.entry((event.class().name(), event.name())).or_default() += 1;
            }
        }
        let labels = |((class, event), count): ((&str, &str), u64)| {
            (vec![class.to_owned(), event.to_owned()], count as f64)
        };
        readings.put(&WAITS, waits.into_iter().map(labels));
        readings.one(&SESSIONS_MAX, f64::from(self.config().max_connections));
        let needed = followers
            .iter()
            .filter_map(|follower| follower.xmin.map(|xmin| xmin.0));
        let oldest = sessions
            .iter()
            .filter_map(|session| session.xmin)
            .chain(needed)
            .min();
        let next = self.storage().next_xid().0;
        readings.one(
            &SNAPSHOT_TRANSACTIONS,
            oldest.map_or(0, |oldest| next.saturating_sub(oldest)) as f64,
        );
        let begun = sessions
            .iter()
            .filter_map(|session| session.transaction_start)
            .min();
        let age_us = begun.map_or(0, |begun| u64::try_from(clock::now_us() - begun).unwrap_or(0));
        readings.one(&TRANSACTION_SECONDS, seconds(age_us));
    }

    fn read_pages(&self, work: &CountedWork, readings: &mut Readings) {
        let checkpoints = self.storage().checkpoint_counts();
        readings.one(&BUFFER_HITS, work.hit as f64);
        readings.one(&BUFFER_READS, work.read as f64);
        let written = checkpoints.pages.load(Ordering::Relaxed);
        readings.by(
            &BUFFER_WRITES,
            [("session", work.written), ("checkpoint", written)],
        );
        readings.one(&TEMPORARY_FILES, work.temporary_files as f64);
        readings.one(&TEMPORARY_BYTES, work.temporary_bytes as f64);
    }

    fn read_log(&self, readings: &mut Readings) {
        let storage = self.storage();
        // First: it does not pass the end that is read after it.
        let start = storage.recovery_start();
        let flushed = storage.durable_log_end();
        let end = if self.is_standby() {
            flushed
        } else {
            storage.wal.reserved().max(flushed)
        };
        readings.one(&WAL_END, end.0 as f64);
        readings.one(&WAL_FLUSHED, flushed.0 as f64);
        readings.one(&WAL_SYNCS, self.log_syncs() as f64);
        readings.one(&WAL_SINCE_CHECKPOINT, end.0.saturating_sub(start.0) as f64);
        let checkpoints = storage.checkpoint_counts();
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let reasons = [
            ("time", count(&checkpoints.timed)),
            ("request", count(&checkpoints.requested)),
        ];
        readings.by(&CHECKPOINTS, reasons);
        readings.one(&CHECKPOINT_WRITE, seconds(count(&checkpoints.write_us)));
        readings.one(&CHECKPOINT_SYNC, seconds(count(&checkpoints.sync_us)));
    }

    fn read_replication(
        &self,
        sessions: &[SessionGlance],
        followers: &[FollowerProgress],
        readings: &mut Readings,
    ) {
        let flushed = self.storage().durable_log_end();
        let standbys = || followers.iter().filter(|follower| !follower.is_backup);
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for follower in standbys() {
            *states.entry(follower.sync_state.name()).or_default() += 1;
        }
        let by_state = states
            .into_iter()
            .map(|(state, count)| (vec![state.to_owned()], count as f64));
        readings.put(&STANDBYS, by_state);
        let labels = |process_id: u32| {
            let session = sessions.iter().find(|session| session.process_id == process_id);
            let name = session.and_then(|session| session.follower_name.clone());
            vec![name.unwrap_or_default(), process_id.to_string()]
        };
        // An archive says what it has written, and never what it has replayed.
        let replaying =
            || standbys().filter(|follower| follower.reply_time.is_none() || follower.replayed > Lsn(0));
        let bytes = |replayed: Lsn| flushed.0.saturating_sub(replayed.0);
        readings.put(
            &STANDBY_LAG_BYTES,
            replaying().map(|follower| (labels(follower.process_id), bytes(follower.replayed) as f64)),
        );
        readings.put(
            &STANDBY_LAG_SECONDS,
            replaying().filter_map(|follower| {
                let lag = follower.lags.replayed.filter(|_| bytes(follower.replayed) > 0);
                // Nothing is known of one that was sent nothing and has said nothing.
                let is_known = lag.is_some() || follower.reply_time.is_some();
                let seconds = lag.map_or(0.0, |lag| lag.as_secs_f64());
                is_known.then(|| (labels(follower.process_id), seconds))
            }),
        );
        let slots = self.storage().retention.slots();
        let kept = slots.iter().filter(|slot| !slot.lost).filter_map(|slot| {
            let kept = flushed.0.saturating_sub(slot.restart?.0);
            Some((vec![slot.name.clone()], kept as f64))
        });
        readings.put(&SLOT_KEPT, kept);
        let active = slots.iter().map(|slot| {
            let is_active = slot.active_process_id.is_some();
            (vec![slot.name.clone()], f64::from(u8::from(is_active)))
        });
        readings.put(&SLOT_ACTIVE, active);
    }
}

fn read_latches(readings: &mut Readings) {
    let classes = clearway_latch::statistics();
    let modes = || {
        classes.iter().flat_map(|class| {
            [
                ("shared", &class.shared),
                ("exclusive", &class.exclusive),
                ("update", &class.update),
                ("until-free", &class.until_free),
            ]
            .map(|(mode, counts)| (vec![class.name.to_owned(), mode.to_owned()], counts))
        })
    };
    let waited = || modes().filter(|(_, counts)| counts.conflicts > 0);
    readings.put(
        &LATCH_CONFLICTS,
        waited().map(|(labels, counts)| (labels, counts.conflicts as f64)),
    );
    readings.put(
        &LATCH_SLEEPS,
        waited().map(|(labels, counts)| (labels, counts.sleeps as f64)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/operating/metrics.md lists every metric, and no others.
    #[test]
    fn the_page_of_metrics_agrees_with_the_code() {
        let page = include_str!("../../../docs/operating/metrics.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `clearway_"))
            .collect();
        for metric in METRICS {
            let total = if metric.kind == MetricKind::Counter {
                "_total"
            } else {
                ""
            };
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let row = format!(
                "| `{}{total}` | {} | {} | {}. |",
                metric.name,
                metric.kind.name(),
                labels.join(", "),
                metric.help
            );
            assert!(
                rows.contains(&row.as_str()),
                "docs/operating/metrics.md lacks the row:\n{row}"
            );
        }
        assert_eq!(rows.len(), METRICS.len(), "a row is about no metric");
    }

    /// Prometheus' rules for names: a counter gets its `_total` from the encoder, and the unit is a base unit.
    #[test]
    fn names_are_as_prometheus_users_write_them() {
        for metric in METRICS {
            let name = metric.name;
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            for wrong in [
                "_total",
                "_ms",
                "_kb",
                "_milliseconds",
                "_count",
                "_sum",
                "_bucket",
            ] {
                assert!(!name.ends_with(wrong), "{name}");
            }
            assert!(!metric.help.ends_with('.'), "{name}");
        }
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn work_is_counted_and_every_metric_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let config = crate::Config::from_toml("shared_buffers = \"2MB\"").unwrap();
        let engine = Engine::open(directory.path(), config).unwrap();
        let read = |name: &str, labels: &[&str]| {
            let readings = engine.metrics();
            let reading = readings
                .iter()
                .find(|reading| reading.metric.name == name)
                .unwrap();
            let sample = reading.samples.iter().find(|sample| sample.labels == labels);
            sample.map(|sample| sample.value)
        };
        let names: Vec<&str> = engine
            .metrics()
            .iter()
            .map(|reading| reading.metric.name)
            .collect();
        let all: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names, all);
        let before = |name, labels: &[&str]| read(name, labels).unwrap();
        let (statements, errors) = (
            before("clearway_statements", &["ok"]),
            before("clearway_statements", &["error"]),
        );
        let (rows, files) = (
            before("clearway_rows", &[]),
            before("clearway_temporary_files", &[]),
        );
        let (log, rollbacks) = (
            before("clearway_wal_end_bytes", &[]),
            before("clearway_transactions", &["rollback"]),
        );

        let mut session = engine.session(crate::SessionInfo::default()).unwrap();
        let mut out = crate::Collected::default();
        let mut run = |sql: &str| session.execute_simple(sql, &mut out);
        run("create table t (a int, b text)").unwrap();
        run("insert into t select n, repeat('x', 100) from generate_series(1, 3000) n").unwrap();
        run("set work_mem = '64kB'").unwrap();
        run("select count(*) from (select * from t order by b, a offset 0) s").unwrap();
        run("select 1/0").unwrap_err();
        run("begin").unwrap();
        run("update t set a = a where a = 1").unwrap();
        assert_eq!(read("clearway_sessions", &["idle in transaction"]), Some(1.0));
        assert!(before("clearway_oldest_transaction_seconds", &[]) > 0.0);
        run("rollback").unwrap();

        assert_eq!(before("clearway_statements", &["ok"]) - statements, 7.0);
        assert_eq!(before("clearway_statements", &["error"]) - errors, 1.0);
        // 3,000 inserted, one counted, one updated.
        assert_eq!(before("clearway_rows", &[]) - rows, 3_002.0);
        assert_eq!(before("clearway_temporary_files", &[]) - files, 1.0);
        assert!(before("clearway_temporary_bytes", &[]) >= 300_000.0);
        assert!(before("clearway_wal_end_bytes", &[]) - log > 300_000.0);
        assert_eq!(before("clearway_transactions", &["rollback"]) - rollbacks, 2.0);
        // What a session has done is counted when it is gone.
        drop(session);
        assert_eq!(before("clearway_statements", &["ok"]) - statements, 7.0);
        assert_eq!(read("clearway_sessions", &["idle in transaction"]), Some(0.0));
    }
}
