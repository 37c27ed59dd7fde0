//! One latch over write and sync, the baseline: its holder works for all that are complete.
//!
//! # Steps
//! Loop:
//! 1. Durable far enough: done.
//! 2. Wait for the insertions before the target.
//! 3. `acquire_or_wait` the write latch. A worker that had to wait goes back to 1: the holder may have done its work.
//! 4. Look at `durable` again; sleep `commit_delay` if there is one.
//! 5. Take along what has been inserted meanwhile (a look at the insertions that waits for none).
//! 6. Write, sync, publish, release.
//!
//! # How the rules are kept
//! - R3, R5: write and sync are called under the write latch only.
//! - R2: step 2 comes before the latch; step 5 does not wait.
//!
//! Cost: a release of the latch wakes every worker that waits at it. Those that came too late for the sync sleep again.
//!
//! Origin: PostgreSQL's `XLogFlush` (`LWLockAcquireOrWait`, 2012).

use std::time::Duration;

use clearway_latch::LwLock;
use clearway_machine::{Machine, Padded};

use super::{Flush, FlushOptions, Flushed, WAL_WRITE, sleep_before_flush};
use crate::wal::LogDevice;

pub(in crate::wal) struct Flusher<M: Machine> {
    write_latch: Padded<LwLock<M>>,
    commit_delay: Duration,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(options: &FlushOptions) -> Self {
        Self {
            write_latch: Padded(LwLock::new(&WAL_WRITE, options.lwlock)),
            commit_delay: options.commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        while log.output.durable() < upto {
            let complete = log.wait_complete(upto);
            let Some(_write) = self.write_latch.acquire_or_wait() else {
                continue;
            };
            if log.output.durable() >= upto {
                return;
            }
            sleep_before_flush::<M>(self.commit_delay);
            let target = log.complete_at_least(complete);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
        }
    }
}
