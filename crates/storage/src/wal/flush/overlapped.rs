//! Overlapped flush: several syncs are in flight at once, so that the device never waits for a leader to wake up.
//!
//! Invariant: each worker that waits is in the open group or in one that is being flushed. The open group has a leader
//! if it has a member, and the leader is on its way to flush for the group. Nothing that can fail happens between
//! closing a group and waking it.
//!
//! # Why
//! With one sync at a time the device is idle from the end of a sync until the next leader has been woken, has got a
//! CPU, and has written. On a machine whose CPUs are busy with the transactions that the sync has just released, that
//! takes as long as a sync. Here the next sync is in flight already. And a device may do several syncs in less time
//! than one after the other.
//!
//! # State
//! | word | is |
//! | --- | --- |
//! | `open` | above, the number of the open group; below, how many workers have joined it |
//! | `furthest` | the furthest target of any worker that has ever joined |
//! | `lanes` | a bit for each lane of the device that has a sync in flight; [`WANTED`] while a leader sleeps for one |
//! | `ended` | for each group, by its number modulo [`GROUP_WORDS`]: how many groups have ended there |
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. Raise `furthest` to the target, and join the open group by one add.
//! 3. Not the first in it: sleep on the group's word in `ended` until everything before the target is durable, under
//!    the wait event `WALFlushGroup`.
//! 4. The first leads. It takes a lane, and sleeps if none is free. Then it takes the write latch, and only then closes
//!    the group: those who come later join the next one.
//! 5. Write up to `furthest`, and further if more is complete. Release the write latch.
//! 6. Sync in the lane, while the next leaders write and sync in the others. Publish `durable` unless it is
//!    further already. Give the lane back.
//! 7. Count the group as ended, and wake all that sleep on its word by one call.
//!
//! # Why a sleeper asks for `durable`, and not whether its group has ended
//! Syncs end in any order, and words are used again: while one lane's sync takes long, the others may end so many
//! groups that the same word comes round. A worker that took this for the end of its own group would acknowledge a
//! commit that is on its way to the disk. `durable` cannot be mistaken; the word is only what to sleep on.
//!
//! # How the rules are kept
//! - R3: write is called under the write latch only.
//! - R5: a sync begins after the write of everything before its target, and covers everything from `durable` on, as
//!   read before it began; so also what a sync in another lane is still busy with. Each lane has its own handle of
//!   the device, which reports a failure that concerns it even if another lane has been notified of it.
//! - R2: step 1 comes before joining. A leader waits for a lane and the write latch, and their holders for nothing but
//!   the device.
//! - R1: a worker raises `furthest` by a Release, after it has seen the bytes before its target, or it has found there
//!   a target whose worker has; the leader's load is an Acquire.
//! - No leader misses a member's target: the member raises `furthest` before its add (Release), and the group is closed
//!   by an RMW of the same word (Acquire).
//! - No lost wake-up: `durable` is published before the word of the group changes (Release). A worker reads the word
//!   (Acquire), then `durable`, and sleeps only while the word is what it read.
//! - At most one leader sleeps for a lane: the next group has no member before this leader has closed its own.
//!
//! # Cost
//! Two RMWs to join, one call of the kernel for all wake-ups of a group. More syncs, each for fewer commits. With one
//! worker, four RMWs more than `single`.
//!
//! Origin: ours; file systems and devices have had several flushes in flight for long.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::LwLock;
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use super::{Flush, FlushOptions, Flushed, WAL_WRITE, sleep_before_flush};
use crate::wal::{LogDevice, SYNC_LANES};

/// In `lanes`: a leader sleeps until one is free.
const WANTED: u32 = 1 << 31;

/// Words that groups sleep on. [`SYNC_LANES`] groups are being flushed and one is open, so a sleeper is woken for
/// another group only if a sync takes longer than some others together.
const GROUP_WORDS: usize = 8;

const _: () = assert!(SYNC_LANES < 31, "a bit for each lane beside WANTED");

