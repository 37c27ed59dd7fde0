//! The futex latches under loom: every schedule of a few workers within a bound of preemptions, under weak
//! memory.
//!
//! A worker that is left asleep is reported by loom as a deadlock; data that two workers reach without the
//! latch having ordered them is reported as a causality violation. The cases name mutations of the code that
//! they were seen to catch.
//!
//! Survived, and why:
//! - The order in which a reader learns of `WRITER` and of the mark (S1): the fence in `enter_from`,
//!   `Acquire` in `woken` and `sleep_while_exclusive`, `Release` in `close` and `unmark_exclusive`, the mark
//!   set after `WRITER` instead of before, or removed before it. A reader that finds the two out of step
//!   looks again instead of sleeping; what is lost is time. (The last of these has no end under loom, where
//!   the reader looks again and again; shuttle passes it.)
//!
//! `cargo test -p clearway-latch --features loom --test loom_futex --release`

#[path = "support/explore.rs"]
mod explore;
#[path = "support/sleeps.rs"]
mod sleeps;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{
    CasLoop, ClassOf, FetchAddBts, HolderProtocol, LatchClass, OneWord, SingleWake, SpinPolicy, SrwMutex,
    SsuxLock, SsuxProtocol,
};
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, Semaphore, WaitEvent};
use explore::explore;
use loom::thread;
use sleeps::Sleeps;

/// Polls once before it sleeps.
#[derive(Debug)]
struct Polls;

impl ClassOf for Polls {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("polls", WaitEvent::UserLatch, 0).spinning(SpinPolicy::Fixed(1));
        &CLASS
    }
}

/// Data under a latch of type `L`.
struct Shared<L> {
    latch: L,
    data: <Loom as Machine>::Data<u64>,
}

impl<L: Send + Sync + 'static> Shared<L> {
    fn new(latch: L) -> Arc<Self> {
        Arc::new(Self {
            latch,
            data: DataCell::new(0),
        })
    }

    /// The caller holds the latch exclusively.
    fn add_one(&self) {
        // SAFETY: exclusive; loom fails the test if that does not order the accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    /// The caller holds the latch.
    fn read(&self) -> u64 {
        // SAFETY: held; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }
}

/// Runs `worker` in `workers` threads, one of them the model's own.
fn run<L: Send + Sync + 'static>(
    shared: &Arc<Shared<L>>,
    workers: usize,
    worker: impl Fn(usize, &Shared<L>) + Send + Sync + Copy + 'static,
) {
    // The machine's globals come to life before there is a thread to race with.
    Loom::workers();
    let threads: Vec<_> = (1..workers)
        .map(|number| {
            let shared = Arc::clone(shared);
            thread::spawn(move || worker(number, &shared))
        })
        .collect();
    worker(0, shared);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Neither a holder nor a mark is left.
fn is_idle(latch: &impl std::fmt::Debug) {
    let left = format!("{latch:?}");
    assert!(left.contains("0x00000000"), "not idle: {left}");
}

/// Seen to catch, here and below: any of the four ways to take the word, or its release, `Relaxed`; a lost
/// `lock bts` that counts as won (causality); a release that makes no wake-up call, a sleeper that does not
/// register, `WAKING` left set by a woken worker (deadlock).
fn mutex_once_each<C: ClassOf, P: HolderProtocol>(workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(SrwMutex::<C, Loom, P>::idle());
        run(&shared, workers, |_, shared| {
            let _guard = shared.latch.exclusive();
            shared.add_one();
        });
        is_idle(&shared.latch);
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), workers as u64);
    });
}

/// As `mutex_once_each`, and one sleep ends without a wake-up, as by a signal.
fn mutex_interrupted<C: ClassOf, P: HolderProtocol>(workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(SrwMutex::<C, Loom, P>::idle());
        run(&shared, workers + 1, move |number, shared| {
            if number == workers {
                Loom::interrupt();
            } else {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), workers as u64);
    });
}

