//! LwLock under loom: every schedule of a few workers within a bound of preemptions, under weak memory.
//!
//! A worker that is left asleep is reported by loom as a deadlock; data that two workers reach without the
//! latch having ordered them is reported as a causality violation. Each test names mutations of the code that
//! it was seen to catch.
//!
//! `cargo test -p clearway-latch --features loom --test loom_lwlock --release`

#[path = "support/explore.rs"]
mod explore;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{
    LatchClass, LwLock, LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant,
};
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, WaitEvent};
use explore::explore;
use loom::thread;

static CLASS: LatchClass = LatchClass::new("loom", WaitEvent::UserLatch, 0);

type Cell = <Loom as Machine>::Data<u64>;
type Word = <Loom as Machine>::U64;

/// A latch, data under it, and a variable as the log keeps one per insertion latch.
struct Shared {
    latch: LwLock<Loom>,
    data: Cell,
    variable: Word,
}

impl Shared {
    fn new(options: LwLockOptions) -> Arc<Self> {
        Arc::new(Self {
            latch: LwLock::new(&CLASS, options),
            data: Cell::new(0),
            variable: Word::new(0),
        })
    }

    fn add_one(&self) {
        // SAFETY: the caller holds the latch exclusively; loom fails the test if that does not order the
        // accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }
}

/// Runs `worker` in `workers` threads, one of them the model's own.
fn run(shared: &Arc<Shared>, workers: usize, worker: impl Fn(usize, &Shared) + Send + Sync + Copy + 'static) {
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

/// Seen to catch: the acquire CAS or the exclusive release `Relaxed` (causality); queued without its second
/// attempt, single CAS with a `fetch_or` in place of the CAS (deadlock); with three workers, WAKE_IN_PROGRESS
/// left set by a dequeue that was picked meanwhile, and HAS_WAITERS cleared by a wake that left some on the
/// list (deadlock).
fn exclusives(options: LwLockOptions, workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, workers, |_, shared| {
            let _guard = shared.latch.exclusive();
            shared.add_one();
        });
        let _guard = shared.latch.shared();
        assert_eq!(shared.read(), workers as u64);
    });
}

/// Seen to catch: the shared release `Relaxed` (causality).
fn readers_and_writer(options: LwLockOptions, workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, workers, |number, shared| {
            if number == 0 {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            } else {
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 1);
            }
        });
        assert!(!shared.latch.is_held());
    });
}

/// Seen to catch: a shared acquire that does not look at EXCLUSIVE (causality); a shared release that never
/// wakes, and a woken worker that leaves WAKE_IN_PROGRESS set (deadlock).
fn writers_and_reader(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 3, |number, shared| {
            if number == 2 {
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 2);
            } else {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
    });
}

/// Seen to catch: a woken worker that leaves WAKE_IN_PROGRESS set, in either algorithm (deadlock).
fn twice_each(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 2, |_, shared| {
            for _ in 0..2 {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        assert_eq!(shared.read(), 4);
    });
}

/// Seen to catch: the acquire CAS or the shared release `Relaxed` (causality).
fn conditional(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 3, |number, shared| match number {
            0 => {
                if let Some(_guard) = shared.latch.try_exclusive() {
                    shared.add_one();
                }
            }
            1 => {
                if let Some(_guard) = shared.latch.try_shared() {
                    assert!(shared.read() <= 2);
                }
            }
            _ => {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        assert!(!shared.latch.is_held());
    });
}

/// Group work, like the log's flush: each worker needs the work done once after its arrival; the worker that
/// gets the latch does it.
///
/// Seen to catch: queued without its second attempt, single CAS with a `fetch_or` in place of the CAS; with
/// three workers, the list's lock taken or dropped `Relaxed`, and a post before `waiting` says NOT
/// (deadlock).
fn group_work(options: LwLockOptions, workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, workers, |_, shared| {
            while shared.variable.load(Relaxed) == 0 {
                if let Some(_guard) = shared.latch.acquire_or_wait()
                    && shared.variable.load(Relaxed) == 0
                {
                    shared.add_one();
                    shared.variable.store(1, Relaxed);
                }
            }
        });
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), 1, "the work was done more than once");
    });
}

/// The holder changes the variable and keeps the latch: waiters for the old value must return while it does.
///
/// Seen to catch: `update_var` that locks the list first and writes the variable second, or makes no wake-up
/// call; a waiter that does not compare after queueing, or not under the list's lock (deadlock); `update_var`
/// that writes `Relaxed` (causality).
fn variable_moves(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        let left = Arc::new(<Loom as Machine>::U32::new(0));
        Loom::workers();
        let guard = shared.latch.exclusive();
        let waiter = {
            let shared = Arc::clone(&shared);
            let left = Arc::clone(&left);
            thread::spawn(move || {
                match shared.latch.wait_for_var(&shared.variable, 0) {
                    Err(value) => assert_eq!(value, 7),
                    Ok(()) => unreachable!("the latch is not let go before the waiter has left"),
                }
                // What the holder wrote before it changed the variable is visible, although the latch is
                // still held.
                assert_eq!(shared.read(), 1);
                left.store(1, Relaxed);
            })
        };
        shared.add_one();
        guard.update_var(&shared.variable, 7);
        waiter.join().unwrap();
        assert_eq!(left.load(Relaxed), 1);
        drop(guard);
    });
}

