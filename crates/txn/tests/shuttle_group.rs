//! Groups under shuttle: more members than loom can have, random schedules, so that leaders have followers and
//! followers have followers of their own to wake.
//!
//! A session left asleep shows as shuttle's deadlock. A failing schedule is printed and can be replayed with
//! `shuttle::replay`.
//!
//! `cargo test -p clearway-txn --features shuttle --test shuttle_group --release`

mod support;

use std::sync::Arc;

use clearway_machine::{Shuttle, Switch};
use clearway_txn::{
    ProcArray, ProcArrayLatchVariant, ProcArrayOptions, ProcClearVariant, ProcId, Snapshot, Xid,
};
use shuttle::thread;
use support::{FIRST, array};

/// A leader, its two children, and children of those.
const SESSIONS: u32 = 6;
const ROUNDS: u32 = 2;
const SCHEDULES: usize = 500;

/// Six sessions run two transactions each, with every variant of `proc_clear` under every latch. Each has left the
/// array when its call returns and is finished for its own next snapshot, whichever session took it out; none sleeps
/// for ever.
///
/// Caught mutations: members popped one by one; a follower that wakes none of its own; a member's link read after it
/// was told that it may go (by the schedules with few preemptions only); a leader that is still a member when its call
/// returns.
#[test]
fn shuttle_sessions_leave_together() {
    for &latch in ProcArrayLatchVariant::ALL {
        for &clear in ProcClearVariant::ALL {
            let options = ProcArrayOptions {
                latch,
                clear,
                ..ProcArrayOptions::default()
            };
            eprintln!("under {options:?}");
            shuttle::check_random(move || leave_together(options), SCHEDULES);
            shuttle::check_pct(move || leave_together(options), SCHEDULES, 4);
        }
    }
}

fn leave_together(options: ProcArrayOptions) {
    let array = Arc::new(array::<Shuttle>(options, SESSIONS));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let array = Arc::clone(&array);
            thread::spawn(move || run_session(&array, ProcId(number)))
        })
        .collect();
    for session in sessions {
        session.join().unwrap();
    }
    let all = u64::from(SESSIONS * ROUNDS);
    assert_eq!(
        array.horizon(),
        Xid(FIRST.0 + all),
        "a transaction is left behind"
    );
}

fn run_session(array: &ProcArray<Shuttle>, proc: ProcId) {
    let mut snapshot = Snapshot::default();
    for _ in 0..ROUNDS {
        let xid = array.assign_xid(proc);
        assert_eq!(
            array.find_running(xid),
            Some(proc),
            "out of the array before its end"
        );
        array.end(proc, Some(xid));
        assert_eq!(
            array.xid_of(proc),
            None,
            "R1: a session returns before it has left"
        );
        array.snapshot(proc, &mut snapshot);
        assert!(array.horizon() <= array.next_xid());
        array.clear_xmin(proc);
        assert_eq!(array.find_running(xid), None);
    }
}
