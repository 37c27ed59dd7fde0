//! A group: of the sessions that end at once, one takes all of them out of the array.
//!
//! # Invariant
//! A session of a group leaves the array between its call and its return, at the hands of the session that leads the
//! group, under ProcArray exclusive; or it counts as waiting behind a commit that is not ready (`commit_order`). So rule R2
//! of the array holds as with the baseline.
//!
//! # Steps
//! 1. *Conditional exclusive*: got it → leave, release, return. A session that meets no other takes this path alone.
//! 2. Otherwise *join the group* ([`Group`], which has the protocol and its orderings). A session needs no request:
//!    its slot in the array says what it runs.
//! 3. *The first leads*: acquires the latch, takes the list, ends every member as it would end itself, releases the latch,
//!    and then wakes. Commits leave in the order of their records, whatever that of the list.
//! 4. *The others follow*: asleep under the wait event `ProcArrayGroupUpdate` until they have left.
//!
//! A conditional acquire comes first, because with the latch free there is nothing to share, and joining costs two RMWs
//! more.
//!
//! # Linearization
//! All members leave at the leader's release, together: a snapshot taken under the latch has all of them finished or
//! none. One taken without the latch (`snapshot = csn`) has them finished in the order in which the leader removes
//! them. S2 holds either way: to all others, no member has ended before another one.
//!
//! # Orderings
//! A member's status is in the commit log before it joins. The leader acquires that with the list, and releases it
//! with the latch: a session that no longer finds the member in the array under that latch sees its status. `xid_of`
//! reads without the latch, by an Acquire of the word that the leader wrote by a Release. What the session does after
//! its return, such as the fence of `LockManager::wake_waiters`, comes after the leader's writes, because waking is a
//! Release and returning an Acquire.
//!
//! # Cost
//! One session alone: the baseline's. n sessions at once: one exclusive acquire instead of n, one hand-over of the
//! latch instead of n, and n - 1 wake-ups, of which none is under the latch and no session pays for more than two. A
//! follower is woken once, when it has left; with the baseline a waiter may be woken, find the latch taken, and sleep
//! again. 128 bytes a session.
//!
//! Origin: PostgreSQL 9.6's ProcArrayGroupClearXid (Amit Kapila, 2015). The tree of wake-ups is ours.

use clearway_machine::{Machine, WaitEvent};

use super::Leaving;
use crate::ProcId;
use crate::group::{Group, Joined};

/// The group that gathers. A session's number in it is that of its slot.
#[derive(Debug)]
pub(crate) struct Clearing<M: Machine>(Group<M>);

impl<M: Machine> super::Clear<M> for Clearing<M> {
    fn new(capacity: u32) -> Self {
        Self(Group::new(capacity, WaitEvent::ProcArrayGroup, || ()))
    }

    #[inline]
    fn clear(&self, array: Leaving<'_, M>, proc: ProcId, durable: u64) {
        match array.try_exclusive() {
            Some(exclusive) => exclusive.end(proc, durable),
            None => self.clear_together(array, proc, durable),
        }
    }
}

impl<M: Machine> Clearing<M> {
    #[cold]
    fn clear_together(&self, array: Leaving<'_, M>, proc: ProcId, durable: u64) {
        let group = &self.0;
        if group.join(proc.0, |()| true) == Joined::Follows {
            return group.follow(proc.0);
        }
        group.lead(
            proc.0,
            || array.exclusive(),
            |exclusive, member| exclusive.end(ProcId(member), durable),
        );
    }
}
