//! The memory that all sessions together use to understand long statements.
//!
//! While a text is parsed and bound, its tokens, its syntax tree and its plan take many times its length, and
//! the parser allocates without asking. One session's share ends with its longest message; with some dozen
//! sessions that is more than a machine has. So a session reserves what its text may take before it is parsed
//! (`PlanningMemory::reserve`), and is refused (53200) when all reservations together would exceed
//! `planning_memory`.
//!
//! - Texts of 64 KiB or less reserve nothing: they touch nothing that sessions share.
//! - A reservation is an upper bound from the text's length, by the worst kind of statement that was measured
//!   (`sql::memory_to_plan`).
//! - It is given back when it is dropped, however the statement ends. A plan that is kept keeps its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory;
use clearway_sql as sql;
use clearway_sql::error::{EngineError, Result, SqlState};

/// The reservations of all sessions.
#[derive(Debug)]
pub(crate) struct PlanningMemory {
    reserved: AtomicUsize,
    limit: usize,
}

/// A statement's part, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<PlanningMemory>,
    bytes: usize,
}

impl PlanningMemory {
    pub(crate) fn new(limit: usize) -> Arc<PlanningMemory> {
        Arc::new(PlanningMemory {
            reserved: AtomicUsize::new(0),
            limit,
        })
    }

    /// Reserves what a text may take; nothing for a short one.
    pub(crate) fn reserve(self: &Arc<Self>, text: &str) -> Result<Option<Reservation>> {
        let bytes = sql::memory_to_plan(text);
        if bytes == 0 {
            return Ok(None);
        }
        memory::require(bytes)?;
        // Relaxed: nothing is published by the count.
        let counted = self
            .reserved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |reserved| {
                reserved.checked_add(bytes).filter(|sum| *sum <= self.limit)
            });
        match counted {
            Ok(_) => Ok(Some(Reservation {
                memory: Arc::clone(self),
                bytes,
            })),
            Err(reserved) => Err(self.exceeded(text.len(), bytes, reserved)),
        }
    }

    #[cold]
    fn exceeded(&self, length: usize, bytes: usize, reserved: usize) -> EngineError {
        let mb = |bytes: usize| bytes.div_ceil(1 << 20);
        EngineError::new(SqlState::OUT_OF_MEMORY, "out of memory for long statements")
            .with_detail(format!(
                "A statement of {length} bytes may take {} MB while it is planned; others have {} MB of {} MB.",
                mb(bytes),
                mb(reserved),
                mb(self.limit)
            ))
            .with_hint(
                "Load rows with COPY, divide the statement into smaller ones, or raise planning_memory in the \
                 configuration file.",
            )
    }

    #[cfg(test)]
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}

impl Reservation {
    /// The statement has been planned: only its plan is left.
    pub(crate) fn planned(&mut self, text: &str) {
        let kept = sql::memory_of_plan(text).min(self.bytes);
        self.memory
            .reserved
            .fetch_sub(self.bytes - kept, Ordering::Relaxed);
        self.bytes = kept;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_have_a_limit_and_are_given_back() {
        let text = format!("select {}", "+1".repeat(50_000));
        let one = sql::memory_to_plan(&text);
        assert!(one > 10 * text.len());
        let memory = PlanningMemory::new(2 * one);
        assert!(memory.reserve("select 1").unwrap().is_none());
        let mut held = vec![memory.reserve(&text).unwrap(), memory.reserve(&text).unwrap()];
        let error = memory.reserve(&text).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::OUT_OF_MEMORY);
        let detail = error.detail().unwrap();
        assert!(detail.contains("A statement of 100007 bytes"), "{detail}");
        assert!(error.hint().unwrap().contains("planning_memory"));
        held.pop();
        let mut kept = memory.reserve(&text).unwrap();
        kept.as_mut().unwrap().planned(&text);
        assert!(memory.reserved() < 2 * one);
        drop((held, kept));
        assert_eq!(memory.reserved(), 0);
        // A panic gives it back as well.
        let panicked = std::panic::catch_unwind(|| {
            let _held = memory.reserve(&text).unwrap();
            panic!("while planning");
        });
        assert!(panicked.is_err());
        assert_eq!(memory.reserved(), 0);
    }
}
