//! A counting semaphore on one futex word: how a worker sleeps until another posts it.
//!
//! The word is the number of posts not yet consumed. `post` adds one, then wakes one sleeper; `wait` takes
//! one or sleeps while the word is zero.
//!
//! R1: *no post is lost.* The futex compares the word with zero under the kernel's lock, so a post that lands
//! between the poster's add and the sleeper's system call makes the sleep return at once.

use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::core_words::CoreU32;
use crate::{AtomicWord, FutexOutcome, Machine};

/// A counting semaphore (4 bytes natively).
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore<M: Machine> {
    posts: M::U32,
}

impl<M: Machine<U32 = CoreU32>> Semaphore<M> {
    /// A semaphore with no posts pending, for statics.
    pub const fn new_const() -> Self {
        Self {
            posts: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> Semaphore<M> {
    /// A semaphore with no posts pending.
    pub fn new() -> Self {
        Self {
            posts: M::U32::new(0),
        }
    }

    /// Adds one post and wakes a sleeper. What the caller wrote before is visible to the worker that consumes
    /// it.
    pub fn post(&self) {
        // Release: pairs with the Acquire in `try_wait`.
        self.posts.fetch_add(1, Ordering::Release);
        M::futex_wake(&self.posts, 1);
    }

    /// Consumes a post if there is one.
    pub fn try_wait(&self) -> bool {
        let mut posts = self.posts.load(Ordering::Relaxed);
        while posts > 0 {
            // Acquire: pairs with the Release in `post`.
            match self
                .posts
                .compare_exchange_weak(posts, posts - 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(found) => posts = found,
            }
        }
        false
    }

    /// Consumes a post, sleeping until there is one.
    #[cfg_attr(any(feature = "loom", feature = "shuttle"), track_caller)]
    pub fn wait(&self) {
        while !self.try_wait() {
            M::futex_wait(&self.posts, 0, None);
        }
    }

    /// Consumes a post, sleeping for at most about `timeout`; `false` if none came.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let deadline = M::now().saturating_add(timeout.as_nanos().min(u128::from(u64::MAX)) as u64);
        loop {
            if self.try_wait() {
                return true;
            }
            let left = deadline.saturating_sub(M::now());
            if left == 0 {
                return false;
            }
            if M::futex_wait(&self.posts, 0, Some(Duration::from_nanos(left))) == FutexOutcome::TimedOut {
                return self.try_wait();
            }
        }
    }
}

impl<M: Machine> Default for Semaphore<M> {
    fn default() -> Self {
        Self::new()
    }
}
