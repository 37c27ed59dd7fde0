//! Snapshots and the horizon under loom: every schedule of two or three sessions within a bound of preemptions, under
//! weak memory, with every variant of `snapshot`, `proc_clear` and `proc_array_latch`.
//!
//! `cargo test -p clearway-txn --features loom --test loom_snapshot --release`
//!
//! Snapshots against whole commits, in the order of their steps: `loom_commits` of the storage crate.
//!
//! A session that only looks runs in the spawned thread, hence last by default: loom then tries each of its looks
//! against each earlier write. The other way round it forgets a look when the writer looks too before it writes.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_txn::{CommitLog, NoPages, ProcArray, ProcArrayOptions, ProcId, Snapshot, Xid};
use loom::thread;
use support::{ALICE, BOB, CAROL, DAVE, FIRST, array, explore_each_array, snapshot};

/// Alice's and Bob's statuses, standing in for the commit log: written before they leave the array (R2 of
/// `proc_array`).
struct Ending {
    array: ProcArray<Loom>,
    committed: [<Loom as Machine>::U32; 2],
}

impl Ending {
    fn new(options: ProcArrayOptions) -> Self {
        Self {
            array: array(options, 3),
            committed: std::array::from_fn(|_| <Loom as Machine>::U32::new(0)),
        }
    }

    fn run_transaction(&self, proc: ProcId) {
        let xid = self.array.assign_xid(proc);
        // Relaxed: the array's latches must order it.
        self.committed[(xid.0 - FIRST.0) as usize].store(1, Relaxed);
        self.array.end(proc, Some(xid));
    }
}

/// The log of a case in which transactions only commit: a snapshot is asked with `sees_committed`.
fn log() -> CommitLog<Loom, NoPages> {
    CommitLog::new(NoPages, clearway_latch::LwLockVariant::default())
}

/// Alice and Bob each begin, commit and end; Carol takes a snapshot meanwhile. Whatever Carol's snapshot regards as
/// finished has its status set.
///
/// Caught mutations: `end` without the latch; a snapshot without the latch.
#[test]
fn loom_a_snapshot_never_sees_half_an_end() {
    explore_each_array(2, |options| {
        let shared = Arc::new(Ending::new(options));
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.run_transaction(BOB))
        };
        let carol = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let seen = snapshot(&shared.array, CAROL);
                let statuses = shared
                    .committed
                    .each_ref()
                    .map(|status| status.load(Relaxed) == 1);
                (seen, statuses)
            })
        };
        shared.run_transaction(ALICE);
        bob.join().unwrap();
        let (seen, statuses) = carol.join().unwrap();
        // What a snapshot answers does not depend on when it is asked (S1), so it is asked where loom has less to
        // explore.
        let log = log();
        for (number, committed) in statuses.into_iter().enumerate() {
            let xid = Xid(FIRST.0 + number as u64);
            let finished = seen.sees_committed(xid, &log).unwrap();
            assert!(committed || !finished, "{xid} is finished in {seen:?}");
        }
    });
}

/// Alice begins, then Bob, who also ends, while Carol takes a snapshot: Alice is not finished for Carol, although Carol
/// may have begun before either of them. Carol runs first by default, so that two preemptions are enough.
///
/// Caught mutation: the entries read under one hold of the latch and `latest_completed` under another.
#[test]
fn loom_a_snapshot_lists_a_transaction_that_began_meanwhile() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 3));
        let alice = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.assign_xid(ALICE))
        };
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                let xid = array.assign_xid(BOB);
                array.end(BOB, Some(xid));
            })
        };
        let seen = snapshot(&array, CAROL);
        let running = alice.join().unwrap();
        bob.join().unwrap();
        assert!(
            !seen.sees_committed(running, &log()).unwrap(),
            "{running} still runs, and is finished in {seen:?}"
        );
    });
}

/// Alice's transaction ends and then Bob's, who may have seen hers: a snapshot that has Bob's finished has Alice's
/// finished.
///
/// Caught mutation: a snapshot without the latch (Alice still in the array, Bob gone from it, and `latest_completed`
/// past both).
#[test]
fn loom_a_snapshot_keeps_the_order_of_ends() {
    explore_each_array(3, |options| {
        let array = Arc::new(array::<Loom>(options, 3));
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        let carol = {
            let array = Arc::clone(&array);
            thread::spawn(move || snapshot(&array, CAROL))
        };
        array.end(ALICE, Some(a));
        array.end(BOB, Some(b));
        let (seen, log) = (carol.join().unwrap(), log());
        assert!(
            seen.sees_committed(a, &log).unwrap() || !seen.sees_committed(b, &log).unwrap(),
            "b finished, a not, in {seen:?}"
        );
    });
}

