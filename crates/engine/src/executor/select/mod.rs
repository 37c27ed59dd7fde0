//! SELECT: rows from a source, through grouping, projection, DISTINCT, sorting and LIMIT.
//!
//! ```text
//! source ─▶ [group] ─▶ [windows] ─▶ project ─▶ [distinct] ─▶ [sort ─▶ [distinct on]] ─▶ [lock] ─▶ offset, limit ─▶ row
//! ```
//!
//! A SELECT is pulled: [`Select::next`] makes one row. Between two calls it holds no latch, no pin and no
//! borrow of its plan, so a portal can keep it for as long as its transaction lasts. What needs no sorting
//! and no grouping streams: one row is in memory. Grouping, DISTINCT and sorting keep `work_mem` bytes each
//! and put the rest into temporary files (`spill`); the rows and their order are the same however much that
//! is. With a limit, sorting keeps no more than twice the rows that can come out.
//!
//! FOR UPDATE locks after sorting and before the limit, so that `ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED` locks what
//! it returns. A row that changed while its lock was waited for is looked at again (READ COMMITTED) and projected
//! anew, but keeps its place in the order.

mod input;
mod lock;
mod project;
pub(crate) mod rows;
mod windows;

use clearway_storage::heap::Tid;

use crate::executor::Execution;
use crate::executor::group::{By, Distinct, GroupRows, Grouping};
use crate::executor::long_values::restored;
use crate::executor::measure::{Loop, Stretch};
use crate::executor::place::place_of;
use crate::spill::record::{read_row, read_u64, write_row, write_sort_key};
use crate::spill::{Sorted, Sorter};
use clearway_sql::Expr;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{
    AggregatePlan, Counter, LockedRows, LockedTable, SelectPlan, SortKey, Source, StageCounters,
};
use clearway_sql::value::{DataType, TextsTogether, Value};
use input::Input;
pub(crate) use project::take_row;
use project::{project, project_taking};
use windows::WindowRows;

/// Receives output rows.
pub(crate) type Sink<'s> = dyn FnMut(&mut Execution<'_>, &[Value]) -> Result<()> + 's;

/// Receives output rows, and may take values out of them.
pub(crate) type TakingSink<'s> = dyn FnMut(&mut Execution<'_>, &mut [Value]) -> Result<()> + 's;

/// Runs a SELECT; the number of rows that went to `sink`.
pub(crate) fn run(execution: &mut Execution<'_>, plan: &SelectPlan, sink: &mut Sink<'_>) -> Result<u64> {
    run_giving(execution, plan, &mut |execution, row| sink(execution, row))
}

/// The same, of rows that nothing reads behind the sink.
pub(crate) fn run_giving(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    sink: &mut TakingSink<'_>,
) -> Result<u64> {
    let mut rows = Select::default();
    rows.start(execution, plan)?;
    let mut sent = 0;
    while rows.next(execution, plan)? {
        sink(execution, rows.row_mut(plan))?;
        sent += 1;
    }
    rows.close(execution);
    Ok(sent)
}

/// A running SELECT apart from its plan, which each call is given.
///
/// It is made where it stays, and what a point SELECT has no use for is boxed: moving it is a copy of all of it.
#[derive(Debug, Default)]
pub(crate) struct Select {
    input: Input,
    /// Of a SELECT with DISTINCT.
    distinct: Option<Box<DistinctRows>>,
    /// The output of sorting, once all input has been read.
    sorted: Option<Box<SortedRows>>,
    offset: u64,
    /// The most rows that can still come out.
    remaining: u64,
    output: Vec<Value>,
    /// The place of the current row's version in its table, if it comes from one table alone.
    place: Option<Tid>,
}

/// The rows that DISTINCT lets through.
#[derive(Debug)]
enum DistinctRows {
    /// While the input lasts.
    Early(Distinct),
    /// Those that come out at its end.
    Late(Sorted),
    /// No more.
    Done,
}

/// The output of sorting.
#[derive(Debug)]
struct SortedRows {
    rows: Sorted,
    /// Of a SELECT with DISTINCT ON: the bytes of its keys in the last row that came out.
    last: Option<Vec<u8>>,
}

// With all parts inside it was several times as large, and moving it took 8 % of a point SELECT's instructions.
const _: () = assert!(size_of::<Select>() <= 192);

