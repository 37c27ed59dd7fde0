//! A plan as EXPLAIN shows it, in PostgreSQL's form.
//!
//! ```text
//! Update on pgbench_accounts  (cost=0.29..8.30 rows=0 width=0)
//!   ->  Index Scan using pgbench_accounts_pkey on pgbench_accounts  (cost=0.29..8.30 rows=1 width=10)
//!         Index Cond: (aid = $1)
//! ```
//!
//! Costs are computed from the plan, the catalog and the settings ([`crate::planner`]). What was measured lies in counters
//! that the plan has when it is made for that ([`crate::plan::Counter`]).
//!
//! | module | job |
//! | --- | --- |
//! | `nodes` | operators of a FROM |
//! | `facts` | the members of a document for an operator's title |
//!
//! The forms of the answer: [`crate::explained`].

mod facts;
mod nodes;
mod windows;

use std::sync::Arc;

use crate::access::AccessPath;
use crate::catalog::{CatalogView, EmptyCatalog, TableDef};
use crate::error::{EngineError, Result};
use crate::explained::tree::{CounterOf, Shown, ShownNode};
use crate::expr::{CompareOp, Expr, SubqueryForm};
use crate::function::quote_identifier;
use crate::index::IndexDef;
use crate::plan::{
    ConflictAction, Counter, InsertSource, JoinedRows, LockStrength, OnConflict, RowsStatement, SelectPlan,
    Source, StageCounters, Statement, TableScan,
};
use crate::planner::{Cost, Costs, Facts};
use crate::stack::checkpoint;
use crate::value::text::to_text;
use crate::value::{DataType, Value};

pub use crate::explained::{ExplainFormat, ExplainOptions, PlanTree};

/// The lines of a statement's plan, without costs.
pub fn explain(statement: &Statement) -> Result<Vec<String>> {
    let options = ExplainOptions {
        costs: Some(false),
        ..ExplainOptions::default()
    };
    plan_tree(statement, &[], &EmptyCatalog, options, None).map(|tree| tree.lines(None, &[]))
}

/// The counters of a statement that is measured: of the rows that it sends, and of those that it changes.
pub type StatementCounters = (Arc<Counter>, Arc<Counter>);

/// A statement's plan as it is shown.
pub fn plan_tree(
    statement: &Statement,
    subqueries: &[Arc<SelectPlan>],
    catalog: &dyn CatalogView,
    options: ExplainOptions,
    counters: Option<StatementCounters>,
) -> Result<PlanTree> {
    let not_explained = || Err(EngineError::not_supported(format!("EXPLAIN {}", statement.tag())));
    let Statement::Rows(statement) = statement else {
        return not_explained();
    };
    let (top, changed) = counters.unzip();
    let mut lines = Lines {
        nodes: Vec::new(),
        depth: 0,
        cost: None,
        counter: top.map(CounterOf::Node),
        changed: changed.map(CounterOf::Node),
        costs: Costs::new(catalog),
        options,
        subqueries,
        shown: Vec::new(),
    };
    match statement {
        RowsStatement::Select(select) => lines.select(select),
        RowsStatement::Insert(insert) => {
            lines.changing("Insert", &insert.table);
            if let Some(conflict) = &insert.conflict {
                lines.conflict(conflict, &insert.table);
            }
            match &insert.source {
                InsertSource::Rows(rows) if rows.len() == 1 => lines.child(|lines| lines.row_of_values(1)),
                InsertSource::Rows(rows) => lines.child(|lines| lines.row_of_values(rows.len())),
                InsertSource::Select { select, .. } => lines.child(|lines| lines.select(select)),
            }
        }
        RowsStatement::Update(update) => {
            lines.changing("Update", &update.scan.table);
            lines.child(|lines| lines.changed(&update.scan, update.joined.as_deref()));
        }
        RowsStatement::Delete(delete) => {
            lines.changing("Delete", &delete.scan.table);
            lines.child(|lines| lines.changed(&delete.scan, delete.joined.as_deref()));
        }
        RowsStatement::Merge(merge) => {
            let shown = lines.table_name(&merge.scan.table);
            let known_as = match merge.name == merge.scan.table.name {
                true => String::new(),
                false => format!(" {}", quote_identifier(&merge.name)),
            };
            lines.node(format!("Merge on {shown}{known_as}"));
            lines.child(|lines| lines.changed(&merge.scan, Some(&merge.joined)));
        }
        RowsStatement::Copy(_) | RowsStatement::Explain(_) | RowsStatement::Measured(_) => {
            return not_explained();
        }
    }
    Ok(PlanTree {
        top: lines.finish(),
        options,
        ..PlanTree::default()
    })
}

