//! The right to settle deaths, and the dead workers (P7).

use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::claim::{Activity, HeldLatch};
use super::error::SegmentError;
use super::memory::{SegmentMemory, give_back};
use super::process::ProcessId;
use crate::{AtomicWord, WorkerId};

impl SegmentMemory {
    /// Becomes the one that settles deaths, until the result is dropped. `None` while another process does.
    ///
    /// # Errors
    /// [`Broken`](SegmentError::Broken), also if a process has died that was settling deaths;
    /// [`OtherNamespace`](SegmentError::OtherNamespace).
    pub fn begin_recovery(&self) -> Result<Option<Recovery<'_>>, SegmentError> {
        self.begin_recovery_if(ProcessId::is_alive)
    }

    /// As `begin_recovery`, with the answer to whether a process is alive.
    fn begin_recovery_if(
        &self,
        is_alive: impl Fn(ProcessId) -> bool,
    ) -> Result<Option<Recovery<'_>>, SegmentError> {
        self.check_namespaces()?;
        let recoverer = &self.view().header.recoverer;
        let me = ProcessId::current();
        loop {
            if self.is_broken() {
                return Err(SegmentError::Broken);
            }
            let other = match recoverer.compare_exchange(0, me.0, AcqRel, Acquire) {
                Ok(_) => return Ok(Some(Recovery { memory: self })),
                Err(other) => ProcessId(other),
            };
            if other == me || is_alive(other) {
                return Ok(None);
            }
            // It may have settled all deaths and ended since it was read here. Now that it has ended it changes the word no
            // more: if it is still there, it has died of settling.
            if recoverer.load(Acquire) == other.0 {
                self.break_for_all();
                return Err(SegmentError::Broken);
            }
        }
    }
}

/// A worker whose process has ended while it had a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadWorker {
    /// Its number.
    pub worker: WorkerId,
    /// The process that has ended.
    pub process: ProcessId,
    /// The worker's activity at that instant.
    pub activity: Activity,
}

/// The right to settle deaths, which one process has at a time.
#[derive(Debug)]
pub struct Recovery<'a> {
    memory: &'a SegmentMemory,
}

impl Recovery<'_> {
    /// The workers whose processes have ended.
    pub fn dead(&self) -> Vec<DeadWorker> {
        self.dead_if(ProcessId::is_alive)
    }

    /// As `dead`, with the answer to whether a process is alive.
    fn dead_if(&self, is_alive: impl Fn(ProcessId) -> bool) -> Vec<DeadWorker> {
        let view = self.memory.view();
        // A process has many threads, and each question is a few system calls.
        let mut known: Vec<(ProcessId, bool)> = Vec::new();
        let mut dead = Vec::new();
        for (number, claim) in view.claims.iter().enumerate() {
            let Some(process) = claim.owner() else {
                continue;
            };
            let alive = match known.iter().find(|(known, _)| *known == process) {
                Some((_, alive)) => *alive,
                None => {
                    let alive = is_alive(process);
                    known.push((process, alive));
                    alive
                }
            };
            // P1: the word is stable only once its process has ended. Before that the worker may have left, and the slot may have
            // gone to one that lives.
            if !alive && claim.owner() == Some(process) {
                dead.push(DeadWorker {
                    worker: WorkerId(number as u32),
                    process,
                    activity: claim.activity(),
                });
            }
        }
        dead
    }

    /// The latches that `dead` held.
    pub fn held_by(&self, dead: &DeadWorker) -> Vec<HeldLatch> {
        self.memory.view().claims[dead.worker.0 as usize].held().collect()
    }

    /// Gives the slot of a dead worker to the next.
    ///
    /// # Safety
    /// The worker is among [`dead`](Self::dead), and neither on a latch's list nor taken off one and about to be told so. A post
    /// that comes after that belongs to no wait.
    pub unsafe fn free(&self, dead: &DeadWorker) {
        give_back(self.memory.view(), dead.worker);
    }

    /// From now on no process can use the segment.
    pub fn break_for_all(&self) {
        self.memory.break_for_all();
    }
}

impl Drop for Recovery<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next one in `begin_recovery`.
        self.memory.view().header.recoverer.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::SegmentMode;
    use super::super::testing::{OTHER, THIRD, memory};
    use super::*;
    use crate::Half;

    fn shared(offset: u64) -> HeldLatch {
        HeldLatch {
            offset,
            mode: SegmentMode::Shared,
        }
    }

    #[test]
    fn a_slot_that_has_gone_to_another_process_meanwhile_is_not_dead() {
        let memory = memory();
        let claims = memory.view().claims;
        assert!(claims[..3].iter().all(|claim| claim.take(OTHER)));
        claims[1].enter(shared(64));
        let recovery = memory.begin_recovery().unwrap().unwrap();
        let dead = recovery.dead_if(|process| {
            if process == OTHER {
                // Its thread leaves before it ends, and the next worker sleeps at once.
                claims[0].give_back();
                assert!(claims[0].take(THIRD));
                claims[0].enter(shared(128));
                claims[0].note_asleep(Half::Low);
            }
            process != OTHER
        });
        let left =
            [(1, Activity::Changing(64)), (2, Activity::Outside)].map(|(number, activity)| DeadWorker {
                worker: WorkerId(number),
                process: OTHER,
                activity,
            });
        assert_eq!(dead, left);
    }

    #[test]
    fn one_process_settles_deaths_at_a_time() {
        let memory = memory();
        let recovery = memory.begin_recovery().unwrap().unwrap();
        assert!(memory.begin_recovery().unwrap().is_none(), "by another thread");
        drop(recovery);
        let recoverer = &memory.view().header.recoverer;
        recoverer.store(OTHER.0, Release);
        assert!(memory.begin_recovery_if(|_| true).unwrap().is_none());
        // It settles what there is and ends, while the caller asks for it.
        let begun = memory.begin_recovery_if(|_| {
            recoverer.store(0, Release);
            false
        });
        drop(begun.unwrap().expect("the right is free"));
        assert!(!memory.is_broken());
    }

    #[test]
    fn a_process_of_another_namespace_is_refused() {
        let memory = memory();
        for word in &memory.view().header.namespaces {
            let number = word.swap(1, Release);
            assert_eq!(memory.register().unwrap_err(), SegmentError::OtherNamespace);
            assert_eq!(memory.begin_recovery().unwrap_err(), SegmentError::OtherNamespace);
            // Unknown to the maker.
            word.store(0, Release);
            assert!(memory.register().is_ok());
            word.store(number, Release);
            assert!(memory.begin_recovery().unwrap().is_some());
        }
    }

    #[test]
    fn the_death_of_the_one_that_settles_deaths_breaks_the_segment() {
        let memory = memory();
        memory.view().header.recoverer.store(OTHER.0, Release);
        assert_eq!(
            memory.begin_recovery_if(|_| false).unwrap_err(),
            SegmentError::Broken
        );
        assert!(memory.is_broken());
        assert_eq!(memory.register().unwrap_err(), SegmentError::Broken);
    }
}