/// As `mutex_once_each`, with releases after which the mutex may be freed.
///
/// Seen to catch: such a release `Relaxed` (causality); one that makes no wake-up call (deadlock).
fn mutex_to_be_freed<C: ClassOf, P: HolderProtocol>(workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(SrwMutex::<C, Loom, P>::idle());
        run(&shared, workers, |_, shared| {
            std::mem::forget(shared.latch.exclusive());
            shared.add_one();
            // SAFETY: held, by a guard that is forgotten.
            unsafe { shared.latch.release_to_be_freed() };
        });
        is_idle(&shared.latch);
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), workers as u64);
    });
}

fn mutex_twice_each<C: ClassOf, P: HolderProtocol>(workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(SrwMutex::<C, Loom, P>::idle());
        run(&shared, workers, |_, shared| {
            for _ in 0..2 {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        assert!(!shared.latch.is_held());
        assert_eq!(shared.read(), 2 * workers as u64);
    });
}

fn mutex_conditional<C: ClassOf, P: HolderProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(SrwMutex::<C, Loom, P>::idle());
        run(&shared, 3, |number, shared| {
            if number == 0 {
                if let Some(_guard) = shared.latch.try_exclusive() {
                    shared.add_one();
                }
            } else {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        let guard = shared.latch.try_exclusive().expect("no holder is left");
        assert!(shared.latch.try_exclusive().is_none());
        assert!((2..=3).contains(&shared.read()));
        drop(guard);
    });
}

/// A worker's use of the latch, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Shared,
    Update,
    Exclusive,
    UpdateThenExclusive,
    UpdateThenShared,
    ExclusiveThenUpdate,
    ExclusiveThenShared,
    ExclusiveUpdateExclusive,
    SharedTryUpdateThenExclusive,
    TryShared,
    TryUpdateTryExclusive,
    TryExclusive,
}

type Ssux<C, P> = SsuxLock<C, Loom, P>;

/// S to U, which fails while another worker has U, and to X.
fn upgrade_shared<C: ClassOf, P: SsuxProtocol>(shared: &Shared<Ssux<C, P>>) -> u64 {
    let guard = shared.latch.shared();
    let before = shared.read();
    match guard.try_update() {
        Ok(guard) => {
            assert_eq!(shared.read(), before, "a worker wrote between the modes");
            let _guard = guard.exclusive();
            shared.add_one();
            1
        }
        Err(_still_shared) => {
            assert_eq!(shared.read(), before, "a worker wrote beside a reader");
            0
        }
    }
}

/// U if it is free, and X if no worker reads.
fn upgrade_update<C: ClassOf, P: SsuxProtocol>(shared: &Shared<Ssux<C, P>>) -> u64 {
    let Some(guard) = shared.latch.try_update() else {
        return 0;
    };
    let before = shared.read();
    match guard.try_exclusive() {
        Ok(_guard) => {
            shared.add_one();
            1
        }
        Err(_still_update) => {
            assert_eq!(shared.read(), before, "a worker wrote beside an update");
            0
        }
    }
}

/// Does `step`; how many times the data was written.
fn ssux_step<C: ClassOf, P: SsuxProtocol>(step: Step, shared: &Shared<Ssux<C, P>>) -> u64 {
    let latch = &shared.latch;
    match step {
        Step::Shared => {
            let _guard = latch.shared();
            shared.read();
            0
        }
        Step::Update => {
            let _guard = latch.update();
            shared.read();
            0
        }
        Step::Exclusive => {
            let _guard = latch.exclusive();
            shared.add_one();
            1
        }
        Step::UpdateThenExclusive => {
            let guard = latch.update();
            let before = shared.read();
            let _guard = guard.exclusive();
            assert_eq!(shared.read(), before, "a worker wrote beside an update");
            shared.add_one();
            1
        }
        Step::UpdateThenShared => {
            let guard = latch.update();
            let before = shared.read();
            let _guard = guard.shared();
            assert_eq!(shared.read(), before, "a worker wrote between the modes");
            0
        }
        Step::ExclusiveThenUpdate => {
            let guard = latch.exclusive();
            shared.add_one();
            let after = shared.read();
            let _guard = guard.update();
            assert_eq!(shared.read(), after, "a worker wrote between the modes");
            1
        }
        Step::ExclusiveThenShared => {
            let guard = latch.exclusive();
            shared.add_one();
            let after = shared.read();
            let _guard = guard.shared();
            assert_eq!(shared.read(), after, "a worker wrote between the modes");
            1
        }
        Step::ExclusiveUpdateExclusive => {
            let guard = latch.exclusive();
            shared.add_one();
            let guard = guard.update();
            let _guard = guard.exclusive();
            shared.add_one();
            2
        }
        Step::SharedTryUpdateThenExclusive => upgrade_shared(shared),
        Step::TryShared => {
            if let Some(_guard) = latch.try_shared() {
                shared.read();
            }
            0
        }
        Step::TryUpdateTryExclusive => upgrade_update(shared),
        Step::TryExclusive => {
            if let Some(_guard) = latch.try_exclusive() {
                shared.add_one();
                return 1;
            }
            0
        }
    }
}

