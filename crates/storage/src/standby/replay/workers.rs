//! Handing a stretch of log to the workers that make its changes, and waiting until all are done.
//!
//! The worker that reads the log, the *reader*, has [`Workers`]; each of the others is a [`Worker`], and sleeps between two
//! stretches. The reader gathers the next stretch while they are at one.
//!
//! # Steps
//! 1. The reader puts the stretch into `job`, sets `at_work` to the number of workers, adds 1 to `handed_over` and wakes
//!    those that sleep on it.
//! 2. Each worker sees the new number, takes references to the job, and makes the changes of its list.
//! 3. It gives its references back and takes itself off `at_work`. The last one wakes the reader.
//! 4. When the reader wants to know, it waits until `at_work` is 0, and empties `job`.
//!
//! # Rules
//! - H1: the reader writes `job` only while `at_work` is 0, and a worker reads it only after it has seen a new number and
//!   before it takes itself off `at_work`. So no worker misses a stretch, and none sees half a job.
//! - H2: a worker holds the pages only while it works: the last reference is never its own.
//! - H3: an error or a panic in any worker gives the stretch up, and the reader still waits until all have left it. Then
//!   nothing more can be handed over: some pages are behind others.
//! - H4: dropping `Workers` ends the workers, after the stretch that they are at.
//!
//! A word is polled for a short time before a worker sleeps on it (`stretch` says why).
//!
//! Cost: two calls of the kernel for each stretch to wake others, of which one is for all workers, if they sleep.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use clearway_machine::{AtomicWord, DataCell, Machine, Padded, WaitEvent, WaitScope};

use super::stretch::{ReplayedPages, Stretch, poll};
use crate::error::{Result, StorageError};
use crate::replication::standby_state::lock;

/// The bit of `handed_over` that tells the workers to end. The others count.
const END: u32 = 1 << 31;

struct Job<M: Machine, P> {
    pages: Arc<P>,
    stretch: Arc<Stretch<M>>,
}

impl<M: Machine, P> Clone for Job<M, P> {
    fn clone(&self) -> Self {
        Self {
            pages: Arc::clone(&self.pages),
            stretch: Arc::clone(&self.stretch),
        }
    }
}

/// State that the reader and the workers share.
struct Team<M: Machine, P> {
    /// Number of stretches that were handed over, wrapping below [`END`].
    handed_over: Padded<M::U32>,
    /// Workers that are not done with the last one.
    at_work: Padded<M::U32>,
    /// H1.
    job: M::Data<Option<Job<M, P>>>,
    /// The first error of a worker.
    error: Mutex<Option<StorageError>>,
}

// SAFETY: all but `job` is Sync by itself, and that is read and written by H1.
unsafe impl<M: Machine, P: Send + Sync> Sync for Team<M, P> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<M: Machine, P: Send + Sync> Send for Team<M, P> {}

impl<M: Machine, P> Team<M, P> {
    /// Sleeps until `is_over` holds of `word`, and returns what it holds then.
    fn wait(word: &M::U32, event: WaitEvent, is_over: impl Fn(u32) -> bool) -> u32 {
        let mut value = poll::<M>(word, &is_over);
        if !is_over(value) {
            let _wait = WaitScope::<M>::enter(event);
            while !is_over(value) {
                M::futex_wait(word, value, None);
                // Acquire: pairs with the Release of the worker that makes it so.
                value = word.load(Ordering::Acquire);
            }
        }
        value
    }
}

/// The error of a replay whose worker has ended.
fn ended() -> StorageError {
    StorageError::Standby {
        problem: "a thread of replay has ended".to_owned(),
    }
}

/// All workers, in the hands of the one that reads the log.
pub struct Workers<M: Machine, P> {
    team: Arc<Team<M, P>>,
    count: u32,
    /// A stretch was handed over, and not waited for.
    is_at_work: bool,
    /// H3.
    has_failed: bool,
}

/// A worker that changes pages.
pub struct Worker<M: Machine, P> {
    team: Arc<Team<M, P>>,
    number: usize,
}

impl<M: Machine, P> std::fmt::Debug for Workers<M, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count)
            .field("is_at_work", &self.is_at_work)
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

