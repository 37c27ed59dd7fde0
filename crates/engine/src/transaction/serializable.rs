//! SERIALIZABLE: the transaction's registration, its marks, and the check before its commit. The algorithm is
//! [`clearway_txn::Serializable`]; here is what the engine tells it.
//!
//! - A transaction registers with its first snapshot. A read-only one drops its marks as soon as its snapshot is known to be
//!   safe, and reads on as REPEATABLE READ does.
//! - A scan marks what it reads; each change of a row marks the version that it replaces, and each entry its key. Catalogs,
//!   sequences and temporary tables are not marked.
//! - Reads under another snapshot than the transaction's own are not its reads: those of foreign keys, which locks take care
//!   of, unless the answer is a refusal; and those that definitions make. Writes count all the same.
//! - A transaction of another level has no marks, and looks at one pointer where it writes a row.

use std::sync::Arc;
use std::time::Duration;

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::IsolationLevel;
use clearway_storage::heap::Tid;
use clearway_txn::{MarkedRow, SerialTransaction, Serializable, SerializationFailure, Xid};

use super::Transaction;
use crate::interrupt::Interrupts;

/// Time between two looks whether a snapshot is safe; doubled each time, up to the longest.
const SAFE_SNAPSHOT_POLL: Duration = Duration::from_micros(200);
const SAFE_SNAPSHOT_POLL_MAX: Duration = Duration::from_millis(20);

/// The marks of a session's transaction.
#[derive(Debug)]
pub(super) struct SerializableReads {
    shared: Arc<Serializable>,
    /// There while a serializable transaction has a snapshot that is not known to be safe.
    own: Option<Box<SerialTransaction<Native>>>,
    /// False while it reads under another snapshot.
    counts_reads: bool,
}

impl SerializableReads {
    pub(super) fn new(shared: Arc<Serializable>) -> Self {
        Self {
            shared,
            own: None,
            counts_reads: true,
        }
    }

    #[inline]
    pub(super) fn is_marking(&self) -> bool {
        self.own.is_some()
    }
}

/// 40001 in PostgreSQL's words.
#[cold]
fn failed(reason: SerializationFailure) -> EngineError {
    EngineError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to read/write dependencies among transactions",
    )
    .with_detail(format!("Reason code: {reason}"))
    .with_hint("The transaction might succeed if retried.")
}

impl Transaction {
    /// True if what it writes is to be marked.
    #[inline]
    pub(crate) fn marks_writes(&self) -> bool {
        self.serializable.is_marking()
    }

    /// True if what it reads is to be marked.
    #[inline]
    pub(crate) fn marks_reads(&self) -> bool {
        self.serializable.is_marking() && self.serializable.counts_reads
    }

    /// Reads from here on are not the transaction's own; what to give back to [`count_reads`](Self::count_reads).
    pub(crate) fn stop_counting_reads(&mut self) -> bool {
        std::mem::replace(&mut self.serializable.counts_reads, false)
    }

    /// Ends that.
    pub(crate) fn count_reads(&mut self, counted: bool) {
        self.serializable.counts_reads = counted;
    }

    /// Registers, and takes the snapshot.
    #[cold]
    pub(super) fn take_serializable_snapshot(&mut self) {
        let shared = &self.serializable.shared;
        let own = shared.begin(self.proc, self.stays_read_only());
        self.storage.take_session_snapshot(self.proc, &mut self.snapshot);
        shared.snapshot_taken(&own);
        self.serializable.own = Some(Box::new(own));
        self.has_snapshot = true;
    }

