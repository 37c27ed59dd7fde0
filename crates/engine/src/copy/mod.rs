//! COPY FROM STDIN and COPY TO STDOUT.
//!
//! Rows that come in are collected into batches, and a batch is stored page by page and leaf by leaf: one change a page
//! rather than one a row. The batch is bounded by rows and bytes, so a COPY of any size takes a megabyte. When the client
//! gives up or a line is wrong, the statement fails like any other, and the rollback makes what was stored invisible;
//! vacuum takes the space back.

mod batch;
mod binary;
mod counted_output;
mod data;
mod entries;
mod field_value;
mod long_line;
mod plain_lines;
mod reader;
mod strings;
mod writer;

use crate::activity::{Command, progress};
use crate::executor::shown_values::GivenColumns;
use crate::executor::{Execution, checks, generated, not_null, select};
use crate::output::Output;
use crate::transaction::RowChanges;
use batch::Batch;
use binary::BinaryReader;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::domain;
use clearway_sql::plan::{CopyFormat, CopyPlan, SelectPlan};
use clearway_sql::registered;
use clearway_sql::value::{Value, encode_text};
use clearway_sql::{TableDef, TableKind};
use clearway_storage::RelId;
use counted_output::CountedOutput;
use data::Data;
use reader::{Fields, RowReader};

/// COPY FROM STDIN; the number of rows.
pub(crate) fn copy_in(execution: &mut Execution<'_>, plan: &CopyPlan, out: &mut dyn Output) -> Result<u64> {
    let Some(table) = plan.table.as_deref() else {
        return Err(EngineError::internal("COPY FROM without a table"));
    };
    let is_new = match table.kind {
        TableKind::Heap { rel } => execution.txn.has_just_made(RelId(rel)),
        TableKind::Virtual | TableKind::View => false,
    };
    if plan.options.freeze && !is_new {
        return Err(EngineError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot perform COPY FREEZE because the table was not created or truncated in the current \
             subtransaction",
        ));
    }
    execution.txn.assign_xid()?;
    let slot = execution.txn.activity();
    let shown = slot.progress.begin(Command::CopyFrom, table.oid);
    out.copy_in_start(plan.columns.len(), plan.options.format)?;
    let mut data = match plan.options.format {
        CopyFormat::Binary => Data::Rows(BinaryReader::default()),
        CopyFormat::Text | CopyFormat::Csv => {
            let names = plan.columns.iter();
            let names = names.map(|column| table.columns[usize::from(*column)].name.clone());
            let reader = RowReader::of_columns(&plan.options, names.collect());
            Data::Lines(reader, Fields::default())
        }
    };
    let mut batch = Batch::new(table, execution.txn.context().storage.write_ring());
    let mut row = Vec::new();
    let mut chunk = Vec::new();
    let (mut count, mut excluded) = (0u64, 0u64);
    let mut more = true;
    while more {
        chunk.clear();
        more = out.copy_in_read(&mut chunk)?;
        execution.check_interrupts()?;
        shown.add(progress::copy::BYTES, chunk.len() as u64);
        data.push(&chunk)?;
        loop {
            let taken = data.next_row(!more);
            if !taken.map_err(|error| data.at_row(error, table))? {
                break;
            }
            let filled = fill_row(execution, plan, table, &data, &mut row);
            if !filled.map_err(|error| data.at_row(error, table))? {
                excluded += 1;
                continue;
            }
            batch.add(&row, execution, data.number())?;
            count += 1;
            if batch.is_full() {
                batch.store(execution)?;
                shown.set(progress::copy::ROWS, count);
            }
        }
        shown.set(progress::copy::ROWS, count);
        shown.set(progress::copy::EXCLUDED, excluded);
    }
    batch.store(execution)?;
    execution.txn.count_rows(table.oid, RowChanges::inserted(count));
    Ok(count)
}

