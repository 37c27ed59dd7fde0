//! MERGE.
//!
//! ```text
//! merge into items i using news n on i.id = n.id
//!     when matched and n.gone then delete
//!     when matched then update set price = n.price
//!     when not matched then insert values (n.id, n.price)
//! ```
//!
//! The block's row has the target's columns, the place of its row, and the source's columns. The join keeps each row of
//! the source if any WHEN is for those that nothing fits; the place is NULL in these. WHEN NOT MATCHED sees the source's
//! names only.

use std::sync::Arc;

use sqlparser::ast::{self, MergeClauseKind, Spanned};
use sqlparser::tokenizer::Span;

use crate::bind::assignment::Target;
use crate::bind::changed_view::{Change, ChangedRelation};
use crate::bind::scope::{Names, Scope};
use crate::bind::select::Places;
use crate::bind::write::{Assignments, changed_scan, table_defaults};
use crate::bind::{Binder, identifier, require_heap};
use crate::catalog::TableKind;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::{DEFAULT_VALUES_MARK, overriding_in_merge};
use crate::plan::{JoinKind, MergeAction, MergeClause, MergePlan, RowAssignments};
use crate::planner::Planner;
use crate::planner::scan::{all, conjuncts};
use crate::query::{Join, Relation};

/// 42601 for MERGE behind WITH RECURSIVE.
pub(super) fn refuse_recursion_around_merge(query: &ast::Query) -> Result<()> {
    let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
    if recursive && matches!(&*query.body, ast::SetExpr::Merge(_)) {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "WITH RECURSIVE is not supported for MERGE statement",
        ));
    }
    Ok(())
}

