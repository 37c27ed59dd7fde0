//! `pg_cursors`: the cursors and named portals of the session.

use std::sync::Arc;

use super::Sources;
use super::rows::{Rows, boolean};
use clearway_sql::value::Value;

/// A cursor, as the view tells of it.
pub(crate) struct ListedCursor {
    pub(crate) name: String,
    pub(crate) statement: Arc<str>,
    pub(crate) is_holdable: bool,
    pub(crate) is_binary: bool,
    pub(crate) is_scrollable: bool,
    /// Microseconds since 2000.
    pub(crate) created_us: i64,
}

/// `pg_cursors`
pub(super) fn cursors(sources: &Sources<'_>, rows: &mut Rows) {
    for cursor in (sources.cursors)() {
        rows.push([
            ("name", Value::text(cursor.name.as_str())),
            ("statement", Value::text(&*cursor.statement)),
            ("is_holdable", boolean(cursor.is_holdable)),
            ("is_binary", boolean(cursor.is_binary)),
            ("is_scrollable", boolean(cursor.is_scrollable)),
            ("creation_time", Value::TimestampTz(cursor.created_us)),
        ]);
    }
}
