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

use sqlparser::ast;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::access::AccessPath;
use crate::sql::bind::path::{all, conjuncts, extreme, need, ordered_by_index, plan_scan};
use crate::sql::bind::{Aggregates, Binder, Scope, refuse, split_name};
use crate::sql::catalog::TableKind;
use crate::sql::expr::Expr;
use crate::sql::parse::locks_without_keys;
use crate::sql::plan::{AggregatePlan, LockStrength, LockWaitPolicy, RowLock, SelectPlan, Series, Source};
use crate::value::{DataType, Value};
use from::From;
pub(super) use list::ENTRIES_MAX;

impl Binder<'_> {
    /// A query. `settle`: columns without a type become text (an INSERT leaves them open).
    pub(super) fn query(&mut self, query: &ast::Query, settle: bool) -> Result<SelectPlan> {
        refuse(query.with.is_some(), "WITH")?;
        refuse(!query.pipe_operators.is_empty(), "a pipe operator")?;
        refuse(
            query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some(),
            "FOR XML/JSON, SETTINGS or FORMAT",
        )?;
        let select = match &*query.body {
            ast::SetExpr::Select(select) => select,
            ast::SetExpr::SetOperation { op, .. } => return Err(EngineError::not_supported(op.to_string())),
            ast::SetExpr::Values(_) => return Err(EngineError::not_supported("VALUES outside INSERT")),
            ast::SetExpr::Query(inner)
                if query.order_by.is_none()
                    && query.limit_clause.is_none()
                    && query.fetch.is_none()
                    && query.locks.is_empty() =>
            {
                return self.query(inner, settle);
            }
            ast::SetExpr::Query(_) => return Err(EngineError::not_supported("a query in parentheses")),
            ast::SetExpr::Table(_) => return Err(EngineError::not_supported("TABLE")),
            _ => return Err(EngineError::not_supported("a data-changing query")),
        };
        self.refuse_odd_clauses(select)?;
        let distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => false,
            Some(ast::Distinct::Distinct) => true,
            Some(ast::Distinct::On(_)) => return Err(EngineError::not_supported("DISTINCT ON")),
        };
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
        let mut sort = self.order_by(query.order_by.as_ref(), &mut scope, &mut outputs, distinct)?;
        let Aggregates::Collected(calls) = std::mem::replace(&mut scope.aggregates, Aggregates::Refused)
        else {
            return Err(EngineError::internal("aggregates were lost while binding"));
        };
        let grouped = !calls.is_empty() || !keys.is_empty() || having.is_some();

        let columns = outputs[..visible]
            .iter()
            .map(|output| self.describe(output, &scope))
            .collect();
        let mut projection: Vec<Expr> = outputs.into_iter().map(|output| output.typed.expr).collect();
        let aggregate = match grouped {
            true => {
                let names: Vec<String> = scope.columns.iter().map(|column| column.name.clone()).collect();
                let mut regroup = |expr: Expr| self.regroup(expr, &keys, &names);
                projection = projection.into_iter().map(&mut regroup).collect::<Result<_>>()?;
                let having = having.map(regroup).transpose()?;
                let (keys, key_types) = keys.iter().map(|key| (key.expr.clone(), key.data_type)).unzip();
                Some(AggregatePlan {
                    keys,
                    key_types,
                    calls,
                    having,
                })
            }
            false => None,
        };
        let (limit, offset) = self.limit(query)?;
        let lock = self.row_lock(&query.locks, &scope)?;
        if lock.is_some() && (grouped || distinct) {
            let with = if distinct {
                "DISTINCT"
            } else {
                "GROUP BY or aggregates"
            };
            return Err(EngineError::not_supported(format!("FOR UPDATE with {with}")));
        }

        let mut stop_after = None;
        let source = match from {
            From::Nothing => {
                refuse(lock.is_some(), "FOR UPDATE without a table")?;
                match conditions.is_empty() {
                    true => Source::OneRow,
                    // One row that a condition may take away: a series of one.
                    false => Source::Series(Series {
                        start: Expr::Constant(Value::Int4(1)),
                        stop: Expr::Constant(Value::Int4(1)),
                        step: None,
                        data_type: DataType::Int4,
                        filter: all(conditions),
                    }),
                }
            }
            From::Series(mut series) => {
                refuse(lock.is_some(), "FOR UPDATE over a function")?;
                series.filter = all(conditions);
                Source::Series(series)
            }
            From::Table(table) => {
                refuse(
                    lock.is_some() && table.kind == TableKind::Virtual,
                    "FOR UPDATE over a system view",
                )?;
                let unconditional = conditions.is_empty();
                let mut scan = plan_scan(table, conditions, lock.is_some());
                if let AccessPath::UniquePoint { .. } = scan.access {
                    stop_after = Some(1);
                }
                match &aggregate {
                    Some(aggregate) => {
                        if unconditional && let Some(access) = extreme(&scan.table, aggregate) {
                            scan.access = access;
                            stop_after = Some(1);
                        }
                        aggregate.keys.iter().for_each(|key| need(&mut scan.needed, key));
                        for call in &aggregate.calls {
                            call.argument
                                .iter()
                                .chain(&call.filter)
                                .for_each(|expr| need(&mut scan.needed, expr));
                        }
                    }
                    None => {
                        let limited = limit.is_some();
                        if !distinct && ordered_by_index(&mut scan, &projection, &sort, limited) {
                            sort.clear();
                        }
                        projection.iter().for_each(|expr| need(&mut scan.needed, expr));
                    }
                }
                Source::Table(scan)
            }
        };
        Ok(SelectPlan {
            source,
            aggregate,
            projection,
            visible,
            distinct,
            sort,
            limit,
            offset,
            stop_after,
            lock,
            columns,
        })
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
