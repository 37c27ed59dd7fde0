//! A plan as text, in PostgreSQL's manner but without costs: there are no statistics to make them from.
//!
//! ```text
//! Update on pgbench_accounts
//!   ->  Index Scan using pgbench_accounts_pkey on pgbench_accounts
//!         Index Cond: (aid = $1)
//! ```

mod nodes;

use crate::access::AccessPath;
use crate::catalog::TableDef;
use crate::error::{EngineError, Result};
use crate::expr::{CompareOp, Expr, SubqueryForm};
use crate::plan::{InsertSource, JoinedRows, RowsStatement, SelectPlan, Source, Statement, TableScan};
use crate::value::text::to_text;
use crate::value::{DataType, Value};

/// The lines of a statement's plan.
pub fn explain(statement: &Statement) -> Result<Vec<String>> {
    let not_explained = || Err(EngineError::not_supported(format!("EXPLAIN {}", statement.tag())));
    let Statement::Rows(statement) = statement else {
        return not_explained();
    };
    let mut lines = Lines::default();
    match statement {
        RowsStatement::Select(select) => lines.select(select),
        RowsStatement::Insert(insert) => {
            lines.node(format!("Insert on {}", insert.table.name));
            match &insert.source {
                InsertSource::Rows(rows) if rows.len() == 1 => lines.child(|lines| lines.node("Result")),
                InsertSource::Rows(_) => lines.child(|lines| lines.node("Values Scan on \"*VALUES*\"")),
                InsertSource::Select { select, .. } => lines.child(|lines| lines.select(select)),
            }
        }
        RowsStatement::Update(update) => {
            lines.node(format!("Update on {}", update.scan.table.name));
            lines.child(|lines| lines.changed(&update.scan, update.joined.as_deref()));
        }
        RowsStatement::Delete(delete) => {
            lines.node(format!("Delete on {}", delete.scan.table.name));
            lines.child(|lines| lines.changed(&delete.scan, delete.joined.as_deref()));
        }
        RowsStatement::Copy(_) | RowsStatement::Explain(_) => return not_explained(),
    }
    Ok(lines.lines)
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    depth: usize,
}

impl Lines {
    fn node(&mut self, text: impl std::fmt::Display) {
        let line = match self.depth {
            0 => text.to_string(),
            depth => format!("{}->  {text}", " ".repeat(6 * depth - 4)),
        };
        self.lines.push(line);
    }

    fn property(&mut self, name: &str, text: impl std::fmt::Display) {
        self.lines
            .push(format!("{}{name}: {text}", " ".repeat(6 * self.depth + 2)));
    }

    fn child(&mut self, fill: impl FnOnce(&mut Lines)) {
        self.depth += 1;
        fill(self);
        self.depth -= 1;
    }

