//! Timer interrupts.
//!
//! With `os.tick_us` above 0 the timer interrupts each CPU that runs a worker so often, for `os.tick`. As under Linux, a
//! CPU without a worker is left alone. CPUs are interrupted one after the other, in the order of their numbers.
//!
//! An interrupt takes place at the CPU's next event, before it: what was charged before, or an access in flight, ends
//! first. A worker that polls is cut off at the very instant. So an interrupt may come between acquiring a latch and
//! releasing it, and hold up all that wait for it. Without any, two workers on two CPUs may take turns at a line in step
//! for as long as a simulation lasts, which no real machine lets them do.

use super::{Kernel, NO_WORKER, NOTHING_CUTTABLE, Timer};
use crate::account::Activity;

impl Kernel {
    /// A CPU has got a worker: its interrupts begin, unless they go on.
    pub(crate) fn arm_tick(&mut self, cpu: usize) {
        let period = self.costs.tick_period;
        if period == 0 || self.cpus[cpu].ticks {
            return;
        }
        self.cpus[cpu].ticks = true;
        // Its own part of the period, whenever it begins.
        let offset = period * (cpu as u64 + 1) / (self.costs.cpus as u64 + 1);
        let passed = self.now.saturating_sub(offset) / period + u64::from(self.now >= offset);
        self.set_timer(offset + passed * period, Timer::Tick { cpu: cpu as u16 });
    }

    /// The timer interrupts the CPU now.
    pub(crate) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].ticks = self.cpus[cpu].running != NO_WORKER;
        if !self.cpus[cpu].ticks {
            return;
        }
        self.cpus[cpu].interrupted += self.costs.tick;
        if self.watches(cpu) {
            self.stop_watching(cpu, self.now);
        }
        self.set_timer(self.now + self.costs.tick_period, Timer::Tick { cpu: cpu as u16 });
    }

    /// The running worker's CPU spends the interrupts that are due.
    #[cold]
    pub(crate) fn take_interrupts(&mut self) {
        let cpu = usize::from(self.current);
        let due = std::mem::take(&mut self.cpus[cpu].interrupted);
        // What came before has passed for good.
        self.cpus[cpu].pending = NOTHING_CUTTABLE;
        self.advance(cpu, Activity::Syscall, due);
    }
}
