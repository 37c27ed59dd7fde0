//! Where workers sleep that wait for a latch of a single word: shared buckets of wait lists.
//!
//! The latch keeps one bit, "somebody waits". The lists live in the machine's [`WaitBucket`]s, chosen by the latch's
//! address and changed only under the bucket's lock.
//!
//! # Protocol
//! *To park*: lock the bucket; under its lock look at the latch once more, and set its bit with an RMW that fails if the
//! latch has become free; go on the list; unlock; sleep. *To unpark* (whoever released and saw the bit in the value that
//! the release replaced): lock the bucket; take off the list who may run now; if nobody is left that waits for this latch,
//! clear its bit; unlock; post.
//!
//! - P1: a worker goes on the list only after its latch's bit was seen or set in a word that did not let it in. So the
//!   release that lets it in replaces a word with the bit, and locks the bucket after the worker has unlocked it.
//! - P2: the bit is cleared only under the bucket's lock, when no waiter of this latch is left. So who sees it set under that
//!   lock need not set it again.
//!
//! Origin: WebKit's ParkingLot (Filip Pizlo, 2015) and before it the kernel's futex hash.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, WaitBucket, WaitEvent, WaitScope, WorkerId};

use crate::wait_list::{NOT_WAITING, PENDING, WAITING, slot};

/// What to do with a waiter that an unpark comes across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Wake it.
    Take,
    /// Leave it asleep.
    Leave,
}

/// Locks a bucket. Held for a few dozen instructions, so polling is right; when that takes too long the holder is not
/// running, and the CPU is given away.
fn lock<M: Machine>(bucket: &WaitBucket<M>) {
    let mut polls = 0_u32;
    // Acquire: pairs with the Release in `unlock`; the list's links are visible, and so is a bit that was cleared (P2).
    while bucket
        .locked
        .compare_exchange_weak(0, 1, Acquire, Relaxed)
        .is_err()
    {
        while bucket.locked.load(Relaxed) != 0 {
            polls += 1;
            if polls.is_multiple_of(64) {
                M::yield_now();
            } else {
                M::spin_hint();
            }
        }
    }
}

fn unlock<M: Machine>(bucket: &WaitBucket<M>) {
    bucket.locked.store(0, Release);
}

fn unlink<M: Machine>(bucket: &WaitBucket<M>, number: u32) {
    let waiter = slot::<M>(number);
    let (previous, next) = (waiter.previous.load(Relaxed), waiter.next.load(Relaxed));
    match previous {
        WorkerId::NONE => bucket.head.store(next, Relaxed),
        previous => slot::<M>(previous).next.store(next, Relaxed),
    }
    match next {
        WorkerId::NONE => bucket.tail.store(previous, Relaxed),
        next => slot::<M>(next).previous.store(previous, Relaxed),
    }
}

/// Sleeps on the latch at `address` until unparked, unless `still_waits`, asked under the bucket's lock, says that there is
/// nothing to wait for; then `false` at once. `mode` is the latch's own affair. A worker that was woken in vain goes to the
/// front, so that it does not lose its turn.
pub(crate) fn park<M: Machine>(
    address: *const (),
    mode: u32,
    front: bool,
    event: WaitEvent,
    still_waits: impl FnOnce() -> bool,
) -> bool {
    let worker = M::worker();
    let bucket = M::workers().bucket(address.addr());
    let me = slot::<M>(worker.0);
    lock(bucket);
    if !still_waits() {
        unlock(bucket);
        return false;
    }
    assert_eq!(
        me.waiting.load(Relaxed),
        NOT_WAITING,
        "worker {} waits on two latches",
        worker.0
    );
    me.mode.store(mode, Relaxed);
    me.address.store(address.addr() as u64, Relaxed);
    if front {
        let next = bucket.head.load(Relaxed);
        me.previous.store(WorkerId::NONE, Relaxed);
        me.next.store(next, Relaxed);
        match next {
            WorkerId::NONE => bucket.tail.store(worker.0, Relaxed),
            next => slot::<M>(next).previous.store(worker.0, Relaxed),
        }
        bucket.head.store(worker.0, Relaxed);
    } else {
        let previous = bucket.tail.load(Relaxed);
        me.previous.store(previous, Relaxed);
        me.next.store(WorkerId::NONE, Relaxed);
        match previous {
            WorkerId::NONE => bucket.head.store(worker.0, Relaxed),
            previous => slot::<M>(previous).next.store(worker.0, Relaxed),
        }
        bucket.tail.store(worker.0, Relaxed);
    }
    me.waiting.store(WAITING, Relaxed);
    unlock(bucket);

    let _wait = WaitScope::<M>::enter(event);
    // The semaphore serves other waits too; a post that was not for this one is given back.
    let mut surplus = 0;
    loop {
        me.semaphore.wait();
        // Acquire: pairs with the Release in `unpark`.
        if me.waiting.load(Acquire) == NOT_WAITING {
            break;
        }
        surplus += 1;
    }
    for _ in 0..surplus {
        me.semaphore.post();
    }
    true
}

/// Wakes those of the latch's waiters that `pick` takes, asked from the front with each one's mode. `none_left` is called
/// under the bucket's lock if nobody is left that waits for this latch.
#[cold]
pub(crate) fn unpark<M: Machine>(
    address: *const (),
    mut pick: impl FnMut(u32) -> Pick,
    none_left: impl FnOnce(),
) {
    let bucket = M::workers().bucket(address.addr());
    let (mut first, mut last) = (WorkerId::NONE, WorkerId::NONE);
    let mut left = false;
    lock(bucket);
    let mut number = bucket.head.load(Relaxed);
    while number != WorkerId::NONE {
        let waiter = slot::<M>(number);
        let next = waiter.next.load(Relaxed);
        if waiter.address.load(Relaxed) == address.addr() as u64 {
            if pick(waiter.mode.load(Relaxed)) == Pick::Take {
                unlink(bucket, number);
                waiter.waiting.store(PENDING, Relaxed);
                waiter.next.store(WorkerId::NONE, Relaxed);
                match last {
                    WorkerId::NONE => first = number,
                    last => slot::<M>(last).next.store(number, Relaxed),
                }
                last = number;
            } else {
                left = true;
            }
        }
        number = next;
    }
    if !left {
        none_left();
    }
    unlock(bucket);
    while first != WorkerId::NONE {
        let waiter = slot::<M>(first);
        // The link is read first: once `waiting` says NOT, the worker may put itself on another list.
        first = waiter.next.load(Relaxed);
        // Release: pairs with the Acquire in `park`.
        waiter.waiting.store(NOT_WAITING, Release);
        waiter.semaphore.post();
    }
}
