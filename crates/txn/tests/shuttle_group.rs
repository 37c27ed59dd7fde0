//! Groups under shuttle: more members than loom can have, random schedules, so that leaders have followers and
//! followers have followers of their own to wake.
//!
//! A session left asleep shows as shuttle's deadlock. A failing schedule is printed and can be replayed with
//! `shuttle::replay`.
//!
//! `cargo test -p clearway-txn --features shuttle --test shuttle_group --release`

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Shuttle, Switch};
use clearway_txn::{
    COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, NoPages, ProcArray, ProcArrayLatchVariant,
    ProcArrayOptions, ProcClearVariant, ProcId, Snapshot, SnapshotVariant, Status, StatusDevice,
    XIDS_PER_PAGE, Xid,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use support::{FIRST, array};

/// A leader, its two children, and children of those.
const SESSIONS: u32 = 6;
const ROUNDS: u32 = 2;
const SCHEDULES: usize = 500;

/// Six sessions run two transactions each, with every variant of `proc_clear` under every latch and every snapshot.
/// Each has left the array when its call returns and is finished for its own next snapshot, whichever session took it
/// out; none sleeps for ever.
///
/// Caught mutations: members popped one by one; a follower that wakes none of its own; a member's link read after it
/// was told that it may go (by the schedules with few preemptions only); a leader that is still a member when its call
/// returns.
#[test]
fn shuttle_sessions_leave_together() {
    let under = |options: ProcArrayOptions| {
        eprintln!("under {options:?}");
        shuttle::check_random(move || leave_together(options), SCHEDULES);
        shuttle::check_pct(move || leave_together(options), SCHEDULES, 4);
    };
    for &clear in ProcClearVariant::ALL {
        let options = ProcArrayOptions {
            clear,
            ..ProcArrayOptions::default()
        };
        for &latch in ProcArrayLatchVariant::ALL {
            under(ProcArrayOptions { latch, ..options });
        }
        for &snapshot in SnapshotVariant::ALL {
            if snapshot != options.snapshot {
                under(ProcArrayOptions { snapshot, ..options });
            }
        }
    }
}

fn leave_together(options: ProcArrayOptions) {
    let array = Arc::new(array::<Shuttle>(options, SESSIONS));
    // No status is asked for: a snapshot is asked with `sees_committed`.
    let log = Arc::new(CommitLog::new(NoPages, options.lwlock));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let (array, log) = (Arc::clone(&array), Arc::clone(&log));
            thread::spawn(move || run_session(&array, &log, ProcId(number)))
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

fn run_session(array: &ProcArray<Shuttle>, log: &CommitLog<Shuttle, NoPages>, proc: ProcId) {
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
        assert!(
            snapshot.sees_committed(xid, log).unwrap(),
            "{xid} runs in {snapshot:?}"
        );
        assert!(array.horizon() <= array.next_xid());
        array.clear_xmin(proc);
        assert_eq!(array.find_running(xid), None);
    }
}

const PAGES: usize = 3;

/// A device that remembers of each page the eight bytes with the statuses of xid 80 and those behind it.
struct Pages([<Shuttle as Machine>::U64; PAGES]);

const KEPT: std::ops::Range<usize> = 44..52;

impl StatusDevice for Pages {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        let kept = self.0[number as usize].load(Acquire);
        page[KEPT].copy_from_slice(&kept.to_le_bytes());
        Ok(true)
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], _: u64) -> io::Result<()> {
        let mut kept = [0; 8];
        kept.copy_from_slice(&page[KEPT]);
        self.0[number as usize].store(u64::from_le_bytes(kept), Release);
        Ok(())
    }
}

/// Six sessions set statuses on three pages, of which two have the same slot and two the same bank, while they read
/// each other's, with every variant of `commit_log`. A status is there when its call returns, is not lost by eviction,
/// and is on the device after a flush; none sleeps for ever.
#[test]
fn shuttle_statuses_are_set_together() {
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        shuttle::check_random(move || set_together(options), SCHEDULES);
        shuttle::check_pct(move || set_together(options), SCHEDULES, 4);
    }
}

/// The xid of a session's round, on some page.
fn xid(number: u32, round: u32, page: u64) -> Xid {
    Xid(80 + u64::from(number * ROUNDS + round) + page * XIDS_PER_PAGE)
}

fn status(number: u32) -> Status {
    [Status::Committed, Status::Aborted][number as usize % 2]
}

fn set_together(options: CommitLogOptions) {
    let device = Pages(std::array::from_fn(|_| <Shuttle as Machine>::U64::new(0)));
    let log = Arc::new(CommitLog::<Shuttle, _>::new(device, options));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                let mut set = Vec::new();
                for round in 0..ROUNDS {
                    // Mostly on one page, or there are no groups.
                    let page = [0, 0, 0, 1, 2][thread_rng().gen_range(0..5)];
                    let xid = xid(number, round, page);
                    log.set(xid, status(number), 0).unwrap();
                    set.push((xid, status(number)));
                    for (xid, status) in &set {
                        assert_eq!(log.get(*xid).unwrap(), *status, "the status of {xid}");
                    }
                }
                set
            })
        })
        .collect();
    let mut wanted = [0; PAGES];
    for session in sessions {
        for (xid, status) in session.join().unwrap() {
            let (page, within) = (xid.0 / XIDS_PER_PAGE, xid.0 % XIDS_PER_PAGE);
            wanted[page as usize] |= (status as u64) << (2 * (within - 80));
        }
    }
    log.flush_all().unwrap();
    let written = log.device().0.each_ref().map(|page| page.load(Relaxed));
    assert_eq!(written, wanted, "what was set, and nothing else");
}
