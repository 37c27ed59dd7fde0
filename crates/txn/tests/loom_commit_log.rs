//! The commit log under loom, with every variant of `commit_log`. Readers against whole commits: `loom_commits` of
//! the storage crate.
//!
//! `cargo test -p clearway-txn --features loom --test loom_commit_log --release`

mod support;

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_txn::{COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, Status, StatusDevice, Xid};
use loom::sync::Arc;
use loom::thread;
use support::{FIRST, explore};

/// A device that remembers of its only page the byte with the first xids' statuses.
struct OnePage {
    byte: <Loom as Machine>::U32,
}

impl StatusDevice for OnePage {
    fn read_page(&self, _: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        page[49] = self.byte.load(Acquire) as u8;
        Ok(true)
    }
    fn write_page(&self, _: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], _: u64) -> io::Result<()> {
        self.byte.store(u32::from(page[49]), Release);
        Ok(())
    }
}

fn explore_each(preemptions: usize, case: impl Fn(CommitLog<Loom, OnePage>) + Clone + Send + Sync + 'static) {
    for options in CommitLogOptions::each_variant() {
        eprintln!("under {options:?}");
        let case = case.clone();
        explore(preemptions, move || {
            let device = OnePage {
                byte: <Loom as Machine>::U32::new(0),
            };
            case(CommitLog::new(device, options));
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
        log.set(Xid(101), Status::Aborted, 1).unwrap();
        let committing = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.set(FIRST, Status::Committed, 2).unwrap())
        };
        log.flush_all().unwrap();
        committing.join().unwrap();
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        log.flush_all().unwrap();
        assert_eq!(log.device().byte.load(Relaxed), 0b1001);
    });
}
