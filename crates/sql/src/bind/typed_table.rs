//! Typed tables: CREATE TABLE … OF a composite type, whose attributes are the columns, and the changes that come with it.
//!
//! Columns of such a table come, go and change with the attributes alone: ALTER TABLE is refused them, and ALTER TYPE …
//! CASCADE does to each table of the type what it does to the type.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::alter_table::in_turn;
use crate::bind::definition::NewTable;
use crate::bind::{Binder, normal};
use crate::catalog::{ColumnDef, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::function::quote_identifier;
use crate::parse::utility::{AttributeAction, Name, TypeChange};
use crate::parse::{Tree, parse_one};
use crate::plan::{AlterTablePlan, TableAction};
use crate::value::DataType;
use crate::value::user_type::{Field, UserType, definition_of, in_force};

impl Binder<'_> {
    /// The composite type of this name.
    pub(super) fn composite_named(&self, name: &Name) -> Result<Arc<UserType>> {
        let schema = name.schema.as_deref();
        let of_system = matches!(schema, None | Some("pg_catalog"));
        let found = DataType::named(&name.name).filter(|_| of_system);
        let found = found
            .or_else(|| in_force::named(schema, &name.name))
            .ok_or_else(|| super::user_type::no_type(name))?;
        let is_own = |of: &Arc<UserType>| of.composite().is_some_and(|composite| composite.table.is_none());
        definition_of(found).filter(is_own).ok_or_else(|| {
            EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("type {found} is not a composite type"),
            )
        })
    }

    /// Adds the columns of a typed table: the attributes of its type, and what the statement says of some of them.
    pub(super) fn typed_columns(
        &mut self,
        of: &UserType,
        written: &[ast::ColumnDef],
        table: &mut NewTable,
    ) -> Result<()> {
        for field in of.composite().into_iter().flat_map(|composite| &composite.fields) {
            table.add_column(column_of(field))?;
        }
        for (place, tree) in written.iter().enumerate() {
            let name = normal(&tree.name);
            refuse_generation(tree)?;
            let number = table.columns.iter().position(|column| column.name == name);
            let number = number.ok_or_else(|| {
                EngineError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" does not exist"),
                )
            })?;
            if written[..place].iter().any(|before| normal(&before.name) == name) {
                return Err(EngineError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                ));
            }
            let position = self.position(tree.name.span);
            let known = &table.columns[number];
            let data_type = (known.data_type, known.typmod);
            let (column, keys) = self
                .column_of_type(tree, &table.name, data_type, false)
                .map_err(|error| error.or_position(position))?;
            table.columns[number] = column;
            table.add_column_keys(number as u16, tree, keys)?;
        }
        Ok(())
    }

    /// The changes of typed tables that ALTER TYPE stands for. 2BP01 if there are any, and it does not say CASCADE.
    pub(super) fn changed_typed_tables(
        &mut self,
        of: &UserType,
        change: &TypeChange,
    ) -> Result<Vec<AlterTablePlan>> {
        let is_cascade = match change {
            TypeChange::RenameAttribute { cascade, .. } => *cascade,
            TypeChange::Attributes(actions) => actions.iter().all(|(_, cascade)| *cascade),
            _ => return Ok(Vec::new()),
        };
        let tables = self.catalog.tables_of_type(of.oid.get());
        if !is_cascade && !tables.is_empty() {
            return Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "cannot alter type \"{}\" because it is the type of a typed table",
                    of.name
                ),
            )
            .with_hint("Use ALTER ... CASCADE to alter the typed tables too."));
        }
        let mut changed = Vec::with_capacity(tables.len());
        for table in tables {
            let actions = match change {
                TypeChange::RenameAttribute { from, to, .. } => vec![TableAction::RenameColumn {
                    from: from.clone(),
                    to: to.clone(),
                }],
                TypeChange::Attributes(actions) => self.column_changes(&table, actions)?,
                _ => Vec::new(),
            };
            changed.push(AlterTablePlan {
                name: table.name.clone(),
                table: Some(table),
                actions,
                tag: "ALTER TYPE",
            });
        }
        Ok(changed)
    }

    /// The actions on a table's columns that follow from those on attributes.
    fn column_changes(
        &mut self,
        table: &TableDef,
        changes: &[(AttributeAction, bool)],
    ) -> Result<Vec<TableAction>> {
        let mut actions = Vec::with_capacity(changes.len());
        for (place, (change, _)) in changes.iter().enumerate() {
            let action = match change {
                AttributeAction::Add { name, data_type } => TableAction::AddColumn {
                    column: Box::new(column_of(&super::user_type::field_of(name, data_type)?)),
                    if_not_exists: false,
                    keys: Vec::new(),
                    checks: Vec::new(),
                    foreign_keys: Vec::new(),
                },
                AttributeAction::Drop { name, if_exists } => TableAction::DropColumn {
                    name: name.clone(),
                    if_exists: *if_exists,
                    cascade: true,
                },
                AttributeAction::SetType { name, data_type } => {
                    let retyped = self.retyped(table, name, data_type)?;
                    actions.extend(retyped.into_iter().map(|(_, action)| (place, action)));
                    continue;
                }
            };
            actions.push((place, action));
        }
        Ok(in_turn(actions))
    }

    /// ALTER COLUMN … TYPE, of a typed table.
    fn retyped(
        &mut self,
        table: &TableDef,
        column: &str,
        data_type: &str,
    ) -> Result<Vec<(usize, TableAction)>> {
        if table.column_number(column).is_none() {
            // The type's own error comes first.
            return Ok(Vec::new());
        }
        let column = quote_identifier(column);
        let parsed = parse_one(
            &format!("alter table t alter column {column} type {data_type}"),
            0,
        )?;
        let mut untyped = table.clone();
        untyped.of_type = None;
        if let Tree::Sql(tree) = &parsed.tree
            && let ast::Statement::AlterTable(alter) = &**tree
        {
            let bound = self.bound_operations(&untyped, &alter.operations);
            return bound.map_err(EngineError::without_position);
        }
        Err(EngineError::internal(
            "a change of a column's type is another statement",
        ))
    }
}

fn column_of(field: &Field) -> ColumnDef {
    ColumnDef {
        typmod: field.typmod,
        ..ColumnDef::new(field.name.clone(), field.data_type)
    }
}

/// 0A000 for a generated column, or an identity.
fn refuse_generation(tree: &ast::ColumnDef) -> Result<()> {
    let refused = tree.options.iter().find_map(|option| match &option.option {
        ast::ColumnOption::Generated {
            generation_expr: Some(_),
            ..
        } => Some("generated columns are not supported on typed tables"),
        ast::ColumnOption::Generated { .. } => Some("identity columns are not supported on typed tables"),
        _ => None,
    });
    match refused {
        Some(message) => Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message)),
        None => Ok(()),
    }
}
