//! Ending the sessions that are in the way of replay.
//!
//! Replay has found a session whose snapshot sees what is about to be removed, or which holds a lock on a table whose
//! definition changes, and has waited for as long as it may. It calls `cancel` again and again until the session is out
//! of the way.
//!
//! | the session | what is done |
//! | --- | --- |
//! | is inside a call: runs a statement, or waits for a lock, or for its client to take rows | the statement is asked to end; it looks every few hundred rows, in each wait for a lock, and while it sends |
//! | waits for its client in a transaction, with a suspended portal or without | its transaction is ended here, in its place: the xmin and the locks are given back. The session learns of it with its next call (`session/recovery.rs`) |
//!
//! Both get 40001. Whose turn it is to touch the transaction: `txn/src/transaction_turn.rs`.
//!
//! # Rules
//! - C1: before a transaction is ended in its session's place, it is looked at again, now that it cannot change: since
//!   replay has found it, the session may have gone on to another one, which is not in the way of replay.
//! - C2: a statement is looked at again before it is asked to end, and may all the same have ended by itself. The next
//!   one of its session forgets the request when it begins. If it had begun already, it is ended although it may not be
//!   in the way: it gets an error that asks for another attempt, which succeeds. (PostgreSQL has the same.)
//! - C3: a transaction has no xid here, so its end is that of its xmin and of its locks.

use std::sync::atomic::Ordering;

use clearway_storage::standby::Conflict;
use clearway_txn::{EndAttempt, LockMode, LockTag, ProcId};

use crate::engine::Engine;
use crate::interrupt::CancelReason;

impl CancelReason {
    fn of(conflict: Conflict) -> CancelReason {
        match conflict {
            Conflict::Snapshot => CancelReason::SnapshotConflict,
            Conflict::Lock => CancelReason::LockConflict,
        }
    }
}

impl Engine {
    /// Ends what the session of `proc` does, or has begun. `awaited`: the table whose lock replay waits for.
    pub(super) fn cancel_for_replay(&self, proc: ProcId, conflict: Conflict, awaited: Option<u32>) {
        let slot = {
            let sessions = self.sessions();
            let session = sessions.values().find(|session| session.proc == proc);
            session.map(|session| std::sync::Arc::clone(&session.slot))
        };
        let Some(slot) = slot else { return };
        let reason = CancelReason::of(conflict);
        let attempt = slot.turn.try_end(reason as u32, || {
            // C1.
            if !self.stands_in_the_way(proc, conflict, awaited) {
                return false;
            }
            // C3.
            self.storage.proc_array.clear_xmin(proc);
            self.storage.locks.release_all(proc);
            true
        });
        let is_new = match attempt {
            EndAttempt::Ended => true,
            EndAttempt::Nothing => false,
            EndAttempt::SessionIsBusy if !self.stands_in_the_way(proc, conflict, awaited) => false,
            EndAttempt::SessionIsBusy => {
                let before = slot.ask_to_stop(reason);
                self.storage.locks.wake(proc);
                before != reason as u32
            }
        };
        if is_new {
            let count = match conflict {
                Conflict::Lock => 0,
                Conflict::Snapshot => 1,
            };
            self.standby.conflicts[count].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stands_in_the_way(&self, proc: ProcId, conflict: Conflict, awaited: Option<u32>) -> bool {
        match conflict {
            Conflict::Snapshot => {
                let xmin = self.storage.proc_array.xmin_of(proc);
                let cleaned = self.storage.standby().map(|standby| standby.cleaned());
                xmin.is_some_and(|xmin| cleaned.is_some_and(|cleaned| xmin <= cleaned))
            }
            Conflict::Lock => awaited.is_some_and(|oid| {
                let holds = |mode| self.storage.locks.holds(proc, LockTag::Relation(oid), mode);
                LockMode::ALL.into_iter().any(holds)
            }),
        }
    }
}
