//! SELECT: here the clauses come together as a block, with WHERE, DISTINCT and HAVING.
//!
//! | module | clauses |
//! | --- | --- |
//! | `from` | FROM |
//! | `functions` | functions in FROM, ROWS FROM |
//! | `list` | the select list, RETURNING |
//! | `distinct_on` | DISTINCT ON |
//! | `group`, `grouping_sets` | GROUP BY |
//! | `lock` | FOR UPDATE |
//! | `project_set` | functions of the select list that give rows |
//! | `order` | ORDER BY, LIMIT, OFFSET |
//! | `set` | UNION, INTERSECT, EXCEPT, VALUES, queries in parentheses |

mod distinct_on;
mod from;
mod functions;
mod group;
mod grouping_sets;
mod list;
mod lock;
mod only_leaf;
mod order;
mod project_set;
mod set;

use sqlparser::ast::{self, Spanned};

use crate::aggregate::AggregateCall;
use crate::bind::json::require_comparable;
use crate::bind::scope::{Aggregates, Scope};
use crate::bind::window_calls::WindowCalls;
use crate::bind::{Binder, Typed, refuse};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::{AggregatePlan, JoinKind, SetCall, SetFunctions, SortKey};
use crate::planner::scan::conjuncts;
use crate::query::{Block, Join, Leaf, Relation, Rows};
pub(super) use from::{From, Places};
use group::{OverGroups, not_grouped};
pub(crate) use grouping_sets::{Entry as GroupEntry, without_distinct};
use grouping_sets::{Groups, Set};
use list::Output;
pub(super) use list::{ENTRIES_MAX, check_entries, column_name};
pub(super) use only_leaf::only_leaf;
pub(super) use order::direction;
use project_set::Calls;
pub(super) use set::keeps_equal_rows;

/// The name of the relation of functions of the select list that give rows.
const OF_SELECT_LIST: &str = "ProjectSet";

/// A FROM with functions of the select list that give rows: each of its rows as often as they give one.
fn with_functions(left: Relation, base: u16, calls: Vec<SetCall>) -> Relation {
    let right = Relation::Leaf(Leaf {
        base,
        width: calls.len() as u16,
        place: None,
        lock: None,
        name: OF_SELECT_LIST.to_owned(),
        rows: Rows::Functions(SetFunctions {
            calls,
            ordinality: false,
        }),
    });
    match left {
        Relation::OneRow => right,
        left => Relation::Join(Box::new(Join {
            kind: JoinKind::Inner,
            left,
            right,
            on: Vec::new(),
        })),
    }
}

/// 0A000 for parts of a query that are no SQL of PostgreSQL's.
pub(super) fn refuse_odd_parts(query: &ast::Query) -> Result<()> {
    refuse(!query.pipe_operators.is_empty(), "a pipe operator")?;
    refuse(
        query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some(),
        "FOR XML/JSON, SETTINGS or FORMAT",
    )
}

/// 42P19 for aggregates over the rows of the round before of a recursive query.
fn refuse_aggregates_in_recursion(from: &Relation) -> Result<()> {
    match from {
        Relation::OneRow => Ok(()),
        Relation::Join(join) => {
            refuse_aggregates_in_recursion(&join.left)?;
            refuse_aggregates_in_recursion(&join.right)
        }
        Relation::Leaf(leaf) => match &leaf.rows {
            Rows::Working(_) => Err(EngineError::new(
                SqlState::from_code("42P19"),
                "aggregate functions are not allowed in a recursive query's recursive term",
            )),
            _ => Ok(()),
        },
    }
}

