//! Foreign keys of CREATE TABLE and ALTER TABLE, and the tables that TRUNCATE … CASCADE reaches.
//!
//! The referenced table is looked up here, since the statement locks it. The columns are looked up when the statement runs:
//! actions before may have made them.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::{Binder, normal, refuse, split_name};
use crate::catalog::{SchemaRef, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::foreign_key::{CheckTime, ReferentialAction};
use crate::parse::utility::Name;
use crate::parse::{is_of_update, set_columns};
use crate::plan::{DefinitionStatement, NewForeignKey};

/// The table that CREATE TABLE makes, which its foreign keys may name.
pub(super) struct OwnTable {
    schema: SchemaRef,
    name: String,
}

impl OwnTable {
    pub(super) fn new(schema: &SchemaRef, name: &str) -> OwnTable {
        OwnTable {
            schema: schema.clone(),
            name: name.to_owned(),
        }
    }
}

impl Binder<'_> {
    /// The foreign keys of new columns, and those among the constraints of a table.
    pub(super) fn new_foreign_keys(
        &mut self,
        own: Option<&OwnTable>,
        columns: &[&ast::ColumnDef],
        constraints: &[ast::TableConstraint],
    ) -> Result<Vec<NewForeignKey>> {
        let mut keys = Vec::new();
        for column in columns {
            for option in &column.options {
                if let ast::ColumnOption::ForeignKey(key) = &option.option {
                    let name = option.name.as_ref().or(key.name.as_ref());
                    keys.push(self.new_foreign_key(own, key, Some(&column.name), name)?);
                }
            }
        }
        for constraint in constraints {
            if let ast::TableConstraint::ForeignKey(key) = constraint {
                keys.push(self.new_foreign_key(own, key, None, key.name.as_ref())?);
            }
        }
        Ok(keys)
    }

    /// A foreign key; `column`: the column that it is written with.
    pub(super) fn new_foreign_key(
        &mut self,
        own: Option<&OwnTable>,
        key: &ast::ForeignKeyConstraint,
        column: Option<&ast::Ident>,
        name: Option<&ast::Ident>,
    ) -> Result<NewForeignKey> {
        refuse(key.index_name.is_some(), "a name behind FOREIGN KEY")?;
        let is_full = match key.match_kind {
            Some(ast::ConstraintReferenceMatchKind::Partial) => {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "MATCH PARTIAL not yet implemented",
                ));
            }
            Some(ast::ConstraintReferenceMatchKind::Full) => true,
            Some(ast::ConstraintReferenceMatchKind::Simple) | None => false,
        };
        let (schema, table, span) = split_name(&key.foreign_table)?;
        let is_own = own.is_some_and(|own| {
            own.name == table
                && match &schema {
                    Some(schema) => *own.schema.name == **schema,
                    None => {
                        let found = self.catalog.lookup_table(None, &table);
                        let found = found.as_ref().map(|found| &found.schema);
                        // The schema of temporary tables is the first, and comes with the first of them.
                        own.schema.is_temporary() || self.catalog.is_searched_before(&own.schema, found)
                    }
                }
        });
        let parent = match is_own {
            true => None,
            false => Some(self.referenced_table(schema.as_deref(), &table, self.position(span))?),
        };
        let (parent_columns, set) = set_columns(&key.referred_columns);
        if set.iter().any(is_of_update) {
            let action = action(key.on_update).words();
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("a column list with {action} is only supported for ON DELETE actions"),
            ));
        }
        let names = |idents: &[ast::Ident]| idents.iter().map(normal).collect::<Vec<_>>();
        Ok(NewForeignKey {
            name: name.map(normal),
            columns: match column {
                Some(column) => vec![normal(column)],
                None => names(&key.columns),
            },
            parent,
            parent_columns: names(parent_columns),
            is_full,
            on_delete: action(key.on_delete),
            on_delete_columns: set.iter().map(|ident| ident.value.clone()).collect(),
            on_update: action(key.on_update),
            check_time: check_time(key.characteristics.as_ref())?,
            validated: true,
        })
    }

    fn referenced_table(
        &self,
        schema: Option<&str>,
        name: &str,
        position: Option<u32>,
    ) -> Result<Arc<TableDef>> {
        self.require_schema(schema, position)?;
        self.table_named(schema, name, position)
    }

    /// TRUNCATE; with CASCADE the tables too whose rows name rows of those that are named, and so on.
    pub(super) fn truncate(
        &self,
        names: &[Name],
        restart_identity: bool,
        cascade: bool,
    ) -> Result<DefinitionStatement> {
        let mut tables: Vec<Arc<TableDef>> = Vec::with_capacity(names.len());
        for name in names {
            let table = self.heap(name)?;
            if tables.iter().all(|other| other.oid != table.oid) {
                tables.push(table);
            }
        }
        let mut cascaded: Vec<Arc<TableDef>> = Vec::new();
        let mut looked_at = 0;
        while cascade && looked_at < tables.len() + cascaded.len() {
            (self.check)()?;
            let table = match looked_at.checked_sub(tables.len()) {
                None => &tables[looked_at],
                Some(at) => &cascaded[at],
            };
            looked_at += 1;
            for child in self.catalog.referencing(table.oid) {
                let mut known = tables.iter().chain(&cascaded);
                if known.all(|other| other.oid != child.oid) {
                    cascaded.push(child);
                }
            }
        }
        Ok(DefinitionStatement::Truncate {
            tables,
            cascaded,
            restart_identity,
        })
    }
}

fn action(action: Option<ast::ReferentialAction>) -> ReferentialAction {
    match action {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// DEFERRABLE and INITIALLY DEFERRED of a constraint.
pub(super) fn check_time(written: Option<&ast::ConstraintCharacteristics>) -> Result<CheckTime> {
    let Some(written) = written else {
        return Ok(CheckTime::default());
    };
    refuse(written.enforced.is_some(), "ENFORCED and NOT ENFORCED")?;
    let initially_deferred = written.initially == Some(ast::DeferrableInitial::Deferred);
    if initially_deferred && written.deferrable == Some(false) {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        ));
    }
    Ok(CheckTime {
        deferrable: initially_deferred || written.deferrable == Some(true),
        initially_deferred,
    })
}
