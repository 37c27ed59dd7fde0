//! Running plans.
//!
//! | module | job |
//! | --- | --- |
//! | `scan` | rows of a table that satisfy WHERE, by index or from end to end; locking them |
//! | `select` | SELECT; its `rows`: joins, queries in FROM, set operations |
//! | `check_option` | WITH CHECK OPTION of views |
//! | `long_values` | values beyond a page |
//! | `marks` | what serializable transactions have written |
//! | `not_null`, `place` | NULL where it is refused; the place of a row as a value |
//! | `subquery` | queries inside expressions |
//! | `change` | statements of WITH that change rows |
//! | `rounds` | duplicates over the rounds of a recursive query |
//! | `measure`, `measured_statement` | operators that are measured; statements that EXPLAIN ANALYZE runs |
//! | `modify`, `modify_joined` | INSERT, UPDATE, DELETE; over one table, over several |
//! | `changed_columns` | the columns that an UPDATE changes |
//! | `modify_merge` | MERGE |
//! | `on_conflict` | ON CONFLICT of INSERT |
//! | `unique` | index entries and the duplicates they find |
//! | `references` | what foreign keys are told of changed rows |
//! | `group` | GROUP BY, DISTINCT and DISTINCT arguments within a bound of memory |
//! | `key_hash` | the hash of a key, for tables of one statement |
//!
//! # Two sessions, one row
//!
//! UPDATE, DELETE and FOR UPDATE all may meet a row version that another transaction has updated, deleted or
//! locked. What happens then is one protocol, in [`Execution::wait_for_row`] and its callers:
//!
//! 1. The heap names the transaction in the way (an id that still runs): the one that has changed the row or locked it
//!    alone, or one of those that share it.
//! 2. The session takes the row's *tuple lock*: its holder is the first in line of all sessions that wait for
//!    the row. Without it, all waiters would be woken at once and the first to run would win: the oldest
//!    might wait for ever. One that shares the row already and wants more does not queue: the first in line may wait for
//!    it. One that could share the row queues, too, once enough others have passed the first in line (H5 of
//!    `clearway_txn::RowHolders`).
//! 3. It waits for that transaction's end, and asks the heap again.
//! 4. Rolled back: the row is as it was seen; go on. Committed: REPEATABLE READ gives up with 40001, since the row it
//!    should change is not the one its snapshot shows. READ COMMITTED follows the row ([`scan::newest`]): past each
//!    version that was replaced, waiting as in 2 and 3 at each version that another transaction holds, until it finds
//!    one that is free. On that version, and on no other, the whole WHERE clause is evaluated; the statement goes on
//!    with the version or leaves the row out. Waiting at a newer version takes that version's tuple lock too and keeps
//!    the older ones, so that a session behind in the queue cannot overtake.
//!
//!    Judging the first version that replaced the seen one is wrong. A transaction may take a row out of a group and
//!    put it back: the version in between is in no state that any transaction ever committed.
//! 5. When the row is changed, its tuple locks are given back: from now on the row itself bears this session's id.

mod change;
mod changed_columns;
mod check_option;
pub(crate) mod checks;
pub(crate) mod generated;
mod group;
mod key_hash;
pub(crate) mod long_values;
pub(crate) mod marks;
pub(crate) mod measure;
pub(crate) mod measured_statement;
pub(crate) mod modify;
mod modify_joined;
pub(crate) mod modify_merge;
pub(crate) mod not_null;
mod on_conflict;
pub(crate) mod place;
pub(crate) mod references;
mod rounds;
pub(crate) mod scan;
pub(crate) mod select;
mod series;
pub(crate) mod shown_values;
pub(crate) mod subquery;
pub(crate) mod unique;

use std::sync::Arc;
use std::time::Duration;

use clearway_machine::invariant;
use clearway_storage::Storage;
use clearway_storage::heap::Tid;
use clearway_txn::{InTheWay, LockMode, LockTag};

use crate::catalog::TableEntry;
use crate::identity::Identity;
use crate::interrupt::Interrupts;
use crate::memory;
use crate::spill::SpillOptions;
use crate::transaction::Transaction;
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::Expr;
use clearway_sql::plan::{
    Change, IsolationLevel, LockWaitPolicy, Plan, RowsStatement, SelectPlan, TableAccess,
};
use clearway_sql::value::{TextsTogether, Value};
use clearway_sql::{TableDef, TableKind};
use subquery::SubqueryResults;

