//! The memory of a session's prepared statements, and its limit.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::session::prepared::{Charge, Prepared};
use clearway_sql::error::{EngineError, Result, SqlState};

/// The most bytes of a session's prepared statements without their plans.
const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// The text of the statements that keep their plans.
const PLANNED_TEXT_BYTES_MAX: usize = 1 << 20;

/// The statements that a session has prepared, as far as memory is concerned.
///
/// A statement takes its text and its description. A plan takes some twenty times its text, so only the statements
/// used most recently keep theirs: `plan_cache_entries` of them, and no more than [`PLANNED_TEXT_BYTES_MAX`] of text
/// together. The others are planned when they run. What all take without their plans is counted and has a limit.
#[derive(Debug)]
pub(crate) struct StatementMemory {
    /// Bytes of the living statements.
    total: Arc<AtomicUsize>,
    plans_max: usize,
    /// Those that may have plans.
    with_plans: Vec<Weak<Prepared>>,
    planned_text_bytes: usize,
    clock: u64,
}

impl StatementMemory {
    pub(crate) fn new(plans_max: usize) -> StatementMemory {
        StatementMemory {
            total: Arc::default(),
            plans_max: plans_max.max(1),
            with_plans: Vec::new(),
            planned_text_bytes: 0,
            clock: 0,
        }
    }

    /// 53200 when a statement of `bytes` more is too much.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        if self.total.load(Ordering::Relaxed) + bytes <= STATEMENT_BYTES_MAX {
            return Ok(());
        }
        Err(EngineError::new(
            SqlState::from_code("53200"),
            format!(
                "the prepared statements of this session would take more than {} MB",
                STATEMENT_BYTES_MAX >> 20
            ),
        )
        .with_hint("DEALLOCATE statements that are not needed any more, or DEALLOCATE ALL."))
    }

    /// Takes a statement that the client has prepared: it counts until it is dropped.
    pub(crate) fn add(&mut self, prepared: &Arc<Prepared>) -> Result<()> {
        let bytes = prepared.bytes();
        self.check(bytes)?;
        self.total.fetch_add(bytes, Ordering::Relaxed);
        let total = Arc::clone(&self.total);
        prepared.charge(Charge { total, bytes });
        self.planned(prepared);
        Ok(())
    }

    /// A statement is about to run.
    #[inline]
    pub(crate) fn used(&mut self, prepared: &Arc<Prepared>) {
        self.clock += 1;
        prepared.set_used(self.clock);
    }

    /// A statement has been planned.
    pub(crate) fn planned(&mut self, prepared: &Arc<Prepared>) {
        self.used(prepared);
        self.with_plans.push(Arc::downgrade(prepared));
        self.planned_text_bytes += prepared.text.len();
        if self.with_plans.len() > self.plans_max || self.planned_text_bytes > PLANNED_TEXT_BYTES_MAX {
            self.forget_plans();
        }
    }

    /// Leaves no plans: memory is scarce.
    pub(crate) fn forget_all_plans(&mut self) {
        for held in self.with_plans.drain(..) {
            if let Some(prepared) = held.upgrade() {
                prepared.forget_plan();
            }
        }
        self.planned_text_bytes = 0;
    }

    /// Leaves half of the plans, those used last.
    fn forget_plans(&mut self) {
        let mut living: Vec<Arc<Prepared>> = self
            .with_plans
            .drain(..)
            .filter_map(|held| held.upgrade())
            .collect();
        living.retain(|prepared| prepared.has_plan());
        living.sort_unstable_by_key(|prepared| Reverse(prepared.last_used()));
        self.planned_text_bytes = 0;
        for prepared in &living {
            let bytes = self.planned_text_bytes + prepared.text.len();
            // The statement in hand keeps its plan whatever it takes: it is about to run.
            let fits = self.with_plans.is_empty()
                || self.with_plans.len() < self.plans_max / 2 && bytes <= PLANNED_TEXT_BYTES_MAX / 2;
            if fits {
                self.planned_text_bytes = bytes;
                self.with_plans.push(Arc::downgrade(prepared));
            } else {
                prepared.forget_plan();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{ActivitySlot, SessionInfo};
    use crate::catalog::Catalog;
    use crate::identity::Identity;
    use crate::interrupt::Interrupts;
    use crate::planning_memory::PlanningMemory;
    use crate::session::prepared::{View, Viewer};

    /// A statement with a text of this length; it does nothing.
    fn prepared(length: usize) -> Arc<Prepared> {
        let slot = Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default()));
        let interrupts = Interrupts::new(slot, Arc::default());
        let text: Arc<str> = " ".repeat(length).into();
        let state = Catalog::new().state();
        let planning = Arc::default();
        let view = View {
            state: &state,
            viewer: Viewer {
                planning: &planning,
                identity: &Identity::new(10, "joe"),
                session: 1,
            },
        };
        Arc::new(Prepared::new(text, None, &[], view, &interrupts, None).unwrap())
    }

    #[test]
    fn statements_have_a_limit_and_give_their_share_back() {
        let mut memory = StatementMemory::new(10);
        let mut held: Vec<Arc<Prepared>> = (0..63)
            .map(|_| {
                let statement = prepared(1 << 20);
                memory.add(&statement).unwrap();
                statement
            })
            .collect();
        let one_more = prepared(1 << 20);
        let error = memory.add(&one_more).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "53200");
        assert!(error.hint().unwrap().contains("DEALLOCATE"), "{error:?}");
        held.pop();
        memory.add(&one_more).unwrap();
        drop((held, one_more));
        assert_eq!(memory.total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn statements_used_last_keep_their_plans() {
        let mut memory = StatementMemory::new(4);
        let held: Vec<Arc<Prepared>> = (0..20).map(|_| prepared(10)).collect();
        for statement in &held {
            memory.add(statement).unwrap();
            memory.used(&held[0]);
            let plans = held.iter().filter(|held| held.is_charged() && held.has_plan());
            assert!(plans.count() <= 4);
            assert!(statement.has_plan(), "the one in hand");
        }
        assert!(held[0].has_plan(), "used before each of the others came");
        // One that lost its plan gets it again, and counts again.
        let state = Catalog::new().state();
        let slot = Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default()));
        let interrupts = Interrupts::new(slot, Arc::default());
        assert!(!held[1].has_plan());
        let (_, is_first) = held[1]
            .plan(
                state.version(),
                Viewer {
                    planning: &Arc::default(),
                    identity: &Identity::new(10, "joe"),
                    session: 1,
                },
                || state,
                &interrupts,
                &PlanningMemory::new(0),
            )
            .unwrap();
        assert!(is_first);
        memory.planned(&held[1]);
        assert!(held[1].has_plan());
    }

    #[test]
    fn long_texts_do_not_keep_their_plans_together() {
        let mut memory = StatementMemory::new(100);
        let held: Vec<Arc<Prepared>> = (0..10).map(|_| prepared(PLANNED_TEXT_BYTES_MAX / 3)).collect();
        for statement in &held {
            memory.add(statement).unwrap();
            assert!(statement.has_plan());
        }
        assert!(held.iter().filter(|statement| statement.has_plan()).count() <= 3);
    }
}
