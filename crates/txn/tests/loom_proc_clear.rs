//! Leaving the array of running transactions under loom, with every variant of `proc_clear`. Larger groups:
//! `shuttle_group`. What a snapshot makes of an end is tested in `loom_snapshot`.
//!
//! `cargo test -p clearway-txn --features loom --test loom_proc_clear --release`

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Loom, Machine, Switch};
use clearway_txn::{ProcArray, ProcArrayOptions, ProcClearVariant, ProcId, Xid};
use loom::thread;
use support::{ALICE, BOB, CAROL, FIRST, array, explore};

fn explore_each(preemptions: usize, case: impl Fn(ProcArray<Loom>) + Clone + Send + Sync + 'static) {
    for &clear in ProcClearVariant::ALL {
        let options = ProcArrayOptions {
            clear,
            ..ProcArrayOptions::default()
        };
        eprintln!("under {options:?}");
        let case = case.clone();
        explore(preemptions, move || case(array(options, 3)));
    }
}

/// Three sessions end at once. Each has left the array when its call returns, none sleeps for ever, and the horizon
/// passes all three. What a session wrote before its end is visible to a session that does not find it in the array any
/// more.
///
/// Caught mutations: joining a group without Release; taking its list without Acquire; waking a member without Release.
#[test]
fn loom_three_leave_at_once() {
    explore_each(2, |array| {
        let written: [<Loom as Machine>::U32; 3] = std::array::from_fn(|_| <Loom as Machine>::U32::new(0));
        let shared = Arc::new((array, written));
        let xids = [ALICE, BOB, CAROL].map(|proc| shared.0.assign_xid(proc));
        let end = move |shared: &(ProcArray<Loom>, [<Loom as Machine>::U32; 3]), proc: ProcId| {
            let (array, written) = shared;
            // Relaxed: the end must order it.
            written[proc.0 as usize].store(1, Relaxed);
            array.end(proc, Some(xids[proc.0 as usize]));
            assert_eq!(
                array.xid_of(proc),
                None,
                "R1: a session returns before it has left"
            );
        };
        let others = [BOB, CAROL].map(|proc| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || end(&shared, proc))
        });
        end(&shared, ALICE);
        // A session that Alice does not find has ended.
        for proc in [BOB, CAROL] {
            if shared.0.xid_of(proc).is_none() {
                assert_eq!(shared.1[proc.0 as usize].load(Relaxed), 1, "half an end");
            }
        }
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(shared.0.horizon(), Xid(FIRST.0 + 3));
    });
}

/// Three sessions end at once: one has the latch, one leads a group, and one follows. Their first sleeps end though no
/// session has woken them: each has left the array when its call returns.
///
/// Caught mutation: a follower that takes the end of its sleep for the end of its step.
#[test]
fn loom_a_sleep_that_ends_early_goes_on() {
    explore_each(2, |array| {
        let array = Arc::new(array);
        let xids = [ALICE, BOB, CAROL].map(|proc| array.assign_xid(proc));
        let end = move |array: &ProcArray<Loom>, proc: ProcId| {
            Loom::end_waits_early(1);
            array.end(proc, Some(xids[proc.0 as usize]));
            assert_eq!(array.xid_of(proc), None, "R1: it returns before it has left");
        };
        let others = [BOB, CAROL].map(|proc| {
            let array = Arc::clone(&array);
            thread::spawn(move || end(&array, proc))
        });
        end(&array, ALICE);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(array.horizon(), Xid(FIRST.0 + 3));
    });
}

/// Two sessions end at once, and begin and end a second transaction: a member of a group may be one of the next.
///
/// Caught mutation: a leader that is still a member when its call returns.
#[test]
fn loom_a_session_ends_twice() {
    explore_each(3, |array| {
        let array = Arc::new(array);
        let end_twice = |array: &ProcArray<Loom>, proc: ProcId| {
            for _ in 0..2 {
                let xid = array.assign_xid(proc);
                array.end(proc, Some(xid));
            }
        };
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || end_twice(&array, BOB))
        };
        end_twice(&array, ALICE);
        bob.join().unwrap();
        assert_eq!(array.horizon(), Xid(FIRST.0 + 4));
    });
}
