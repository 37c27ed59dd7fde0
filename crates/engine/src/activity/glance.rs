//! The part of a session's activity that is no text: what a reader takes that looks often, and at all sessions.

use std::sync::atomic::Ordering;

use super::{ActivitySlot, BackendType, SessionState, wait_event};
use clearway_machine::WaitEvent;

/// The state of a session, without its texts.
#[derive(Debug)]
pub(crate) struct SessionGlance {
    pub(crate) process_id: u32,
    pub(crate) state: SessionState,
    /// The event that its thread waits for, if it waits.
    pub(crate) wait: Option<WaitEvent>,
    /// The start of its transaction in microseconds since 2000, if it is in one.
    pub(crate) transaction_start: Option<i64>,
    /// The oldest transaction whose changes its snapshot may need, while it has one.
    pub(crate) xmin: Option<u64>,
    /// The name of the follower that it sends the log to.
    pub(crate) follower_name: Option<String>,
}

impl ActivitySlot {
    /// The session's state; `xmin` is known to the array of running transactions.
    pub(crate) fn glance(&self, xmin: Option<u64>) -> SessionGlance {
        // Relaxed: what is shown of a session need not be of one moment.
        let start = self.transaction_start.load(Ordering::Relaxed);
        let sends_log = self.backend_type() == BackendType::WalSender;
        let name = || {
            let texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            texts.application_name.clone()
        };
        SessionGlance {
            process_id: self.process_id,
            state: SessionState::from_number(self.state.load(Ordering::Relaxed)),
            wait: self.worker().and_then(wait_event),
            transaction_start: (start != 0).then_some(start),
            xmin,
            follower_name: sends_log.then(name),
        }
    }
}
