//! `pg_prepared_statements`: the statements that the session has prepared by name.

use super::Sources;
use super::rows::{NULL, Rows, array, boolean, oid};
use clearway_sql::value::{DataType, Value};

/// A prepared statement, as the view tells of it.
pub(crate) struct ListedStatement {
    pub(crate) name: String,
    pub(crate) statement: String,
    /// Microseconds since 2000.
    pub(crate) prepared_us: i64,
    pub(crate) parameters: Vec<DataType>,
    /// True for one of PREPARE, false for one of the protocol.
    pub(crate) is_from_sql: bool,
}

/// `pg_prepared_statements`. A statement has one plan at a time, and the times that it was used are not counted.
pub(super) fn prepared_statements(sources: &Sources<'_>, rows: &mut Rows) {
    for statement in (sources.prepared)() {
        let types = statement.parameters.iter().map(|data_type| oid(data_type.oid()));
        rows.push([
            ("name", Value::text(statement.name)),
            ("statement", Value::text(statement.statement)),
            ("prepare_time", Value::TimestampTz(statement.prepared_us)),
            (
                "parameter_types",
                array(DataType::array_of(DataType::Regtype), types),
            ),
            ("from_sql", boolean(statement.is_from_sql)),
            ("generic_plans", NULL),
            ("custom_plans", NULL),
        ]);
    }
}
