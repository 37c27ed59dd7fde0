//! SELECT: here the clauses come together as a plan, with WHERE, DISTINCT, HAVING and FOR UPDATE.
//!
//! | module | clauses |
//! | --- | --- |
//! | `from` | FROM |
//! | `list` | the select list, RETURNING |
//! | `group` | GROUP BY |
//! | `order` | ORDER BY, LIMIT, OFFSET |

mod from;
mod group;
mod list;
mod order;

use std::sync::Arc;

use sqlparser::ast;

use crate::access::AccessPath;
use crate::bind::path::{all, conjuncts, extreme, need, ordered_by_index, plan_scan};
use crate::bind::{Aggregates, Binder, Scope, Typed, refuse, split_name};
use crate::catalog::{TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::locks_without_keys;
use crate::plan::{
    AggregatePlan, LockStrength, LockWaitPolicy, RowLock, SelectPlan, Series, Source, TableScan,
};
use crate::value::{DataType, Value};
use from::From;
pub(super) use list::ENTRIES_MAX;

/// The body of a query.
enum Body<'a> {
    Select(&'a ast::Select),
    /// A query in parentheses that has all the clauses.
    Nested(&'a ast::Query),
}

/// The body of a query; 0A000 if it is no SELECT, or has a clause around it that we lack.
fn select_of(query: &ast::Query) -> Result<Body<'_>> {
    refuse(query.with.is_some(), "WITH")?;
    refuse(!query.pipe_operators.is_empty(), "a pipe operator")?;
    refuse(
        query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some(),
        "FOR XML/JSON, SETTINGS or FORMAT",
    )?;
    let is_bare = query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let other = match &*query.body {
        ast::SetExpr::Select(select) => return Ok(Body::Select(select)),
        ast::SetExpr::Query(inner) if is_bare => return Ok(Body::Nested(inner)),
        ast::SetExpr::Query(_) => "a query in parentheses".to_owned(),
        ast::SetExpr::SetOperation { op, .. } => op.to_string(),
        ast::SetExpr::Values(_) => "VALUES outside INSERT".to_owned(),
        ast::SetExpr::Table(_) => "TABLE".to_owned(),
        _ => "a data-changing query".to_owned(),
    };
    Err(EngineError::not_supported(other))
}

fn is_distinct(select: &ast::Select) -> Result<bool> {
    match &select.distinct {
        None | Some(ast::Distinct::All) => Ok(false),
        Some(ast::Distinct::Distinct) => Ok(true),
        Some(ast::Distinct::On(_)) => Err(EngineError::not_supported("DISTINCT ON")),
    }
}

/// 0A000 for FOR UPDATE over rows that are no rows of a table.
fn refuse_lock(plan: &SelectPlan, from: &From) -> Result<()> {
    if plan.lock.is_none() {
        return Ok(());
    }
    refuse(plan.distinct, "FOR UPDATE with DISTINCT")?;
    refuse(plan.aggregate.is_some(), "FOR UPDATE with GROUP BY or aggregates")?;
    match from {
        From::Nothing => refuse(true, "FOR UPDATE without a table"),
        From::Series(_) => refuse(true, "FOR UPDATE over a function"),
        From::Table(table) => refuse(table.kind == TableKind::Virtual, "FOR UPDATE over a system view"),
    }
}

/// The source of a SELECT without FROM.
fn one_row(conditions: Vec<Expr>) -> Source {
    if conditions.is_empty() {
        return Source::OneRow;
    }
    // One row that a condition may take away: a series of one.
    Source::Series(Series {
        start: Expr::Constant(Value::Int4(1)),
        stop: Expr::Constant(Value::Int4(1)),
        step: None,
        data_type: DataType::Int4,
        filter: all(conditions),
    })
}

/// The scan of a table for what the plan does with its rows. An index may make the plan's sort needless, and tell that
/// the first row is enough.
fn table_under(plan: &mut SelectPlan, table: Arc<TableDef>, conditions: Vec<Expr>) -> TableScan {
    let unconditional = conditions.is_empty();
    let mut scan = plan_scan(table, conditions, plan.lock.is_some());
    if let AccessPath::UniquePoint { .. } = scan.access {
        plan.stop_after = Some(1);
    }
    match &plan.aggregate {
        Some(aggregate) => {
            if unconditional && let Some(access) = extreme(&scan.table, aggregate) {
                scan.access = access;
                plan.stop_after = Some(1);
            }
            let calls = aggregate.calls.iter();
            let of_calls = calls.flat_map(|call| call.argument.iter().chain(&call.filter));
            let read = aggregate.keys.iter().chain(of_calls);
            read.for_each(|expr| need(&mut scan.needed, expr));
        }
        None => {
            let limited = plan.limit.is_some();
            if !plan.distinct && ordered_by_index(&mut scan, &plan.projection, &plan.sort, limited) {
                plan.sort.clear();
            }
            let read = plan.projection.iter();
            read.for_each(|expr| need(&mut scan.needed, expr));
        }
    }
    scan
}

impl Binder<'_> {
    /// A query. `settle`: columns without a type become text (an INSERT leaves them open).
    pub(super) fn query(&mut self, query: &ast::Query, settle: bool) -> Result<SelectPlan> {
        let select = match select_of(query)? {
            Body::Select(select) => select,
            Body::Nested(inner) => return self.query(inner, settle),
        };
        self.refuse_odd_clauses(select)?;
        let distinct = is_distinct(select)?;
        let (mut scope, from) = self.from(&select.from)?;

        // WHERE comes first: what it says of a parameter's type counts before the select list does.
        let conditions = match &select.selection {
            Some(tree) => {
                scope.clause = "WHERE";
                let typed = self.expression(tree, &mut scope)?;
                conjuncts(self.condition(typed, "WHERE", self.position_of(tree))?)
            }
            None => Vec::new(),
        };
        scope.clause = "the select list";
        scope.aggregates = Aggregates::Collected(Vec::new());
        let mut outputs = self.select_list(&select.projection, &mut scope, settle)?;
        let visible = outputs.len();
        let keys = self.group_by(&select.group_by, &mut scope, &outputs)?;
        let having = match &select.having {
            Some(tree) => {
                let typed = self.expression(tree, &mut scope)?;
                Some(self.condition(typed, "HAVING", self.position_of(tree))?)
            }
            None => None,
        };
        let sort = self.order_by(query.order_by.as_ref(), &mut scope, &mut outputs, distinct)?;

        let columns = outputs[..visible].iter();
        let columns = columns.map(|output| self.describe(output, &scope)).collect();
        let mut projection: Vec<Expr> = outputs.into_iter().map(|output| output.typed.expr).collect();
        let aggregate = self.grouping(&mut scope, keys, having, &mut projection)?;
        let (limit, offset) = self.limit(query)?;
        let mut plan = SelectPlan {
            source: Source::OneRow,
            lock: self.row_lock(&query.locks, &scope)?,
            aggregate,
            projection,
            visible,
            distinct,
            sort,
            limit,
            offset,
            stop_after: None,
            columns,
        };
        refuse_lock(&plan, &from)?;
        plan.source = match from {
            From::Nothing => one_row(conditions),
            From::Series(mut series) => {
                series.filter = all(conditions);
                Source::Series(series)
            }
            From::Table(table) => Source::Table(table_under(&mut plan, table, conditions)),
        };
        Ok(plan)
    }

    /// Grouping and the aggregates that were collected, if there are any; the projection then reads the rows of groups.
    fn grouping(
        &mut self,
        scope: &mut Scope,
        keys: Vec<Typed>,
        having: Option<Expr>,
        projection: &mut Vec<Expr>,
    ) -> Result<Option<AggregatePlan>> {
        let Aggregates::Collected(calls) = std::mem::replace(&mut scope.aggregates, Aggregates::Refused)
        else {
            return Err(EngineError::internal("aggregates were lost while binding"));
        };
        if calls.is_empty() && keys.is_empty() && having.is_none() {
            return Ok(None);
        }
        let names: Vec<String> = scope.columns.iter().map(|column| column.name.clone()).collect();
        let mut regroup = |expr: Expr| self.regroup(expr, &keys, &names);
        let grouped = std::mem::take(projection).into_iter().map(&mut regroup);
        *projection = grouped.collect::<Result<_>>()?;
        let having = having.map(regroup).transpose()?;
        let (keys, key_types) = keys.into_iter().map(|key| (key.expr, key.data_type)).unzip();
        Ok(Some(AggregatePlan {
            keys,
            key_types,
            calls,
            having,
        }))
    }

    fn refuse_odd_clauses(&self, select: &ast::Select) -> Result<()> {
        refuse(select.into.is_some(), "SELECT INTO")?;
        refuse(!select.named_window.is_empty(), "WINDOW")?;
        refuse(select.qualify.is_some(), "QUALIFY")?;
        refuse(select.top.is_some(), "TOP")?;
        refuse(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        refuse(select.prewhere.is_some(), "PREWHERE")?;
        refuse(!select.connect_by.is_empty(), "CONNECT BY")?;
        refuse(
            !select.cluster_by.is_empty() || !select.distribute_by.is_empty() || !select.sort_by.is_empty(),
            "CLUSTER BY, DISTRIBUTE BY or SORT BY",
        )?;
        refuse(select.exclude.is_some(), "EXCLUDE")?;
        refuse(select.value_table_mode.is_some(), "SELECT AS")?;
        refuse(select.select_modifiers.is_some(), "a select modifier")?;
        refuse(select.flavor != ast::SelectFlavor::Standard, "FROM before SELECT")
    }

    fn row_lock(&self, locks: &[ast::LockClause], scope: &Scope) -> Result<Option<RowLock>> {
        let lock = match locks {
            [] => return Ok(None),
            [lock] => lock,
            _ => return Err(EngineError::not_supported("several FOR UPDATE clauses")),
        };
        if let Some(of) = &lock.of {
            let (_, name, span) = split_name(of)?;
            if scope.alias.as_deref() != Some(&name) {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause"),
                )
                .or_position(self.position(span)));
            }
        }
        let strength = match (&lock.lock_type, locks_without_keys(self.place.text)) {
            (ast::LockType::Update, false) => LockStrength::Update,
            (ast::LockType::Update, true) => LockStrength::NoKeyUpdate,
            (ast::LockType::Share, false) => LockStrength::Share,
            (ast::LockType::Share, true) => LockStrength::KeyShare,
        };
        let wait = match lock.nonblock {
            None => LockWaitPolicy::Block,
            Some(ast::NonBlock::Nowait) => LockWaitPolicy::NoWait,
            Some(ast::NonBlock::SkipLocked) => LockWaitPolicy::SkipLocked,
        };
        Ok(Some(RowLock { strength, wait }))
    }
}
