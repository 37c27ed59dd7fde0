//! A standby's snapshot beside replay's clean-up under loom, with every variant of the known xids.
//!
//! `cargo test -p clearway-txn --features loom --test loom_cleaned_up --release`
//!
//! Replay ends transaction 100, says that it cleans up to there, and removes something if it finds no session in the way.
//! A reader that has a snapshot for which 100 runs must not find it removed. The mutations that this has caught are in
//! `crates/txn/mutations/cleanup_horizon.toml`.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_txn::{CleanedUp, KnownXids, KnownXidsOptions, ProcArray, ProcArrayOptions, Snapshot, Xid};
use loom::thread;
use support::explore;
use support::known_xids::begun;

struct Shared {
    known: KnownXids<Loom>,
    array: ProcArray<Loom>,
    cleaned: CleanedUp<Loom>,
    removed: <Loom as Machine>::U64,
}

#[test]
fn loom_nothing_is_removed_under_a_snapshot() {
    for options in KnownXidsOptions::each_variant(1, 4) {
        eprintln!("under {options:?}");
        explore(2, move || {
            let shared = Arc::new(Shared {
                known: begun(options, &[100], 101),
                array: ProcArray::new(1, ProcArrayOptions::default(), Xid(100)),
                cleaned: CleanedUp::default(),
                removed: AtomicWord::new(0),
            });
            let proc = shared.array.attach().unwrap();
            let reader = thread::spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let mut snapshot = Snapshot::default();
                    let taken =
                        shared
                            .cleaned
                            .take_snapshot(&shared.known, &shared.array, proc, &mut snapshot);
                    taken.unwrap();
                    let xmin = shared.array.xmin_of(proc).unwrap();
                    let removed = shared.removed.load(Relaxed);
                    assert!(removed < xmin.0, "{removed} is removed under the xmin {xmin}");
                    shared.array.clear_xmin(proc);
                }
            });
            let mut replay = shared.known.replay().unwrap();
            replay.remove(Xid(100));
            replay.remove_preceding(Xid(101), &[]);
            shared.cleaned.begin(Xid(100));
            if shared.array.holders_of_xmin_up_to(Xid(100)).is_empty() {
                shared.removed.store(100, Relaxed);
            }
            drop(replay);
            reader.join().unwrap();
        });
    }
}
