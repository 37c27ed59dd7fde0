//! Counts of the server since they were last reset (`pg_stat_reset`, `pg_stat_reset_shared`).
//!
//! The counts themselves are never put back: sessions add to theirs without a lock, and a reader of metrics takes one that
//! falls for a restart. A reset notes what they were, and the views show how much there was since.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clearway_storage::wal::LogTotals;

use crate::clock;
use crate::engine::Engine;
use crate::server_counts::{DatabaseCounts, Since, WriterCounts};
use clearway_sql::error::{EngineError, Result, SqlState};

/// The counts at the last resets.
#[derive(Debug)]
pub(crate) struct StatisticsReset(Mutex<Noted>);

#[derive(Debug)]
struct Noted {
    database: Since<DatabaseCounts>,
    writer: Since<WriterCounts>,
    log: Since<LogTotals>,
    archiver_us: i64,
}

impl StatisticsReset {
    /// Nothing was counted before this.
    pub(crate) fn new() -> StatisticsReset {
        let now = clock::now_us();
        StatisticsReset(Mutex::new(Noted {
            database: none_since(now),
            writer: none_since(now),
            log: none_since(now),
            archiver_us: now,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn none_since<T: Default>(reset_us: i64) -> Since<T> {
    Since {
        counts: T::default(),
        reset_us,
    }
}

impl Engine {
    fn database_counts_now(&self) -> DatabaseCounts {
        DatabaseCounts {
            work: self.counted_work(),
            conflicts: self.conflict_counts(),
        }
    }

    fn writer_counts_now(&self) -> WriterCounts {
        let checkpoints = self.storage().checkpoint_counts();
        let work = self.counted_work();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriterCounts {
            timed: count(&checkpoints.timed),
            requested: count(&checkpoints.requested),
            pages: count(&checkpoints.pages),
            write_us: count(&checkpoints.write_us),
            sync_us: count(&checkpoints.sync_us),
            written: work.written,
            read: work.read,
        }
    }

    /// The work of sessions since the last reset.
    pub(crate) fn database_counts(&self) -> Since<DatabaseCounts> {
        let noted = self.statistics_reset.lock().database;
        let now = self.database_counts_now();
        Since {
            counts: DatabaseCounts {
                work: now.work.since(&noted.counts.work),
                conflicts: now.conflicts.since(noted.counts.conflicts),
            },
            ..noted
        }
    }

    /// Checkpoints, and pages of sessions, since the last reset.
    pub(crate) fn writer_counts(&self) -> Since<WriterCounts> {
        let noted = self.statistics_reset.lock().writer;
        Since {
            counts: self.writer_counts_now().since(noted.counts),
            ..noted
        }
    }

    /// Counts of the log since the last reset.
    pub(crate) fn log_counts(&self) -> Since<LogTotals> {
        let noted = self.statistics_reset.lock().log;
        Since {
            counts: self.storage().wal.totals().since(noted.counts),
            ..noted
        }
    }

    /// The time of the last reset of the counts of an archiver.
    pub(crate) fn archiver_reset_us(&self) -> i64 {
        self.statistics_reset.lock().archiver_us
    }

    /// Resets the counts of the database and of its tables. Those of rows, by which tables are vacuumed and analyzed, stay.
    pub(crate) fn reset_database_counts(&self) {
        let counts = self.database_counts_now();
        self.statistics_reset.lock().database = Since {
            counts,
            reset_us: clock::now_us(),
        };
        self.storage.reset_pages_read(None);
        for table in self.catalog.state().tables() {
            table.runtime.reset_counts();
        }
    }

    /// Resets counts of the server; 22023 for a name of none.
    pub(crate) fn reset_shared_counts(&self, target: &str) -> Result<()> {
        let reset_us = clock::now_us();
        match target {
            "archiver" => self.statistics_reset.lock().archiver_us = reset_us,
            "bgwriter" => {
                let counts = self.writer_counts_now();
                self.statistics_reset.lock().writer = Since { counts, reset_us };
            }
            "wal" => {
                let counts = self.storage().wal.totals();
                self.statistics_reset.lock().log = Since { counts, reset_us };
            }
            // Nothing is fetched ahead, and nothing counted.
            "recovery_prefetch" => {}
            other => {
                return Err(EngineError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unrecognized reset target: \"{other}\""),
                )
                .with_hint("Target must be \"archiver\", \"bgwriter\", \"recovery_prefetch\", or \"wal\"."));
            }
        }
        Ok(())
    }
}
