//! Indexes in definitions: their expressions and predicates as texts, after the columns of their table have changed. The
//! texts have types by number, since each start binds them again, wherever names are looked for then.

use std::sync::Arc;

use crate::catalog::FIRST_OID;
use clearway_sql::deparse::{index_key, index_predicate};
use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::{IndexSpec, NewIndexedValue};
use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::{
    IndexDef, IndexKey, IndexMarks, IndexedValue, KeptExpr, TableDef, bind_index, types_by_number,
};

/// The index that a statement asks for, with the texts of its expressions as they are kept.
pub(super) fn made(spec: &IndexSpec, rel: u32, table: &TableDef) -> Result<IndexDef> {
    let _kept = date_times::for_keeping();
    let keys = spec.keys.iter().map(|key| {
        let value = match &key.value {
            NewIndexedValue::Column(column) => IndexedValue::Column(*column),
            NewIndexedValue::Expression(sql) => {
                let sql = index_key(sql, table, None, false)?;
                IndexedValue::Expression(Box::new(KeptExpr::unbound(types_by_number(&sql))))
            }
        };
        let options = key.options.clone();
        Ok(IndexKey { value, options })
    });
    let predicate = match &spec.predicate {
        None => None,
        Some(sql) => {
            let sql = index_predicate(sql, table, None, false)?;
            Some(Box::new(KeptExpr::unbound(types_by_number(&sql))))
        }
    };
    let mut index = IndexDef {
        oid: FIRST_OID + rel,
        name: spec.name.clone(),
        rel,
        unique: spec.unique,
        nulls_not_distinct: spec.nulls_not_distinct,
        primary: spec.primary,
        constraint: spec.constraint,
        check_time: spec.check_time,
        keys: keys.collect::<Result<_>>()?,
        types: Vec::new(),
        included: spec.included.clone(),
        predicate,
        marks: IndexMarks::default(),
    };
    bind_index(&mut index, table)?;
    Ok(index)
}

/// Binds all indexes of a table anew, after places or types of its columns have changed.
pub(super) fn rebind(table: &mut TableDef) -> Result<()> {
    let of_columns = table.clone();
    table.map_indexes(|index| {
        // Conversions that the new types ask for are shown.
        let mut index = printed(index, &of_columns, None)?;
        bind_index(&mut index, &of_columns)?;
        Ok::<_, EngineError>(Arc::new(index))
    })
}

/// Puts a column's new name into the expressions of its table's indexes; the table has the old one still.
pub(super) fn rename(table: &mut TableDef, from: &str, to: &str) -> Result<()> {
    let of_columns = table.clone();
    table.map_indexes(|index| Ok::<_, EngineError>(Arc::new(printed(index, &of_columns, Some((from, to)))?)))
}

/// The index with its texts as they are written now. `renamed`: a column's old and new name.
fn printed(index: &IndexDef, table: &TableDef, renamed: Option<(&str, &str)>) -> Result<IndexDef> {
    let _as_kept = date_times::under(None);
    let mut index = index.clone();
    for key in &mut index.keys {
        if let IndexedValue::Expression(kept) = &mut key.value {
            kept.sql = types_by_number(&index_key(&kept.sql, table, renamed, false)?);
        }
    }
    if let Some(predicate) = &mut index.predicate {
        predicate.sql = types_by_number(&index_predicate(&predicate.sql, table, renamed, false)?);
    }
    Ok(index)
}

/// An index of a table that has lost the column at this place, which the index does not name.
pub(super) fn moved(index: &IndexDef, place: u16) -> Arc<IndexDef> {
    let after = |column: u16| if column > place { column - 1 } else { column };
    let _as_kept = date_times::under(None);
    let mut index = index.clone();
    for key in &mut index.keys {
        if let IndexedValue::Column(column) = &mut key.value {
            *column = after(*column);
        }
    }
    index
        .included
        .iter_mut()
        .for_each(|column| *column = after(*column));
    Arc::new(index)
}
