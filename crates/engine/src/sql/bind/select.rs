//! SELECT.

use sqlparser::ast;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::access::AccessPath;
use crate::sql::bind::path::{all, conjuncts, extreme, need, ordered_by_index, plan_scan};
use crate::sql::bind::types::internal_type_name;
use crate::sql::bind::{
    AGGREGATE_BASE, Aggregates, Binder, Scope, ScopeColumn, Typed, identifier, normal, plain_name, refuse,
    split_name,
};
use crate::sql::catalog::{TableDef, TableKind};
use crate::sql::expr::Expr;
use crate::sql::plan::{
    AggregatePlan, Column, LockStrength, LockWaitPolicy, RowLock, SelectPlan, Series, SortKey, Source,
};
use crate::value::{DataType, Value};

/// The most entries of a select list together with what GROUP BY or ORDER BY adds to it, and the most aggregates, as in
/// PostgreSQL. Each new one is compared with those before it, so their number is bounded; and their numbers as columns
/// of a row stay far below [`AGGREGATE_BASE`].
pub(super) const ENTRIES_MAX: usize = 1_664;
const _: () = assert!(2 * ENTRIES_MAX < AGGREGATE_BASE as usize);

/// A column of the select list.
struct Output {
    typed: Typed,
    name: String,
}

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

    /// What FROM names.
    fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<(Scope, From)> {
        let one = match from {
            [] => return Ok((Scope::empty("WHERE"), From::Nothing)),
            [one] => one,
            [_, second, ..] => {
                return Err(EngineError::not_supported("a query over several tables (a join)")
                    .or_position(self.position_of_relation(&second.relation)));
            }
        };
        self.relation(one)
    }

    fn relation(&mut self, one: &ast::TableWithJoins) -> Result<(Scope, From)> {
        if let Some(join) = one.joins.first() {
            return Err(
                EngineError::not_supported("JOIN").or_position(self.position_of_relation(&join.relation))
            );
        }
        match &one.relation {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                with_ordinality: false,
                sample: None,
                ..
            } => {
                let table = self.table(name)?;
                let known_as = alias.as_ref().map(|alias| identifier(&alias.name));
                let mut scope = Scope::of_table(&table, known_as.transpose()?, "WHERE");
                for (column, renamed) in scope
                    .columns
                    .iter_mut()
                    .zip(alias.iter().flat_map(|alias| &alias.columns))
                {
                    column.name = normal(&renamed.name);
                }
                Ok((scope, From::Table(table)))
            }
            ast::TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality: false,
                ..
            } => self.series(name, &args.args, alias.as_ref()),
            ast::TableFactor::Function {
                lateral: false,
                name,
                args,
                alias,
                with_ordinality: false,
            } => self.series(name, args, alias.as_ref()),
            ast::TableFactor::Derived { .. } => Err(EngineError::not_supported("a subquery in FROM")
                .or_position(self.position_of_relation(&one.relation))),
            other => Err(EngineError::not_supported(format!("{other} in FROM"))),
        }
    }

    fn series(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Scope, From)> {
        let function = plain_name(name)?;
        if function != "generate_series" {
            return self.function_row(&function, args, alias);
        }
        let mut bounds = Vec::new();
        let mut scope = Scope::empty("functions in FROM");
        for argument in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) = argument else {
                return Err(EngineError::not_supported(format!("the argument {argument}")));
            };
            bounds.push(self.expression(tree, &mut scope)?);
        }
        let types: Vec<DataType> = bounds.iter().map(|bound| bound.data_type).collect();
        let data_type = match () {
            _ if types
                .iter()
                .all(|t| matches!(t, DataType::Int2 | DataType::Int4 | DataType::Unknown)) =>
            {
                DataType::Int4
            }
            _ if types.iter().all(|t| t.is_integer() || *t == DataType::Unknown) => DataType::Int8,
            _ => {
                return Err(EngineError::not_supported(
                    "generate_series over anything but integers",
                ));
            }
        };
        if !(2..=3).contains(&bounds.len()) {
            return Err(EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function generate_series with {} arguments does not exist",
                    bounds.len()
                ),
            ));
        }
        let mut bounds = bounds
            .into_iter()
            .map(|bound| self.coerce(bound, data_type, None))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        let series = Series {
            start: bounds.next().expect("two bounds"),
            stop: bounds.next().expect("two bounds"),
            step: bounds.next(),
            data_type,
            filter: None,
        };
        let table = alias.map_or(function, |alias| normal(&alias.name));
        let column = alias
            .and_then(|alias| alias.columns.first())
            .map_or(table.clone(), |column| normal(&column.name));
        let mut scope = Scope::empty("WHERE");
        scope.alias = Some(table);
        scope.columns.push(ScopeColumn {
            name: column,
            data_type,
            typmod: -1,
            value: None,
        });
        Ok((scope, From::Series(series)))
    }

    /// `FROM current_schema()`: one row with the function's value.
    fn function_row(
        &mut self,
        function: &str,
        args: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Scope, From)> {
        let mut trees = Vec::with_capacity(args.len());
        for argument in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) = argument else {
                return Err(EngineError::not_supported(format!("the argument {argument}")));
            };
            trees.push(tree);
        }
        let typed = self.scalar(function, &trees, &mut Scope::empty("functions in FROM"), None)?;
        // Each use of the column computes the value, which must be the same each time.
        refuse(
            !typed.expr.is_stable(),
            &format!("the function {function} in FROM"),
        )?;
        let table = alias.map_or(function.to_owned(), |alias| normal(&alias.name));
        let column = alias
            .and_then(|alias| alias.columns.first())
            .map_or(table.clone(), |column| normal(&column.name));
        let mut scope = Scope::empty("WHERE");
        scope.alias = Some(table);
        scope.columns.push(ScopeColumn {
            name: column,
            data_type: typed.data_type,
            typmod: typed.typmod,
            value: Some(typed.expr),
        });
        Ok((scope, From::Nothing))
    }

    fn select_list(
        &mut self,
        items: &[ast::SelectItem],
        scope: &mut Scope,
        settle: bool,
    ) -> Result<Vec<Output>> {
        let mut outputs = Vec::with_capacity(items.len());
        for item in items {
            check_entries(outputs.len())?;
            let (tree, alias) = match item {
                ast::SelectItem::UnnamedExpr(tree) => (tree, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(identifier(alias)?)),
                ast::SelectItem::Wildcard(options) => {
                    refuse(*options != plain_wildcard(options), "a wildcard with options")?;
                    if scope.alias.is_none() {
                        return Err(EngineError::new(
                            SqlState::SYNTAX_ERROR,
                            "SELECT * with no tables specified is not valid",
                        ));
                    }
                    outputs.extend(all_columns(scope));
                    continue;
                }
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    refuse(*options != plain_wildcard(options), "a wildcard with options")?;
                    let (_, table, span) = split_name(name)?;
                    if scope.alias.as_deref() != Some(&table) {
                        return Err(EngineError::new(
                            SqlState::UNDEFINED_TABLE,
                            format!("missing FROM-clause entry for table \"{table}\""),
                        )
                        .or_position(self.position(span)));
                    }
                    outputs.extend(all_columns(scope));
                    continue;
                }
                other => return Err(EngineError::not_supported(format!("the select item {other}"))),
            };
            let mut typed = self.expression(tree, scope)?;
            if settle {
                typed = self.settle(typed)?;
            }
            outputs.push(Output {
                typed,
                name: alias.unwrap_or_else(|| column_name(tree)),
            });
        }
        check_entries(outputs.len())?;
        Ok(outputs)
    }

    /// RETURNING over a table's row.
    pub(super) fn returning(
        &mut self,
        items: Option<&Vec<ast::SelectItem>>,
        table: &TableDef,
        alias: Option<String>,
    ) -> Result<Option<crate::sql::plan::Returning>> {
        let Some(items) = items else { return Ok(None) };
        let mut scope = Scope::of_table(table, alias, "RETURNING");
        let outputs = self.select_list(items, &mut scope, true)?;
        let columns = outputs
            .iter()
            .map(|output| self.describe(output, &scope))
            .collect();
        let projection = outputs.into_iter().map(|output| output.typed.expr).collect();
        Ok(Some(crate::sql::plan::Returning { projection, columns }))
    }

    fn describe(&self, output: &Output, scope: &Scope) -> Column {
        let (table_oid, attribute) = match output.typed.expr {
            Expr::Column(number) if number < AGGREGATE_BASE && scope.table_oid != 0 => {
                (scope.table_oid, number as i16 + 1)
            }
            _ => (0, 0),
        };
        Column {
            name: output.name.clone(),
            data_type: output.typed.data_type,
            type_modifier: output.typed.typmod,
            table_oid,
            attribute,
        }
    }

    fn group_by(
        &mut self,
        group_by: &ast::GroupByExpr,
        scope: &mut Scope,
        outputs: &[Output],
    ) -> Result<Vec<Typed>> {
        let trees = match group_by {
            ast::GroupByExpr::Expressions(trees, modifiers) if modifiers.is_empty() => trees,
            _ => return Err(EngineError::not_supported("GROUP BY ALL, ROLLUP or CUBE")),
        };
        let mut keys = Vec::with_capacity(trees.len());
        for tree in trees {
            // A column of the table comes before an output's name here; in ORDER BY it is the other way round.
            let is_column =
                |name: &str, scope: &Scope| scope.columns.iter().any(|column| column.name == name);
            let named = match tree {
                ast::Expr::Identifier(ident) if !is_column(&normal(ident), scope) => outputs
                    .iter()
                    .find(|output| output.name == normal(ident))
                    .map(|output| output.typed.clone()),
                _ => None,
            };
            let key = match (
                output_number(tree, outputs.len(), "GROUP BY", self.position_of(tree))?,
                named,
            ) {
                (Some(number), _) => outputs[number].typed.clone(),
                (None, Some(typed)) => typed,
                (None, None) => {
                    let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
                    let clause = std::mem::replace(&mut scope.clause, "GROUP BY");
                    let typed = self.expression(tree, scope)?;
                    scope.aggregates = aggregates;
                    scope.clause = clause;
                    self.settle(typed)?
                }
            };
            let mut aggregated = false;
            key.expr
                .columns(&mut |column| aggregated |= column >= AGGREGATE_BASE);
            if aggregated {
                return Err(EngineError::new(
                    SqlState::GROUPING_ERROR,
                    "aggregate functions are not allowed in GROUP BY",
                )
                .or_position(self.position_of(tree)));
            }
            self.tick()?;
            if !keys.iter().any(|known: &Typed| known.expr == key.expr) {
                keys.push(key);
                check_entries(keys.len())?;
            }
        }
        Ok(keys)
    }

    fn order_by(
        &mut self,
        order_by: Option<&ast::OrderBy>,
        scope: &mut Scope,
        outputs: &mut Vec<Output>,
        distinct: bool,
    ) -> Result<Vec<SortKey>> {
        let Some(order_by) = order_by else {
            return Ok(Vec::new());
        };
        refuse(order_by.interpolate.is_some(), "INTERPOLATE")?;
        let ast::OrderByKind::Expressions(keys) = &order_by.kind else {
            return Err(EngineError::not_supported("ORDER BY ALL"));
        };
        let visible = outputs.len();
        let mut sort: Vec<SortKey> = Vec::with_capacity(keys.len());
        for key in keys {
            refuse(key.with_fill.is_some(), "WITH FILL")?;
            let position = self.position_of(&key.expr);
            let named = match &key.expr {
                ast::Expr::Identifier(ident) => outputs[..visible]
                    .iter()
                    .position(|output| output.name == normal(ident)),
                _ => None,
            };
            let column = match (output_number(&key.expr, visible, "ORDER BY", position)?, named) {
                (Some(number), _) => number,
                (None, Some(number)) => number,
                (None, None) => {
                    let typed = self.expression(&key.expr, scope)?;
                    let typed = self.settle(typed)?;
                    match outputs.iter().position(|output| output.typed.expr == typed.expr) {
                        Some(number) => number,
                        None => {
                            outputs.push(Output {
                                typed,
                                name: String::new(),
                            });
                            check_entries(outputs.len())?;
                            outputs.len() - 1
                        }
                    }
                }
            };
            if distinct && column >= visible {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
                .or_position(position));
            }
            let descending = match &key.options.sort {
                None | Some(ast::OrderBySort::Asc) => false,
                Some(ast::OrderBySort::Desc) => true,
                Some(_) => return Err(EngineError::not_supported("ORDER BY … USING")),
            };
            if sort.iter().any(|other| other.column == column) {
                continue;
            }
            sort.push(SortKey {
                column,
                data_type: outputs[column].typed.data_type,
                descending,
                nulls_first: key.options.nulls_first.unwrap_or(descending),
            });
        }
        Ok(sort)
    }

    /// Turns an expression over input rows into one over group rows: keys and aggregate results by position; any other
    /// column is an error.
    fn regroup(&mut self, expr: Expr, keys: &[Typed], names: &[String]) -> Result<Expr> {
        self.tick()?;
        if let Some(at) = keys.iter().position(|key| key.expr == expr) {
            return Ok(Expr::Column(at as u16));
        }
        match expr {
            Expr::Column(column) if column >= AGGREGATE_BASE => {
                Ok(Expr::Column(keys.len() as u16 + column - AGGREGATE_BASE))
            }
            Expr::Column(column) => Err(EngineError::new(
                SqlState::GROUPING_ERROR,
                format!(
                    "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                    names.get(usize::from(column)).map_or("?", String::as_str)
                ),
            )),
            other => other.map_children(&mut |child| self.regroup(child, keys, names)),
        }
    }

    fn limit(&mut self, query: &ast::Query) -> Result<(Option<Expr>, Option<Expr>)> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset {
                limit: l,
                offset: o,
                limit_by,
            }) => {
                refuse(!limit_by.is_empty(), "LIMIT BY")?;
                limit = l.as_ref();
                offset = o.as_ref().map(|offset| &offset.value);
            }
            Some(ast::LimitClause::OffsetCommaLimit { .. }) => {
                return Err(EngineError::not_supported("LIMIT #,#")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        if let Some(fetch) = &query.fetch {
            refuse(
                fetch.with_ties || fetch.percent || limit.is_some(),
                "FETCH … WITH TIES or PERCENT",
            )?;
            let one = Expr::Constant(Value::Int8(1));
            let limit = match &fetch.quantity {
                Some(tree) => self.row_count(tree, "LIMIT")?,
                None => one,
            };
            return Ok((
                Some(limit),
                offset.map(|tree| self.row_count(tree, "OFFSET")).transpose()?,
            ));
        }
        Ok((
            limit.map(|tree| self.row_count(tree, "LIMIT")).transpose()?,
            offset.map(|tree| self.row_count(tree, "OFFSET")).transpose()?,
        ))
    }

    fn row_count(&mut self, tree: &ast::Expr, clause: &'static str) -> Result<Expr> {
        let position = self.position_of(tree);
        let typed = self.expression(tree, &mut Scope::empty(clause))?;
        self.assign(typed, DataType::Int8, -1, clause, position)
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
        let strength = match lock.lock_type {
            ast::LockType::Update => LockStrength::Update,
            ast::LockType::Share => LockStrength::Share,
        };
        let wait = match lock.nonblock {
            None => LockWaitPolicy::Block,
            Some(ast::NonBlock::Nowait) => LockWaitPolicy::NoWait,
            Some(ast::NonBlock::SkipLocked) => LockWaitPolicy::SkipLocked,
        };
        Ok(Some(RowLock { strength, wait }))
    }
}

