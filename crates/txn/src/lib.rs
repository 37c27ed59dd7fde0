//! Transactions without pages: which of them run, what each snapshot sees, how they ended, and which waits for which.
//!
//! | module | holds |
//! | --- | --- |
//! | `xid` | transaction ids |
//! | `snapshot` | which transactions a statement regards as finished; a variant a file |
//! | `session_array` | the words of the array of running transactions; handing out xids; the horizon; the latches |
//! | `proc_array` | that array, with its snapshots, and the way in which transactions leave it |
//! | `proc_clear` | how a transaction leaves that array; a variant a file |
//! | `group` | workers of which one takes the same step for all |
//! | `commit_order` | the order in which commits leave it: that of their records in the log |
//! | `commit_log` | two bits a transaction: in progress, committed, aborted, sub-committed; a variant a file |
//! | `cleanup_horizon` | up to where a standby's replay cleans up, beside its snapshots |
//! | `known_xids` | which of the primary's transactions run, as a standby's replay sees it; a variant a file |
//! | `final_state` | the states of a transaction, and the state of one that has ended |
//! | `transaction_state` | the state of a transaction now |
//! | `lock_mode` | the eight lock modes and their conflicts |
//! | `lock_table` | relation and tuple locks, held to the end of a transaction |
//! | `row_lock_mode` | the four strengths of row locks and their conflicts |
//! | `row_holders` | the transactions that share rows |
//! | `serializable` | serializable snapshot isolation: marks of reads and writes, conflicts, the check before a commit |
//! | `notifications` | what committed transactions tell the sessions that listen, in the order of commits |
//! | `transaction_wait` | waiting for the end of another transaction |
//! | `deadlock` | finding cycles among all of these waits |
//!
//! The crate knows nothing of pages and files: the commit log reads and writes through a [`StatusDevice`].
//!
//! # Rules for callers
//! 1. A transaction ends in this order: its record in the log; `CommitLog::set`; `LockManager::end_transaction`, which
//!    takes it out of the array, releases its locks and wakes the sessions that wait for it.
//!    `storage/src/commit/mod.rs` has the whole order and why no two steps can be swapped. Others look in the opposite
//!    order: first whether it runs, then how it ended. Asked the other way round, it may end in between and seem lost.
//! 2. A transaction that is not running and has no status was cut off by a crash: it counts as aborted.
//! 3. An xid reaches a page only after `assign_xid` has returned; so a session that meets it there finds it in the
//!    array or ended.
//! 4. The xmin of a session's oldest snapshot holds back the horizon until `clear_xmin` or `end`. Call `clear_xmin` as
//!    soon as no snapshot is in use, or vacuum stands still.
//! 5. A snapshot lists its own session's xid among the running ones: look for your own xid first.
//! 6. A `ProcId` is used by one thread at a time. Other threads may only `wake` it and read `xid_of`, `xmin_of`,
//!    `transaction_waited_for`; or, where sessions take turns ([`TransactionTurn`]), end a transaction in a session's place.
//! 7. No latch is held while waiting for a lock or a transaction: a lock's holder may need that latch to get to its
//!    end.
//! 8. Any wait can end with `Deadlock`, `Cancelled` or `Timeout`. The session then holds what it held before, and must
//!    roll back to let the others of the cycle go on.
//! 9. Latches are taken in ascending rank: NotifyQueue 180, HeldLocks 190, LockManager 200, HeldRows 260, RowHolders 262,
//!    RelationHolders 264, SerialGraph 266, SerialMarks 268, ProcSlots 290, XidGen 300, ProcArray 310,
//!    KnownXids 315, OlderCommitNumbers 320, CommitLogIo 390, CommitLog 400. `StatusDevice` is called under CommitLogIo and may take
//!    the log's latches.
//!
//! The rules inside each algorithm (R1, R2, …) are at the top of its module.
//!
//! # Running transactions and snapshots
//! Alice and Bob each begin a transaction; Bob's commits before Carol takes a snapshot, and Alice's after.
//!
//! ```
//! use clearway_latch::LwLockVariant;
//! use clearway_machine::Native;
//! use clearway_txn::{CommitLog, NoPages, ProcArray, ProcArrayOptions, Snapshot, Status, Xid};
//!
//! // Room for eight sessions. The commit log has no pages: a crash forgets it.
//! let array = ProcArray::<Native>::new(8, ProcArrayOptions::default(), Xid(100));
//! let ended = CommitLog::<Native, NoPages>::new(NoPages, LwLockVariant::default());
//! let [alice, bob, carol] = [(); 3].map(|()| array.attach().unwrap());
//! let (a, b) = (array.assign_xid(alice), array.assign_xid(bob));
//!
//! ended.set(b, Status::Committed, 0)?;
//! array.end(bob, Some(b));
//! let mut snapshot = Snapshot::default();
//! array.snapshot(carol, &mut snapshot);
//! ended.set(a, Status::Committed, 0)?;
//! array.end(alice, Some(a));
//!
//! assert!(snapshot.sees(b, &ended)?);
//! assert!(!snapshot.sees(a, &ended)?, "it ran when the snapshot was taken");
//! // Nothing that the snapshot does not see as ended may be removed, until Carol has done with it.
//! assert_eq!(array.horizon(), a);
//! array.clear_xmin(carol);
//! assert!(array.horizon() > b);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Locks on objects of your own
//! Alice has bucket 7, and Bob waits for it: both [`LockKind`] and the wait have the name that the program gave.
//!
//! ```
//! use std::sync::Arc;
//!
//! use clearway_machine::Native;
//! use clearway_txn::{
//!     Asked, LockKind, LockManager, LockMode, LockOptions, LockTag, LockWait, ProcArray, ProcArrayOptions, Xid,
//! };
//!
//! let array = Arc::new(ProcArray::<Native>::new(8, ProcArrayOptions::default(), Xid(100)));
//! let locks = LockManager::with_options(Arc::clone(&array), LockOptions::default());
//! let [alice, bob] = [(); 2].map(|()| array.attach().unwrap());
//! let bucket = LockTag::own(LockKind::named("bucket").expect("one of 32 is free"), 7);
//!
//! assert!(locks.try_acquire(alice, bucket, LockMode::Exclusive));
//! let Asked::Queued(request) = locks.ask(bob, bucket, LockMode::Share) else {
//!     panic!("Alice has it");
//! };
//! let waits: Vec<_> = locks.listed().into_iter().filter(|lock| !lock.granted).collect();
//! assert_eq!((waits[0].proc, waits[0].tag.to_string()), (bob, "bucket 7".to_owned()));
//! locks.release_all(alice);
//! locks.wait_queued(request, LockWait::FOREVER)?;
//! # Ok::<(), clearway_txn::LockError>(())
//! ```
//!
//! # Known xids
//! A standby learns from the log which of the primary's transactions run: from a record of all, and from each record of
//! an xid that is new.
//!
//! ```
//! use clearway_txn::{KnownXids, KnownXidsError, KnownXidsOptions, RunningTransactions, RunningXids, Xid};
//!
//! let known: KnownXids = KnownXids::new(KnownXidsOptions::for_sessions(8));
//! let mut replay = known.replay().expect("one worker replays");
//! replay.apply(&RunningTransactions {
//!     next: Xid(103),
//!     oldest_running: Xid(101),
//!     newest_ended: Xid(102),
//!     running: &[Xid(101)],
//!     overflowed: false,
//!     prepared: &[],
//! })?;
//! replay.add(Xid(103), Xid(104))?;
//! replay.remove(Xid(103));
//!
//! let mut running = RunningXids::default();
//! known.snapshot(&mut running)?;
//! assert!(running.is_running(Xid(101)) && running.is_running(Xid(104)));
//! assert!(!running.is_running(Xid(102)) && !running.is_running(Xid(103)));
//! # Ok::<(), KnownXidsError>(())
//! ```