/// The holder releases, with the variable cleared or as it was: waiters must return, also beside a worker
/// that wants the latch.
///
/// Seen to catch: a queued waiter that does not look after queueing; with three preemptions, a single-CAS
/// waiter that queues although EXCLUSIVE was cleared meanwhile (deadlock); `release_clear_var` that writes
/// `Relaxed` (causality).
fn variable_released(options: LwLockOptions, workers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        shared.variable.store(5, Relaxed);
        run(&shared, workers, |number, shared| match number {
            0 => {
                let guard = shared.latch.exclusive();
                shared.add_one();
                guard.release_clear_var(&shared.variable, 0);
            }
            1 => {
                if let Err(value) = shared.latch.wait_for_var(&shared.variable, 5) {
                    assert_eq!(value, 0);
                    assert_eq!(shared.read(), 1);
                }
            }
            _ => {
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 1);
            }
        });
    });
}

/// A worker that wants the latch and one that only waits for it to be free sleep side by side.
///
/// Seen to catch: being picked as `UntilFree` sets WAKE_IN_PROGRESS; HAS_WAITERS cleared by a wake that left
/// some on the list; wake's unlock `Relaxed` (deadlock).
fn mixed_sleepers(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 3, |number, shared| {
            if number == 1 {
                if let Some(_guard) = shared.latch.acquire_or_wait() {
                    shared.add_one();
                }
            } else {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
    });
}

/// A worker's semaphore serves other waits too: a post for one of those, met while sleeping on the latch, is
/// still there afterwards.
///
/// Seen to catch: surplus posts that are not posted again (deadlock).
fn foreign_post(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        let mine = Loom::workers().slot(Loom::worker());
        let poster = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = shared.latch.exclusive();
                shared.add_one();
                mine.semaphore.post();
            })
        };
        {
            let _guard = shared.latch.exclusive();
            shared.add_one();
        }
        mine.semaphore.wait();
        poster.join().unwrap();
    });
}

/// Readers that come again and again beside an exclusive.
///
/// Seen to catch, here and in the other cases of these modules: an addition that does not look at EXCLUSIVE
/// or is `Relaxed` (causality); a unit taken back without the wake check; GRANTS left by an exclusive that
/// comes in, by a wake that picks none, or by the worker that takes the last waiter off the list (deadlock).
fn readers_come_again(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 3, |number, shared| {
            if number == 0 {
                let _guard = shared.latch.exclusive();
                shared.add_one();
                return;
            }
            for _ in 0..2 {
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 1);
            }
        });
        assert!(!shared.latch.is_held());
    });
}

/// A reader is woken while an exclusive still waits. Before it looks, another reader acquires, which fills
/// the count, and releases, which wakes no worker.
///
/// Seen to catch: a woken reader that heeds the count (deadlock: it queues on a free latch).
fn reader_passes_woken_reader(options: LwLockOptions, preemptions: usize) {
    explore(preemptions, move || {
        let shared = Shared::new(options);
        run(&shared, 3, |number, shared| match number {
            0 => {
                {
                    let _guard = shared.latch.exclusive();
                    shared.add_one();
                }
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 2);
            }
            1 => {
                let _guard = shared.latch.shared();
                assert!(shared.read() <= 2);
            }
            _ => {
                let _guard = shared.latch.exclusive();
                shared.add_one();
            }
        });
        assert!(!shared.latch.is_held());
    });
}

/// Its limit under a checker is 1: the second newcomer is already turned away.
const LIMITED: LwLockFairnessVariant = LwLockFairnessVariant::AfterShared;

/// A worker whose wait began two units of a checker's clock ago is overdue, which some schedules reach and some do not.
const HAND_OVER: LwLockFairnessVariant = LwLockFairnessVariant::HandOver;

/// Hands over as `HAND_OVER` does, and no reader passes an exclusive that waits.
const CLAIMS: LwLockFairnessVariant = LwLockFairnessVariant::WriterClaims;

