//! Another order of the queues, instead of a victim.
//!
//! # An example
//! Alice holds `accounts` and Bob reads `history`. Each wants the other's table: what Bob holds does not keep Alice out, what
//! Alice holds keeps Bob out. Carol wants `history` for itself.
//!
//! | session | holds | queues for | waits for |
//! | --- | --- | --- | --- |
//! | Bob | `history`, AccessShare | `accounts`, ShareUpdateExclusive | Alice, which holds it |
//! | Carol | | `history`, AccessExclusive | Bob, which holds it |
//! | Alice | `accounts`, ShareUpdateExclusive | `history`, ShareUpdateExclusive | Carol, which is before Alice in the queue, and holds nothing |
//!
//! Alice waits for Carol only because Carol came earlier. With Alice before Carol there is no cycle: Alice has `history` at
//! once, ends, then Bob, then Carol.
//!
//! # Invariant
//! A wait for a session that holds a lock or runs a transaction is *hard*, one for a session that is before the waiter in a
//! queue and does not hold the lock in a mode that excludes it is *soft*. Only the order of a queue makes a wait soft, and no
//! promise rests on that order but fairness.
//!
//! - A1: an order is taken only if no cycle is left through the searcher, nor through a session that was moved. So
//!   rearranging completes no cycle: what it adds are waits for sessions that were moved.
//! - A2: if no order is found, the queues are as they were before the search.
//! - A3: sessions that the new order lets in are granted their locks before the latches are released (R2 of the lock table),
//!   and woken after that (R6).
//!
//! # Steps
//! 1. Of the cycle found, the soft waits are tried in turn, from the one that is farthest from the searcher.
//! 2. The waiter of one is put directly before the session that it waits for: it has *passed* that session.
//! 3. If that puts a session behind one that it has passed in an earlier step, the order is not tried.
//! 4. If A1 holds, that is the order. Otherwise the next cycle is treated in the same way, in this order.
//! 5. If that finds nothing, the waiter goes back to its place, and the next soft wait is tried.
//!
//! Step 3 makes it end, since there are so many pairs of sessions. It ends after [`ORDERS_MAX`] orders in any case: then it
//! is as if none had been found.
//!
//! # Why no cycle is missed (R3 of [`deadlock`](super))
//! A session that is moved before another gets a wait that began without that edge. The edge is made by the searcher, which
//! executes a SeqCst fence when it has all latches. Take the fences of the waits of a cycle, and those of the searches that
//! have moved a session of it, and let the last one be
//! - a search's: what it reads after its fence shows the other waits, so it finds the cycle, and A1 refuses the order;
//! - a wait's: then no search has moved a session since that wait began, and R3 holds as it is argued there. That wait's
//!   own search comes later, and takes the latches after those that moved sessions.
//!
//! # Costs
//! A search more for each order, and for each session that is moved in it, under all latches. No session that is in no
//! cycle with a soft wait pays anything.
//!
//! Origin: PostgreSQL's deadlock checker, which sorts the queues by the waits that it has turned round. New is that a session
//! is moved by itself, and that the result is tested by the search for cycles.

use std::sync::atomic::Ordering::SeqCst;

use clearway_machine::Machine;

use super::{Link, Search, Wanted};
use crate::{LockTag, ProcId};

/// Orders that one search tries.
const ORDERS_MAX: u32 = 64;

/// A session put before another, and its place until then.
#[derive(Debug, Clone, Copy)]
struct Move {
    tag: LockTag,
    waiter: ProcId,
    passed: ProcId,
    from: usize,
    to: usize,
}

/// An order that is tried.
#[derive(Debug, Default)]
struct Order {
    moves: Vec<Move>,
    tried: u32,
}

