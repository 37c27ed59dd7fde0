//! Indexes as the row of their table has them in the catalog.

use serde::{Deserialize, Serialize};

use crate::catalog::row_format::{damaged, is_false};
use clearway_sql::error::Result;
use clearway_sql::{
    CheckTime, IndexDef, IndexKey, IndexMarks, IndexStage, IndexedValue, KeptExpr, KeyOptions, TableDef,
    bind_index,
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredIndex {
    oid: u32,
    name: String,
    rel: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    unique: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    nulls_not_distinct: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    primary: bool,
    /// Made by a constraint; a primary key is one anyway.
    #[serde(default, skip_serializing_if = "is_false")]
    constraint: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    deferrable: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    deferred: bool,
    /// The parts of the key.
    columns: Vec<StoredKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    included: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicate: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    clustered: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    replica_identity: bool,
    /// Statistics targets of expressions, by their places in the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    targets: Vec<(u16, u16)>,
    /// The stage, if no statement reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<String>,
}

/// A part of an index's key: a column's number where nothing is said of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredKey {
    Column(u16),
    Said(StoredKeyOptions),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKeyOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    descending: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    nulls_first: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation: Option<String>,
}

fn stored_key(key: &IndexKey) -> StoredKey {
    let (column, sql) = match &key.value {
        IndexedValue::Column(column) if key.options == KeyOptions::default() => {
            return StoredKey::Column(*column);
        }
        IndexedValue::Column(column) => (Some(*column), None),
        IndexedValue::Expression(kept) => (None, Some(kept.sql.clone())),
    };
    let options = key.options.clone();
    StoredKey::Said(StoredKeyOptions {
        column,
        sql,
        descending: options.descending,
        nulls_first: options.nulls_first,
        class: options.class,
        collation: options.collation,
    })
}

fn key_of(stored: StoredKey, name: &str) -> Result<IndexKey> {
    let said = match stored {
        StoredKey::Column(column) => return Ok(IndexKey::column(column)),
        StoredKey::Said(said) => said,
    };
    let value = match (said.column, said.sql) {
        (Some(column), None) => IndexedValue::Column(column),
        (None, Some(sql)) => IndexedValue::Expression(Box::new(KeptExpr::unbound(sql))),
        _ => return Err(damaged(format!("a key of index \"{name}\""))),
    };
    let options = KeyOptions {
        descending: said.descending,
        nulls_first: said.nulls_first,
        class: said.class,
        collation: said.collation,
    };
    Ok(IndexKey { value, options })
}

pub(super) fn index_of(stored: StoredIndex, table: &TableDef) -> Result<IndexDef> {
    let keys = stored.columns.into_iter();
    let keys = keys.map(|key| key_of(key, &stored.name));
    let mut index = IndexDef {
        oid: stored.oid,
        keys: keys.collect::<Result<_>>()?,
        types: Vec::new(),
        rel: stored.rel,
        unique: stored.unique,
        nulls_not_distinct: stored.nulls_not_distinct,
        primary: stored.primary,
        constraint: stored.constraint || stored.primary,
        check_time: CheckTime {
            deferrable: stored.deferrable,
            initially_deferred: stored.deferred,
        },
        included: stored.included,
        predicate: stored.predicate.map(|sql| Box::new(KeptExpr::unbound(sql))),
        name: stored.name,
        marks: IndexMarks {
            clustered: stored.clustered,
            replica_identity: stored.replica_identity,
            statistics_targets: stored.targets,
        },
    };
    bind_index(&mut index, table)?;
    Ok(index)
}

pub(super) fn stored_index(index: &IndexDef, stage: Option<IndexStage>) -> StoredIndex {
    StoredIndex {
        oid: index.oid,
        name: index.name.clone(),
        rel: index.rel,
        unique: index.unique,
        nulls_not_distinct: index.nulls_not_distinct,
        primary: index.primary,
        constraint: index.constraint && !index.primary,
        deferrable: index.check_time.deferrable,
        deferred: index.check_time.initially_deferred,
        columns: index.keys.iter().map(stored_key).collect(),
        included: index.included.clone(),
        predicate: index.predicate.as_ref().map(|kept| kept.sql.clone()),
        clustered: index.marks.clustered,
        replica_identity: index.marks.replica_identity,
        targets: index.marks.statistics_targets.clone(),
        stage: stage.map(|stage| stage.word().to_owned()),
    }
}
