//! Latches whose waiters sleep on the latch's own words: the futex family.
//!
//! | latch | modes | bytes |
//! | --- | --- | --- |
//! | [`SrwMutex`] | exclusive | 4 |
//! | [`SsuxLock`] | shared, update, exclusive | 8 |
//! | [`SuxLock`] | the same, with an owner, recursion, and release by another thread | 16 |
//!
//! [`SrwCondvar`], 8 bytes, is the condition variable of an [`SrwMutex`].
//!
//! Contract: shared admits shared and update; update excludes update and exclusive; exclusive excludes all.
//! What one holder did is visible to the next holder that it excludes.
//!
//! | file | holds |
//! | --- | --- |
//! | `holder` | the word of a mutex: holder bit, waiters, rules H1 to H7, and the three variants that change it |
//! | `storage` | where that word is stored: in 32 bits of its own, or beside a count of readers |
//! | `srw_mutex` | SrwMutex and its guard |
//! | `condvar` | SrwCondvar, rules C1 to C3 |
//! | `ssux_lock` | SsuxLock, rules S2 to S6; its waits; its guards and their transitions; attempts that last for a time |
//! | `ssux_state` | the contract of its state |
//! | `in_one_word`, `in_two_words` | variants of the state: all in 64 bits, or in two words as InnoDB has it (S1) |
//! | `sux_lock` | SuxLock, rules O1 to O3; its guards |
//! | `recovery` | standing in for a worker that has died asleep (H6) |

mod condvar;
mod holder;
mod in_one_word;
mod in_two_words;
mod recovery;
mod srw_mutex;
mod ssux_lock;
mod ssux_state;
mod storage;
mod sux_lock;

pub use condvar::SrwCondvar;
#[cfg(feature = "std")]
pub(crate) use holder::HolderWord;
pub use holder::{CasLoop, FetchAddBts, HolderProtocol, SingleWake, SrwMutexAlgorithm};
#[cfg(feature = "std")]
pub(crate) use in_one_word::InOneWord;
pub use in_one_word::OneWord;
pub use recovery::LastSleep;
pub use srw_mutex::{SrwMutex, SrwMutexGuard};
#[cfg(feature = "std")]
pub(crate) use ssux_lock::SsuxWaits;
pub use ssux_lock::{SsuxExclusive, SsuxLock, SsuxShared, SsuxUpdate};
pub use ssux_state::{ConstState, SsuxProtocol};
#[cfg(feature = "std")]
pub(crate) use ssux_state::{Readers, SsuxState};
pub use sux_lock::{SuxExclusive, SuxExclusiveForIo, SuxLock, SuxShared, SuxUpdate, SuxUpdateForIo};