impl<M: Machine> Search<'_, M> {
    /// Dissolves a cycle through `searcher` by another order of queues: the locks whose queues have changed. `None`: no order
    /// was found, and none has changed.
    pub(super) fn rearrange(&mut self, searcher: ProcId, cycle: &[Link]) -> Option<Vec<LockTag>> {
        let mut order = Order::default();
        let is_found = self.dissolve(searcher, cycle, &mut order);
        debug_assert_eq!(is_found, !order.moves.is_empty(), "A2");
        is_found.then(|| order.moves.iter().map(|moved| moved.tag).collect())
    }

    /// Steps 1 to 5. It calls itself once for each session that is moved, of which there are at most [`ORDERS_MAX`].
    fn dissolve(&mut self, searcher: ProcId, cycle: &[Link], order: &mut Order) -> bool {
        for link in cycle.iter().rev() {
            let Wanted::Lock(tag, _) = link.wanted else {
                continue;
            };
            if order.tried == ORDERS_MAX || !self.is_soft(link) {
                continue;
            }
            let Some(moved) = self.pass(tag, link.waiter, link.blocker) else {
                continue;
            };
            order.moves.push(moved);
            order.tried += 1;
            if order.moves.iter().all(|moved| self.is_kept(moved)) {
                match self.cycle_that_is_left(searcher, order) {
                    None => return true,
                    Some(next) if self.dissolve(searcher, &next, order) => return true,
                    Some(_) => {}
                }
            }
            order.moves.pop();
            self.put_back(moved);
        }
        false
    }

    /// A1.
    fn cycle_that_is_left(&mut self, searcher: ProcId, order: &Order) -> Option<Vec<Link>> {
        let moved = order.moves.iter().map(|moved| moved.waiter);
        std::iter::once(searcher)
            .chain(moved)
            .find_map(|proc| self.cycle_through(proc))
    }

    /// True for a wait that the order of a queue makes alone.
    fn is_soft(&self, link: &Link) -> bool {
        let Wanted::Lock(tag, mode) = link.wanted else {
            return false;
        };
        let mut holders = self.entry(tag).into_iter().flat_map(|entry| &entry.holders);
        holders.all(|holder| holder.proc != link.blocker || holder.modes & mode.conflicts() == 0)
    }

    /// The places of two sessions in a queue.
    fn places(&self, tag: LockTag, sessions: [ProcId; 2]) -> [Option<usize>; 2] {
        sessions.map(|proc| {
            let queue = &self.entry(tag)?.queue;
            queue.iter().position(|waiter| waiter.proc == proc)
        })
    }

    /// Step 3: the session is still before the one that it has passed.
    fn is_kept(&self, moved: &Move) -> bool {
        let [waiter, passed] = self.places(moved.tag, [moved.waiter, moved.passed]);
        waiter < passed
    }

    /// Step 2.
    fn pass(&mut self, tag: LockTag, waiter: ProcId, passed: ProcId) -> Option<Move> {
        let [Some(from), Some(to)] = self.places(tag, [waiter, passed]) else {
            return None;
        };
        debug_assert!(to < from, "a session waits for one behind it in a queue");
        let moved = Move {
            tag,
            waiter,
            passed,
            from,
            to,
        };
        self.shift(tag, from, to);
        Some(moved)
    }

    /// Step 5.
    fn put_back(&mut self, moved: Move) {
        self.shift(moved.tag, moved.to, moved.from);
    }

    fn shift(&mut self, tag: LockTag, from: usize, to: usize) {
        let partition = self.locks.partition_number(tag);
        if let Some(entry) = self.partitions[partition].entries.get_mut(&tag)
            && let Some(waiter) = entry.queue.remove(from)
        {
            entry.queue.insert(to, waiter);
        }
    }

    /// A3: grants what the new order lets in; the sessions to be woken.
    pub(super) fn grant_anew(&mut self, changed: &[LockTag]) -> Vec<ProcId> {
        let mut granted = Vec::new();
        for tag in changed {
            let partition = self.locks.partition_number(*tag);
            if let Some(entry) = self.partitions[partition].entries.get_mut(tag) {
                self.locks.grant_waiters(entry, &mut granted);
            }
        }
        granted
    }

    /// The fence of the argument above. The caller has just taken the latches.
    pub(super) fn fence() {
        M::fence(SeqCst);
    }
}
