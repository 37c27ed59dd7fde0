//! The SuxLock under loom: recursion and release by another thread, on top of what loom_futex shows of the
//! lock inside.
//!
//! `cargo test -p clearway-latch --features loom --test loom_sux --release`

#[path = "support/sleeps.rs"]
mod sleeps;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::SuxLock;
use clearway_machine::{AtomicWord, DataCell, Loom, Machine};
use loom::thread;
use sleeps::Sleeps;

/// Data under a latch.
struct Shared {
    latch: SuxLock<Sleeps, Loom>,
    data: <Loom as Machine>::Data<u32>,
}

impl Shared {
    fn new() -> Self {
        Self {
            latch: SuxLock::idle(),
            data: DataCell::new(0),
        }
    }

    fn add_one(&self) -> u32 {
        // SAFETY: the caller holds the latch exclusively; loom fails the test if that does not order the
        // accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
        1
    }

    fn read(&self) -> u32 {
        // SAFETY: the caller holds the latch; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }
}

/// A worker's use of the latch, once; returns the number of its writes.
type Step = fn(&Shared) -> u32;

fn shared(shared: &Shared) -> u32 {
    let _guard = shared.latch.shared();
    shared.read();
    0
}

fn exclusive(shared: &Shared) -> u32 {
    let _guard = shared.latch.exclusive();
    shared.add_one()
}

fn exclusive_twice(shared: &Shared) -> u32 {
    let outer = shared.latch.exclusive();
    let inner = shared.latch.exclusive();
    let written = shared.add_one();
    drop(outer);
    let written = written + shared.add_one();
    drop(inner);
    written
}

/// Reads under its own update, and continues reading after the update is released.
fn shared_under_update(shared: &Shared) -> u32 {
    let update = shared.latch.update();
    let before = shared.read();
    let reader = shared.latch.shared();
    drop(update);
    assert_eq!(shared.read(), before, "a worker wrote beside a reader");
    drop(reader);
    0
}

/// The first exclusive beside an update excludes readers; the last one admits them and leaves the update.
fn exclusive_within_update(shared: &Shared) -> u32 {
    let outer = shared.latch.update();
    let before = shared.read();
    let written = {
        let _inner = shared.latch.exclusive();
        assert_eq!(shared.read(), before, "a worker wrote beside an update");
        shared.add_one()
    };
    assert_eq!(shared.read(), before + 1, "a worker wrote beside an update");
    drop(outer);
    written
}

/// The update goes before the exclusive that came after it.
fn update_that_goes_first(shared: &Shared) -> u32 {
    let outer = shared.latch.update();
    let inner = shared.latch.exclusive();
    drop(outer);
    let written = shared.add_one();
    drop(inner);
    written
}

fn there_and_back(shared: &Shared) -> u32 {
    let guard = shared.latch.update().exclusive();
    let written = shared.add_one();
    let guard = guard.update();
    shared.read();
    match guard.try_exclusive() {
        Ok(_exclusive) => written + shared.add_one(),
        Err(_update) => written,
    }
}

fn conditional(shared: &Shared) -> u32 {
    let Some(_update) = shared.latch.try_update() else {
        return 0;
    };
    let _again = shared.latch.try_update().expect("the owner may come again");
    let Some(_exclusive) = shared.latch.try_exclusive() else {
        shared.read();
        return 0;
    };
    shared.add_one()
}

/// One worker a step, all at once.
fn explore(preemptions: usize, steps: &'static [Step]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let shared = Arc::new(Shared::new());
        let written = Arc::new(<Loom as Machine>::U32::new(0));
        // The machine's globals come to life before there is a thread to race with.
        Loom::workers();
        let threads: Vec<_> = steps[1..]
            .iter()
            .map(|step| {
                let (shared, written) = (Arc::clone(&shared), Arc::clone(&written));
                thread::spawn(move || written.fetch_add(step(&shared), Relaxed))
            })
            .collect();
        written.fetch_add(steps[0](&shared), Relaxed);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!shared.latch.is_held());
        let _guard = shared.latch.try_exclusive().expect("no holder is left");
        assert_eq!(shared.read(), written.load(Relaxed));
    });
}

/// Seen to catch, here and below (deadlock): the last X hold beside a U that does not admit readers again, a
/// first one that does not exclude them, a U that releases the inner lock while there are X holds, an owner's
/// number that is removed after the release.
#[test]
fn loom_recursion_beside_a_reader() {
    explore(3, &[exclusive_twice, shared]);
    explore(3, &[exclusive_within_update, shared]);
    explore(3, &[update_that_goes_first, shared]);
    explore(3, &[there_and_back, shared]);
}

#[test]
fn loom_recursion_beside_an_exclusive() {
    explore(3, &[exclusive_twice, exclusive]);
    explore(3, &[shared_under_update, exclusive]);
    explore(3, &[update_that_goes_first, exclusive]);
    explore(3, &[conditional, exclusive]);
}

#[test]
fn loom_recursion_of_both() {
    explore(3, &[exclusive_within_update, exclusive_within_update]);
    explore(2, &[shared_under_update, update_that_goes_first, shared]);
    explore(2, &[there_and_back, exclusive_twice]);
}

/// The latch is acquired by one worker, written under, and released by another, while a third reads.
///
/// Seen to catch: a latch held for an I/O that names its worker as the owner (assertion).
fn handed_over(claimed: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        // A guard that goes to another thread has to outlive this one's frame.
        let shared: &'static Shared = Box::leak(Box::new(Shared::new()));
        Loom::workers();
        let reader = thread::spawn(|| {
            let _guard = shared.latch.shared();
            assert_ne!(shared.read(), 1, "read in the middle of the I/O");
        });
        let guard = shared.latch.exclusive_for_io();
        shared.add_one();
        assert!(!shared.latch.is_owned_by_caller());
        let io = thread::spawn(move || {
            if claimed {
                let guard = guard.claim();
                let again = shared.latch.exclusive();
                shared.add_one();
                drop((guard, again));
            } else {
                shared.add_one();
                drop(guard);
            }
        });
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), 2);
        drop(_guard);
        reader.join().unwrap();
        io.join().unwrap();
        assert!(!shared.latch.is_held());
    });
}

#[test]
fn loom_io_ends_in_another_thread() {
    handed_over(false);
}

#[test]
fn loom_io_is_claimed_by_another_thread() {
    handed_over(true);
}
