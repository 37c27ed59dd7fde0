//! `pg_sequence`, `pg_sequences`, and a sequence read like a table.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int8, oid, text};
use crate::catalog::serial::{Serial, serials};
use clearway_sql::value::Value;

/// `pg_sequence`
pub(super) fn sequences(sources: &Sources<'_>, rows: &mut Rows) {
    each(sources, |serial| {
        rows.push([
            ("seqrelid", oid(serial.oid())),
            ("seqtypid", oid(serial.data_type().oid())),
            ("seqstart", int8(1)),
            ("seqincrement", int8(1)),
            ("seqmax", int8(serial.max())),
            ("seqmin", int8(1)),
            ("seqcache", int8(1)),
            ("seqcycle", boolean(false)),
        ]);
    });
}

/// `pg_sequences`
pub(super) fn sequences_view(sources: &Sources<'_>, rows: &mut Rows) {
    each(sources, |serial| {
        rows.push([
            ("schemaname", text(&serial.schema().name)),
            ("sequencename", text(&serial.name())),
            ("sequenceowner", text(sources.user)),
            ("data_type", oid(serial.data_type().oid())),
            ("start_value", int8(1)),
            ("min_value", int8(1)),
            ("max_value", int8(serial.max())),
            ("increment_by", int8(1)),
            ("cycle", boolean(false)),
            ("cache_size", int8(1)),
            ("last_value", last_value(sources, serial).map_or(NULL, int8)),
        ]);
    });
}

/// Calls `work` for each sequence.
pub(super) fn each(sources: &Sources<'_>, mut work: impl FnMut(&Serial<'_>)) {
    for entry in sources.catalog.tables() {
        for serial in serials(&entry) {
            work(&serial);
        }
    }
}

/// The number that a sequence has given last; `None` if it has given none.
fn last_value(sources: &Sources<'_>, serial: &Serial<'_>) -> Option<i64> {
    serial
        .sequence
        .last(sources.storage)
        .ok()
        .filter(|last| *last > 0)
}

/// The row of a sequence read like a table; none if it has been dropped meanwhile.
pub(super) fn row_of_sequence(number: u32, sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let Some(entry) = sources.catalog.owner(number) else {
        return Vec::new();
    };
    let found = serials(entry).find(|serial| serial.oid() == number);
    let row = |serial: Serial<'_>| {
        let last = last_value(sources, &serial);
        vec![int8(last.unwrap_or(1)), int8(0), boolean(last.is_some())]
    };
    found.into_iter().map(row).collect()
}