/// A plan on its way to what is shown: operators in the order of their lines, with their depths.
struct Lines<'l> {
    nodes: Vec<(usize, ShownNode)>,
    depth: usize,
    /// Of the next operator.
    cost: Option<Cost>,
    /// Of the next operator.
    counter: Option<CounterOf>,
    /// Of the rows that the statement changes.
    changed: Option<CounterOf>,
    costs: Costs<'l>,
    options: ExplainOptions,
    subqueries: &'l [Arc<SelectPlan>],
    /// The queries of expressions that are shown already.
    shown: Vec<usize>,
}

impl Lines<'_> {
    fn node(&mut self, title: impl std::fmt::Display) {
        let title = title.to_string();
        let node = ShownNode {
            facts: facts::members(&title),
            title,
            cost: self.cost.take(),
            counter: self.counter.take(),
            ..ShownNode::default()
        };
        self.nodes.push((self.depth, node));
    }

    /// A node of this cost, unless one is known already.
    fn costed(&mut self, cost: Cost, title: impl std::fmt::Display) {
        self.cost.get_or_insert(cost);
        self.node(title);
    }

    fn property(&mut self, name: &str, text: impl std::fmt::Display) {
        let at = self.nodes.len().saturating_sub(1);
        self.property_of(at, name, Shown::Text(text.to_string()));
    }

    fn list(&mut self, name: &str, texts: Vec<String>) {
        let at = self.nodes.len().saturating_sub(1);
        self.property_of(at, name, Shown::Texts(texts));
    }

    /// A property of the operator at a place; two of one name are shown as one.
    fn property_of(&mut self, at: usize, name: &str, value: Shown) {
        let Some((_, node)) = self.nodes.get_mut(at) else {
            return;
        };
        let known = node.properties.iter_mut().find(|(known, _)| known == name);
        match (known, value) {
            (Some((_, Shown::Text(before))), Shown::Text(text)) => *before = format!("({before} AND {text})"),
            (_, value) => node.properties.push((name.to_owned(), value)),
        }
    }

    fn child(&mut self, fill: impl FnOnce(&mut Self)) {
        self.depth += 1;
        fill(self);
        self.depth -= 1;
    }

    /// The top of a statement that changes a table: no rows come out.
    fn changing(&mut self, operation: &str, table: &TableDef) {
        let shown = self.table_name(table);
        self.node(format!("{operation} on {shown}"));
    }

    /// ON CONFLICT, as properties of the INSERT.
    fn conflict(&mut self, conflict: &OnConflict, table: &TableDef) {
        let resolution = match &conflict.action {
            ConflictAction::Nothing => "NOTHING",
            ConflictAction::Update(_) => "UPDATE",
            ConflictAction::Select(select) => select.lock.map_or("SELECT", LockStrength::statement),
        };
        self.property("Conflict Resolution", resolution);
        if conflict.names_arbiters {
            let names = conflict.arbiters.iter().map(|at| table.indexes[*at].name.clone());
            self.list("Conflict Arbiter Indexes", names.collect());
        }
        if let Some(condition) = conflict.action.condition() {
            let mut names = table_names(table);
            let excluded = table
                .columns
                .iter()
                .map(|column| format!("excluded.{}", column.name));
            names.columns.extend(excluded);
            self.property("Conflict Filter", show(condition, &names));
        }
    }

    fn row_of_values(&mut self, rows: usize) {
        let row = self.costs.one_row();
        self.counter = self.changed.clone();
        let cost = Cost {
            total: row.total * rows as f64,
            rows: rows as f64,
            ..row
        };
        match rows {
            1 => self.costed(cost, "Result"),
            _ => self.costed(cost, "Values Scan on \"*VALUES*\""),
        }
    }

    /// A table's name, quoted where it must be; with its schema if that is wanted.
    fn table_name(&self, table: &TableDef) -> String {
        let name = quote_identifier(&table.name);
        match self.options.verbose {
            true => format!("public.{name}"),
            false => name.to_string(),
        }
    }

    /// The queries of expressions, below the operator at a place.
    fn queries<'e>(&mut self, at: usize, expressions: impl Iterator<Item = &'e Expr>) {
        let mut found: Vec<(usize, bool)> = Vec::new();
        for expression in expressions {
            expression.walk(&mut |part| {
                if let Expr::Subquery(subquery) = part {
                    found.push((subquery.number, is_initial(subquery)));
                }
            });
        }
        let Some(depth) = self.nodes.get(at).map(|(depth, _)| *depth) else {
            return;
        };
        for (number, is_initial) in found {
            let Some(plan) = self
                .subqueries
                .get(number)
                .filter(|_| !self.shown.contains(&number))
            else {
                continue;
            };
            self.shown.push(number);
            let (plan, first, before) = (Arc::clone(plan), self.nodes.len(), self.depth);
            (self.depth, self.counter, self.cost) = (depth + 1, None, None);
            self.select(&plan);
            self.depth = before;
            if let Some((_, node)) = self.nodes.get_mut(first) {
                let (kind, name) = match is_initial {
                    true => ("InitPlan", format!("InitPlan {} (returns ${number})", number + 1)),
                    false => ("SubPlan", format!("SubPlan {}", number + 1)),
                };
                node.relationship = Some(kind);
                node.of_query = Some(name);
            }
        }
    }

    /// The tree of the operators.
    fn finish(self) -> ShownNode {
        let mut open: Vec<(usize, ShownNode)> = Vec::new();
        let close = |open: &mut Vec<(usize, ShownNode)>, depth: usize| {
            while open.len() > 1 && open.last().is_some_and(|(own, _)| *own >= depth) {
                let Some((_, node)) = open.pop() else { break };
                let Some((_, above)) = open.last_mut() else { break };
                let place = above
                    .inputs
                    .iter()
                    .filter(|input| input.of_query.is_none())
                    .count();
                let relationship = facts::relationship(&above.title, place);
                above.inputs.push(ShownNode {
                    relationship: node.relationship.or(Some(relationship)),
                    ..node
                });
            }
        };
        for (depth, node) in self.nodes {
            close(&mut open, depth);
            open.push((depth, node));
        }
        close(&mut open, 1);
        open.pop().map(|(_, node)| node).unwrap_or_default()
    }

    fn select(&mut self, select: &SelectPlan) {
        checkpoint(|| self.select_here(select));
    }

    fn select_here(&mut self, select: &SelectPlan) {
        let costs = self.costs.select(select);
        let counters = match &select.source {
            Source::Measured(measured) => Some(Arc::clone(&measured.counters)),
            _ => None,
        };
        let stage = |of: fn(&StageCounters) -> &Counter| {
            counters
                .as_ref()
                .map(|counters| CounterOf::Stage(Arc::clone(counters), of))
        };
        let first = self.nodes.len();
        let names = match select.source.unmeasured() {
            Source::Measured(_) => Names::default(),
            Source::Table(scan) => table_names(&scan.table),
            Source::Series(_) => Names {
                columns: vec!["generate_series".to_owned()],
                outer: Vec::new(),
            },
            Source::OneRow => Names::default(),
            Source::Rows(rows) => nodes::names(rows),
        };
        let depth = self.depth;
        let sorted = costs
            .sort
            .or(costs.distinct)
            .or(costs.aggregate)
            .unwrap_or(costs.source);
        if select.limit.is_some() || select.offset.is_some() {
            self.costed(costs.top, "Limit");
            self.depth += 1;
        }
        if select.lock.is_some() || select.locked.is_some() {
            self.costed(sorted, "LockRows");
            self.depth += 1;
        }
        if select.distinct_on > 0 {
            self.costed(sorted, "Unique");
            self.depth += 1;
        }
        if !select.sort.is_empty() {
            self.counter = stage(|counters| &counters.sort).or(self.counter.take());
            self.costed(sorted, "Sort");
            let group_names = windows::with_windows(select, group_names(select, &names));
            let keys: Vec<String> = select
                .sort
                .iter()
                .map(|key| {
                    let shown = show_top(&select.projection[key.column], &group_names);
                    format!("{shown}{}", windows::direction(key))
                })
                .collect();
            self.list("Sort Key", keys);
            self.depth += 1;
        }
        if select.distinct {
            self.counter = stage(|counters| &counters.distinct).or(self.counter.take());
            self.costed(costs.distinct.unwrap_or(sorted), "HashAggregate");
            let shown: Vec<String> = select.projection[..select.visible]
                .iter()
                .map(|expr| {
                    let names = windows::with_windows(select, group_names(select, &names));
                    show_top(expr, &names)
                })
                .collect();
            self.list("Group Key", shown);
            self.depth += 1;
        }
        self.windows(select, &group_names(select, &names), sorted);
        if let Some(aggregate) = &select.aggregate {
            self.counter = stage(|counters| &counters.aggregate).or(self.counter.take());
            let title = match aggregate.keys.is_empty() {
                _ if aggregate.sets.iter().any(Vec::is_empty) => "MixedAggregate",
                true => "Aggregate",
                false => "HashAggregate",
            };
            self.costed(costs.aggregate.unwrap_or(sorted), title);
            let keys: Vec<String> = aggregate.keys.iter().map(|key| show_top(key, &names)).collect();
            for set in &aggregate.sets {
                let of_set = set.iter().map(|key| keys[usize::from(*key)].clone()).collect();
                match set.is_empty() {
                    true => self.list("Group Key", vec!["()".to_owned()]),
                    false => self.list("Hash Key", of_set),
                }
            }
            if !keys.is_empty() && aggregate.sets.is_empty() {
                self.list("Group Key", keys);
            }
            if let Some(having) = &aggregate.having {
                self.property("Filter", show(having, &group_names(select, &names)));
            }
            self.depth += 1;
        }
        self.counter = stage(|counters| &counters.source).or(self.counter.take());
        self.source(select.source.unmeasured(), costs.source, &names);
        self.depth = depth;
        if self.options.verbose {
            let names = group_names(select, &names);
            let shown = select.projection[..select.visible].iter();
            let shown = shown.map(|expr| show_top(expr, &names)).collect();
            self.property_of(first, "Output", Shown::Texts(shown));
        }
        let having = select.aggregate.iter().flat_map(|aggregate| &aggregate.having);
        let keys = select.aggregate.iter().flat_map(|aggregate| &aggregate.keys);
        let shown = select.projection.iter().chain(having).chain(keys);
        self.queries(first, shown.chain(&select.limit).chain(&select.offset));
    }

    fn source(&mut self, source: &Source, cost: Cost, names: &Names) {
        match source {
            Source::OneRow => self.costed(cost, "Result"),
            Source::Series(series) => {
                self.costed(cost, "Function Scan on generate_series");
                if let Some(filter) = &series.filter {
                    self.property("Filter", show(filter, names));
                }
            }
            Source::Table(scan) => {
                self.cost.get_or_insert(cost);
                self.scan(scan, "", &table_names(&scan.table));
            }
            Source::Rows(rows) => {
                let facts = Facts::of_node(self.costs.catalog, &rows.node, rows.width);
                self.operator(&rows.node, names, &facts, 1.0);
            }
            Source::Measured(_) => {}
        }
    }

    /// The rows that a statement changes.
    fn changed(&mut self, scan: &TableScan, joined: Option<&JoinedRows>) {
        match joined {
            Some(joined) => {
                let facts = Facts::of_node(self.costs.catalog, &joined.rows.node, joined.rows.width);
                self.operator(&joined.rows.node, &nodes::names(&joined.rows), &facts, 1.0);
            }
            None => {
                self.cost = Some(self.costs.scan(scan, &[], &Facts::default(), 1.0));
                self.counter = self.changed.clone();
                self.scan(scan, "", &table_names(&scan.table));
            }
        }
    }

    /// A scan; `known_as`: the name after the table's, if there is one.
    fn scan(&mut self, scan: &TableScan, known_as: &str, names: &Names) {
        let table = &scan.table;
        match scan.access.index() {
            None => self.node(format!("Seq Scan on {}{known_as}", self.table_name(table))),
            Some(number) => {
                let backward = match scan.access {
                    AccessPath::Range { reverse: true, .. } => " Backward",
                    _ => "",
                };
                self.node(format!(
                    "Index Scan{backward} using {} on {}{known_as}",
                    quote_identifier(&table.indexes[number].name),
                    self.table_name(table)
                ));
                let condition = index_condition(scan, names);
                if !condition.is_empty() {
                    self.property("Index Cond", condition);
                }
            }
        }
        if let Some(filter) = &scan.filter {
            self.property("Filter", show(filter, names));
        }
    }
}