impl<M: Machine, P> std::fmt::Debug for Worker<M, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl<M: Machine, P> Workers<M, P> {
    /// `count` workers, one at least. Each has to [`run`](Worker::run).
    pub fn new(count: usize) -> (Self, Vec<Worker<M, P>>) {
        let team = Arc::new(Team {
            handed_over: Padded(M::U32::new(0)),
            at_work: Padded(M::U32::new(0)),
            job: M::Data::new(None),
            error: Mutex::new(None),
        });
        let worker = |number| Worker {
            team: Arc::clone(&team),
            number,
        };
        let all: Vec<_> = (0..count.max(1)).map(worker).collect();
        let workers = Self {
            count: all.len() as u32,
            team,
            is_at_work: false,
            has_failed: false,
        };
        (workers, all)
    }

    /// Number of workers.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Has the workers make the changes of a stretch, once those of the one before are made. Returns when they have been
    /// told.
    pub fn hand_over(&mut self, pages: &Arc<P>, stretch: Stretch<M>) -> Result<()> {
        self.wait()?;
        let team = &*self.team;
        let job = Job {
            pages: Arc::clone(pages),
            stretch: Arc::new(stretch),
        };
        // SAFETY: `at_work` is 0 (H1).
        team.job.with_mut(|slot| unsafe { *slot = Some(job) });
        team.at_work.store(self.count, Ordering::Relaxed);
        let next = (team.handed_over.load(Ordering::Relaxed) + 1) % END;
        // Release: pairs with the Acquire of the workers, which see the job and `at_work`.
        team.handed_over.store(next, Ordering::Release);
        self.is_at_work = true;
        M::futex_wake(&team.handed_over, u32::MAX);
        Ok(())
    }

    /// Waits until the changes that were handed over are made, or until no worker goes on after an error.
    pub fn wait(&mut self) -> Result<()> {
        if self.is_at_work {
            let team = &*self.team;
            Team::<M, P>::wait(&team.at_work, WaitEvent::ReplayStretch, |at_work| at_work == 0);
            // SAFETY: `at_work` is 0 (H1).
            team.job.with_mut(|slot| unsafe { *slot = None });
            self.is_at_work = false;
            if let Some(error) = lock(&team.error).take() {
                self.has_failed = true;
                return Err(error);
            }
        }
        if self.has_failed { Err(ended()) } else { Ok(()) }
    }
}

impl<M: Machine, P> Drop for Workers<M, P> {
    fn drop(&mut self) {
        // An error has been reported before, or what wanted to know of it is gone.
        let _ = self.wait();
        self.team.handed_over.fetch_or(END, Ordering::Release);
        M::futex_wake(&self.team.handed_over, u32::MAX);
    }
}

/// A worker has done its part of a stretch, or has panicked in it.
struct DoneOnDrop<'a, M: Machine, P> {
    team: &'a Team<M, P>,
    outcome: Result<()>,
}

impl<M: Machine, P> Drop for DoneOnDrop<'_, M, P> {
    fn drop(&mut self) {
        if let Err(error) = std::mem::replace(&mut self.outcome, Ok(())) {
            lock(&self.team.error).get_or_insert(error);
        }
        // AcqRel: the reader sees what all workers did; its Acquire pairs with the last one's Release.
        if self.team.at_work.fetch_sub(1, Ordering::AcqRel) == 1 {
            M::futex_wake(&self.team.at_work, 1);
        }
    }
}

/// Gives the stretch up if its worker panics.
struct GiveUpOnPanic<'a, M: Machine>(&'a Stretch<M>);

impl<M: Machine> Drop for GiveUpOnPanic<'_, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

impl<M: Machine, P: ReplayedPages> Worker<M, P> {
    /// Works until the [`Workers`] are dropped.
    pub fn run(self) {
        let team = &*self.team;
        let mut seen = 0;
        loop {
            let is_new = |handed_over| handed_over != seen;
            seen = Team::<M, P>::wait(&team.handed_over, WaitEvent::ReplayWorkerMain, is_new);
            if seen & END != 0 {
                return;
            }
            // Until another outcome is set, the worker has panicked.
            let mut done = DoneOnDrop {
                team,
                outcome: Err(ended()),
            };
            // SAFETY: a new number was seen, and `done` lives (H1).
            let job = team.job.with(|slot| unsafe { (*slot).clone() });
            if let Some(Job { pages, stretch }) = job {
                let _stretch = GiveUpOnPanic(&*stretch);
                done.outcome = stretch.work(&*pages, self.number);
            }
        }
    }
}