/// What FROM names.
enum From {
    Nothing,
    Table(std::sync::Arc<TableDef>),
    Series(Series),
}

/// 54011 for a list of more than [`ENTRIES_MAX`] entries.
fn check_entries(count: usize) -> Result<()> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::TOO_MANY_COLUMNS,
        format!("target lists can have at most {ENTRIES_MAX} entries"),
    ))
}

fn all_columns(scope: &Scope) -> impl Iterator<Item = Output> + '_ {
    scope.columns.iter().enumerate().map(|(number, column)| Output {
        typed: column.typed(number),
        name: column.name.clone(),
    })
}

fn plain_wildcard(options: &ast::WildcardAdditionalOptions) -> ast::WildcardAdditionalOptions {
    ast::WildcardAdditionalOptions {
        wildcard_token: options.wildcard_token.clone(),
        ..Default::default()
    }
}

/// What PostgreSQL calls an unnamed output column.
fn column_name(tree: &ast::Expr) -> String {
    match tree {
        ast::Expr::Identifier(ident) => normal(ident),
        ast::Expr::CompoundIdentifier(parts) => parts.last().map(normal).unwrap_or_default(),
        ast::Expr::Nested(inner) => column_name(inner),
        ast::Expr::Cast { expr, data_type, .. } => match column_name(expr) {
            name if name == "?column?" => internal_type_name(data_type),
            name => name,
        },
        ast::Expr::Function(call) => plain_name(&call.name).unwrap_or_else(|_| "?column?".to_owned()),
        ast::Expr::Case { .. } => "case".to_owned(),
        ast::Expr::Ceil { .. } => "ceil".to_owned(),
        ast::Expr::Floor { .. } => "floor".to_owned(),
        ast::Expr::Value(ast::ValueWithSpan {
            value: ast::Value::Boolean(_),
            ..
        }) => "bool".to_owned(),
        ast::Expr::TypedString(typed) => internal_type_name(&typed.data_type),
        _ => "?column?".to_owned(),
    }
}

/// `ORDER BY 2`: the output it means, counted from 0.
fn output_number(
    tree: &ast::Expr,
    count: usize,
    clause: &str,
    position: Option<u32>,
) -> Result<Option<usize>> {
    let ast::Expr::Value(ast::ValueWithSpan {
        value: ast::Value::Number(digits, _),
        ..
    }) = tree
    else {
        return Ok(None);
    };
    match digits.parse::<usize>() {
        Ok(number) if (1..=count).contains(&number) => Ok(Some(number - 1)),
        _ => Err(EngineError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("{clause} position {digits} is not in select list"),
        )
        .or_position(position)),
    }
}
