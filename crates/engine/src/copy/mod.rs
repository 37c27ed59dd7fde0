//! COPY FROM STDIN and COPY TO STDOUT.
//!
//! Rows that come in are collected into batches, and a batch is stored page by page: one page change a page rather than
//! one a row. The batch is bounded by rows and bytes, so a COPY of any size takes a few hundred kilobytes. When the
//! client gives up or a line is wrong, the statement fails like any other, and the rollback makes what was stored
//! invisible; vacuum takes the space back.

mod reader;
mod writer;

use clearway_storage::FrameRing;
use clearway_storage::heap::Heap;

use crate::convert::storage_error;
use crate::executor::unique::insert_entries;
use crate::executor::{Execution, heap_rel, not_null, select};
use crate::output::Output;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::CopyPlan;
use clearway_sql::registered;
use clearway_sql::value::cast::apply_typmod;
use clearway_sql::value::{Value, decode_text, encode_text};
use reader::{Fields, RowReader};

/// A batch is stored when it holds this many rows
const BATCH_ROWS: usize = 2_000;
/// or this many bytes.
const BATCH_BYTES: usize = 512 << 10;

/// COPY FROM STDIN; the number of rows.
pub(crate) fn copy_in(execution: &mut Execution<'_>, plan: &CopyPlan, out: &mut dyn Output) -> Result<u64> {
    let Some(table) = plan.table.as_deref() else {
        return Err(EngineError::internal("COPY FROM without a table"));
    };
    execution.txn.assign_xid()?;
    out.copy_in_start(plan.columns.len())?;
    let mut reader = RowReader::new(&plan.options);
    let mut batch = Batch::new(table, execution.txn.context().storage.write_ring());
    let mut fields = Fields::default();
    let mut chunk = Vec::new();
    let mut count = 0u64;
    let mut more = true;
    while more {
        chunk.clear();
        more = out.copy_in_read(&mut chunk)?;
        execution.check_interrupts()?;
        reader.push(&chunk)?;
        loop {
            match reader.next_row(!more, &mut fields) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(at_line(error, table, reader.line_number())),
            }
            let row = row_of(execution, plan, table, &fields)
                .map_err(|error| at_line(error, table, reader.line_number()))?;
            batch.add(&row);
            count += 1;
            if batch.is_full() {
                batch.store(execution, table)?;
            }
        }
    }
    batch.store(execution, table)?;
    execution.txn.count_rows(table.oid, count as i64, 0);
    Ok(count)
}

fn at_line(error: EngineError, table: &TableDef, line: u64) -> EngineError {
    if error.detail().is_some() {
        return error;
    }
    error.with_detail(format!("COPY {}, line {line}", table.name))
}

/// A table row from a line's fields.
fn row_of(
    execution: &Execution<'_>,
    plan: &CopyPlan,
    table: &TableDef,
    fields: &Fields,
) -> Result<Vec<Value>> {
    let expected = plan.columns.len();
    if fields.len() < expected {
        let missing = &table.columns[usize::from(plan.columns[fields.len()])].name;
        return Err(EngineError::new(
            SqlState::BAD_COPY_FILE_FORMAT,
            format!("missing data for column \"{missing}\""),
        ));
    }
    if fields.len() > expected {
        return Err(EngineError::new(
            SqlState::BAD_COPY_FILE_FORMAT,
            "extra data after last expected column",
        ));
    }
    let mut row = vec![Value::Null; table.columns.len()];
    for (number, column) in plan.columns.iter().enumerate() {
        if let Some(text) = fields.get(number) {
            let definition = &table.columns[usize::from(*column)];
            let session = execution.eval.session;
            let value = match definition.data_type {
                data_type if data_type.has_names() => registered::read(text, data_type, session)?,
                data_type => decode_text(text, data_type, session.transaction_timestamp())?,
            };
            row[usize::from(*column)] = apply_typmod(value, definition.data_type, definition.typmod, false)?;
        }
    }
    for (column, default) in plan.defaults.iter().enumerate() {
        if let Some(expr) = default {
            row[column] = expr.eval(&[], &execution.eval)?;
        }
    }
    not_null::check_not_null(table, &row)?;
    Ok(row)
}

/// Encoded rows on their way to the heap.
struct Batch<'t> {
    table: &'t TableDef,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    one: Vec<u8>,
    /// The frames that the table's pages use.
    ring: FrameRing,
}

impl<'t> Batch<'t> {
    fn new(table: &'t TableDef, ring: FrameRing) -> Batch<'t> {
        Batch {
            table,
            bytes: Vec::new(),
            ends: Vec::new(),
            one: Vec::new(),
            ring,
        }
    }

    fn add(&mut self, row: &[Value]) {
        self.table.codec.encode(row, &mut self.one);
        self.bytes.extend_from_slice(&self.one);
        self.ends.push(self.bytes.len());
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_ROWS || self.bytes.len() >= BATCH_BYTES
    }

    fn store(&mut self, execution: &mut Execution<'_>, table: &TableDef) -> Result<()> {
        let mut start = 0;
        let rows: Vec<&[u8]> = self
            .ends
            .iter()
            .map(|end| {
                let row = &self.bytes[start..*end];
                start = *end;
                row
            })
            .collect();
        let heap = Heap::new(heap_rel(table));
        let tids = heap
            .insert_many(&execution.txn.context(), &rows, &mut self.ring)
            .map_err(storage_error)?;
        if !table.indexes.is_empty() {
            for (bytes, tid) in rows.iter().zip(tids) {
                let row = table.codec.decode_all(bytes)?;
                insert_entries(execution, table, &row, tid)?;
            }
        }
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }
}

/// COPY TO STDOUT; the number of rows.
pub(crate) fn copy_out(execution: &mut Execution<'_>, plan: &CopyPlan, out: &mut dyn Output) -> Result<u64> {
    let Some(query) = &plan.query else {
        return Err(EngineError::internal("COPY TO without a query"));
    };
    out.copy_out_start(query.visible)?;
    let options = &plan.options;
    let mut line = Vec::new();
    if options.header {
        for (number, column) in query.columns.iter().enumerate() {
            writer::write_field(&mut line, Some(&column.name), options, number == 0);
        }
        line.push(b'\n');
        out.copy_out_data(&line)?;
    }
    let mut text = String::new();
    let session = execution.eval.session;
    let count = select::run(execution, query, &mut |_, row| {
        line.clear();
        for (number, value) in row.iter().enumerate() {
            text.clear();
            let field = if value.is_null() {
                None
            } else {
                let data_type = query.columns[number].data_type;
                encode_text(&registered::with_names(value, data_type, session), &mut text);
                Some(text.as_str())
            };
            writer::write_field(&mut line, field, options, number == 0);
        }
        line.push(b'\n');
        out.copy_out_data(&line)
    })?;
    out.copy_out_done()?;
    Ok(count)
}
