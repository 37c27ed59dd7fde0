//! INSERT … ON CONFLICT.
//!
//! | target | the indexes in which a row of the same key is a conflict |
//! | --- | --- |
//! | none (DO NOTHING only) | all unique ones |
//! | `(a, b)` | the unique ones over just these columns, in any order |
//! | `(a, lower(b)) where c` | those over just these parts; of a part of the rows those whose predicate follows from c |
//! | `ON CONSTRAINT c` | that of the constraint |
//!
//! SET and WHERE of DO UPDATE, and WHERE of DO SELECT, see the row that is there under the table's name, and the one that was to be inserted as
//! `excluded`; its columns stand behind the other's.

use std::collections::BTreeSet;

use sqlparser::ast;

use crate::bind::changed_view::{Change, ChangedRelation};
use crate::bind::scope::{Names, Scope, Versions};
use crate::bind::write::Assignments;
use crate::bind::{Binder, columns_of, identifier, refuse, split_name};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::implication::predicate_follows;
use crate::index::{IndexKey, IndexedValue};
use crate::parse::{conflict_select, conflict_target, parse_expression};
use crate::plan::{ConflictAction, ConflictSelect, ConflictUpdate, OnConflict, RowAssignments};
use crate::planner::Failure;
use crate::planner::scan::conjuncts;
use crate::stack::with_stack_for;

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
            Some(ast::ConflictTarget::Columns(columns)) => match conflict_target(columns) {
                None => self.inferred(columns, table)?,
                Some((list, condition)) => {
                    // Places in these texts are not those of the statement.
                    let position = columns.first().and_then(|column| self.position(column.span));
                    let found = self.inferred_of_texts(list, condition, table);
                    found.map_err(|error| error.without_position().or_position(position))?
                }
            },
            Some(ast::ConflictTarget::OnConstraint(name)) => vec![self.arbiter_named(name, table)?],
            None => {
                if let ast::OnConflictAction::DoUpdate(update) = &conflict.action {
                    let action = conflict_select(update).map_or("UPDATE", |_| "SELECT");
                    return Err(EngineError::new(
                        SqlState::SYNTAX_ERROR,
                        format!(
                            "ON CONFLICT DO {action} requires inference specification or constraint name"
                        ),
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
        let action = match &conflict.action {
            ast::OnConflictAction::DoNothing => ConflictAction::Nothing,
            ast::OnConflictAction::DoUpdate(update) => match conflict_select(update) {
                None => ConflictAction::Update(self.conflict_update(update, relation)?),
                Some(lock) => {
                    if lock.is_some() {
                        self.note_change(table, Change::Update);
                    }
                    let mut scope = conflict_scope(relation);
                    let condition = self.conflict_condition(update, &mut scope)?;
                    ConflictAction::Select(ConflictSelect { lock, condition })
                }
            },
        };
        Ok(OnConflict {
            arbiters,
            names_arbiters: conflict.conflict_target.is_some(),
            action,
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
            return Err(no_arbiter());
        }
        Ok(found)
    }

    /// The unique indexes over just the parts of this list, in any order, whose predicates follow from a condition.
    fn inferred_of_texts(
        &mut self,
        list: &str,
        condition: Option<&str>,
        table: &TableDef,
    ) -> Result<Vec<usize>> {
        let tree = parse_expression(&format!("row({list})"), 0)?;
        let parts =
            columns_of(&tree).ok_or_else(|| EngineError::not_supported("this target of ON CONFLICT"))?;
        let names = || Names::of_table(table, None, 0);
        let (mut columns, mut exprs) = (BTreeSet::new(), Vec::new());
        for part in parts {
            let typed = with_stack_for(tree.levels(), || {
                self.expression(&part, &mut Scope::of(names(), "ON CONFLICT"))
            })?;
            match typed.expr {
                Expr::Column(column) => {
                    columns.insert(column);
                }
                expr => exprs.push(Failure::default().simplified(expr)),
            }
        }
        let mut conditions = Vec::new();
        if let Some(condition) = condition {
            let tree = parse_expression(condition, 0)?;
            let condition = with_stack_for(tree.levels(), || {
                let typed = self.expression(&tree, &mut Scope::of(names(), "WHERE"))?;
                self.condition(typed, "WHERE", None)
            })?;
            conditions = conjuncts(Failure::default().simplified(condition));
        }
        let indexes = table.indexes.iter().enumerate();
        let found = indexes.filter(|(_, index)| {
            let computed: Vec<&Expr> = index.keys.iter().filter_map(computed).collect();
            let predicate = index.predicate.as_ref();
            index.unique
                && index.key_columns().collect::<BTreeSet<u16>>() == columns
                && computed.iter().all(|expr| exprs.contains(expr))
                && exprs.iter().all(|expr| computed.contains(&expr))
                && predicate.is_none_or(|predicate| predicate_follows(&predicate.simplified, &conditions))
        });
        let found: Vec<usize> = found.map(|(at, _)| at).collect();
        match found.is_empty() {
            true => Err(no_arbiter()),
            false => Ok(found),
        }
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
        let mut scope = conflict_scope(relation);
        let mut set = Assignments::after(2 * table.columns.len() + 1);
        self.assignments(&update.assignments, relation, &mut scope, &mut set)?;
        let condition = self.conflict_condition(update, &mut scope)?;
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

    /// WHERE of DO UPDATE and DO SELECT.
    fn conflict_condition(&mut self, update: &ast::DoUpdate, scope: &mut Scope) -> Result<Option<Expr>> {
        let Some(tree) = &update.selection else {
            return Ok(None);
        };
        scope.clause = "WHERE";
        let typed = self.expression(tree, scope)?;
        self.condition(typed, "WHERE", self.position_of(tree)).map(Some)
    }
}

/// The names that DO UPDATE and DO SELECT see: the row that is there, the one that was to be inserted, and the place of the
/// version that is there.
fn conflict_scope(relation: &ChangedRelation) -> Scope {
    let table = &relation.table;
    let columns = table.columns.len() as u16;
    let mut excluded = Names::of_table(table, Some(EXCLUDED.to_owned()), columns);
    // It has no system columns.
    excluded.relations[0].table_oid = 0;
    let mut names = relation.names();
    if relation.view().is_none() {
        names.relations[0].versions = Versions::Told(2 * columns);
    }
    Scope::of(names.and(excluded), "UPDATE")
}

/// The expression that a part of a key is; `None` for a column.
fn computed(key: &IndexKey) -> Option<&Expr> {
    match &key.value {
        IndexedValue::Column(_) => None,
        IndexedValue::Expression(kept) => Some(&kept.simplified),
    }
}

fn no_arbiter() -> EngineError {
    EngineError::new(
        SqlState::INVALID_COLUMN_REFERENCE,
        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
    )
}