/// A table row from a line's fields, in place of what `row` holds; false if the condition of WHERE leaves it out, and then it
/// meets no constraint of the table.
fn fill_row(
    execution: &Execution<'_>,
    plan: &CopyPlan,
    table: &TableDef,
    data: &Data<'_>,
    row: &mut Vec<Value>,
) -> Result<bool> {
    data.require_fields(plan, table)?;
    // A column that the line does not name must not keep the value of the row before.
    row.clear();
    row.resize(table.columns.len(), Value::Null);
    let now = execution.eval.session.transaction_timestamp();
    for (number, column) in plan.columns.iter().enumerate() {
        let definition = &table.columns[usize::from(*column)];
        row[usize::from(*column)] = data.value(number, definition, execution, now)?;
    }
    for (column, default) in plan.defaults.iter().enumerate() {
        if let Some(expr) = default {
            row[column] = expr.eval(&[], &execution.eval)?;
        }
    }
    for column in &plan.columns {
        let at = usize::from(*column);
        if domain::may_be_checked(table.columns[at].data_type) {
            domain::check(&row[at], table.columns[at].data_type, &execution.eval)?;
        }
    }
    if let Some(condition) = &plan.condition
        && condition.eval(row, &execution.eval)?.as_bool() != Some(true)
    {
        return Ok(false);
    }
    generated::generate(table, row, &execution.eval)?;
    not_null::check_not_null(execution, table, row, GivenColumns::Inserted)?;
    checks::check_constraints(execution, table, row, GivenColumns::Inserted)?;
    Ok(true)
}

/// COPY TO STDOUT; the number of rows.
pub(crate) fn copy_out(execution: &mut Execution<'_>, plan: &CopyPlan, out: &mut dyn Output) -> Result<u64> {
    let Some(query) = &plan.query else {
        return Err(EngineError::internal("COPY TO without a query"));
    };
    let slot = execution.txn.activity();
    let relation = plan.table.as_deref().map_or(0, |table| table.oid);
    let shown = slot.progress.begin(Command::CopyTo, relation);
    out.copy_out_start(query.visible, plan.options.format)?;
    let out = &mut CountedOutput::new(out, shown);
    if plan.options.format == CopyFormat::Binary {
        return copy_out_binary(execution, query, out);
    }
    let options = &plan.options;
    let mut line = Vec::new();
    if options.header {
        for (number, column) in query.columns.iter().enumerate() {
            writer::write_field(&mut line, Some(&column.name), options, (number == 0, false));
        }
        line.push(b'\n');
        out.copy_out_data(&line)?;
    }
    let mut text = String::new();
    let session = execution.eval.session;
    let count = select::run(execution, query, &mut |_, row| {
        if long_line::has_long(row) {
            long_line::send_line(row, &query.columns, options, session, out)?;
            out.row_sent();
            return Ok(());
        }
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
            let quoted = options.forced.quote.get(number) == Some(&true);
            writer::write_field(&mut line, field, options, (number == 0, quoted));
        }
        line.push(b'\n');
        out.copy_out_data(&line)?;
        out.row_sent();
        Ok(())
    })?;
    out.copy_out_done()?;
    Ok(count)
}

/// COPY TO STDOUT in the binary format. The header goes with the first row, or with the end if there is none, as clients
/// expect it.
fn copy_out_binary(
    execution: &mut Execution<'_>,
    query: &SelectPlan,
    out: &mut CountedOutput<'_>,
) -> Result<u64> {
    let mut data = Vec::new();
    binary::write_header(&mut data);
    let count = select::run(execution, query, &mut |_, row| {
        if long_line::has_long(row) {
            long_line::send_binary_row(&data, row, out)?;
            data.clear();
            out.row_sent();
            return Ok(());
        }
        binary::write_row(&mut data, row);
        out.copy_out_data(&data)?;
        out.row_sent();
        data.clear();
        Ok(())
    })?;
    data.extend_from_slice(&binary::END);
    out.copy_out_data(&data)?;
    out.copy_out_done()?;
    Ok(count)
}
