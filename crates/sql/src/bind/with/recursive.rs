//! WITH RECURSIVE.
//!
//! All common table expressions of the clause are in sight of one another. One that is named before it is bound is bound
//! then, in the place of its WITH. One that is named while it is being bound refers to itself:
//!
//! ```text
//! with recursive t (n) as (select 1 union all select n + 1 from t) …     begun: t;  left term bound: columns of t known;
//!                                                                        t in the right term: its working table
//! ```
//!
//! # Rules
//! - R1: the query is *term* UNION \[ALL\] *term*, without ORDER BY, LIMIT, OFFSET and FOR UPDATE around both (42P19,
//!   0A000).
//! - R2: it refers to itself in the right term only, once, and there neither in a query of an expression, nor on the
//!   side of an outer join that may be NULL, nor in INTERSECT ALL, nor on the right of EXCEPT (42P19).
//! - R3: the left term decides the types of its columns: what is text there by default is text. If both terms together
//!   have another type, it is 42804.
//! - R4: two that refer to each other are 0A000.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::around::Around;
use crate::bind::bare::is_bare;
use crate::bind::scope::Hidden;
use crate::bind::select::{keeps_equal_rows, only_leaf, refuse_odd_parts};
use crate::bind::with::State;
use crate::bind::with::search_cycle::{Added, check_terms, not_at_the_top};
use crate::bind::{Binder, identifier};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::Clauses;
use crate::plan::Column;
use crate::query::{Block, RecursiveUnion, Rows};
use crate::value::DataType;
use crate::value::datatype::format_type;

/// The state of a common table expression that is being bound.
#[derive(Debug)]
pub(super) struct Begun {
    /// Number of those that were begun before it.
    order: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// A query that cannot refer to itself.
    Plain,
    /// A statement that changes rows.
    Change,
    /// A UNION.
    Union {
        /// Number of parts around the query itself.
        around: usize,
        /// The working table's number.
        working: usize,
        /// The columns of the left term, once it is bound.
        columns: Vec<Column>,
        /// The columns that SEARCH and CYCLE add to them.
        added: Option<Box<Added>>,
        uses: usize,
    },
}

