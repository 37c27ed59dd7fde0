//! ALTER TABLE and ALTER INDEX: their actions ([`TableAction`]), bound.
//!
//! Columns are looked up when the actions run, except where an expression needs their types now.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::definition::unique_constraint;
use crate::bind::fixed_columns::require_untyped;
use crate::bind::foreign_key::check_time;
use crate::bind::scope::{Names, Scope};
use crate::bind::sequence::options_of;
use crate::bind::types::no_column;
use crate::bind::{Binder, Typed, bind_default, identifier, normal, refuse, require_heap, split_name};
use crate::catalog::{ColumnDefault, TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::has_nulls_not_distinct;
use crate::plan::{
    AlterSequencePlan, AlterTablePlan, DefinitionStatement, KeyUsingIndex, NewCheck, NewForeignKey, NewKey,
    Owner, SequenceChange, TableAction, TypeChange,
};
use crate::sequence::NewSequence;
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

/// The role of OWNER TO.
fn owner(written: &ast::Owner) -> Owner {
    match written {
        ast::Owner::Ident(name) => Owner::Named(normal(name)),
        ast::Owner::SessionUser => Owner::Session,
        _ => Owner::Current,
    }
}

/// True for what ALTER TABLE does to views too: OWNER TO or RENAME TO alone, and SET and DROP DEFAULT of columns.
fn is_of_views(operations: &[ast::AlterTableOperation]) -> bool {
    use ast::AlterColumnOperation::{DropDefault, SetDefault};
    let is_default = |operation: &ast::AlterTableOperation| {
        matches!(
            operation,
            ast::AlterTableOperation::AlterColumn {
                op: SetDefault { .. } | DropDefault,
                ..
            }
        )
    };
    matches!(
        operations,
        [ast::AlterTableOperation::OwnerTo { .. } | ast::AlterTableOperation::RenameTable { .. }]
    ) || operations.iter().all(is_default)
}

/// 42601 for another name among several actions: to rename is a statement of its own.
fn require_alone(operations: &[ast::AlterTableOperation]) -> Result<()> {
    use ast::AlterTableOperation::{RenameColumn, RenameConstraint, RenameTable};
    let is_rename = |operation: &ast::AlterTableOperation| {
        matches!(
            operation,
            RenameTable { .. } | RenameColumn { .. } | RenameConstraint { .. }
        )
    };
    let near = match operations.iter().position(is_rename) {
        Some(_) if operations.len() == 1 => return Ok(()),
        Some(0) => ",",
        Some(_) => "rename",
        None => return Ok(()),
    };
    Err(EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("syntax error at or near \"{near}\""),
    ))
}

/// A key of an index that is there.
fn key_using_index(key: &ast::ConstraintUsingIndex, primary: bool) -> Result<KeyUsingIndex> {
    Ok(KeyUsingIndex {
        primary,
        check_time: check_time(key.characteristics.as_ref())?,
        name: key.name.as_ref().map(normal),
        index: normal(&key.index_name),
    })
}

