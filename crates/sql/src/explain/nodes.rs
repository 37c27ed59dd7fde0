//! The operators of a FROM as text.

use std::sync::Arc;

use super::{Lines, Names, show, show_top, table_names};
use crate::access::AccessPath;
use crate::explained::tree::{CounterOf, Shown};
use crate::expr::Expr;
use crate::function::quote_identifier;
use crate::plan::{JoinKind, KeyJoin, LoopJoin, MergeJoin, Node, RowsPlan, SetOperator};
use crate::planner::Facts;
use crate::stack::checkpoint;

/// The names of the columns of a FROM's row.
pub(super) fn names(rows: &RowsPlan) -> Names {
    let mut names = Names {
        columns: vec![String::new(); rows.width],
        outer: Vec::new(),
    };
    name_columns(&rows.node, &mut names.columns);
    names
}

fn name_columns(node: &Node, names: &mut [String]) {
    let mut give = |base: u16, known_as: &str, columns: &mut dyn Iterator<Item = &str>| {
        for (at, column) in columns.enumerate() {
            names[usize::from(base) + at] = format!("{known_as}.{column}");
        }
    };
    match node {
        Node::OneRow => {}
        Node::Measured(measured) => name_columns(&measured.input, names),
        Node::Table { scan, base, name, .. } => {
            give(
                *base,
                name,
                &mut scan.table.columns.iter().map(|column| &*column.name),
            );
        }
        Node::Query { plan, base, name, .. } => {
            give(*base, name, &mut plan.columns.iter().map(|column| &*column.name));
        }
        Node::Series { base, .. } => give(*base, "generate_series", &mut std::iter::once("generate_series")),
        Node::Functions {
            functions,
            base,
            name,
            ..
        } => {
            let count = functions.calls.len() + usize::from(functions.ordinality);
            give(*base, name, &mut std::iter::repeat_n(name.as_str(), count));
        }
        Node::Values { rows, base } => {
            let columns: Vec<String> = (1..=rows.first().map_or(0, Vec::len))
                .map(|n| format!("column{n}"))
                .collect();
            give(*base, "\"*VALUES*\"", &mut columns.iter().map(String::as_str));
        }
        Node::Set(set) => {
            let columns = &set.left.0.columns;
            let base = usize::from(set.base);
            for (at, column) in columns.iter().enumerate() {
                names[base + at].clone_from(&column.name);
            }
        }
        Node::Shared { .. } | Node::Recursive(_) | Node::Working { .. } | Node::Change => {}
        Node::Filter { input, .. } | Node::Gate { input, .. } => name_columns(input, names),
        Node::Loop(join) => {
            name_columns(&join.left, names);
            name_columns(&join.right, names);
        }
        Node::Merge(merge) => {
            name_columns(&merge.join.left, names);
            name_columns(&merge.join.right, names);
        }
        Node::Hash(join) => {
            name_columns(&join.left, names);
            name_columns(&join.right, names);
        }
    }
}

