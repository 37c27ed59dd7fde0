//! Opening a data directory.
//!
//! | file | holds |
//! | --- | --- |
//! | `recovery` | replaying the log from the last checkpoint on, to its end or to a point |
//! | `checkpointer` | bounding what recovery must replay |
//! | `new_timeline` | how the log goes on under a new number |
//! | [`directory_log`] | the log of a directory that is looked at without being opened |

pub(crate) mod checkpointer;
pub mod directory_log;
mod new_timeline;
pub(crate) mod recovery;
