//! Settling the deaths of processes (S2, S3).

use core::time::Duration;
use std::time::Instant;

use clearway_machine::{
    Activity, DeadWorker, HeldLatch, LatchSleep, ProcessId, Recovery, SegmentError, WorkerId,
};

use super::segment::Segment;
use crate::lwlock::RecoveredWaiter;

/// The time in which a worker that is not settled yet is looked at again, before the caller is told so.
const LOOKS_TIME: Duration = Duration::from_millis(100);
/// The time between two looks.
const PAUSE: Duration = Duration::from_micros(100);

/// The result of [`Segment::recover_dead`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Workers that had died asleep on a latch, and whose wake-ups have gone on.
    pub asleep: u32,
    /// Workers that had died outside of all latches.
    pub outside: u32,
    /// Workers that have died asleep and could not be settled, because a worker that lives has locked the list or is about to
    /// post one, and has not gone on for long: it is stopped, or has no CPU. The caller calls again.
    pub unsettled: u32,
    /// Workers that have died holding or changing a latch. Not empty: the segment is broken, and nothing was settled in the
    /// last look.
    pub holders: Vec<DeadHolder>,
}

/// A worker that has died while it held a latch or changed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadHolder {
    /// Its number.
    pub worker: WorkerId,
    /// The process that has died.
    pub process: ProcessId,
    /// The latches that it held.
    pub held: Vec<HeldLatch>,
    /// The offset of the latch that it was about to acquire or release, or to change the list of: whether it held this one is
    /// not known.
    pub changing: Option<u64>,
}

