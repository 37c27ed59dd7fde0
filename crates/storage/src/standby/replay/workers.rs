//! The threads that change pages under `replay = parallel`.
//!
//! The thread that reads the log is worker 0; the others sleep between two stretches. They hold the storage only while
//! they work, and give it back before they say that they are done: the last reference is never theirs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::stretch::Stretch;
use crate::error::{Result, StorageError};
use crate::storage::Storage;

struct Job {
    storage: Arc<Storage>,
    stretch: Arc<Stretch>,
}

struct Helper {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

fn ended() -> StorageError {
    StorageError::Standby {
        problem: "a thread of replay has ended".to_owned(),
    }
}

/// All workers; dropping it ends the threads.
pub(crate) struct Workers {
    helpers: Vec<Helper>,
    done: Receiver<Result<()>>,
}

impl Workers {
    /// `count` workers, the caller among them.
    pub(crate) fn start(count: u32) -> Result<Workers> {
        let (report, done) = channel();
        let start = |number: usize| -> Result<Helper> {
            let (jobs, taken) = channel::<Job>();
            let report: Sender<Result<()>> = report.clone();
            let thread = thread::Builder::new()
                .name(format!("replay-{number}"))
                .spawn(move || {
                    for Job { storage, stretch } in taken {
                        let work = AssertUnwindSafe(|| stretch.work(&storage, number));
                        // The reader of the log waits for an answer, and others perhaps for this worker.
                        let worked = catch_unwind(work).unwrap_or_else(|_| {
                            stretch.give_up();
                            Err(ended())
                        });
                        drop((storage, stretch));
                        if report.send(worked).is_err() {
                            return;
                        }
                    }
                })
                .map_err(|error| StorageError::io("start a thread for", "replay".as_ref(), error))?;
            Ok(Helper {
                jobs: Some(jobs),
                thread: Some(thread),
            })
        };
        let helpers = (1..count.max(1) as usize).map(start).collect::<Result<_>>()?;
        Ok(Workers { helpers, done })
    }

    pub(super) fn count(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Makes the changes of a stretch; returns when all are made, or when no worker goes on after an error.
    pub(super) fn work(&mut self, storage: &Arc<Storage>, stretch: &Arc<Stretch>) -> Result<()> {
        let mut started = 0;
        for helper in &self.helpers {
            let job = Job {
                storage: Arc::clone(storage),
                stretch: Arc::clone(stretch),
            };
            started += usize::from(helper.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()));
        }
        let mut outcome = if started == self.helpers.len() {
            stretch.work(storage, 0)
        } else {
            Err(ended())
        };
        for _ in 0..started {
            let worked = self.done.recv().unwrap_or_else(|_| Err(ended()));
            outcome = outcome.and(worked);
        }
        outcome
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for helper in &mut self.helpers {
            helper.jobs = None;
            if let Some(thread) = helper.thread.take() {
                let _ = thread.join();
            }
        }
    }
}
