//! A primary and its standby in one process, each an engine with a directory of its own; a thread moves the log.
//!
//! | file | |
//! | --- | --- |
//! | `pair` | the two, and the link between them |
//! | `reads` | what readers on the standby see while the primary writes |
//! | `read_only` | what a standby refuses, and the answers of its functions and views |
//! | `definitions` | definitions that change under readers |
//! | `conflicts` | sessions in the way of replay |
//! | `promotion` | restarts and the promotion |
//! | `wait_for_lsn` | WAIT FOR LSN |

#[path = "../common/mod.rs"]
mod common;
mod conflicts;
mod definitions;
mod pair;
mod promotion;
mod read_only;
mod reads;
mod wait_for_lsn;