/// Appends the values of expressions for an input row; 54000 when their texts are too long together.
#[inline]
pub(crate) fn evaluate_row(
    exprs: &[Expr],
    input: &[Value],
    context: &EvalContext<'_>,
    row: &mut Vec<Value>,
) -> Result<()> {
    let mut texts = TextsTogether::default();
    for expr in exprs {
        let value = expr.eval(input, context)?;
        texts.add(&value)?;
        row.push(value);
    }
    Ok(())
}

/// Rows between two looks at the interrupts.
const TICKS_PER_CHECK: u32 = 256;

/// The relation locks that a statement takes before it runs: table numbers and modes.
pub(crate) fn locks(plan: &Plan, statement: &RowsStatement) -> Vec<(u32, LockMode)> {
    let mut locks = read_locks(plan);
    let mut add = |table: &TableDef, mode: LockMode| add_lock(&mut locks, table, mode);
    let of_with = plan.changes.iter().map(|change| &*change.statement);
    for statement in of_with.chain([statement]) {
        if let Some(table) = statement.changed_table() {
            add(table, LockMode::RowExclusive);
        }
        if let RowsStatement::Explain(explained) = statement {
            for table in &explained.changed {
                add(table, LockMode::RowExclusive);
            }
        }
    }
    locks
}

/// The locks of the tables that a statement reads.
pub(crate) fn read_locks(plan: &Plan) -> Vec<(u32, LockMode)> {
    let mut locks = Vec::new();
    for read in &plan.reads {
        let mode = match read.locked {
            Some(_) => LockMode::RowShare,
            None => LockMode::AccessShare,
        };
        add_lock(&mut locks, &read.table, mode);
    }
    locks
}

fn add_lock(locks: &mut Vec<(u32, LockMode)>, table: &TableDef, mode: LockMode) {
    if table.kind != TableKind::Virtual && !locks.contains(&(table.oid, mode)) {
        locks.push((table.oid, mode));
    }
}

/// Gives a virtual table's rows.
pub(crate) type VirtualRows<'a> = &'a dyn Fn(&TableDef) -> Vec<Vec<Value>>;

/// Buffers that live as long as the session, so that a statement allocates little.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) tids: Vec<Tid>,
    pub(crate) changes: modify::Changes,
}

/// The plans that a statement has beside its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InnerPlans<'p> {
    /// The queries inside its expressions, and its common table expressions.
    pub(crate) subqueries: &'p [Arc<SelectPlan>],
    /// The statements of its WITH that change rows.
    pub(crate) changes: &'p [Change],
    /// The statement's uses of tables.
    pub(crate) accesses: &'p [TableAccess],
}

impl<'p> InnerPlans<'p> {
    /// Those of a statement.
    pub(crate) fn of(plan: &'p Plan) -> InnerPlans<'p> {
        InnerPlans {
            subqueries: &plan.subqueries,
            changes: &plan.changes,
            accesses: &plan.accesses,
        }
    }
}

/// One statement's run.
pub(crate) struct Execution<'a> {
    pub(crate) storage: &'a Arc<Storage>,
    pub(crate) txn: &'a mut Transaction,
    pub(crate) eval: EvalContext<'a>,
    pub(crate) interrupts: &'a Interrupts,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) virtual_rows: VirtualRows<'a>,
    /// The memory that a stage may keep, and the place of the rest.
    pub(crate) spill: &'a SpillOptions,
    /// Memory that making an index may keep.
    pub(crate) maintenance_bytes: usize,
    pub(crate) scratch: &'a mut Scratch,
    /// The roles of the session, and the name that its client has logged in with.
    pub(crate) identity: &'a Identity,
    pub(crate) login: &'a str,
    /// The queries inside the statement's expressions.
    pub(crate) subqueries: &'a [Arc<SelectPlan>],
    /// The statements of its WITH that change rows.
    pub(crate) changes: &'a [Change],
    /// The statement's uses of tables.
    pub(crate) accesses: &'a [TableAccess],
    /// The rows of those of them that need nothing of the row around them.
    pub(crate) results: &'a mut SubqueryResults,
    pub(crate) ticks: u32,
    /// Rows that conditions have taken away, as far as they are counted.
    pub(crate) removed: u32,
}

