//! Promises of memory under loom.
//!
//! `cargo test -p clearway-memory --features loom --test loom_ledger --release`
//!
//! Alice and Bob each want 60 of the 100 bytes that there are; Carol wants 30. What was promised can be allocated, however
//! they interleave. The mutations that this has caught are in `crates/memory/mutations/ledger.toml`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_memory::Ledger;
use loom::thread;

struct Process {
    ledger: Ledger<Loom>,
    /// Bytes that the system has. Relaxed accesses: the system's own order is not relied on, the ledger's is.
    free: <Loom as Machine>::U64,
}

impl Process {
    fn new(free: u64) -> Arc<Process> {
        Arc::new(Process {
            ledger: Ledger::default(),
            free: AtomicWord::new(free),
        })
    }

    /// Allocates `bytes` if they are promised; false if they are not.
    fn take(&self, bytes: u64) -> bool {
        if !self
            .ledger
            .ask(bytes, |together| self.free.load(Relaxed) >= together)
        {
            return false;
        }
        let free = self.free.fetch_sub(bytes, Relaxed);
        assert!(free >= bytes, "{bytes} were promised and {free} are free");
        self.ledger.kept(bytes);
        true
    }
}

fn explore(case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        Loom::workers();
        case();
    });
}

#[test]
fn loom_two_do_not_find_the_same_memory() {
    explore(|| {
        let process = Process::new(100);
        let bob = thread::spawn({
            let process = Arc::clone(&process);
            move || process.take(60)
        });
        let alice = process.take(60);
        let bob = bob.join().unwrap();
        assert!(!(alice && bob), "120 of 100");
        assert_eq!(process.ledger.outstanding(), 0);
    });
}

#[test]
fn loom_one_who_asks_again_sees_what_was_taken() {
    explore(|| {
        let process = Process::new(100);
        let others: Vec<_> = [60, 30]
            .into_iter()
            .map(|bytes| {
                let process = Arc::clone(&process);
                thread::spawn(move || process.take(bytes))
            })
            .collect();
        process.take(60);
        process.take(30);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(process.ledger.outstanding(), 0);
    });
}

/// A request that is alone gets what is there: a refusal leaves nothing behind.
#[test]
fn loom_a_refusal_is_forgotten() {
    explore(|| {
        let process = Process::new(100);
        let bob = thread::spawn({
            let process = Arc::clone(&process);
            move || process.take(200)
        });
        process.take(60);
        assert!(!bob.join().unwrap());
        assert!(process.take(process.free.load(Relaxed)));
    });
}
