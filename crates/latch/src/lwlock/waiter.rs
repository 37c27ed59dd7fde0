//! The message in a sleeping worker's slot to the worker that wakes it: one word, written under `LOCKED`.
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–1 | mode | a [`WaitMode`], or `GRANTED`: the latch was handed over |
//! | 2–31 | since | when the wait began, in units of 2^16 ns, under `hand-over` |
//!
//! The clock of 30 bits starts again after 19 hours. A worker that has waited for that long looks young for the length of
//! the bound.

use clearway_machine::{Machine, WaitMode, WorkerId};

use super::LatchMode;

const MODE: u32 = 0b11;
/// In place of a mode.
const GRANTED: u32 = 3;
const SINCE_SHIFT: u32 = 2;
const SINCE: u32 = u32::MAX >> SINCE_SHIFT;

const _: () = assert!(WaitMode::UntilFree as u32 != GRANTED && (WaitMode::UntilFree as u32) < MODE);
const _: () = assert!(SINCE << SINCE_SHIFT & MODE == 0);

/// Nanoseconds of one unit of `since`, as a shift. A checker's clock moves by 1,000 a call.
const fn unit_shift<M: Machine>() -> u32 {
    if M::EXPLORED { 10 } else { 16 }
}

/// The sleep after which the latch is handed over to a worker, in units of `since`: 1.0 ms.
///
/// Shorter is dearer. A hand-over costs a switch of the CPU while the latch is held, and with n sleepers there are at
/// most n of them in this time (`docs/mechanisms/lwlock.md#variants`). Under a checker so short that some schedules
/// reach it and some do not.
pub(super) const fn hand_over_after<M: Machine>() -> u32 {
    if M::EXPLORED { 2 } else { 16 }
}

/// True if the clock is in a stretch of time, a quarter of a millisecond, in which the latch is handed over. In the one that
/// follows it is not, so hand-overs take at most about half of the time, however many workers are overdue.
pub(super) fn hands_over_now<M: Machine>(now: u64) -> bool {
    now >> unit_shift::<M>() & 0b100 == 0
}

/// The time for which a worker may pass those that wait, under `writer-claims`, in units of 2^10 ns: 131 µs. Each end of a turn
/// costs two switches of a CPU. Under a checker so short that some schedules reach it and some do not.
const fn turn_length<M: Machine>() -> u32 {
    if M::EXPLORED { 2 } else { 128 }
}

/// Nanoseconds of one unit of a turn's beginning, as a shift.
const TURN_UNIT_SHIFT: u32 = 10;

/// A worker's turn, which begins when it has slept for an LwLock. Its slot's word keeps the beginning while the worker is on
/// no list; what another wait has left there makes the turn look older, or younger by at most its whole length.
pub(super) struct Turn;

impl Turn {
    /// A turn of `worker`, the caller, begins.
    pub(super) fn begin<M: Machine>(worker: WorkerId) {
        let word = ((M::now() >> TURN_UNIT_SHIFT) as u32) << SINCE_SHIFT;
        // SAFETY: the caller is the worker, and on no list: no other reads or writes the word before the caller joins a list
        // with a new one, and asks only after that whether it was granted anything.
        unsafe { M::workers().slot(worker).set_mode(word) };
    }

    /// True if the turn of `worker`, the caller, is over.
    pub(super) fn is_over<M: Machine>(worker: WorkerId) -> bool {
        let units = (M::now() >> TURN_UNIT_SHIFT) as u32;
        let began = M::workers().slot(worker).mode() >> SINCE_SHIFT;
        units.wrapping_sub(began) & SINCE >= turn_length::<M>()
    }
}

/// The word of one waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiter(u32);

impl Waiter {
    /// A worker that queues in `mode` and has waited since `started`, nanoseconds of [`Machine::now`].
    pub(super) fn new<M: Machine>(mode: WaitMode, started: u64) -> Self {
        let since = (started >> unit_shift::<M>()) as u32 & SINCE;
        Self(mode as u32 | since << SINCE_SHIFT)
    }

