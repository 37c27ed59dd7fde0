//! Commits against the start of a checkpoint, under loom: the shipped counters over the shipped log.
//!
//! Caught mutations (`mutations/checkpoint.toml`), each of `commit_counters.rs`: a checkpoint that does not
//! wait; a session whose counter becomes odd after the record is logged, or not at all; numbers read before
//! the redo position moves.

#![cfg(feature = "loom")]

mod support;

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, DataCell, Loom, Machine};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogOptions, Wal};
use clearway_storage::{CommitCounters, Lsn};
use clearway_txn::{ProcId, Xid};
use loom::sync::Arc;
use loom::thread;
use support::MemoryDevice;

const START: u64 = 64;
const FIRST_XID: u32 = 7;

struct Engine {
    log: Wal<Loom, MemoryDevice>,
    commits: CommitCounters<Loom>,
    next_xid: <Loom as Machine>::U32,
    /// The commit log's word for the transaction; loom's, so that to read it unordered fails the test.
    status: <Loom as Machine>::Data<bool>,
    /// Where its record ends, 0 before it is logged. Relaxed: it must not order what the counters have to.
    logged: <Loom as Machine>::U64,
}

// SAFETY: the status is written by the session and read by the checkpointer after it, which is what the test checks.
unsafe impl Sync for Engine {}
// SAFETY: as above.
unsafe impl Send for Engine {}

/// A session takes an xid, logs its commit and enters it, while a checkpoint begins. If the record lies before the redo
/// position, the status is there, and the xid counts as handed out.
#[test]
fn loom_a_checkpoint_knows_the_commits_before_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        Loom::workers();
        let device = MemoryDevice::default();
        device.0.lock().unwrap().synced = START;
        let start = Lsn(START);
        let options = LogOptions {
            ring_size: 128,
            insert_latches: 1,
            ..LogOptions::default()
        };
        let engine = Arc::new(Engine {
            log: Wal::new(device, options, start, start),
            commits: CommitCounters::new(1),
            next_xid: <Loom as Machine>::U32::new(FIRST_XID),
            status: <Loom as Machine>::Data::new(false),
            logged: <Loom as Machine>::U64::new(0),
        });
        let session = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let xid = Xid(u64::from(engine.next_xid.fetch_add(1, Relaxed)));
                let log = || {
                    let end = engine.log.insert_any(RecordKind::Commit, xid, &[]);
                    engine.logged.store(end.0, Relaxed);
                    end
                };
                let enter = |_| {
                    engine.status.with_mut(|status| {
                        // SAFETY: nothing else writes it, and loom fails the test if it is read meanwhile.
                        unsafe { *status = true }
                    })
                };
                engine.commits.commit(ProcId(0), log, enter);
            })
        };
        let (redo, next_xid) = engine
            .commits
            .begin_checkpoint(|| engine.log.move_redo(), || engine.next_xid.load(Relaxed));
        if redo.0 > START {
            assert!(
                next_xid > FIRST_XID,
                "an xid in the log before the checkpoint is handed out again"
            );
            // SAFETY: the session is past its write, which is what the test checks.
            let entered = engine.status.with(|status| unsafe { *status });
            assert!(
                entered,
                "a commit before the redo position is not in the commit log"
            );
        }
        session.join().unwrap();
        assert!(
            redo.0 == START || redo.0 == engine.logged.load(Relaxed),
            "one record"
        );
    });
}
