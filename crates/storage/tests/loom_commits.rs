//! The end of a transaction under loom: the shipped `CommitPath` over the shipped log, commit log, array and lock
//! table, against each of those that look at them meanwhile. Each case runs under every variant of their switches.
//!
//! `cargo test -p clearway-storage --features loom --test loom_commits --release`
//!
//! Caught mutations: `mutations/commit.toml` exchanges or leaves out each step.

#![cfg(feature = "loom")]

#[path = "support/database.rs"]
mod database;
mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, DataCell, Loom, Machine};
use clearway_storage::wal::LogFlushVariant;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{
    CommitCounters, CommitOptions, CommitVariants, CommitWait, Commits, LockReleaseVariant, Lsn, Publish,
    Reader, SessionSnapshot,
};
use clearway_txn::{LockMode, LockTag, LockWait, ProcId, Status, TransactionState, Xid};
use database::{ALICE, BOB, CAROL, Database, FIRST, START, Variants};
use loom::thread;

const TABLE: LockTag = LockTag::Relation(1);

/// Two sessions, and the definitions that one of them publishes.
struct Shared {
    database: Database<Loom>,
    /// 1: Alice's definitions. Relaxed: the order of the commit must make them visible.
    definitions: <Loom as Machine>::U32,
}

impl Shared {
    fn commit_alice(&self, synchronous: bool) -> Lsn {
        let xid = self.database.array.xid_of(ALICE).unwrap();
        let publish = Publish::new(|| self.definitions.store(1, Relaxed));
        self.database
            .path()
            .commit(ALICE, xid, CommitWait::synchronous(synchronous), publish)
            .unwrap()
    }
}

/// Explores `case` under each variant; a failure shows the variants printed last.
fn explore_each(preemptions: usize, case: impl Fn(Arc<Shared>) + Clone + Send + Sync + 'static) {
    for variants in Variants::each() {
        eprintln!("under {variants:?}");
        let case = case.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            // The machine's globals exist before any thread can race for them.
            Loom::workers();
            let shared = Shared {
                database: Database::new(variants, 2),
                definitions: <Loom as Machine>::U32::new(0),
            };
            shared.database.array.assign_xid(ALICE);
            case(Arc::new(shared));
        });
    }
}

/// Bob meets a row of Alice's while she commits: to his snapshot she runs or has committed, and is never taken for
/// rolled back. If it sees the row, her definitions are there, and her record is durable before he answers. The answer
/// is the same when she has ended.
#[test]
fn loom_a_snapshot_that_sees_a_commit_finds_it_complete() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                let snapshot = database.session_snapshot(BOB);
                let seen = database.seen(true);
                let reader = Reader::of_session(&snapshot, &seen);
                let answer = database.states().at_snapshot(&reader, a).unwrap();
                if answer != TransactionState::Running {
                    assert_eq!(answer, TransactionState::Committed);
                    assert_eq!(shared.definitions.load(Relaxed), 1, "the definitions");
                    seen.wait_before_answer(&database.log);
                    assert!(
                        database.log.flushed() > START,
                        "a row is shown that a crash takes back"
                    );
                }
                (snapshot, answer)
            })
        };
        let end = shared.commit_alice(true);
        assert!(
            shared.database.log.flushed() >= end,
            "acknowledged and not durable"
        );
        let (snapshot, answer) = bob.join().unwrap();
        let seen = shared.database.seen(true);
        let reader = Reader::of_session(&snapshot, &seen);
        assert_eq!(shared.database.states().at_snapshot(&reader, a).unwrap(), answer);
    });
}

/// As above, for Bob who asks for the state of Alice's transaction without a snapshot: a vacuum does, and an updater.
#[test]
fn loom_a_commit_is_not_taken_for_an_abort() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                let found = database.states().of_no_answer(a).unwrap();
                assert_ne!(found, TransactionState::Aborted, "a committed transaction");
            })
        };
        shared.commit_alice(true);
        bob.join().unwrap();
    });
}

