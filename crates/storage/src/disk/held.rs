//! A disk whose syncs of the log can be held, for tests that look at what happens before a commit is durable.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::disk::{Faults, FaultyDisk, NativeDisk, Operation, SyncPurpose};

/// True if syncs of the log are held, and the number of those that wait.
#[derive(Debug, Default)]
struct Syncs {
    are_held: bool,
    waiting: u32,
}

/// The syncs of the log: while they are held, none returns.
///
/// ```
/// use clearway_storage::disk::HeldLog;
///
/// let (disk, log) = HeldLog::disk();
/// // … a storage on `disk`
/// let let_go = log.hold();
/// // … a commit of another thread; then `log.wait_for_a_sync()`, and it is not durable
/// drop(let_go);
/// # let _ = disk;
/// ```
#[derive(Debug, Default)]
pub struct HeldLog {
    syncs: Mutex<Syncs>,
    changed: Condvar,
}

impl HeldLog {
    /// A disk whose log is not held yet, and what holds it.
    pub fn disk() -> (Arc<FaultyDisk>, Arc<HeldLog>) {
        let held = Arc::<HeldLog>::default();
        let faults = Arc::<HeldLog>::clone(&held);
        (Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults)), held)
    }

    fn lock(&self) -> MutexGuard<'_, Syncs> {
        self.syncs.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn set(&self, are_held: bool) {
        self.lock().are_held = are_held;
        self.changed.notify_all();
    }

    /// Holds the log until the result is dropped, also when a test fails.
    pub fn hold(self: &Arc<Self>) -> LetGo {
        self.set(true);
        LetGo(Arc::clone(self))
    }

    /// Returns when a sync waits for the log's release.
    pub fn wait_for_a_sync(&self) {
        let waiting = self.changed.wait_while(self.lock(), |syncs| syncs.waiting == 0);
        drop(waiting.unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
}

impl Faults for HeldLog {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        if operation == Operation::Sync(SyncPurpose::LogFlush) {
            let mut syncs = self.lock();
            syncs.waiting += 1;
            self.changed.notify_all();
            let held = self.changed.wait_while(syncs, |syncs| syncs.are_held);
            held.unwrap_or_else(|poisoned| poisoned.into_inner()).waiting -= 1;
        }
        Ok(())
    }
}

/// Lets the log go when it is dropped.
#[derive(Debug)]
#[must_use = "the log is let go when it is dropped"]
pub struct LetGo(Arc<HeldLog>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