/// The keys of ORDER BY, GROUP BY and DISTINCT, over the row that the projection reads. `distinct`: the number of columns
/// of DISTINCT.
fn known_keys(
    projection: &[Expr],
    sort: &[SortKey],
    aggregate: Option<&AggregatePlan>,
    distinct: Option<usize>,
) -> Vec<Expr> {
    let sorted = sort.iter().map(|key| projection[key.column].clone());
    let groups = aggregate.map_or(0, |aggregate| aggregate.keys.len() as u16);
    let distinct = projection[..distinct.unwrap_or(0)].iter().cloned();
    sorted
        .chain((0..groups).map(Expr::Column))
        .chain(distinct)
        .collect()
}

/// The projection and HAVING over the rows of groups, and the keys that each GROUPING is about.
type Grouped = (Vec<Expr>, Option<Expr>, Vec<Vec<u16>>);

/// True if a constant is there more often than as one whole expression.
fn is_used_again(constant: &Expr, exprs: &[Expr]) -> bool {
    let mut uses = 0;
    if let Expr::Constant(_) = constant {
        for expr in exprs {
            uses += usize::from(expr != constant);
            expr.walk(&mut |part| uses += usize::from(part == constant));
            uses -= usize::from(expr != constant);
        }
    }
    uses > 1
}

/// True if an expression has a GROUPING inside it.
fn has_grouping(exprs: &[Expr]) -> bool {
    let mut found = false;
    for expr in exprs {
        expr.walk(&mut |part| found |= grouping_sets::grouping_arguments(part).is_some());
    }
    found
}

