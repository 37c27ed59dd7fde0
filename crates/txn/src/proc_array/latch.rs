//! The latch over the array of running transactions: the switch `proc_array_latch`.
//!
//! Each statement takes it shared for its snapshot, each end of a transaction with an xid takes it exclusively; so readers
//! outnumber writers by as much as statements outnumber such transactions. With many CPUs the readers of one word wait for its cache line
//! more than for each other's work, which is what the two other variants are for.
//!
//! Which variant it is costs a branch that always goes the same way, when it is taken and when it is released.

use clearway_latch::{
    AdaptiveExclusive, AdaptiveLatch, AdaptiveOptions, AdaptiveShared, LatchClass, LwLock, LwLockExclusive,
    LwLockOptions, LwLockShared, ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedShared,
};
use clearway_machine::{Machine, switch};

/// Slots for readers. Under a checker as many as it takes to have two: a writer looks at each.
const SLOTS: usize = if cfg!(any(feature = "loom", feature = "shuttle")) {
    2
} else {
    16
};

switch! {
    /// The latch over the array of running transactions.
    pub enum ProcArrayLatchVariant = "proc_array_latch", best Plain, planned [] {
        /// An LwLock.
        Plain = "plain",
        /// One cut into 16, of which a snapshot takes one and an end all.
        ReadBiased = "read-biased",
        /// One that turns read-biased, and back, by what it measures.
        Adaptive = "adaptive",
    }
}

/// The latch. Not in a box, though the variants differ much in size: there is one per engine, and a box would cost each
/// snapshot a trip to its pointer.
#[derive(Debug)]
pub(crate) enum ProcArrayLatch<M: Machine> {
    Plain(LwLock<M>),
    ReadBiased(ReadBiasedLatch<SLOTS, M>),
    Adaptive(AdaptiveLatch<SLOTS, M>),
}

// The plain latch has a cache line for itself because the others ask for one.
const _: () = assert!(align_of::<ProcArrayLatch<clearway_machine::Native>>() == 128);

impl<M: Machine> ProcArrayLatch<M> {
    pub(crate) fn new(
        kind: ProcArrayLatchVariant,
        class: &'static LatchClass,
        lwlock: LwLockOptions,
    ) -> Self {
        match kind {
            ProcArrayLatchVariant::Plain => Self::Plain(LwLock::new(class, lwlock)),
            ProcArrayLatchVariant::ReadBiased => Self::ReadBiased(ReadBiasedLatch::new(class, lwlock)),
            ProcArrayLatchVariant::Adaptive => {
                let options = AdaptiveOptions {
                    lwlock,
                    ..AdaptiveOptions::default()
                };
                Self::Adaptive(AdaptiveLatch::with_options(class, options))
            }
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn shared(&self) -> ProcArrayShared<'_, M> {
        match self {
            Self::Plain(latch) => ProcArrayShared::Plain(latch.shared()),
            Self::ReadBiased(latch) => ProcArrayShared::ReadBiased(latch.shared()),
            Self::Adaptive(latch) => ProcArrayShared::Adaptive(latch.shared()),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn exclusive(&self) -> ProcArrayExclusive<'_, M> {
        match self {
            Self::Plain(latch) => ProcArrayExclusive::Plain(latch.exclusive()),
            Self::ReadBiased(latch) => ProcArrayExclusive::ReadBiased(latch.exclusive()),
            Self::Adaptive(latch) => ProcArrayExclusive::Adaptive(latch.exclusive()),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_exclusive(&self) -> Option<ProcArrayExclusive<'_, M>> {
        Some(match self {
            Self::Plain(latch) => ProcArrayExclusive::Plain(latch.try_exclusive()?),
            Self::ReadBiased(latch) => ProcArrayExclusive::ReadBiased(latch.try_exclusive()?),
            Self::Adaptive(latch) => ProcArrayExclusive::Adaptive(latch.try_exclusive()?),
        })
    }
}

/// Holds the latch in shared mode; nothing is read from the variant, which is there to be dropped.
#[expect(dead_code, reason = "a guard is held for its drop")]
#[must_use = "the latch is released at once if its guard is dropped"]
pub(crate) enum ProcArrayShared<'a, M: Machine> {
    Plain(LwLockShared<'a, M>),
    ReadBiased(ReadBiasedShared<'a, SLOTS, M>),
    Adaptive(AdaptiveShared<'a, SLOTS, M>),
}

/// Holds the latch in exclusive mode.
#[expect(dead_code, reason = "a guard is held for its drop")]
#[must_use = "the latch is released at once if its guard is dropped"]
pub(crate) enum ProcArrayExclusive<'a, M: Machine> {
    Plain(LwLockExclusive<'a, M>),
    ReadBiased(ReadBiasedExclusive<'a, SLOTS, M>),
    Adaptive(AdaptiveExclusive<'a, SLOTS, M>),
}
