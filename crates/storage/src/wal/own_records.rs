//! Log records of the program that embeds this crate: what it has to do so that its own structures are as durable as pages.
//!
//! # A structure beside the pages
//! Alice's program keeps words in a file of its own. Adding one is a record; the file is written now and then.
//!
//! | time | the program | a crash after it |
//! | --- | --- | --- |
//! | 1 | logs `WordAdded "heron"`, which ends at 1000, and adds the word in memory | the word is gone if nothing was flushed |
//! | 2 | commits: the log is durable up to 1100 | recovery has the word added again ([`redo`](OwnRecords::redo)) |
//! | 3 | a checkpoint with redo position 1200 has the file written ([`make_durable`](OwnRecords::make_durable)) | recovery begins at 1200, and the word is in the file |
//!
//! # Rules for the program
//! - O1: it writes nothing of a change to its files before the log is durable up to the end of the change's record
//!   ([`Wal::flush`]).
//! - O2: it logs a change, and enters it where `make_durable` finds it, under one latch, which `make_durable` takes. A
//!   checkpoint chooses its redo position first; a record before it may be of a change that is still to be entered, and
//!   the latch is what waits for that.
//! - O3: a change that is there already is not made again. Its files may hold changes of behind the redo position; so they
//!   note the end of the last record, or a change is such that twice is as once.
//! - O4: a record stays when its transaction rolls back. A change that is seen only if that has committed holds its xid, as
//!   a row version does ([`Storage::status`](crate::Storage::status)).
//!
//! # Rules for replay
//! - O5: each record of the log from the redo position on is handed to `redo`, in the order of the log, by one worker at a
//!   time; on a standby after all that is before it has been replayed, whichever workers replay.
//! - O6: a log with a record that nothing here replays is refused before anything is changed: one of the program's own if the
//!   directory is opened without [`OwnRecords`], one of a kind that this version does not know in any case. Log that a
//!   recovery to a point has taken from an archive stays. A standby that is sent one replays what is before it and stops there.
//!
//! # What it does not do
//! Base backups and rewinds carry pages and the log. Of the program's own files the program takes care: it copies them
//! between a backup's start and its end. A rewind is refused where it would have to take records of the program's own back,
//! or to fetch what they have changed.

use std::error::Error;
use std::fmt;

use clearway_txn::Xid;

use super::Wal;
use super::record::RecordKind;
use crate::page::Lsn;

/// A failure of the program's part, which ends the replay or the checkpoint.
pub type OwnError = Box<dyn Error + Send + Sync>;

/// A record of one of the program's own kinds, read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRecord<'a> {
    /// Its kind.
    pub kind: RecordKind,
    /// The transaction that logged it; [`Xid::INVALID`] if none.
    pub xid: Xid,
    /// The position of its beginning.
    pub start: Lsn,
    /// The position after it.
    pub end: Lsn,
    /// The program's payload.
    pub payload: &'a [u8],
}

/// The part of a program that keeps structures of its own by the log (rules O1 to O6 of [this module](self)).
pub trait OwnRecords: fmt::Debug + Send + Sync {
    /// Makes the change that the record tells, unless it is there already (O3). Called by recovery and by a standby; an error
    /// ends either.
    fn redo(&self, record: &OwnRecord<'_>) -> Result<(), OwnError>;

    /// Makes durable what the records before `redo` tell (O2), and flushes `log` before it writes what later ones do (O1).
    /// Called by each checkpoint, and by each restartpoint of a standby, from the thread that makes it; after an error it is
    /// not made, and the log stays.
    fn make_durable(&self, redo: Lsn, log: &Wal) -> Result<(), OwnError>;
}