impl Select {
    /// Starts a SELECT. Its table is locked and the snapshot taken.
    pub(crate) fn open(execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<Select> {
        let mut select = Select::default();
        select.start(execution, plan)?;
        Ok(select)
    }

    /// [`open`](Self::open) in place.
    fn start(&mut self, execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<()> {
        let limit = match &plan.limit {
            Some(limit) => row_count(execution, limit, SqlState::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT")?,
            None => None,
        };
        let offset = match &plan.offset {
            Some(offset) => row_count(execution, offset, SqlState::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET")?,
            None => None,
        };
        match (limit, &plan.aggregate) {
            (Some(0), _) => {}
            (_, Some(aggregate)) => {
                self.input = Input::Groups(Box::new(measuring(
                    execution,
                    plan,
                    |counters| &counters.aggregate,
                    |execution| group(execution, plan, aggregate),
                )?));
            }
            (_, None) => self.input = Input::open(execution, plan)?,
        }
        if let Some(stage) = &plan.windows {
            let input = std::mem::take(&mut self.input);
            self.input = Input::Windows(Box::new(WindowRows::new(input, stage)));
        }
        if plan.distinct {
            let visible = plan.columns.iter().take(plan.visible);
            let types: Vec<DataType> = visible.map(|column| column.data_type).collect();
            if let Source::Measured(measured) = &plan.source {
                Counter::add(&measured.counters.distinct.loops, 1);
            }
            let distinct = DistinctRows::Early(Distinct::new(types, execution.spill));
            self.distinct = Some(Box::new(distinct));
        }
        self.output = execution.scratch.rows.pop().unwrap_or_default();
        // Without groups no more rows come out than come in.
        let most = match plan.aggregate {
            Some(_) => None,
            None => plan.stop_after,
        };
        self.offset = offset.unwrap_or(0);
        self.remaining = limit.unwrap_or(u64::MAX).min(most.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Goes to the next row, if there is one.
    pub(crate) fn next(&mut self, execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<bool> {
        while self.remaining > 0 {
            let found = if plan.sort.is_empty() {
                self.next_distinct(execution, plan)?
            } else {
                self.next_sorted(execution, plan)?
            };
            let Some(tid) = found else {
                self.remaining = 0;
                break;
            };
            let wanted = match tid {
                Some(tid) => match plan.lock {
                    Some(row_lock) => lock::lock(execution, plan, (tid, row_lock), &mut self.output)?,
                    None => true,
                },
                None => match &plan.locked {
                    Some(locked) => lock::lock_all(execution, plan, locked, &mut self.output)?,
                    None => true,
                },
            };
            if !wanted {
                continue;
            }
            if self.offset > 0 {
                self.offset -= 1;
                continue;
            }
            self.remaining -= 1;
            self.place = tid;
            return Ok(true);
        }
        Ok(false)
    }

    /// The place of the current row's version in its table, if it comes from one table alone.
    pub(crate) fn place(&self) -> Option<Tid> {
        self.place
    }

    /// The place of the current row's version in one of the tables whose rows are locked.
    pub(crate) fn locked_place(&self, locked: &LockedRows, table: &LockedTable) -> Option<Tid> {
        let at = locked.kept.binary_search(&table.place).ok()?;
        place_of(self.output.get(locked.first + at)?)
    }

    /// The current row.
    #[inline]
    pub(crate) fn row(&self, plan: &SelectPlan) -> &[Value] {
        &self.output[..plan.visible]
    }

    /// The same, to take values out of: the next row does not need them.
    #[inline]
    pub(crate) fn row_mut(&mut self, plan: &SelectPlan) -> &mut [Value] {
        &mut self.output[..plan.visible]
    }

    /// Gives the buffers back.
    pub(crate) fn close(&mut self, execution: &mut Execution<'_>) {
        // Long texts are not kept.
        self.output.clear();
        execution.scratch.rows.push(std::mem::take(&mut self.output));
        // Taken apart rather than dropped as a whole, which would ask each part what it is.
        if let Input::Table { rows, .. } = std::mem::take(&mut self.input) {
            rows.close(execution);
        }
    }

    /// The next row in order, into `output`: where it lies, if it lies in a table; `None` at the end.
    #[inline(never)]
    fn next_sorted(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
    ) -> Result<Option<Option<Tid>>> {
        let sorted = match &mut self.sorted {
            Some(sorted) => sorted,
            None => {
                let sorted = measuring(
                    execution,
                    plan,
                    |counters| &counters.sort,
                    |execution| self.sort(execution, plan),
                )?;
                self.sorted.insert(Box::new(SortedRows {
                    rows: sorted,
                    last: None,
                }))
            }
        };
        loop {
            execution.tick()?;
            let Some((key, mut payload)) = sorted.rows.next()? else {
                return Ok(None);
            };
            if plan.distinct_on > 0 {
                let length = read_u64(&mut payload)? as usize;
                let key = &key[..length];
                if sorted.last.as_deref() == Some(key) {
                    continue;
                }
                let last = sorted.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            let tid = read_tid(&mut payload);
            // First, so that long values of the row before are not there beside the next one's.
            self.output.clear();
            read_row(&mut payload, &mut self.output)?;
            restore_output(execution, plan, &mut self.output)?;
            count(plan, |counters| &counters.sort);
            return Ok(Some(tid));
        }
    }

    /// The most sorted rows that can come out. Before the first of them: the counts go down with each.
    fn can_come_out(&self, plan: &SelectPlan) -> u64 {
        match plan.lock {
            // A row whose lock shows that it is gone makes room for another.
            Some(_) => u64::MAX,
            None if plan.locked.is_some() => u64::MAX,
            // Of many equal rows one comes out.
            None if plan.distinct_on > 0 => u64::MAX,
            None => self.remaining.saturating_add(self.offset),
        }
    }

    /// Reads all input into a sorter.
    fn sort(&mut self, execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<Sorted> {
        let mut sorter = Sorter::keeping(execution.spill, self.can_come_out(plan));
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        while let Some(tid) = self.next_distinct(execution, plan)? {
            key.clear();
            payload.clear();
            if plan.distinct_on > 0 {
                self.write_key(execution, plan, &plan.sort[..plan.distinct_on], &mut key)?;
                payload.extend_from_slice(&(key.len() as u64).to_be_bytes());
            }
            self.write_key(execution, plan, &plan.sort[plan.distinct_on..], &mut key)?;
            write_tid(tid.filter(|_| plan.lock.is_some()), &mut payload);
            let written = match &plan.locked {
                None => plan.visible,
                // To be looked at again.
                Some(_) => self.output.len(),
            };
            write_row(&self.output[..written], &mut payload);
            sorter.push(&key, &payload, execution.interrupts)?;
        }
        sorter.finish(execution.interrupts)
    }

    /// Appends the bytes of keys of the row. Long values of those that are late are restored for that, and given up.
    fn write_key(
        &self,
        execution: &Execution<'_>,
        plan: &SelectPlan,
        keys: &[SortKey],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if plan.late_keys.is_empty() {
            write_sort_key(&self.output, keys, out);
            return Ok(());
        }
        for key in keys {
            let value = &self.output[key.column];
            let late = plan
                .late_keys
                .iter()
                .find(|late| usize::from(late.at) == key.column);
            match (value, late) {
                (Value::Stored(_), Some(late)) => {
                    let value = restored(execution.storage, execution.interrupts, late, value)?;
                    let at_front = SortKey { column: 0, ..*key };
                    write_sort_key(&[value], &[at_front], out);
                }
                _ => write_sort_key(&self.output, std::slice::from_ref(key), out),
            }
        }
        Ok(())
    }

    /// The next projected row that DISTINCT lets through, into `output`.
    fn next_distinct(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
    ) -> Result<Option<Option<Tid>>> {
        loop {
            // First, so that long values of the row before are not there beside the next one's.
            self.output.clear();
            let Some(tid) = self.input.next(execution, plan)? else {
                if self.distinct.is_none() {
                    return Ok(None);
                }
                let found = self.next_late(execution)?;
                if found {
                    count(plan, |counters| &counters.distinct);
                }
                return Ok(found.then_some(None));
            };
            match self.input.restored_row() {
                Some(row) => project_taking(execution, plan, row, &mut self.output)?,
                None => project(execution, plan, self.input.row(), &mut self.output)?,
            }
            if let Some(DistinctRows::Early(distinct)) = self.distinct.as_deref_mut() {
                if !distinct.take(execution, &self.output)? {
                    continue;
                }
                count(plan, |counters| &counters.distinct);
            }
            return Ok(Some(tid));
        }
    }

    /// The input has ended: the next row that DISTINCT has kept until then, into `output`, if there is one.
    fn next_late(&mut self, execution: &Execution<'_>) -> Result<bool> {
        let Some(rows) = self.distinct.as_deref_mut() else {
            return Ok(false);
        };
        if let DistinctRows::Early(_) = rows
            && let DistinctRows::Early(distinct) = std::mem::replace(rows, DistinctRows::Done)
            && let Some(late) = distinct.rest(execution)?
        {
            *rows = DistinctRows::Late(late);
        }
        let DistinctRows::Late(late) = rows else {
            return Ok(false);
        };
        match late.next()? {
            Some((_, mut payload)) => read_row(&mut payload, &mut self.output).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Restores the long values of a row that comes out of sorting; 54000 when they are too long together.
fn restore_output(execution: &Execution<'_>, plan: &SelectPlan, output: &mut [Value]) -> Result<()> {
    let mut places = Vec::new();
    execution.restore_late(&plan.late, output, &mut places)?;
    if places.is_empty() {
        return Ok(());
    }
    let mut texts = TextsTogether::default();
    output.iter().try_for_each(|value| texts.add(value))
}

/// Writes the place of a row of the sorter: a byte that tells if it has one, block, slot.
fn write_tid(tid: Option<Tid>, out: &mut Vec<u8>) {
    let Some(tid) = tid else { return out.push(0) };
    out.push(1);
    out.extend_from_slice(&tid.block.to_ne_bytes());
    out.extend_from_slice(&tid.slot.to_ne_bytes());
}

fn read_tid(bytes: &mut &[u8]) -> Option<Tid> {
    let (present, rest) = bytes.split_first()?;
    *bytes = rest;
    if *present == 0 {
        return None;
    }
    let (block, rest) = rest.split_first_chunk()?;
    let (slot, rest) = rest.split_first_chunk()?;
    *bytes = rest;
    Some(Tid {
        block: u32::from_ne_bytes(*block),
        slot: u16::from_ne_bytes(*slot),
    })
}

/// A non-negative count from LIMIT or OFFSET; NULL is `None`.
fn row_count(
    execution: &mut Execution<'_>,
    expr: &Expr,
    sqlstate: SqlState,
    clause: &str,
) -> Result<Option<u64>> {
    let value = match expr {
        Expr::Constant(value) => value.clone(),
        other => execution.evaluating(|context| other.eval(&[], context))?,
    };
    match value.as_i64() {
        None => Ok(None),
        Some(count) => u64::try_from(count)
            .map(Some)
            .map_err(|_| EngineError::new(sqlstate, format!("{clause} must not be negative"))),
    }
}

/// Reads all input into groups.
fn group(execution: &mut Execution<'_>, plan: &SelectPlan, aggregate: &AggregatePlan) -> Result<GroupRows> {
    let mut grouping = Grouping::new(aggregate, execution.spill);
    let mut input = Input::open(execution, plan)?;
    let (storage, interrupts) = (execution.storage, execution.interrupts);
    while input.next(execution, plan)?.is_some() {
        let row = input.row();
        if plan.has_subqueries {
            execution
                .evaluating(|context| grouping.take(By::of(context, storage, interrupts), aggregate, row))?;
        } else {
            grouping.take(By::of(&execution.eval, storage, interrupts), aggregate, row)?;
        }
    }
    if let Input::Table { rows, .. } = input {
        rows.close(execution);
    }
    execution.evaluating(|context| grouping.finish(By::of(context, storage, interrupts), aggregate))
}

/// Counts a row that a stage above the source gives, if it is measured.
fn count(plan: &SelectPlan, of: fn(&StageCounters) -> &Counter) {
    if let Source::Measured(measured) = &plan.source {
        Counter::add(&of(&measured.counters).rows, 1);
    }
}

/// Does the work of a stage before its first row, and measures it if that is wanted.
fn measuring<T>(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    of: fn(&StageCounters) -> &Counter,
    work: impl FnOnce(&mut Execution<'_>) -> Result<T>,
) -> Result<T> {
    let Source::Measured(measured) = &plan.source else {
        return work(execution);
    };
    let counter = of(&measured.counters);
    let stretch = Stretch::begin(execution, measured.counters.what);
    let done = work(execution)?;
    let ns = stretch.end(execution, counter);
    Loop::opened(counter, ns).asked(counter, 0, false);
    Ok(done)
}
