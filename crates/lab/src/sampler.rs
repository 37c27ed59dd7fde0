//! A sampler of the clients' waits: a thread that looks at each client's published wait event every few milliseconds.
//!
//! A look is one relaxed load from the client's worker slot, so the clients are not slowed down. Each look at each
//! client is one sample; the share of the samples in which an event was seen estimates the share of the clients' time
//! that went there.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_machine::{Machine, Native, Usage, WaitClass, WaitEvent, WorkerId};

/// Time between two looks. Prime, so that it does not keep step with timers of 1, 5 or 10 ms.
const PERIOD: Duration = Duration::from_micros(2_903);

/// The name under which time without a wait appears.
pub(crate) const RUNNING: &str = "running";

/// The clients to look at, and what was seen.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    workers: Mutex<Vec<WorkerId>>,
    stopped: AtomicBool,
}

/// Number of sightings of each event.
pub(crate) type Samples = BTreeMap<String, u64>;

impl Sampler {
    /// Called by a client's thread, before it waits for anything.
    pub(crate) fn register_this_thread(&self) {
        self.workers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push(Native::worker());
    }

    /// Looks until [`stop`](Sampler::stop); gives the counts, and what looking has used.
    pub(crate) fn run(&self) -> (Samples, Usage) {
        let workers = self
            .workers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone();
        let mut counts = vec![0u64; WaitEvent::ALL.len()];
        // At least one look, however short the time and busy the machine.
        loop {
            for worker in &workers {
                counts[Native::workers().slot(*worker).wait_event() as usize] += 1;
            }
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(PERIOD);
        }
        let seen = WaitEvent::ALL
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(event, count)| (event_name(*event), count))
            .collect();
        // The thread was started to look, so all that it has used was for this.
        (seen, Native::usage_of_this_thread())
    }

    /// Ends [`run`](Sampler::run).
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// `class:name`, as users of `pg_stat_activity` know it.
fn event_name(event: WaitEvent) -> String {
    match event.class() {
        WaitClass::None => RUNNING.to_owned(),
        class => format!("{}:{}", class.name(), event.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_class() {
        assert_eq!(event_name(WaitEvent::Running), "running");
        assert_eq!(event_name(WaitEvent::WalWriteLatch), "LWLock:WALWrite");
        assert_eq!(event_name(WaitEvent::WalWrite), "IO:WALWrite");
    }
}
