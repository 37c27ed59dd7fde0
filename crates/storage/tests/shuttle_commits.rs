//! The end of a transaction under shuttle: random schedules of more sessions than loom can take, each with several
//! transactions, beside a checkpointer. The shipped `CommitPath` over the shipped log, commit log, array and lock
//! table, under every variant of their switches.
//!
//! `cargo test -p clearway-storage --features shuttle --test shuttle_commits --release`
//!
//! Caught mutations: those of `mutations/commit.toml` that name this suite.

#![cfg(feature = "shuttle")]

#[path = "support/database.rs"]
mod database;
mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;

use clearway_machine::Shuttle;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{BeforeVisible, CommitOrderVariant, CommitWait, Lsn, Reader};
use clearway_txn::{LockMode, LockTag, LockWait, ProcId, Status, TransactionState, Xid};
use database::{Database, START, Variants};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;

const SESSIONS: u32 = 3;
const TRANSACTIONS: usize = 3;
const TABLE: LockTag = LockTag::Relation(1);

/// The planned end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Intent {
    Commit {
        wait: CommitWait,
        /// True if it has definitions.
        publishes: bool,
    },
    Abort,
}

impl Intent {
    fn random() -> Self {
        let mut random = thread_rng();
        let wait = match random.gen_range(0..5) {
            0 => return Intent::Abort,
            1 => CommitWait::Nothing,
            2 => CommitWait::BeforeSeen,
            _ => CommitWait::BeforeAcknowledged,
        };
        Intent::Commit {
            wait,
            publishes: random.gen_range(0..3) == 0,
        }
    }
}

/// Definitions that a commit publishes, or none.
struct Definitions<'a> {
    published: Option<&'a Mutex<Vec<Xid>>>,
    xid: Xid,
}

impl BeforeVisible for Definitions<'_> {
    fn is_needed(&self) -> bool {
        self.published.is_some()
    }

    /// As long as a wait for a standby may be.
    fn secure(&mut self) {
        shuttle::thread::yield_now();
    }

    fn publish(&mut self) {
        if let Some(published) = self.published {
            published.lock().unwrap().push(self.xid);
        }
    }
}

struct Shared {
    database: Database<Shuttle>,
    /// Noted before the transaction ends. A std mutex, which shuttle does not know: it orders nothing for the code
    /// under test.
    intents: Mutex<BTreeMap<Xid, Intent>>,
    /// The transactions whose definitions are published.
    published: Mutex<Vec<Xid>>,
    /// The commits of others that each snapshot has shown, in ascending order.
    shown: Mutex<Vec<Vec<Xid>>>,
}

impl Shared {
    /// The transactions whose commit records lie before `end`, as recovery reads them.
    fn logged(&self, end: Lsn) -> Vec<Xid> {
        let device = self.database.log.device();
        let mut reader = LogReader::new(device, START);
        let mut commits = Vec::new();
        while reader.position() < end {
            let (record, _) = reader
                .next_record()
                .unwrap()
                .expect("whole records up to the end");
            if record.kind == RecordKind::COMMIT {
                commits.push(record.xid);
            }
        }
        commits
    }

    /// One transaction, which may wait for another one's lock.
    fn transaction(&self, proc: ProcId) {
        let database = &self.database;
        let xid = database.array.assign_xid(proc);
        let intent = Intent::random();
        self.intents.lock().unwrap().insert(xid, intent);
        if thread_rng().gen_range(0..2) == 0 {
            let locks = &database.locks;
            locks
                .acquire(proc, TABLE, LockMode::Exclusive, LockWait::FOREVER)
                .unwrap();
        }
        self.look(proc, xid);
        match intent {
            Intent::Abort => database.path().abort(proc, xid).unwrap(),
            Intent::Commit { wait, publishes } => {
                let definitions = Definitions {
                    published: publishes.then_some(&self.published),
                    xid,
                };
                let end = database.path().commit(proc, xid, wait, definitions).unwrap();
                assert!(
                    wait == CommitWait::Nothing || database.log.flushed() >= end,
                    "{xid} is acknowledged and not durable"
                );
            }
        }
        let state = database.states().of_no_answer(xid).unwrap();
        assert_eq!(state == TransactionState::Committed, intent != Intent::Abort);
    }

