//! The write-ahead log.
//!
//! | file | holds |
//! | --- | --- |
//! | `record` | the form of a record |
//! | `log` | inserting records and making them durable |
//! | `device` | what the log is written to, and the segment files that are that in production |
//! | `reader` | reading records back until the last whole one |

mod device;
mod log;
pub mod reader;
pub mod record;

use clearway_machine::switch;

pub use device::{LogDevice, SEGMENT_SIZE, SegmentFiles};
pub use log::{RedoMoved, Wal};

switch! {
    /// How the log reaches the disk.
    pub enum LogFlushVariant = "log_flush", best Single, planned ["split", "group", "self-clocking"] {
        /// Write and sync under one latch; commits that arrive meanwhile share the next.
        Single = "single",
    }
}