impl Segment {
    /// Finds the workers whose processes have died, and settles what they have left (see the module's table). Any process may
    /// call it at any time; a supervisor does when a child has ended. `None` while another process does it.
    ///
    /// The calling thread is one that takes no latch of the segment: if all threads that call this wait for a latch that a dead
    /// worker holds, none finds the death.
    ///
    /// # Errors
    /// [`Broken`](SegmentError::Broken) if the segment was broken before; [`OtherNamespace`](SegmentError::OtherNamespace).
    pub fn recover_dead(&self) -> Result<Option<RecoveryReport>, SegmentError> {
        let Some(recovery) = self.memory.begin_recovery()? else {
            return Ok(None);
        };
        let mut report = RecoveryReport::default();
        let start = Instant::now();
        loop {
            self.settle(&recovery, &mut report);
            if report.unsettled == 0 || !report.holders.is_empty() || start.elapsed() >= LOOKS_TIME {
                return Ok(Some(report));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// One look at all deaths.
    fn settle(&self, recovery: &Recovery<'_>, report: &mut RecoveryReport) {
        report.unsettled = 0;
        let dead = recovery.dead();
        // S2: before any list is touched.
        report.holders = dead
            .iter()
            .filter_map(|dead| self.as_holder(recovery, dead))
            .collect();
        if !report.holders.is_empty() {
            recovery.break_for_all();
            return;
        }
        for dead in &dead {
            match dead.activity {
                Activity::Outside => report.outside += 1,
                Activity::Asleep(sleep) => {
                    if !self.stand_in(dead.worker, sleep) {
                        report.unsettled += 1;
                        continue;
                    }
                    report.asleep += 1;
                }
                // Among the holders.
                Activity::Changing(_) => continue,
            }
            // SAFETY: dead, outside of all latches or settled by its latch.
            unsafe { recovery.free(dead) };
        }
    }

    /// The report of a dead worker that held or changed a latch, or slept on something that is no latch.
    fn as_holder(&self, recovery: &Recovery<'_>, dead: &DeadWorker) -> Option<DeadHolder> {
        let changing = match dead.activity {
            Activity::Outside => return None,
            Activity::Asleep(sleep) if self.is_latch(sleep.offset) => return None,
            Activity::Asleep(LatchSleep { offset, .. }) | Activity::Changing(offset) => {
                (offset != 0).then_some(offset)
            }
        };
        Some(DeadHolder {
            worker: dead.worker,
            process: dead.process,
            held: recovery.held_by(dead),
            changing,
        })
    }

    fn is_latch(&self, offset: u64) -> bool {
        self.lwlock(offset).is_ok() || self.mutex(offset).is_ok() || self.rwlock(offset).is_ok()
    }

    /// Stands in for a worker that has died in `sleep`. `false`: it is not settled yet (S3).
    fn stand_in(&self, worker: WorkerId, sleep: LatchSleep) -> bool {
        // The worker's process is dead, and by its notes it was in the sleep of a wait for this latch (P3, P4) and held none. One
        // process settles deaths at a time, and frees the slot after this.
        if let Ok(mutex) = self.mutex(sleep.offset) {
            // SAFETY: as above.
            unsafe { mutex.recover_waiter() };
            return true;
        }
        if let Ok(rwlock) = self.rwlock(sleep.offset) {
            // SAFETY: as above.
            unsafe { rwlock.recover_waiter(sleep) };
            return true;
        }
        self.lwlock(sleep.offset).is_ok_and(|lwlock| {
            // SAFETY: as above; the latch is of the variant `single-cas` (S4).
            unsafe { lwlock.latch.recover_waiter(worker) == RecoveredWaiter::Settled }
        })
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use clearway_machine::AtomicWord;

    use super::super::testing::{one_at_a_time, segment};
    use super::super::{ClassNumber, SegmentLwLock};
    use super::*;
    use crate::lwlock::state::{HAS_WAITERS, LOCKED};
    use crate::{LatchMode, LwLockFairnessVariant};

    const PATIENCE: Duration = Duration::from_secs(120);

    fn await_that(what: &str, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "in vain: {what}");
            std::thread::sleep(PAUSE);
        }
    }

    /// A child of `fork` that sleeps on the list of `latch`, which the caller holds.
    fn sleeping_child(segment: &Segment, latch: &SegmentLwLock) -> libc::pid_t {
        // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let acquired = segment
                .register()
                .is_ok_and(|worker| worker.acquire(latch, LatchMode::Exclusive).is_ok());
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(acquired)) };
        }
        await_that("the child is on the list", || {
            latch.latch.state.load(Relaxed) & (HAS_WAITERS | LOCKED) == HAS_WAITERS
        });
        // From there it enters no sleep but the latch's.
        await_that("the child sleeps", || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
            stat[stat.rfind(')').unwrap()..].starts_with(") S")
        });
        child
    }

    #[test]
    fn a_worker_that_died_asleep_is_unsettled_while_one_that_is_stopped_has_the_list_locked() {
        let _one = one_at_a_time();
        let segment = segment(2);
        let offset = segment.place_lwlock(ClassNumber(1), LwLockFairnessVariant::Barging);
        let latch = segment.lwlock(offset.unwrap()).unwrap();
        let worker = segment.register().unwrap();
        worker.acquire(latch, LatchMode::Exclusive).unwrap();
        let child = sleeping_child(&segment, latch);
        // SAFETY: the number of a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        // SAFETY: no status is asked for.
        assert_eq!(unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) }, child);
        // As one leaves it that lives and is stopped.
        latch.latch.state.fetch_or(LOCKED, Relaxed);
        let unsettled = RecoveryReport {
            unsettled: 1,
            ..RecoveryReport::default()
        };
        assert_eq!(segment.recover_dead(), Ok(Some(unsettled)));
        assert!(!segment.is_broken());
        // It goes on.
        latch.latch.state.fetch_and(!LOCKED, Relaxed);
        let settled = RecoveryReport {
            asleep: 1,
            ..RecoveryReport::default()
        };
        assert_eq!(segment.recover_dead(), Ok(Some(settled)));
        assert_eq!(latch.latch.state.load(Relaxed) & (HAS_WAITERS | LOCKED), 0);
        // SAFETY: acquired above.
        unsafe { worker.release(latch, LatchMode::Exclusive) }.unwrap();
        assert!(!latch.is_held());
    }
}
