//! The standby's side of streaming replication: it fetches a copy of another server's files, and then its log.
//!
//! ```text
//!   an empty directory ─▶ base_backup ─▶ the directory of a standby ─▶ opened, replayed ─▶ run: connect, stream, again
//!                                                                                              │
//!                                                    primary ──▶ client ──▶ stream ──▶ LogSink: the standby's pg_wal
//!                                                            ◀── how far written, durable, replayed
//! ```
//!
//! | module | job |
//! | --- | --- |
//! | [`conninfo`] | connection strings |
//! | `connect`, [`client`] | a connection: commands, results, streams |
//! | [`agree`] | does the server's log go on from ours? |
//! | [`identify`] | a server's answers about itself; slots; histories of timelines |
//! | [`base_backup`] | fetching a copy of the files |
//! | [`rewind`] | making a former primary's directory a standby's again |
//! | [`stream`] | receiving log, from the start of a stream to its end |
//! | [`run`] | the thread that keeps at it |
//! | [`status`] | a row of `pg_stat_wal_receiver` |
//!
//! # Rules
//! 1. The log is copied byte for byte to the same positions. The sink checks its records; a bad one is asked for again.
//! 2. Log is reported as durable once it is so here, in whole records (R1 of [`stream`]). Nothing is
//!    reported any more once replay has failed.
//! 3. A byte from the server never makes this program panic, or allocate much more than has arrived.
//! 4. Everything that waits ends within 100 ms of the stop signal.
//! 5. Another database, or a log that does not go on from ours, is never followed: the directory would be neither.
//!
//! This folder knows nothing of replay. What it needs of a standby are the three traits below; tests give it other ones.

pub mod agree;
pub mod base_backup;
pub mod client;
mod connect;
pub mod conninfo;
mod error;
pub mod identify;
mod password;
pub mod rewind;
pub mod run;
pub mod status;
pub mod stream;

use clearway_storage::Lsn;
use clearway_storage::log_digest::LogDigest;

pub use error::{ReceiverError, Result};

/// The destination of received log.
pub trait LogSink: Send {
    /// The position of the next byte.
    fn position(&self) -> Lsn;
    /// Writes log at `position`, which is where the next byte goes.
    fn write(&mut self, position: Lsn, bytes: &[u8]) -> clearway_storage::Result<()>;
    /// Makes durable what was written; up to where it is.
    fn sync(&mut self) -> clearway_storage::Result<Lsn>;
    /// The position up to which durable log was checked: the most that may be reported as durable.
    fn checked(&self) -> Lsn {
        Lsn(u64::MAX)
    }
    /// Gives up a record of which there is only the beginning, so that it is received again from its start; whether there
    /// was any.
    fn give_up_part(&mut self) -> bool {
        false
    }
    /// The log is going to be received on another timeline, for which a part of a record at its end may have been given up:
    /// the next byte goes where that leaves it.
    fn resume(&mut self) {}
    /// A server has begun to send log to the calling thread, or sends no more.
    fn set_streaming(&mut self, streams: bool) {
        let _ = streams;
    }
}

/// The reason why a server's timeline is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    /// It never can be.
    #[error("{0}")]
    Never(String),
    /// Not now: it is to be tried again.
    #[error("{0}")]
    NotYet(String),
}

/// The state of replay that a server gets to know.
pub trait ReplayView: Send + Sync {
    /// Up to where the log is replayed.
    fn replayed(&self) -> Lsn;
    /// The reason why nothing will be replayed any more, if there is one.
    fn failure(&self) -> Option<String> {
        None
    }
    /// The oldest xid that some session's snapshot does not see as ended; 0 if there is no snapshot.
    fn oldest_xid_seen(&self) -> u64;
}

/// The log that there is here, of which a server's is to be the continuation.
pub trait OwnLog {
    /// The database's number.
    fn system_identifier(&self) -> u64;
    /// The timeline that the log is on, and the next stream is to be of.
    fn timeline(&self) -> u32;
    /// The server is on `timeline`, whose history file is `history` (none for the first timeline); our log ends at
    /// `log_end`. Up to where ours is to be the server's, or why the server's history does not go on from ours. Changes
    /// nothing.
    fn common_end(&self, timeline: u32, history: Option<&[u8]>, log_end: Lsn) -> Result<Lsn, NotFollowed>;
    /// The digest of the log between the two positions, as far as it is there.
    fn digest(&self, start: Lsn, end: Lsn) -> clearway_storage::Result<LogDigest>;
}

/// A log that can go on on another timeline.
pub trait TimelineKeeper: OwnLog + Send + Sync {
    /// The server is on the newer timeline `timeline`, whose history file is `history`; our log ends at `log_end`. Goes on
    /// on that timeline, or says why that is not possible.
    fn follow(&self, timeline: u32, history: &[u8], log_end: Lsn) -> Result<(), NotFollowed>;
}