mod cleanup_horizon;
mod commit_log;
mod commit_order;
mod deadlock;
mod final_state;
mod group;
mod known_xids;
mod lock_mode;
mod lock_table;
mod no_pages;
mod notifications;
mod proc_array;
mod proc_clear;
mod proc_id;
mod row_holders;
mod row_lock_mode;
mod serializable;
mod session_array;
mod snapshot;
mod transaction_state;
mod transaction_turn;
mod transaction_wait;
mod xid;

pub use cleanup_horizon::CleanedUp;
pub use commit_log::{
    COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, CommitLogVariant, Status,
    StatusDevice, XID_LIMIT, XIDS_PER_PAGE,
};
pub use final_state::{TransactionState, final_state};
pub use known_xids::{
    KnownXids, KnownXidsCompactionVariant, KnownXidsError, KnownXidsOptions, KnownXidsState,
    KnownXidsVariant, ReplayedXids, RunningTransactions, RunningXids,
};
pub use lock_mode::LockMode;
pub use lock_table::{
    Asked, DeadlockWait, ListedLock, LockError, LockHolder, LockKind, LockManager, LockOptions, LockQueue,
    LockRequest, LockTag, LockWait, QueuedLock, RelationLocksVariant, WaitTarget,
};
pub use no_pages::NoPages;
pub use notifications::{
    Announcement, Listener, Notification, NotificationBatch, NotificationQueue, NotificationQueueFull, Wake,
};
pub use proc_array::{ProcArray, ProcArrayOptions};
pub use proc_clear::ProcClearVariant;
pub use proc_id::ProcId;
pub use row_holders::{InTheWay, ROWS_MAX, RowHolders, RowLocksVariant, RowMark, RowPlace};
pub use row_lock_mode::RowLockMode;
pub use serializable::{
    ListedMark, MarkedObject, MarkedRow, SerialId, SerialTransaction, Serializable, SerializableOptions,
    SerializationFailure,
};
pub use session_array::{PROC_ARRAY_LATCH_TIME, ProcArrayFull, ProcArrayLatchVariant, SessionArray};
pub use snapshot::{Snapshot, SnapshotVariant};
pub use transaction_state::transaction_state;
pub use transaction_turn::{EndAttempt, TransactionTurn};
pub use xid::Xid;
