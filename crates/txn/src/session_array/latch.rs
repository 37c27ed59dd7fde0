//! The latch over the array of running transactions: the switch `proc_array_latch`.
//!
//! Each statement takes it shared for its snapshot, each end of a transaction with an xid takes it exclusively; so
//! readers outnumber writers by as much as statements outnumber such transactions. With many CPUs the readers of one
//! word wait for its cache line more than for each other's work, which is what the other variants are for.
//!
//! A variant is a line of `variants!` below.
//!
//! The choice of the variant costs a branch that always goes the same way, when it is taken and when it is released.

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, LatchClass, LwLock, LwLockOptions, ReadBiasedLatch, ReadBiasedOptions,
    ReaderWriterLatch, WriterVariant,
};
use clearway_machine::{Machine, variants};

/// Slots for readers. Under a checker as many as it takes to have two: a writer looks at each.
const SLOTS: usize = if cfg!(any(feature = "loom", feature = "shuttle")) {
    2
} else {
    16
};

/// A latch cut into parts.
type ReadBiased<M> = ReadBiasedLatch<SLOTS, M>;

/// A latch that is cut while that pays.
type Adaptive<M> = AdaptiveLatch<SLOTS, M>;

variants! {
    /// The latch over the array of running transactions.
    pub enum ProcArrayLatchVariant = "proc_array_latch", best Plain, planned [] {
        /// An LwLock.
        Plain = "plain": LwLock<M>,
        /// One cut into 16, of which a snapshot takes one and an end all.
        ReadBiased = "read-biased": ReadBiased<M>,
        /// As read-biased; an end announces itself in all parts and then waits once for the snapshots in them.
        ReadBiasedAnnounce = "read-biased-announce": ReadBiased<M>,
        /// As read-biased-announce; an end hands all parts to the next one that waits, a bounded number of times in a row.
        ReadBiasedHandOver = "read-biased-hand-over": ReadBiased<M>,
        /// One that turns read-biased, and back, by what it measures.
        Adaptive = "adaptive": Adaptive<M>,
    }
    why {
        Plain: "Simulated on four sockets in simple-update under single-cas, adaptive makes 0.97 to 1.08 times its \
            transactions, read-biased-announce 0.93 to 1.01 and read-biased 0.87 to 1.04."
            in "docs/log.md#other-latches-for-procarray";
        ReadBiased: "Simulated on four sockets in simple-update it makes 1.3 to 1.7 times the transactions of \
            plain under queued-scan with 200 clients and more, and 0.75 to 0.98 under the other latches."
            in "docs/log.md#other-latches-for-procarray";
        ReadBiasedAnnounce: "Simulated on four sockets in simple-update it makes 1.5 to 2.1 times the transactions \
            of plain under queued-scan with 200 clients and more, and 0.97 to 1.08 under the other latches."
            in "docs/log.md#other-latches-for-procarray";
        ReadBiasedHandOver: "By itself 1.5 times the acquisitions of read-biased where writers queue, but as little \
            as two thirds where sections are short; no transactions were simulated with it."
            in "docs/mechanisms/read-biased.md#variants";
        Adaptive: "Simulated by itself on four sockets it makes 24.5 times the acquisitions of plain with 288 \
            readers and no writer; no transactions that profit have been measured."
            in "docs/log.md#latches-on-four-sockets";
    }

    /// The latch. Not in a box, though the variants differ much in size: there is one per engine, and a box would
    /// cost each snapshot a trip to its pointer.
    #[derive(Debug)]
    pub(crate) enum ProcArrayLatch[M: Machine], called by dispatch;
}

impl<M: Machine> ProcArrayLatch<M> {
    pub(crate) fn new(
        variant: ProcArrayLatchVariant,
        class: &'static LatchClass,
        lwlock: LwLockOptions,
    ) -> Self {
        let read_biased = |writer| {
            let options = ReadBiasedOptions {
                writer,
                ..lwlock.into()
            };
            ReadBiasedLatch::new(class, options)
        };
        match variant {
            ProcArrayLatchVariant::Plain => Self::Plain(LwLock::new(class, lwlock)),
            ProcArrayLatchVariant::ReadBiased => Self::ReadBiased(ReadBiasedLatch::new(class, lwlock)),
            ProcArrayLatchVariant::ReadBiasedAnnounce => {
                Self::ReadBiasedAnnounce(read_biased(WriterVariant::Announce))
            }
            ProcArrayLatchVariant::ReadBiasedHandOver => {
                Self::ReadBiasedHandOver(read_biased(WriterVariant::HandOver))
            }
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
        dispatch!(in Held, self, latch => latch.shared())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn exclusive(&self) -> ProcArrayExclusive<'_, M> {
        dispatch!(in Held, self, latch => latch.exclusive())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_exclusive(&self) -> Option<ProcArrayExclusive<'_, M>> {
        Some(dispatch!(in Held, self, latch => latch.try_exclusive()?))
    }
}

/// Holds the latch in one mode, by the guard of its variant; nothing is read from that, which is there to be dropped.
#[must_use = "the latch is released at once if its guard is dropped"]
pub(crate) enum Held<P, B, A> {
    Plain(P),
    ReadBiased(B),
    ReadBiasedAnnounce(B),
    ReadBiasedHandOver(B),
    Adaptive(A),
}

/// Holds the latch in shared mode.
pub(crate) type ProcArrayShared<'a, M> = Held<
    <LwLock<M> as ReaderWriterLatch>::Shared<'a>,
    <ReadBiased<M> as ReaderWriterLatch>::Shared<'a>,
    <Adaptive<M> as ReaderWriterLatch>::Shared<'a>,
>;

/// Holds the latch in exclusive mode.
pub(crate) type ProcArrayExclusive<'a, M> = Held<
    <LwLock<M> as ReaderWriterLatch>::Exclusive<'a>,
    <ReadBiased<M> as ReaderWriterLatch>::Exclusive<'a>,
    <Adaptive<M> as ReaderWriterLatch>::Exclusive<'a>,
>;

// The plain latch has a cache line for itself because the others ask for one.
const _: () = assert!(align_of::<ProcArrayLatch<clearway_machine::Native>>() == 128);