macro_rules! under {
    ($(#[$about:meta])* $module:ident: $algorithm:ident, $shared_path:ident, $fairness:expr =>
     $($(#[$doc:meta])* $name:ident => $case:ident($($argument:expr),*);)*) => {
        $(#[$about])*
        mod $module {
            use super::*;
            const OPTIONS: LwLockOptions = LwLockOptions {
                algorithm: LwLockVariant::$algorithm,
                shared_path: LwLockSharedVariant::$shared_path,
                fairness: $fairness,
            };
            $($(#[$doc])* #[test] fn $name() { $case(OPTIONS, $($argument),*) })*
        }
    };
}

macro_rules! both_algorithms {
    ($($tests:tt)*) => {
        under! { queued: Queued, Cas, LwLockFairnessVariant::Barging => $($tests)* }
        under! { single_cas: SingleCas, Cas, LwLockFairnessVariant::Barging => $($tests)* }
    };
}

/// The scan of a worker that dequeues itself. Seen to catch: a scan that overlooks the last worker on the
/// list (deadlock).
macro_rules! by_scanning {
    ($($tests:tt)*) => {
        under! { queued_scan: QueuedScan, Cas, LwLockFairnessVariant::Barging => $($tests)* }
    };
}

by_scanning! {
    loom_two_exclusives => exclusives(2, 3);
    loom_reader_and_writer => readers_and_writer(2, 3);
    loom_variable_moves => variable_moves(3);
    loom_mixed_sleepers => mixed_sleepers(2);
}

/// The options that matter to readers: addition, and the fairness policy.
macro_rules! every_way_to_read {
    ($($tests:tt)*) => {
        under! { queued_fetch_add: Queued, FetchAdd, LwLockFairnessVariant::Barging => $($tests)* }
        under! { single_cas_fetch_add: SingleCas, FetchAdd, LwLockFairnessVariant::Barging => $($tests)* }
        under! { queued_limited: Queued, Cas, LIMITED => $($tests)* }
        under! { single_cas_limited: SingleCas, Cas, LIMITED => $($tests)* }
        under! { queued_fetch_add_limited: Queued, FetchAdd, LIMITED => $($tests)* }
        under! { single_cas_fetch_add_limited: SingleCas, FetchAdd, LIMITED => $($tests)* }
    };
}

both_algorithms! {
    loom_two_exclusives => exclusives(2, 3);
    loom_three_exclusives => exclusives(3, 2);
    loom_two_exclusives_twice => twice_each(3);
    loom_reader_and_writer => readers_and_writer(2, 3);
    loom_readers_and_writer => readers_and_writer(3, 2);
    loom_writers_and_reader => writers_and_reader(2);
    loom_conditional => conditional(2);
    loom_group_work => group_work(2, 3);
    loom_group_work_of_three => group_work(3, 1);
    loom_variable_moves => variable_moves(3);
    loom_variable_released => variable_released(2, 3);
    loom_variable_released_to_two => variable_released(3, 2);
    loom_foreign_post => foreign_post(3);
    loom_mixed_sleepers => mixed_sleepers(2);
}

/// A sleeper that has waited for long gets the latch itself, and under `CLAIMS` an exclusive stops newcomers.
///
/// Seen to catch: see crates/latch/mutations/lwlock.toml.
macro_rules! by_handing_over {
    ($($tests:tt)*) => {
        under! { queued_hand_over: Queued, Cas, HAND_OVER => $($tests)* }
        under! { single_cas_hand_over: SingleCas, Cas, HAND_OVER => $($tests)* }
        under! { queued_fetch_add_hand_over: Queued, FetchAdd, HAND_OVER => $($tests)* }
        under! { single_cas_fetch_add_hand_over: SingleCas, FetchAdd, HAND_OVER => $($tests)* }
        under! { queued_claims: Queued, Cas, CLAIMS => $($tests)* }
        under! { single_cas_claims: SingleCas, Cas, CLAIMS => $($tests)* }
        under! { queued_fetch_add_claims: Queued, FetchAdd, CLAIMS => $($tests)* }
        under! { single_cas_fetch_add_claims: SingleCas, FetchAdd, CLAIMS => $($tests)* }
    };
}

by_handing_over! {
    loom_two_exclusives => exclusives(2, 3);
    loom_three_exclusives => exclusives(3, 2);
    loom_two_exclusives_twice => twice_each(3);
    loom_reader_and_writer => readers_and_writer(2, 3);
    loom_readers_and_writer => readers_and_writer(3, 2);
    loom_readers_come_again => readers_come_again(2);
    loom_reader_passes_woken_reader => reader_passes_woken_reader(2);
    loom_writers_and_reader => writers_and_reader(2);
    loom_conditional => conditional(2);
    loom_group_work_of_three => group_work(3, 1);
    loom_variable_released_to_two => variable_released(3, 2);
    loom_mixed_sleepers => mixed_sleepers(2);
}

/// Workers of two nodes: the first on the list is passed over once.
macro_rules! by_cohort {
    ($($tests:tt)*) => {
        under! { cohort: Cohort, Cas, LwLockFairnessVariant::Barging => $($tests)* }
        under! { cohort_hand_over: Cohort, Cas, HAND_OVER => $($tests)* }
        under! { cohort_claims: Cohort, Cas, CLAIMS => $($tests)* }
    };
}

by_cohort! {
    loom_three_exclusives => exclusives(3, 2);
    loom_two_exclusives_twice => twice_each(3);
    loom_writers_and_reader => writers_and_reader(2);
    loom_mixed_sleepers => mixed_sleepers(2);
    loom_two_pass_the_first => exclusives(4, 1);
}

every_way_to_read! {
    loom_reader_and_writer => readers_and_writer(2, 3);
    loom_readers_and_writer => readers_and_writer(3, 2);
    loom_readers_come_again => readers_come_again(2);
    loom_reader_passes_woken_reader => reader_passes_woken_reader(2);
    loom_writers_and_reader => writers_and_reader(2);
    loom_conditional => conditional(2);
    loom_mixed_sleepers => mixed_sleepers(2);
}
