//! Queries and their clauses.

use sqlparser::ast;

use super::expression::{literal, row_cast};
use super::from::relations_of;
use super::layout::{ENTRY, Layout, STEP};
use super::node::{Node, direction, print, sort_key};
use super::operand::coerced;
use super::{Printer, unprinted};
use crate::bind::{is_bare, normal};
use crate::error::Result;
use crate::function::quote_identifier;
use crate::parse::{Clauses, with_clauses};
use crate::value::DataType;

/// The SELECT that a query is, if it is one alone.
fn select_of(body: &ast::SetExpr) -> Option<&ast::Select> {
    match body {
        ast::SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

impl Printer<'_> {
    /// The text of a query inside another.
    pub(super) fn query_inside(&mut self, out: &Layout, query: &ast::Query, named: bool) -> Result<String> {
        let mut inside = out.beside();
        self.names.enter();
        let printed = crate::stack::checkpoint(|| self.query(&mut inside, query, None, named));
        self.names.leave();
        printed?;
        let text = inside.finish();
        self.printed(text.len())?;
        Ok(text)
    }

    /// The text of a query inside an expression.
    pub(super) fn inner_query(&mut self, query: &ast::Query) -> Result<String> {
        self.query_inside(&Layout::at(self.level), query, false)
    }

    /// A query. `columns`: the names of its columns, if they are given; `named`: its columns' names count.
    pub(super) fn query(
        &mut self,
        out: &mut Layout,
        query: &ast::Query,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        if !query.locks.is_empty() {
            return Err(unprinted());
        }
        let relations = match select_of(&query.body) {
            Some(select) => relations_of(&select.from, self.notes)?,
            None => Vec::new(),
        };
        let levels = (out.level, self.level);
        let before = self.names.begin(relations);
        let printed = self.query_parts(out, query, columns, named);
        self.names.end(before);
        (out.level, self.level) = levels;
        printed
    }

    fn query_parts(
        &mut self,
        out: &mut Layout,
        query: &ast::Query,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        if let Some(with) = &query.with {
            self.with(out, with)?;
        }
        let select = select_of(&query.body);
        match &*query.body {
            ast::SetExpr::Select(select) => self.select(out, select, columns, named)?,
            ast::SetExpr::Values(values) => {
                out.level += STEP;
                out.push(" ");
                self.values_named(out, values, query, columns)?;
            }
            other => {
                self.set(out, other, columns, named)?;
                out.level += STEP;
            }
        }
        self.level = out.level;
        if let Some(order) = &query.order_by {
            let ast::OrderByKind::Expressions(keys) = &order.kind else {
                return Err(unprinted());
            };
            out.clause(" ORDER BY ", 1);
            for (number, key) in keys.iter().enumerate() {
                if number > 0 {
                    out.push(", ");
                }
                self.sorted_by(out, &key.expr, select, &query.body)?;
                out.push(direction(&key.options)?);
            }
        }
        self.limits(out, query)
    }

    fn limits(&mut self, out: &mut Layout, query: &ast::Query) -> Result<()> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) if limit_by.is_empty() => (limit.as_ref(), offset.as_ref().map(|offset| &offset.value)),
            Some(_) => return Err(unprinted()),
        };
        let limit = match &query.fetch {
            None => limit,
            Some(fetch) if !fetch.with_ties && !fetch.percent => fetch.quantity.as_ref(),
            Some(_) => return Err(unprinted()),
        };
        for (keyword, tree) in [(" OFFSET ", offset), (" LIMIT ", limit)] {
            let Some(tree) = tree else { continue };
            out.clause(keyword, 0);
            match self.node(tree)?.node {
                Node::Constant { text: None, .. } => out.push("ALL"),
                Node::Constant {
                    text: Some(text),
                    data_type: DataType::Int4,
                    ..
                } => out.push(&text),
                _ => self.shown(out, tree, false)?,
            }
        }
        Ok(())
    }

    fn with(&mut self, out: &mut Layout, with: &ast::With) -> Result<()> {
        out.level += STEP;
        out.push(" ");
        let notes = self.notes;
        for (number, (cte, clauses)) in with_clauses(with).into_iter().enumerate() {
            let cte = notes.bound(cte);
            out.push(match (number, with.recursive) {
                (0, true) => "WITH RECURSIVE ",
                (0, false) => "WITH ",
                _ => ", ",
            });
            out.push(&quote_identifier(&normal(&cte.alias.name)));
            if !cte.alias.columns.is_empty() {
                let names = cte.alias.columns.iter();
                let names: Vec<String> = names
                    .map(|column| quote_identifier(&normal(&column.name)))
                    .collect();
                out.push(&format!("({})", names.join(", ")));
            }
            out.push(" AS ");
            out.push(match &cte.materialized {
                None => "",
                Some(ast::CteAsMaterialized::Materialized) => "MATERIALIZED ",
                Some(ast::CteAsMaterialized::NotMaterialized) => "NOT MATERIALIZED ",
            });
            out.push("(");
            out.keyword("", 0, 0, 0);
            let mut inside = out.beside();
            crate::stack::checkpoint(|| self.query(&mut inside, &cte.query, None, true))?;
            let text = inside.finish();
            self.printed(text.len())?;
            out.push(&text);
            out.keyword("", 0, 0, 0);
            out.push(")");
            search_cycle(out, &clauses)?;
        }
        out.level -= STEP;
        out.keyword("", 0, 0, 0);
        Ok(())
    }

    /// VALUES; where its columns have other names than by themselves, a SELECT around it gives them.
    fn values_named(
        &mut self,
        out: &mut Layout,
        values: &ast::Values,
        query: &ast::Query,
        columns: Option<&[&str]>,
    ) -> Result<()> {
        let named = |(number, name): (usize, &&str)| *name != format!("column{}", number + 1);
        let Some(columns) = columns.filter(|columns| columns.iter().enumerate().any(named)) else {
            return self.values(out, values, query);
        };
        out.push("SELECT");
        for (number, name) in columns.iter().enumerate() {
            out.push(if number == 0 { " " } else { "," });
            if number > 0 {
                out.keyword("", -STEP, STEP, ENTRY);
            }
            out.push(&format!("\"*VALUES*\".column{}", number + 1));
            if named((number, name)) {
                out.push(&format!(" AS {}", quote_identifier(name)));
            }
        }
        out.clause(" FROM (", 2);
        self.values(out, values, query)?;
        out.push(") \"*VALUES*\"");
        Ok(())
    }

    fn values(&mut self, out: &mut Layout, values: &ast::Values, query: &ast::Query) -> Result<()> {
        let types = self.notes.query_types(query);
        out.push("VALUES ");
        for (number, row) in values.rows.iter().enumerate() {
            out.push(if number == 0 { "(" } else { ", (" });
            for (place, tree) in row.iter().enumerate() {
                if place > 0 {
                    out.push(",");
                }
                let typed = self.node(tree)?;
                let to = types
                    .and_then(|types| types.get(place).copied())
                    .ok_or_else(unprinted)?;
                let node = coerced(typed, to)?;
                print(out, &node, self.pretty, false);
                out.push(&row_cast(&node, to));
            }
            out.push(")");
        }
        Ok(())
    }

    /// A set operation, or one side of one.
    fn set(
        &mut self,
        out: &mut Layout,
        body: &ast::SetExpr,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        crate::stack::checkpoint(|| self.set_here(out, body, columns, named))
    }

    fn set_here(
        &mut self,
        out: &mut Layout,
        body: &ast::SetExpr,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        let ast::SetExpr::SetOperation {
            op,
            set_quantifier,
            left,
            right,
        } = body
        else {
            return self.side(out, body, columns, named);
        };
        let all = matches!(set_quantifier, ast::SetQuantifier::All);
        let same = |side: &ast::SetExpr| {
            matches!(side, ast::SetExpr::SetOperation { op: inner, set_quantifier: quantifier, .. }
                if inner == op && matches!(quantifier, ast::SetQuantifier::All) == all)
        };
        let left = bare(left);
        let right = bare(right);
        let nested = is_set(left) && !same(left);
        if nested {
            out.push("(");
            out.keyword("", STEP, 0, 0);
        }
        self.set(out, left, columns, named)?;
        if nested {
            out.keyword(") ", -STEP, 0, 0);
        } else {
            out.keyword("", 0, 0, 0);
        }
        out.push(match op {
            ast::SetOperator::Union => "UNION ",
            ast::SetOperator::Intersect => "INTERSECT ",
            ast::SetOperator::Except => "EXCEPT ",
            _ => return Err(unprinted()),
        });
        if all {
            out.push("ALL ");
        }
        let nested = is_set(right);
        if nested {
            out.push("(");
        }
        out.keyword("", if nested { STEP } else { 0 }, 0, 0);
        // Its names are not those of the columns.
        self.set(out, right, columns, false)?;
        if nested {
            out.level -= STEP;
            out.keyword(")", 0, 0, 0);
        }
        Ok(())
    }

    /// A query that is a side of a set operation.
    fn side(
        &mut self,
        out: &mut Layout,
        body: &ast::SetExpr,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        let level = out.level;
        match body {
            ast::SetExpr::Select(select) => {
                let before = self.names.begin(relations_of(&select.from, self.notes)?);
                let printed = self.select(out, select, columns, named);
                self.names.end(before);
                printed?;
            }
            ast::SetExpr::Query(query) => {
                let parenthesised = query.with.is_some() || !is_bare(query);
                if parenthesised {
                    out.push("(");
                }
                let mut inside = out.beside();
                self.query(&mut inside, query, columns, named)?;
                let text = inside.finish();
                self.printed(text.len())?;
                out.push(&text);
                if parenthesised {
                    out.push(")");
                }
            }
            _ => return Err(unprinted()),
        }
        out.level = level;
        Ok(())
    }

    fn select(
        &mut self,
        out: &mut Layout,
        select: &ast::Select,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        out.level += STEP;
        out.push(" SELECT");
        match &select.distinct {
            None | Some(ast::Distinct::All) => {}
            Some(ast::Distinct::Distinct) => out.push(" DISTINCT"),
            Some(ast::Distinct::On(keys)) => {
                for (number, key) in keys.iter().enumerate() {
                    out.push(if number == 0 { " DISTINCT ON (" } else { ", " });
                    let node = match self.output_of(key, select, true)? {
                        Some(node) => node,
                        None => self.node(key)?.node,
                    };
                    sort_key(out, &node, self.pretty);
                }
                out.push(")");
            }
        }
        self.level = out.level;
        self.targets(out, select, columns, named)?;
        self.from(out, &select.from)?;
        if let Some(tree) = &select.selection {
            out.clause(" WHERE ", 1);
            self.shown(out, tree, false)?;
        }
        self.group_by(out, select)?;
        if let Some(tree) = &select.having {
            out.clause(" HAVING ", 0);
            self.shown(out, tree, false)?;
        }
        self.windows(out, &select.named_window)
    }

    /// The select list.
    fn targets(
        &mut self,
        out: &mut Layout,
        select: &ast::Select,
        columns: Option<&[&str]>,
        named: bool,
    ) -> Result<()> {
        let names = self.notes.outputs(select);
        let entries = self.entries(select)?;
        for (number, (node, data_type)) in entries.iter().enumerate() {
            out.push(if number == 0 { " " } else { ", " });
            let mut entry = out.beside();
            print(&mut entry, node, self.pretty, true);
            entry.push(&row_cast(node, *data_type));
            let own = match node {
                Node::Column(text) => Some(text.rsplit('.').next().unwrap_or(text).to_owned()),
                _ if named => None,
                _ => Some("\"?column?\"".to_owned()),
            };
            let name = match columns.and_then(|columns| columns.get(number)) {
                Some(name) => Some((*name).to_owned()),
                None => names.and_then(|names| names.get(number).cloned()),
            };
            if let Some(name) = name
                && own.as_deref() != Some(&quote_identifier(&name))
            {
                entry.push(" AS ");
                entry.push(&quote_identifier(&name));
            }
            let entry = entry.finish();
            if entry.starts_with('\n') {
                out.trim();
            } else if number > 0 {
                out.keyword("", -STEP, STEP, ENTRY);
            }
            out.push(&entry);
        }
        Ok(())
    }

    /// The expressions of a select list with their types, `*` taken apart: a column of it may have any type.
    fn entries(&mut self, select: &ast::Select) -> Result<Vec<(Node, DataType)>> {
        let mut entries = Vec::new();
        for item in &select.projection {
            let tree = match item {
                ast::SelectItem::UnnamedExpr(tree) => tree,
                ast::SelectItem::ExprWithAlias { expr, .. } => expr,
                _ => {
                    for column in self.notes.star(item) {
                        entries.push((self.names.column(column), DataType::Unknown));
                    }
                    continue;
                }
            };
            let typed = self.node(tree)?;
            let data_type = typed.data_type;
            let node = match data_type {
                DataType::Unknown => coerced(typed, DataType::Text)?,
                _ => typed.node,
            };
            entries.push((node, data_type));
        }
        Ok(entries)
    }

    /// The entry of the select list that a key names by its number, or by its name if `by_name`.
    pub(super) fn output_of(
        &mut self,
        key: &ast::Expr,
        select: &ast::Select,
        by_name: bool,
    ) -> Result<Option<Node>> {
        match key {
            ast::Expr::Value(_) => {}
            ast::Expr::Identifier(_) if by_name => {}
            _ => return Ok(None),
        }
        let entries = self.entries(select)?;
        match key {
            ast::Expr::Value(value) => {
                let Node::Constant { text: Some(text), .. } = literal(&value.value)?.node else {
                    return Err(unprinted());
                };
                let number = text
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                Ok(number
                    .and_then(|number| entries.into_iter().nth(number))
                    .map(|(node, _)| node))
            }
            ast::Expr::Identifier(ident) if by_name => {
                let wanted = normal(ident);
                let names = self.notes.outputs(select);
                let at = names.and_then(|names| names.iter().position(|name| *name == wanted));
                Ok(at
                    .and_then(|at| entries.into_iter().nth(at))
                    .map(|(node, _)| node))
            }
            _ => Ok(None),
        }
    }

    fn sorted_by(
        &mut self,
        out: &mut Layout,
        key: &ast::Expr,
        select: Option<&ast::Select>,
        body: &ast::SetExpr,
    ) -> Result<()> {
        let Some(select) = select else {
            // Over a set operation: a number.
            let number = match key {
                ast::Expr::Value(value) => match literal(&value.value)?.node {
                    Node::Constant { text: Some(text), .. } => text,
                    _ => return Err(unprinted()),
                },
                ast::Expr::Identifier(ident) => {
                    let wanted = normal(ident);
                    let names = leftmost(body).and_then(|select| self.notes.outputs(select));
                    let at = names.and_then(|names| names.iter().position(|name| *name == wanted));
                    (at.ok_or_else(unprinted)? + 1).to_string()
                }
                _ => return Err(unprinted()),
            };
            out.push(&number);
            return Ok(());
        };
        let node = match self.output_of(key, select, true)? {
            Some(node) => node,
            None => self.node(key)?.node,
        };
        sort_key(out, &node, self.pretty);
        Ok(())
    }
}

