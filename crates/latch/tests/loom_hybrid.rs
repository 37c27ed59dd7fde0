//! HybridLatch under loom: each pair of modes, the transitions, and optimistic readers, under weak memory.
//!
//! A worker that is left asleep is reported as a deadlock; data reached without the latch having ordered the
//! accesses, as a causality violation.
//!
//! `cargo test -p clearway-latch --features loom --test loom_hybrid --release`; with
//! `CLEARWAY_LOOM=exhaustive` before it the cases that take minutes have one preemption more.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{ClassOf, HybridCell, HybridLatch, LatchClass, SpinPolicy};
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, WaitEvent};
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
    /// Data that only owners of update or exclusive mode touch.
    owned: <Loom as Machine>::Data<u64>,
    /// Words that optimistic readers read: equal whenever no worker writes.
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
                assert_eq!(self.read(), before, "a worker wrote beside an update");
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
                assert_eq!(self.read(), written, "a worker wrote beside a shared");
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
                            assert_eq!(self.words(), words, "a worker wrote in between");
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

/// The bound of a case that takes minutes with as many: one fewer, unless everything is asked for.
fn long(preemptions: usize) -> usize {
    match std::env::var("CLEARWAY_LOOM") {
        Ok(how) if how == "exhaustive" => preemptions,
        Ok(how) => panic!("CLEARWAY_LOOM={how}: it is `exhaustive`, or not set"),
        Err(_) => preemptions - 1,
    }
}

fn explore<const WORKERS: usize>(preemptions: usize, acts: [Act; WORKERS]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let shared = Shared::new();
        // The machine's globals come to life before there is a thread to race with.
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

/// The model's own thread is not like the others to loom: what it does first changes which schedules are
/// explored at all. (With the optimistic reader there and the writer beside it, a missing fence of the writer
/// was not seen.)
fn either_first([one, other]: [Act; 2]) {
    explore(3, [one, other]);
    explore(3, [other, one]);
}

/// Seen to catch, here and below: any acquire or release of a mode `Relaxed` (causality); a release of
/// shared, update or exclusive mode, or U→S, that does not wake; a wake for a free UPDATE that takes no
/// writer (deadlock).
#[test]
fn loom_pairs() {
    for acts in [
        [Exclusive, Exclusive],
        [Exclusive, Shared],
        [Exclusive, Update],
        [Update, Update],
        [Update, Shared],
    ] {
        either_first(acts);
    }
}

/// Seen to catch: U→X that does not acquire what the readers released (causality); S→U that does not acquire
/// what the last owner released (causality).
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
        either_first(acts);
    }
}

/// Seen to catch: no release fence after EXCLUSIVE, no acquire fence before the second look, a second look
/// that leaves EXCLUSIVE out (a torn read is validated); a version that is not raised (a worker wrote in
/// between).
#[test]
fn loom_optimistic() {
    for acts in [
        [Optimistic, Exclusive],
        [Optimistic, Upgrade],
        [Optimistic, Downgrade],
        [OptimisticOnce, Exclusive],
        [OptimisticOnce, OptimisticOnce],
    ] {
        either_first(acts);
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

/// Events while a woken writer is on its way, when releases wake no worker. A reader parks because another
/// worker writes, and then a worker holds the latch in update mode until that reader is admitted. So the
/// woken writer must wake the reader. First, the one that goes back to sleep, beside the updater.
///
/// The yield and the gate spare preemptions: the writer parks in the first exclusive section, and the reader
/// comes in the second.
///
/// Seen to catch, both: a woken writer that wakes no readers; the second: or only if it finds UPDATE set
/// (deadlocks).
#[test]
fn loom_woken_writer_that_parks_again_wakes_readers() {
    explore_gated(1, |shared, gate| {
        let exclusive = shared.latch.exclusive();
        let writer = {
            let shared = Arc::clone(shared);
            thread::spawn(move || drop(shared.latch.exclusive()))
        };
        let closed = gate.lock().unwrap();
        let reader = gated_reader(shared, gate);
        thread::yield_now();
        drop(exclusive);
        let exclusive = shared.latch.try_exclusive();
        drop(closed);
        drop(exclusive);
        let update = shared.latch.update();
        reader.join().unwrap();
        drop(update);
        writer.join().unwrap();
    });
}

/// Second, the one that comes in, as the updater.
#[test]
fn loom_woken_updater_wakes_readers() {
    explore_gated(2, |shared, gate| {
        let exclusive = shared.latch.exclusive();
        let closed = gate.lock().unwrap();
        let reader = gated_reader(shared, gate);
        let updater = {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                let _update = shared.latch.update();
                reader.join().unwrap();
            })
        };
        thread::yield_now();
        drop(exclusive);
        let exclusive = shared.latch.try_exclusive();
        drop(closed);
        drop(exclusive);
        updater.join().unwrap();
    });
}

type Gate = Arc<loom::sync::Mutex<()>>;

fn explore_gated(preemptions: usize, case: impl Fn(&Arc<Shared>, &Gate) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        Loom::workers();
        case(&Shared::new(), &Gate::default());
    });
}

/// A reader that comes when the gate is opened.
fn gated_reader(shared: &Arc<Shared>, gate: &Gate) -> thread::JoinHandle<()> {
    let (shared, gate) = (Arc::clone(shared), Arc::clone(gate));
    thread::spawn(move || {
        drop(gate.lock().unwrap());
        drop(shared.latch.shared());
    })
}

/// Seen to catch: HAS_WAITERS cleared although some are left; a worker that parks without another look; the
/// bucket's lock taken or dropped `Relaxed`; a woken writer that leaves WAKING, coming in or going back to
/// sleep (deadlocks).
#[test]
fn loom_three_workers() {
    for acts in [
        [Exclusive, Exclusive, Exclusive],
        [Exclusive, Exclusive, Shared],
        [Exclusive, Shared, Shared],
        [Upgrade, Exclusive, Shared],
        [Upgrade, Shared, Shared],
        [DowngradeToShared, Exclusive, Shared],
        [Optimistic, Exclusive, Upgrade],
    ] {
        explore(2, acts);
    }
}

#[test]
fn loom_three_workers_downgrading() {
    explore(long(2), [Downgrade, Exclusive, Shared]);
}

/// One worker changes a value of two words, another reads it three ways: each time it finds words of one value, none older
/// than it has seen.
///
/// Mutations that it is for: a read that does not validate; a change without the latch.
#[test]
fn loom_a_cell_is_read_whole() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        Loom::workers();
        let cell = Arc::new(HybridCell::<[u64; 2], 2, Tested, Loom>::new([0, 0]));
        let writer = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.update(|words| *words = words.map(|word| word + 1)))
        };
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let [first, second] = cell.read();
                assert_eq!(first, second);
                if let Some([third, fourth]) = cell.try_read() {
                    assert_eq!(third, fourth);
                    assert!(third >= first);
                }
                cell.update(|words| assert!(words[0] == words[1] && words[0] >= first));
            })
        };
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(cell.read(), [1, 1]);
    });
}