/// True if a query is run once, before all else: it needs nothing of the row around it and gives one value.
fn is_initial(subquery: &crate::expr::Subquery) -> bool {
    subquery.arguments.is_empty() && matches!(subquery.form, SubqueryForm::Scalar | SubqueryForm::Exists)
}

fn table_names(table: &TableDef) -> Names {
    Names {
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        outer: Vec::new(),
    }
}

/// The names of what expressions read.
#[derive(Debug, Clone, Default)]
struct Names {
    /// Of the row's columns.
    columns: Vec<String>,
    /// Of the arguments of the query or scan.
    outer: Vec<String>,
}

/// The names of the columns of the row that the projection reads.
fn group_names(select: &SelectPlan, names: &Names) -> Names {
    let Some(aggregate) = &select.aggregate else {
        return names.clone();
    };
    let keys = aggregate.keys.iter().map(|key| show_top(key, names));
    let calls = aggregate.calls.iter().map(|call| {
        let mut inputs: Vec<String> = call.inputs.iter().map(|input| show_top(input, names)).collect();
        inputs.truncate(call.argument_types.len());
        if inputs.is_empty() {
            inputs.push("*".to_owned());
        }
        format!(
            "{}({}{})",
            call.function.name(),
            if call.distinct { "DISTINCT " } else { "" },
            inputs.join(", ")
        )
    });
    let groupings = aggregate.groupings.iter().map(|keys| {
        let shown = keys
            .iter()
            .map(|key| show_top(&aggregate.keys[usize::from(*key)], names));
        format!("GROUPING({})", shown.collect::<Vec<_>>().join(", "))
    });
    Names {
        columns: keys.chain(calls).chain(groupings).collect(),
        outer: names.outer.clone(),
    }
}

