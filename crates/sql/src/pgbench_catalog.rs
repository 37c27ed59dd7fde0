//! The one catalog query pgbench asks.
//!
//! At the start of a run pgbench looks up whether `pgbench_accounts` is partitioned, with a join over pg_class,
//! pg_namespace, pg_partitioned_table and pg_inherits that a planner for one table cannot run. It is the same text from
//! every client, so it is recognised by what only it contains and answered with the truth: one row (search path
//! position 1, no partition strategy, no partitions) if the table exists, none if it does not.

use crate::catalog::CatalogView;
use crate::plan::{CannedRows, Column, Plan, RowsStatement};
use crate::value::{DataType, Value};

/// The answer, if this is that query.
pub fn recognise(sql: &str, catalog: &dyn CatalogView) -> Option<Plan> {
    let fingerprints = [
        "o.n, p.partstrat",
        "pg_catalog.pg_partitioned_table",
        "c.relname = 'pgbench_accounts'",
    ];
    if !fingerprints.iter().all(|part| sql.contains(part)) {
        return None;
    }
    let rows = match catalog.lookup_table(None, "pgbench_accounts") {
        Some(_) => vec![vec![Value::Int4(1), Value::Null, Value::Int8(0)]],
        None => Vec::new(),
    };
    Some(Plan {
        statement: RowsStatement::Canned(CannedRows { rows }).into(),
        param_types: Vec::new(),
        columns: Some(vec![
            Column::computed("n", DataType::Int4),
            Column::computed("partstrat", DataType::CharByte),
            Column::computed("count", DataType::Int8),
        ]),
        subqueries: Vec::new(),
        reads: Vec::new(),
    })
}
