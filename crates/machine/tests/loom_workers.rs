//! Worker slots under loom: workers end, others take their slots, and slots are added.
//!
//! `cargo test -p clearway-machine --features loom --test loom_workers --release`
//!
//! The mutations that this has caught are in `crates/machine/mutations/workers.toml`.

use clearway_machine::{AtomicWord, DataCell, GrowingTable, Loom, Machine, WorkerId, Workers};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

fn explore(case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(case);
}

/// A table of its own, not the machine's.
fn table(slots: usize) -> Arc<Workers<Loom>> {
    Loom::workers();
    Arc::new(Workers::new(slots))
}

fn claim(workers: &Workers<Loom>) -> WorkerId {
    loop {
        match workers.claim() {
            Some(worker) => return worker,
            None => loom::thread::yield_now(),
        }
    }
}

fn release(workers: &Workers<Loom>, worker: WorkerId) {
    // SAFETY: each caller here has claimed the slot, and uses it no longer.
    unsafe { workers.release(worker) };
}

/// Alice, for which a post was made that it did not need, ends. Bob claims a slot, perhaps the same, and is posted: it finds
/// its own post, and no other. One more slot is free all the time, so Bob is promised one while Alice gives hers back.
///
/// Mutation that it is for: a slot is unclaimed before its posts are drained (Bob's post is drained with them).
#[test]
fn loom_a_post_is_for_the_present_worker() {
    explore(|| {
        let workers = table(2);
        let alice = workers.claim().unwrap();
        workers.slot(alice).semaphore.post();
        let bob = {
            let workers = Arc::clone(&workers);
            loom::thread::spawn(move || {
                let bob = claim(&workers);
                let semaphore = &workers.slot(bob).semaphore;
                semaphore.post();
                semaphore.wait();
                assert!(!semaphore.try_wait(), "a post for an earlier worker");
                release(&workers, bob);
            })
        };
        release(&workers, alice);
        bob.join().unwrap();
    });
}

/// Workers of two threads want one slot: no two have it at once, each sees what the one before has done, and it is not lost.
///
/// Mutations that it is for: a slot given back Relaxed; the count of free slots raised before the slot is unclaimed (a look for
/// it that does not end, which loom reports).
#[test]
fn loom_a_slot_has_one_worker() {
    explore(|| {
        let workers = table(1);
        let uses = Arc::new(<Loom as Machine>::Data::new(0_u32));
        let claims = Arc::new(<Loom as Machine>::U32::new(0));
        let work = |workers: &Workers<Loom>, uses: &<Loom as Machine>::Data<u32>| {
            let worker = workers.claim()?;
            // SAFETY: the slot is this worker's alone; loom fails the test if not.
            uses.with_mut(|uses| unsafe { *uses += 1 });
            release(workers, worker);
            Some(())
        };
        let other = {
            let (workers, uses, claims) = (Arc::clone(&workers), Arc::clone(&uses), Arc::clone(&claims));
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    claims.fetch_add(work(&workers, &uses).map_or(0, |()| 1), Relaxed);
                }
            })
        };
        claims.fetch_add(work(&workers, &uses).map_or(0, |()| 1), Relaxed);
        other.join().unwrap();
        // SAFETY: both are done.
        let uses = uses.with(|uses| unsafe { *uses });
        assert_eq!(uses, claims.load(Relaxed));
        assert!(uses > 0, "the slot was free at some instant of the first call");
        let worker = workers.claim().expect("no slot is lost");
        release(&workers, worker);
    });
}

/// A table of one slot grows by one, and by one more. Alice has the first. Bob and Carol find none free, and either may add a
/// slot that the other one takes. They get one each, and another worker gets none.
///
/// Mutations that it is for: a segment counted by each worker that finds it; one counted Relaxed.
#[test]
fn loom_slots_are_added_once() {
    explore(|| {
        Loom::workers();
        let workers = Arc::new(Workers::<Loom>::growing(1, 3));
        assert_eq!((workers.capacity_at_first(), workers.capacity()), (1, 3));
        let alice = workers.claim().unwrap();
        let bob = {
            let workers = Arc::clone(&workers);
            loom::thread::spawn(move || {
                let bob = workers.claim().expect("two may be added");
                workers.slot(bob).semaphore.post();
                bob
            })
        };
        let carol = workers.claim().expect("two may be added");
        workers.slot(carol).semaphore.post();
        let bob = bob.join().unwrap();
        let mut all = [alice.0, bob.0, carol.0];
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(workers.claim(), None);
        for worker in [bob, carol] {
            assert!(workers.slot(worker).semaphore.try_wait());
            release(&workers, worker);
        }
    });
}

/// An entry that is written while it is made, and then only read. Loom reports what is not dropped by its second part.
struct Entry(<Loom as Machine>::Data<usize>, #[expect(dead_code)] Arc<()>);

// SAFETY: loom checks each access to the number against all others.
unsafe impl Sync for Entry {}

impl Entry {
    fn new(number: usize) -> Self {
        let entry = Self(DataCell::new(0), Arc::new(()));
        // SAFETY: not shared yet.
        entry.0.with_mut(|entry| unsafe { *entry = number });
        entry
    }

    fn number(&self) -> usize {
        // SAFETY: it is only read once it is made; loom fails the test if not.
        self.0.with(|entry| unsafe { *entry })
    }
}

/// Two workers need the same segment, and one looks whether it is there. All see the same entries, as they were made.
///
/// Mutations that it is for: a segment's pointer stored over another one; published Relaxed; found Relaxed; one that came too
/// late not dropped.
#[test]
fn loom_a_segment_is_found_as_it_was_made() {
    explore(|| {
        let table = Arc::new(GrowingTable::<Loom, Entry>::growing(1, 2, Entry::new));
        let other = {
            let table = Arc::clone(&table);
            loom::thread::spawn(move || {
                let entry = table.get(1);
                assert_eq!(entry.number(), 1);
                std::ptr::from_ref(entry).addr()
            })
        };
        if let Some(entry) = table.find(1) {
            assert_eq!(entry.number(), 1);
        }
        let entry = table.get(1);
        assert_eq!(entry.number(), 1);
        let found_by_other = other.join().unwrap();
        assert_eq!(found_by_other, std::ptr::from_ref(entry).addr());
        assert_eq!(found_by_other, std::ptr::from_ref(table.get(1)).addr());
    });
}
