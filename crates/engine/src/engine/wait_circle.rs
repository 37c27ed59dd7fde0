//! Circles of waits that no search for deadlocks between locks finds.
//!
//! A session may wait for others by other means than a lock of its own: for replay (WAIT FOR LSN), for transactions that an
//! index made CONCURRENTLY has to outlive, for the place in the lock table by which VACUUM locks a table. If one of those
//! waits for a lock that the session holds, all wait for good:
//!
//! ```text
//! Alice   holds advisory lock 7                     vacuums t: its place waits for Bob
//! Bob     holds t                                   waits for advisory lock 7: for Alice
//! ```
//!
//! Bob's search ends at Alice, which queues for no lock. So a session that waits by other means looks for a circle itself: it
//! follows the waits of all sessions, by whatever means, and gives up when two looks in turn find that it waits for itself. A
//! single look may combine waits that never existed at one time.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use clearway_sql::error::{EngineError, SqlState};
use clearway_txn::ProcId;

use crate::activity::{OpenSessions, sessions_by_place};
use crate::engine::Engine;
use crate::lock_wait::WaitCircle;

impl Engine {
    /// The sessions that one waits for, by whatever means; replay is one here. A place of VACUUM counts as its session.
    pub(super) fn waited_for(&self, sessions: &OpenSessions, proc: ProcId) -> Vec<ProcId> {
        let locks = &self.storage.locks;
        let mut found = locks.blockers(proc);
        if let Some(session) = sessions.values().find(|session| session.proc == proc) {
            if let Some(vacuum) = session.slot.vacuums_as() {
                found.extend(locks.blockers(vacuum));
            }
            found.extend(session.slot.waits_for());
        }
        if found.is_empty() {
            return found;
        }
        let by_place = sessions_by_place(sessions);
        for proc in &mut found {
            if let Some(session) = by_place.get(proc) {
                *proc = session.proc;
            }
        }
        found
    }

    /// True if a session waits for another one, or for one that does, and so on.
    pub(crate) fn wait_leads_to(&self, from: ProcId, to: ProcId) -> bool {
        let mut known = vec![from];
        let mut looked_at = 0;
        while let Some(waiter) = known.get(looked_at).copied() {
            looked_at += 1;
            let waited_for = self.waited_for(&self.sessions(), waiter);
            for blocker in waited_for {
                if blocker == to {
                    return true;
                }
                if !known.contains(&blocker) {
                    known.push(blocker);
                }
            }
        }
        false
    }
}

/// The least time between a look that finds a circle and the next one: a wait that was ending has ended by then.
const LOOKS_APART: Duration = Duration::from_millis(10);

/// The rule of two looks in turn.
#[derive(Debug, Default)]
pub(crate) struct LooksInTurn<P> {
    /// The place at which the last look has found a circle, if it has.
    found_at: Option<P>,
}

impl<P: PartialEq> LooksInTurn<P> {
    /// Takes the result of a look: the place at which it has found a circle. True at the second one in turn that finds one at
    /// the same place; what has moved since waits no longer.
    pub(crate) fn note(&mut self, found_at: Option<P>) -> bool {
        let again = found_at.is_some() && found_at == self.found_at;
        self.found_at = found_at;
        again
    }
}

/// The looks of a session that waits by other means than a lock of its own.
#[derive(Debug)]
pub(crate) struct CircleLooks<'e> {
    engine: &'e Engine,
    session: ProcId,
    /// `deadlock_timeout`, the time before the first look and after one that finds nothing.
    interval: Duration,
    /// The time of the next look.
    next: Cell<Instant>,
    looks: RefCell<LooksInTurn<()>>,
}

impl<'e> CircleLooks<'e> {
    /// Those of a wait that begins now.
    pub(crate) fn new(engine: &'e Engine, session: ProcId, interval: Duration) -> CircleLooks<'e> {
        CircleLooks {
            engine,
            session,
            interval,
            next: Cell::new(Instant::now() + interval),
            looks: RefCell::default(),
        }
    }
}

impl WaitCircle for CircleLooks<'_> {
    /// True if the session waits for itself; most moments are no look.
    fn find(&self) -> bool {
        if Instant::now() < self.next.get() {
            return false;
        }
        let found = self.engine.wait_leads_to(self.session, self.session);
        let pause = if found { LOOKS_APART } else { self.interval };
        self.next.set(Instant::now() + pause);
        self.looks.borrow_mut().note(found.then_some(()))
    }

    #[cold]
    fn error(&self) -> EngineError {
        let sessions = self.engine.sessions();
        let number = |proc: ProcId| {
            let found = sessions.values().find(|session| session.proc == proc);
            found.map_or(0, |session| session.slot.process_id)
        };
        let own = number(self.session);
        let others = self.engine.waited_for(&sessions, self.session);
        let others: Vec<String> = others
            .into_iter()
            .map(|other| number(other).to_string())
            .collect();
        let others = others.join(", ");
        tracing::warn!("deadlock detected: process {own} waits for itself, behind process {others}");
        EngineError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected").with_detail(format!(
            "Process {own} waits for process {others}, which waits for a lock of process {own}, or for one that does."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_counts_at_the_second_look_in_turn() {
        for (looks, counts) in [
            (&[Some(1), Some(1)][..], true),
            (&[Some(1)], false),
            (&[None, None], false),
            (&[Some(1), None, Some(1)], false),
            (&[Some(1), Some(2)], false),
            (&[Some(1), Some(2), Some(2)], true),
        ] {
            let mut rule = LooksInTurn::default();
            let (last, before) = looks.split_last().unwrap();
            assert!(before.iter().all(|look| !rule.note(*look)), "{looks:?}");
            assert_eq!(rule.note(*last), counts, "{looks:?}");
        }
    }
}
