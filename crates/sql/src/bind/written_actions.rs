//! The actions of ALTER TABLE that `parse::utility::alter_table` reads, bound together with those that sqlparser reads.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::alter_table::in_turn;
use crate::bind::{Binder, require_heap};
use crate::catalog::{ColumnCompression, ColumnStorage, TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::sequence::WrittenOptions;
use crate::parse::utility::{AlterTable, ColumnAction, Name, WrittenAction};
use crate::parse::{ParsedStatement, Tree};
use crate::plan::{
    AlterSequencePlan, AlterTablePlan, DefinitionStatement, SequenceChange, TableAction, TableMark,
};
use crate::sequence::NewSequence;

impl Binder<'_> {
    pub(super) fn written_actions(&mut self, alter: &AlterTable) -> Result<DefinitionStatement> {
        let name = &alter.table;
        let found = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
        let table = match found {
            None if alter.if_exists => None,
            None => return Err(self.missing(name)),
            Some(found) => Some(found),
        };
        if let Some(sequence) = table.as_ref().filter(|table| table.sequence.is_some())
            && let ([(_, action)], None) = (&alter.actions[..], &alter.rest)
            && let Some(changed) = self.changed_sequence(sequence, action)?
        {
            return Ok(changed);
        }
        let moves = matches!(alter.actions[..], [(_, WrittenAction::SetSchema(_))]);
        let is_view = |table: &TableDef| table.kind == TableKind::View;
        if let Some(table) = table.as_deref().filter(|table| !(moves && is_view(table))) {
            require_heap(table)?;
        }
        let mut actions = Vec::with_capacity(alter.actions.len());
        for (place, action) in alter.actions.iter().filter(|_| table.is_some()) {
            actions.push((*place, self.written_action(name, action)?));
        }
        if let Some((rest, places)) = &alter.rest
            && let Some(table) = &table
        {
            let dropped: Vec<String> = actions.iter().filter_map(dropped_identity).collect();
            for (place, mut action) in self.other_actions(table, rest)? {
                without_identity(&mut action, &dropped);
                actions.push((places[place.min(places.len() - 1)], action));
            }
        }
        Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
            name: name.name.clone(),
            table,
            actions: in_turn(actions),
            tag: "ALTER TABLE",
        })))
    }

    /// The actions that sqlparser has read, each with its place among them.
    fn other_actions(
        &mut self,
        table: &TableDef,
        rest: &ParsedStatement,
    ) -> Result<Vec<(usize, TableAction)>> {
        if let Tree::Sql(tree) = &rest.tree
            && let ast::Statement::AlterTable(alter) = &**tree
        {
            return self.bound_operations(table, &alter.operations);
        }
        Err(EngineError::internal(
            "a part of ALTER TABLE is another statement",
        ))
    }

    /// The change of a sequence that ALTER TABLE names.
    fn changed_sequence(
        &self,
        sequence: &Arc<TableDef>,
        action: &WrittenAction,
    ) -> Result<Option<DefinitionStatement>> {
        let change = match action {
            WrittenAction::SetSchema(schema) => {
                SequenceChange::SetSchema(self.schema_to_move_to(schema, &sequence.name)?)
            }
            WrittenAction::SetLogged(logged) => SequenceChange::SetLogged(*logged),
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

    /// ALTER INDEX … ALTER COLUMN … SET STATISTICS, of a column by its number.
    pub(super) fn index_statistics(
        &self,
        index: &Name,
        if_exists: bool,
        (column, target): (i64, i64),
    ) -> Result<DefinitionStatement> {
        let table = self.catalog.lookup_index(index.schema.as_deref(), &index.name);
        if table.is_none() {
            if self
                .catalog
                .lookup_table(index.schema.as_deref(), &index.name)
                .is_some()
            {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not an index", index.name),
                ));
            }
            if !if_exists {
                return Err(self.missing(index));
            }
        }
        let mark = TableMark::IndexStatistics {
            index: index.name.clone(),
            column,
            target,
        };
        Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
            name: index.name.clone(),
            table,
            actions: vec![TableAction::Mark(mark)],
            tag: "ALTER INDEX",
        })))
    }

    /// The schema of SET SCHEMA.
    pub(super) fn schema_to_move_to(&self, schema: &Name, name: &str) -> Result<crate::catalog::SchemaRef> {
        // There may be no such schema yet, which is made for the first temporary relation.
        match schema.name == "pg_temp" {
            true => Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot move objects into or out of temporary schemas",
            )),
            false => self.schema_for(Some(&schema.name), name, None),
        }
    }

    fn written_action(&self, table: &Name, action: &WrittenAction) -> Result<TableAction> {
        Ok(match action {
            WrittenAction::Column(column, action) => column_action(column, action)?,
            WrittenAction::SetSchema(schema) => {
                TableAction::SetSchema(self.schema_to_move_to(schema, &table.name)?)
            }
            WrittenAction::SetLogged(logged) => TableAction::SetLogged(*logged),
            WrittenAction::OfType(None) => TableAction::OfType(None),
            WrittenAction::OfType(Some(of)) => TableAction::OfType(Some(self.composite_named(of)?.oid.get())),
            WrittenAction::AlterConstraint(name, time) => TableAction::SetCheckTime {
                name: name.clone(),
                time: *time,
            },
            WrittenAction::Mark(mark) => TableAction::Mark(mark.clone()),
            WrittenAction::Parameters(changes) => TableAction::SetParameters(changes.clone()),
        })
    }
}

fn column_action(column: &str, action: &ColumnAction) -> Result<TableAction> {
    let name = column.to_owned();
    let invalid = |what: &str, word: &str| {
        EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid {what} \"{word}\""),
        )
    };
    Ok(match action {
        ColumnAction::Add { always, options } => TableAction::AddIdentity {
            name,
            always: *always,
            sequence: Box::new(identity_sequence(options)),
        },
        ColumnAction::Set { always, options } => TableAction::SetIdentity {
            name,
            always: *always,
            options: Box::new(options.options.clone()),
        },
        ColumnAction::Drop { if_exists } => TableAction::DropIdentity {
            name,
            if_exists: *if_exists,
        },
        ColumnAction::DropExpression { if_exists } => TableAction::DropExpression {
            name,
            if_exists: *if_exists,
        },
        ColumnAction::SetStorage(word) => TableAction::SetStorage {
            name,
            storage: ColumnStorage::of_word(word).ok_or_else(|| invalid("storage type", word))?,
        },
        ColumnAction::SetStatistics(target) => TableAction::Mark(TableMark::Statistics {
            column: name,
            target: *target,
        }),
        ColumnAction::SetCompression(word) => TableAction::SetCompression {
            name,
            compression: ColumnCompression::of_word(word)
                .ok_or_else(|| invalid("compression method", word))?,
        },
    })
}

/// The sequence of an identity column with these options.
fn identity_sequence(options: &WrittenOptions) -> NewSequence {
    let name = options.name.as_ref();
    NewSequence {
        identity: true,
        name: name.map(|name| (name.schema.clone(), name.name.clone())),
        options: options.options.clone(),
    }
}

/// The column whose identity an action drops.
fn dropped_identity((_, action): &(usize, TableAction)) -> Option<String> {
    match action {
        TableAction::DropIdentity { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Takes the identity from columns whose types change when the same statement has dropped it.
fn without_identity(action: &mut TableAction, dropped: &[String]) {
    use crate::catalog::ColumnDefault::Identity;
    if let TableAction::SetTypes(changes) = action {
        for change in changes {
            if dropped.contains(&change.name) && matches!(change.default, Some(Identity(_))) {
                change.default = None;
            }
        }
    }
}
