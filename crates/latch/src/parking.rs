//! Waiting for a latch that has no room for a list of its own: shared buckets of sleeping workers.
//!
//! The latch keeps one bit, "workers are parked". The queues live in the machine's [`WaitBucket`]s, chosen by
//! the latch's address and changed only under the bucket's lock.
//!
//! # Protocol
//! - *To park*: lock the bucket; look at the latch once more, and set its bit with an RMW that fails if the
//!   latch has become free; join the queue; unlock; sleep.
//! - *To unpark*, for a release that saw the bit in the word that it replaced: lock the bucket; take off the
//!   queue the workers that may run now; if no worker that waits for this latch is left, clear the latch's
//!   bit; unlock; post.
//!
//! # Rules
//! - P1: a worker joins a queue only after its latch's bit was seen or set in a word that refused it. So the
//!   release that admits the worker replaces a word with the bit, and locks the bucket after the worker has
//!   unlocked it.
//! - P2: the bit is cleared only under the bucket's lock, when no waiter of this latch is left. So a worker
//!   that sees it set under that lock need not set it again.
//!
//! # The bucket's lock
//! It is held for a few dozen instructions, so a worker polls for it. After [`LOOKS`] looks the holder is likely not
//! running, and the worker yields its CPU, once. If it still finds the lock held, too many want it: each look takes the
//! line from the holder, which then needs it longer, and more come. So from then on the worker sleeps for [`PAUSE`] after
//! each [`LOOKS`] looks. With 288 workers on four sockets this doubles what `HybridLatch` does
//! (`docs/mechanisms/hybrid.md`); two CPUs hardly ever come to it.
//!
//! Origin: WebKit's ParkingLot (Filip Pizlo, 2015) and before it the kernel's futex hash.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;

use clearway_machine::{AtomicWord, Machine, Picked, WaitBucket, WaitEvent, WaitQueue, WaitScope};

/// Looks at a bucket's lock before the caller gives its CPU away.
const LOOKS: u32 = 64;

/// The sleep of a worker that has yielded in vain.
const PAUSE: Duration = Duration::from_micros(100);

/// Locks a bucket.
fn lock<M: Machine>(bucket: &WaitBucket<M>) {
    let mut polls = 0_u32;
    // Acquire: pairs with the Release in `unlock`; the queue's links are visible, and so is a bit that was
    // cleared (P2).
    while bucket
        .locked
        .compare_exchange_weak(0, 1, Acquire, Relaxed)
        .is_err()
    {
        while bucket.locked.load(Relaxed) != 0 {
            polls += 1;
            if polls == LOOKS {
                M::yield_now();
            } else if polls.is_multiple_of(LOOKS) {
                let _wait = WaitScope::<M>::enter(WaitEvent::SpinDelay);
                M::sleep(PAUSE);
            } else {
                M::spin_hint();
            }
        }
    }
}

fn unlock<M: Machine>(bucket: &WaitBucket<M>) {
    bucket.locked.store(0, Release);
}

/// Sleeps on the latch at `address` until unparked. Returns `false` at once if `must_wait`, called under the
/// bucket's lock, says that there is nothing to wait for. `mode` is for the latch. A worker that was woken in
/// vain parks at the `front`, so that it does not lose its turn.
pub(crate) fn park<M: Machine>(
    address: *const (),
    mode: u32,
    front: bool,
    event: WaitEvent,
    must_wait: impl FnOnce() -> bool,
) -> bool {
    let worker = M::worker();
    let bucket = M::workers().bucket(address.addr());
    lock(bucket);
    if !must_wait() {
        unlock(bucket);
        return false;
    }
    let me = M::workers().slot(worker);
    me.address.store(address.addr() as u64, Relaxed);
    if front {
        // SAFETY: the caller is the worker, and has the bucket's lock.
        unsafe { bucket.queue.push_front(worker, mode) };
    } else {
        // SAFETY: as above.
        unsafe { bucket.queue.push_back(worker, mode) };
    }
    unlock(bucket);
    let surplus = WaitQueue::<M>::sleep(worker, event);
    WaitQueue::<M>::repost(worker, surplus);
    true
}

/// Wakes those of the latch's waiters for which `pick` returns `true`, called from the front with each
/// waiter's mode. Calls `none_left` under the bucket's lock if no worker that waits for this latch is left.
#[cold]
pub(crate) fn unpark<M: Machine>(
    address: *const (),
    mut pick: impl FnMut(u32) -> bool,
    none_left: impl FnOnce(),
) {
    let bucket = M::workers().bucket(address.addr());
    let mut picked = Picked::<M>::none();
    let mut left = false;
    lock(bucket);
    for worker in bucket.queue.workers() {
        let waiter = M::workers().slot(worker);
        if waiter.address.load(Relaxed) == address.addr() as u64 {
            if pick(waiter.mode()) {
                // SAFETY: the worker is on the queue, and the bucket's lock is held.
                unsafe { bucket.queue.pick(&mut picked, worker) };
            } else {
                left = true;
            }
        }
    }
    if !left {
        none_left();
    }
    unlock(bucket);
    picked.post_all();
}
