//! LIKE in CREATE TABLE: columns, and keys, indexes and comments if they are asked for, as another table has them.
//!
//! NOT NULL goes with its column always. A default goes with INCLUDING DEFAULTS; that of a serial column takes its numbers
//! from the other table's sequence then, as in PostgreSQL. An identity goes with INCLUDING IDENTITY, and has a sequence of
//! its own.

use std::sync::Arc;

use crate::bind::Binder;
use crate::bind::definition::{NewTable, default_name};
use crate::bind::index::index_column_names;
use crate::catalog::{ColumnDef, ColumnDefault, TableDef};
use crate::error::Result;
use crate::index::{IndexKey, IndexedValue};
use crate::object_address::ObjectAddress;
use crate::parse::utility::create_table::{LikeClause, LikeOptions};
use crate::plan::{IndexSpec, NewCheck, NewIndexKey, NewIndexedValue, TablePart, TakenComment};
use crate::sequence::{NewSequence, SequenceOptions};

/// A part of the key of an index whose table's columns stand behind `first` others.
fn key_behind(key: &IndexKey, first: u16) -> NewIndexKey {
    let value = match &key.value {
        IndexedValue::Column(column) => NewIndexedValue::Column(first + column),
        IndexedValue::Expression(kept) => NewIndexedValue::Expression(kept.sql.clone()),
    };
    NewIndexKey {
        value,
        options: key.options.clone(),
    }
}

/// Adds the CHECK constraints of a table, under their names.
fn like_checks(source: &TableDef, comments: bool, table: &mut NewTable) {
    for check in &source.checks {
        let place = table.checks.len() as u16;
        table.checks.push(NewCheck {
            name: Some(check.name.clone()),
            sql: check.sql.clone(),
            validated: true,
        });
        if comments {
            table.comments.push(TakenComment {
                from: ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid),
                to: TablePart::Check(place),
            });
        }
    }
}

impl Binder<'_> {
    /// Adds what a LIKE clause stands for.
    pub(super) fn like_table(&self, like: &LikeClause, table: &mut NewTable) -> Result<()> {
        let name = &like.source;
        let source = self.table_named(name.schema.as_deref(), &name.name, Some(name.position))?;
        let first = table.columns.len() as u16;
        for number in 0..source.columns.len() {
            let column = self.like_column(&source, number, like.including)?;
            table
                .add_column(column)
                .map_err(|error| error.or_position(Some(name.position)))?;
            let mut from = ObjectAddress::relation(source.oid);
            from.column = i32::from(source.attribute_number(number as u16));
            let to = TablePart::Column(first + number as u16);
            table
                .comments
                .extend(like.including.comments.then_some(TakenComment { from, to }));
        }
        if like.including.constraints {
            like_checks(&source, like.including.comments, table);
        }
        if like.including.indexes {
            for index in &source.indexes {
                let names = index_column_names(index, &source);
                let name = match index.constraint {
                    true => default_name(&table.name, &names, index.primary),
                    false => format!("{}_{}_idx", table.name, names.join("_")),
                };
                let spec = IndexSpec {
                    name,
                    unique: index.unique,
                    nulls_not_distinct: index.nulls_not_distinct,
                    primary: index.primary,
                    constraint: index.constraint,
                    check_time: index.check_time,
                    keys: index.keys.iter().map(|key| key_behind(key, first)).collect(),
                    included: index.included.iter().map(|column| first + column).collect(),
                    predicate: index.predicate.as_ref().map(|kept| kept.sql.clone()),
                };
                let place = table.indexes.len() as u16;
                table.add_index(spec)?;
                if like.including.comments {
                    let constraint = ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, index.oid);
                    table.comments.extend([
                        TakenComment {
                            from: ObjectAddress::relation(index.oid),
                            to: TablePart::Index(place),
                        },
                        TakenComment {
                            from: constraint,
                            to: TablePart::Constraint(place),
                        },
                    ]);
                }
            }
        }
        Ok(())
    }

    fn like_column(
        &self,
        source: &Arc<TableDef>,
        number: usize,
        including: LikeOptions,
    ) -> Result<ColumnDef> {
        let other = &source.columns[number];
        let mut column = ColumnDef::new(other.name.clone(), other.data_type);
        column.typmod = other.typmod;
        column.collation.clone_from(&other.collation);
        column.not_null = other.not_null;
        if including.storage {
            column.chosen_storage = other.chosen_storage;
        }
        if including.compression {
            column.compression = other.compression;
        }
        match &other.default {
            Some(ColumnDefault::Identity(sequence)) if including.identity => {
                let sequence = self.catalog.table_numbered(*sequence);
                let numbers = sequence.and_then(|table| Some(table.sequence.as_ref()?.numbers));
                column.default = Some(ColumnDefault::NewSequence(Box::new(NewSequence {
                    identity: true,
                    name: None,
                    options: numbers.map(SequenceOptions::from).unwrap_or_default(),
                })));
                column.always_generated = other.always_generated;
                column.is_identity = true;
            }
            Some(default @ ColumnDefault::Expression { .. }) if including.defaults => {
                column.default = Some(default.clone());
            }
            Some(default @ ColumnDefault::Generated { .. }) if including.generated => {
                column.default = Some(default.clone());
            }
            _ => {}
        }
        Ok(column)
    }
}
