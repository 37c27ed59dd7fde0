//! The server that a directory is rewound to, as this folder sees it. Over a connection it is
//! `server/src/replication/receiver/rewind.rs`; in tests, a [`Backup`](crate::backup::Backup) in the same process.

use clearway_txn::Xid;

use crate::error::StorageError;
use crate::page::{Lsn, RelId};

/// The most pages that are asked for at a time.
pub const PAGES_MAX: usize = 128;
/// The most bytes of log that are asked for at a time.
pub const LOG_BYTES_MAX: usize = 1 << 20;

/// The checkpoint that the rewound directory begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceStart {
    /// Recovery begins here.
    pub redo: Lsn,
    /// The end of the checkpoint's record.
    pub checkpoint_end: Lsn,
    /// All xids below were handed out before `redo`.
    pub next_xid: Xid,
}

/// A relation's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRelation {
    /// Its number.
    pub rel: RelId,
    /// Its length, in pages.
    pub blocks: u32,
}

/// The end of what is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEnd {
    /// The content of the control file.
    pub control: Vec<u8>,
    /// The log is needed up to here.
    pub position: Lsn,
    /// The history files of the timeline and of those that it comes from, by name.
    pub history_files: Vec<(String, String)>,
}

/// A server whose pages and log are copied. The calls come in the order `begin`, all others, `finish`, and `log` again.
pub trait RewindSource {
    /// The error of a call.
    type Error: From<StorageError>;

    /// Keeps the log from `log_from` on, and makes a checkpoint.
    fn begin(&mut self, log_from: Lsn) -> Result<SourceStart, Self::Error>;

    /// All relations' files.
    fn relations(&mut self) -> Result<Vec<SourceRelation>, Self::Error>;

    /// The pages of these numbers, at most [`PAGES_MAX`], one behind the other; zeros for those that the file does not have.
    /// `None` if the relation is there no more.
    fn pages(&mut self, rel: RelId, blocks: &[u32]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The CRC-32C of what is behind the header of each of these pages, at most [`PAGES_MAX`], of the commit log.
    fn status_sums(&mut self, first: u32, count: u32) -> Result<Vec<u32>, Self::Error>;

    /// Reads log at `position`, at most [`LOG_BYTES_MAX`]: all of `bytes`, which is durable.
    fn log(&mut self, position: Lsn, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Everything was copied.
    fn finish(&mut self) -> Result<SourceEnd, Self::Error>;
}
