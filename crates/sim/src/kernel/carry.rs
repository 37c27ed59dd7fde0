//! The steps of an access. The worker performs them until another event is due before it; the event loop
//! performs the rest.
//!
//! An access waits twice: to be the earliest of all when it is issued, and, if it is a miss, again when its
//! line arrives. Suspending the worker for each would be two switches of stacks there and back. A worker that
//! must wait leaves its access with the loop instead ([`Worker::pending`](super::Worker)) and
//! continues when the access takes effect. Nothing may happen between that instant and the worker's change of
//! the word: a poll in between would see the new version of the line with the old value in it, and repeat
//! that value until its promise ends.
//!
//! A preemption finds the access either before it is issued, and then it moves with its worker, or in flight,
//! and then the preemption waits for it.

use super::Kernel;
use super::coherence::{Access, Step, Transfer};
use crate::alloc;
use crate::tree;

/// The access of a suspended worker, or the last such access.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pending {
    stage: Stage,
    access: Access,
    address: usize,
    /// The transfer that it waits for at [`Stage::Arrive`].
    transfer: Transfer,
}

/// The next step of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// None; the worker continues.
    #[default]
    None,
    /// It is issued.
    Issue,
    /// The store buffer, for which it waited, is empty: it begins again.
    Drained,
    /// The line arrives.
    Arrive,
}

impl Kernel {
    /// The running worker accesses `address`. Returns whether the access takes effect now; else it is left
    /// with the loop, and the worker is to be suspended.
    #[inline(always)]
    pub(crate) fn begin_access(&mut self, address: usize, access: Access) -> bool {
        if !self.is_settled() {
            self.leave_with_loop(address, access, Stage::Issue);
            return false;
        }
        let step = self.issue(address, access);
        step == Step::Done || self.go_on(address, access, step)
    }

    /// Issues an access for the first time.
    #[inline(always)]
    fn issue(&mut self, address: usize, access: Access) -> Step {
        if self.breaks_promise() {
            self.note_broken_promise();
        }
        self.begin_event();
        if alloc::has_freed() {
            let lines = &mut self.lines;
            alloc::drain_freed(|address, bytes| lines.forget(address, bytes));
        }
        self.access(address, access)
    }

    /// Performs the steps of an issued access until another event is due.
    #[inline(never)]
    fn go_on(&mut self, address: usize, access: Access, mut step: Step) -> bool {
        loop {
            let cpu = usize::from(self.current);
            let waits = tree::key(self.cpus[cpu].clock, cpu) > self.tree.horizon();
            match step {
                Step::Done => return true,
                Step::Drained if waits => {
                    self.leave_with_loop(address, access, Stage::Drained);
                    return false;
                }
                Step::Transfer(transfer) if waits => {
                    let worker = self.leave_with_loop(address, access, Stage::Arrive);
                    self.workers[worker].pending.transfer = transfer;
                    return false;
                }
                Step::Drained => {
                    self.now = self.cpus[cpu].clock;
                    step = self.access(address, access);
                }
                Step::Transfer(transfer) => {
                    self.now = self.cpus[cpu].clock;
                    self.arrive(address, access, transfer);
                    return true;
                }
            }
        }
    }

    /// Returns the running worker.
    #[inline(always)]
    fn leave_with_loop(&mut self, address: usize, access: Access, stage: Stage) -> usize {
        let worker = self.cpu().running as usize;
        let pending = &mut self.workers[worker].pending;
        (pending.address, pending.access, pending.stage) = (address, access, stage);
        worker
    }

    /// The current CPU is the earliest of all, and `worker` is on it: continues the access that it waits in,
    /// if any. Returns whether the worker itself continues now.
    #[inline]
    pub(crate) fn carry_on(&mut self, worker: u32) -> bool {
        let Pending {
            stage,
            access,
            address,
            transfer,
        } = self.workers[worker as usize].pending;
        let step = match stage {
            Stage::None => return true,
            Stage::Issue if self.cpu().interrupted > 0 => {
                self.take_interrupts();
                self.enter_calendar();
                return false;
            }
            Stage::Issue if self.cpu().resched => {
                self.preempt();
                return false;
            }
            Stage::Issue => self.issue(address, access),
            Stage::Drained => {
                self.now = self.cpu().clock;
                self.access(address, access)
            }
            Stage::Arrive => {
                self.now = self.cpu().clock;
                self.arrive(address, access, transfer);
                Step::Done
            }
        };
        let pending = &mut self.workers[worker as usize].pending;
        match step {
            Step::Done => {
                pending.stage = Stage::None;
                return true;
            }
            Step::Drained => pending.stage = Stage::Drained,
            Step::Transfer(transfer) => (pending.stage, pending.transfer) = (Stage::Arrive, transfer),
        }
        self.enter_calendar();
        false
    }
}
