//! `commit_order`: a long fork, made step by step. Alice's commit record is in front of Bob's. She waits for the disk
//! before her commit is seen, and the disk is held; he does not. Carol reads on the primary meanwhile, Dave on a standby
//! that has the log up to between the two records.
//!
//! It is one test, since it goes by what all workers of the process wait for.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::Duration;

use clearway_machine::{Machine, Native, Switch, Watchdog};
use clearway_storage::disk::HeldLog;
use clearway_storage::{
    CommitOrderVariant, CommitVariants, CommitWait, LockReleaseVariant, Publish, StandbyOptions, Storage,
    StorageOptions,
};
use clearway_txn::{ProcId, Snapshot, Xid};
use standby_copy::{Observer, Sender, copy_database};

const NEVER: Duration = Duration::from_secs(100_000);

/// The two commits.
#[derive(Debug, Clone, Copy)]
struct Story {
    lock_release: LockReleaseVariant,
    alice: CommitWait,
    bob: CommitWait,
    /// True if both have definitions.
    publish: bool,
}

impl Story {
    fn each() -> impl Iterator<Item = Self> {
        use CommitWait::{BeforeAcknowledged, BeforeSeen, Nothing};
        use LockReleaseVariant::{AfterFlush, Early};
        let waits = [
            (AfterFlush, BeforeAcknowledged, Nothing),
            (AfterFlush, BeforeSeen, Nothing),
            (Early, BeforeSeen, BeforeAcknowledged),
            (Early, BeforeSeen, Nothing),
        ];
        waits.into_iter().flat_map(|(lock_release, alice, bob)| {
            [false, true].map(|publish| Self {
                lock_release,
                alice,
                bob,
                publish,
            })
        })
    }

    fn commit(self, storage: &Storage, proc: ProcId, xid: Xid, wait: CommitWait) {
        if self.publish {
            storage
                .commit_and_publish(proc, xid, wait, Publish::new(|| ()))
                .unwrap();
        } else {
            storage.commit_and_publish(proc, xid, wait, ()).unwrap();
        }
    }
}

/// True for each of the two that a new snapshot sees: Alice's, Bob's.
fn look(storage: &Storage, reader: ProcId, [alice, bob]: [Xid; 2]) -> [bool; 2] {
    let mut snapshot = Snapshot::default();
    storage.take_snapshot(reader, &mut snapshot);
    let sees = [alice, bob].map(|xid| snapshot.sees(xid, &storage.commit_log).unwrap());
    storage.proc_array.clear_xmin(reader);
    sees
}

/// Workers that wait for the log, or for commits in front of their own.
fn waiting() -> usize {
    let events = ["CommitOrder", "WALFlushGroup", "WALSync", "WALWrite"];
    let workers = Native::workers().claimed();
    workers
        .filter(|(_, slot)| events.contains(&slot.wait_event().name()))
        .count()
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(1));
    }
}

/// Plays the story; what Carol and Dave see of Alice's commit and of Bob's.
fn play(story: Story, commit_order: CommitOrderVariant) -> [[bool; 2]; 2] {
    let directory = tempfile::tempdir().unwrap();
    let (disk, log) = HeldLog::disk();
    let options = StorageOptions {
        fsync: true,
        checkpoint_timeout: NEVER,
        wal_writer_delay: NEVER,
        running_interval: NEVER,
        commits: CommitVariants {
            lock_release: story.lock_release,
            order: commit_order,
        },
        ..chosen::small_database(8)
    };
    let primary = Storage::open_on(disk, &directory.path().join("primary"), options.clone())
        .unwrap()
        .0;
    let [alice, bob, carol] = [(); 3].map(|()| primary.proc_array.attach().unwrap());
    let copy = directory.path().join("standby");
    copy_database(&primary, &copy);
    let (standby, _) = Storage::open_standby(&copy, options, StandbyOptions::default()).unwrap();
    standby.start_replay(Arc::new(Observer::default())).unwrap();
    let dave = standby.proc_array.attach().unwrap();

    let xids @ [a, b] = [alice, bob].map(|proc| primary.assign_xid(proc).unwrap());
    let let_go = log.hold();
    let (carol_saw, between) = thread::scope(|scope| {
        scope.spawn(|| story.commit(&primary, alice, a, story.alice));
        log.wait_for_a_sync();
        let between = primary.wal.reserved();
        let bob = scope.spawn(|| story.commit(&primary, bob, b, story.bob));
        wait_until(|| primary.wal.reserved() > between);
        // He has done all that he can before the disk answers.
        wait_until(|| bob.is_finished() || waiting() == 2);
        let carol_saw = look(&primary, carol, xids);
        drop(let_go);
        (carol_saw, between)
    });
    assert_eq!(look(&primary, carol, xids), [true; 2], "{story:?}");

    primary.wal.flush(primary.wal.reserved());
    let mut sender = Sender::new(&primary, &standby);
    sender.send_up_to(between);
    assert!(
        standby
            .standby()
            .unwrap()
            .wait_replayed(between, Duration::from_secs(60))
    );
    let dave_saw = look(&standby, dave, xids);
    sender.catch_up();
    assert_eq!(look(&standby, dave, xids), [true; 2], "{story:?}");
    drop(sender);
    standby.stop_threads();
    primary.stop_threads();
    [carol_saw, dave_saw]
}

/// Mutation that it should catch: `commit_order = log` runs what `unordered` does (`mutations/commit.toml`).
#[test]
fn a_long_fork_is_made_by_unordered_commits_alone() {
    let _watchdog = Watchdog::over_test();
    for story in Story::each() {
        for &commit_order in CommitOrderVariant::ALL {
            let [carol, dave] = play(story, commit_order);
            assert_eq!(dave, [true, false], "the log, up to between the two");
            match commit_order {
                CommitOrderVariant::Unordered => {
                    assert_eq!(carol, [false, true], "{story:?}: no order explains both");
                }
                CommitOrderVariant::Log => assert_eq!(carol, [false; 2], "{story:?}"),
            }
        }
    }
}