/// One worker a step, all at once.
///
/// Seen to catch:
/// - causality or an assertion: a reader that enters or leaves, a writer that opens, closes, tries to close
///   or drains, `Relaxed`; an exclusive that does not wait for readers; a reader that ignores `WRITER`; S to
///   U without owning the word; U to S that releases the word before it counts itself; X to S that releases
///   in between; a failed upgrade that leaves its mark (by a debug assertion);
/// - deadlock: a reader that sleeps without registering, or unregisters without passing the wake on; a last
///   reader that makes no wake-up call; an upgrade without its mark.
fn ssux<C: ClassOf, P: SsuxProtocol>(steps: &'static [Step], preemptions: usize) {
    ssux_with_early_ends::<C, P>(steps, 0, preemptions);
}

/// As `ssux`, and the first `early` sleeps of each worker end without a wake-up.
///
/// Seen to catch: a reader, or an exclusive with readers inside, that takes the end of its sleep for what it waits for.
fn ssux_with_early_ends<C: ClassOf, P: SsuxProtocol>(steps: &'static [Step], early: u32, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, P>::idle());
        let written = Arc::new(<Loom as Machine>::U32::new(0));
        let counter = Arc::clone(&written);
        let written_by = move |number: usize, shared: &Shared<Ssux<C, P>>| {
            Loom::end_waits_early(early);
            counter.fetch_add(ssux_step(steps[number], shared) as u32, Relaxed);
        };
        Loom::workers();
        let threads: Vec<_> = (1..steps.len())
            .map(|number| {
                let (shared, written_by) = (Arc::clone(&shared), written_by.clone());
                thread::spawn(move || written_by(number, &shared))
            })
            .collect();
        written_by(0, &shared);
        for thread in threads {
            thread.join().unwrap();
        }
        is_idle(&shared.latch);
        let _guard = shared.latch.try_exclusive().expect("no holder is left");
        assert_eq!(shared.read(), u64::from(written.load(Relaxed)));
    });
}

/// A worker that reads acquires the latch shared again while an exclusive may be waiting for it to leave.
///
/// Seen to catch: a reader that such an exclusive keeps out (deadlock); one that enters beside an exclusive that is granted,
/// or enters `Relaxed` (causality).
fn ssux_recursive_reader<C: ClassOf, P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, P>::idle());
        run(&shared, 2, |number, shared| {
            if number == 0 {
                let _guard = shared.latch.exclusive();
                shared.add_one();
                return;
            }
            shared.latch.acquire_shared_recursive();
            let before = shared.read();
            shared.latch.acquire_shared_recursive();
            assert_eq!(shared.read(), before, "a worker wrote beside a reader");
            // SAFETY: held twice.
            unsafe { shared.latch.release_shared() };
            assert_eq!(shared.read(), before, "a worker wrote beside a reader");
            // SAFETY: held once.
            unsafe { shared.latch.release_shared() };
        });
        assert!(!shared.latch.is_held());
    });
}

/// A latch, and how many readers have met under it.
type Meeting<C, P> = (Ssux<C, P>, <Loom as Machine>::U32);

