//! Latches for many readers and few writers: readers do not share a cache line.
//!
//! Readers of a plain latch do not exclude each other, but each takes the one cache line with the word from
//! the reader before it. Here each reader uses one of K *slots*, each on a cache line of its own. A line that
//! few readers share stays in its core's cache. The price is the writer's: it must deal with all K slots.
//!
//! | file | holds | a writer's price | the latch is biased |
//! | --- | --- | --- | --- |
//! | `read_biased` | [`ReadBiasedLatch`]: K LwLocks; a reader takes one, a writer all | K acquisitions | always |
//! | `writer` | [`WriterVariant`]: how a writer of a [`ReadBiasedLatch`] takes all slots | | |
//! | `adaptive` | [`AdaptiveLatch`]: one LwLock, and K counts of readers beside it | K loads while biased | by its own measurement |
//! | `policy` | [`BiasPolicy`]: when an adaptive latch is biased | | |
//! | `reader_slots` | the K counts of an adaptive latch | | |
//! | `slot_choice` | [`SlotChoice`]: which slot a reader uses | | |
//!
//! Contract of both: a reader holds the latch with other readers, a writer holds it alone, and what one
//! holder did is visible to the next holder that it excludes.
//!
//! [`ReadBiasedLatch`] wins when readers are known to dominate. [`AdaptiveLatch`] is for a latch whose share
//! of readers is not known, or changes; while it is plain it costs what an LwLock costs.

mod adaptive;
mod policy;
mod read_biased;
mod reader_slots;
mod slot_choice;
mod writer;

pub use self::adaptive::{AdaptiveExclusive, AdaptiveLatch, AdaptiveOptions, AdaptiveShared};
pub use self::policy::{BiasPolicy, BiasStatistics};
pub use self::read_biased::{ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedOptions, ReadBiasedShared};
pub use self::slot_choice::SlotChoice;
pub use self::writer::WriterVariant;
