//! The write-ahead log.
//!
//! A change of a page is logged before the page may be written, and a commit is acknowledged when its record is
//! durable. Records are in a ring buffer from their insertion until they have been written to the device:
//!
//! ```text
//!   durable ≤ written ≤ … records being copied … ≤ reserved ≤ written + ring size
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | [`reserve`] | switch `log_reserve`: how a record gets its position |
//! | [`insert`] | switch `log_insert`: how a record gets into the ring, and how the flusher learns that it is whole |
//! | [`flush`] | switch `log_flush`: how inserted records become durable |
//! | [`flush::wake`] | switch `log_wake`: which worker wakes a group of commits that is durable |
//! | `flush_requests` | flushes that a session leaves to the log writer, so that it can be told to stop |
//! | `log` | the log as its users see it |
//! | `log_counts`, `log_totals` | what each thread writes into the log; what was written in all |
//! | `ring` | the buffer between the two |
//! | `reserved_bound` | how far the log is reserved at most, for sessions that ask for room on the disk |
//! | `output` | the way to the device: `written`, `durable`, room on the disk |
//! | `device` | what the log is written to, and the segment files that are that in production |
//! | `log_sync` | switch `log_sync`: the call that makes bytes durable; writing whole blocks |
//! | `segment_descriptors` | how many of these files are open |
//! | [`segment_name`] | how these files are called |
//! | [`timeline`] | whose log a position belongs to, after promotions and recoveries to a point |
//! | [`log_digest`] | what tells whether two servers have the same log |
//! | [`reader`] | reading records back until the last whole one |
//! | [`record`] | the form of a record |
//! | `record_kind` | the kinds of records |
//! | [`own_records`] | what a program does that logs records of its own kinds |
//! | [`link`] | the digest of the log before it that each record carries |
//!
//! Three words for three things: a record's position is *reserved*; the ring *has room* for the record once what was
//! there is written; *room on the disk* is made before anything is changed, so that a full disk is an error and not
//! half a change.
//!
//! Each of the switches has its rules in its module: R1, R2 and R4 in [`insert`], R3 and R5 in [`flush`], W1 to W3 in
//! [`flush::wake`], F1 to F5 in `flush_requests`, K1 to K5 in [`link`].
//! `docs/mechanisms/log.md` shows them at work.

mod device;
pub mod flush;
mod flush_requests;
pub mod insert;
pub mod link;
mod log;
mod log_counts;
pub mod log_digest;
mod log_sync;
mod log_totals;
mod output;
pub mod own_records;
pub mod reader;
pub mod record;
mod record_kind;
pub mod reserve;
mod reserved_bound;
mod ring;
mod segment_descriptors;
pub mod segment_name;
pub mod timeline;

pub use device::{LogDevice, SegmentFiles};
pub use flush::LogFlushVariant;
pub use flush::wake::LogWakeVariant;
pub use flush_requests::LogWait;
pub use insert::{LogInsertVariant, RedoMoved};
pub use log::{LogOptions, LogWriter, RecordOrder, Wal};
pub use log_counts::LogCounts;
pub use log_sync::LogSyncVariant;
pub use log_totals::LogTotals;
pub use reserve::LogReserveVariant;
pub use segment_name::SEGMENT_SIZE;

/// Syncs of the log that may be in progress at once, under `log_flush = overlapped` (`docs/mechanisms/log.md`).
pub const SYNC_LANES: usize = 4;
