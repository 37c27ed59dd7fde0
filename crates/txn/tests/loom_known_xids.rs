//! The known xids under loom, with every variant: replay and one or two readers.
//!
//! `cargo test -p clearway-txn --features loom --test loom_known_xids --release`
//!
//! Each case knows what a snapshot is after each of replay's steps. A reader must find one of these, and none older than
//! the step that it knew of.
//!
//! Bounds of preemptions are low where a reader's loads have many stores to choose from: loom tries all of them under
//! any bound. A reader is spawned, so that it runs last by default: `loom_snapshot` says why.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_txn::{KnownXids, KnownXidsOptions, Xid};
use loom::thread;
use support::explore;
use support::known_xids::{Model, Step, begun, taken};

/// Four places, or a window of eight xids in two chunks, a journal of four ends of which one is written at once:
/// a tree counts as a change of the layout.
const CAPACITY: u32 = 4;

struct Shared {
    known: KnownXids<Loom>,
    /// Steps that replay has taken.
    steps: <Loom as Machine>::U32,
}

/// Takes `before` alone, and `steps` beside the readers.
fn explore_each(
    preemptions: usize,
    readers: usize,
    running: &'static [u64],
    before: &[Step],
    steps: &[Step],
) {
    for options in KnownXidsOptions::each_variant(1, CAPACITY) {
        eprintln!("under {options:?}");
        let (before, steps) = (before.to_vec(), steps.to_vec());
        let mut model = Model::begun(running, 100 + running.len() as u64, CAPACITY);
        assert!(before.iter().all(|step| model.apply(step)));
        let mut expected: Vec<(Xid, Vec<Xid>)> = vec![model.snapshot()];
        for step in &steps {
            assert!(model.apply(step));
            expected.push(model.snapshot());
        }
        explore(preemptions, move || {
            let shared = Arc::new(Shared {
                known: begun(options, running, 100 + running.len() as u64),
                steps: AtomicWord::new(0),
            });
            let mut replay = shared.known.replay().unwrap();
            for step in &before {
                step.replay(&mut replay);
            }
            let look = |shared: &Shared, expected: &[(Xid, Vec<Xid>)]| {
                let least = shared.steps.load(Acquire) as usize;
                let found = taken(&shared.known);
                let possible = &expected[least..];
                assert!(possible.contains(&found), "{found:?} is none of {possible:?}");
            };
            let looking: Vec<_> = (0..readers)
                .map(|_| {
                    let (shared, expected) = (Arc::clone(&shared), expected.clone());
                    thread::spawn(move || look(&shared, &expected))
                })
                .collect();
            for (number, step) in steps.iter().enumerate() {
                assert!(step.replay(&mut replay));
                shared.steps.store(number as u32 + 1, Release);
            }
            for reader in looking {
                reader.join().unwrap();
            }
            look(&shared, &expected);
        });
    }
}

/// A reader that finds 100 and misses 103, which ended later, must learn that 103 ran when it found 100.
///
/// Caught mutations, all of `bitmap`: no look into the journal; no fence between bits and journal, or between the
/// announcement and the bits; the counts of ends stored or loaded without their orderings; xmax of another moment.
#[test]
fn loom_a_snapshot_is_of_one_moment() {
    let steps = [Step::Remove(100), Step::Remove(103)];
    explore_each(2, 1, &[100, 101, 102, 103], &[], &steps);
}

/// A transaction ends with its subtransaction.
///
/// Caught mutation: a transaction that ends before its subtransactions.
#[test]
fn loom_a_tree_ends_at_one_moment() {
    explore_each(2, 1, &[100, 101, 102], &[], &[Step::Tree(101, vec![102])]);
}

/// A transaction begins and ends while another one runs: a snapshot that has it below xmax finds it.
///
/// Caught mutations: an entry, a link or a sum published without Release; in `bitmap`, a bit cleared before its end is
/// announced, and an end that is over before its bit is cleared.
#[test]
fn loom_additions_need_no_latch() {
    let steps = [Step::Add(101, 102), Step::Remove(102)];
    explore_each(2, 1, &[100], &[], &steps);
    // The first of all.
    explore_each(2, 1, &[], &[], &[Step::Add(100, 100)]);
}