/// Alice does not wait for the disk. Bob sees her row and is about to set a hint bit on its page: the page knows up
/// to where the log must be durable before it is written.
#[test]
fn loom_a_commit_that_does_not_wait_is_noted_before_it_is_seen() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                let state = database.snapshot(BOB).state(a, &database.commit_log).unwrap();
                if state == TransactionState::Committed {
                    assert_eq!(database.commits.newest_async(), database.log.reserved());
                }
            })
        };
        let end = shared.commit_alice(false);
        assert_eq!(shared.database.commits.newest_async(), end);
        bob.join().unwrap();
    });
}

/// Alice does not wait for the disk, and Bob does: under `early`, what he is shown of hers is durable before he
/// answers. He asks as of now, without a snapshot, as an updater does.
#[test]
fn loom_a_commit_that_does_not_wait_is_durable_before_others_answer() {
    explore_each(2, |shared| {
        if !shared.database.commits.are_early() {
            return;
        }
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                let (snapshot, seen) = (SessionSnapshot::default(), database.seen(true));
                let reader = Reader::of_session(&snapshot, &seen);
                let found = database.states().now(&reader, a).unwrap();
                if found == TransactionState::Committed {
                    seen.wait_before_answer(&database.log);
                    assert!(
                        database.log.flushed() > START,
                        "a row is shown that a crash takes back"
                    );
                }
            })
        };
        shared.commit_alice(false);
        bob.join().unwrap();
    });
}

/// The transactions whose commit records a power cut now would leave: those on the device before the end of its last
/// sync, whatever the log believes to be durable.
fn left_by_a_power_cut(database: &Database<Loom>) -> Vec<Xid> {
    let device = database.log.device();
    let synced = Lsn(device.0.lock().unwrap().synced);
    let mut reader = LogReader::new(device, START);
    let mut commits = Vec::new();
    while reader.position() < synced {
        let (record, _) = reader.next_record().unwrap().expect("whole records");
        if record.kind == RecordKind::COMMIT {
            commits.push(record.xid);
        }
    }
    commits
}

/// Alice's commit is seen and on its way to the disk; Carol, who has built on it, commits; Bob reads what both have
/// changed. One may flush for the others. No byte that depends on a commit that is not durable leaves for a client:
/// what Bob is shown, and what the two are answered, stays after a power cut. Under each way to flush.
#[test]
fn loom_no_byte_leaves_before_the_commits_it_depends_on_are_durable() {
    let all = Variants::each_flush_and_release().into_iter();
    for variants in all.filter(|variants| variants.lock_release == LockReleaseVariant::Early) {
        eprintln!("under {variants:?}");
        let mut builder = loom::model::Builder::new();
        // Which flush it is decides which transaction waits for which. That shows without a preemption: a sync lets the others go on. One
        // preemption in the baseline shows what a commit does in the wrong order.
        let preemptions = usize::from(variants.log.flush == LogFlushVariant::Single);
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            Loom::workers();
            let database = Arc::new(Database::<Loom>::new(variants, 3));
            // The others go on while a sync is in progress.
            database.log.device().0.lock().unwrap().before_sync = Some(thread::yield_now);
            let (a, c) = (database.array.assign_xid(ALICE), database.array.assign_xid(CAROL));
            let commit = |database: &Database<Loom>, proc, xid, wait| {
                database.path().commit(proc, xid, wait, ()).unwrap()
            };
            // All of her commit but the wait for the disk, which follows.
            let end = commit(&database, ALICE, a, CommitWait::Nothing);
            let carol = {
                let database = Arc::clone(&database);
                thread::spawn(move || {
                    commit(&database, CAROL, c, CommitWait::BeforeAcknowledged);
                    assert_eq!(left_by_a_power_cut(&database), [a, c], "Carol is told");
                })
            };
            let bob = {
                let database = Arc::clone(&database);
                thread::spawn(move || {
                    let (snapshot, seen) = (SessionSnapshot::default(), database.seen(true));
                    let reader = Reader::of_session(&snapshot, &seen);
                    let mut shown = Vec::new();
                    for xid in [a, c] {
                        let found = database.states().now(&reader, xid).unwrap();
                        if found == TransactionState::Committed {
                            shown.push(xid);
                        }
                    }
                    seen.wait_before_answer(&database.log);
                    let left = left_by_a_power_cut(&database);
                    assert!(
                        shown.iter().all(|xid| left.contains(xid)),
                        "Bob is shown {shown:?}, and a power cut leaves {left:?}"
                    );
                })
            };
            database.log.flush(end);
            assert!(left_by_a_power_cut(&database).contains(&a), "Alice is told");
            carol.join().unwrap();
            bob.join().unwrap();
        });
    }
}