impl Binder<'_> {
    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<DefinitionStatement> {
        refuse(
            alter.location.is_some() || alter.on_cluster.is_some(),
            "this form of ALTER TABLE",
        )?;
        require_alone(&alter.operations)?;
        let (schema, name, _) = split_name(&alter.name)?;
        let found = self.catalog.lookup_table(schema.as_deref(), &name);
        if let Some(renamed) = renamed_sequence(found.as_ref(), &alter.operations)? {
            return Ok(renamed);
        }
        if found.is_none()
            && let Some(renamed) = self.renamed_by_table(schema.as_deref(), &name, &alter.operations)?
        {
            return Ok(renamed);
        }
        let table = match found {
            None if alter.if_exists => None,
            Some(view) if view.kind == TableKind::View && is_of_views(&alter.operations) => Some(view),
            _ => Some(self.heap_table(&alter.name)?),
        };
        let actions = match &table {
            Some(table) => self.bound_operations(table, &alter.operations)?,
            None => Vec::new(),
        };
        Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
            name,
            table,
            actions: in_turn(actions),
            tag: "ALTER TABLE",
        })))
    }

    /// The actions of operations, each with the place of its operation.
    pub(super) fn bound_operations(
        &mut self,
        table: &TableDef,
        operations: &[ast::AlterTableOperation],
    ) -> Result<Vec<(usize, TableAction)>> {
        require_untyped(table, operations)?;
        let after = self.table_after(table, operations)?;
        let mut bound = Vec::with_capacity(operations.len());
        for (place, operation) in operations.iter().enumerate() {
            let mut actions = Vec::new();
            self.table_actions((table, operations), &after, operation, &mut actions)?;
            bound.extend(actions.into_iter().map(|action| (place, action)));
        }
        Ok(bound)
    }

    pub(super) fn alter_index(
        &mut self,
        name: &ast::ObjectName,
        operation: &ast::AlterIndexOperation,
    ) -> Result<DefinitionStatement> {
        let ast::AlterIndexOperation::RenameIndex { index_name } = operation;
        let (schema, name, span) = split_name(name)?;
        let (_, to, _) = split_name(index_name)?;
        let renamed = self.renamed_index(schema.as_deref(), &name, to, false);
        renamed.map_err(|error| error.or_position(self.position(span)))
    }

    /// ALTER INDEX … RENAME, which PostgreSQL takes of a table as well.
    pub(super) fn renamed_index(
        &self,
        schema: Option<&str>,
        name: &str,
        to: String,
        if_exists: bool,
    ) -> Result<DefinitionStatement> {
        let (table, action) = match self.catalog.lookup_index(schema, name) {
            Some(table) => (
                Some(table),
                TableAction::RenameIndex {
                    from: name.to_owned(),
                    to,
                },
            ),
            None => (self.catalog.lookup_table(schema, name), TableAction::Rename(to)),
        };
        match &table {
            Some(table) => require_heap(table)?,
            None if if_exists => {}
            None => {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{name}\" does not exist"),
                ));
            }
        }
        Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
            name: name.to_owned(),
            table,
            actions: vec![action],
            tag: "ALTER INDEX",
        })))
    }

    /// ALTER TABLE … RENAME of an index, which PostgreSQL takes as well; `None` if there is no such index.
    fn renamed_by_table(
        &self,
        schema: Option<&str>,
        name: &str,
        operations: &[ast::AlterTableOperation],
    ) -> Result<Option<DefinitionStatement>> {
        let [
            ast::AlterTableOperation::RenameTable {
                table_name: ast::RenameTableNameKind::To(to),
            },
        ] = operations
        else {
            return Ok(None);
        };
        if self.catalog.lookup_index(schema, name).is_none() {
            return Ok(None);
        }
        let mut renamed = self.renamed_index(schema, name, split_name(to)?.1, false)?;
        if let DefinitionStatement::AlterTable(plan) = &mut renamed {
            plan.tag = "ALTER TABLE";
        }
        Ok(Some(renamed))
    }

    /// The table with the columns that it will have, as new CHECK constraints see it.
    fn table_after(&mut self, table: &TableDef, operations: &[ast::AlterTableOperation]) -> Result<TableDef> {
        use ast::AlterTableOperation as Operation;
        let mut columns = table.columns.clone();
        for operation in operations {
            match operation {
                Operation::DropColumn { column_names, .. } => {
                    let is_dropped = |name: &str| column_names.iter().any(|dropped| normal(dropped) == name);
                    columns.retain(|column| !is_dropped(&column.name));
                }
                Operation::AddColumn { column_def, .. } => {
                    let position = self.position(column_def.name.span);
                    let (column, _) = self
                        .column_def(column_def, &table.name)
                        .map_err(|error| error.or_position(position))?;
                    if columns.iter().all(|known| known.name != column.name) {
                        columns.push(column);
                    }
                }
                Operation::AlterColumn {
                    column_name,
                    op: ast::AlterColumnOperation::SetDataType { data_type, .. },
                } => {
                    let (data_type, typmod) = self.data_type(data_type)?;
                    let name = normal(column_name);
                    if let Some(column) = columns.iter_mut().find(|column| column.name == name) {
                        (column.data_type, column.typmod) = (data_type, typmod);
                    }
                }
                _ => {}
            }
        }
        Ok(TableDef::in_the_making(&table.name, &columns))
    }

    /// Adds the actions of one of the operations of a statement that changes `table`; `after`: the table when columns have
    /// come and gone.
    fn table_actions(
        &mut self,
        (table, operations): (&TableDef, &[ast::AlterTableOperation]),
        after: &TableDef,
        operation: &ast::AlterTableOperation,
        actions: &mut Vec<TableAction>,
    ) -> Result<()> {
        use ast::AlterTableOperation as Operation;
        let is_cascade = |behavior: &Option<ast::DropBehavior>| *behavior == Some(ast::DropBehavior::Cascade);
        actions.push(match operation {
            Operation::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => TableAction::DropConstraint {
                name: normal(name),
                if_exists: *if_exists,
                cascade: is_cascade(drop_behavior),
            },
            Operation::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                actions.extend(column_names.iter().map(|name| TableAction::DropColumn {
                    name: normal(name),
                    if_exists: *if_exists,
                    cascade: is_cascade(drop_behavior),
                }));
                return Ok(());
            }
            Operation::AddConstraint {
                constraint: ast::TableConstraint::Check(check),
                not_valid,
            } => TableAction::AddCheck(NewCheck {
                validated: !not_valid,
                ..self.new_check(after, check, check.name.as_ref())?
            }),
            Operation::AddConstraint {
                constraint: ast::TableConstraint::ForeignKey(key),
                not_valid,
            } => TableAction::AddForeignKey(Box::new(NewForeignKey {
                validated: !not_valid,
                ..self.new_foreign_key(None, key, None, key.name.as_ref())?
            })),
            Operation::ValidateConstraint { name } => TableAction::ValidateConstraint(normal(name)),
            Operation::AddConstraint {
                constraint: ast::TableConstraint::PrimaryKeyUsingIndex(key),
                not_valid: false,
            } => TableAction::AddKeyUsingIndex(key_using_index(key, true)?),
            Operation::AddConstraint {
                constraint: ast::TableConstraint::UniqueUsingIndex(key),
                not_valid: false,
            } => TableAction::AddKeyUsingIndex(key_using_index(key, false)?),
            Operation::AddConstraint {
                constraint,
                not_valid: false,
            } => {
                let key = unique_constraint(constraint)?;
                TableAction::AddKey(NewKey {
                    primary: key.primary,
                    nulls_not_distinct: key.nulls_not_distinct,
                    check_time: key.check_time,
                    name: key.name,
                    columns: self.key_names(key.columns)?,
                })
            }
            Operation::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => self.added_column(after, column_def, *if_not_exists)?,
            Operation::RenameTable {
                table_name: ast::RenameTableNameKind::To(name),
            } => TableAction::Rename(split_name(name)?.1),
            Operation::RenameColumn {
                old_column_name,
                new_column_name,
            } => TableAction::RenameColumn {
                from: normal(old_column_name),
                to: identifier(new_column_name)?,
            },
            Operation::RenameConstraint { old_name, new_name } => TableAction::RenameConstraint {
                from: normal(old_name),
                to: identifier(new_name)?,
            },
            Operation::OwnerTo { new_owner } => TableAction::Owner(owner(new_owner)),
            Operation::AlterColumn { column_name, op } => {
                let name = normal(column_name);
                match op {
                    ast::AlterColumnOperation::SetDataType { data_type, using, .. } => {
                        let drops_default =
                            operations.iter().any(|operation| drops_default(operation, &name));
                        let change =
                            self.changed_type(table, &name, data_type, using.as_ref(), drops_default)?;
                        TableAction::SetTypes(vec![change])
                    }
                    _ => self.column_action(after, &name, op)?,
                }
            }
            other => return Err(refused(other)),
        });
        Ok(())
    }

    fn added_column(
        &mut self,
        table: &TableDef,
        tree: &ast::ColumnDef,
        if_not_exists: bool,
    ) -> Result<TableAction> {
        let position = self.position(tree.name.span);
        let (mut column, keys) = self
            .column_def(tree, &table.name)
            .map_err(|error| error.or_position(position))?;
        let mut columns = table.columns.clone();
        self.bind_generated_columns(&table.name, &mut columns, &[tree])?;
        let bound = columns.into_iter().find(|known| known.name == column.name);
        if let Some(bound) = bound.filter(|bound| bound.generated().is_some()) {
            column.default = bound.default;
        }
        let checks = self.new_checks(table, &[tree], &[])?;
        let foreign_keys = self.new_foreign_keys(None, &[tree], &[])?;
        let keys = keys.into_iter().map(|key| NewKey {
            primary: key.primary,
            nulls_not_distinct: !key.primary && has_nulls_not_distinct(tree),
            check_time: key.check_time,
            name: key.name,
            columns: vec![column.name.clone()],
        });
        Ok(TableAction::AddColumn {
            keys: keys.collect(),
            checks,
            foreign_keys,
            column: Box::new(column),
            if_not_exists,
        })
    }

    fn column_action(
        &mut self,
        table: &TableDef,
        name: &str,
        operation: &ast::AlterColumnOperation,
    ) -> Result<TableAction> {
        use ast::AlterColumnOperation as Operation;
        let column = || {
            table
                .column_number(name)
                .map(|number| &table.columns[usize::from(number)])
        };
        Ok(match operation {
            Operation::SetNotNull => TableAction::SetNotNull {
                name: name.to_owned(),
                not_null: true,
            },
            Operation::DropNotNull => TableAction::SetNotNull {
                name: name.to_owned(),
                not_null: false,
            },
            Operation::DropDefault => TableAction::SetDefault {
                name: name.to_owned(),
                default: None,
            },
            Operation::SetDefault { value } => {
                let column = column().ok_or_else(|| no_column(&table.name, name))?;
                let default = self.default_expression(value, column.data_type, column.typmod, name)?;
                TableAction::SetDefault {
                    name: name.to_owned(),
                    default: Some(default),
                }
            }
            Operation::AddGenerated {
                generated_as: Some(generated_as),
                sequence_options,
            } => {
                let options = options_of(sequence_options.as_deref().unwrap_or_default())?;
                TableAction::AddIdentity {
                    name: name.to_owned(),
                    always: *generated_as == ast::GeneratedAs::Always,
                    sequence: Box::new(NewSequence {
                        identity: true,
                        name: None,
                        options,
                    }),
                }
            }
            other => {
                return Err(EngineError::not_supported(format!(
                    "ALTER TABLE … ALTER COLUMN … {other}"
                )));
            }
        })
    }

    /// ALTER COLUMN … TYPE; `drops_default`: the statement drops the column's default, so that nothing need be converted.
    fn changed_type(
        &mut self,
        table: &TableDef,
        name: &str,
        tree: &ast::DataType,
        using: Option<&ast::Expr>,
        drops_default: bool,
    ) -> Result<TypeChange> {
        let number = table
            .column_number(name)
            .ok_or_else(|| no_column(&table.name, name))?;
        let column = &table.columns[usize::from(number)];
        let (data_type, typmod) = self.data_type(tree)?;
        if using.is_some() && column.generated().is_some() {
            return Err(EngineError::new(
                SqlState::from_code("42611"),
                "cannot specify USING when altering type of generated column",
            )
            .with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        let typed = match using {
            None => Typed {
                expr: crate::expr::Expr::Column(number),
                data_type: column.data_type,
                typmod: column.typmod,
            },
            Some(using) => {
                let names = Names::of_table(table, None, 0);
                self.expression(using, &mut Scope::of(names, "transform expressions"))?
            }
        };
        refuse(typed.expr.has_subquery(), "a subquery in a transform expression")?;
        if !can_cast(typed.data_type, data_type, CastContext::Assignment) {
            return Err(not_cast(name, data_type, using.is_some()));
        }
        let is_as_before =
            using.is_none() && keeps_values((column.data_type, column.typmod), (data_type, typmod));
        let value = self.assign(typed, data_type, typmod, name, None)?;
        let default = match &column.default {
            _ if drops_default => None,
            Some(ColumnDefault::Expression { sql, .. }) => {
                let expr = bind_default(sql, data_type, typmod).map_err(|_| {
                    EngineError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "default for column \"{name}\" cannot be cast automatically to type {data_type}"
                        ),
                    )
                })?;
                let sql = sql.clone();
                Some(ColumnDefault::Expression { sql, expr })
            }
            Some(ColumnDefault::Identity(_)) if !data_type.is_integer() => {
                return Err(EngineError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "identity column type must be smallint, integer, or bigint",
                ));
            }
            other => other.clone(),
        };
        Ok(TypeChange {
            name: name.to_owned(),
            data_type,
            typmod,
            value: (!is_as_before).then(|| Box::new(value)),
            default,
        })
    }

    /// The columns that a key names.
    fn key_names(&self, keys: &[ast::IndexColumn]) -> Result<Vec<String>> {
        let name =
            |key: &ast::IndexColumn| match &key.column.expr {
                ast::Expr::Identifier(ident) => Ok(normal(ident)),
                other => Err(EngineError::not_supported("an index on an expression")
                    .or_position(self.position_of(other))),
            };
        keys.iter().map(name).collect()
    }
}

