//! One session's transaction: its id, its snapshot, its locks, and how it ends.
//!
//! # Life
//!
//! ```text
//!            first statement                 BEGIN
//!   none ───────────────────▶ implicit    none ─────▶ block ──error──▶ failed
//!     ▲     end of statements    │          ▲           │ COMMIT, ROLLBACK │
//!     └──────────────────────────┘          └───────────┴──────────────────┘
//! ```
//!
//! An id is assigned at the first write, so a transaction that only reads writes no log and takes no place among the
//! running ids. A failed transaction is rolled back at once: its locks are free although the client has yet to say
//! ROLLBACK.
//!
//! The order in which a commit becomes durable and visible, and why no two steps can be swapped:
//! [`clearway_storage::commit`].
//!
//! # Rules
//!
//! - T1: a transaction begins where none is, and nothing is left of the one before: no id, no lock, no definitions.
//! - T2: rows are read under a snapshot. The one that a session kept from a statement before may see less than the locks
//!   and definitions of this one want.
//! - T3: an expression that asks for the id has the session's slot given one, since it reads the session only. The transaction
//!   takes it from there when it needs an id itself, and when it ends. Until then no row is marked with it.
//!
//! # Savepoints
//!
//! A transaction has one id, whatever savepoints it has ([`savepoints`]). In a block with savepoints an error goes back to
//! the newest one, and the block waits for ROLLBACK TO, or for its end to be said.

mod answer;
mod end;
mod locks;
mod pending_checks;
mod pending_notifications;
mod portal_snapshot;
mod replication;
mod row_counts;
mod savepoints;
mod serializable;
mod status;
mod temporary;

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_machine::invariant;
use clearway_storage::heap::TxnContext;
use clearway_storage::{Reader, RelId, SeenCommits, SessionSnapshot, Storage};
use clearway_txn::{LockMode, ProcId, Serializable, Xid};

use crate::activity::{ActivitySlot, OpenSessions};
use crate::catalog::{CATALOG_REL, Catalog, CatalogState, TableUse};
use crate::convert::storage_error;
use crate::interrupt::Interrupts;
pub use answer::AnswerGate;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::IsolationLevel;
pub(crate) use pending_checks::{Event, PendingChecks, RowChange};
pub(crate) use pending_notifications::{ChannelChange, PendingNotifications};
pub(crate) use portal_snapshot::PortalSnapshot;
pub(crate) use replication::{StandbyWait, WaitedFor};
pub(crate) use row_counts::RowChanges;
use row_counts::RowCounts;
use savepoints::{GonePortals, Savepoints};
pub(crate) use savepoints::{SessionHolds, SessionMark};
use serializable::SerializableReads;
pub use status::TransactionStatus;
use temporary::Temporary;

#[cfg(test)]
mod tests;

/// Time between two looks whether replay has come to the end of a commit; it is between two of its last steps.
const REPLAY_POLL: Duration = Duration::from_micros(200);

/// The phase of a transaction's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none.
    None,
    /// Opened by a statement outside a block; ends with it.
    Implicit,
    /// Opened by BEGIN.
    Block,
    /// A block after an error: rolled back already, waiting for its end to be said.
    Failed,
    /// A block after an error, with savepoints: it has gone back to the newest one already.
    FailedAtSavepoint,
}

impl Phase {
    /// True after an error in a block.
    #[inline]
    pub(crate) fn is_failed(self) -> bool {
        matches!(self, Phase::Failed | Phase::FailedAtSavepoint)
    }
}