/// The commits of Alice and Carol.
#[derive(Debug, Clone, Copy)]
struct TwoCommits {
    waits: [CommitWait; 2],
    /// True if Alice has definitions.
    publishes: bool,
}

impl TwoCommits {
    const EACH: [Self; 3] = [
        // The second may be complete before the first is durable.
        Self {
            waits: [CommitWait::BeforeAcknowledged, CommitWait::Nothing],
            publishes: false,
        },
        // The first is durable before it is seen, also under `early`.
        Self {
            waits: [CommitWait::BeforeSeen, CommitWait::BeforeAcknowledged],
            publishes: true,
        },
        Self {
            waits: [CommitWait::BeforeAcknowledged, CommitWait::BeforeAcknowledged],
            publishes: false,
        },
    ];

    fn commit(self, database: &Database<Loom>, proc: ProcId, xid: Xid) -> Lsn {
        let wait = self.waits[usize::from(proc != ALICE)];
        let path = database.path();
        if self.publishes && proc == ALICE {
            return path.commit(proc, xid, wait, Publish::new(|| ())).unwrap();
        }
        path.commit(proc, xid, wait, ()).unwrap()
    }
}

/// O1: Alice and Carol commit at once. If Bob's snapshot sees the one whose record is behind, it sees the other.
///
/// One preemption is enough for a commit that overtakes another: between its record and its leaving. All combinations are
/// shuttle's.
#[test]
fn loom_commits_are_seen_in_the_order_of_their_records() {
    let default = Variants::each()[0];
    let differences = |variants: &Variants| {
        usize::from(variants.array.snapshot != default.array.snapshot)
            + usize::from(variants.array.clear != default.array.clear)
            + usize::from(variants.log.insert != default.log.insert)
    };
    let all = Variants::each_order_of_commits().into_iter();
    for variants in all.filter(|variants| differences(variants) <= 1) {
        for two in TwoCommits::EACH {
            eprintln!("{two:?} under {variants:?}");
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = Some(1);
            builder.max_branches = 20_000;
            builder.check(move || {
                Loom::workers();
                let database = Arc::new(Database::<Loom>::new(variants, 3));
                // The others go on while a sync is in progress.
                database.log.device().0.lock().unwrap().before_sync = Some(thread::yield_now);
                let (a, c) = (database.array.assign_xid(ALICE), database.array.assign_xid(CAROL));
                let commits = [(ALICE, a), (CAROL, c)].map(|(proc, xid)| {
                    let database = Arc::clone(&database);
                    thread::spawn(move || two.commit(&database, proc, xid))
                });
                let snapshot = database.snapshot(BOB);
                let ends = commits.map(|commit| commit.join().unwrap());
                let [alice, carol] = [a, c].map(|xid| snapshot.sees(xid, &database.commit_log).unwrap());
                assert!(
                    if ends[0] < ends[1] {
                        alice || !carol
                    } else {
                        carol || !alice
                    },
                    "the records end at {ends:?}; Alice is seen: {alice}, Carol: {carol}"
                );
            });
        }
    }
}

/// The commits of Alice and Bob share a slot of the recent commits. Each is found there from when it is entered,
/// whatever the other does meanwhile.
#[test]
fn loom_recent_commits_that_share_a_slot() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        Loom::workers();
        let database = Database::<Loom>::new(Variants::each()[0], 2);
        let variants = CommitVariants {
            lock_release: LockReleaseVariant::Early,
            ..CommitVariants::default()
        };
        let options = CommitOptions {
            recent_slots: 2,
            ..CommitOptions::new(2, variants)
        };
        let shared = Arc::new((database, Commits::<Loom>::new(options)));
        let enter = |shared: &(Database<Loom>, Commits<Loom>), xid: u64, end: u64| {
            let (database, commits) = shared;
            commits.enter_early(Xid(xid), Lsn(end), &database.log);
            let found = commits.position_if_early(Xid(xid), &database.log);
            assert!(found >= Some(Lsn(end)), "the commit of {xid} is lost: {found:?}");
        };
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared, 102, START.0 + 64))
        };
        enter(&shared, 100, START.0 + 32);
        bob.join().unwrap();
        for xid in [100, 102] {
            let found = shared.1.position_if_early(Xid(xid), &shared.0.log);
            assert_eq!(found, Some(Lsn(START.0 + 64)), "{xid}");
        }
    });
}