/// Reads, and goes on only when another worker reads too.
fn meet<C: ClassOf, P: SsuxProtocol>(shared: &Shared<Meeting<C, P>>) {
    let (latch, inside) = &shared.latch;
    latch.acquire_shared_recursive();
    let before = shared.read();
    inside.fetch_add(1, Relaxed);
    Loom::futex_wake(inside, 1);
    while inside.load(Relaxed) != 2 {
        Loom::futex_wait(inside, 1, None);
    }
    assert_eq!(shared.read(), before, "a worker wrote beside a reader");
    // SAFETY: held.
    unsafe { latch.release_shared() };
}

/// Writes, by a worker that holds the latch exclusively, and releases it.
fn write_and_release<C: ClassOf, P: SsuxProtocol>(shared: &Shared<Meeting<C, P>>) {
    shared.add_one();
    // SAFETY: held by the caller.
    unsafe { shared.latch.0.release_exclusive() };
}

/// Nothing is left of two readers that have met and of two exclusives.
fn is_idle_after_two<C: ClassOf, P: SsuxProtocol>(shared: &Shared<Meeting<C, P>>) {
    is_idle(&shared.latch.0);
    let _guard = shared.latch.0.exclusive();
    assert_eq!(shared.read(), 2);
}

/// Two readers meet while an exclusive is released and wanted again by the same worker.
///
/// Seen to catch: readers that are woken without a change of the word; a mark that its reader leaves behind.
fn ssux_readers_meet<C: ClassOf, P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new((Ssux::<C, P>::idle(), <Loom as Machine>::U32::new(0)));
        shared.latch.0.acquire_exclusive();
        run(&shared, 3, |number, shared| {
            // The last, so that a reader is preempted less often before it has found the latch held.
            if number == 2 {
                write_and_release(shared);
                shared.latch.0.acquire_exclusive();
                write_and_release(shared);
            } else {
                meet(shared);
            }
        });
        is_idle_after_two(&shared);
    });
}

/// As this, and the second exclusive is another worker's, which may get the wake-up of the first one's release.
///
/// Seen to catch: an exclusive that waits for readers, and wakes none that may enter beside them (deadlock).
fn ssux_readers_meet_past_another<C: ClassOf, P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new((Ssux::<C, P>::idle(), <Loom as Machine>::U32::new(0)));
        shared.latch.0.acquire_exclusive();
        run(&shared, 4, |number, shared| match number {
            0 => write_and_release(shared),
            1 => {
                shared.latch.0.acquire_exclusive();
                write_and_release(shared);
            }
            _ => meet(shared),
        });
        is_idle_after_two(&shared);
    });
}

/// Two exclusives and a reader, of which the exclusives release so that the latch may be freed.
fn ssux_to_be_freed<C: ClassOf>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, OneWord>::idle());
        run(&shared, 3, |number, shared| {
            if number == 0 {
                let _guard = shared.latch.shared();
                shared.read();
            } else {
                std::mem::forget(shared.latch.exclusive());
                shared.add_one();
                // SAFETY: held, by a guard that is forgotten.
                unsafe { shared.latch.release_exclusive_to_be_freed() };
            }
        });
        is_idle(&shared.latch);
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), 2);
    });
}

/// A reader that sleeps because of an exclusive is admitted at that worker's downgrade to update, not at its
/// release.
///
/// Seen to catch: a downgrade that makes no wake-up call, or wakes one reader only; readers that sleep while
/// the word has an owner at all, which is the simpler version (deadlock).
fn ssux_downgrade_lets_readers_in<C: ClassOf, P: SsuxProtocol>(readers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, P>::idle());
        Loom::workers();
        let guard = shared.latch.exclusive();
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let _guard = shared.latch.shared();
                    assert_eq!(shared.read(), 1);
                })
            })
            .collect();
        shared.add_one();
        let guard = guard.update();
        // The update is held until they have been in.
        for thread in threads {
            thread.join().unwrap();
        }
        drop(guard);
    });
}

/// A thread that reads, and posts when it has left.
fn reader_that_says_so<C: ClassOf, P: SsuxProtocol>(
    shared: &Arc<Shared<Ssux<C, P>>>,
    was_in: &Arc<Semaphore<Loom>>,
) -> thread::JoinHandle<()> {
    let (shared, was_in) = (Arc::clone(shared), Arc::clone(was_in));
    thread::spawn(move || {
        let guard = shared.latch.shared();
        shared.read();
        drop(guard);
        was_in.post();
    })
}

