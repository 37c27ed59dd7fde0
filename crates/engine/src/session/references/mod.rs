//! Foreign keys: the events that statements have noted of them are looked at here ([`super::checks`] says when).
//!
//! # Invariant
//!
//! At the end of a transaction that commits, each row of a referencing table whose key is not NULL names a row of the other
//! table, whatever other transactions have committed meanwhile (NOT VALID: each row that was stored since).
//!
//! # Steps
//!
//! 1. A row was stored: the row that it names is looked for by the unique index, and locked as FOR KEY SHARE does. None:
//!    23503. The same key is looked for once in a run of such events.
//! 2. A row is gone, or has another key: what ON DELETE or ON UPDATE says. NO ACTION and RESTRICT look for a row that names
//!    the key; if there is one, 23503, but NO ACTION lets another row with the key take its place. The other actions change
//!    the rows that name it.
//! 3. The actions are statements themselves, whose events come behind the others. All is done when no event is left.
//!
//! # Two sessions
//!
//! *The key is taken away while a row comes that names it.* The row's session locks the key's row, so one of the two waits
//! for the other's end. If the row comes first, the session that takes the key away finds it by a snapshot that it takes
//! then, when it has the row for itself: every row that names the key was stored under a lock on it, and so is committed
//! or its own by now. Under REPEATABLE READ too: the transaction's own snapshot would miss a row that was stored after it,
//! and leave it without a parent. An action that would change a row which that snapshot does not show gives up (40001).
//! If the key goes first, the session of the row waits, and finds it gone; its REPEATABLE READ gives up with 40001.
//!
//! *A snapshot from before the statement's end* would do for the check of a row: what it shows is locked and looked at
//! again in its newest version. But a row that a concurrent transaction has committed since the statement began would not
//! be found, so READ COMMITTED takes one for each check.

mod errors;
mod statements;

use std::collections::HashSet;
use std::sync::Arc;

use clearway_storage::SessionSnapshot;
use clearway_storage::heap::{Heap, Tid, VersionOutcome};
use clearway_txn::RowLockMode;

use crate::catalog::references::Reference;
use crate::convert::storage_error;
use crate::executor::scan::Scan;
use crate::executor::subquery::SubqueryResults;
use crate::executor::{Execution, InnerPlans, heap_rel, modify, select};
use crate::session::Session;
use crate::session::prepared::{CachedPlan, Prepared, View};
use crate::spill::record::write_row;
use crate::transaction::RowChange;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::{RowsStatement, Statement, TableScan};
use clearway_sql::value::Value;
use clearway_sql::{ReferentialAction, TableDef};
pub(crate) use statements::ReferenceStatements;
use statements::{Purpose, statement_text};

/// A foreign key with both of its tables.
struct Joined {
    reference: Reference,
    parent: Arc<TableDef>,
}

/// The keys that were found in a run of checks: their rows are locked, and stay until this transaction takes them away.
#[derive(Debug, Default)]
pub(super) struct Found {
    keys: HashSet<Vec<u8>>,
    bytes: usize,
}

impl Found {
    fn forget(&mut self) {
        self.keys.clear();
        self.bytes = 0;
    }

    fn add(&mut self, key: Vec<u8>, bytes_max: usize) {
        if self.bytes > bytes_max {
            self.forget();
        }
        self.bytes += key.len() + size_of::<Vec<u8>>() * 2;
        self.keys.insert(key);
    }
}

/// The snapshot of a statement of a foreign key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// That of the transaction's next statement.
    ByStatement,
    /// The same, and what is read counts as the transaction's own reads.
    AsOwn,
    /// All that is committed, whatever the isolation level.
    Latest,
}

impl Session {
    /// Looks at an event of a foreign key.
    pub(super) fn fire_reference(&mut self, key: u32, change: &RowChange, found: &mut Found) -> Result<()> {
        let Some(joined) = self.joined(key) else {
            return Ok(());
        };
        match change {
            RowChange::Stored(tid, values) => self.check_stored(&joined, *tid, values, found),
            RowChange::Deleted(before) => {
                found.forget();
                self.key_gone(&joined, before, None)
            }
            RowChange::Rekeyed(before, after) => {
                found.forget();
                self.key_gone(&joined, before, Some(after))
            }
            RowChange::KeyInDoubt(_) => Err(EngineError::internal(
                "an event of a unique key is a foreign key's",
            )),
        }
    }

    /// The foreign key of this number; `None` if it is dropped.
    fn joined(&mut self, key: u32) -> Option<Joined> {
        self.txn.catalog_version();
        let state = self.txn.catalog_state();
        let reference = state.foreign_key(key)?;
        let parent = Arc::clone(&state.table(reference.key.parent)?.def);
        Some(Joined { reference, parent })
    }

