//! Holding replay back on purpose: a pause that a session has asked for, and the delay of commits.
//!
//! ```text
//!   wants: no ── pause_replay ──> yes ── resume_replay ──> no
//!   held:  no ─────────────────────── replay has stopped before the next record ──> yes ── replay goes on ──> no
//! ```
//!
//! The thread that replays looks before each record, and stops between two of them. A promotion ends both: what was received is
//! replayed. Nothing is kept over a restart. Neither costs anything while replay is not held but a load a record.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::Standby;

/// The pause of replay, as sessions see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPause {
    /// None is wanted.
    No,
    /// One is wanted, and replay has not stopped yet.
    Requested,
    /// Replay stands still.
    Paused,
}

impl ReplayPause {
    /// PostgreSQL's name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            ReplayPause::No => "not paused",
            ReplayPause::Requested => "pause requested",
            ReplayPause::Paused => "paused",
        }
    }
}

/// The pause of replay.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    is_wanted: AtomicBool,
    is_paused: AtomicBool,
}

impl Hold {
    /// True if replay is to stop before the next record.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        // Acquire: pairs with the Releases below.
        self.is_wanted.load(Acquire)
    }

    /// The thread that replays stands still, or goes on.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        // Release: a session that finds the pause finds the position that replay has stopped at.
        self.is_paused.store(is_paused, Release);
    }
}

impl Standby {
    /// Has replay stop before the next record. It may still be at work when this returns: [`replay_pause`](Self::replay_pause).
    pub fn pause_replay(&self) {
        self.hold.is_wanted.store(true, Release);
        self.progress.notify();
    }

    /// Has replay go on.
    pub fn resume_replay(&self) {
        self.hold.is_wanted.store(false, Release);
        self.progress.notify();
    }

    /// The state of the pause.
    pub fn replay_pause(&self) -> ReplayPause {
        match (self.hold.is_wanted(), self.hold.is_paused.load(Acquire)) {
            (false, _) => ReplayPause::No,
            (true, false) => ReplayPause::Requested,
            (true, true) => ReplayPause::Paused,
        }
    }
}
