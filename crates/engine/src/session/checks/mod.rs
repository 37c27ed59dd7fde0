//! Constraints that are checked behind the rows: the events that statements have noted ([`PendingChecks`]) are looked at
//! here, at the statement's end, at SET CONSTRAINTS or at the commit.
//!
//! | event | looked at by |
//! | --- | --- |
//! | of a foreign key | [`super::references`] |
//! | a row under a key of a deferrable unique constraint that another row may have | [`unique_key`] |
//!
//! [`PendingChecks`]: crate::transaction::PendingChecks

mod set_constraints;
mod unique_key;

use crate::session::Session;
use crate::session::references::Found;
use crate::spill::log::LogCursor;
use crate::transaction::{Event, RowChange};
use clearway_sql::error::Result;

impl Session {
    /// Looks at the events of the statement that has run.
    #[cold]
    pub(super) fn settle_checks(&mut self) -> Result<()> {
        let mut cursor = LogCursor::default();
        let mut found = Found::default();
        while let Some(event) = self.txn.checks_mut().next_immediate(&mut cursor)? {
            self.fire(event, &mut found)?;
        }
        Ok(())
    }

    /// Looks at the deferred events of these constraints, or of all.
    pub(super) fn fire_deferred(&mut self, constraints: Option<Vec<u32>>) -> Result<()> {
        let mut cursor = LogCursor::default();
        let mut found = Found::default();
        while let Some(event) = self.txn.checks_mut().next_deferred(&mut cursor, &constraints)? {
            self.fire(event, &mut found)?;
        }
        self.txn.checks_mut().note_fired(constraints);
        self.txn.end_statement();
        Ok(())
    }

    fn fire(&mut self, event: Event, found: &mut Found) -> Result<()> {
        self.interrupts.check()?;
        self.txn.note_in_tags();
        match event.change {
            RowChange::KeyInDoubt(tid) => self.check_unique_key(event.constraint, tid),
            change => self.fire_reference(event.constraint, &change, found),
        }
    }
}