/// Bob waits for the lock of a table that Alice has redefined: when he has it, he finds the new definition, and his
/// snapshot sees what she has done.
#[test]
fn loom_a_lock_is_given_back_after_everything_else() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let locks = &shared.database.locks;
        assert!(locks.try_acquire(ALICE, TABLE, LockMode::AccessExclusive));
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                database
                    .locks
                    .acquire(BOB, TABLE, LockMode::AccessShare, LockWait::FOREVER)
                    .unwrap();
                assert_eq!(shared.definitions.load(Relaxed), 1, "the definitions");
                let state = database.snapshot(BOB).state(a, &database.commit_log).unwrap();
                assert_eq!(state, TransactionState::Committed);
                database.locks.release_all(BOB);
            })
        };
        shared.commit_alice(true);
        bob.join().unwrap();
    });
}

/// Bob waits for the end of Alice's transaction, which she rolls back: he wakes, and finds how it ended.
#[test]
fn loom_an_abort_wakes_its_waiters() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                database
                    .locks
                    .wait_for_transaction(BOB, a, LockWait::FOREVER)
                    .unwrap();
                assert_eq!(database.commit_log.get(a).unwrap(), Status::Aborted);
            })
        };
        shared.database.path().abort(ALICE, a).unwrap();
        bob.join().unwrap();
    });
}

/// Alice commits while a checkpoint begins: if her record lies before the redo position, the commit log has her status.
#[test]
fn loom_a_checkpoint_knows_the_commits_before_it() {
    explore_each(2, |shared| {
        let a = shared.database.array.xid_of(ALICE).unwrap();
        let checkpointer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let database = &shared.database;
                let counters = database.commits.counters();
                let (redo, ()) = counters.begin_checkpoint(|| database.log.move_redo(), || ());
                if redo > START {
                    assert_eq!(
                        database.commit_log.get(a).unwrap(),
                        Status::Committed,
                        "a commit before the redo position is not in the commit log"
                    );
                }
            })
        };
        shared.commit_alice(true);
        checkpointer.join().unwrap();
    });
}

/// The promise of the counters alone, whatever latches the commit log has: what a session does between `begin` and
/// `end`, its record being in the log, is visible to a checkpoint whose redo position lies behind that record. A
/// number that was taken before counts as handed out.
#[test]
fn loom_counters_order_the_status_without_a_latch() {
    struct Counted {
        database: Database<Loom>,
        counters: CommitCounters<Loom>,
        next: <Loom as Machine>::U32,
        /// loom's, so that to read it unordered fails the test.
        status: <Loom as Machine>::Data<bool>,
    }
    // SAFETY: the status is written by the session and read by the checkpointer after it, which is what the test
    // checks.
    unsafe impl Sync for Counted {}
    // SAFETY: as above.
    unsafe impl Send for Counted {}

    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        Loom::workers();
        let shared = Arc::new(Counted {
            database: Database::new(Variants::each()[0], 1),
            counters: CommitCounters::new(1),
            next: <Loom as Machine>::U32::new(0),
            status: <Loom as Machine>::Data::new(false),
        });
        let session = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.next.fetch_add(1, Relaxed);
                shared.counters.begin(ProcId(0));
                shared.database.log.insert_any(RecordKind::COMMIT, FIRST, &[]);
                shared.status.with_mut(|status| {
                    // SAFETY: nothing else writes it, and loom fails the test if it is read meanwhile.
                    unsafe { *status = true }
                });
                shared.counters.end(ProcId(0));
            })
        };
        let (redo, next) = shared
            .counters
            .begin_checkpoint(|| shared.database.log.move_redo(), || shared.next.load(Relaxed));
        if redo > START {
            assert_eq!(
                next, 1,
                "a number in the log before the checkpoint is handed out again"
            );
            // SAFETY: the session is past its write, which is what the test checks.
            assert!(shared.status.with(|status| unsafe { *status }));
        }
        session.join().unwrap();
    });
}
