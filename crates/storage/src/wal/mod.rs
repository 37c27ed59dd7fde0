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

pub use device::{LogDevice, SEGMENT_SIZE, SegmentFiles};
pub use log::{RedoMoved, Wal};
