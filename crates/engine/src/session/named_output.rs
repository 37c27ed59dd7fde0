//! Rows with names instead of numbers, where a column's type shows names: `regclass` and its kin. Values whose form a
//! setting chooses, as intervals, are shown here too.
//!
//! The numbers become texts on their way out, because only here both the catalog and the columns' types are at hand. A
//! column that the client wants in binary keeps its numbers.

use clearway_sql::Expr;
use clearway_sql::SessionFacts;
use clearway_sql::error::EngineError;
use clearway_sql::plan::Column;
use clearway_sql::registered::with_names;
use clearway_sql::styled::is_styled;
use clearway_sql::value::cast::CastContext;
use clearway_sql::value::{DataType, Value};

use crate::output::{Notice, Output};
use crate::session::Session;

/// An [`Output`] behind which columns have names.
pub(crate) struct NamedOutput<'a> {
    out: &'a mut dyn Output,
    session: &'a dyn SessionFacts,
    /// The columns that have names, and their types.
    columns: Vec<(usize, DataType)>,
    row: Vec<Value>,
}

impl<'a> NamedOutput<'a> {
    pub(crate) fn new(
        out: &'a mut dyn Output,
        session: &'a dyn SessionFacts,
        columns: &[Column],
    ) -> NamedOutput<'a> {
        let types = columns.iter().map(|column| column.data_type).enumerate();
        let columns = types.filter(|(at, data_type)| {
            let differs = data_type.has_names() || is_styled(*data_type, session);
            differs && out.is_text(*at)
        });
        NamedOutput {
            columns: columns.collect(),
            out,
            session,
            row: Vec::new(),
        }
    }
}

/// True if the text of some of these columns needs the session.
pub(crate) fn has_names(columns: Option<&[Column]>) -> bool {
    columns.is_some_and(|columns| columns.iter().any(|column| column.data_type.needs_session()))
}

impl Output for NamedOutput<'_> {
    fn row_description(&mut self, columns: &[Column]) -> Result<(), EngineError> {
        self.out.row_description(columns)
    }

    fn row(&mut self, values: &[Value]) -> Result<(), EngineError> {
        if self.columns.is_empty() {
            return self.out.row(values);
        }
        self.row.clear();
        self.row.extend_from_slice(values);
        for (at, data_type) in &self.columns {
            self.row[*at] = with_names(&values[*at], *data_type, self.session).into_owned();
        }
        self.out.row(&self.row)
    }

    fn complete(&mut self, tag: &str) -> Result<(), EngineError> {
        self.out.complete(tag)
    }

    fn notice(&mut self, notice: &Notice) -> Result<(), EngineError> {
        self.out.notice(notice)
    }
}

impl Session {
    /// Reads the text of a parameter whose type's text needs the session.
    pub fn read_name(&self, text: &str, data_type: DataType) -> Result<Value, EngineError> {
        self.evaluate(&Expr::Cast {
            input: Box::new(Expr::Constant(Value::from(text))),
            from: DataType::Text,
            to: data_type,
            typmod: -1,
            context: CastContext::Explicit,
        })
    }
}