    /// Before a statement: takes the snapshot if there is none, a safe one for a DEFERRABLE transaction.
    #[cold]
    pub(super) fn ready_serializable_snapshot(&mut self, interrupts: &Interrupts) -> Result<()> {
        if self.has_snapshot {
            if self.serializable.own.as_ref().is_some_and(|own| own.is_safe()) {
                self.remove_serializable();
            }
            return self.check_serializable();
        }
        if self.storage.is_standby() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use serializable mode in a hot standby",
            )
            .with_detail("\"default_transaction_isolation\" is set to \"serializable\".")
            .with_hint(
                "You can use \"SET default_transaction_isolation = 'repeatable read'\" to change the default.",
            ));
        }
        self.take_serializable_snapshot();
        self.wait_for_safe_snapshot(interrupts)
    }

    /// Registers anew, with another snapshot: nothing has been read under the first one.
    pub(super) fn renew_serializable_snapshot(&mut self, interrupts: &Interrupts) -> Result<()> {
        self.remove_serializable();
        self.take_serializable_snapshot();
        self.wait_for_safe_snapshot(interrupts)
    }

    /// Waits until the snapshot of a transaction that is READ ONLY and DEFERRABLE is safe; takes others until one is.
    fn wait_for_safe_snapshot(&mut self, interrupts: &Interrupts) -> Result<()> {
        if !(self.deferrable && self.stays_read_only()) {
            return Ok(());
        }
        let mut poll = SAFE_SNAPSHOT_POLL;
        while let Some(own) = &self.serializable.own {
            if own.is_safe() {
                self.remove_serializable();
            } else if own.is_unsafe() {
                self.remove_serializable();
                self.take_serializable_snapshot();
            } else {
                let _waiting = WaitScope::<Native>::enter(WaitEvent::SafeSnapshot);
                if let Err(stopped) = interrupts.check() {
                    self.remove_serializable();
                    // Behind a savepoint it may go on: then it waits for another.
                    self.has_snapshot = false;
                    self.holds_xmin = true;
                    return Err(stopped);
                }
                std::thread::sleep(poll);
                poll = (poll * 2).min(SAFE_SNAPSHOT_POLL_MAX);
            }
        }
        Ok(())
    }

    /// The check before the commit; the transaction is rolled back if it has to give up.
    #[cold]
    pub(super) fn check_serializable_commit(&mut self) -> Result<()> {
        let Some(own) = &self.serializable.own else {
            return Ok(());
        };
        let xid = self.xid.unwrap_or(Xid::INVALID);
        if let Err(reason) = self.serializable.shared.prepare(own, xid) {
            self.rollback();
            return Err(failed(reason));
        }
        Ok(())
    }

    /// New snapshots see the commit, or it has written nothing.
    #[inline]
    pub(super) fn finish_serializable(&mut self) {
        if let Some(own) = self.serializable.own.take() {
            self.serializable.shared.finish(*own);
        }
    }

    /// The marks go: it is rolled back, or its snapshot is safe.
    #[inline]
    pub(super) fn remove_serializable(&mut self) {
        if let Some(own) = self.serializable.own.take() {
            self.serializable.shared.remove(*own);
        }
    }

    /// Calls `mark` with what it needs, if there are marks.
    fn mark(
        &mut self,
        mark: impl FnOnce(
            &Serializable,
            &mut SerialTransaction<Native>,
            &dyn Fn(Xid) -> bool,
        ) -> std::result::Result<(), SerializationFailure>,
    ) -> Result<()> {
        debug_assert!(self.isolation == IsolationLevel::Serializable);
        let SerializableReads {
            shared,
            own,
            counts_reads,
        } = &mut self.serializable;
        let Some(own) = own else { return Ok(()) };
        let (storage, snapshot, is_own) = (&self.storage, &self.snapshot, *counts_reads);
        // A snapshot that is not the transaction's own, or an unreadable commit log: in doubt they overlap.
        let sees = |xid: Xid| is_own && storage.shows(snapshot, xid).unwrap_or(false);
        mark(shared, own, &sees).map_err(failed)
    }

    /// 40001 if it has to give up already: asked before a statement, and before an error that says less. Of two transactions that have looked for a
    /// key and then enter it, the second is told to try again, and not of a row that it has not seen.
    pub(crate) fn check_serializable(&self) -> Result<()> {
        match &self.serializable.own {
            Some(own) => own.check().map_err(failed),
            None => Ok(()),
        }
    }

    /// All rows of a table are read.
    #[cold]
    pub(crate) fn mark_table_read(&mut self, table: u32) -> Result<()> {
        self.mark(|shared, own, sees| shared.read_relation(own, table, sees))
    }

    /// A version of a row of a table is read.
    pub(crate) fn mark_row_read(&mut self, table: u32, tid: Tid) -> Result<()> {
        self.mark(|shared, own, sees| shared.read_row(own, marked(table, tid), sees))
    }

    /// A key of an index is looked up.
    #[cold]
    pub(crate) fn mark_key_read(&mut self, index: u32, key: &[u8]) -> Result<()> {
        self.mark(|shared, own, sees| shared.read_key(own, index, key, sees))
    }

    /// The keys of an index with `lower` ≤ key < `upper` are read.
    #[cold]
    pub(crate) fn mark_keys_read(&mut self, index: u32, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        self.mark(|shared, own, sees| shared.read_keys(own, index, (lower, upper), sees))
    }

    /// A version of a row of a table is replaced or deleted.
    #[cold]
    pub(crate) fn mark_row_written(&mut self, table: u32, tid: Tid) -> Result<()> {
        let xid = self.xid.unwrap_or(Xid::INVALID);
        self.mark(|shared, own, sees| shared.write_row(own, xid, marked(table, tid), sees))
    }

    /// Rows are added to a table.
    #[cold]
    pub(crate) fn mark_rows_added(&mut self, table: u32) -> Result<()> {
        let xid = self.xid.unwrap_or(Xid::INVALID);
        self.mark(|shared, own, sees| shared.add_rows(own, xid, table, sees))
    }

    /// A key is entered into an index.
    #[cold]
    pub(crate) fn mark_key_written(&mut self, index: u32, key: &[u8]) -> Result<()> {
        let xid = self.xid.unwrap_or(Xid::INVALID);
        self.mark(|shared, own, sees| shared.write_key(own, xid, index, key, sees))
    }

    /// All rows of a table go. The session has the table to itself.
    pub(crate) fn mark_table_emptied(&mut self, table: &TableDef) -> Result<()> {
        self.coarsen_all_marks(table);
        if !self.marks_writes() {
            return Ok(());
        }
        let table = table.oid;
        let xid = self.xid.unwrap_or(Xid::INVALID);
        self.mark(|shared, own, sees| shared.write_relation(own, xid, table, sees))
    }

    /// The rows of a table get other places: what others have read of them counts as the whole table.
    pub(crate) fn coarsen_all_marks(&self, table: &TableDef) {
        let indexes: Vec<u32> = table.all_indexes().map(|index| index.oid).collect();
        self.coarsen_marks(table.oid, &indexes);
    }

    /// Indexes of a table go: what others have read by them counts as the whole table.
    pub(crate) fn coarsen_marks(&self, table: u32, indexes: &[u32]) {
        self.serializable.shared.coarsen(table, indexes);
    }
}

fn marked(relation: u32, tid: Tid) -> MarkedRow {
    MarkedRow {
        relation,
        block: tid.block,
        slot: tid.slot,
    }
}
