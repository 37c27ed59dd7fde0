//! Recovery: replaying the log from the last checkpoint's redo position.
//!
//! The log is read twice. The first pass finds its end, which is the end of the last whole record, and what
//! was handed out (xids, relation numbers). The second pass applies it. A change is applied to a page whose
//! LSN is older; a page image, or a page made anew, replaces whatever is there, torn or not (and the first
//! record of a page after the redo position is one of those). A transaction without a commit record counts as
//! aborted: it is not running, and the commit log has no status for it.
//!
//! Recovery makes the log that it has found durable before it changes a page: the process that wrote the log
//! may have been killed between write and sync. Otherwise a power cut during replay could leave pages that
//! are newer than the log.
//!
//! # Where the log ends, and where it is damaged
//! Both look the same: no whole record at the place where one should begin. After a power cut this is so
//! where the last write was under way. Any part of what was written and not yet made durable may survive, so
//! there may even be whole records behind the hole. But each record says up to where the log was durable when
//! the record was inserted. A record behind the hole which says that the log was durable beyond the hole's
//! beginning proves that a whole record was there: the log is damaged, and to go on would take back what
//! was acknowledged. Then the start fails with file and offset, and changes nothing. Recovery searches a few
//! segments behind the hole, also past missing ones.
//!
//! | what is damaged | what proves it |
//! | --- | --- |
//! | log before the last complete checkpoint's end | the control file says that the log goes on to there |
//! | log before some later flush | a record inserted after that flush |
//! | log of the last flush of a session's burst of work | the record that the log writer adds when the log has been idle |
//! | the last flush before a power cut, or all that proves it as well | nothing: it is taken for the log's end |
//! | log on which a page in its file depends | the page's LSN, if replay or another reader reads it before the log has grown past it |
//!
//! The first two lines hold for one damaged place of any length below the search's. One kind of damage cannot
//! be proven and is therefore read as the log's end: everything from some position on has been replaced by
//! zeros.
//!
//! # Recovery to a point
//! The first pass can be told to end the log at a point ([`target`]), and to take log from an archive before
//! ([`archive`]). A new timeline begins there, so that the log behind the point is never replayed. That log stays under
//! the former timeline's names.
//!
//! Recovery overwrites the log behind its end with zeros, for as far as bytes may have been written but not
//! made durable. A whole record from before the crash that followed a new one of the right length would have another link,
//! and end the log too; so this is a second defence.
//! After a shutdown in order everything written is durable, as a rule, and what a recycled segment holds names other
//! positions, so nothing is overwritten. But a session that did not end in time may still have logged behind the
//! shutdown's checkpoint, and been cut off by the end of the process: the beginning of that is missing then, and the log
//! ends where the control file says, with whole records behind the hole. So the log behind the end is searched for a
//! whole record after each kind of end, and overwritten if there is one.
//!
//! | file | holds |
//! | --- | --- |
//! | `scan` | the first pass |
//! | `target`, `archive` | the point at which it ends the log, if there is one; log from elsewhere before |
//! | `replay` | the second pass; clearing what is behind the end |
//! | `report` | what was recovered |
//!
//! The kinds of records, and the effect of each, are in `records`.

mod archive;
mod replay;
mod report;
mod scan;
mod target;

pub(crate) use self::replay::{clear_tail, replay};
pub use self::report::RecoveryReport;
pub(crate) use self::scan::{LogToScan, Purpose, ScannedLog};
pub(crate) use self::target::PreparedTarget;
pub use self::target::{RecoveryPoint, RecoveryTarget};
use crate::page::Lsn;
use crate::wal::SEGMENT_SIZE;
use crate::wal::segment_name::FIRST_SEGMENT;

/// The first record's place, in the first segment; 0 is the LSN of pages that were never changed.
pub(crate) const LOG_START: Lsn = Lsn(FIRST_SEGMENT * SEGMENT_SIZE + 64);
