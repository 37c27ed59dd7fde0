//! A latch for the write and a latch for the sync: the next write overlaps the sync in progress.
//!
//! Invariant: `written` changes only under the write latch, `durable` only under the sync latch, and a worker holds at
//! most one of the two.
//!
//! # Steps
//! Loop:
//! 1. Durable far enough: done.
//! 2. Not yet written so far: wait for the insertions before the target, and `acquire_or_wait` the write latch. A
//!    worker that had to wait goes back to 1. The others sleep `commit_delay` if there is one, and write what is
//!    complete (a look at the insertions that waits for none).
//! 3. `acquire_or_wait` the sync latch. A worker that had to wait goes back to 1.
//! 4. Sync up to where the log is written *now*: other workers may have written more while this one came here.
//!
//! While Bob syncs up to 1200, Alice writes up to 1500 and waits for the sync latch, Carol writes up to 1700 and waits
//! there too. One of the two syncs up to 1700 for both.
//!
//! # How the rules are kept
//! - R3: write is called under the write latch only.
//! - R5: sync is called under the sync latch only. Its target is `written`, read (Acquire) after the latch was taken
//!   and before the sync begins, and `written` moves (Release) after the write. A write that goes on during the sync
//!   lies behind the target; whether that sync makes it durable does not matter.
//! - R2: the insertions are waited for before the write latch; the look under it does not wait. The sync needs no
//!   insertion.
//!
//! Cost: as `single`, and one more latch for each flush. The system call that writes leaves the critical path of
//! the next sync. The device must be able to write while it syncs; where the file system lets the write wait for the
//! sync, this variant is `single` with an extra latch. Each release wakes all workers that wait at that latch.
//!
//! Origin: proposed for PostgreSQL as the split of `WALWriteLock`.

use std::time::Duration;

use clearway_latch::{LatchClass, LwLock};
use clearway_machine::{Machine, Padded, WaitEvent};

use super::{Flush, FlushOptions, Flushed, WAL_WRITE, sleep_before_flush};
use crate::wal::LogDevice;

static WAL_SYNC: LatchClass = LatchClass::new("WALSync", WaitEvent::WalSyncLatch, 511);

pub(in crate::wal) struct Flusher<M: Machine> {
    write_latch: Padded<LwLock<M>>,
    sync_latch: Padded<LwLock<M>>,
    commit_delay: Duration,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(options: &FlushOptions) -> Self {
        Self {
            write_latch: Padded(LwLock::new(&WAL_WRITE, options.lwlock)),
            sync_latch: Padded(LwLock::new(&WAL_SYNC, options.lwlock)),
            commit_delay: options.commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        while log.output.durable() < upto {
            if log.output.written() < upto && !self.write(log, upto) {
                continue;
            }
            let Some(_sync) = self.sync_latch.acquire_or_wait() else {
                continue;
            };
            // R5: read before the sync begins.
            log.output.sync(log.output.written());
        }
    }
}

impl<M: Machine> Flusher<M> {
    /// Writes everything before `upto`; `false` if the worker has waited for another one that writes.
    fn write<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) -> bool {
        let complete = log.wait_complete(upto);
        let Some(_write) = self.write_latch.acquire_or_wait() else {
            return false;
        };
        if log.output.written() < upto {
            sleep_before_flush::<M>(self.commit_delay);
            let target = log.complete_at_least(complete);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
        }
        true
    }
}
