//! Latches whose waiters sleep on the latch's own words: the futex family.
//!
//! | file | holds |
//! | --- | --- |
//! | `holder` | the word of a mutex: holder bit, waiters, and the three ways to change it |
//! | `place` | where that word is: alone, or beside a count of readers |
//! | `srw_mutex` | a mutex of 4 bytes |
//! | `ssux_lock` | shared, update and exclusive in 8 bytes |
//! | `ssux_state` | what it keeps, behind one interface |
//! | `in_one_word`, `in_two_words` | how: all in 64 bits, or as InnoDB does |
//! | `ssux_guards` | its guards and their transitions |
//! | `sux_lock` | the same with an owner, recursion, and release by another thread |
//! | `sux_guards` | its guards |

mod holder;
mod in_one_word;
mod in_two_words;
mod place;
mod srw_mutex;
mod ssux_guards;
mod ssux_lock;
mod ssux_state;
mod sux_guards;
mod sux_lock;

pub use holder::{CasLoop, FetchAddBts, HolderProtocol, SingleWake, SrwMutexAlgorithm};
pub use srw_mutex::{SrwMutex, SrwMutexGuard};
pub use ssux_guards::{SsuxExclusive, SsuxShared, SsuxUpdate};
pub use ssux_lock::SsuxLock;
pub use ssux_state::{ConstState, OneWord, SsuxProtocol};
pub use sux_guards::{SuxExclusive, SuxExclusiveForIo, SuxShared, SuxUpdate, SuxUpdateForIo};
pub use sux_lock::SuxLock;
