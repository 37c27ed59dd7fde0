//! `pg_sequence`, `pg_sequences`, and a sequence read like a table.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int8, oid, text};
use crate::catalog::TableEntry;
use crate::catalog::access::{Kind, SELECT, USAGE};
use crate::catalog::sequence::SequenceState;
use clearway_sql::TableDef;
use clearway_sql::sequence::SequenceDef;
use clearway_sql::value::Value;

/// `pg_sequence`
pub(super) fn sequences(sources: &Sources<'_>, rows: &mut Rows) {
    each(sources, |table, sequence| {
        let numbers = &sequence.numbers;
        rows.push([
            ("seqrelid", oid(table.oid)),
            ("seqtypid", oid(numbers.data_type.oid())),
            ("seqstart", int8(numbers.start)),
            ("seqincrement", int8(numbers.increment)),
            ("seqmax", int8(numbers.max)),
            ("seqmin", int8(numbers.min)),
            ("seqcache", int8(numbers.cache)),
            ("seqcycle", boolean(numbers.cycle)),
        ]);
    });
}

/// `pg_sequences`
pub(super) fn sequences_view(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.sequences() {
        let Some(sequence) = &entry.def.sequence else {
            continue;
        };
        let numbers = &sequence.numbers;
        let reader = sources.identity.current;
        let may_see = [SELECT, USAGE].into_iter().any(|privilege| {
            sources
                .catalog
                .may(reader, Kind::Sequence, entry.def.oid, privilege)
        });
        let last = state_of(sources, &entry).filter(|state| state.is_called && may_see);
        rows.push([
            ("schemaname", text(&entry.def.schema.name)),
            ("sequencename", text(&entry.def.name)),
            ("sequenceowner", text(&sources.owner_name(entry.def.oid))),
            ("data_type", oid(numbers.data_type.oid())),
            ("start_value", int8(numbers.start)),
            ("min_value", int8(numbers.min)),
            ("max_value", int8(numbers.max)),
            ("increment_by", int8(numbers.increment)),
            ("cycle", boolean(numbers.cycle)),
            ("cache_size", int8(numbers.cache)),
            ("last_value", last.map_or(NULL, |state| int8(state.last))),
        ]);
    }
}

/// Calls `work` for each sequence.
pub(super) fn each(sources: &Sources<'_>, mut work: impl FnMut(&TableDef, &SequenceDef)) {
    for entry in sources.catalog.sequences() {
        if let Some(sequence) = &entry.def.sequence {
            work(&entry.def, sequence);
        }
    }
}

/// The state of a sequence; `None` if it has been dropped meanwhile.
fn state_of(sources: &Sources<'_>, entry: &TableEntry) -> Option<SequenceState> {
    let is_standby = sources.storage.standby().is_some();
    entry.sequence.as_ref()?.now(sources.storage, is_standby).ok()
}

/// The row of a sequence read like a table; none if it has been dropped meanwhile.
pub(super) fn row_of_sequence(number: u32, sources: &Sources<'_>) -> Vec<Vec<Value>> {
    let entry = sources.catalog.table(number);
    let state = entry.and_then(|entry| state_of(sources, entry));
    let row = |state: SequenceState| vec![int8(state.last), int8(state.reserved), boolean(state.is_called)];
    state.into_iter().map(row).collect()
}
