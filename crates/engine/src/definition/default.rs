//! The texts of columns' defaults, as they are kept: dates in them mean the same under every DateStyle and TimeZone.

use clearway_sql::deparse::kept_default;
use clearway_sql::error::Result;
use clearway_sql::{ColumnDef, ColumnDefault, bind_default, types_by_number};

/// Puts the text of a default that a statement has as it is kept.
pub(super) fn keep(column: &mut ColumnDef) -> Result<()> {
    let (data_type, typmod) = (column.data_type, column.typmod);
    if let Some(ColumnDefault::Expression { sql, expr }) = &mut column.default {
        let kept = kept_default(sql, data_type, typmod)?;
        if kept != *sql {
            *sql = types_by_number(&kept);
            *expr = bind_default(sql, data_type, typmod)?;
        }
    }
    Ok(())
}