/// Alice ends, Bob takes a snapshot, and vacuum asks for the horizon, all at once: the horizon does not pass the
/// snapshot.
///
/// Caught mutations: the xmin installed after the latch is released; `horizon` without the latch.
#[test]
fn loom_the_horizon_never_passes_a_snapshot() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 2));
        let a = array.assign_xid(ALICE);
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || snapshot(&array, BOB))
        };
        let vacuum = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.horizon())
        };
        array.end(ALICE, Some(a));
        let (seen, horizon) = (bob.join().unwrap(), vacuum.join().unwrap());
        if !seen.sees_committed(a, &log()).unwrap() {
            assert!(horizon <= a, "horizon {horizon} passed {seen:?}");
            assert!(array.horizon() <= a, "a later horizon passed {seen:?}");
        }
        array.clear_xmin(BOB);
        assert_eq!(array.horizon(), a.next());
    });
}

/// Alice runs a transaction, and Bob has taken a snapshot and released it, which a variant may use again.
fn after_a_first_snapshot(options: ProcArrayOptions) -> (Arc<ProcArray<Loom>>, Xid, Snapshot) {
    let array = Arc::new(array::<Loom>(options, 2));
    let a = array.assign_xid(ALICE);
    let seen = snapshot(&array, BOB);
    array.clear_xmin(BOB);
    (array, a, seen)
}

/// As the case before, for a session that has taken a snapshot earlier, and released it: a variant may use it again.
///
/// Caught mutations: no fence between installing the xmin and the look at what has ended; no fence in `horizon`; the
/// look before the xmin is installed; an xmin that is not installed.
#[test]
fn loom_the_horizon_never_passes_a_second_snapshot() {
    explore_each_array(2, |options| {
        let (array, a, mut seen) = after_a_first_snapshot(options);
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                array.snapshot(BOB, &mut seen);
                seen
            })
        };
        let vacuum = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.horizon())
        };
        array.end(ALICE, Some(a));
        let (seen, horizon) = (bob.join().unwrap(), vacuum.join().unwrap());
        if seen.sees_committed(a, &log()).unwrap() {
            array.clear_xmin(BOB);
            assert_eq!(array.horizon(), a.next());
        } else {
            assert!(horizon <= a, "horizon {horizon} passed {seen:?}");
            assert!(array.horizon() <= a, "a later horizon passed {seen:?}");
        }
    });
}

/// Bob keeps a snapshot, and takes a second one while Alice's transaction ends: the horizon passes neither as long as he
/// has the older.
///
/// Caught mutation (`mutations/snapshot.toml`): a session's later snapshot raises the xmin that it holds.
#[test]
fn loom_the_horizon_never_passes_a_snapshot_that_is_kept() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 2));
        let a = array.assign_xid(ALICE);
        let kept = snapshot(&array, BOB);
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || snapshot(&array, BOB))
        };
        let vacuum = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.horizon())
        };
        array.end(ALICE, Some(a));
        let (second, horizon) = (bob.join().unwrap(), vacuum.join().unwrap());
        assert!(!kept.sees_committed(a, &log()).unwrap());
        assert!(horizon <= a, "horizon {horizon} passed {kept:?} and {second:?}");
        assert!(array.horizon() <= a, "a later horizon passed {kept:?}");
        array.clear_xmin(BOB);
        assert_eq!(array.horizon(), a.next());
    });
}

/// Alice's transaction ends and then Bob's, while Carol, who has taken a snapshot earlier, takes another: S2, and
/// Bob's status is set for a snapshot that has his transaction finished.
///
/// Caught mutation: a snapshot used again without a look at what has ended.
#[test]
fn loom_a_second_snapshot_keeps_the_order_of_ends() {
    explore_each_array(2, |options| {
        let shared = Arc::new(Ending::new(options));
        let array = &shared.array;
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        let mut seen = snapshot(array, CAROL);
        array.clear_xmin(CAROL);
        let carol = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.array.snapshot(CAROL, &mut seen);
                let statuses = shared
                    .committed
                    .each_ref()
                    .map(|status| status.load(Relaxed) == 1);
                (seen, statuses)
            })
        };
        for (number, (proc, xid)) in [(ALICE, a), (BOB, b)].into_iter().enumerate() {
            // Relaxed: what a snapshot finds must order it.
            shared.committed[number].store(1, Relaxed);
            array.end(proc, Some(xid));
        }
        let ((seen, statuses), log) = (carol.join().unwrap(), log());
        let finished = [a, b].map(|xid| seen.sees_committed(xid, &log).unwrap());
        assert!(finished[0] || !finished[1], "b finished, a not, in {seen:?}");
        for (finished, committed) in finished.into_iter().zip(statuses) {
            assert!(committed || !finished, "half an end in {seen:?}");
        }
        let mut last = seen;
        array.snapshot(CAROL, &mut last);
        assert!(last.sees_committed(a, &log).unwrap() && last.sees_committed(b, &log).unwrap());
    });
}

