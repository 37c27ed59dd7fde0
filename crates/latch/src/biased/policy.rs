//! When an [`AdaptiveLatch`](crate::AdaptiveLatch) is biased: by trial, at a bounded cost.
//!
//! Whether bias pays depends on the share of readers, on how many CPUs they run on, and on the machine. None
//! of this can be counted for free on the plain path, but two facts cost nothing:
//!
//! - A reader whose first attempt failed has met another worker. Most often that is another reader, which
//!   changed the word between this reader's look and its CAS; bias removes such conflicts.
//! - While the latch is biased each writer reads all slots, and the slots tell how many readers came, and
//!   where.
//!
//! So the latch guesses from the first fact and judges by the second:
//!
//! 1. At every `CONFLICTS`th conflict of a worker, at whatever latch: turn that latch biased, unless bias is
//!    inhibited. Each worker has its own count, because a count in the latch would be one more write of the
//!    contended line. So a latch is tried in proportion to its share of the conflicts.
//! 2. At every `WINDOW`th writer: count the readers since the last count. Keep the bias if there were at
//!    least `READERS_PER_WRITER` readers a writer, and at least one reader a writer in a slot other than the
//!    judging writer's own. Keep it also if the window took `RARE_WINDOW_NS` or longer: then writers are so
//!    few that their price does not matter (and the counts, which wrap, mean nothing). Otherwise turn plain,
//!    and inhibit bias for `INHIBITION` times the duration of that window.
//!
//! **Bound.** However bad bias is for a workload, windows that end in "plain" take at most 1 part in
//! `INHIBITION` + 1 of the time, 0.8 %, plus one window each time that the workload changes from one that
//! gains by bias to one that loses. In a long window a writer comes every 31 us or less often, and pays the
//! reading of K lines. Windows begin and end at writers. Without a writer the latch may stay biased for any
//! time, since no writer pays for it.
//!
//! A latch whose readers never meet, because it has one thread or is hardly used, is never biased at all. If
//! a biased latch is left to one thread, that thread's next writers turn it plain, since they see no reader
//! in other slots.
//!
//! The counts on the reader's side are made without atomic RMWs and may lose some; they are samples.
//!
//! Origin: BRAVO (Dice and Kogan, USENIX ATC 2019) inhibits bias for a multiple of the time of the last
//! revocation. It does not count readers, so each writer ends the bias. Here a writer leaves the bias as it
//! is, and the bound is on the time spent in windows that were judged bad.

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::reader_slots::Readers;

/// Whether a latch is biased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BiasPolicy {
    /// While it pays, by the latch's own measurement.
    #[default]
    Adaptive,
    /// Never: a plain latch, for comparison.
    Never,
    /// Always, whatever that costs its writers.
    Always,
}

/// How often a latch has turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiasStatistics {
    /// Times that it was turned biased.
    pub turned_biased: u32,
    /// Times that it was turned plain.
    pub turned_plain: u32,
}

/// Conflicts of a worker between two nominations of a latch for bias. Prime, so that a fixed order of
/// visiting latches does not always nominate the same latch.
const CONFLICTS: u32 = 61;
/// Writers between two judgements.
const WINDOW: u32 = 16;
/// Readers a writer at which bias is kept. A writer fetches all slots, and each reader after it fetches the
/// latch's word and its own slot. A reader saves two trips of a contended line.
const READERS_PER_WRITER: u32 = 4;
/// Duration of inhibition after a bad window, as a multiple of that window's duration.
const INHIBITION: u64 = 128;
/// A window of this duration or longer keeps the bias without counting readers. In a shorter one no slot
/// serves 65,536 readers: that would be 7.6 ns for two atomic RMWs and the code between them.
const RARE_WINDOW_NS: u64 = 500_000;

/// What the decision is made from. On the line of the latch's word, which a worker that writes here has just
/// fetched.
#[derive(Debug)]
pub(crate) struct Bias<M: Machine> {
    policy: BiasPolicy,
    /// Writers in the current window; 0 before its first.
    writers: M::U32,
    /// When the current window began.
    window_ns: M::U64,
    /// The end of the inhibition.
    inhibited_ns: M::U64,
    turned_biased: M::U32,
    turned_plain: M::U32,
}

impl<M: Machine> Bias<M> {
    /// Under a checker the thresholds are so low that the latch turns whenever it may.
    const CONFLICTS: u32 = if M::EXPLORED { 1 } else { CONFLICTS };
    const WINDOW: u32 = if M::EXPLORED { 1 } else { WINDOW };
    const INHIBITION: u64 = if M::EXPLORED { 0 } else { INHIBITION };
    const RARE_WINDOW_NS: u64 = if M::EXPLORED { u64::MAX } else { RARE_WINDOW_NS };

    pub(crate) fn new(policy: BiasPolicy) -> Self {
        Self {
            policy,
            writers: M::U32::new(0),
            window_ns: M::U64::new(0),
            inhibited_ns: M::U64::new(0),
            turned_biased: M::U32::new(0),
            turned_plain: M::U32::new(0),
        }
    }

    pub(crate) fn policy(&self) -> BiasPolicy {
        self.policy
    }

    pub(crate) fn statistics(&self) -> BiasStatistics {
        BiasStatistics {
            turned_biased: self.turned_biased.load(Relaxed),
            turned_plain: self.turned_plain.load(Relaxed),
        }
    }

