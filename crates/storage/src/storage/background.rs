//! The background threads of a database, for those who look what the server does.
//!
//! A thread enters itself at its beginning, with its kind and its worker slot, and leaves when it ends. What it waits for
//! is read from the worker slot, as that of a session is. The thread that replays stands for its workers, too, which have
//! no rows: if one of them waits for room on the disk, so does replay.

use std::sync::{Arc, Mutex, MutexGuard};

use clearway_machine::{Machine, Native, WorkerId};

use crate::commit::wall_clock;

/// The task of a background thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackgroundKind {
    /// Makes checkpoints; on a standby, restartpoints.
    Checkpointer,
    /// Makes commits durable that do not wait for the disk.
    LogWriter,
    /// Looks which tables need a vacuum, and vacuums them.
    Vacuum,
    /// Replays the log of a standby.
    Replay,
    /// Receives the log of a standby.
    Receiver,
}

impl BackgroundKind {
    /// PostgreSQL's name of such a process: `backend_type` of `pg_stat_activity`.
    pub const fn name(self) -> &'static str {
        match self {
            BackgroundKind::Checkpointer => "checkpointer",
            BackgroundKind::LogWriter => "walwriter",
            BackgroundKind::Vacuum => "autovacuum launcher",
            BackgroundKind::Replay => "startup",
            BackgroundKind::Receiver => "walreceiver",
        }
    }
}

/// A background thread that runs.
#[derive(Debug, Clone, Copy)]
pub struct BackgroundThread {
    /// Tells it from all others that this database has had since it was opened; from 0.
    pub number: u32,
    /// Its task.
    pub kind: BackgroundKind,
    /// Its worker slot.
    pub worker: WorkerId,
    /// Its start, in microseconds since 2000-01-01 UTC.
    pub start_us: i64,
}

#[derive(Debug, Default)]
struct Entered {
    next_number: u32,
    threads: Vec<BackgroundThread>,
}

/// Those that run.
#[derive(Debug, Default)]
pub struct BackgroundThreads(Mutex<Entered>);

impl BackgroundThreads {
    fn lock(&self) -> MutexGuard<'_, Entered> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The calling thread is one of `kind` until what this returns is dropped.
    #[must_use = "the thread leaves when it is dropped"]
    pub fn enter(self: &Arc<Self>, kind: BackgroundKind) -> InBackground {
        let mut entered = self.lock();
        let number = entered.next_number;
        entered.next_number += 1;
        entered.threads.push(BackgroundThread {
            number,
            kind,
            worker: Native::worker(),
            start_us: wall_clock::now_us(),
        });
        InBackground {
            threads: Arc::clone(self),
            number,
        }
    }

    /// All that run, in the order in which they began.
    pub fn all(&self) -> Vec<BackgroundThread> {
        self.lock().threads.clone()
    }
}

/// That the thread runs; dropped at its end.
#[derive(Debug)]
pub struct InBackground {
    threads: Arc<BackgroundThreads>,
    number: u32,
}

impl Drop for InBackground {
    fn drop(&mut self) {
        let mut entered = self.threads.lock();
        entered.threads.retain(|thread| thread.number != self.number);
    }
}
