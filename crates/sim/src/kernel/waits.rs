//! Times that workers slept, by the wait event they had published.

use clearway_machine::{WaitClass, WaitEvent};

use super::Kernel;
use crate::trace::Sleep;

/// The wait events that workers have published in their slots. The machine above the kernel has the slots.
pub(crate) trait PublishedEvents: Sync {
    /// The event of the slot's worker; the look costs no simulated time.
    fn event_of(&self, slot: u32) -> WaitEvent;
}

/// Sleeps of one event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wait {
    pub(crate) count: u64,
    pub(crate) picoseconds: u64,
}

/// By number of the wait event.
#[derive(Debug, Clone)]
pub(crate) struct Waits(pub(crate) Vec<Wait>);

impl Default for Waits {
    fn default() -> Self {
        Self(vec![Wait::default(); WaitEvent::ALL.len()])
    }
}

impl Kernel {
    /// The worker's published event.
    pub(crate) fn event_of(&self, worker: u32) -> WaitEvent {
        self.published.event_of(self.workers[worker as usize].slot)
    }

    /// Notes a sleep that ends now in the trace.
    pub(crate) fn trace_sleep(&mut self, worker: u32, waker: Option<u32>) {
        let sleeper = &self.workers[worker as usize];
        let event = if sleeper.is_client {
            WaitEvent::ClientRead
        } else {
            self.event_of(worker)
        };
        let of_a_latch = event.class() == WaitClass::LwLock;
        let sleep = Sleep {
            worker,
            start: sleeper.asleep_since,
            end: self.now,
            event,
            latch: sleeper.label.filter(|_| of_a_latch).map(str::to_owned),
            waker: waker.map(|waker| (waker, self.workers[waker as usize].cpu)),
        };
        if let Some(trace) = &mut self.trace {
            trace.slept(sleep);
        }
    }

    pub(crate) fn note_wait(&mut self, worker: u32, picoseconds: u64) {
        let event = if self.workers[worker as usize].is_client {
            WaitEvent::ClientRead
        } else {
            self.event_of(worker)
        };
        let wait = &mut self.waits.0[event as usize];
        wait.count += 1;
        wait.picoseconds += picoseconds;
    }
}