/// A session's transaction, or the place where one will be.
#[derive(Debug)]
pub(crate) struct Transaction {
    storage: Arc<Storage>,
    catalog: Arc<Catalog>,
    slot: Arc<ActivitySlot>,
    closed: Arc<AtomicBool>,
    /// For messages about waits.
    sessions: Arc<Mutex<OpenSessions>>,
    /// The log is told of a wait of this length.
    log_lock_waits: Option<Duration>,
    pub(crate) proc: ProcId,
    pub(crate) phase: Phase,
    pub(crate) isolation: IsolationLevel,
    pub(crate) read_only: bool,
    /// DEFERRABLE: if it is serializable and read only, it waits for a safe snapshot.
    pub(crate) deferrable: bool,
    xid: Option<Xid>,
    /// The values that it has stored apart from their rows.
    long_values: Cell<u32>,
    /// The number of the running statement among those of this transaction that change something: a statement sees
    /// what earlier ones did, not what it does itself.
    command: u32,
    snapshot: SessionSnapshot,
    has_snapshot: bool,
    /// An earlier statement has had a snapshot, which is gone.
    has_looked: bool,
    /// The dependencies of its answers.
    seen: Arc<SeenCommits>,
    /// True if the session's caller waits before it shows an answer, so that the session does not.
    caller_waits: bool,
    /// True if the horizon is held back for a portal although no statement has a snapshot.
    holds_xmin: bool,
    /// Held by each suspended portal too, so that their number is known.
    portals: Arc<()>,
    /// Counts the transactions of this session.
    number: u64,
    start_us: i64,
    held: Vec<(u32, LockMode)>,
    /// True if anything is held that `release_all` must free (relations, tuples).
    locked: bool,
    /// The definitions as this transaction has changed them, or with the session's temporary tables.
    overlay: Option<Arc<CatalogState>>,
    /// True if it has changed definitions that all sessions share.
    redefines: bool,
    temporary: Option<Box<Temporary>>,
    created: Vec<RelId>,
    dropped: Vec<RelId>,
    counts: RowCounts,
    /// The events of foreign keys and of deferrable keys, once there was one.
    checks: Option<Box<PendingChecks>>,
    savepoints: Option<Box<Savepoints>>,
    /// Moved on by each savepoint, and each time that one is gone back to.
    clock: u64,
    gone_portals: Vec<GonePortals>,
    /// The earliest of them since they were asked for.
    newly_gone: Option<u64>,
    serializable: SerializableReads,
}

/// The id of the transaction of a session, which has begun: assigned now if an expression has not asked for it (T3).
pub(crate) fn xid_of(storage: &Storage, proc: ProcId, slot: &ActivitySlot) -> Result<Xid> {
    if let Some(xid) = slot.transaction_id() {
        return Ok(xid);
    }
    // A transaction of a standby is read only, so this is one that asks for its id, or that a fault of ours has let through.
    if storage.is_standby() {
        return Err(EngineError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "cannot assign a transaction id during recovery",
        ));
    }
    let xid = storage.assign_xid(proc).map_err(storage_error)?;
    slot.set_transaction_id(xid);
    Ok(xid)
}

impl Transaction {
    pub(crate) fn new(
        storage: Arc<Storage>,
        catalog: Arc<Catalog>,
        slot: Arc<ActivitySlot>,
        closed: Arc<AtomicBool>,
        sessions: Arc<Mutex<OpenSessions>>,
        serializable: Arc<Serializable>,
        proc: ProcId,
    ) -> Transaction {
        Transaction {
            storage,
            catalog,
            slot,
            closed,
            sessions,
            log_lock_waits: None,
            proc,
            phase: Phase::None,
            isolation: IsolationLevel::ReadCommitted,
            read_only: false,
            deferrable: false,
            xid: None,
            long_values: Cell::new(0),
            command: 0,
            snapshot: SessionSnapshot::default(),
            has_snapshot: false,
            has_looked: false,
            seen: Arc::default(),
            caller_waits: false,
            holds_xmin: false,
            portals: Arc::default(),
            number: 0,
            start_us: 0,
            held: Vec::new(),
            locked: false,
            overlay: None,
            redefines: false,
            temporary: None,
            created: Vec::new(),
            dropped: Vec::new(),
            counts: RowCounts::default(),
            checks: None,
            savepoints: None,
            clock: 0,
            gone_portals: Vec::new(),
            newly_gone: None,
            serializable: SerializableReads::new(serializable),
        }
    }

    /// Starts a transaction.
    pub(crate) fn begin(&mut self, phase: Phase, isolation: IsolationLevel, read_only: bool, now_us: i64) {
        invariant!(
            T1,
            self.phase == Phase::None && self.xid.is_none() && self.held.is_empty() && !self.redefines,
            "a transaction begins, and the one before is {:?} with id {:?} and locks {:?}",
            self.phase,
            self.xid,
            self.held
        );
        self.phase = phase;
        self.isolation = isolation;
        self.read_only = read_only || self.storage.is_standby();
        self.command = 0;
        self.long_values.set(0);
        self.has_looked = false;
        self.number += 1;
        self.start_us = now_us;
        self.slot.set_transaction(now_us, 0);
        self.slot.set_transaction_number(self.number);
    }

