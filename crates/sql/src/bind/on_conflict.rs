//! INSERT … ON CONFLICT.
//!
//! | target | the indexes in which a row of the same key is a conflict |
//! | --- | --- |
//! | none (DO NOTHING only) | all unique ones |
//! | `(a, b)` | the unique ones over just these columns, in any order |
//! | `ON CONSTRAINT c` | that of the constraint |
//!
//! SET and WHERE of DO UPDATE see the row that is there under the table's name, and the one that was to be inserted as
//! `excluded`; its columns stand behind the other's.

use std::collections::BTreeSet;

use sqlparser::ast;

use crate::bind::changed_view::{Change, ChangedRelation};
use crate::bind::scope::{Names, Scope};
use crate::bind::write::Assignments;
use crate::bind::{Binder, identifier, refuse, split_name};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::plan::{ConflictUpdate, OnConflict, RowAssignments};

/// The name of the row that was to be inserted.
const EXCLUDED: &str = "excluded";

impl Binder<'_> {
    pub(super) fn on_conflict(
        &mut self,
        on: &ast::OnInsert,
        relation: &ChangedRelation,
    ) -> Result<OnConflict> {
        let ast::OnInsert::OnConflict(conflict) = on else {
            return Err(EngineError::not_supported("ON DUPLICATE KEY UPDATE"));
        };
        refuse(relation.view.is_some(), "INSERT … ON CONFLICT through a view")?;
        let table = &relation.table;
        let arbiters = match &conflict.conflict_target {
            Some(ast::ConflictTarget::Columns(columns)) => self.inferred(columns, table)?,
            Some(ast::ConflictTarget::OnConstraint(name)) => vec![self.arbiter_named(name, table)?],
            None => {
                if let ast::OnConflictAction::DoUpdate(_) = conflict.action {
                    return Err(EngineError::new(
                        SqlState::SYNTAX_ERROR,
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    )
                    .with_hint("For example, ON CONFLICT (column_name)."));
                }
                let indexes = table.indexes.iter().enumerate();
                indexes
                    .filter(|(_, index)| index.unique)
                    .map(|(at, _)| at)
                    .collect()
            }
        };
        let update = match &conflict.action {
            ast::OnConflictAction::DoNothing => None,
            ast::OnConflictAction::DoUpdate(update) => Some(self.conflict_update(update, relation)?),
        };
        Ok(OnConflict {
            arbiters,
            names_arbiters: conflict.conflict_target.is_some(),
            update,
        })
    }

    /// The unique indexes over just these columns.
    fn inferred(&mut self, columns: &[ast::Ident], table: &TableDef) -> Result<Vec<usize>> {
        let mut wanted = BTreeSet::new();
        for ident in columns {
            let name = identifier(ident)?;
            let number = table.column_number(&name).ok_or_else(|| {
                EngineError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" does not exist"),
                )
                .or_position(self.position(ident.span))
            })?;
            self.note_selected((table.oid, table.attribute_number(number).cast_signed()));
            wanted.insert(number);
        }
        let fits = |columns: &[u16]| columns.iter().copied().collect::<BTreeSet<u16>>() == wanted;
        let indexes = table.indexes.iter().enumerate();
        let found = indexes
            .filter(|(_, index)| index.unique && index.plain_columns().is_some_and(|columns| fits(&columns)));
        let found: Vec<usize> = found.map(|(at, _)| at).collect();
        if found.is_empty() {
            return Err(EngineError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            ));
        }
        Ok(found)
    }

    /// The index of the constraint of this name.
    fn arbiter_named(&mut self, name: &ast::ObjectName, table: &TableDef) -> Result<usize> {
        let (_, name, span) = split_name(name)?;
        let mut indexes = table.indexes.iter();
        let found = indexes.position(|index| index.constraint && index.name == name);
        for column in found.iter().flat_map(|at| table.indexes[*at].key_columns()) {
            self.note_selected((table.oid, table.attribute_number(column).cast_signed()));
        }
        found.ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{name}\" for table \"{}\" does not exist",
                    table.name
                ),
            )
            .or_position(self.position(span))
        })
    }

    fn conflict_update(
        &mut self,
        update: &ast::DoUpdate,
        relation: &ChangedRelation,
    ) -> Result<ConflictUpdate> {
        let table = &relation.table;
        self.note_change(relation.view().unwrap_or(table), Change::Update);
        let columns = table.columns.len();
        let mut excluded = Names::of_table(table, Some(EXCLUDED.to_owned()), columns as u16);
        // It has no system columns.
        excluded.relations[0].table_oid = 0;
        let names = relation.names().and(excluded);
        let mut scope = Scope::of(names, "UPDATE");
        let mut set = Assignments::after(2 * columns);
        self.assignments(&update.assignments, relation, &mut scope, &mut set)?;
        let condition = match &update.selection {
            None => None,
            Some(tree) => {
                scope.clause = "WHERE";
                let typed = self.expression(tree, &mut scope)?;
                Some(self.condition(typed, "WHERE", self.position_of(tree))?)
            }
        };
        let changes = table.may_change_keys(set.assigned.iter().map(|(column, _)| *column));
        Ok(ConflictUpdate {
            set: RowAssignments {
                values: set.assigned,
                row_queries: set.row_queries,
                changes_indexed_columns: changes,
            },
            condition,
        })
    }
}