/// A part of an index's key, columns without the name of their table.
fn show_key(index: &IndexDef, at: usize, table: &TableDef) -> String {
    let columns = table.columns.iter().map(|column| column.name.clone());
    let names = Names {
        columns: columns.collect(),
        outer: Vec::new(),
    };
    show_top(&index.key_expr(at), &names)
}

fn index_condition(scan: &TableScan, names: &Names) -> String {
    let table = &scan.table;
    let Some(number) = scan.access.index() else {
        return String::new();
    };
    let index = &table.indexes[number];
    let name = |at: usize| show_key(index, at, table);
    let value = |expr: &Expr| show_top(expr, names);
    let mut parts = Vec::new();
    match &scan.access {
        AccessPath::Sequential | AccessPath::CurrentOf(_) => {}
        AccessPath::UniquePoint { key, .. } => {
            parts.extend(
                key.iter()
                    .enumerate()
                    .map(|(at, expr)| format!("({} = {})", name(at), value(expr))),
            );
        }
        AccessPath::Points { values, .. } => {
            let values: Vec<String> = values.iter().map(value).collect();
            parts.push(format!("({} IN ({}))", name(0), values.join(", ")));
        }
        AccessPath::Range {
            prefix,
            lower,
            upper,
            skip_nulls,
            ..
        } => {
            parts.extend(
                prefix
                    .iter()
                    .enumerate()
                    .map(|(at, expr)| format!("({} = {})", name(at), value(expr))),
            );
            if let Some(bound) = lower {
                let op = if bound.inclusive { ">=" } else { ">" };
                parts.push(format!("({} {op} {})", name(prefix.len()), value(&bound.expr)));
            }
            if let Some(bound) = upper {
                let op = if bound.inclusive { "<=" } else { "<" };
                parts.push(format!("({} {op} {})", name(prefix.len()), value(&bound.expr)));
            }
            if *skip_nulls {
                parts.push(format!("({} IS NOT NULL)", name(prefix.len())));
            }
        }
    }
    match parts.len() {
        0 | 1 => parts.concat(),
        _ => format!("({})", parts.join(" AND ")),
    }
}