/// ALTER TABLE … RENAME of a sequence, which PostgreSQL takes as well.
fn renamed_sequence(
    found: Option<&Arc<TableDef>>,
    operations: &[ast::AlterTableOperation],
) -> Result<Option<DefinitionStatement>> {
    let Some(sequence) = found.filter(|table| table.sequence.is_some()) else {
        return Ok(None);
    };
    let change = match operations {
        [
            ast::AlterTableOperation::RenameTable {
                table_name: ast::RenameTableNameKind::To(name),
            },
        ] => SequenceChange::Rename(split_name(name)?.1),
        [ast::AlterTableOperation::OwnerTo { new_owner }] => SequenceChange::Owner(owner(new_owner)),
        _ => return Ok(None),
    };
    Ok(Some(DefinitionStatement::AlterSequence(Box::new(
        AlterSequencePlan {
            name: sequence.name.clone(),
            sequence: Some(Arc::clone(sequence)),
            change,
            tag: "ALTER TABLE",
        },
    ))))
}

/// The actions by their turns, those of one turn by their places, with all changes of types as one.
pub(super) fn in_turn(mut actions: Vec<(usize, TableAction)>) -> Vec<TableAction> {
    actions.sort_by_key(|(place, action)| (action.turn(), *place));
    let mut merged: Vec<TableAction> = Vec::with_capacity(actions.len());
    for (_, action) in actions {
        match (merged.last_mut(), action) {
            (Some(TableAction::SetTypes(changes)), TableAction::SetTypes(more)) => changes.extend(more),
            (_, action) => merged.push(action),
        }
    }
    merged
}

