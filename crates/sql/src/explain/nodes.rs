//! The operators of a FROM as text.

use super::{Lines, Names, show, show_top, table_names};
use crate::access::AccessPath;
use crate::expr::Expr;
use crate::plan::{HashJoin, JoinKind, LoopJoin, Node, RowsPlan, SetOperator};
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
        Node::Hash(join) => {
            name_columns(&join.left, names);
            name_columns(&join.right, names);
        }
    }
}

impl Lines {
    pub(super) fn operator(&mut self, node: &Node, names: &Names) {
        checkpoint(|| self.operator_here(node, names));
    }

    fn operator_here(&mut self, node: &Node, names: &Names) {
        match node {
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
                    format!(" {name}")
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
                self.node(format!("Subquery Scan on {name}"));
                self.child(|lines| lines.select(plan));
            }
            Node::Series { .. } => self.node("Function Scan on generate_series"),
            Node::Functions { name, .. } => self.node(format!("Function Scan on {name}")),
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
            Node::Shared { name, .. } => self.node(format!("CTE Scan on {name}")),
            Node::Working { name, .. } => self.node(format!("WorkTable Scan on {name}")),
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
                self.child(|lines| lines.operator(input, names));
            }
            Node::Filter { input, condition } => self.filter(input, condition, names),
            Node::Loop(join) => self.loop_join(join, names),
            Node::Hash(join) => self.hash_join(join, names),
        }
    }

    /// A filter is a line of the operator that it is above.
    fn filter(&mut self, input: &Node, condition: &Expr, names: &Names) {
        let at = self.lines.len();
        self.operator(input, names);
        let line = format!(
            "{}Filter: {}",
            " ".repeat(6 * self.depth + 2),
            show(condition, names)
        );
        self.lines.insert(at + 1, line);
    }

    fn loop_join(&mut self, join: &LoopJoin, names: &Names) {
        self.node(format!("Nested Loop{}", kind_name(join.kind)));
        if let Some(condition) = &join.condition {
            self.property("Join Filter", show(condition, names));
        }
        self.child(|lines| {
            lines.operator(&join.left, names);
            let kept = join.keeps_right && !matches!(&join.right, Node::Table { scan, .. } if matches!(scan.access, AccessPath::UniquePoint { .. }));
            if kept {
                lines.node("Materialize");
                lines.child(|lines| lines.operator(&join.right, names));
            } else {
                lines.operator(&join.right, names);
            }
        });
    }

    fn hash_join(&mut self, join: &HashJoin, names: &Names) {
        self.node(format!(
            "Hash{}",
            if join.kind == JoinKind::Inner {
                " Join".to_owned()
            } else {
                kind_name(join.kind)
            }
        ));
        let keys: Vec<String> = join
            .keys
            .iter()
            .map(|(left, right, _)| format!("({} = {})", show_top(left, names), show_top(right, names)))
            .collect();
        let shown = match keys.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(" AND ")),
        };
        self.property("Hash Cond", shown);
        if let Some(condition) = &join.condition {
            self.property("Join Filter", show(condition, names));
        }
        self.child(|lines| {
            lines.operator(&join.left, names);
            lines.node("Hash");
            lines.child(|lines| lines.operator(&join.right, names));
        });
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