    fn select(&mut self, select: &SelectPlan) {
        let names = match &select.source {
            Source::Table(scan) => table_names(&scan.table),
            Source::Series(_) => Names {
                columns: vec!["generate_series".to_owned()],
                outer: Vec::new(),
            },
            Source::OneRow => Names::default(),
            Source::Rows(rows) => nodes::names(rows),
        };
        let depth = self.depth;
        if select.limit.is_some() || select.offset.is_some() {
            self.node("Limit");
            self.depth += 1;
        }
        if select.lock.is_some() {
            self.node("LockRows");
            self.depth += 1;
        }
        if select.distinct_on > 0 {
            self.node("Unique");
            self.depth += 1;
        }
        if !select.sort.is_empty() {
            self.node("Sort");
            let group_names = group_names(select, &names);
            let keys: Vec<String> = select
                .sort
                .iter()
                .map(|key| {
                    let shown = show_top(&select.projection[key.column], &group_names);
                    let direction = if key.descending { " DESC" } else { "" };
                    let nulls = match (key.nulls_first, key.descending) {
                        (true, false) => " NULLS FIRST",
                        (false, true) => " NULLS LAST",
                        _ => "",
                    };
                    format!("{shown}{direction}{nulls}")
                })
                .collect();
            self.property("Sort Key", keys.join(", "));
            self.depth += 1;
        }
        if select.distinct {
            self.node("HashAggregate");
            let shown: Vec<String> = select.projection[..select.visible]
                .iter()
                .map(|expr| show_top(expr, &group_names(select, &names)))
                .collect();
            self.property("Group Key", shown.join(", "));
            self.depth += 1;
        }
        if let Some(aggregate) = &select.aggregate {
            self.node(match aggregate.keys.is_empty() {
                _ if aggregate.sets.iter().any(Vec::is_empty) => "MixedAggregate",
                true => "Aggregate",
                false => "HashAggregate",
            });
            let keys: Vec<String> = aggregate.keys.iter().map(|key| show_top(key, &names)).collect();
            for set in &aggregate.sets {
                let of_set: Vec<&str> = set.iter().map(|key| keys[usize::from(*key)].as_str()).collect();
                match of_set.is_empty() {
                    true => self.property("Group Key", "()".to_owned()),
                    false => self.property("Hash Key", of_set.join(", ")),
                }
            }
            if !keys.is_empty() && aggregate.sets.is_empty() {
                self.property("Group Key", keys.join(", "));
            }
            if let Some(having) = &aggregate.having {
                self.property("Filter", show(having, &group_names(select, &names)));
            }
            self.depth += 1;
        }
        match &select.source {
            Source::OneRow => self.node("Result"),
            Source::Series(series) => {
                self.node("Function Scan on generate_series");
                if let Some(filter) = &series.filter {
                    self.property("Filter", show(filter, &names));
                }
            }
            Source::Table(scan) => self.scan(scan, "", &table_names(&scan.table)),
            Source::Rows(rows) => self.operator(&rows.node, &names),
        }
        self.depth = depth;
    }

    /// The rows that a statement changes.
    fn changed(&mut self, scan: &TableScan, joined: Option<&JoinedRows>) {
        match joined {
            Some(joined) => self.operator(&joined.rows.node, &nodes::names(&joined.rows)),
            None => self.scan(scan, "", &table_names(&scan.table)),
        }
    }

    /// A scan; `known_as`: the name after the table's, if there is one.
    fn scan(&mut self, scan: &TableScan, known_as: &str, names: &Names) {
        let table = &scan.table;
        match scan.access.index() {
            None => self.node(format!("Seq Scan on {}{known_as}", table.name)),
            Some(number) => {
                let backward = match scan.access {
                    AccessPath::Range { reverse: true, .. } => " Backward",
                    _ => "",
                };
                self.node(format!(
                    "Index Scan{backward} using {} on {}{known_as}",
                    table.indexes[number].name, table.name
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

fn index_condition(scan: &TableScan, names: &Names) -> String {
    let table = &scan.table;
    let Some(number) = scan.access.index() else {
        return String::new();
    };
    let columns = &table.indexes[number].columns;
    let name = |at: usize| &table.columns[usize::from(columns[at])].name;
    let value = |expr: &Expr| show_top(expr, names);
    let mut parts = Vec::new();
    match &scan.access {
        AccessPath::Sequential => {}
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
        Expr::Aggregate(number) => format!("aggregate {number}"),
        Expr::Subquery(subquery) => {
            let plan = format!("(SubPlan {})", subquery.number + 1);
            match &subquery.form {
                SubqueryForm::Scalar => plan,
                SubqueryForm::Array(_) => format!("ARRAY{plan}"),
                SubqueryForm::Exists => format!("EXISTS{plan}"),
                SubqueryForm::Quantified(quantified) => format!(
                    "({} {} {} {plan})",
                    join(&quantified.operand, ", "),
                    quantified.op.symbol(),
                    if quantified.all { "ALL" } else { "ANY" }
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
            format!("{}({})", function.name(), join(arguments, ", "))
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
