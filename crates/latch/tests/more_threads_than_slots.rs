//! More threads than there may be worker slots: no statistic needs a slot, a worker that wakes others needs none, and a wait
//! that needs one waits for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use clearway_latch::{
    AdaptiveLatch, HybridLatch, LatchClass, LwLock, LwLockOptions, LwLockVariant, Mutex, ReadBiasedLatch,
    ReadBiasedOptions, RwLock, Unclassed,
};
use clearway_machine::{Machine, Native, WaitEvent, WorkerId};

static CLASS: LatchClass = LatchClass::new("slots", WaitEvent::UserLatch, 0);

/// Takes all slots but those of other threads of the test.
fn take_all_slots() -> Vec<WorkerId> {
    std::iter::from_fn(|| Native::workers().claim()).collect()
}

fn give_back(slots: impl IntoIterator<Item = WorkerId>) {
    for slot in slots {
        // SAFETY: claimed by `take_all_slots`, and no thread goes by it.
        unsafe { Native::workers().release(slot) };
    }
}

/// In one test, since there is one table of slots in a process.
#[test]
fn a_program_may_have_more_threads_than_slots() {
    Native::set_workers_max(4_096).expect("no thread has waited");
    more_threads_than_slots_contend_for_a_mutex();
    let mut slots = take_all_slots();
    a_thread_without_a_slot_is_told();
    a_free_latch_needs_no_slot();
    for options in LwLockOptions::all() {
        a_holder_without_a_slot_wakes(options, &mut slots);
    }
    a_wait_for_a_latch_waits_for_a_slot(&mut slots);
    give_back(slots);
}

fn more_threads_than_slots_contend_for_a_mutex() {
    const THREADS: usize = 4_200;
    assert!(THREADS > Native::workers().capacity());
    let (count, begun) = (Mutex::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // Held until all are there, so that all of them wait, and none ends before the last has begun.
        let held = count.lock();
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                std::thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, || {
                        begun.fetch_add(1, Ordering::Relaxed);
                        *count.lock() += 1;
                    })
                    .unwrap()
            })
            .collect();
        while begun.load(Ordering::Relaxed) < THREADS
            || Native::workers().claim().map(|slot| give_back([slot])).is_some()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(*count.lock(), THREADS);
}

fn a_thread_without_a_slot_is_told() {
    assert_eq!(std::thread::spawn(Native::known_worker).join().unwrap(), None);
}

/// The holder has none, the sleeper has the last one.
fn a_holder_without_a_slot_wakes(options: LwLockOptions, slots: &mut Vec<WorkerId>) {
    let latch = LwLock::<Native>::new(&CLASS, options);
    let (held, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let guard = latch.exclusive();
            held.store(true, Ordering::Release);
            // Until the sleeper has had time to queue. If it has not, this shows nothing, and nothing fails.
            std::thread::sleep(Duration::from_millis(2));
            drop(guard);
            ended.store(true, Ordering::Release);
        });
        while !held.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        give_back(slots.pop());
        let sleeper = scope.spawn(|| drop(latch.exclusive()));
        holder.join().unwrap();
        sleeper.join().unwrap();
        assert!(ended.load(Ordering::Acquire) && !latch.is_held());
    });
    // A thread is joined before its destructors have given the slot back.
    slots.push(
        std::iter::repeat_with(|| Native::workers().claim())
            .flatten()
            .next()
            .unwrap(),
    );
}

fn a_wait_for_a_latch_waits_for_a_slot(slots: &mut Vec<WorkerId>) {
    let latch = LwLock::<Native>::new(&CLASS, LwLockVariant::SingleCas);
    std::thread::scope(|scope| {
        let guard = latch.exclusive();
        let (acquired, is_acquired) = mpsc::channel();
        let latch = &latch;
        scope.spawn(move || {
            drop(latch.exclusive());
            acquired.send(()).unwrap();
        });
        std::thread::sleep(Duration::from_millis(5));
        assert!(is_acquired.try_recv().is_err(), "the latch is held");
        give_back(slots.pop());
        drop(guard);
        is_acquired.recv().unwrap();
    });
    slots.push(
        std::iter::repeat_with(|| Native::workers().claim())
            .flatten()
            .next()
            .unwrap(),
    );
}

/// A thread without a slot takes each kind of latch that is free, while all slots are taken.
fn a_free_latch_needs_no_slot() {
    let free = std::thread::spawn(|| {
        assert_eq!(Native::known_worker(), None);
        drop(LwLock::<Native>::new(&CLASS, LwLockVariant::default()).exclusive());
        drop(LwLock::<Native>::new(&CLASS, LwLockVariant::default()).shared());
        let adaptive = AdaptiveLatch::<16>::new(&CLASS);
        drop(adaptive.shared());
        drop(adaptive.exclusive());
        let biased = ReadBiasedLatch::<16>::new(&CLASS, ReadBiasedOptions::default());
        drop(biased.shared());
        drop(biased.exclusive());
        drop(HybridLatch::<Unclassed>::new().exclusive());
        *Mutex::new(0).lock() += 1;
        *RwLock::new(0).write() += 1;
    });
    free.join().unwrap();
}