impl Execution<'_> {
    /// Counts a row; now and then looks whether to stop.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks += 1;
        if self.ticks < TICKS_PER_CHECK && !memory::attention() {
            return Ok(());
        }
        self.ticks = 0;
        self.interrupts.check()
    }

    /// The error that SET would give for this value of a setting.
    pub(crate) fn check_setting(&self, name: &str, value: &str) -> Result<()> {
        crate::settings::Settings::check_may_set(name, self.identity.is_superuser)?;
        crate::settings::Settings::new()
            .would_show(name, Some(value))
            .map(drop)
    }

    /// Looks whether to stop.
    pub(crate) fn check_interrupts(&self) -> Result<()> {
        self.interrupts.check()
    }

    /// The catalog entry of a table in a plan. Its lock is held, and the plan's version has been compared since.
    pub(crate) fn entry(&self, table: &TableDef) -> Result<Arc<TableEntry>> {
        invariant!(
            2 of catalog,
            self.txn.holds_lock(table.oid),
            "the definition of table \"{}\" is used without a lock",
            table.name
        );
        self.txn.catalog_state().table(table.oid).cloned().ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", table.name),
            )
        })
    }

    /// Waits until the transaction that is in a row's way has ended: steps 2 and 3 of the protocol above.
    ///
    /// `queued` tells which tuple locks are held, this one afterwards. `false`: the policy is not to wait, and to leave
    /// the row out.
    pub(crate) fn wait_for_row(
        &mut self,
        table: &TableDef,
        tid: Tid,
        in_the_way: InTheWay,
        policy: LockWaitPolicy,
        queued: &mut Queued,
    ) -> Result<bool> {
        match policy {
            LockWaitPolicy::Block => {}
            LockWaitPolicy::SkipLocked => return Ok(false),
            LockWaitPolicy::NoWait => {
                return Err(EngineError::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on row in relation \"{}\"", table.name),
                ));
            }
        }
        if !in_the_way.is_holder {
            self.queue_for_row(table, tid, queued)?;
        }
        self.txn
            .wait_for_transaction(in_the_way.xid, self.interrupts, self.lock_timeout)?;
        Ok(true)
    }

    /// Waits until the session is the first in a row's queue: step 2.
    pub(crate) fn queue_for_row(&mut self, table: &TableDef, tid: Tid, queued: &mut Queued) -> Result<()> {
        let tag = LockTag::Tuple {
            rel: heap_rel(table),
            block: tid.block,
            slot: tid.slot,
        };
        if queued.0.last() != Some(&tag) {
            self.txn
                .wait_for_lock(tag, LockMode::Exclusive, self.interrupts, self.lock_timeout)?;
            queued.0.push(tag);
        }
        Ok(())
    }

    /// The error of step 4 for REPEATABLE READ; `Ok` when the newest version may be followed.
    pub(crate) fn check_concurrent(&self, what: &str) -> Result<()> {
        match self.txn.isolation {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Ok(()),
            IsolationLevel::RepeatableRead | IsolationLevel::Serializable => Err(EngineError::new(
                SqlState::SERIALIZATION_FAILURE,
                format!("could not serialize access due to concurrent {what}"),
            )),
        }
    }
}

/// The tuple locks that a session holds while it works on a row: one for each version at which another
/// transaction was in the way.
///
/// All are kept until the row is done with. If a session gave up the lock on an older version earlier, the
/// next session in line there could find a newer version free and overtake it. Locks are taken from older to
/// newer versions, so they cause no circular wait.
#[derive(Debug, Default)]
pub(crate) struct Queued(Vec<LockTag>);

impl Queued {
    /// Gives the places up. On the error path the end of the transaction does it.
    #[inline]
    pub(crate) fn release(&mut self, txn: &mut Transaction) {
        for tag in self.0.drain(..) {
            txn.unlock(tag, LockMode::Exclusive);
        }
    }
}

/// The storage relation of a table's heap.
#[inline]
pub(crate) fn heap_rel(table: &TableDef) -> u32 {
    match table.kind {
        TableKind::Heap { rel } => rel,
        TableKind::Virtual => unreachable!("a virtual table has no heap"),
        TableKind::View => unreachable!("a view has no heap"),
    }
}