    /// Step 1.
    fn check_stored(&mut self, joined: &Joined, tid: Tid, values: &[Value], found: &mut Found) -> Result<()> {
        let mut known = joined.reference.key.oid.to_ne_bytes().to_vec();
        write_row(values, &mut known);
        if found.keys.contains(&known) || !self.is_still_there(joined, tid)? {
            return Ok(());
        }
        if values.iter().any(Value::is_null) {
            return Err(errors::mixed_nulls(joined));
        }
        if self.run_reference(joined, Purpose::FindParent, values, Seen::ByStatement)? == 0 {
            self.count_answer(joined, Purpose::FindParent, values)?;
            return Err(self.no_parent(joined, values));
        }
        found.add(known, self.settings.work_mem);
        Ok(())
    }

    /// False if the transaction has replaced or deleted the row at this place, so that it need not satisfy anything.
    fn is_still_there(&mut self, joined: &Joined, tid: Tid) -> Result<bool> {
        self.txn.next_command();
        self.txn.take_snapshot();
        let heap = Heap::new(heap_rel(&joined.reference.child.def));
        let state = heap.version(&self.txn.context(), tid, RowLockMode::Update, |_| ());
        Ok(matches!(
            state.map_err(storage_error)?,
            VersionOutcome::NoConflict(()) | VersionOutcome::Wait(_)
        ))
    }

    /// Step 2; `after`: the key that the row has now, if it is there.
    fn key_gone(&mut self, joined: &Joined, before: &[Value], after: Option<&[Value]>) -> Result<()> {
        let key = &joined.reference.key;
        let (action, purpose) = match after {
            None => (key.on_delete, Purpose::OnDelete),
            Some(_) => (key.on_update, Purpose::OnUpdate),
        };
        match action {
            ReferentialAction::NoAction | ReferentialAction::Restrict => {
                self.require_no_children(joined, before, action)
            }
            ReferentialAction::Cascade => {
                let mut params = before.to_vec();
                let purpose = match after {
                    None => Purpose::DeleteChildren,
                    Some(after) => {
                        params.extend_from_slice(after);
                        purpose
                    }
                };
                self.run_reference(joined, purpose, &params, Seen::Latest)
                    .map(drop)
            }
            ReferentialAction::SetNull => self
                .run_reference(joined, purpose, before, Seen::Latest)
                .map(drop),
            ReferentialAction::SetDefault => {
                self.run_reference(joined, purpose, before, Seen::Latest)?;
                // A default that is the key which is gone is no change, of which there is no event.
                self.require_no_children(joined, before, ReferentialAction::NoAction)
            }
        }
    }

    fn require_no_children(
        &mut self,
        joined: &Joined,
        before: &[Value],
        action: ReferentialAction,
    ) -> Result<()> {
        if self.run_reference(joined, Purpose::FindChild, before, Seen::Latest)? == 0 {
            return Ok(());
        }
        let may_be_kept = action == ReferentialAction::NoAction;
        if may_be_kept && self.run_reference(joined, Purpose::FindKeptParent, before, Seen::Latest)? > 0 {
            return Ok(());
        }
        self.count_answer(joined, Purpose::FindChild, before)?;
        let parent = &joined.parent;
        let is_seen = self.may_read(parent, &joined.reference.key.parent_places(parent));
        Err(errors::still_referenced(joined, before, is_seen))
    }

    fn no_parent(&self, joined: &Joined, values: &[Value]) -> EngineError {
        let child = &joined.reference.child.def;
        let is_seen = self.may_read(child, &joined.reference.key.places(child));
        errors::no_parent(joined, values, is_seen)
    }

    /// True if the session's role may read these columns, so that an error may show their values.
    fn may_read(&self, table: &TableDef, columns: &[u16]) -> bool {
        let state = self.txn.catalog_state();
        state.may_read_columns(self.identity.current, table, columns)
    }

    /// A refusal tells what is there, and a transaction with savepoints may go on with that: no lock sees to it then, so a
    /// serializable one has read it.
    fn count_answer(&mut self, joined: &Joined, purpose: Purpose, values: &[Value]) -> Result<()> {
        if self.txn.marks_reads() {
            self.run_reference(joined, purpose, values, Seen::AsOwn)?;
        }
        Ok(())
    }

    /// 23503 if a row that is there does not satisfy a foreign key.
    pub(super) fn validate_reference(&mut self, key: u32) -> Result<()> {
        let Some(joined) = self.joined(key) else {
            return Ok(());
        };
        let prepared = self.reference_statement(&joined, Purpose::FindOrphan)?;
        let mut orphan = None;
        self.run_prepared(&prepared, &[], Seen::Latest, &mut |row| {
            orphan = Some(row.to_vec())
        })?;
        match orphan {
            None => Ok(()),
            Some(values) if values.iter().any(Value::is_null) => Err(errors::mixed_nulls(&joined)),
            Some(values) => Err(self.no_parent(&joined, &values)),
        }
    }

