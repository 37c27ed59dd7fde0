//! The death of a worker that sleeps on a latch of the futex family, under loom: every schedule of the worker that wakes it, of
//! another that waits, and of the one that stands in for the dead (H6 of `holder`). The latches are the shipped ones; the
//! machine ends the thread at a chosen moment of its futex wait, and says on which half of the word it waited.
//!
//! A lost wake-up is reported as a deadlock; what is left in the word of a dead worker is seen at the end, when the word must be
//! idle. What each test was seen to catch is in `mutations/recovery_futex.toml`.
//!
//! `cargo test -p clearway-latch --features loom --test loom_recovery_futex --release`

#[path = "support/explore.rs"]
mod explore;
#[path = "support/sleeps.rs"]
mod sleeps;

use std::sync::Arc;

use clearway_latch::{LastSleep, SrwMutex, SsuxLock};
use clearway_machine::{DataCell, DeathInWait, Half, Loom, Machine};
use explore::explore;
use loom::thread;
use sleeps::Sleeps;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Update,
    Exclusive,
}

use Mode::{Exclusive, Shared, Update};

/// A latch of either kind, used in a mode.
trait Latch: Send + Sync + 'static {
    fn idle() -> Self;
    /// Acquires the latch; dropping the result releases it.
    fn hold(&self, mode: Mode) -> impl Sized;
    /// Stands in for a worker that has died on this half of the word, wanting the latch so.
    fn stand_in(&self, mode: Mode, half: Half);
    /// True if the word is as that of a new latch.
    fn is_idle(&self) -> bool;
}

impl Latch for SrwMutex<Sleeps, Loom> {
    fn idle() -> Self {
        Self::idle()
    }
    fn hold(&self, _: Mode) -> impl Sized {
        self.exclusive()
    }
    fn stand_in(&self, _: Mode, half: Half) {
        assert_eq!(half, Half::Low);
        // SAFETY: the thread has died in the sleep of its wait for this mutex, and was joined.
        unsafe { self.recover_waiter() };
    }
    fn is_idle(&self) -> bool {
        format!("{self:?}").contains("0x00000000")
    }
}

impl Latch for SsuxLock<Sleeps, Loom> {
    fn idle() -> Self {
        Self::idle()
    }
    fn hold(&self, mode: Mode) -> impl Sized {
        match mode {
            Shared => (Some(self.shared()), None, None),
            Update => (None, Some(self.update()), None),
            Exclusive => (None, None, Some(self.exclusive())),
        }
    }
    fn stand_in(&self, mode: Mode, half: Half) {
        let sleep = LastSleep::of(mode == Shared, half);
        // SAFETY: the thread has died in that sleep of its wait for this latch, and was joined.
        unsafe { self.recover_waiter(sleep) };
    }
    fn is_idle(&self) -> bool {
        format!("{self:?}").contains("0x00000000") && !self.is_held()
    }
}

struct Guarded<L> {
    latch: L,
    data: <Loom as Machine>::Data<u64>,
}

impl<L: Latch> Guarded<L> {
    fn use_in(&self, mode: Mode) {
        let _held = self.latch.hold(mode);
        match mode {
            // SAFETY: the caller holds the latch exclusively; loom fails the test if that does not order the accesses.
            Exclusive => self.data.with_mut(|data| unsafe { *data += 1 }),
            Shared | Update => self.data.with(|_| ()),
        }
    }
}

/// The times of Alice's release and of the standing in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Release,
    Recovery,
}

/// The modes of the workers of a case.
#[derive(Clone, Copy)]
struct Modes {
    alice: Mode,
    dora: Mode,
    emil: Mode,
}

const fn modes(alice: Mode, dora: Mode, emil: Mode) -> Modes {
    Modes { alice, dora, emil }
}

/// Alice holds the latch. Dora, who wants it, dies at `end` of her wait; Emil wants it too.
fn dead_waiter<L: Latch>(modes: Modes, end: DeathInWait, first: First, preemptions: usize) {
    explore(preemptions, move || {
        Loom::workers();
        let shared = Arc::new(Guarded {
            latch: L::idle(),
            data: DataCell::new(0),
        });
        let held = shared.latch.hold(modes.alice);
        let dying = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || Loom::run_until_death(end, || shared.use_in(modes.dora)).err())
        };
        let waiting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.use_in(modes.emil))
        };
        if first == First::Recovery {
            let half = dying.join().unwrap().expect("the latch is held until later");
            shared.latch.stand_in(modes.dora, half);
            drop(held);
        } else {
            drop(held);
            if let Some(half) = dying.join().unwrap() {
                shared.latch.stand_in(modes.dora, half);
            }
        }
        waiting.join().unwrap();
        assert!(shared.latch.is_idle(), "a dead worker is counted");
        shared.use_in(Exclusive);
    });
}

type Mutex = SrwMutex<Sleeps, Loom>;
type Ssux = SsuxLock<Sleeps, Loom>;

/// Of each wait one that ends by another mode than that of the dead.
const WAITS: [Modes; 5] = [
    modes(Exclusive, Exclusive, Exclusive),
    modes(Exclusive, Shared, Exclusive),
    modes(Exclusive, Exclusive, Shared),
    modes(Exclusive, Update, Shared),
    modes(Update, Update, Exclusive),
];

/// Dora is the owner, and excludes Emil until Alice has left.
const DRAINS: [Modes; 2] = [
    modes(Shared, Exclusive, Shared),
    modes(Shared, Exclusive, Exclusive),
];

#[test]
fn loom_mutex_a_worker_that_dies_before_it_is_woken_is_counted_no_more() {
    dead_waiter::<Mutex>(WAITS[0], DeathInWait::BeforeSleep, First::Recovery, 2);
}

#[test]
fn loom_mutex_the_wake_up_of_a_dead_worker_goes_on() {
    for end in [DeathInWait::BeforeSleep, DeathInWait::AfterSleep] {
        dead_waiter::<Mutex>(WAITS[0], end, First::Release, 3);
    }
}

#[test]
fn loom_ssux_a_worker_that_dies_before_it_is_woken_is_counted_no_more() {
    for modes in WAITS.into_iter().chain(DRAINS) {
        dead_waiter::<Ssux>(modes, DeathInWait::BeforeSleep, First::Recovery, 2);
    }
}

#[test]
fn loom_ssux_the_wake_up_of_a_worker_that_dies_beside_it_goes_on() {
    for modes in WAITS.into_iter().chain(DRAINS) {
        dead_waiter::<Ssux>(modes, DeathInWait::BeforeSleep, First::Release, 2);
    }
}

#[test]
fn loom_ssux_the_wake_up_of_a_worker_that_dies_woken_goes_on() {
    for modes in WAITS.into_iter().chain(DRAINS) {
        dead_waiter::<Ssux>(modes, DeathInWait::AfterSleep, First::Release, 2);
    }
}
