//! A request for a lock that does not sleep: for a worker that acts on the holders in its way while it waits.
//!
//! A standby's replay is such a worker: it waits for the readers of a table up to a limit, and cancels those that are left.
//! It has to *queue* meanwhile. If it only tried again and again, new readers would come in before the old ones are gone,
//! and it would never find the table free.
//!
//! The request is one of a session like any other, so the rules of the table hold, R4 with an addition: between the grant
//! and [`LockRequest::is_granted`] the lock is in the table and not yet on the session's list.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use clearway_machine::{AtomicWord, Machine, Native};

use super::{Attempt, LockManager, LockTag, NOT_WAITING};
use crate::{LockMode, ProcId};

/// A place in a lock's queue, or the lock. Dropped before it is granted, it leaves the queue.
#[derive(Debug)]
#[must_use = "dropped, it leaves the queue"]
pub struct LockRequest<'a, M: Machine = Native> {
    locks: &'a LockManager<M>,
    proc: ProcId,
    tag: LockTag,
    mode: LockMode,
    /// Counted among the strong lockers (F1).
    strong: bool,
    granted: bool,
}

impl<M: Machine> LockManager<M> {
    /// Asks for `tag` in `mode` for `proc`, which has no other request and does not hold that mode. Returns at once.
    pub fn request(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> LockRequest<'_, M> {
        let strong = self.announce_strong(tag, mode);
        let granted = match self.acquire_now(proc, tag, mode, true) {
            Attempt::Granted => true,
            Attempt::AlreadyHeld => {
                self.withdraw_strong(tag, strong);
                true
            }
            Attempt::Refused => false,
        };
        LockRequest {
            locks: self,
            proc,
            tag,
            mode,
            strong,
            granted,
        }
    }
}

impl<M: Machine> LockRequest<'_, M> {
    /// True if the lock was granted: the session has it then until it releases it.
    pub fn is_granted(&mut self) -> bool {
        if !self.granted {
            let me = self.locks.wait_of(self.proc);
            // Acquire: pairs with the Release in `grant_waiters`.
            if me.queued.load(Acquire) == NOT_WAITING {
                self.note_grant();
            }
        }
        self.granted
    }

    fn note_grant(&mut self) {
        let me = self.locks.wait_of(self.proc);
        let mut list = me.held.exclusive();
        self.locks.note(me, &mut list, self.tag, self.mode, false);
        self.granted = true;
    }

    /// The sessions that hold the lock in a mode that excludes the one asked for. There may be none although it is not
    /// granted yet: the last one is about to grant it.
    pub fn holders_in_the_way(&self) -> Vec<ProcId> {
        let partition = self.locks.partition(self.tag).exclusive();
        let Some(entry) = partition.entries.get(&self.tag) else {
            return Vec::new();
        };
        let in_the_way = entry
            .holders
            .iter()
            .filter(|holder| holder.proc != self.proc && holder.modes & self.mode.conflicts() != 0);
        in_the_way.map(|holder| holder.proc).collect()
    }

    /// True if a session in the way waits, itself or through others, for the one that asks here. Nothing is done about
    /// it.
    pub fn is_deadlocked(&self) -> bool {
        !self.granted && self.locks.is_deadlocked(self.proc)
    }
}

impl<M: Machine> Drop for LockRequest<'_, M> {
    fn drop(&mut self) {
        if self.granted {
            return;
        }
        let mut partition = self.locks.partition(self.tag).exclusive();
        // Relaxed: a grant is made under the partition's latch.
        let granted = self.locks.wait_of(self.proc).queued.load(Relaxed) == NOT_WAITING;
        if !granted {
            let behind = self.locks.leave_queue(&mut partition, self.tag, self.proc);
            drop(partition);
            self.locks.withdraw_strong(self.tag, self.strong);
            self.locks.wake_granted(behind);
        } else {
            drop(partition);
            let mut behind = Vec::new();
            let bit = self.mode.bit();
            self.locks.release_granted(self.proc, self.tag, bit, &mut behind);
            self.locks.wake_granted(behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use clearway_latch::LwLockOptions;
    use clearway_machine::Switch;

    use super::*;
    use crate::{LockWait, ProcArray, ProcArrayOptions, RelationLocksVariant, Xid};

    const TABLE: LockTag = LockTag::Relation(7);

    fn each(case: impl Fn(&LockManager, [ProcId; 3])) {
        for &variant in RelationLocksVariant::ALL {
            let array = Arc::new(ProcArray::<Native>::new(
                3,
                ProcArrayOptions::default(),
                Xid::FIRST_NORMAL,
            ));
            let procs = [(); 3].map(|()| array.attach().unwrap());
            let locks = LockManager::new(array, LwLockOptions::default(), variant, Duration::MAX);
            case(&locks, procs);
        }
    }

    #[test]
    fn a_request_waits_for_holders_and_is_before_those_that_come_later() {
        each(|locks, [replay, alice, bob]| {
            assert!(locks.try_acquire(alice, TABLE, LockMode::AccessShare));
            let mut request = locks.request(replay, TABLE, LockMode::AccessExclusive);
            assert!(!request.is_granted());
            assert_eq!(request.holders_in_the_way(), [alice]);
            assert!(!locks.try_acquire(bob, TABLE, LockMode::AccessShare), "R1");
            locks.release_all(alice);
            assert!(request.is_granted() && request.holders_in_the_way().is_empty());
            drop(request);
            assert!(locks.holds(replay, TABLE, LockMode::AccessExclusive));
            locks.release_all(replay);
            assert!(locks.try_acquire(bob, TABLE, LockMode::AccessShare));
        });
    }

    #[test]
    fn a_request_that_is_dropped_leaves_nothing_behind() {
        each(|locks, [replay, alice, bob]| {
            // In the queue, and granted without anyone having looked.
            for release in [false, true] {
                assert!(locks.try_acquire(alice, TABLE, LockMode::AccessShare));
                let request = locks.request(replay, TABLE, LockMode::AccessExclusive);
                if release {
                    locks.release_all(alice);
                }
                drop(request);
                assert!(!locks.holds(replay, TABLE, LockMode::AccessExclusive));
                assert!(locks.try_acquire(bob, TABLE, LockMode::RowExclusive));
                locks.release_all(alice);
                locks.release_all(bob);
            }
            assert!(locks.try_acquire(bob, TABLE, LockMode::AccessExclusive));
        });
    }

    /// Alice holds what is asked for and waits for what the one who asks has.
    #[test]
    fn a_circle_is_found_and_left_alone() {
        each(|locks, [replay, alice, _]| {
            let other = LockTag::Relation(8);
            assert!(locks.try_acquire(replay, other, LockMode::AccessExclusive));
            assert!(locks.try_acquire(alice, TABLE, LockMode::AccessShare));
            let mut request = locks.request(replay, TABLE, LockMode::AccessExclusive);
            assert!(!request.is_deadlocked());
            let waiting = locks.request(alice, other, LockMode::AccessShare);
            assert!(request.is_deadlocked());
            assert!(request.is_deadlocked(), "nothing was struck out");
            drop(waiting);
            locks.release_all(alice);
            assert!(request.is_granted() && !request.is_deadlocked());
            let wait = LockWait {
                timeout: Some(Duration::from_millis(1)),
                cancel: &|| false,
            };
            assert!(locks.acquire(alice, TABLE, LockMode::AccessShare, wait).is_err());
        });
    }
}
