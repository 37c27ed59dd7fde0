//! When an [`AdaptiveLatch`](crate::AdaptiveLatch) is biased: by trial, at a bounded cost.
//!
//! Whether bias pays depends on the share of readers, on how many CPUs they are on, and on the machine. None of this can be
//! counted on the plain path for free, but two things can be had for nothing:
//!
//! - A reader that does not get in at its first attempt has met somebody: most often another reader that changed the word
//!   between its look and its CAS, which is what bias removes.
//! - Under bias, each writer reads all slots, and the slots tell how many readers came, and where.
//!
//! So the latch guesses from the first and judges by the second:
//!
//! 1. Every `CONFLICTS` times that a worker meets somebody so, at whatever latch: turn this one biased, if its time of inhibition
//!    is over. The workers count, each for itself, because a count in the latch would be one more write of the very line that
//!    is contended. So a latch is tried as often as its share of the conflicts has it.
//! 2. Every `WINDOW` writers: count the readers that came in the meantime. If they were at least `READERS_PER_WRITER` a writer,
//!    and at least one a writer was in a slot other than the judging writer's own, go on; likewise if the window took
//!    `RARE_WINDOW_NS` or longer, because then there are so few writers that it does not matter what they pay (and the
//!    counts of readers, which wrap, mean nothing). Else turn plain, and inhibit bias for `INHIBITION` times as long as that
//!    window took.
//!
//! **Bound.** However bad bias is for a workload, windows that ended in "plain" take at most 1 part in `INHIBITION` + 1 of the
//! time, 0.8 %, plus one window at each time that a workload which liked bias turns into one that does not. In a window that
//! was long, a writer comes each 31 us or less often, and pays the reading of K lines. The windows begin and end at writers:
//! how long readers are biased without a writer is not bounded, as there is nobody to revoke for.
//!
//! A latch whose readers never meet, of one thread or one that is hardly used, is never biased at all. A latch under
//! bias whose workload becomes one thread's is turned plain by that thread's next writers, which see no reader elsewhere.
//!
//! The counts on the reader's side are made without atomic read-modify-writes and may lose some; they are samples.
//!
//! Origin: BRAVO (Dice and Kogan, USENIX ATC 2019) inhibits bias for a multiple of what the last revocation took. It
//! has no count of readers, so that each writer ends the bias; here a writer passes through without ending it, and what is
//! bounded is the time spent in windows that were judged bad.

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::reader_slots::Readers;

/// Whether a latch is biased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BiasPolicy {
    /// When it pays, by the latch's own measurement.
    #[default]
    Adaptive,
    /// Never: a plain latch, for comparison.
    Never,
    /// Always, whatever its writers pay.
    Always,
}

/// How often a latch has changed its mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiasStatistics {
    /// Times that it was turned biased.
    pub turned_biased: u32,
    /// Times that it was turned plain.
    pub turned_plain: u32,
}

/// How often a worker has to meet somebody before it considers bias. A prime, so that one that goes from latch to latch in some order
/// does not always come to the same at that time.
const CONFLICTS: u32 = 61;
/// Writers between two judgements.
const WINDOW: u32 = 16;
/// Readers a writer for which bias is kept. A writer pays the fetching of all slots, and each reader after it that of the
/// latch's word and of its own slot; a reader saves two trips of a contended line.
const READERS_PER_WRITER: u32 = 4;
/// How many times as long as a bad window took there is no other.
const INHIBITION: u64 = 128;
/// A window that takes so long is kept unseen. No slot is served 65,536 times in it: that would be 7.6 ns for two atomic
/// read-modify-writes and what is between them.
const RARE_WINDOW_NS: u64 = 500_000;

/// What the decision is made from. On the line of the latch's word, which whoever writes here has just taken.
#[derive(Debug)]
pub(crate) struct Bias<M: Machine> {
    policy: BiasPolicy,
    /// Writers in the current window; 0 before its first.
    writers: M::U32,
    /// When the current window began.
    window_ns: M::U64,
    /// Until when there is no bias.
    inhibited_ns: M::U64,
    turned_biased: M::U32,
    turned_plain: M::U32,
}

impl<M: Machine> Bias<M> {
    /// Under a checker every occasion is taken.
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

    /// A reader did not get in at its first attempt on the plain path; whether the latch should turn biased.
    pub(crate) fn conflict(&self) -> bool {
        let met = &M::workers().slot(M::worker()).readers_met;
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

    /// A writer has come in under bias, and `count` counts the readers since the last count; whether the latch should turn
    /// plain. For the exclusive holder.
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
            // The next window begins; this writer is its start, the next one its first.
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

/// Whether bias paid for so many writers and readers.
fn pays(writers: u32, readers: Readers) -> bool {
    readers.all >= writers * READERS_PER_WRITER && readers.elsewhere >= writers
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    fn readers(all: u32, elsewhere: u32) -> impl FnMut() -> Readers {
        move || Readers { all, elsewhere }
    }

    #[test]
    fn many_readers_from_elsewhere_pay() {
        let least = WINDOW * READERS_PER_WRITER;
        for (all, elsewhere, expected) in [
            (least, WINDOW, true),
            (least - 1, WINDOW, false),
            (least * 100, WINDOW - 1, false),
            (0, 0, false),
        ] {
            assert_eq!(pays(WINDOW, Readers { all, elsewhere }), expected);
        }
    }

    #[test]
    fn a_bad_window_inhibits() {
        let bias = Bias::<Native>::new(BiasPolicy::Adaptive);
        let asks = |bias: &Bias<Native>| (0..CONFLICTS).filter(|_| bias.conflict()).count();
        assert_eq!(asks(&bias), 1);
        // The window's start, whatever came before it, and its writers but the last.
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
        // Not if the test lost the CPU: then the window was long, and another begins.
        while !bias.writer_must_turn_plain(readers(1_000, 0)) {
            assert!(
                Native::now() - began >= RARE_WINDOW_NS,
                "kept though nobody was elsewhere"
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