    /// Counts a reader whose first attempt on the plain path failed. Returns whether the latch should turn
    /// biased.
    pub(crate) fn conflict(&self) -> bool {
        let met = &M::workers().slot(M::worker()).reader_conflicts;
        let conflicts = met.load(Relaxed).wrapping_add(1);
        met.store(conflicts, Relaxed);
        conflicts.is_multiple_of(Self::CONFLICTS)
            && self.policy == BiasPolicy::Adaptive
            && M::now() >= self.inhibited_ns.load(Relaxed)
    }

    /// The latch was turned biased.
    pub(crate) fn turned_biased(&self) {
        self.turned_biased.fetch_add(1, Relaxed);
    }

    /// Counts a writer of a biased latch. `count` returns the readers since the last count. Returns whether
    /// the latch should turn plain. Called by the exclusive holder.
    #[inline]
    pub(crate) fn writer_must_turn_plain(&self, count: impl FnMut() -> Readers) -> bool {
        if self.policy != BiasPolicy::Adaptive {
            return false;
        }
        let writers = self.writers.load(Relaxed);
        if writers != 0 && writers < Self::WINDOW {
            self.writers.store(writers + 1, Relaxed);
            return false;
        }
        self.judge(writers, count)
    }

    #[cold]
    #[inline(never)]
    fn judge(&self, writers: u32, mut count: impl FnMut() -> Readers) -> bool {
        let now = M::now();
        let readers = count();
        let took = now.saturating_sub(self.window_ns.load(Relaxed));
        let good = writers == 0 || took >= Self::RARE_WINDOW_NS || pays(writers, readers);
        if good {
            // The next window begins at this writer; the next writer is the first it counts.
            self.window_ns.store(now, Relaxed);
            self.writers.store(1, Relaxed);
            return false;
        }
        self.inhibited_ns
            .store(now.saturating_add(took.saturating_mul(Self::INHIBITION)), Relaxed);
        self.writers.store(0, Relaxed);
        self.turned_plain.fetch_add(1, Relaxed);
        true
    }
}

/// Whether bias paid in a window with this many writers and readers.
fn pays(writers: u32, readers: Readers) -> bool {
    readers.all >= writers * READERS_PER_WRITER && readers.in_other_slots >= writers
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    fn readers(all: u32, in_other_slots: u32) -> impl FnMut() -> Readers {
        move || Readers { all, in_other_slots }
    }

    #[test]
    fn many_readers_from_elsewhere_pay() {
        let least = WINDOW * READERS_PER_WRITER;
        for (all, in_other_slots, expected) in [
            (least, WINDOW, true),
            (least - 1, WINDOW, false),
            (least * 100, WINDOW - 1, false),
            (0, 0, false),
        ] {
            assert_eq!(pays(WINDOW, Readers { all, in_other_slots }), expected);
        }
    }

    #[test]
    fn a_bad_window_inhibits() {
        let bias = Bias::<Native>::new(BiasPolicy::Adaptive);
        let asks = |bias: &Bias<Native>| (0..CONFLICTS).filter(|_| bias.conflict()).count();
        assert_eq!(asks(&bias), 1);
        // The window's start, and its writers but the last.
        for _ in 0..WINDOW {
            assert!(!bias.writer_must_turn_plain(readers(0, 0)));
        }
        // Good: begins another.
        assert!(!bias.writer_must_turn_plain(readers(1_000, 1_000)));
        for _ in 1..WINDOW {
            assert!(!bias.writer_must_turn_plain(readers(0, 0)));
        }
        let began = Native::now();
        bias.window_ns.store(began, Relaxed);
        // Repeat if the test lost its CPU: then the window was long, and another begins.
        while !bias.writer_must_turn_plain(readers(1_000, 0)) {
            assert!(
                Native::now() - began >= RARE_WINDOW_NS,
                "kept although no reader was in another slot"
            );
        }
        assert_eq!(bias.statistics().turned_plain, 1);
        assert!(bias.inhibited_ns.load(Relaxed) > began, "{bias:?}");
        bias.inhibited_ns.store(u64::MAX, Relaxed);
        assert_eq!(asks(&bias), 0);
        bias.inhibited_ns.store(0, Relaxed);
        assert_eq!(asks(&bias), 1);
    }

    #[test]
    fn rare_writers_change_nothing() {
        let bias = Bias::<Native>::new(BiasPolicy::Adaptive);
        for _ in 0..WINDOW {
            assert!(!bias.writer_must_turn_plain(readers(0, 0)));
        }
        std::thread::sleep(core::time::Duration::from_nanos(RARE_WINDOW_NS));
        assert!(!bias.writer_must_turn_plain(readers(0, 0)));
        assert_eq!(bias.writers.load(Relaxed), 1, "another window has begun");
    }

    #[test]
    fn fixed_policies_do_not_decide() {
        for policy in [BiasPolicy::Never, BiasPolicy::Always] {
            let bias = Bias::<Native>::new(policy);
            assert!(!(0..CONFLICTS * 2).any(|_| bias.conflict()));
            assert!(!(0..WINDOW * 3).any(|_| bias.writer_must_turn_plain(readers(0, 0))));
        }
    }
}