pub(in crate::wal) struct Flusher<M: Machine> {
    open: Padded<M::U64>,
    furthest: Padded<M::U64>,
    lanes: Padded<M::U32>,
    ended: [Padded<M::U32>; GROUP_WORDS],
    write_latch: Padded<LwLock<M>>,
    commit_delay: Duration,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(options: &FlushOptions) -> Self {
        Self {
            open: Padded(M::U64::new(0)),
            furthest: Padded(M::U64::new(0)),
            lanes: Padded(M::U32::new(0)),
            ended: std::array::from_fn(|_| Padded(M::U32::new(0))),
            write_latch: Padded(LwLock::new(&WAL_WRITE, options.lwlock)),
            commit_delay: options.commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        let (group, joined_before) = self.join(upto);
        if joined_before == 0 {
            self.lead(log);
        } else {
            self.sleep_until_durable(log, group, upto);
        }
        debug_assert!(log.output.durable() >= upto);
    }
}

/// The number of a group, and how many have joined it.
fn parts(open: u64) -> (u32, u32) {
    ((open >> 32) as u32, open as u32)
}

impl<M: Machine> Flusher<M> {
    /// Joins the open group; returns its number, and how many have joined it before.
    fn join(&self, upto: u64) -> (u32, u32) {
        let mut furthest = self.furthest.load(Relaxed);
        while furthest < upto {
            // Release: pairs with the Acquire in `lead`; the bytes before `upto` are visible (R1). A later raise is an
            // RMW of the same word, so an Acquire of it acquires this one too.
            match self
                .furthest
                .compare_exchange_weak(furthest, upto, Release, Relaxed)
            {
                Ok(_) => break,
                Err(found) => furthest = found,
            }
        }
        // Release: pairs with the Acquire in `close_group`; the leader finds `furthest` no nearer than here.
        parts(self.open.fetch_add(1, Release))
    }

    /// Lanes that are used. Under a checker fewer, so that few workers wait for one.
    const LANES: usize = if M::EXPLORED { 2 } else { SYNC_LANES };

    /// The word that the sleepers of a group sleep on. Under a checker all groups share one, so that sleepers are woken
    /// for other groups than theirs.
    fn word_of(&self, group: u32) -> &M::U32 {
        let words = if M::EXPLORED { 1 } else { GROUP_WORDS };
        &self.ended[group as usize % words]
    }

    /// Flushes for the open group, which the caller was the first to join.
    fn lead<D: LogDevice>(&self, log: &Flushed<'_, M, D>) {
        let lane = self.take_lane();
        let write = self.write_latch.exclusive();
        sleep_before_flush::<M>(self.commit_delay);
        let (group, members) = self.close_group();
        // Acquire: pairs with the Release in `join`.
        let furthest = self.furthest.load(Acquire);
        if furthest > log.output.durable() {
            let target = log.complete_at_least(furthest);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            drop(write);
            log.output.sync_in_lane(lane, target);
        } else {
            drop(write);
        }
        self.give_lane_back(lane);
        if members > 1 {
            let word = self.word_of(group);
            // Release: pairs with the Acquire in `sleep_until_durable`; one that sees the new count sees `durable`.
            word.fetch_add(1, Release);
            M::futex_wake(word, u32::MAX);
        }
    }

    /// Closes the open group and opens the next; returns the number of the one closed, and how many have joined it.
    fn close_group(&self) -> (u32, u32) {
        let mut open = self.open.load(Relaxed);
        loop {
            let (group, _) = parts(open);
            let next = u64::from(group.wrapping_add(1)) << 32;
            // Acquire: pairs with the Release in `join`.
            match self.open.compare_exchange_weak(open, next, AcqRel, Relaxed) {
                Ok(_) => return parts(open),
                Err(found) => open = found,
            }
        }
    }

    /// Takes a lane that has no sync in flight.
    fn take_lane(&self) -> usize {
        let mut lanes = self.lanes.load(Relaxed);
        loop {
            let lane = lanes.trailing_ones() as usize;
            if lane < Self::LANES {
                // Acquire: pairs with the Release in `give_lane_back`; the lane's last sync comes first.
                match self
                    .lanes
                    .compare_exchange_weak(lanes, lanes | 1 << lane, Acquire, Relaxed)
                {
                    Ok(_) => return lane,
                    Err(found) => lanes = found,
                }
            } else if lanes & WANTED == 0 {
                if let Err(found) = self
                    .lanes
                    .compare_exchange_weak(lanes, lanes | WANTED, Relaxed, Relaxed)
                {
                    lanes = found;
                } else {
                    lanes |= WANTED;
                }
            } else {
                let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
                M::futex_wait(&self.lanes, lanes, None);
                lanes = self.lanes.load(Relaxed);
            }
        }
    }

    fn give_lane_back(&self, lane: usize) {
        // Release: pairs with the Acquire in `take_lane`.
        let before = self.lanes.fetch_and(!(1 << lane | WANTED), Release);
        if before & WANTED != 0 {
            M::futex_wake(&self.lanes, 1);
        }
    }

    /// Sleeps until everything before `upto` is durable, in a group that another worker leads.
    fn sleep_until_durable<D: LogDevice>(&self, log: &Flushed<'_, M, D>, group: u32, upto: u64) {
        let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
        let word = self.word_of(group);
        loop {
            // Acquire: pairs with the Release in `lead`.
            let ended = word.load(Acquire);
            if log.output.durable() >= upto {
                return;
            }
            M::futex_wait(word, ended, None);
        }
    }
}
