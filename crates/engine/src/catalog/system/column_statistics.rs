//! `pg_stats`: the statistics of columns. They have values of rows in them, so a role sees those of columns that it may read.

use super::Sources;
use super::rows::{NULL, Rows, array, boolean, int4, text, texts};
use clearway_sql::statistics::ColumnStatistics;
use clearway_sql::value::text::to_text;
use clearway_sql::value::{DataType, Value};
use clearway_sql::{ColumnDef, TableDef};

/// `pg_stats`
pub(super) fn stats(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        let Some(kept) = &entry.statistics else { continue };
        let columns = (0u16..).zip(&entry.def.columns).zip(&kept.of_table.columns);
        for ((place, column), found) in columns {
            let Some(found) = found else { continue };
            let reader = sources.identity.current;
            if sources.catalog.may_read_columns(reader, &entry.def, &[place]) {
                push(rows, &entry.def, column, found);
            }
        }
    }
}

fn push(rows: &mut Rows, table: &TableDef, column: &ColumnDef, found: &ColumnStatistics) {
    rows.push([
        ("schemaname", text(&table.schema.name)),
        ("tablename", text(&table.name)),
        ("attname", text(&column.name)),
        ("inherited", boolean(false)),
        ("null_frac", Value::Float4(found.null_fraction)),
        ("avg_width", int4(found.width)),
        ("n_distinct", Value::Float4(found.distinct)),
        (
            "most_common_vals",
            values(column.data_type, found.common.iter().map(|(value, _)| value)),
        ),
        ("most_common_freqs", parts(&found.common)),
        ("histogram_bounds", values(column.data_type, found.bounds.iter())),
        ("correlation", found.correlation.map_or(NULL, Value::Float4)),
        ("most_common_elems", NULL),
        ("most_common_elem_freqs", NULL),
        ("elem_count_histogram", NULL),
    ]);
}

/// Values of a type as an array; NULL if there are none. Arrays, of which there are no arrays, are shown as texts.
fn values<'v>(data_type: DataType, values: impl ExactSizeIterator<Item = &'v Value>) -> Value {
    if values.len() == 0 {
        return NULL;
    }
    match data_type.array_type() {
        Some(whole) => array(whole, values.cloned()),
        None => texts(values.map(|value| to_text(value).unwrap_or_default())),
    }
}

fn parts(common: &[(Value, f32)]) -> Value {
    if common.is_empty() {
        return NULL;
    }
    let parts = common.iter().map(|(_, part)| Value::Float4(*part));
    array(DataType::array_of(DataType::Float4), parts)
}
