//! Expressions as PostgreSQL's analysis has them, and their text.
//!
//! Without `pretty` each operator has parentheses of its own. With it an operand has them only where it is not *simple*
//! under what it is an operand of: a column, a constant or a call always is, an arithmetic operator under one that binds
//! less tightly, a condition under AND.

use sqlparser::ast;

use super::layout::{ENTRY, Layout};
use super::unprinted;
use crate::error::Result;
use crate::function::quote_identifier;
use crate::value::{DataType, format_type};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A column, as it is written.
    Column(String),
    /// A constant; without a text it is NULL.
    Constant {
        text: Option<String>,
        data_type: DataType,
        typmod: i32,
    },
    /// A word that is a value: CURRENT_DATE.
    Word(&'static str),
    /// A call: its name as it is written, and its arguments.
    Call {
        name: String,
        arguments: Vec<Node>,
    },
    /// A call with words inside: `EXTRACT(year FROM x)`. The texts stand before, between and behind the arguments.
    Special {
        texts: Vec<String>,
        arguments: Vec<Node>,
        /// True if it brings parentheses of its own.
        closed: bool,
    },
    /// An aggregate.
    Aggregate(Box<Aggregate>),
    Cast {
        argument: Box<Node>,
        data_type: DataType,
        typmod: i32,
        implicit: bool,
        /// A function makes it.
        by_function: bool,
    },
    /// An operator; one before its operand has no left side.
    Operator {
        symbol: String,
        left: Option<Box<Node>>,
        right: Box<Node>,
    },
    /// `left op ANY (array)`
    OverArray {
        left: Box<Node>,
        symbol: String,
        all: bool,
        array: Box<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Distinct(Box<Node>, Box<Node>),
    /// IS NULL, IS NOT TRUE, …
    Is(Box<Node>, &'static str),
    Case {
        operand: Option<Box<Node>>,
        branches: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
    /// ARRAY[…]; the type if it has no elements.
    Array(Vec<Node>, DataType),
    /// A value under another collation.
    Collate(Box<Node>, String),
    /// A part of an array, or a field of a record.
    Part {
        of: Box<Node>,
        steps: Vec<Access>,
    },
    /// A query inside the expression, with what stands before its parenthesis.
    Query(Box<QueryNode>),
}

/// A step to a part of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Access {
    Subscript(Node),
    Field(String),
}

/// A call of an aggregate or of a window function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aggregate {
    pub(super) name: String,
    pub(super) distinct: bool,
    /// None for `*`.
    pub(super) arguments: Option<Vec<Node>>,
    /// Each with what follows it.
    pub(super) order: Vec<(Node, &'static str)>,
    /// The keys of WITHIN GROUP, each with what follows it.
    pub(super) within: Vec<(Node, &'static str)>,
    pub(super) filter: Option<Node>,
    /// The text behind OVER.
    pub(super) over: Option<String>,
}

/// A query in an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryNode {
    /// The left side and the words after it: `x IN `.
    pub(super) test: Option<(Node, String)>,
    /// `EXISTS `, or `ARRAY` in place of the outer parenthesis.
    pub(super) word: &'static str,
    /// The query's text.
    pub(super) text: String,
}

/// The place of an operand, as far as parentheses depend on it.
#[derive(Clone, Copy)]
enum Under<'n> {
    /// A condition under AND, OR or NOT.
    Logical(&'n Node),
    /// An operator; true for its left side.
    Operator(&'n str, bool),
    Other,
}

/// Text of an expression. `implicit`: implicit casts are shown.
pub(super) fn print(out: &mut Layout, node: &Node, pretty: bool, implicit: bool) {
    crate::stack::checkpoint(|| print_here(out, node, pretty, implicit));
}

fn print_here(out: &mut Layout, node: &Node, pretty: bool, implicit: bool) {
    let open = |out: &mut Layout| out.push(if pretty { "" } else { "(" });
    let close = |out: &mut Layout| out.push(if pretty { "" } else { ")" });
    match node {
        Node::Column(text) => out.push(text),
        Node::Word(word) => out.push(word),
        Node::Constant {
            text,
            data_type,
            typmod,
        } => out.push(&constant(text.as_deref(), *data_type, *typmod, Label::IfNeeded)),
        Node::Call { name, arguments } => {
            out.push(name);
            out.push("(");
            list(out, arguments, pretty);
            out.push(")");
        }
        Node::Special {
            texts,
            arguments,
            closed,
        } => special(out, texts, arguments, *closed, pretty),
        Node::Aggregate(call) => aggregate(out, call, pretty),
        Node::Cast {
            argument,
            implicit: true,
            ..
        } if !implicit => print(out, argument, pretty, false),
        Node::Cast {
            argument,
            data_type,
            typmod,
            ..
        } => cast(out, argument, *data_type, *typmod, pretty),
        Node::Operator { symbol, left, right } => {
            open(out);
            if let Some(left) = left {
                operand(out, left, pretty, true, Under::Operator(symbol, true));
                out.push(" ");
            }
            out.push(symbol);
            out.push(" ");
            let under = if left.is_some() {
                Under::Operator(symbol, false)
            } else {
                Under::Other
            };
            operand(out, right, pretty, true, under);
            close(out);
        }
        Node::OverArray {
            left,
            symbol,
            all,
            array,
        } => {
            open(out);
            operand(out, left, pretty, true, Under::Other);
            out.push(&format!(" {symbol} {} (", if *all { "ALL" } else { "ANY" }));
            operand(out, array, pretty, true, Under::Other);
            out.push(")");
            close(out);
        }
        Node::And(parts) => logical(out, node, parts, " AND ", pretty),
        Node::Or(parts) => logical(out, node, parts, " OR ", pretty),
        Node::Not(inner) => {
            open(out);
            out.push("NOT ");
            operand(out, inner, pretty, false, Under::Logical(node));
            close(out);
        }
        Node::Collate(inner, collation) => {
            open(out);
            operand(out, inner, pretty, true, Under::Other);
            out.push(" COLLATE ");
            out.push(collation);
            close(out);
        }
        Node::Distinct(left, right) => {
            open(out);
            operand(out, left, pretty, true, Under::Other);
            out.push(" IS DISTINCT FROM ");
            operand(out, right, pretty, true, Under::Other);
            close(out);
        }
        Node::Is(inner, words) => {
            open(out);
            operand(out, inner, pretty, true, Under::Other);
            out.push(" ");
            out.push(words);
            close(out);
        }
        Node::Case {
            operand,
            branches,
            otherwise,
        } => case(out, operand.as_deref(), branches, otherwise, pretty),
        Node::Array(elements, data_type) => {
            out.push("ARRAY[");
            list(out, elements, pretty);
            out.push("]");
            if elements.is_empty() {
                out.push(&format!("::{}", format_type(*data_type, -1)));
            }
        }
        Node::Part { of, steps } => part(out, of, steps, pretty),
        Node::Query(query) => in_query(out, query, pretty),
    }
}

fn cast(out: &mut Layout, argument: &Node, data_type: DataType, typmod: i32, pretty: bool) {
    match argument {
        Node::Constant {
            text,
            data_type: of,
            typmod: -1,
        } if *of == data_type => out.push(&constant(text.as_deref(), *of, -1, Label::Never)),
        argument => {
            out.push(if pretty { "" } else { "(" });
            operand(out, argument, pretty, false, Under::Other);
            out.push(if pretty { "" } else { ")" });
        }
    }
    out.push("::");
    out.push(&format_type(data_type, typmod));
}

fn list(out: &mut Layout, nodes: &[Node], pretty: bool) {
    for (number, node) in nodes.iter().enumerate() {
        if number > 0 {
            out.push(", ");
        }
        print(out, node, pretty, true);
    }
}

fn logical(out: &mut Layout, node: &Node, parts: &[Node], word: &str, pretty: bool) {
    if !pretty {
        out.push("(");
    }
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            out.push(word);
        }
        operand(out, part, pretty, false, Under::Logical(node));
    }
    if !pretty {
        out.push(")");
    }
}

fn special(out: &mut Layout, texts: &[String], arguments: &[Node], closed: bool, pretty: bool) {
    for (number, text) in texts.iter().enumerate() {
        out.push(text);
        if let Some(argument) = arguments.get(number) {
            match closed {
                true => print(out, argument, pretty, false),
                false => operand(out, argument, pretty, false, Under::Other),
            }
        }
    }
}

fn aggregate(out: &mut Layout, call: &Aggregate, pretty: bool) {
    out.push(&call.name);
    out.push("(");
    if call.distinct {
        out.push("DISTINCT ");
    }
    match &call.arguments {
        None => out.push("*"),
        Some(arguments) => list(out, arguments, pretty),
    }
    keys(out, " ORDER BY ", &call.order, pretty);
    out.push(")");
    if !call.within.is_empty() {
        keys(out, " WITHIN GROUP (ORDER BY ", &call.within, pretty);
        out.push(")");
    }
    if let Some(filter) = &call.filter {
        out.push(" FILTER (WHERE ");
        print(out, filter, pretty, false);
        out.push(")");
    }
    if let Some(over) = &call.over {
        out.push(" OVER ");
        out.push(over);
    }
}

/// Keys of an order behind a keyword.
fn keys(out: &mut Layout, keyword: &str, keys: &[(Node, &'static str)], pretty: bool) {
    for (number, (key, words)) in keys.iter().enumerate() {
        out.push(if number == 0 { keyword } else { ", " });
        sort_key(out, key, pretty);
        out.push(words);
    }
}

fn case(out: &mut Layout, operand: Option<&Node>, branches: &[(Node, Node)], otherwise: &Node, pretty: bool) {
    out.keyword("CASE", 0, ENTRY, 0);
    if let Some(operand) = operand {
        out.push(" ");
        print(out, operand, pretty, true);
    }
    for (condition, result) in branches {
        out.keyword("WHEN ", 0, 0, 0);
        print(out, condition, pretty, false);
        out.push(" THEN ");
        print(out, result, pretty, true);
    }
    out.keyword("ELSE ", 0, 0, 0);
    print(out, otherwise, pretty, true);
    out.keyword("END", -ENTRY, 0, 0);
}

fn part(out: &mut Layout, of: &Node, steps: &[Access], pretty: bool) {
    // A name with a point behind it would be that of a relation.
    let bare = matches!((of, steps), (Node::Column(_), [Access::Subscript(_), ..]));
    if !bare {
        out.push("(");
    }
    print(out, of, pretty, true);
    if !bare {
        out.push(")");
    }
    for step in steps {
        match step {
            Access::Subscript(subscript) => {
                out.push("[");
                print(out, subscript, pretty, false);
                out.push("]");
            }
            Access::Field(name) => out.push(&format!(".{}", quote_identifier(name))),
        }
    }
}

fn in_query(out: &mut Layout, query: &QueryNode, pretty: bool) {
    if query.word == "ARRAY" {
        out.push("ARRAY(");
        out.push(&query.text);
        out.push(")");
        return;
    }
    out.push("(");
    let mut inner = false;
    if let Some((test, words)) = &query.test {
        print(out, test, pretty, true);
        out.push(words);
        inner = true;
    }
    if !query.word.is_empty() {
        out.push(query.word);
        inner = true;
    }
    if inner {
        out.push("(");
    }
    out.push(&query.text);
    out.push(if inner { "))" } else { ")" });
}

/// Text of an operand, in parentheses where it needs them.
fn operand(out: &mut Layout, node: &Node, pretty: bool, implicit: bool, under: Under<'_>) {
    let parenthesised = pretty && !is_simple(node, under);
    if parenthesised {
        out.push("(");
    }
    print(out, node, pretty, implicit);
    if parenthesised {
        out.push(")");
    }
}

/// True if an expression needs no parentheses in its place.
fn is_simple(node: &Node, under: Under<'_>) -> bool {
    match node {
        Node::Column(_)
        | Node::Constant { .. }
        | Node::Word(_)
        | Node::Call { .. }
        | Node::Aggregate(_)
        | Node::Case { .. }
        | Node::Array(..)
        | Node::Part { .. } => true,
        Node::Special { .. } => true,
        // The cast itself is written behind.
        Node::Cast { argument, .. } => is_simple(argument, Under::Other),
        Node::Operator {
            symbol,
            left: Some(_),
            ..
        } if let Under::Operator(parent, is_left) = under => is_simple_operator(symbol, parent, is_left),
        Node::Operator { .. } | Node::Query(_) | Node::Is(..) | Node::Distinct(..) => {
            matches!(under, Under::Logical(_))
        }
        Node::And(_) | Node::Or(_) | Node::Not(_) => match under {
            Under::Logical(parent) => match node {
                Node::Or(_) => matches!(parent, Node::Or(_)),
                _ => matches!(parent, Node::And(_) | Node::Or(_)),
            },
            _ => false,
        },
        Node::OverArray { .. } | Node::Collate(..) => false,
    }
}

/// Of the basic arithmetic operators the order of evaluation is known.
fn is_simple_operator(symbol: &str, parent: &str, is_left: bool) -> bool {
    let low = |symbol: &str| matches!(symbol, "+" | "-");
    let high = |symbol: &str| matches!(symbol, "*" | "/" | "%");
    if !(low(symbol) || high(symbol)) || !(low(parent) || high(parent)) {
        return false;
    }
    if high(symbol) && low(parent) {
        return true;
    }
    !(low(symbol) && high(parent)) && is_left
}

/// A key of ORDER BY or GROUP BY.
pub(super) fn sort_key(out: &mut Layout, node: &Node, pretty: bool) {
    match node {
        Node::Constant {
            text,
            data_type,
            typmod,
        } => out.push(&constant(text.as_deref(), *data_type, *typmod, Label::Always)),
        Node::Column(_) => print(out, node, pretty, true),
        _ => {
            let call = matches!(
                node,
                Node::Call { .. }
                    | Node::Aggregate(_)
                    | Node::Special { .. }
                    | Node::Cast {
                        by_function: true,
                        ..
                    }
            );
            if pretty || call {
                out.push("(");
            }
            print(out, node, pretty, true);
            if pretty || call {
                out.push(")");
            }
        }
    }
}

/// The words behind a sort key.
pub(super) fn direction(options: &ast::OrderByOptions) -> Result<&'static str> {
    let descending = match options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(_) => return Err(unprinted()),
    };
    Ok(match (descending, options.nulls_first) {
        (false, Some(true)) => " NULLS FIRST",
        (false, _) => "",
        (true, Some(false)) => " DESC NULLS LAST",
        (true, _) => " DESC",
    })
}

/// The type behind a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Never,
    IfNeeded,
    Always,
}

fn constant(text: Option<&str>, data_type: DataType, typmod: i32, label: Label) -> String {
    let of_type = |shown: String| format!("{shown}::{}", format_type(data_type, typmod));
    let Some(text) = text else {
        return match label {
            Label::Never => "NULL".to_owned(),
            _ => of_type("NULL".to_owned()),
        };
    };
    let (shown, needed) = match data_type {
        DataType::Int4 if !text.starts_with('-') => (text.to_owned(), false),
        DataType::Numeric
            if text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['.', 'e', 'E']) =>
        {
            (text.to_owned(), typmod >= 0)
        }
        DataType::Bool => ((if text == "t" { "true" } else { "false" }).to_owned(), false),
        DataType::Unknown => (quoted(text), false),
        _ => (quoted(text), true),
    };
    match label {
        Label::Never => shown,
        Label::IfNeeded if !needed => shown,
        _ => of_type(shown),
    }
}

/// A column's name behind its relation's.
pub(super) fn column(relation: Option<&str>, name: &str) -> Node {
    Node::Column(match relation {
        Some(relation) => format!("{}.{}", quote_identifier(relation), quote_identifier(name)),
        None => quote_identifier(name),
    })
}

/// A literal, in which a backslash is itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