/// An expression without the outermost parentheses.
fn show_top(expr: &Expr, names: &Names) -> String {
    let shown = show(expr, names);
    match expr {
        Expr::Arithmetic { .. } | Expr::Cast { .. } if shown.starts_with('(') && shown.ends_with(')') => {
            shown
        }
        _ => shown,
    }
}

/// An expression as SQL, fully parenthesised.
fn show(expr: &Expr, names: &Names) -> String {
    let join = |parts: &[Expr], between: &str| {
        let parts: Vec<String> = parts.iter().map(|part| show(part, names)).collect();
        parts.join(between)
    };
    let negation = |negated: &bool| if *negated { "NOT " } else { "" };
    match expr {
        Expr::Constant(value) => constant(value),
        Expr::Column(column) => names
            .columns
            .get(usize::from(*column))
            .cloned()
            .unwrap_or_else(|| format!("?{column}")),
        Expr::Parameter(number) => format!("${}", number + 1),
        Expr::Outer(number) => names
            .outer
            .get(usize::from(*number))
            .cloned()
            .unwrap_or_else(|| format!("outer {number}")),
        Expr::Aggregate(number) | Expr::Window(number) => format!("aggregate {number}"),
        Expr::Subquery(subquery) => {
            if is_initial(subquery) {
                return format!("${}", subquery.number);
            }
            let plan = format!("(SubPlan {})", subquery.number + 1);
            match &subquery.form {
                SubqueryForm::Scalar => plan,
                SubqueryForm::Array(_) | SubqueryForm::Arrays(_) => format!("ARRAY{plan}"),
                SubqueryForm::Exists => format!("EXISTS{plan}"),
                SubqueryForm::Quantified(quantified) => format!(
                    "({} {} {} {plan})",
                    join(&quantified.operand, ", "),
                    quantified.op.symbol(),
                    if quantified.all { "ALL" } else { "ANY" }
                ),
                SubqueryForm::Tested { test, operand } => format!(
                    "({} {} {} {plan})",
                    show(operand, names),
                    test.symbol,
                    if test.all { "ALL" } else { "ANY" }
                ),
                SubqueryForm::Row(quantified) => {
                    let row = join(&quantified.operand, ", ");
                    format!("(({row}) {} {plan})", quantified.op.symbol())
                }
            }
        }
        Expr::Cast { input, to, .. } => format!("({})::{to}", show(input, names)),
        Expr::Compare { op, left, right, .. } => {
            format!("({} {} {})", show(left, names), op.symbol(), show(right, names))
        }
        Expr::Distinct {
            left, right, negated, ..
        } => {
            format!(
                "({} IS {}DISTINCT FROM {})",
                show(left, names),
                negation(negated),
                show(right, names)
            )
        }
        Expr::Arithmetic { op, left, right } => {
            format!("({} {} {})", show(left, names), op.symbol(), show(right, names))
        }
        Expr::Negate(input) => format!("(- {})", show(input, names)),
        Expr::Concat(left, right) => format!("({} || {})", show(left, names), show(right, names)),
        Expr::And(parts) => format!("({})", join(parts, " AND ")),
        Expr::Or(parts) => format!("({})", join(parts, " OR ")),
        Expr::Not(input) => format!("(NOT {})", show(input, names)),
        Expr::IsNull { input, negated } => format!("({} IS {}NULL)", show(input, names), negation(negated)),
        Expr::IsTruth {
            input,
            truth,
            negated,
        } => {
            let word = match truth {
                Some(true) => "TRUE",
                Some(false) => "FALSE",
                None => "UNKNOWN",
            };
            format!("({} IS {}{word})", show(input, names), negation(negated))
        }
        Expr::InList {
            input, list, negated, ..
        } => {
            format!(
                "({} {}IN ({}))",
                show(input, names),
                negation(negated),
                join(list, ", ")
            )
        }
        Expr::Quantified {
            op,
            all,
            input,
            array,
            ..
        } => {
            format!(
                "({} {} {} ({}))",
                show(input, names),
                op.symbol(),
                if *all { "ALL" } else { "ANY" },
                show(array, names)
            )
        }
        Expr::TestElements { test, input, array } => {
            format!(
                "({} {} {} ({}))",
                show(input, names),
                test.symbol,
                if test.all { "ALL" } else { "ANY" },
                show(array, names)
            )
        }
        Expr::RowTest {
            input,
            op,
            rows,
            negated,
            ..
        } => {
            let row = |columns: &[Expr]| format!("ROW({})", join(columns, ", "));
            let test = match (op, rows.as_slice()) {
                (CompareOp::Equal, rows) => {
                    let rows: Vec<String> = rows.iter().map(|columns| row(columns)).collect();
                    format!("{}IN ({})", negation(negated), rows.join(", "))
                }
                (op, rows) => format!(
                    "{} {}",
                    op.symbol(),
                    rows.first().map_or(String::new(), |one| row(one))
                ),
            };
            format!("({} {test})", row(input))
        }
        Expr::Like {
            input,
            pattern,
            ignore_case,
            negated,
            ..
        } => {
            let op = if *ignore_case { "ILIKE" } else { "LIKE" };
            format!(
                "({} {}{op} {})",
                show(input, names),
                negation(negated),
                show(pattern, names)
            )
        }
        Expr::Row { fields, .. } => format!("ROW({})", join(fields, ", ")),
        Expr::Field { input, number, .. } => format!("({}).f{}", show(input, names), number + 1),
        Expr::Case { branches, otherwise } => {
            let branches: Vec<String> = branches
                .iter()
                .map(|(condition, result)| {
                    format!("WHEN {} THEN {}", show(condition, names), show(result, names))
                })
                .collect();
            format!("CASE {} ELSE {} END", branches.join(" "), show(otherwise, names))
        }
        Expr::Call { function, arguments } => {
            if let Some(symbol) = function.row().operator {
                return match arguments.as_slice() {
                    [operand] => format!("({symbol} {})", show(operand, names)),
                    _ => format!("({})", join(arguments, &format!(" {symbol} "))),
                };
            }
            match arguments.split_last() {
                Some((array, in_front)) if function.row().spread => {
                    let shown = in_front.iter().map(|argument| show(argument, names));
                    let last = format!("VARIADIC {}", show(array, names));
                    let shown: Vec<String> = shown.chain([last]).collect();
                    format!("{}({})", function.name(), shown.join(", "))
                }
                _ => format!("{}({})", function.name(), join(arguments, ", ")),
            }
        }
        Expr::NextSerial { .. } => "nextval(…)".to_owned(),
        Expr::Previous => "…".to_owned(),
        Expr::Steps(steps) => steps.each(|steps| match steps {
            [only] => show(only, names),
            // Only the last steps of a long chain are shown.
            [.., before, last] => show(last, names).replacen('…', &show(before, names), 1),
            [] => String::new(),
        }),
    }
}

fn constant(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::Numeric(_) | Value::Float8(_) => {
            to_text(value).unwrap_or_default()
        }
        Value::Bool(truth) => truth.to_string(),
        other => {
            let text = to_text(other).unwrap_or_default().replace('\'', "''");
            match other.natural_type() {
                DataType::Text => format!("'{text}'::text"),
                data_type => format!("'{text}'::{data_type}"),
            }
        }
    }
}