/// 101 to 106 have come and gone while 100 runs: the next entry has no place, and 108 none in the window.
fn churned() -> Vec<Step> {
    (101..107)
        .flat_map(|xid| [Step::Add(xid, xid), Step::Remove(xid)])
        .collect()
}

/// Entries are moved; the window moves, and the oldest transaction becomes a straggler.
///
/// Caught mutations: no second look at the layout, a beginning while it is odd, its changes without fence or Release.
#[test]
fn loom_entries_and_the_window_move() {
    let mut before = churned();
    before.push(Step::Add(107, 107));
    before.push(Step::Remove(107));
    explore_each(1, 1, &[100], &before, &[Step::Add(108, 108)]);
}

/// 104 finds no place until 100, 102 and 103 are moved together.
#[test]
fn loom_entries_are_moved_together() {
    let before = [Step::Add(103, 103), Step::Remove(101)];
    explore_each(2, 1, &[100, 101, 102], &before, &[Step::Add(104, 104)]);
}

/// The oldest transaction is a straggler, and ends.
#[test]
fn loom_a_straggler_ends() {
    let mut before = churned();
    before.push(Step::Add(107, 108));
    explore_each(1, 1, &[100], &before, &[Step::Remove(107), Step::Remove(100)]);
}

/// More ends than the journal holds, during one look.
///
/// Caught mutations: a journal that is trusted though it may have been written over. Not caught:
/// the fence before a reader's last look taken out, which would take five ends in one look, and no end of the search.
#[test]
fn loom_a_slow_reader_begins_again() {
    let steps = [101, 103, 100, 102].map(Step::Remove);
    explore_each(0, 1, &[], &[Step::Add(100, 103)], &steps);
}

/// More ends at once than go through the journal.
///
/// Caught mutation: many ends without a change of the layout.
#[test]
fn loom_what_was_lost_ends_at_once() {
    let steps = [Step::Preceding(104, vec![102])];
    explore_each(1, 1, &[100, 101, 102, 103], &[], &steps);
}

/// Two readers, who leave hints for each other under `offsets`.
#[test]
fn loom_two_readers_and_an_end() {
    explore_each(1, 2, &[100, 101, 102], &[Step::Remove(101)], &[Step::Remove(102)]);
}

/// Replay is handed over: one worker ends a transaction and gives the known xids back, another takes them if they are free
/// by then. That one finds all that the first has done, and they never have them both.
///
/// Caught mutations (`mutations/known_xids.toml`): given back, or taken, Relaxed; taken by two, since an attempt in vain gives
/// back what the first one has.
#[test]
fn loom_replay_is_handed_over() {
    for options in KnownXidsOptions::each_variant(1, CAPACITY) {
        eprintln!("under {options:?}");
        explore(2, move || {
            let known = Arc::new(begun::<Loom>(options, &[100, 101], 102));
            let mut replay = known.replay().unwrap();
            let second = {
                let known = Arc::clone(&known);
                thread::spawn(move || {
                    // A second attempt finds no more than the first one, or the first worker is done.
                    let Some(mut replay) = known.replay().or_else(|| known.replay()) else {
                        return false;
                    };
                    assert_eq!(replay.next(), Xid(103), "the first worker is not done");
                    replay.add(Xid(103), Xid(103)).unwrap();
                    replay.remove(Xid(102));
                    true
                })
            };
            replay.add(Xid(102), Xid(102)).unwrap();
            replay.remove(Xid(101));
            drop(replay);
            let was_second = second.join().unwrap();
            let replay = known.replay().unwrap();
            let (next, found) = match was_second {
                true => (Xid(104), (Xid(103), vec![Xid(100)])),
                false => (Xid(103), (Xid(102), vec![Xid(100)])),
            };
            assert_eq!((replay.next(), replay.running()), (next, 2));
            assert_eq!(taken(&known), found);
        });
    }
}
