//! The commit log under loom, with every variant of `commit_log`.
//!
//! `cargo test -p clearway-txn --features loom --test loom_commit_log --release`

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_txn::{
    COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, Status, StatusDevice, XIDS_PER_PAGE, Xid,
};
use loom::thread;
use support::{FIRST, explore};

/// Xid 100 of page 0, and its like on page 2, which has the same slot: the cases have two slots, or two banks of one.
const FAR: Xid = Xid(FIRST.0 + 2 * XIDS_PER_PAGE);

/// The log position of the end of `xid`: of two on a page, the one with the smaller xid ends later, so that its
/// position is new to the page.
fn lsn(xid: Xid) -> u64 {
    XIDS_PER_PAGE - xid.0 % XIDS_PER_PAGE
}

/// A device that remembers of pages 0 and 2 the byte with the statuses of the first xids, at 24 + 25.
struct TwoPages {
    bytes: [<Loom as Machine>::U32; 2],
}

impl TwoPages {
    fn new() -> Self {
        Self {
            bytes: std::array::from_fn(|_| <Loom as Machine>::U32::new(0)),
        }
    }
}

impl StatusDevice for TwoPages {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        page[49] = self.bytes[number as usize / 2].load(Acquire) as u8;
        Ok(true)
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], upto: u64) -> io::Result<()> {
        let written = &self.bytes[number as usize / 2];
        let new = page[49] & !(written.load(Relaxed) as u8);
        for (xid, shift) in (FIRST.0..).zip([0, 2, 4, 6]) {
            let ended = new >> shift & 3 != 0;
            assert!(
                !ended || lsn(Xid(xid)) <= upto,
                "R1: {xid} is written before its record"
            );
        }
        written.store(u32::from(page[49]), Release);
        Ok(())
    }
}

fn explore_each(
    preemptions: usize,
    case: impl Fn(CommitLog<Loom, TwoPages>) + Clone + Send + Sync + 'static,
) {
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        let case = case.clone();
        explore(preemptions, move || {
            case(CommitLog::new(TwoPages::new(), options))
        });
    }
}

/// Alice commits while the checkpointer writes the page; then a second flush. Her commit is on the device at the end,
/// and readable at any time.
///
/// Caught mutation: a write that marks the page clean without regard to changes made meanwhile (R3).
#[test]
fn loom_a_commit_during_a_flush_is_not_lost() {
    explore_each(2, |log| {
        let log = Arc::new(log);
        // Xid 100 is byte 24 + 25, its first two bits; 101 the next two.
        log.set(FIRST.next(), Status::Aborted, lsn(FIRST.next())).unwrap();
        // The checkpointer looks at what Alice writes: see `loom_snapshot` on why it is the one to be spawned.
        let flushing = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.flush_all().unwrap())
        };
        log.set(FIRST, Status::Committed, lsn(FIRST)).unwrap();
        flushing.join().unwrap();
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        log.flush_all().unwrap();
        assert_eq!(log.device().bytes[0].load(Relaxed), 0b1001);
    });
}

/// Alice commits while Bob's question about an old transaction takes the slot away from her page, and he sets one
/// there. Neither status is lost, and none shows on the other page.
///
/// Caught mutations: a page replaced though it was not written; and in `atomic`: a page given up without a look at what
/// was set since it was written; a word emptied by a load and a store; a status set in, or read from, a word of another
/// page.
#[test]
fn loom_a_status_survives_eviction() {
    explore_each(2, |log| {
        let log = Arc::new(log);
        assert_eq!(log.get(FIRST).unwrap(), Status::InProgress);
        let bob = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                assert_eq!(
                    log.get(FAR).unwrap(),
                    Status::InProgress,
                    "Alice's status on another page"
                );
                log.set(FAR.next(), Status::Aborted, lsn(FAR.next())).unwrap();
            })
        };
        log.set(FIRST, Status::Committed, lsn(FIRST)).unwrap();
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        bob.join().unwrap();
        assert_eq!(log.get(FAR).unwrap(), Status::InProgress);
        assert_eq!(log.get(FIRST.next()).unwrap(), Status::InProgress);
        assert_eq!(log.get(FAR.next()).unwrap(), Status::Aborted);
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        log.flush_all().unwrap();
        assert_eq!(
            log.device().bytes.each_ref().map(|byte| byte.load(Relaxed)),
            [0b01, 0b1000]
        );
    });
}

/// Two transactions end at once on a page that both sessions must fetch: neither reads it from the device over what the
/// other has set.
///
/// Caught mutation: a page that another worker has fetched meanwhile fetched again.
#[test]
fn loom_a_page_is_fetched_once() {
    explore_each(2, |log| {
        let log = Arc::new(log);
        let bob = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.set(FIRST.next(), Status::Aborted, lsn(FIRST.next())).unwrap())
        };
        log.set(FIRST, Status::Committed, lsn(FIRST)).unwrap();
        bob.join().unwrap();
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        assert_eq!(log.get(FIRST.next()).unwrap(), Status::Aborted);
    });
}

/// Two transactions that share a byte end at once, while a third session reads one of them: no status undoes another,
/// and an answer does not go back.
///
/// Caught mutation: a latch-free status stored over the word that was found.
#[test]
fn loom_neighbours_end_at_once() {
    explore_each(2, |log| {
        let log = Arc::new(log);
        assert_eq!(log.get(FIRST).unwrap(), Status::InProgress);
        let bob = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.set(FIRST.next(), Status::Aborted, lsn(FIRST.next())).unwrap())
        };
        let carol = {
            let log = Arc::clone(&log);
            thread::spawn(move || [log.get(FIRST).unwrap(), log.get(FIRST).unwrap()])
        };
        log.set(FIRST, Status::Committed, lsn(FIRST)).unwrap();
        bob.join().unwrap();
        let answers = carol.join().unwrap();
        assert_ne!(
            answers,
            [Status::Committed, Status::InProgress],
            "an answer went back"
        );
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        assert_eq!(log.get(FIRST.next()).unwrap(), Status::Aborted);
    });
}