/// Bob looks, without a latch, whether Alice's transaction has ended, as one does who waits for her. If it has, his
/// next snapshot has it finished (S5).
///
/// Caught mutation: the variant notified of the end after the slot's xid is cleared.
#[test]
fn loom_an_end_that_a_session_has_learnt_of_is_in_its_snapshot() {
    explore_each_array(2, |options| {
        let (array, a, mut seen) = after_a_first_snapshot(options);
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                array.xid_of(ALICE).is_none().then(|| {
                    array.snapshot(BOB, &mut seen);
                    seen
                })
            })
        };
        array.end(ALICE, Some(a));
        if let Some(seen) = bob.join().unwrap() {
            assert!(seen.sees_committed(a, &log()).unwrap(), "{a} runs in {seen:?}");
        }
    });
}

/// Bob and Carol take snapshots at once, and Alice's transaction ends meanwhile; that of an earlier session of hers has
/// ended before.
///
/// Caught mutations: a copy that is full before it is written; one published without Release.
#[test]
fn loom_two_take_snapshots_at_once() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 3));
        let a = array.assign_xid(ALICE);
        array.end(ALICE, Some(a));
        let b = array.assign_xid(ALICE);
        let sessions = [BOB, CAROL].map(|proc| {
            let array = Arc::clone(&array);
            thread::spawn(move || snapshot(&array, proc))
        });
        array.end(ALICE, Some(b));
        let taken = sessions.map(|session| session.join().unwrap());
        let log = log();
        for seen in &taken {
            assert!(seen.sees_committed(a, &log).unwrap(), "{a} runs in {seen:?}");
            assert!(
                seen.sees_committed(b, &log).unwrap() || array.horizon() <= b,
                "the horizon passed {seen:?}"
            );
        }
        let last = snapshot(&array, ALICE);
        assert!(last.sees_committed(b, &log).unwrap(), "{b} runs in {last:?}");
    });
}

/// Bob runs on, while Carol's transaction ends and then Alice's, which began first. For Dave's snapshot, Alice's is
/// finished only if Carol's is (S2), and what the snapshot says at once it says later too (S1).
///
/// Caught mutations: what has ended is read before the oldest that runs; a number is published before it is entered.
#[test]
fn loom_ends_have_another_order_than_xids() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 4));
        let [a, b, c] = [ALICE, BOB, CAROL].map(|proc| array.assign_xid(proc));
        let answers = move |seen: &Snapshot| {
            let log = log();
            [a, b, c].map(|xid| seen.sees_committed(xid, &log).unwrap())
        };
        let dave = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                let seen = snapshot(&array, DAVE);
                let first = answers(&seen);
                (seen, first)
            })
        };
        array.end(CAROL, Some(c));
        array.end(ALICE, Some(a));
        let (seen, first) = dave.join().unwrap();
        assert_eq!(first, answers(&seen), "answers changed: {seen:?}");
        let [a, b, c] = first;
        assert!(!b && (c || !a), "a {a}, b {b}, c {c} in {seen:?}");
    });
}

/// Alice runs on from before Carol's snapshot, Bob's first transaction has ended before it. Bob runs three more
/// transactions, and Alice ends, while Carol asks twice. A variant that keeps so few transactions at hand, as variants
/// do under a checker, must look elsewhere for the older ones.
///
/// Caught mutations: what is at hand is cleared before it is noted that it is; the older ones are thrown away; an end
/// looks for its place without the latch.
#[test]
fn loom_a_snapshot_outlives_what_is_at_hand() {
    explore_each_array(2, |options| {
        let array = Arc::new(array::<Loom>(options, 3));
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        array.end(BOB, Some(b));
        let seen = snapshot(&array, CAROL);
        let answers = move |seen: &Snapshot| {
            let log = log();
            [a, b].map(|xid| seen.sees_committed(xid, &log).unwrap())
        };
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                for _ in 0..3 {
                    let xid = array.assign_xid(BOB);
                    array.end(BOB, Some(xid));
                }
            })
        };
        let carol = thread::spawn(move || {
            assert_eq!(answers(&seen), [false, true], "{seen:?}");
            seen
        });
        array.end(ALICE, Some(a));
        bob.join().unwrap();
        let seen = carol.join().unwrap();
        assert_eq!(answers(&seen), [false, true], "{seen:?}");
        let last = snapshot(&array, BOB);
        assert_eq!(answers(&last), [true, true], "{last:?}");
        assert_eq!(array.horizon(), a, "Carol's snapshot is in use");
    });
}
