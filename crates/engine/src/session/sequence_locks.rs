//! Locks on the sequences that a transaction has counted by.
//!
//! 1. `nextval` and `setval` hold a sequence in mode ROW EXCLUSIVE to the transaction's end, also behind ROLLBACK TO, since
//!    the numbers stay given out too.
//! 2. ALTER and DROP of others exclude it: they wait for the transaction.
//! 3. A session that counts meanwhile waits for them, and reads the definition behind the wait: it counts by the new options.

use clearway_sql::error::Result;
use clearway_txn::{LockMode, LockTag};

use crate::interrupt::Interrupts;
use crate::lock_wait::LockWaiter;

/// The sequences that the transaction has locked.
#[derive(Debug, Default)]
pub(crate) struct SequenceLocks {
    held: Vec<u32>,
}

impl SequenceLocks {
    /// True if the transaction has locked the sequence.
    pub(crate) fn has(&self, sequence: u32) -> bool {
        self.held.contains(&sequence)
    }

    /// Locks a sequence that the transaction has not locked.
    pub(crate) fn lock(
        &mut self,
        sequence: u32,
        waiter: &LockWaiter<'_>,
        interrupts: &Interrupts,
        timeout: Option<std::time::Duration>,
    ) -> Result<()> {
        waiter.acquire(
            LockTag::Relation(sequence),
            LockMode::RowExclusive,
            interrupts,
            timeout,
        )?;
        self.held.push(sequence);
        Ok(())
    }

    /// The locks.
    pub(crate) fn held(&self) -> Vec<(LockTag, LockMode)> {
        let held = self.held.iter();
        held.map(|sequence| (LockTag::Relation(*sequence), LockMode::RowExclusive))
            .collect()
    }

    /// The transaction ends; true if it had locks.
    pub(crate) fn end(&mut self) -> bool {
        let had_some = !self.held.is_empty();
        self.held.clear();
        had_some
    }
}