/// True for DROP DEFAULT of this column.
fn drops_default(operation: &ast::AlterTableOperation, name: &str) -> bool {
    use ast::{AlterColumnOperation, AlterTableOperation};
    matches!(operation, AlterTableOperation::AlterColumn { column_name, op: AlterColumnOperation::DropDefault }
        if normal(column_name) == name)
}

/// True if stored values of one type with its modifier are those of the other.
fn keeps_values((from, from_typmod): (DataType, i32), (to, to_typmod): (DataType, i32)) -> bool {
    use DataType::{Text, Varchar};
    match (from, to) {
        (Text | Varchar, Text | Varchar) => {
            to_typmod == -1 || from == Varchar && from_typmod != -1 && from_typmod <= to_typmod
        }
        _ => from == to && (to_typmod == -1 || from_typmod == to_typmod) && from != DataType::Char,
    }
}

fn not_cast(name: &str, data_type: DataType, has_using: bool) -> EngineError {
    let (what, hint) = match has_using {
        true => (
            format!("result of USING clause for column \"{name}\""),
            "You might need to add an explicit cast.".to_owned(),
        ),
        false => (
            format!("column \"{name}\""),
            format!(
                "You might need to specify \"USING {}::{data_type}\".",
                crate::function::quote_identifier(name)
            ),
        ),
    };
    EngineError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("{what} cannot be cast automatically to type {data_type}"),
    )
    .with_hint(hint)
}

/// 0A000 for an operation that there is not, by its words.
fn refused(operation: &ast::AlterTableOperation) -> EngineError {
    let shown = operation.to_string();
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
    let words: Vec<&str> = shown.split_whitespace().take_while(is_word).collect();
    EngineError::not_supported(format!("ALTER TABLE … {}", words.join(" ")))
}
