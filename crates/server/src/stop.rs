//! Asking a server to stop, from any thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// A flag that wakes the threads that poll for it. Clones are the same signal.
#[derive(Debug, Clone)]
pub struct StopSignal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stopped: AtomicBool,
    event: OwnedFd,
}

impl StopSignal {
    /// A signal that has not been given yet.
    pub fn new() -> io::Result<StopSignal> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(StopSignal(Arc::new(Inner {
            stopped: AtomicBool::new(false),
            event,
        })))
    }

    /// Asks the server to stop. A store and one write: safe in a signal handler.
    pub fn stop(&self) {
        // Release: pairs with the Acquire in `is_stopped`.
        self.0.stopped.store(true, Ordering::Release);
        // The counter cannot be full after so few writes, and is never read: the descriptor stays readable.
        let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
    }

    /// True if it has been given.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Readable once the signal has been given.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