impl Lines<'_> {
    /// An operator that runs so many times, over a row of which `facts` are known.
    pub(super) fn operator(&mut self, node: &Node, names: &Names, facts: &Facts, runs: f64) {
        checkpoint(|| self.operator_here(node, names, facts, runs));
    }

    fn operator_here(&mut self, node: &Node, names: &Names, facts: &Facts, runs: f64) {
        if self.cost.is_none() {
            self.cost = Some(self.costs.node(node, facts, runs));
        }
        match node {
            Node::Measured(measured) => {
                self.counter
                    .get_or_insert_with(|| CounterOf::Node(Arc::clone(&measured.counter)));
                self.operator(&measured.input, names, facts, runs);
            }
            Node::OneRow => self.node("Result"),
            Node::Table {
                scan,
                arguments,
                name,
                ..
            } => {
                let known_as = if *name == scan.table.name {
                    String::new()
                } else {
                    format!(" {}", quote_identifier(name))
                };
                let names = Names {
                    outer: arguments
                        .iter()
                        .map(|argument| show_top(argument, names))
                        .collect(),
                    ..table_names(&scan.table)
                };
                self.scan(scan, &known_as, &names);
            }
            Node::Query { plan, name, .. } => {
                self.node(format!("Subquery Scan on {}", quote_identifier(name)));
                self.child(|lines| lines.select(plan));
            }
            Node::Series { .. } => self.node("Function Scan on generate_series"),
            Node::Functions { name, .. } => self.node(format!("Function Scan on {}", quote_identifier(name))),
            Node::Values { rows, .. } if rows.len() == 1 => self.node("Result"),
            Node::Values { .. } => self.node("Values Scan on \"*VALUES*\""),
            Node::Set(set) => {
                let name = match (set.operator, set.all) {
                    (SetOperator::Union, true) => "Append",
                    (SetOperator::Union, false) => "HashSetOp Union",
                    (SetOperator::Intersect, true) => "HashSetOp Intersect All",
                    (SetOperator::Intersect, false) => "HashSetOp Intersect",
                    (SetOperator::Except, true) => "HashSetOp Except All",
                    (SetOperator::Except, false) => "HashSetOp Except",
                };
                self.node(name);
                self.child(|lines| {
                    lines.select(&set.left.0);
                    lines.select(&set.right.0);
                });
            }
            Node::Shared { name, .. } => self.node(format!("CTE Scan on {}", quote_identifier(name))),
            Node::Working { name, .. } => self.node(format!("WorkTable Scan on {}", quote_identifier(name))),
            Node::Recursive(plan) => {
                self.node("Recursive Union");
                self.child(|lines| {
                    lines.select(&plan.union.left.0);
                    lines.select(&plan.union.right.0);
                });
            }
            Node::Change => self.node("Result"),
            Node::Gate { input, condition } => {
                self.node("Result");
                self.property("One-Time Filter", show(condition, names));
                if !matches!(input.unmeasured(), Node::OneRow) {
                    self.child(|lines| lines.operator(input, names, facts, runs));
                }
            }
            Node::Filter { input, condition } => {
                let at = self.nodes.len();
                self.operator(input, names, facts, runs);
                // A filter is a line of the operator that it is above.
                self.property_of(at, "Filter", Shown::Text(show(condition, names)));
                self.queries(at, std::iter::once(condition));
            }
            Node::Loop(join) => self.loop_join(join, names, facts),
            Node::Hash(join) => self.hash_join(join, names, facts),
            Node::Merge(join) => self.merge_join(join, names, facts),
        }
    }

    fn loop_join(&mut self, join: &LoopJoin, names: &Names, facts: &Facts) {
        let at = self.nodes.len();
        self.node(format!("Nested Loop{}", kind_name(join.kind)));
        if let Some(condition) = &join.condition {
            self.property("Join Filter", show(condition, names));
        }
        self.child(|lines| {
            lines.operator(&join.left, names, facts, 1.0);
            let left = lines.costs.node(&join.left, facts, 1.0).rows.max(1.0);
            let right = join.right.unmeasured();
            let kept = join.keeps_right && !matches!(right, Node::Table { scan, .. } if matches!(scan.access, AccessPath::UniquePoint { .. }));
            if kept {
                let cost = lines.costs.node(&join.right, facts, 1.0);
                lines.costed(cost, "Materialize");
                lines.child(|lines| lines.operator(&join.right, names, facts, 1.0));
            } else {
                let rounds = lines.costs.rounds(&join.left, left, &join.right);
                lines.operator(&join.right, names, facts, rounds);
            }
        });
        self.queries(at, join.condition.iter());
    }

    fn hash_join(&mut self, join: &KeyJoin, names: &Names, facts: &Facts) {
        let at = self.nodes.len();
        self.key_join("Hash", join, names);
        self.child(|lines| {
            lines.operator(&join.left, names, facts, 1.0);
            let built = lines.costs.node(&join.right, facts, 1.0);
            let cost = crate::planner::Cost {
                startup: built.total,
                ..built
            };
            if let Node::Measured(measured) = &join.right {
                lines.counter = Some(CounterOf::Node(Arc::clone(&measured.counter)));
            }
            lines.costed(cost, "Hash");
            lines.child(|lines| lines.operator(&join.right, names, facts, 1.0));
        });
        self.queries(at, join.condition.iter());
    }
}

impl Lines<'_> {
    /// The title of a join by keys, and its conditions.
    fn key_join(&mut self, method: &str, join: &KeyJoin, names: &Names) {
        let kind = match join.kind {
            JoinKind::Inner => " Join".to_owned(),
            kind => kind_name(kind),
        };
        self.node(format!("{method}{kind}"));
        let keys: Vec<String> = join
            .keys
            .iter()
            .map(|(left, right, _)| format!("({} = {})", show_top(left, names), show_top(right, names)))
            .collect();
        let shown = match keys.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(" AND ")),
        };
        self.property(&format!("{method} Cond"), shown);
        if let Some(condition) = &join.condition {
            self.property("Join Filter", show(condition, names));
        }
    }

    fn merge_join(&mut self, merge: &MergeJoin, names: &Names, facts: &Facts) {
        let at = self.nodes.len();
        let join = &merge.join;
        self.key_join("Merge", join, names);
        self.child(|lines| {
            let keys = || join.keys.iter();
            let left: Vec<&Expr> = keys().map(|(left, _, _)| left).collect();
            let right: Vec<&Expr> = keys().map(|(_, right, _)| right).collect();
            for (node, sorts, keys) in [
                (&join.left, merge.sorts_left, left),
                (&join.right, merge.sorts_right, right),
            ] {
                match sorts {
                    true => lines.sorted(node, &keys, names, facts),
                    false => lines.operator(node, names, facts, 1.0),
                }
            }
        });
        self.queries(at, join.condition.iter());
    }

    /// An operator whose rows are sorted.
    fn sorted(&mut self, node: &Node, keys: &[&Expr], names: &Names, facts: &Facts) {
        let cost = self.costs.sort(self.costs.node(node, facts, 1.0), None);
        if let Node::Measured(measured) = node {
            self.counter = Some(CounterOf::Node(Arc::clone(&measured.counter)));
        }
        self.costed(cost, "Sort");
        self.list("Sort Key", keys.iter().map(|key| show_top(key, names)).collect());
        self.child(|lines| lines.operator(node, names, facts, 1.0));
    }
}

fn kind_name(kind: JoinKind) -> String {
    match kind {
        JoinKind::Inner => "",
        JoinKind::Left => " Left Join",
        JoinKind::Right => " Right Join",
        JoinKind::Full => " Full Join",
        JoinKind::Semi => " Semi Join",
        JoinKind::Anti => " Anti Join",
    }
    .to_owned()
}
