//! The sessions that hold a lock at one moment, for a worker that waits until their transactions have ended and keeps no
//! other session from the lock meanwhile.
//!
//! Building an index beside writers is such work: it publishes a definition, and then waits until each transaction has ended
//! that may go by the definition before. Were it to queue for the lock, every later writer would queue behind it (R1 of the
//! table) until the last of the earlier ones is done.
//!
//! # Rules
//! - H1: each lock is on the list of its session, whether it is in the table too or not (`fast_path`), and the latch of that
//!   list is held when it is put there and when it is looked for here. So a session takes either its lock before the look,
//!   which finds it, or its latch after the look, and then sees all that the caller has written before.
//! - H2: a session counts the times that it has given back all of its locks, under the same latch. Another count means
//!   another transaction, though it may hold the same lock again.
//!
//! # Why each list is looked at
//! The table has those locks only that were in a strong locker's way once. A look at the table alone finds none of the
//! writers on the fast path.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::{LockManager, LockTag, ProcWait, modes_on};
use crate::{LockMode, ProcId};

/// A session's transaction, or what else it took a lock for, that held a lock when it was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    proc: ProcId,
    releases: u64,
}

impl LockHolder {
    /// The session.
    pub fn proc(self) -> ProcId {
        self.proc
    }
}

impl<M: Machine> LockManager<M> {
    /// The holders of `tag` in a mode that excludes `mode`, other than `own`.
    pub fn holders(&self, own: ProcId, tag: LockTag, mode: LockMode) -> Vec<LockHolder> {
        let sessions = self.waits.iter().enumerate();
        let holders = sessions.filter_map(|(number, wait)| {
            let proc = ProcId(number as u32);
            let releases = releases_of_holder(wait, tag, mode)?;
            (proc != own).then_some(LockHolder { proc, releases })
        });
        holders.collect()
    }

    /// The number of times that a session has given back all of its locks: another number, another transaction (H2).
    pub fn release_count(&self, proc: ProcId) -> u64 {
        // Relaxed: the caller goes by no more than the number.
        self.wait_of(proc).releases.load(Relaxed)
    }

    /// True if the holder has not ended, and still holds `tag` in a mode that excludes `mode`.
    pub fn still_holds(&self, holder: LockHolder, tag: LockTag, mode: LockMode) -> bool {
        releases_of_holder(self.wait_of(holder.proc), tag, mode) == Some(holder.releases)
    }
}

/// The count of H2, if the session holds `tag` in a mode that excludes `mode`.
fn releases_of_holder<M: Machine>(wait: &ProcWait<M>, tag: LockTag, mode: LockMode) -> Option<u64> {
    let list = wait.held.shared();
    let excludes = modes_on(&list, tag) & mode.conflicts() != 0;
    excludes.then(|| wait.releases.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use clearway_latch::LwLockOptions;
    use clearway_machine::{Native, Switch};

    use super::*;
    use crate::{ProcArray, ProcArrayOptions, RelationLocksVariant, Xid};

    const TABLE: LockTag = LockTag::Relation(7);

    #[test]
    fn holders_are_found_wherever_their_lock_is_until_they_end() {
        for &variant in RelationLocksVariant::ALL {
            let array = Arc::new(ProcArray::<Native>::new(
                4,
                ProcArrayOptions::default(),
                Xid::FIRST_NORMAL,
            ));
            let [build, alice, bob, carol] = [(); 4].map(|()| array.attach().unwrap());
            let locks = LockManager::new(array, LwLockOptions::default(), variant, Duration::MAX);
            let writers = || locks.holders(build, TABLE, LockMode::Share);
            assert!(locks.try_acquire(alice, TABLE, LockMode::RowExclusive));
            assert!(locks.try_acquire(bob, TABLE, LockMode::AccessShare));
            assert!(locks.try_acquire(build, TABLE, LockMode::ShareUpdateExclusive));
            let found = writers();
            assert_eq!(
                found.iter().map(|holder| holder.proc()).collect::<Vec<_>>(),
                [alice]
            );
            assert_eq!(locks.holders(build, TABLE, LockMode::AccessExclusive).len(), 2);
            // A strong locker that gives up leaves weak locks in the table.
            assert!(!locks.try_acquire(carol, TABLE, LockMode::Exclusive));
            assert_eq!(writers(), found, "{variant:?}");
            assert!(locks.still_holds(found[0], TABLE, LockMode::Share));
            locks.release_all(alice);
            assert!(!locks.still_holds(found[0], TABLE, LockMode::Share));
            assert!(locks.try_acquire(alice, TABLE, LockMode::RowExclusive));
            assert!(
                !locks.still_holds(found[0], TABLE, LockMode::Share),
                "H2: a transaction later"
            );
            assert_eq!(writers().len(), 1);
        }
    }
}