impl Binder<'_> {
    /// Binds a common table expression that is named before it has been bound, in the place of its WITH.
    pub(super) fn bind_waiting(&mut self, at: usize) -> Result<()> {
        let cte = &mut self.with.in_sight[at];
        let State::Waiting(tree, clauses) = &cte.state else {
            return Ok(());
        };
        let (tree, clauses, clause) = (Arc::clone(tree), Arc::clone(clauses), cte.clause);
        let (depth, parts) = (cte.depth, cte.parts);
        cte.state = State::Begun(Begun {
            order: self.with.begun,
            form: match super::change::changes_rows(&tree.query) {
                true => Form::Change,
                false => Form::Plain,
            },
        });
        self.with.begun += 1;
        // What is in sight where it is named, and not where it stands, is put aside.
        let end = self.with.in_sight.iter().rposition(|cte| cte.clause == clause);
        let inner_ctes = self.with.in_sight.split_off(end.unwrap_or(at) + 1);
        let inner_frames = self.frames.split_off(depth);
        let inner_parts = self.with.around.split_off(parts);
        let bound = self.common_table_bound(&tree, Some((at, &clauses)));
        self.with.around.extend(inner_parts);
        self.frames.extend(inner_frames);
        self.with.in_sight.extend(inner_ctes);
        self.with.in_sight[at].state = State::Bound(bound?);
        Ok(())
    }

    /// Binds a UNION that may refer to itself; and whether it does. `None`: it is no UNION.
    pub(super) fn union_bound(
        &mut self,
        cte: &ast::Cte,
        at: usize,
        clauses: &Clauses,
    ) -> Result<Option<(Block, bool)>> {
        let mut query = &*cte.query;
        while let ast::SetExpr::Query(inner) = &*query.body
            && is_bare(query)
            && query.with.is_none()
        {
            query = inner;
        }
        let ast::SetExpr::SetOperation {
            op: op @ ast::SetOperator::Union,
            set_quantifier,
            left: left_term,
            right,
        } = &*query.body
        else {
            return Ok(None);
        };
        refuse_odd_parts(query)?;
        let all = keeps_equal_rows(*op, *set_quantifier)?;
        self.with.working_tables += 1;
        let working = self.with.working_tables;
        self.set_form(
            at,
            Form::Union {
                around: self.with.around.len(),
                working,
                columns: Vec::new(),
                added: None,
                uses: 0,
            },
        );
        let bound = self.after_inner_with(query, working, |binder| {
            binder.deeper(2, |binder| {
                let left = binder.within(Around::NonRecursiveTerm(working), |binder| {
                    binder.set_expression(left_term, false)
                })?;
                let mut columns = left.columns.clone();
                binder.name_columns(cte, &mut columns)?;
                for column in &mut columns {
                    if column.data_type == DataType::Unknown {
                        (column.data_type, column.type_modifier) = (DataType::Text, -1);
                    }
                }
                let added = match clauses.is_empty() {
                    true => None,
                    false => {
                        check_terms(left_term, right)?;
                        Some(Box::new(binder.added_columns(clauses, &columns)?))
                    }
                };
                let hidden = Hidden {
                    working,
                    count: added.as_ref().map_or(0, |added| added.columns.len()),
                };
                binder.set_columns(at, &columns, added.clone());
                let first = binder.subqueries.len();
                let right_term = right;
                let bind_right = |binder: &mut Self| binder.set_expression(right_term, false);
                let (mut right, carried) = match hidden.count {
                    0 => (bind_right(binder)?, true),
                    _ => binder.carrying(right_term, hidden, bind_right)?,
                };
                let uses = binder.uses(at);
                if uses > 0 {
                    refuse_around(query)?;
                }
                if uses > 0 && !carried {
                    return Err(not_at_the_top(&identifier(&cte.alias.name)?));
                }
                if uses > 0 {
                    // They are in its rows nevertheless.
                    right.columns.truncate(right.columns.len() - hidden.count);
                }
                let (mut results, mut operation) = binder.set_of(*op, all, left, right)?;
                if uses == 0 {
                    let block = only_leaf(results, Rows::Set(Box::new(operation)));
                    let block = match is_bare(query) {
                        true => block,
                        false => binder.around(block, query)?,
                    };
                    return Ok((block, false));
                }
                binder.check_types(cte, &columns, &results)?;
                if let Some(added) = added {
                    binder.add_to_union(*added, &mut results, &mut operation)?;
                }
                let dependent = binder.with.dependent.range(first..).copied().collect();
                let union = RecursiveUnion {
                    operation,
                    working,
                    dependent,
                };
                Ok((only_leaf(results, Rows::Recursive(Box::new(union))), true))
            })
        });
        bound.map(Some)
    }

    /// Binds a query after its own WITH. In that, a reference to what is being bound is one inside a query.
    fn after_inner_with<T>(
        &mut self,
        query: &ast::Query,
        working: usize,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let in_sight = self.with.in_sight.len();
        if let Some(with) = &query.with {
            self.within(Around::OwnWith(working), |binder| binder.with_clause(with, false))?;
        }
        let bound = bind(self);
        self.with.in_sight.truncate(in_sight);
        bound
    }

    fn set_form(&mut self, at: usize, form: Form) {
        if let State::Begun(begun) = &mut self.with.in_sight[at].state {
            begun.form = form;
        }
    }

    fn set_columns(&mut self, at: usize, known: &[Column], new: Option<Box<Added>>) {
        if let State::Begun(Begun {
            form: Form::Union { columns, added, .. },
            ..
        }) = &mut self.with.in_sight[at].state
        {
            *columns = known.to_vec();
            columns.extend(new.iter().flat_map(|new| new.columns.iter().cloned()));
            *added = new;
        }
    }

    /// Number of references of a query to itself.
    fn uses(&self, at: usize) -> usize {
        match &self.with.in_sight[at].state {
            State::Begun(Begun {
                form: Form::Union { uses, .. },
                ..
            }) => *uses,
            _ => 0,
        }
    }

    /// A reference to what is being bound; R1, R2 and R4.
    pub(super) fn self_reference(&mut self, at: usize) -> Result<(Vec<Column>, Rows, Hidden)> {
        let parts = self.with.around.clone();
        let cte = &self.with.in_sight[at];
        let (name, clause) = (cte.name.clone(), cte.clause);
        let order_of = |state: &State| match state {
            State::Begun(begun) => Some(begun.order),
            _ => None,
        };
        let order = order_of(&cte.state);
        let mut beside = self.with.in_sight.iter().filter(|other| other.clause == clause);
        if beside.any(|other| order_of(&other.state) > order) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "mutual recursion between WITH items is not implemented",
            ));
        }
        let State::Begun(begun) = &mut self.with.in_sight[at].state else {
            return Err(EngineError::internal("a query refers to itself when it is bound"));
        };
        let (around, working, columns, added, uses) = match &mut begun.form {
            Form::Plain => {
                return Err(invalid(format!(
                    "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
                )));
            }
            Form::Change => {
                return Err(invalid(format!(
                    "recursive query \"{name}\" must not contain data-modifying statements"
                )));
            }
            Form::Union {
                around,
                working,
                columns,
                added,
                uses,
            } => (*around, *working, columns.clone(), added.clone(), uses),
        };
        // The terms of the queries inside are not this one's.
        let own = |part: &&Around| match part {
            Around::NonRecursiveTerm(of) | Around::OwnWith(of) => *of == working,
            _ => true,
        };
        if let Some(part) = parts[around.min(parts.len())..].iter().rfind(own) {
            let place = match part {
                Around::Subquery | Around::OwnWith(_) => "a subquery",
                Around::OuterJoin => "an outer join",
                Around::Intersect => "INTERSECT",
                Around::Except => "EXCEPT",
                Around::NonRecursiveTerm(_) => "its non-recursive term",
            };
            return Err(invalid(format!(
                "recursive reference to query \"{name}\" must not appear within {place}"
            )));
        }
        *uses += 1;
        if *uses > 1 {
            return Err(invalid(format!(
                "recursive reference to query \"{name}\" must not appear more than once"
            )));
        }
        self.with.working_uses += 1;
        let count = added.as_ref().map_or(0, |added| added.columns.len());
        let rows = self.working_rows(&columns, added.as_deref(), working);
        Ok((columns, rows, Hidden { working, count }))
    }

    /// R3.
    fn check_types(&self, cte: &ast::Cte, columns: &[Column], results: &[Column]) -> Result<()> {
        for (number, (column, result)) in columns.iter().zip(results).enumerate() {
            if (column.data_type, column.type_modifier) != (result.data_type, result.type_modifier) {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                        identifier(&cte.alias.name)?,
                        number + 1,
                        format_type(column.data_type, column.type_modifier),
                        format_type(result.data_type, result.type_modifier),
                    ),
                )
                .with_hint("Cast the output of the non-recursive term to the correct type.")
                .or_position(self.position(cte.alias.name.span)));
            }
        }
        Ok(())
    }
}

/// 0A000 for what a recursive query must not have around its terms; R1.
fn refuse_around(query: &ast::Query) -> Result<()> {
    let has_offset = matches!(
        &query.limit_clause,
        Some(ast::LimitClause::LimitOffset { offset: Some(_), .. })
    );
    let has_limit = query.fetch.is_some()
        || matches!(
            &query.limit_clause,
            Some(ast::LimitClause::LimitOffset { limit: Some(_), .. })
        );
    let refused = [
        (query.order_by.is_some(), "ORDER BY"),
        (has_offset, "OFFSET"),
        (has_limit, "LIMIT"),
        (!query.locks.is_empty(), "FOR UPDATE/SHARE"),
    ];
    match refused.iter().find(|(present, _)| *present) {
        Some((_, clause)) => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{clause} in a recursive query is not implemented"),
        )),
        None => Ok(()),
    }
}

/// 42P19.
fn invalid(message: String) -> EngineError {
    EngineError::new(SqlState::from_code("42P19"), message)
}