    /// A snapshot says of each transaction what that transaction does; what it shows is published, and before
    /// it is sent, it is durable: under `after-flush` if its session waits for that, and under `early` in any case.
    fn look(&self, proc: ProcId, own: Xid) {
        let database = &self.database;
        let (snapshot, seen) = (database.session_snapshot(proc), database.seen(true));
        let reader = Reader::of_session(&snapshot, &seen);
        let mut shown = Vec::new();
        let mut seen_commits = Vec::new();
        let intents = self.intents.lock().unwrap().clone();
        for (xid, intent) in intents.into_iter().filter(|(xid, _)| *xid != own) {
            match (database.states().at_snapshot(&reader, xid).unwrap(), intent) {
                (TransactionState::Running, _) | (TransactionState::Aborted, Intent::Abort) => {}
                (TransactionState::Committed, Intent::Commit { wait, publishes }) => {
                    seen_commits.push(xid);
                    assert!(
                        !publishes || self.published.lock().unwrap().contains(&xid),
                        "definitions of {xid}"
                    );
                    if wait != CommitWait::Nothing || database.commits.are_early() {
                        shown.push(xid);
                    }
                }
                (state, intent) => panic!("{xid} is seen as {state:?}, and means to end by {intent:?}"),
            }
        }
        self.shown.lock().unwrap().push(seen_commits);
        seen.wait_before_answer(&database.log);
        let durable = self.logged(database.log.flushed());
        for xid in shown {
            assert!(durable.contains(&xid), "{xid} is shown before it is durable");
        }
        assert!(
            database.array.xmin_of(proc).is_some(),
            "nothing holds back the horizon for a snapshot in use"
        );
        database.array.clear_xmin(proc);
    }

    /// O1: what each snapshot has shown are the first commits of the log, and none but those.
    fn check_order(&self) {
        let database = &self.database;
        database.log.flush(database.log.reserved());
        let logged = self.logged(database.log.flushed());
        for shown in self.shown.lock().unwrap().iter() {
            let mut first = logged[..shown.len()].to_vec();
            first.sort_unstable();
            assert_eq!(*shown, first, "seen out of the order of the log, {logged:?}");
        }
    }

    /// A checkpoint begins: each commit that recovery would no longer read is in the commit log. The statuses are
    /// read at once, before the session has time to set a late one; what has left the array has its status, as others
    /// check.
    fn checkpoint(&self) {
        let database = &self.database;
        let counters = database.commits.counters();
        let (redo, ()) = counters.begin_checkpoint(|| database.log.move_redo(), || ());
        let running = (0..SESSIONS).filter_map(|number| database.array.xid_of(ProcId(number)));
        let statuses: Vec<_> = running
            .map(|xid| (xid, database.commit_log.get(xid).unwrap()))
            .collect();
        database.log.flush(redo);
        let logged = self.logged(redo);
        for (xid, status) in statuses.into_iter().filter(|(xid, _)| logged.contains(xid)) {
            assert_eq!(status, Status::Committed, "{xid} is in neither place");
        }
    }
}

fn commits_and_checkpoints(variants: Variants) {
    let shared = Arc::new(Shared {
        database: Database::new(variants, SESSIONS),
        intents: Mutex::default(),
        published: Mutex::default(),
        shown: Mutex::default(),
    });
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let shared = Arc::clone(&shared);
            shuttle::thread::spawn(move || (0..TRANSACTIONS).for_each(|_| shared.transaction(ProcId(number))))
        })
        .collect();
    (0..4).for_each(|_| shared.checkpoint());
    sessions.into_iter().for_each(|session| session.join().unwrap());
    if variants.commit_order == CommitOrderVariant::Log {
        shared.check_order();
    }
}

#[test]
fn shuttle_commits_and_checkpoints() {
    for variants in Variants::each()
        .into_iter()
        .chain(Variants::each_flush_and_release())
    {
        check(variants, 500, 300);
    }
}

/// The combinations of what decides in which order commits are seen, each for a shorter time.
#[test]
fn shuttle_commits_in_the_order_of_the_log() {
    for variants in Variants::each_order_of_commits() {
        check(variants, 150, 100);
    }
}

fn check(variants: Variants, random: usize, pct: usize) {
    eprintln!("under {variants:?}");
    shuttle::check_random(move || commits_and_checkpoints(variants), random);
    shuttle::check_pct(move || commits_and_checkpoints(variants), pct, 3);
}
