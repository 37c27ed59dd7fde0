//! COPY FROM STDIN and COPY TO STDOUT.
//!
//! Rows that come in are collected into batches, and a batch is stored page by page and leaf by leaf: one change a page
//! rather than one a row. The batch is bounded by rows and bytes, so a COPY of any size takes a megabyte. When the client
//! gives up or a line is wrong, the statement fails like any other, and the rollback makes what was stored invisible;
//! vacuum takes the space back.

mod batch;
mod entries;
mod field_value;
mod plain_lines;
mod reader;
mod strings;
mod writer;

use crate::executor::{Execution, checks, generated, not_null, select};
use crate::output::Output;
use crate::transaction::RowChanges;
use batch::Batch;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::domain;
use clearway_sql::plan::CopyPlan;
use clearway_sql::value::cast::apply_typmod;
use clearway_sql::value::user_type::base_and_modifier;
use clearway_sql::value::{DataType, Value, encode_text};
use clearway_sql::{registered, styled};
use field_value::field_value;
use reader::{Fields, RowReader};

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
    let mut row = Vec::new();
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
                Err(error) => return Err(at_line(error, table, &reader)),
            }
            fill_row(execution, plan, table, &fields, &mut row)
                .map_err(|error| at_line(error, table, &reader))?;
            batch.add(&row, execution, reader.line_number())?;
            count += 1;
            if batch.is_full() {
                batch.store(execution)?;
            }
        }
    }
    batch.store(execution)?;
    execution.txn.count_rows(table.oid, RowChanges::inserted(count));
    Ok(count)
}

/// The error with the line that it is about, or a field of it if the context names one already.
fn at_line(error: EngineError, table: &TableDef, reader: &RowReader<'_>) -> EngineError {
    let context = match error.context() {
        Some(field) => format!("COPY {}, line {}, {field}", table.name, reader.line_number()),
        None => format!(
            "COPY {}, line {}: \"{}\"",
            table.name,
            reader.line_number(),
            shortened(&reader.line())
        ),
    };
    error.with_context(context)
}

/// The beginning of a text that is shown with an error.
fn shortened(text: &str) -> String {
    const BYTES_MAX: usize = 100;
    match text.len() {
        ..=BYTES_MAX => text.to_owned(),
        _ => format!("{}...", &text[..text.floor_char_boundary(BYTES_MAX)]),
    }
}

/// The value of a field.
fn value_of(
    execution: &Execution<'_>,
    text: &str,
    (data_type, typmod): (DataType, i32),
    now: i64,
) -> Result<Value> {
    match data_type {
        data_type if data_type.has_names() => registered::read(text, data_type, execution.eval.session),
        data_type if data_type.has_style() => {
            let value = styled::read(text, data_type, typmod, execution.eval.session)?;
            apply_typmod(value, data_type, typmod, false)
        }
        _ => field_value(text, (data_type, typmod), now),
    }
}

/// A table row from a line's fields, in place of what `row` holds.
fn fill_row(
    execution: &Execution<'_>,
    plan: &CopyPlan,
    table: &TableDef,
    fields: &Fields,
    row: &mut Vec<Value>,
) -> Result<()> {
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
    // A column that the line does not name must not keep the value of the row before.
    row.clear();
    row.resize(table.columns.len(), Value::Null);
    let now = execution.eval.session.transaction_timestamp();
    for (number, column) in plan.columns.iter().enumerate() {
        if let Some(text) = fields.get(number) {
            let definition = &table.columns[usize::from(*column)];
            let (base, typmod) = base_and_modifier(definition.data_type, definition.typmod);
            let value = value_of(execution, text, (base, typmod), now);
            row[usize::from(*column)] = value.map_err(|error| {
                let (name, shown) = (&definition.name, shortened(text));
                error.with_context(format!("column {name}: \"{shown}\""))
            })?;
        }
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
    generated::generate(table, row, &execution.eval)?;
    not_null::check_not_null(table, row)?;
    checks::check_constraints(table, row, &execution.eval)
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
            writer::write_field(&mut line, Some(&column.name), options, (number == 0, false));
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
            let quoted = options.forced.quote.get(number) == Some(&true);
            writer::write_field(&mut line, field, options, (number == 0, quoted));
        }
        line.push(b'\n');
        out.copy_out_data(&line)
    })?;
    out.copy_out_done()?;
    Ok(count)
}
