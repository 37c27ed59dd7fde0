//! The fast path for weak relation locks: `relation_locks = fast-path`.
//!
//! Every statement locks its tables in a weak mode, and weak modes (AccessShare, RowShare, RowExclusive) never exclude
//! each other. In the shared table all of them meet at one latch and one entry for nothing. So a weak relation lock is
//! written on the session's own list and nowhere else, as long as no session wants that relation in a strong mode
//! (Share and upwards). A strong locker announces itself first, then moves the weak locks of all sessions on the
//! relation into the table, and then queues there like any other.
//!
//! # Rules
//! - F1: a session that holds or queues for a strong mode of a relation is counted in `StrongLockers`, from before it
//!   moves the first lock until after its own is gone from the table.
//! - F2: a session's modes on one relation are all on the fast path or all in the table. A session that needs the table
//!   for one takes the others along.
//! - F3: a lock is put on the fast path, and moved off it, under the latch of the session's list; put there only while
//!   the count is zero.
//!
//! # Why no conflict is missed
//! Alice takes the lock weakly, Bob strongly. Both take the latch of Alice's list: Alice to read the count and write
//! her lock, Bob, who is counted by then, to look for her lock. If Alice is first, Bob finds the lock and moves it. If
//! Bob is first, the latch makes his count visible to Alice, and she goes to the table, where he is or will be. The
//! simpler order, to look at the lists first and count second, lets Alice slip in between.
//!
//! ShareUpdateExclusive (VACUUM) excludes no weak mode, so it is neither weak nor strong: it goes to the table without
//! disturbing anyone.
//!
//! # Costs
//! A weak lock: the latch of the session's own list and one load of a count that is written only by strong lockers. A
//! strong lock: the latch of every session's list. Two relations may share a count, which costs the weak lockers of the
//! one a trip to the table while the other is locked strongly.
//!
//! # What it does not do
//! There is no limit of slots and so no groups of them: the list is searched from its beginning, as it is without the
//! fast path.
//!
//! Origin: PostgreSQL's fast-path locking (lmgr/README); the list in place of its 16 slots is ours.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

use super::entry::LockEntry;
use super::{HeldLock, LockManager, LockTag, RelationLocksVariant};
use crate::{LockMode, ProcId};

/// Strong lockers, and sessions that queue to be one, by a hash of the relation.
#[derive(Debug)]
pub(super) struct StrongLockers<M: Machine> {
    counts: Box<[M::U32]>,
}

impl<M: Machine> StrongLockers<M> {
    pub(super) fn new() -> Self {
        let counts = if M::EXPLORED { 1 } else { 1024 };
        Self {
            counts: (0..counts).map(|_| M::U32::new(0)).collect(),
        }
    }

    #[inline]
    fn of(&self, rel: u32) -> &M::U32 {
        &self.counts[rel as usize % self.counts.len()]
    }
}

impl HeldLock {
    /// F2: from the list to the table. There is no strong holder: it would have moved the lock.
    pub(super) fn move_to(&mut self, entry: &mut LockEntry, proc: ProcId) {
        debug_assert!(self.fast, "F2: what is in the table stays there");
        let mut held = 0;
        for mode in LockMode::ALL {
            if self.modes & mode.bit() != 0 {
                debug_assert!(
                    entry.admits(proc, mode),
                    "F1: a strong holder left a weak lock on a list"
                );
                entry.grant(proc, mode, held);
                held |= mode.bit();
            }
        }
        self.fast = false;
    }
}

impl<M: Machine> LockManager<M> {
    /// True if a lock may stay on the list of the session, whose latch the caller holds.
    #[inline]
    pub(super) fn may_go_fast(&self, tag: LockTag, mode: LockMode) -> bool {
        match (self.relation_locks, tag) {
            // Acquire: pairs with the Release in `strong_released`. A worker that comes after a strong locker sees its
            // work.
            (RelationLocksVariant::FastPath, LockTag::Relation(rel)) => {
                mode.is_weak() && self.strong_lockers.of(rel).load(Acquire) == 0
            }
            _ => false,
        }
    }

    /// Before a strong mode is asked for: F1, and the weak locks of all sessions into the table. Says whether that was
    /// so.
    #[inline]
    pub(super) fn announce_strong(&self, tag: LockTag, mode: LockMode) -> bool {
        match (self.relation_locks, tag) {
            (RelationLocksVariant::FastPath, LockTag::Relation(rel)) if mode.is_strong() => {
                self.move_weak_locks(rel);
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn move_weak_locks(&self, rel: u32) {
        let tag = LockTag::Relation(rel);
        // Relaxed: the latches below make it visible to each session that must see it.
        self.strong_lockers.of(rel).fetch_add(1, Relaxed);
        for (proc, wait) in self.waits.iter().enumerate() {
            let mut list = wait.held.exclusive();
            if let Some(lock) = list.iter_mut().find(|lock| lock.tag == tag && lock.fast) {
                lock.move_to(self.partition(tag).exclusive().entry(tag), ProcId(proc as u32));
            }
        }
    }

    /// A strong mode was asked for in vain, or held already.
    pub(super) fn withdraw_strong(&self, tag: LockTag, announced: bool) {
        if let (true, LockTag::Relation(rel)) = (announced, tag) {
            self.strong_lockers.of(rel).fetch_sub(1, Relaxed);
        }
    }

    /// After `modes` have left the table.
    #[inline]
    pub(super) fn strong_released(&self, tag: LockTag, modes: u8) {
        if let (RelationLocksVariant::FastPath, LockTag::Relation(rel)) = (self.relation_locks, tag) {
            let strong = (modes & LockMode::STRONG).count_ones();
            if strong != 0 {
                // Release: pairs with the Acquire in `may_go_fast`.
                let before = self.strong_lockers.of(rel).fetch_sub(strong, Release);
                debug_assert!(before >= strong, "F1: a strong locker was not counted");
            }
        }
    }
}