/// SEARCH and CYCLE.
fn search_cycle(out: &mut Layout, clauses: &Clauses) -> Result<()> {
    let quoted = |name: &ast::Ident| quote_identifier(&normal(name));
    let list = |names: &[ast::Ident]| names.iter().map(quoted).collect::<Vec<_>>().join(", ");
    if let Some(search) = &clauses.search {
        let order = if search.breadth { "BREADTH" } else { "DEPTH" };
        out.push(&format!(
            " SEARCH {order} FIRST BY {} SET {}",
            list(&search.by),
            quoted(&search.set)
        ));
    }
    if let Some(cycle) = &clauses.cycle {
        out.push(&format!(" CYCLE {} SET {}", list(&cycle.by), quoted(&cycle.mark)));
        if let Some((value, default)) = cycle.written_values() {
            for (word, tree) in [(" TO ", value), (" DEFAULT ", default)] {
                let ast::Expr::Value(value) = tree else {
                    return Err(unprinted());
                };
                out.push(word);
                let typed = literal(&value.value)?;
                let node = match typed.data_type {
                    DataType::Unknown => coerced(typed, DataType::Text)?,
                    _ => typed.node,
                };
                print(out, &node, false, true);
            }
        }
        out.push(&format!(" USING {}", quoted(&cycle.path)));
    }
    Ok(())
}

/// A side of a set operation without the parentheses that hold nothing but another one.
fn bare(side: &ast::SetExpr) -> &ast::SetExpr {
    match side {
        ast::SetExpr::Query(query) if query.with.is_none() && is_bare(query) => &query.body,
        side => side,
    }
}

fn is_set(side: &ast::SetExpr) -> bool {
    matches!(side, ast::SetExpr::SetOperation { .. })
}

/// The first SELECT of a set operation.
fn leftmost(body: &ast::SetExpr) -> Option<&ast::Select> {
    match bare(body) {
        ast::SetExpr::SetOperation { left, .. } => leftmost(left),
        ast::SetExpr::Select(select) => Some(select),
        _ => None,
    }
}