impl Binder<'_> {
    pub(super) fn merge(&mut self, merge: &ast::Merge) -> Result<MergePlan> {
        self.check_form_of_merge(merge)?;
        refuse_unreachable(&merge.clauses)?;
        let relation = self.merge_target(&merge.table)?;
        let table = Arc::clone(&relation.table);
        let mut places = Places::default();
        let target = self.changed(&table, relation.alias.clone(), &mut places)?;
        self.note_read(&table);
        let entry = ast::TableWithJoins {
            relation: merge.source.clone(),
            joins: Vec::new(),
        };
        let source = self.entries_after(None, std::slice::from_ref(&entry), &mut places)?;
        let name = target.names.relations[0].alias.clone();
        if source.names.relations.iter().any(|known| known.alias == name) {
            return Err(EngineError::new(
                SqlState::from_code("42712"),
                format!("name \"{name}\" specified more than once"),
            )
            .with_detail("The name is used both as MERGE target table and data source."));
        }
        let both = target.names.and(source.names.clone());
        let mut scope = Scope::of(both.clone(), "JOIN conditions");
        let on = self.expression(&merge.on, &mut scope)?;
        let on = conjuncts(self.condition(on, "JOIN/ON", self.position_of(&merge.on))?);
        let mut clauses = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            let names = match is_matched(clause) {
                true => &both,
                false => &source.names,
            };
            clauses.push(self.merge_clause(clause, names, &relation, places.width)?);
        }
        let keeps_source = clauses.iter().any(|clause| !clause.matched);
        let from = Relation::Join(Box::new(Join {
            kind: if keeps_source {
                JoinKind::Right
            } else {
                JoinKind::Inner
            },
            left: target.relation,
            right: source.relation,
            on: on.clone(),
        }));
        let mut read = Vec::new();
        clauses
            .iter()
            .for_each(|clause| clause.each_expression(&mut |expr| read.push(expr)));
        read.extend(&on);
        let planner = Planner::new(self.catalog, &self.subqueries, &self.failure);
        let mut joined = planner.joined(from, places.width, Vec::new(), &table, &read)?;
        joined.recheck = all(on);
        Ok(MergePlan {
            scan: changed_scan(self.catalog, table, true, Vec::new(), std::iter::empty()),
            joined,
            clauses,
            name,
        })
    }

    /// 42601 for what sqlparser takes and PostgreSQL does not.
    fn check_form_of_merge(&self, merge: &ast::Merge) -> Result<()> {
        let at = |span: Span, word: &str| {
            EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{word}\""),
            )
            .or_position(self.position(span))
        };
        if !merge.into {
            let name = merge.table.to_string();
            let name = name.split_whitespace().next().unwrap_or_default();
            return Err(at(merge.table.span(), name));
        }
        if merge.clauses.is_empty() {
            let message = "syntax error at end of input";
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, message));
        }
        for clause in &merge.clauses {
            let span = clause.when_token.0.span;
            if !matches!(
                clause.clause_kind,
                MergeClauseKind::Matched | MergeClauseKind::NotMatched
            ) {
                return Err(at(span, "BY"));
            }
            match &clause.action {
                ast::MergeAction::Update(update) => {
                    if let ast::MergeUpdateKind::Wildcard = update.kind {
                        return Err(at(span, "*"));
                    }
                    if let Some(tree) = update
                        .update_predicate
                        .as_ref()
                        .or(update.delete_predicate.as_ref())
                    {
                        return Err(at(tree.span(), "WHERE"));
                    }
                }
                ast::MergeAction::Insert(insert) => {
                    if let Some(tree) = &insert.insert_predicate
                        && overriding_in_merge(tree).is_none()
                    {
                        return Err(at(tree.span(), "WHERE"));
                    }
                    match &insert.kind {
                        ast::MergeInsertKind::Values(values) if values.rows.len() == 1 => {}
                        ast::MergeInsertKind::Values(_) => return Err(at(insert.kind_token.0.span, ",")),
                        _ => return Err(at(insert.kind_token.0.span, "*")),
                    }
                }
                _ => {}
            }
        }
        match &merge.output {
            None => Ok(()),
            Some(
                ast::OutputClause::Returning {
                    returning_token: token,
                    ..
                }
                | ast::OutputClause::Output {
                    output_token: token, ..
                },
            ) => Err(at(token.0.span, &token.0.token.to_string())),
        }
    }

    /// The table that MERGE INTO names.
    fn merge_target(&mut self, target: &ast::TableFactor) -> Result<ChangedRelation> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = target
        else {
            return Err(EngineError::not_supported(format!("MERGE INTO {target}")));
        };
        let table = self.table(name)?;
        if table.kind == TableKind::View {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot execute MERGE on relation \"{}\"", table.name),
            )
            .with_detail("This operation is not supported for views."));
        }
        require_heap(&table)?;
        let alias = alias.as_ref().map(|alias| identifier(&alias.name)).transpose()?;
        Ok(ChangedRelation {
            table,
            alias,
            view: None,
            overriding: None,
        })
    }

    fn merge_clause(
        &mut self,
        clause: &ast::MergeClause,
        names: &Names,
        relation: &ChangedRelation,
        width: usize,
    ) -> Result<MergeClause> {
        let mut scope = Scope::of(names.clone(), "MERGE WHEN conditions");
        let condition = match &clause.predicate {
            None => None,
            Some(tree) => {
                let typed = self.expression(tree, &mut scope)?;
                Some(self.condition(typed, "WHEN", self.position_of(tree))?)
            }
        };
        let action = match &clause.action {
            ast::MergeAction::Update(update) => {
                let ast::MergeUpdateKind::Set(trees) = &update.kind else {
                    return Err(EngineError::internal("an UPDATE of MERGE has no assignments"));
                };
                scope.clause = "UPDATE";
                self.note_change(&relation.table, Change::Update);
                let mut set = Assignments::after(width);
                self.assignments(trees, relation, &mut scope, &mut set)?;
                let table = &relation.table;
                MergeAction::Update(RowAssignments {
                    changes_indexed_columns: table
                        .may_change_keys(set.assigned.iter().map(|(column, _)| *column)),
                    values: set.assigned,
                    row_queries: set.row_queries,
                })
            }
            ast::MergeAction::Insert(insert) => {
                scope.clause = "VALUES";
                self.note_change(&relation.table, Change::Insert);
                MergeAction::Insert(self.merge_insert(insert, relation, &mut scope)?)
            }
            ast::MergeAction::Delete { .. } => {
                self.note_change(&relation.table, Change::Delete);
                MergeAction::Delete
            }
            ast::MergeAction::DoNothing { .. } => MergeAction::Nothing,
        };
        Ok(MergeClause {
            matched: is_matched(clause),
            condition,
            action,
        })
    }

    /// The row of an INSERT.
    fn merge_insert(
        &mut self,
        insert: &ast::MergeInsertExpr,
        relation: &ChangedRelation,
        scope: &mut Scope,
    ) -> Result<Vec<Expr>> {
        let row = match &insert.kind {
            ast::MergeInsertKind::Values(values) => values.rows.first(),
            _ => None,
        };
        let Some(row) = row else {
            return Err(EngineError::internal("an INSERT of MERGE has no values"));
        };
        if let [ast::Expr::Identifier(ident)] = row.content.as_slice()
            && ident.quote_style == Some(DEFAULT_VALUES_MARK)
        {
            return Ok(table_defaults(&relation.table));
        }
        let relation = &ChangedRelation {
            table: Arc::clone(&relation.table),
            alias: relation.alias.clone(),
            view: None,
            overriding: insert.insert_predicate.as_ref().and_then(overriding_in_merge),
        };
        let targets: Vec<Target> = self.targets(&insert.columns, relation)?;
        self.note_implied_targets(&insert.columns, relation, row.content.len());
        self.insert_row(
            &row.content,
            relation,
            &targets,
            !insert.columns.is_empty(),
            scope,
        )
    }
}

impl MergeClause {
    /// Calls `visit` for each expression, and each argument of a query beside them.
    fn each_expression<'m>(&'m self, visit: &mut dyn FnMut(&'m Expr)) {
        self.condition.iter().for_each(&mut *visit);
        match &self.action {
            MergeAction::Update(set) => {
                set.values.iter().for_each(|(_, value)| visit(value));
                let queries = set.row_queries.iter();
                queries.flat_map(|(query, _)| &query.arguments).for_each(visit);
            }
            MergeAction::Insert(values) => values.iter().for_each(visit),
            MergeAction::Delete | MergeAction::Nothing => {}
        }
    }
}

fn is_matched(clause: &ast::MergeClause) -> bool {
    clause.clause_kind == MergeClauseKind::Matched
}

/// 42601 for a WHEN behind one of the same kind that has no condition.
fn refuse_unreachable(clauses: &[ast::MergeClause]) -> Result<()> {
    let mut ended = [false; 2];
    for clause in clauses {
        let ended = &mut ended[usize::from(is_matched(clause))];
        if *ended {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "unreachable WHEN clause specified after unconditional WHEN clause",
            ));
        }
        *ended = clause.predicate.is_none();
    }
    Ok(())
}
