//! The wait of a worker that needs a frame while each is pinned, or was whenever the hand passed it.
//!
//! # An example
//! A pool of 128 frames, and 60 sessions that read trees of four levels. Each pins a page of a tree and of a table for
//! microseconds, but now and then all 128 frames are pinned at one moment. Alice needs a frame then. In a millisecond
//! there is one.
//!
//! # Steps
//! 1. A sweep has found no frame. The worker sleeps, 1 ms at first and then twice as long each time, up to 16 ms.
//! 2. It sweeps again. A frame ends the wait; so does a statement that is to stop ([`BufferPool::set_stop_asked`]).
//! 3. After [`PIN_WAIT_MAX`] the wait ends with an error, which is counted.
//!
//! # Why it is not woken
//! A wake-up would have to come from [`unpin`](crate::buffer::pin::FrameState::unpin), which each access to a page calls: a load
//! of a line of the pool and, where the CPU has no order between a read-modify-write and a later load, a fence, each
//! time, for an event that a pool of a sensible size never sees. A worker that looks again by itself cannot miss a
//! wake-up; what it costs is up to 16 ms after a frame has become free.
//!
//! # Why the wait is bounded
//! A worker that waits here may hold pins and content latches: it extends a tree, or looks at a row while it holds a
//! leaf. Others may have pinned the rest of the frames and wait for those latches, or for a frame like this one. If
//! *all* frames are pinned by workers that wait so, no pin goes away by itself: a deadlock of pins. No worker knows of
//! another what it waits for, so that is not recognised; the worker that has waited longest gets the error, ends its
//! statement, and gives its pins back. The others sweep again within 16 ms and go on. Those that wait for the latches of
//! a worker in here wait [`PIN_WAIT_MAX`] longer than they would without this wait, at most.
//!
//! Under a checker, whose clock goes by its calls, a pool waits only if a test has said how long: otherwise one sweep
//! decides.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clearway_machine::{Machine, Semaphore, WaitEvent, WaitScope};

use crate::buffer::frame::Frame;
use crate::buffer::{BufferPool, PageDevice};
use crate::error::{Result, StorageError};

/// The longest wait.
pub(super) const PIN_WAIT_MAX: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// A pool's limits and counts of these waits.
#[derive(Debug, Default)]
pub(super) struct PinWait {
    stop_asked: OnceLock<fn() -> bool>,
    /// Waits that a frame has ended.
    ended_well: AtomicU64,
    /// Waits that were too long.
    given_up: AtomicU64,
    longest_ms: OnceLock<u64>,
}

impl<M: Machine, D: PageDevice> BufferPool<M, D> {
    /// Waits for a frame ask this function, in the thread that waits, whether to stop. The first one counts.
    pub fn set_stop_asked(&self, stop_asked: fn() -> bool) {
        let _ = self.pin_wait.stop_asked.set(stop_asked);
    }

    /// Bounds waits for a frame by another time than 5 s, in whole milliseconds. The first one counts.
    pub fn set_pin_wait_max(&self, longest: Duration) {
        let _ = self.pin_wait.longest_ms.set(longest.as_millis() as u64);
    }

    /// Number of waits, while all were pinned, that a frame has ended, and of those that ended with an error because
    /// they took too long: too small a pool, or a deadlock of pins.
    pub fn pin_waits(&self) -> (u64, u64) {
        let wait = &self.pin_wait;
        (wait.ended_well.load(Relaxed), wait.given_up.load(Relaxed))
    }

    /// As `claim_frame`, after a sweep in vain.
    #[cold]
    pub(super) fn claim_when_unpinned(&self) -> Result<(u32, &Frame<M>)> {
        let wait = &self.pin_wait;
        let refused = || StorageError::NoFreeBuffer {
            frames: self.frame_count(),
        };
        let longest = match wait.longest_ms.get() {
            Some(&longest) => Duration::from_millis(longest),
            None if M::EXPLORED => return Err(refused()),
            None => PIN_WAIT_MAX,
        };
        let _event = WaitScope::<M>::enter(WaitEvent::BufferAllPinned);
        let started = M::now();
        let nap = Semaphore::<M>::new();
        let mut pause = PAUSE_MIN;
        loop {
            nap.wait_timeout(pause);
            if let Some(claimed) = self.claim_in_one_sweep()? {
                wait.ended_well.fetch_add(1, Relaxed);
                return Ok(claimed);
            }
            if wait.stop_asked.get().is_some_and(|stop_asked| stop_asked()) {
                return Err(StorageError::StopAsked);
            }
            if M::now().saturating_sub(started) >= longest.as_nanos() as u64 {
                wait.given_up.fetch_add(1, Relaxed);
                return Err(refused());
            }
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}