impl Binder<'_> {
    /// A query. `settle`: columns without a type become text (an INSERT leaves them open).
    pub(super) fn query(&mut self, query: &ast::Query, settle: bool) -> Result<Block> {
        refuse_odd_parts(query)?;
        let at_top = std::mem::take(&mut self.with.at_top);
        if query.with.is_none() {
            let block = self.deeper(1, |binder| binder.body(query, settle))?;
            self.note_query(query, &block.columns);
            return Ok(block);
        }
        let first = self.subqueries.len();
        let block = self.after_with(query.with.as_ref(), at_top, |binder| {
            let mut block = binder.deeper(1, |binder| binder.body(query, settle))?;
            binder.inline_single_uses(first, &mut block);
            Ok(block)
        })?;
        self.note_query(query, &block.columns);
        Ok(block)
    }

    fn body(&mut self, query: &ast::Query, settle: bool) -> Result<Block> {
        let is_bare = query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty();
        match &*query.body {
            ast::SetExpr::Select(select) => self.select(select, Some(query), settle),
            other => {
                let block = self.set_expression(other, settle)?;
                if is_bare {
                    return Ok(block);
                }
                self.around(block, query)
            }
        }
    }

    /// A SELECT, with the clauses of the query around it if it is the whole body of one.
    pub(super) fn select(
        &mut self,
        select: &ast::Select,
        query: Option<&ast::Query>,
        settle: bool,
    ) -> Result<Block> {
        self.with_entries(|binder| binder.select_here(select, query, settle))
    }

    fn select_here(
        &mut self,
        select: &ast::Select,
        query: Option<&ast::Query>,
        settle: bool,
    ) -> Result<Block> {
        self.refuse_odd_clauses(select)?;
        let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        let (mut from, mut width) = self.from(&select.from)?;
        let mut scope = Scope::of(std::mem::take(&mut from.names), "WHERE");

        // WHERE comes first: what it says of a parameter's type counts before the select list does.
        let conditions = match &select.selection {
            Some(tree) => {
                let typed = self.expression(tree, &mut scope)?;
                conjuncts(self.condition(typed, "WHERE", self.position_of(tree))?)
            }
            None => Vec::new(),
        };
        scope.clause = "the select list";
        scope.aggregates = Aggregates::Collected(Vec::new());
        self.named_windows(&select.named_window, &mut scope)?;
        scope.sets = Some((width as u16, Vec::new()));
        let mut outputs = self.select_list(&select.projection, &mut scope, settle)?;
        let carried = self.carry_added(select, &scope);
        outputs.extend(carried.iter().map(Output::of_column));
        let visible = outputs.len();
        let mut groups = self.group_by(&select.group_by, &mut scope, &outputs)?;
        let having = match &select.having {
            Some(tree) => Some(self.having(tree, &mut scope)?),
            None => None,
        };
        let order_by = query.and_then(|query| query.order_by.as_ref());
        let mut sort = self.order_by(order_by, &mut scope, &mut outputs, distinct)?;
        let distinct_on = match &select.distinct {
            Some(ast::Distinct::On(trees)) => {
                self.distinct_on(trees, &mut scope, &mut outputs, visible, &mut sort)?
            }
            _ => 0,
        };

        let columns: Vec<_> = outputs[..visible].iter().map(Output::describe).collect();
        for column in columns.iter().filter(|_| distinct) {
            require_comparable(column.data_type, "equality", None)?;
        }
        self.note_outputs(select, &columns);
        let mut projection: Vec<Expr> = outputs.into_iter().map(|output| output.typed.expr).collect();
        let mut windows = scope.take_windows()?;
        let mut above = None;
        if let Some((base, calls)) = scope.sets.take()
            && !calls.is_empty()
        {
            let calls = Calls { base, calls };
            let is_grouped = groups.is_there || having.is_some() || scope.has_aggregates();
            if is_grouped || !windows.is_empty() || has_grouping(&projection) {
                let (relation, columns, outer) =
                    calls.place_around(from.relation, &mut groups, &mut projection)?;
                (from.relation, width, above) = (relation, columns, Some(outer));
            } else {
                (from.relation, width) = calls.place(from.relation, &mut projection)?;
            }
        }
        let aggregate = self.grouping(&mut scope, groups, having, &mut projection, &mut windows)?;
        let aggregates = aggregate
            .as_ref()
            .is_some_and(|aggregate| !aggregate.calls.is_empty());
        if aggregates {
            refuse_aggregates_in_recursion(&from.relation)?;
        }
        // What sorts and tells rows apart above is no key of the inner SELECT.
        let known = match &above {
            Some(_) => known_keys(&projection, &[], aggregate.as_ref(), None),
            None => known_keys(
                &projection,
                &sort,
                aggregate.as_ref(),
                distinct.then_some(visible),
            ),
        };
        let windows = windows.into_plans(known, &mut projection)?;
        let (limit, offset) = query.map_or(Ok((None, None)), |query| self.limit(query))?;
        let locks = query.map_or(&[][..], |query| &query.locks);
        let mut block = Block {
            from: from.relation,
            width,
            conditions,
            is_locked_from_outside: false,
            aggregate,
            windows,
            projection,
            visible,
            distinct,
            distinct_on,
            sort,
            limit,
            offset,
            columns,
        };
        self.lock_rows(locks, &scope.names, &mut block)?;
        if let Some(above) = above {
            return above.around(block);
        }
        Ok(block)
    }

    fn having(&mut self, tree: &ast::Expr, scope: &mut Scope) -> Result<Expr> {
        let windows = std::mem::take(&mut scope.windows);
        let clause = std::mem::replace(&mut scope.clause, "HAVING");
        let sets = scope.sets.take();
        let typed = self.expression(tree, scope)?;
        scope.sets = sets;
        scope.clause = clause;
        scope.windows = windows;
        self.condition(typed, "HAVING", self.position_of(tree))
    }

    /// Grouping and the aggregates that were collected, if there are any; the projection then reads the rows of groups.
    fn grouping(
        &mut self,
        scope: &mut Scope,
        groups: Groups,
        having: Option<Expr>,
        projection: &mut Vec<Expr>,
        windows: &mut WindowCalls,
    ) -> Result<Option<AggregatePlan>> {
        let Aggregates::Collected(mut calls) = std::mem::replace(&mut scope.aggregates, Aggregates::Refused)
        else {
            return Err(EngineError::internal("aggregates were lost while binding"));
        };
        if calls.is_empty() && !groups.is_there && having.is_none() && !has_grouping(projection) {
            return Ok(None);
        }
        let mut above = projection.clone();
        windows.each(&mut |expr| above.push(expr.clone()));
        let Groups {
            mut keys, mut sets, ..
        } = groups;
        // A set that leaves a key out makes it NULL, but not other constants that are the same.
        refuse(
            !sets.is_empty() && keys.iter().any(|key| is_used_again(&key.expr, &above)),
            "a constant among grouping sets that is used again",
        )?;
        let (mut grouped, having, groupings) =
            self.grouped(scope, &mut keys, &mut sets, &above, having, &mut calls)?;
        let mut of_windows = grouped.split_off(projection.len()).into_iter();
        *projection = grouped;
        windows.map(&mut |expr| Ok(of_windows.next().unwrap_or(expr)))?;
        let (keys, key_types) = keys.into_iter().map(|key| (key.expr, key.data_type)).unzip();
        Ok(Some(AggregatePlan {
            keys,
            key_types,
            sets,
            groupings,
            calls,
            having,
            late_keys: Vec::new(),
            late: Vec::new(),
        }))
    }

    /// The projection and HAVING over the rows of groups, and direct arguments of aggregates over their keys; with them,
    /// the keys that each GROUPING is about. Columns that follow from a key, because the primary key of their table is
    /// among the keys, become keys too.
    fn grouped(
        &mut self,
        scope: &Scope,
        keys: &mut Vec<Typed>,
        sets: &mut [Set],
        projection: &[Expr],
        having: Option<Expr>,
        calls: &mut [AggregateCall],
    ) -> Result<Grouped> {
        loop {
            let mut over = OverGroups {
                keys,
                calls: calls.len(),
                missing: None,
                missing_inside: false,
                inside: 0,
                groupings: Vec::new(),
            };
            let mut over_groups = |expr: &Expr| self.regroup(expr.clone(), &mut over);
            let grouped: Result<Vec<Expr>> = projection.iter().map(&mut over_groups).collect();
            let regrouped = having.as_ref().map(&mut over_groups).transpose();
            let direct = calls
                .iter()
                .map(|call| call.direct.iter().map(&mut over_groups).collect());
            let direct: Result<Vec<Vec<Expr>>> = direct.collect();
            let OverGroups {
                missing,
                missing_inside,
                groupings,
                ..
            } = over;
            let Some(column) = missing else {
                for (call, direct) in calls.iter_mut().zip(direct?) {
                    call.direct = direct;
                }
                return Ok((grouped?, regrouped?, groupings));
            };
            // What follows from keys does so where all of them are keys of the set.
            let in_all = |at: usize| sets.iter().all(|set| set.contains(&(at as u16)));
            let common = keys.iter().enumerate().filter(|(at, _)| in_all(*at));
            let common: Vec<Typed> = common.map(|(_, key)| key.clone()).collect();
            let Some(key) = self.dependent(column, &common, scope) else {
                let read = |expr: &Expr| {
                    let mut read = false;
                    expr.columns(&mut |found| read |= found == column);
                    read
                };
                let error = not_grouped(column, missing_inside, scope);
                return Err(match calls.iter().any(|call| call.direct.iter().any(read)) {
                    true => error.with_detail(
                        "Direct arguments of an ordered-set aggregate must use only grouped columns.",
                    ),
                    false => error,
                });
            };
            for set in &mut *sets {
                set.push(keys.len() as u16);
            }
            keys.push(key);
        }
    }

    fn refuse_odd_clauses(&self, select: &ast::Select) -> Result<()> {
        if let Some(into) = &select.into {
            let error = EngineError::new(SqlState::SYNTAX_ERROR, "SELECT ... INTO is not allowed here");
            let place = into.targets.first().map(|target| target.span());
            return Err(error.or_position(place.and_then(|place| self.position(place))));
        }
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
}