    /// Of `worker`, which is on the list; `LOCKED` is held.
    pub(super) fn of<M: Machine>(worker: WorkerId) -> Self {
        Self(M::workers().slot(worker).mode())
    }

    /// As a queue keeps it.
    pub(super) fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// For a queue.
    pub(super) fn word(self) -> u32 {
        self.0
    }

    /// True if it waits in `mode`.
    pub(super) fn waits(self, mode: WaitMode) -> bool {
        self.0 & MODE == mode as u32
    }

    /// The mode in which it wants the latch; `None` for a worker that only waits until it is free.
    pub(super) fn wants(self) -> Option<LatchMode> {
        if self.waits(WaitMode::Exclusive) {
            Some(LatchMode::Exclusive)
        } else {
            self.waits(WaitMode::Shared).then_some(LatchMode::Shared)
        }
    }

    /// True if it has waited for as long as `hand-over` allows.
    pub(super) fn is_overdue<M: Machine>(self, now: u64) -> bool {
        let units = (now >> unit_shift::<M>()) as u32;
        units.wrapping_sub(self.0 >> SINCE_SHIFT) & SINCE >= hand_over_after::<M>()
    }

    /// Tells `worker`, which was taken off the list and not yet posted, that it has the latch. The post's Release makes
    /// this visible to it.
    ///
    /// # Safety
    /// The caller has the list locked, has taken the worker off it, and has made the word count it as a holder.
    pub(super) unsafe fn grant<M: Machine>(worker: WorkerId) {
        // SAFETY: the caller's.
        unsafe { M::workers().slot(worker).set_mode(GRANTED) };
    }

    /// True if the latch was handed over to `worker`, the caller, which has slept.
    pub(super) fn was_granted<M: Machine>(worker: WorkerId) -> bool {
        M::workers().slot(worker).mode() & MODE == GRANTED
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    #[test]
    fn a_waiter_says_how_it_waits() {
        for mode in [WaitMode::Exclusive, WaitMode::Shared, WaitMode::UntilFree] {
            let waiter = Waiter::new::<Native>(mode, u64::MAX);
            assert!(waiter.waits(mode));
            assert_eq!(
                waiter
                    .wants()
                    .map(LatchMode::wait_mode)
                    .unwrap_or(WaitMode::UntilFree),
                mode
            );
        }
    }

    #[test]
    fn a_worker_is_overdue_after_a_millisecond_and_across_the_end_of_the_clock() {
        let end = u64::from(SINCE + 1) << 16;
        for started in [0, 5_000_000, end - 1, end, 3 * end - 70_000] {
            let waiter = Waiter::new::<Native>(WaitMode::Exclusive, started);
            assert!(!waiter.is_overdue::<Native>(started) && !waiter.is_overdue::<Native>(started + 900_000));
            assert!(waiter.is_overdue::<Native>(started + 1_100_000));
            assert!(waiter.is_overdue::<Native>(started + end / 2));
        }
    }

    #[test]
    fn a_turn_is_over_after_an_eighth_of_a_millisecond() {
        std::thread::spawn(|| {
            let worker = Native::worker();
            let ended = (0..1_000).any(|_| {
                let started = Native::now();
                Turn::begin::<Native>(worker);
                let over = Turn::is_over::<Native>(worker);
                let young = Native::now() - started < 120_000;
                assert!(!(young && over), "a turn is over at once");
                young
            });
            assert!(ended, "each attempt took 0.1 ms");
            std::thread::sleep(core::time::Duration::from_micros(200));
            assert!(Turn::is_over::<Native>(worker));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn half_of_the_time_is_for_hand_overs() {
        let granted = (0..1_000_u64)
            .filter(|step| hands_over_now::<Native>(step * 10_000))
            .count();
        assert!((450..=550).contains(&granted), "{granted} of 1,000");
    }
}
