//! Commits that leave the array in the order of their records, under loom: what a session meets whose commit another
//! session takes out, and what that session may still be doing to it. That the order holds is tested with the whole end
//! of a transaction (`storage/tests/loom_commits.rs`, `shuttle_commits.rs`).
//!
//! `cargo test -p clearway-txn --features loom --test loom_commit_order --release`
//!
//! Caught mutations: those of `mutations/commit_order.toml`.

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;

use clearway_machine::{Loom, Switch};
use clearway_txn::{ProcArray, ProcArrayOptions, ProcClearVariant, ProcId, SnapshotVariant, Xid};
use loom::thread;
use support::{ALICE, BOB, CAROL, array, explore, snapshot};

/// Begins a transaction of `proc`, whose commit record gets the next place.
fn enter(array: &ProcArray<Loom>, proc: ProcId) -> Xid {
    let xid = array.assign_xid(proc);
    array.enter_commit(proc, || ((), true));
    xid
}

/// The commit of `proc` is durable: returns when it has left.
fn end(array: &ProcArray<Loom>, proc: ProcId, xid: Xid) {
    array.end_commit(proc, xid, 0, || ());
    assert_eq!(
        array.xid_of(proc),
        None,
        "the session goes on, and its commit has not left"
    );
}

/// Q5: Bob waits behind Alice, who takes his commit out. He commits again, behind Carol, and waits for her: the word that
/// Alice has for him is that of his first wait, and does not end the second.
#[test]
fn loom_a_late_word_does_not_end_the_next_wait() {
    for &clear in ProcClearVariant::ALL {
        let options = ProcArrayOptions {
            clear,
            ..ProcArrayOptions::default()
        };
        eprintln!("under {options:?}");
        explore(3, move || {
            let array = Arc::new(array::<Loom>(options, 3));
            let [a, b, c] = [ALICE, BOB, CAROL].map(|proc| enter(&array, proc));
            let others = {
                let array = Arc::clone(&array);
                thread::spawn(move || {
                    end(&array, ALICE, a);
                    end(&array, CAROL, c);
                })
            };
            end(&array, BOB, b);
            let next = enter(&array, BOB);
            end(&array, BOB, next);
            assert_eq!(array.xid_of(CAROL), None, "Q1: Carol's record is in front");
            others.join().unwrap();
        });
    }
}

/// Bob waits behind Alice, and his sleeps end though no session has let him go: he goes on when his commit has left, and
/// not before.
#[test]
fn loom_a_wait_that_ends_early_goes_on() {
    for &clear in ProcClearVariant::ALL {
        let options = ProcArrayOptions {
            clear,
            ..ProcArrayOptions::default()
        };
        eprintln!("under {options:?}");
        explore(3, move || {
            let array = Arc::new(array::<Loom>(options, 2));
            let [a, b] = [ALICE, BOB].map(|proc| enter(&array, proc));
            let bob = {
                let array = Arc::clone(&array);
                thread::spawn(move || {
                    Loom::end_waits_early(2);
                    end(&array, BOB, b);
                    assert_eq!(array.xid_of(ALICE), None, "Q1: Alice's record is in front");
                })
            };
            end(&array, ALICE, a);
            bob.join().unwrap();
        });
    }
}

/// Bob takes Alice's commit out, which was waiting for a sync. As soon as she finds that by her own xid, without a latch, she
/// begins the next transaction and takes a snapshot: nothing that Bob still writes takes either back.
#[test]
fn loom_what_a_session_begins_is_not_taken_back_by_the_one_that_ended_it() {
    for &snapshots in SnapshotVariant::ALL {
        let options = ProcArrayOptions {
            snapshot: snapshots,
            ..ProcArrayOptions::default()
        };
        eprintln!("under {options:?}");
        explore(2, move || {
            let array = Arc::new(array::<Loom>(options, 2));
            let [a, b] = [ALICE, BOB].map(|proc| enter(&array, proc));
            array.commit_is_ready_at(ALICE, 10);
            let bob = {
                let array = Arc::clone(&array);
                thread::spawn(move || array.end_commit(BOB, b, 10, || ()))
            };
            end(&array, ALICE, a);
            snapshot(&array, ALICE);
            let next = array.assign_xid(ALICE);
            bob.join().unwrap();
            let xmin = array.xmin_of(ALICE).expect("nothing holds back the horizon");
            assert!(array.horizon() <= xmin);
            assert_eq!(array.find_running(next), Some(ALICE), "a transaction is lost");
        });
    }
}
