//! The standby: a directory whose log is received from another server, replayed, and read from meanwhile.
//!
//! # An example
//! Alice changes a row on the primary, in transaction 100. Bob reads it on the standby.
//!
//! | time | primary | received | replayed | Bob |
//! | --- | --- | --- | --- | --- |
//! | 1 | logs Alice's change at 1000, her commit at 1100 | | | |
//! | 2 | | 1000 to 1150, written and not synced | | |
//! | 3 | | synced: up to 1150 | | |
//! | 4 | | | the change: Alice's version is on the page, and 100 counts as running | a snapshot: 100 runs |
//! | 5 | | | the commit: commit log, definitions, known xids | reads the version before |
//! | 6 | | | | the next snapshot sees Alice's version |
//!
//! # Rules
//! - S1: the log is a copy of the primary's, byte for byte and at the same positions. A standby inserts no record, so that
//!   it can go on to receive, and another standby can follow it.
//! - S2: only *received* log is replayed, that is what is durable here. So no page in a file is newer than the log here,
//!   and after a crash the standby is consistent when it has replayed its own log to the end. (PostgreSQL replays what it
//!   has written and not synced, and has to keep the position of the newest page in its control file.)
//! - S3: [`Storage::open_standby`] returns when it has done that. Each checkpoint logs which transactions run, between its
//!   redo position and its end. Replay begins at a redo position and goes beyond that checkpoint's end, so all running
//!   transactions are known then, and snapshots can be taken.
//! - S4: a commit becomes visible in the order of `commit`: commit log, definitions, and then the xid leaves the known
//!   ones. An abort is the same without definitions.
//! - S5: a change over several pages is replayed with all of them latched exclusively. Readers hold one latch at a time,
//!   so none sees half of it, and neither waits for the other.
//! - S6: the primary says which deleter's versions it is about to remove (`Cleanup`), and replay waits until no session
//!   has a snapshot for which that deleter runs (`snapshot`, `conflict`).
//! - S7: what needs a table for itself is the change of its definition. It happens at one moment here, the replay of the
//!   commit: the [`ReplayObserver`] waits for the table's readers then. Relation locks of the primary are not replayed:
//!   a table that is dropped and one that is truncated keep their files until the commit, so no reader is in danger
//!   before.
//! - S8: a follower of this standby is sent what is durable here, replayed or not. Once a promotion has begun it is sent
//!   what was replayed only, which ends at the fork: what is behind that is the beginning of a record at most, and is
//!   overwritten. A follower that has such a beginning already gives it up when it follows onto the new timeline
//!   (`take_back`).
//! - S9: the files can be copied while they are in use (`backup`), and the copy is a standby's directory by S2.
//! - S10: each record is checked when it arrives, before it is acknowledged; how far log was acknowledged is on disk
//!   (`receive`, `acknowledged`). When replay has failed, nothing more is acknowledged: the caller of `receive` looks for
//!   [`Standby::failure`]. A promotion is refused unless all that was ever acknowledged is there and can be replayed.
//! - S11: a full disk is not a failure of replay: it waits for room (`room`).
//!
//! | file | |
//! | --- | --- |
//! | `receive` | checking and writing received log |
//! | `room` | waiting for room on the disk |
//! | `replay` | one record: what each kind does, and which worker changes the pages |
//! | `following` | the thread that replays |
//! | `conflict` | sessions in the way of replay |
//! | `restartpoint` | bounding what the next start must replay |
//! | `take_back` | following a server that has less of the last record |
//!
//! The state that all of this moves, and that sessions and followers look at, is in `replication::standby_state`. A
//! standby's start and its promotion are in `open`.
//!
//! # What it costs
//! A session's snapshot is one of the known xids (the switch `known_xids`) and a fence. A record costs replay what it
//! costs recovery; an xid and its end are an `add` and a `remove`.
//!
//! # What it does not do
//! Prepared transactions and subtransactions do not exist on the primary. The locks that a session of the primary takes
//! with LOCK TABLE are unknown here.
//!
//! Origin: PostgreSQL's hot standby (Simon Riggs, 2010). S2 and S7 differ.

mod conflict;
pub(crate) mod following;
mod receive;
pub mod replay;
mod restartpoint;
mod room;
mod take_back;

#[cfg(test)]
mod tests;

pub use self::receive::LogReceiver;
pub(crate) use self::take_back::TakeBack;
pub use crate::replication::standby_state::{
    ChangedDefinitions, Conflict, Progress, ReplayObserver, ReplayPause, ReplayVariant, Standby,
    StandbyOptions,
};
#[cfg(doc)]
use crate::storage::Storage;
