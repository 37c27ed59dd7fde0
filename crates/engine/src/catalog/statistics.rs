//! Statistics of a table as the rows of a relation of its own.
//!
//! Each ANALYZE writes a new relation and names it in the table's definition ([`super::stored`]): so statistics come with
//! the transaction that made them, stay through a restart, reach a standby with the definition, and go with the table. The
//! relation of before goes as a dropped table's does.
//!
//! # Format
//! One text in JSON, values in it as SQL writes them, cut into pieces that fit a page. A row is the piece's number (four
//! bytes, most significant first) and the piece.

use std::sync::Arc;

use clearway_storage::heap::{Heap, TxnContext};
use serde::{Deserialize, Serialize};

use crate::convert::storage_error;
use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::statistics::{ColumnStatistics, TableStatistics};
use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::value::text::{decode_text, to_text};
use clearway_sql::value::{DataType, Value};

/// Rows carry this so that a later format can tell them apart.
const FORMAT: u32 = 1;

/// Bytes of a piece.
const PIECE: usize = 7_800;

/// A table's statistics and the relation that they are kept in.
#[derive(Debug, Clone)]
pub(crate) struct KeptStatistics {
    pub(crate) rel: u32,
    pub(crate) of_table: Arc<TableStatistics>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredStatistics {
    format: u32,
    rows: f64,
    pages: u32,
    columns: Vec<StoredColumn>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredColumn {
    column: u16,
    r#type: u32,
    nulls: f32,
    width: i32,
    distinct: f32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    common: Vec<(String, f32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation: Option<f32>,
}

fn encode(statistics: &TableStatistics) -> Result<Vec<u8>> {
    let _as_kept = date_times::under(None);
    let text = |value: &Value| to_text(value).unwrap_or_default();
    let columns = statistics.columns.iter().enumerate();
    let columns = columns.filter_map(|(number, column)| {
        let column = column.as_ref()?;
        Some(StoredColumn {
            column: number as u16,
            r#type: column.data_type.oid(),
            nulls: column.null_fraction,
            width: column.width,
            distinct: column.distinct,
            common: column
                .common
                .iter()
                .map(|(value, part)| (text(value), *part))
                .collect(),
            bounds: column.bounds.iter().map(text).collect(),
            correlation: column.correlation,
        })
    });
    let stored = StoredStatistics {
        format: FORMAT,
        rows: statistics.rows,
        pages: statistics.pages,
        columns: columns.collect(),
    };
    serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode statistics: {error}")))
}

fn damaged(what: impl std::fmt::Display) -> EngineError {
    EngineError::new(
        SqlState::DATA_CORRUPTED,
        format!("the statistics of a table are damaged: {what}"),
    )
}

fn decode(bytes: &[u8], table: &TableDef) -> Result<TableStatistics> {
    let stored: StoredStatistics = serde_json::from_slice(bytes).map_err(damaged)?;
    if stored.format != FORMAT {
        return Err(damaged(format!("format {} is not {FORMAT}", stored.format)));
    }
    let _as_kept = date_times::under(None);
    let mut columns = vec![None; table.columns.len()];
    for column in stored.columns {
        let data_type = DataType::from_oid(column.r#type).ok_or_else(|| damaged("an unknown type"))?;
        // A column that has another type by now has no statistics.
        let Some(place) = columns
            .get_mut(usize::from(column.column))
            .filter(|_| table.columns[usize::from(column.column)].data_type == data_type)
        else {
            continue;
        };
        let value = |text: &String| decode_text(text, data_type, 0);
        *place = Some(ColumnStatistics {
            data_type,
            null_fraction: column.nulls,
            width: column.width,
            distinct: column.distinct,
            common: column
                .common
                .iter()
                .map(|(text, part)| Ok((value(text)?, *part)))
                .collect::<Result<_>>()?,
            bounds: column.bounds.iter().map(value).collect::<Result<_>>()?,
            correlation: column.correlation,
        });
    }
    Ok(TableStatistics {
        rows: stored.rows,
        pages: stored.pages,
        columns,
    })
}

/// Writes statistics into a relation that is new.
pub(crate) fn write(context: &TxnContext<'_>, rel: u32, statistics: &TableStatistics) -> Result<()> {
    let bytes = encode(statistics)?;
    let heap = Heap::new(rel);
    for (number, piece) in (0u32..).zip(bytes.chunks(PIECE)) {
        let row = [&number.to_be_bytes(), piece].concat();
        heap.insert(context, &row).map_err(storage_error)?;
    }
    Ok(())
}

/// Reads the statistics that a definition names.
pub(crate) fn read(context: &TxnContext<'_>, rel: u32, table: &TableDef) -> Result<KeptStatistics> {
    let mut scan = Heap::new(rel).scan(context).map_err(storage_error)?;
    let mut rows: Vec<Vec<u8>> = Vec::new();
    while let Some(row) = scan
        .next(context, |_, bytes| bytes.to_vec())
        .map_err(storage_error)?
    {
        rows.push(row);
    }
    rows.sort_unstable();
    let pieces: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(4..)).collect();
    Ok(KeptStatistics {
        rel,
        of_table: Arc::new(decode(&pieces.concat(), table)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::{ColumnDef, TableKind};

    #[test]
    fn statistics_come_back_as_they_were_written() {
        let types = [DataType::Text, DataType::Float8, DataType::TimestampTz];
        let columns = types.map(|data_type| ColumnDef::new("c", data_type));
        let table = TableDef::new(16_384, "t", TableKind::Heap { rel: 2 }, columns.to_vec());
        let column = |data_type, values: [Value; 2]| {
            let [first, second] = values;
            Some(ColumnStatistics {
                data_type,
                null_fraction: 0.1,
                width: 7,
                distinct: -0.333,
                common: vec![(first, 0.25)],
                bounds: vec![second],
                correlation: Some(-0.5),
            })
        };
        let statistics = TableStatistics {
            rows: 12_345.0,
            pages: 99,
            columns: vec![
                column(DataType::Text, [Value::from("a\"\\ ü"), Value::from("")]),
                None,
                column(DataType::TimestampTz, [1, i64::MAX].map(Value::TimestampTz)),
            ],
        };
        let bytes = encode(&statistics).unwrap();
        assert_eq!(decode(&bytes, &table).unwrap(), statistics);
        assert!(decode(&bytes[1..], &table).is_err());
    }
}