/// A reader and an updater sleep because of an exclusive. Whichever is woken first, the reader need not wait
/// for the updater, which stays until the reader has been in.
///
/// Seen to catch: an updater that passes sleeping readers and does not wake them (deadlock).
fn ssux_updater_lets_readers_in<C: ClassOf, P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, P>::idle());
        let reader_was_in = Arc::new(Semaphore::<Loom>::new());
        Loom::workers();
        let guard = shared.latch.exclusive();
        let reader = reader_that_says_so(&shared, &reader_was_in);
        let updater = {
            let (shared, reader_was_in) = (Arc::clone(&shared), Arc::clone(&reader_was_in));
            thread::spawn(move || {
                let _guard = shared.latch.update();
                reader_was_in.wait();
            })
        };
        shared.add_one();
        drop(guard);
        reader.join().unwrap();
        updater.join().unwrap();
    });
}

/// As above, for one that becomes the updater out of shared mode: the wake of the exclusive before it may
/// have gone to a writer.
///
/// Seen to catch: a new updater that does not wake sleeping readers (deadlock).
fn ssux_shared_that_updates_lets_readers_in<C: ClassOf, P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(Ssux::<C, P>::idle());
        let reader_was_in = Arc::new(Semaphore::<Loom>::new());
        Loom::workers();
        let guard = shared.latch.exclusive();
        let reader = reader_that_says_so(&shared, &reader_was_in);
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            })
        };
        shared.add_one();
        drop(guard);
        if let Ok(_guard) = shared.latch.shared().try_update() {
            reader_was_in.wait();
        }
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

/// The cases in a module for each type.
macro_rules! for_each {
    ([$($module:ident: $type:ident),*] $cases:tt) => {
        $(mod $module {
            #[allow(unused_imports)]
            use super::Step::*;
            use super::*;
            cases!($type $cases);
        })*
    };
}

