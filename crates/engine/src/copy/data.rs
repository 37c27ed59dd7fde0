//! The data of COPY FROM STDIN, of either kind.

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::CopyPlan;
use clearway_sql::value::cast::apply_typmod;
use clearway_sql::value::user_type::base_and_modifier;
use clearway_sql::value::{DataType, Value, decode_binary};
use clearway_sql::{ColumnDef, TableDef};
use clearway_sql::{registered, styled};

use crate::copy::binary::BinaryReader;
use crate::copy::field_value::field_value;
use crate::copy::reader::{Fields, RowReader};
use crate::executor::Execution;

/// The data that come in.
#[expect(clippy::large_enum_variant, reason = "a COPY has one")]
pub(super) enum Data<'p> {
    /// Lines, and the fields of the one taken last.
    Lines(RowReader<'p>, Fields),
    /// Rows of the binary format
    Rows(BinaryReader),
}

impl Data<'_> {
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        match self {
            Data::Lines(reader, _) => reader.push(chunk),
            Data::Rows(reader) => reader.push(chunk),
        }
    }

    /// Takes the next row if it is whole.
    pub(super) fn next_row(&mut self, finished: bool) -> Result<bool> {
        match self {
            Data::Lines(reader, fields) => reader.next_row(finished, fields),
            Data::Rows(reader) => reader.next_row(finished),
        }
    }

    /// The number of the row taken last, from 1.
    pub(super) fn number(&self) -> u64 {
        match self {
            Data::Lines(reader, _) => reader.line_number(),
            Data::Rows(reader) => reader.row_number(),
        }
    }

    /// 22P04 unless the row has so many fields as the statement has columns.
    pub(super) fn require_fields(&self, plan: &CopyPlan, table: &TableDef) -> Result<()> {
        let expected = plan.columns.len();
        let found = match self {
            Data::Lines(_, fields) => fields.len(),
            Data::Rows(reader) => reader.len(),
        };
        let message = match self {
            _ if found == expected => return Ok(()),
            Data::Rows(_) => format!("row field count is {found}, expected {expected}"),
            Data::Lines(..) if found < expected => {
                let missing = &table.columns[usize::from(plan.columns[found])].name;
                format!("missing data for column \"{missing}\"")
            }
            Data::Lines(..) => "extra data after last expected column".to_owned(),
        };
        Err(EngineError::new(SqlState::BAD_COPY_FILE_FORMAT, message))
    }

    /// The value of a field of the row in a column.
    pub(super) fn value(
        &self,
        number: usize,
        column: &ColumnDef,
        execution: &Execution<'_>,
        now: i64,
    ) -> Result<Value> {
        let of = base_and_modifier(column.data_type, column.typmod);
        self.read(number, of, execution, now).map_err(|error| {
            let name = &column.name;
            error.with_context(match self {
                Data::Lines(_, fields) => {
                    format!(
                        "column {name}: \"{}\"",
                        shortened(fields.get(number).unwrap_or_default())
                    )
                }
                Data::Rows(_) => format!("column {name}"),
            })
        })
    }

    fn read(
        &self,
        number: usize,
        (base, typmod): (DataType, i32),
        execution: &Execution<'_>,
        now: i64,
    ) -> Result<Value> {
        let session = execution.eval.session;
        match self {
            Data::Lines(_, fields) => match fields.get(number) {
                None => Ok(Value::Null),
                Some(text) if base.has_names() => registered::read(text, base, session),
                Some(text) if base.has_style() => {
                    apply_typmod(styled::read(text, base, typmod, session)?, base, typmod, false)
                }
                Some(text) => field_value(text, (base, typmod), now),
            },
            Data::Rows(reader) => match reader.get(number) {
                None => Ok(Value::Null),
                Some(bytes) => apply_typmod(decode_binary(bytes, base)?, base, typmod, false),
            },
        }
    }

    /// The error with the row that it is about, or a field of it if the context names one already.
    pub(super) fn at_row(&self, error: EngineError, table: &TableDef) -> EngineError {
        let row = format!("COPY {}, line {}", table.name, self.number());
        let context = match (error.context(), self) {
            (Some(field), _) => format!("{row}, {field}"),
            (None, Data::Lines(reader, _)) => format!("{row}: \"{}\"", shortened(&reader.line())),
            (None, Data::Rows(_)) => row,
        };
        error.with_context(context)
    }
}

/// The beginning of a text that is shown with an error.
fn shortened(text: &str) -> String {
    const BYTES_MAX: usize = 100;
    match text.len() {
        ..=BYTES_MAX => text.to_owned(),
        _ => format!("{}...", &text[..text.floor_char_boundary(BYTES_MAX)]),
    }
}
