//! The threads that change pages under `replay = parallel`.

use std::thread::{self, JoinHandle};

use clearway_machine::Native;

use super::stretch::ReplayedPages;
use super::workers::Workers;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::records::pages::replay_change;
use crate::storage::Storage;

impl ReplayedPages for Storage {
    fn change(&self, payload: &[u8], end: Lsn) -> Result<()> {
        let change = || {
            replay_change(&self.pool, payload, end, |rel| {
                Ok(self.files.file_for_replay(rel)?.is_some())
            })
        };
        match self.standby() {
            Some(standby) => standby.with_room(change),
            None => change(),
        }
    }
}

/// All workers of a standby's replay; dropping it ends the threads.
pub(crate) struct ReplayThreads {
    /// `None` once the threads are to end.
    workers: Option<Workers<Native, Storage>>,
    threads: Vec<JoinHandle<()>>,
}

impl ReplayThreads {
    /// `count` workers beside the caller, which reads the log.
    pub(crate) fn start(count: u32) -> Result<Self> {
        let (workers, all) = Workers::new(count as usize);
        let mut threads = Self {
            workers: Some(workers),
            threads: Vec::with_capacity(all.len()),
        };
        for (worker, number) in all.into_iter().zip(1..) {
            let thread = thread::Builder::new()
                .name(format!("replay-{number}"))
                .spawn(move || worker.run())
                .map_err(|error| StorageError::io("start a thread for", "replay".as_ref(), error))?;
            threads.threads.push(thread);
        }
        Ok(threads)
    }

    pub(super) fn workers(&mut self) -> Option<&mut Workers<Native, Storage>> {
        self.workers.as_mut()
    }
}

impl Drop for ReplayThreads {
    fn drop(&mut self) {
        self.workers = None;
        for thread in self.threads.drain(..) {
            // If it has panicked, replay has ended with an error (H3 of `workers`).
            let _ = thread.join();
        }
    }
}