    /// The status in ReadyForQuery.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.phase {
            Phase::None | Phase::Implicit => TransactionStatus::Idle,
            Phase::Block => TransactionStatus::InTransaction,
            Phase::Failed | Phase::FailedAtSavepoint => TransactionStatus::Failed,
        }
    }

    /// True if a transaction is open, the implicit one of a message included.
    pub(crate) fn is_open(&self) -> bool {
        self.phase != Phase::None
    }

    /// Its number among those of its session; that of the last one, if none is open.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its start, in microseconds since 2000.
    pub(crate) fn start_us(&self) -> i64 {
        self.start_us
    }

    /// True if it has taken a snapshot or an id, so that its isolation can no longer change.
    pub(crate) fn has_started_work(&self) -> bool {
        self.has_snapshot || self.has_looked || self.xid.is_some()
    }

    /// True if rows that it, or one of its portals, may still read are kept from going.
    pub(crate) fn keeps_snapshot(&self) -> bool {
        self.has_snapshot || Arc::strong_count(&self.portals) > 1
    }

    /// The storage.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The number of the next value that it stores apart; 54000 when it has stored too many.
    pub(crate) fn next_long_value(&self) -> Result<u32> {
        let number = self.long_values.get();
        let next = number.checked_add(1).ok_or_else(|| {
            EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a transaction cannot store more than 4294967295 long values",
            )
        })?;
        self.long_values.set(next);
        Ok(number)
    }

    /// True if changes by `xid` are this transaction's own.
    pub(crate) fn is_own(&self, xid: Xid) -> bool {
        self.xid == Some(xid)
    }

    /// Its id; assigned now if it has none.
    #[inline]
    pub(crate) fn assign_xid(&mut self) -> Result<Xid> {
        match self.xid {
            Some(xid) => Ok(xid),
            None => self.assign_xid_slow(),
        }
    }

    fn assign_xid_slow(&mut self) -> Result<Xid> {
        if self.read_only {
            return Err(EngineError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "cannot execute a statement that writes in a read-only transaction",
            ));
        }
        self.assign_new_xid()
    }

    /// As [`assign_xid`](Self::assign_xid), for a transaction that notifies, which one that is read only may.
    pub(crate) fn assign_xid_to_notify(&mut self) -> Result<Xid> {
        match self.xid {
            Some(xid) => Ok(xid),
            None => self.assign_new_xid(),
        }
    }

    fn assign_new_xid(&mut self) -> Result<Xid> {
        let xid = xid_of(&self.storage, self.proc, &self.slot)?;
        self.xid = Some(xid);
        Ok(xid)
    }

    /// T3: the transaction ends with the id that an expression has asked for.
    #[inline]
    fn take_asked_xid(&mut self) {
        if self.xid.is_none() {
            self.xid = self.slot.transaction_id();
        }
    }

    /// A statement begins: READ COMMITTED takes a new snapshot, the other levels their only one.
    #[inline]
    pub(crate) fn take_snapshot(&mut self) {
        if self.has_snapshot && self.isolation.keeps_snapshot() {
            return;
        }
        if self.isolation == IsolationLevel::Serializable {
            self.take_serializable_snapshot();
            return;
        }
        self.storage.take_session_snapshot(self.proc, &mut self.snapshot);
        self.has_snapshot = true;
    }

    /// As [`take_snapshot`](Self::take_snapshot), for a statement that was planned with these tables' definitions and
    /// holds their locks: the snapshot sees every transaction that made one of them.
    ///
    /// A new snapshot may miss a transaction that is between steps 7 and 8 of its commit (or replay is, on a standby):
    /// wait for its end, and take another. The snapshot of an earlier REPEATABLE READ statement stays, so that is 40001: rows it should see may be
    /// gone (TRUNCATE), and a new index does not lead to the versions it sees.
    #[inline]
    pub(crate) fn take_snapshot_for(
        &mut self,
        uses: &[TableUse],
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        invariant!(
            3 of engine,
            uses.iter().all(|table| self.holds_lock(table.oid)),
            "a snapshot for {uses:?} is taken with locks {:?}",
            self.held
        );
        let kept = self.has_snapshot && self.isolation.keeps_snapshot();
        if self.isolation == IsolationLevel::Serializable {
            self.ready_serializable_snapshot(interrupts)?;
        }
        self.take_snapshot();
        if uses.is_empty() {
            self.leave_replay_alone();
        } else {
            self.looks_at_tables();
        }
        while let Some(table) = self.unseen_definition(uses)? {
            if kept {
                return Err(EngineError::new(
                    SqlState::SERIALIZATION_FAILURE,
                    format!(
                        "could not serialize access: table \"{}\" was redefined concurrently",
                        table.name
                    ),
                ));
            }
            if self.storage.is_standby() {
                // The array does not know transactions of the primary.
                interrupts.check()?;
                std::thread::sleep(REPLAY_POLL);
            } else {
                self.wait_for_transaction(table.changed_by, interrupts, timeout)?;
            }
            if self.isolation == IsolationLevel::Serializable {
                self.renew_serializable_snapshot(interrupts)?;
            } else {
                self.storage.take_session_snapshot(self.proc, &mut self.snapshot);
            }
        }
        Ok(())
    }

    /// A statement without tables looks at no row, so on a standby its snapshot keeps none: otherwise replay would wait for
    /// it, and end it, though it may itself wait for replay (`pg_promote()`). What a transaction or a portal keeps stays.
    #[inline]
    fn leave_replay_alone(&self) {
        let keeps = self.isolation.keeps_snapshot() || self.holds_xmin;
        if self.storage.is_standby() && !keeps {
            self.storage.proc_array.clear_xmin(self.proc);
        }
    }

    /// The first table whose definition the snapshot lacks. What was defined before the start has no id; the maker of a
    /// published definition has committed (step 5).
    #[inline]
    fn unseen_definition<'a>(&self, uses: &'a [TableUse]) -> Result<Option<&'a TableUse>> {
        for table in uses {
            let xid = table.changed_by;
            let is_settled = !xid.is_valid() || self.is_own(xid);
            if !is_settled
                && !self
                    .storage
                    .sees_definition(&self.snapshot, xid)
                    .map_err(storage_error)?
            {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// A statement has ended: what it wrote becomes visible to the next.
    #[inline(always)]
    pub(crate) fn end_statement(&mut self) {
        if self.xid.is_some() {
            self.command += 1;
        }
        if self.has_snapshot && !self.isolation.keeps_snapshot() {
            self.has_snapshot = false;
            self.has_looked = true;
            // P1 of `portal`: the slot keeps the oldest xmin that it was given, so not clearing it is enough.
            self.holds_xmin = Arc::strong_count(&self.portals) > 1;
            if !self.holds_xmin {
                self.storage.proc_array.clear_xmin(self.proc);
            }
        }
    }

    /// Makes what was written so far visible to the rest of the same statement (DDL that reads what it has made).
    pub(crate) fn next_command(&mut self) {
        self.command += 1;
    }

    /// The transaction as the heap needs to know it.
    #[inline]
    pub(crate) fn context(&self) -> TxnContext<'_> {
        invariant!(T2, self.has_snapshot, "rows are read without a snapshot");
        TxnContext {
            storage: &self.storage,
            proc: self.proc,
            xid: self.xid,
            command: self.command,
            reader: Reader::of_session(&self.snapshot, &self.seen),
            changes: self.savepoints.as_deref().map(|savepoints| &savepoints.changes),
        }
    }

    /// The catalog as this transaction sees it.
    #[inline]
    pub(crate) fn catalog_state(&self) -> Arc<CatalogState> {
        match &self.overlay {
            Some(overlay) => Arc::clone(overlay),
            None => self.catalog.state(),
        }
    }

    /// The version of that catalog, which has the newest definitions from here on.
    #[inline]
    pub(crate) fn catalog_version(&mut self) -> u64 {
        if self.overlay.is_some() {
            self.refresh_overlay();
        }
        match &self.overlay {
            Some(overlay) => overlay.version(),
            None => self.catalog.version(),
        }
    }

    /// Replaces the catalog this transaction sees.
    pub(crate) fn set_catalog_state(&mut self, state: CatalogState) {
        invariant!(
            1 of catalog,
            self.xid.is_some() && self.holds_lock(CATALOG_REL),
            "definitions change with id {:?} and locks {:?}",
            self.xid,
            self.held
        );
        self.overlay = Some(Arc::new(state));
        self.redefines = true;
    }

    /// Its id if it has changed definitions that all sessions share; otherwise 0.
    #[inline]
    pub(crate) fn redefining_xid(&self) -> u64 {
        match (self.redefines, self.xid) {
            (true, Some(xid)) => xid.0,
            _ => 0,
        }
    }

    /// The file is this transaction's: unlinked if it rolls back.
    pub(crate) fn note_created(&mut self, rel: RelId) {
        self.created.push(rel);
    }

    /// True if the file was made since the newest savepoint, or since the transaction began if it has none.
    pub(crate) fn has_just_made(&self, rel: RelId) -> bool {
        let savepoints = self.savepoints.as_deref();
        let start = savepoints.map_or(0, Savepoints::created_before_newest);
        self.created[start..].contains(&rel)
    }

    /// The file is unlinked if the transaction commits.
    pub(crate) fn note_dropped(&mut self, rel: RelId) {
        self.dropped.push(rel);
    }

    /// Counts rows of a table that a statement has changed, for the background worker.
    #[inline]
    pub(crate) fn count_rows(&mut self, oid: u32, changes: RowChanges) {
        if let Some(savepoints) = &mut self.savepoints {
            savepoints.keep_count(self.counts.of(oid));
        }
        self.counts.count(oid, changes);
    }

    /// The part of its session that others see.
    pub(crate) fn activity(&self) -> Arc<ActivitySlot> {
        Arc::clone(&self.slot)
    }

    /// Counts a scan of all of a table.
    pub(crate) fn count_scan(&mut self, oid: u32) {
        self.counts.count_scan(oid);
    }

    /// Counts a scan of a table by an index.
    #[inline]
    pub(crate) fn count_index_scan(&mut self, table: u32, index: u32) {
        self.counts.count_index_scan(table, index);
    }

    /// Counts pieces of a table's long values that were written and deleted.
    pub(crate) fn count_pieces(&self, oid: u32, written: u64, deleted: u64) {
        self.counts.count_pieces(oid, written, deleted);
    }

    /// The table has no rows any more, if the transaction commits.
    pub(crate) fn count_truncation(&mut self, oid: u32) {
        self.counts.count_truncation(oid);
    }

    /// Hands over what the transactions before this one have counted. This one has counted nothing yet.
    pub(crate) fn hand_over_counts(&mut self) {
        let state = self.catalog_state();
        self.counts.hand_over(&state);
    }

    /// The definitions that this session sees, if they are others than the published ones.
    #[inline]
    pub(crate) fn overlay(&self) -> Option<Arc<CatalogState>> {
        self.overlay.clone()
    }

    /// True if a snapshot taken now would see the same, or the next statement takes a new one anyway.
    pub(crate) fn snapshot_is_current(&self) -> bool {
        let mut fresh = SessionSnapshot::default();
        self.storage.take_session_snapshot(self.proc, &mut fresh);
        !self.isolation.keeps_snapshot() || fresh.is_same_as(&self.snapshot)
    }

    /// The notes of what the session's answers depend on.
    pub(crate) fn seen_commits(&self) -> Arc<SeenCommits> {
        Arc::clone(&self.seen)
    }

    /// The events of constraints; there are some from now on.
    pub(crate) fn checks_mut(&mut self) -> &mut PendingChecks {
        self.checks.get_or_insert_default()
    }

    /// True if a statement has noted an event of a constraint, or a mode of SET CONSTRAINTS.
    #[inline]
    pub(crate) fn has_checks(&self) -> bool {
        self.checks.is_some()
    }

    /// True if events of constraints wait.
    pub(crate) fn has_pending_checks(&self) -> bool {
        let checks = self.checks.as_ref();
        checks.is_some_and(|checks| !checks.is_empty())
    }

    /// True if events of constraints wait for the commit.
    pub(crate) fn has_deferred_checks(&self) -> bool {
        let checks = self.checks.as_ref();
        checks.is_some_and(|checks| checks.has_deferred())
    }

    /// Exchanges the snapshot for one of this moment; the one before.
    pub(crate) fn take_latest_snapshot(&mut self) -> SessionSnapshot {
        let mut fresh = SessionSnapshot::default();
        self.storage.take_session_snapshot(self.proc, &mut fresh);
        std::mem::replace(&mut self.snapshot, fresh)
    }

    /// Exchanges the snapshot for this one.
    pub(crate) fn exchange_snapshots(&mut self, other: &mut SessionSnapshot) {
        std::mem::swap(&mut self.snapshot, other);
    }

    /// Runs `work` under a snapshot of this moment, whatever the isolation level.
    pub(crate) fn with_fresh_snapshot<T>(&mut self, work: impl FnOnce(&mut Transaction) -> T) -> T {
        let mut fresh = SessionSnapshot::default();
        self.storage.take_session_snapshot(self.proc, &mut fresh);
        let kept = std::mem::replace(&mut self.snapshot, fresh);
        let counted = self.stop_counting_reads();
        let result = work(self);
        self.count_reads(counted);
        self.snapshot = kept;
        result
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !matches!(self.phase, Phase::None) {
            self.rollback();
        }
        self.counts.hand_over(&self.catalog.state());
    }
}