    /// Runs a statement of a foreign key; the number of rows that it has found or changed.
    fn run_reference(
        &mut self,
        joined: &Joined,
        purpose: Purpose,
        params: &[Value],
        seen: Seen,
    ) -> Result<u64> {
        let prepared = self.reference_statement(joined, purpose)?;
        self.run_prepared(&prepared, params, seen, &mut |_| {})
    }

    /// The statement of a foreign key for a purpose.
    fn reference_statement(&mut self, joined: &Joined, purpose: Purpose) -> Result<Arc<Prepared>> {
        let version = self.txn.catalog_version();
        let key = &joined.reference.key;
        if let Some(prepared) = self.reference_statements.get(key.oid, purpose, version) {
            return Ok(prepared);
        }
        let text = statement_text(key, &joined.reference.child.def, &joined.parent, purpose);
        let kept = self.reference_statements.renew(key.oid, purpose, version, &text);
        if let Some(prepared) = kept {
            return Ok(prepared);
        }
        let parsed = clearway_sql::parse(&text.sql)?.pop();
        let types: Vec<_> = text.parameters.iter().copied().map(Some).collect();
        let state = self.txn.catalog_state();
        let view = View {
            state: &state,
            viewer: self.viewer(),
        };
        let prepared = Prepared::new(text.sql.into(), parsed, &types, view, &self.interrupts, None)?;
        // A column's type may become another.
        let prepared = Arc::new(prepared.in_simple_query());
        self.statements.planned(&prepared);
        self.reference_statements
            .put(key.oid, purpose, version, &prepared);
        Ok(prepared)
    }

    /// Runs a statement inside the one that is running; the number of rows that it has found or changed.
    fn run_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        params: &[Value],
        seen: Seen,
        each: &mut dyn FnMut(&[Value]),
    ) -> Result<u64> {
        let cached = self.current_plan(prepared)?;
        let cached = self.lock_tables(prepared, cached)?;
        // What was written so far is seen.
        self.txn.next_command();
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        if seen == Seen::AsOwn {
            return self.run_cached(&cached, params, None, each);
        }
        // Locks see to what these statements promise, whatever the isolation level: their reads are not the transaction's.
        let counted = self.txn.stop_counting_reads();
        let result = if seen == Seen::ByStatement || !self.txn.isolation.keeps_snapshot() {
            self.run_cached(&cached, params, None, each)
        } else {
            let mut own = self.txn.take_latest_snapshot();
            let result = self.run_cached(&cached, params, Some(&mut own), each);
            self.txn.exchange_snapshots(&mut own);
            result
        };
        self.txn.count_reads(counted);
        result
    }

    /// `own`: the transaction's snapshot, if the rows are seen by another.
    fn run_cached(
        &mut self,
        cached: &CachedPlan,
        params: &[Value],
        own: Option<&mut SessionSnapshot>,
        each: &mut dyn FnMut(&[Value]),
    ) -> Result<u64> {
        let Statement::Rows(statement) = &cached.plan.statement else {
            return Err(EngineError::internal("a statement of a foreign key has no rows"));
        };
        let mut results = SubqueryResults::default();
        let inner = InnerPlans::of(&cached.plan);
        self.with_execution(params, inner, &mut results, |execution, _| {
            let mut sink = |_: &mut Execution<'_>, row: &[Value]| {
                each(row);
                Ok(())
            };
            match statement {
                RowsStatement::Select(plan) => select::run(execution, plan, &mut sink),
                RowsStatement::Update(plan) => {
                    require_seen(execution, &plan.scan, own)?;
                    modify::update(execution, plan, &mut sink)
                }
                RowsStatement::Delete(plan) => {
                    require_seen(execution, &plan.scan, own)?;
                    modify::delete(execution, plan, &mut sink)
                }
                _ => Err(EngineError::internal("a statement of a foreign key is another")),
            }
        })
    }
}

/// 40001 if a row of a scan is not one that the transaction's own snapshot shows.
///
/// Both snapshots show rows in the same order: each row of the one is looked for among those of the other that are next.
fn require_seen(
    execution: &mut Execution<'_>,
    plan: &TableScan,
    own: Option<&mut SessionSnapshot>,
) -> Result<()> {
    let Some(own) = own else { return Ok(()) };
    let mut latest = Scan::open(execution, plan)?;
    execution.txn.exchange_snapshots(own);
    let opened = Scan::open(execution, plan);
    execution.txn.exchange_snapshots(own);
    let mut before = opened?;
    let result = loop {
        let Some(tid) = latest.next(execution)? else {
            break Ok(());
        };
        execution.txn.exchange_snapshots(own);
        let found = loop {
            match before.next(execution) {
                Ok(Some(other)) if other != tid => {}
                other => break other,
            }
        };
        execution.txn.exchange_snapshots(own);
        if found?.is_none() {
            break execution.check_concurrent("update");
        }
    };
    latest.close(execution);
    before.close(execution);
    result
}
