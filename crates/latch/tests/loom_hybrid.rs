//! HybridLatch under loom: each pair of modes, the transitions, and optimistic readers, under weak memory.
//!
//! A worker that is left asleep is reported as a deadlock; data reached without the latch having ordered the accesses, as a
//! causality violation.
//!
//! `cargo test -p clearway-latch --features loom --test loom_hybrid --release`

use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{ClassOf, HybridLatch, LatchClass, SpinPolicy};
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, WaitEvent};
use loom::sync::Arc;
use loom::thread;

#[derive(Debug)]
struct Tested;

impl ClassOf for Tested {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("hybrid", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

struct Shared {
    latch: HybridLatch<Tested, Loom>,
    data: <Loom as Machine>::Data<u64>,
    /// What only owners of update or exclusive mode touch.
    owned: <Loom as Machine>::Data<u64>,
    /// What optimistic readers read: equal whenever nobody writes.
    words: [<Loom as Machine>::U64; 2],
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            latch: HybridLatch::idle(),
            data: DataCell::new(0),
            owned: DataCell::new(0),
            words: [AtomicWord::new(0), AtomicWord::new(0)],
        })
    }

    /// The caller holds the latch in update mode or exclusively.
    fn own(&self) {
        // SAFETY: one owner at a time; loom fails the test if that does not order the accesses.
        self.owned.with_mut(|owned| unsafe { *owned += 1 });
    }

    /// The caller holds the latch exclusively.
    fn write(&self) {
        self.own();
        // SAFETY: exclusive; loom fails the test if that does not order the accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
        for word in &self.words {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    }

    /// The caller holds the latch.
    fn read(&self) -> u64 {
        // SAFETY: held; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    /// One worker's part.
    fn act(&self, what: Act) {
        match what {
            Act::Shared => {
                let _guard = self.latch.shared();
                self.read();
            }
            Act::Update => {
                let _guard = self.latch.update();
                self.own();
                self.read();
            }
            Act::Exclusive => {
                let _guard = self.latch.exclusive();
                self.write();
            }
            Act::Upgrade => {
                let update = self.latch.update();
                let before = self.read();
                let _guard = update.upgrade();
                assert_eq!(self.read(), before, "somebody wrote beside an update");
                self.write();
            }
            Act::SharedUpgrade => match self.latch.shared().try_upgrade() {
                Ok(update) => {
                    self.own();
                    self.read();
                    let _guard = update.upgrade();
                    self.write();
                }
                Err(shared) => {
                    self.read();
                    drop(shared);
                }
            },
            Act::Downgrade => {
                let exclusive = self.latch.exclusive();
                self.write();
                let written = self.read();
                let update = exclusive.downgrade_to_update();
                assert_eq!(self.read(), written);
                self.own();
                let _shared = update.downgrade();
                assert_eq!(self.read(), written);
            }
            Act::DowngradeToShared => {
                let exclusive = self.latch.exclusive();
                self.write();
                let written = self.read();
                let _shared = exclusive.downgrade_to_shared();
                assert_eq!(self.read(), written, "somebody wrote beside a shared");
            }
            Act::Optimistic => {
                let words = self.latch.read(|| self.words());
                assert_eq!(words[0], words[1], "a torn read was validated");
            }
            Act::OptimisticOnce => {
                if let Some(version) = self.latch.optimistic() {
                    let words = self.words();
                    if self.latch.validate(version) {
                        assert_eq!(words[0], words[1], "a torn read was validated");
                        if let Some(_guard) = self.latch.try_exclusive_at(version) {
                            assert_eq!(self.words(), words, "somebody wrote in between");
                            self.write();
                        }
                    }
                }
            }
            Act::TryAll => {
                if let Some(_guard) = self.latch.try_exclusive() {
                    self.write();
                }
                if let Some(_guard) = self.latch.try_update() {
                    self.own();
                }
                if let Some(_guard) = self.latch.try_shared() {
                    self.read();
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Shared,
    Update,
    Exclusive,
    Upgrade,
    SharedUpgrade,
    Downgrade,
    DowngradeToShared,
    Optimistic,
    OptimisticOnce,
    TryAll,
}

use Act::*;

fn explore<const WORKERS: usize>(preemptions: usize, acts: [Act; WORKERS]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let shared = Shared::new();
        // The machine's globals come to life before there is anybody to race with.
        Loom::workers();
        let threads: Vec<_> = acts[1..]
            .iter()
            .map(|&act| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.act(act))
            })
            .collect();
        shared.act(acts[0]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!shared.latch.is_held());
        let words = shared.words();
        assert_eq!(words, [shared.read(), shared.read()]);
    });
}

/// Seen to catch, here and below: any acquire or release of a mode `Relaxed` (causality); a release of shared, update or
/// exclusive mode, or U→S, that does not wake; a wake for a free UPDATE that takes no writer (deadlock).
#[test]
fn loom_pairs() {
    for acts in [
        [Exclusive, Exclusive],
        [Exclusive, Shared],
        [Exclusive, Update],
        [Update, Update],
        [Update, Shared],
    ] {
        explore(3, acts);
    }
}

/// Seen to catch: U→X that does not acquire what the readers released (causality); S→U that does not acquire what the last
/// owner released (causality).
#[test]
fn loom_transitions() {
    for acts in [
        [Upgrade, Upgrade],
        [Upgrade, Shared],
        [Upgrade, Exclusive],
        [SharedUpgrade, SharedUpgrade],
        [SharedUpgrade, Exclusive],
        [SharedUpgrade, Update],
        [Downgrade, Shared],
        [Downgrade, Exclusive],
        [DowngradeToShared, Exclusive],
        [DowngradeToShared, Upgrade],
        [TryAll, Upgrade],
    ] {
        explore(3, acts);
    }
}

/// Seen to catch: no release fence after EXCLUSIVE, no acquire fence before the second look, a second look that leaves EXCLUSIVE
/// out (a torn read is validated); a version that is not raised (somebody wrote in between).
#[test]
fn loom_optimistic() {
    for acts in [
        [Optimistic, Exclusive],
        [Optimistic, Upgrade],
        [Optimistic, Downgrade],
        [OptimisticOnce, Exclusive],
        [OptimisticOnce, OptimisticOnce],
    ] {
        explore(3, acts);
    }
}

/// A writer that steps down to update mode, and waits there for a reader that may be parked.
///
/// Seen to catch: X→U that does not wake readers (deadlock).
#[test]
fn loom_stepping_down_lets_readers_in() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let shared = Shared::new();
        Loom::workers();
        let exclusive = shared.latch.exclusive();
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.act(Act::Shared))
        };
        shared.write();
        let _update = exclusive.downgrade_to_update();
        reader.join().unwrap();
    });
}

/// Seen to catch: HAS_WAITERS cleared although some are left; a worker that parks without another look; the bucket's lock
/// taken or dropped `Relaxed` (deadlock).
fn three_workers(cases: &[[Act; 3]]) {
    for acts in cases {
        explore(2, *acts);
    }
}

// Two tests, so that two CPUs share them.

#[test]
fn loom_three_workers() {
    three_workers(&[
        [Exclusive, Exclusive, Exclusive],
        [Exclusive, Shared, Shared],
        [Upgrade, Exclusive, Shared],
        [DowngradeToShared, Exclusive, Shared],
    ]);
}

#[test]
fn loom_three_other_workers() {
    three_workers(&[
        [Exclusive, Exclusive, Shared],
        [Upgrade, Shared, Shared],
        [Downgrade, Exclusive, Shared],
        [Optimistic, Exclusive, Upgrade],
    ]);
}