macro_rules! cases {
    ($type:ident { $($name:ident => $case:ident::<$class:ident>($($argument:expr),*);)* }) => {
        $(#[test] fn $name() { $case::<$class, $type>($($argument),*) })*
    };
}

for_each! { [mutex_cas_loop: CasLoop, mutex_fetch_add_bts: FetchAddBts, mutex_single_wake: SingleWake] {
    loom_mutex_of_two => mutex_once_each::<Sleeps>(2, 3);
    loom_mutex_of_three => mutex_once_each::<Sleeps>(3, 2);
    loom_mutex_of_three_that_poll => mutex_once_each::<Polls>(3, 2);
    loom_mutex_interrupted => mutex_interrupted::<Sleeps>(2, 3);
    loom_mutex_twice => mutex_twice_each::<Sleeps>(2, 3);
    loom_mutex_twice_of_three => mutex_twice_each::<Sleeps>(3, 2);
    loom_mutex_conditional => mutex_conditional::<Sleeps>(2);
} }

for_each! { [cas_loop: CasLoop, fetch_add_bts: FetchAddBts, single_wake: SingleWake, one_word: OneWord] {
    loom_ssux_shared_and_exclusive => ssux::<Sleeps>(&[Shared, Exclusive], 3);
    loom_ssux_shared_and_update => ssux::<Sleeps>(&[Shared, Update], 3);
    loom_ssux_update_and_update => ssux::<Sleeps>(&[Update, UpdateThenShared], 3);
    loom_ssux_update_and_exclusive => ssux::<Sleeps>(&[Update, Exclusive], 3);
    loom_ssux_exclusive_and_exclusive => ssux::<Sleeps>(&[Exclusive, Exclusive], 3);
    loom_ssux_upgrade_and_shared => ssux::<Sleeps>(&[UpdateThenExclusive, Shared], 3);
    loom_ssux_downgrade_to_shared => ssux::<Sleeps>(&[UpdateThenShared, Exclusive], 3);
    loom_ssux_upgrades => ssux::<Sleeps>(&[UpdateThenExclusive, UpdateThenExclusive, Shared], 2);
    loom_ssux_downgrades => ssux::<Sleeps>(&[ExclusiveThenUpdate, ExclusiveThenShared, Shared], 2);
    loom_ssux_there_and_back => ssux::<Sleeps>(&[ExclusiveUpdateExclusive, Shared, Exclusive], 2);
    loom_ssux_try_upgrades => ssux::<Sleeps>(&[SharedTryUpdateThenExclusive, SharedTryUpdateThenExclusive], 3);
    loom_ssux_try_upgrade_beside_exclusive => ssux::<Sleeps>(&[SharedTryUpdateThenExclusive, Exclusive, Shared], 2);
    loom_ssux_conditional => ssux::<Sleeps>(&[TryExclusive, Shared, Exclusive], 2);
    loom_ssux_conditional_upgrade => ssux::<Sleeps>(&[TryUpdateTryExclusive, Shared, Exclusive], 2);
    loom_ssux_conditional_shared => ssux::<Sleeps>(&[TryShared, TryExclusive, ExclusiveThenUpdate], 2);
    loom_ssux_readers_and_exclusive => ssux::<Sleeps>(&[Shared, Shared, Exclusive], 2);
    loom_ssux_reader_and_exclusives => ssux::<Sleeps>(&[Shared, Exclusive, Exclusive], 2);
    loom_ssux_one_of_each => ssux::<Sleeps>(&[Shared, Update, Exclusive], 2);
    loom_ssux_one_of_each_that_poll => ssux::<Polls>(&[Shared, Update, Exclusive], 2);
    loom_ssux_sleeps_end_early => ssux_with_early_ends::<Sleeps>(&[Shared, UpdateThenExclusive], 2, 3);
    loom_ssux_sleeps_of_three_end_early => ssux_with_early_ends::<Sleeps>(&[Shared, Update, Exclusive], 1, 2);
    loom_ssux_downgrade_lets_reader_in => ssux_downgrade_lets_readers_in::<Sleeps>(1, 3);
    loom_ssux_downgrade_lets_readers_in => ssux_downgrade_lets_readers_in::<Sleeps>(2, 2);
    loom_ssux_updater_lets_readers_in => ssux_updater_lets_readers_in::<Sleeps>(2);
} }

// In two words it is any updater's step, which `loom_ssux_updater_lets_readers_in` shows.
for_each! { [one_word_only: OneWord] {
    loom_ssux_shared_that_updates_lets_readers_in => ssux_shared_that_updates_lets_readers_in::<Sleeps>(2);
} }

// H5 takes three preemptions. One worker is registered and not yet asleep when a release finds no sleeper; a third worker
// acquires; the first goes to sleep; the third releases without a wake-up because of `WAKING`. Seen to catch: a worker that
// has not slept and goes to sleep with `WAKING` set (deadlock).
for_each! { [mutex_three_preemptions: SingleWake] {
    loom_mutex_of_three => mutex_once_each::<Sleeps>(3, 3);
} }

for_each! { [to_be_freed_cas_loop: CasLoop, to_be_freed_fetch_add: FetchAddBts, to_be_freed_single_wake: SingleWake] {
    loom_mutex => mutex_to_be_freed::<Sleeps>(3, 2);
    loom_mutex_that_polls => mutex_to_be_freed::<Polls>(2, 3);
} }

for_each! { [recursive_one_word: OneWord, recursive_two_words: SingleWake] {
    loom_ssux_reader => ssux_recursive_reader::<Sleeps>(3);
} }

#[test]
fn loom_readers_meet_in_one_word() {
    ssux_readers_meet::<Sleeps, OneWord>(1);
}

#[test]
fn loom_readers_meet_in_two_words() {
    ssux_readers_meet::<Sleeps, SingleWake>(1);
}

#[test]
fn loom_readers_meet_past_another_in_one_word() {
    ssux_readers_meet_past_another::<Sleeps, OneWord>(0);
}

#[test]
fn loom_readers_meet_past_another_in_two_words() {
    ssux_readers_meet_past_another::<Sleeps, FetchAddBts>(0);
}

#[test]
fn loom_ssux_exclusive_to_be_freed() {
    ssux_to_be_freed::<Sleeps>(2);
}
