//! FROM, and the names of relations.
//!
//! A relation keeps its name unless a relation of a query around it, or one to its left, has it: then it gets a number
//! behind (`t_1`). So a query inside another can be read without knowing which names it hides.

use std::collections::{HashMap, HashSet};

use sqlparser::ast;

use super::arguments::set_arguments;
use super::expression::named;
use super::layout::{ENTRY, JOIN, Layout, STEP};
use super::node::{Node, print};
use super::{Printer, unprinted};
use crate::bind::{ColumnNote, TreeNotes, WHOLE_ROW, normal, plain_name};
use crate::error::Result;
use crate::function::quote_identifier;
use crate::parse::using_alias;

/// The names of the relations of the queries that are being printed.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Printed names by names in the text, for the query being printed and those around it, outermost first.
    scopes: Vec<HashMap<String, String>>,
    /// The names that are taken, as often as they are.
    taken: Vec<HashSet<String>>,
}

impl Names {
    /// Of a view's query: in PostgreSQL two more relations are around it.
    pub(super) fn of_view() -> Names {
        Names {
            scopes: vec![HashMap::new()],
            taken: vec![["old", "new"].map(str::to_owned).into_iter().collect()],
        }
    }

    /// A query inside an expression or FROM begins.
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// A SELECT begins, with these relations in its FROM, each as the text names it and as it is called now; the scope
    /// before it.
    pub(super) fn begin(&mut self, relations: Vec<(String, String)>) -> HashMap<String, String> {
        let mut scope = HashMap::new();
        let mut own = HashSet::new();
        for (written, name) in relations {
            let is_taken = |wanted: &String| {
                own.contains(wanted) || self.taken.iter().any(|taken| taken.contains(wanted))
            };
            let numbered = (1..).map(|number| format!("{name}_{number}"));
            let free = std::iter::once(name.clone())
                .chain(numbered)
                .find(|wanted| !is_taken(wanted));
            let free = free.unwrap_or_else(|| name.clone());
            own.insert(free.clone());
            scope.insert(written, free);
        }
        self.taken.push(own);
        match self.scopes.last_mut() {
            Some(top) => std::mem::replace(top, scope),
            None => HashMap::new(),
        }
    }

    /// A SELECT ends.
    pub(super) fn end(&mut self, before: HashMap<String, String>) {
        self.taken.pop();
        if let Some(top) = self.scopes.last_mut() {
            *top = before;
        }
    }

    /// The printed name of a relation of the query being printed.
    fn printed<'n>(&'n self, name: &'n str) -> &'n str {
        let scope = self.scopes.last();
        scope
            .and_then(|scope| scope.get(name))
            .map_or(name, String::as_str)
    }

    /// A column as it is printed.
    pub(super) fn column(&self, note: &ColumnNote) -> Node {
        let scope = self
            .scopes
            .len()
            .checked_sub(note.level + 1)
            .and_then(|at| self.scopes.get(at));
        let relation = note.relation.as_deref().map(|relation| {
            scope
                .and_then(|scope| scope.get(relation))
                .map_or(relation, String::as_str)
        });
        match relation {
            Some(relation) if note.name == WHOLE_ROW => {
                Node::Column(format!("{}.*", quote_identifier(relation)))
            }
            _ => named(relation, &note.name),
        }
    }
}

/// The names of the relations of a FROM, in the order of the text.
pub(super) fn relations_of(from: &[ast::TableWithJoins], notes: &TreeNotes) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for entry in from {
        add_names(entry, notes, &mut names)?;
    }
    Ok(names)
}

fn add_names(
    entry: &ast::TableWithJoins,
    notes: &TreeNotes,
    names: &mut Vec<(String, String)>,
) -> Result<()> {
    add_name(&entry.relation, notes, names)?;
    entry
        .joins
        .iter()
        .try_for_each(|join| add_name(&join.relation, notes, names))
}

fn add_name(factor: &ast::TableFactor, notes: &TreeNotes, names: &mut Vec<(String, String)>) -> Result<()> {
    if let ast::TableFactor::NestedJoin {
        table_with_joins,
        alias: None,
    } = factor
    {
        return add_names(table_with_joins, notes, names);
    }
    let written = name_of(factor)?;
    let now = match factor {
        ast::TableFactor::Table {
            name, alias: None, ..
        } => notes.table(name).map(|table| table.name.clone()),
        _ => None,
    };
    let now = now.unwrap_or_else(|| written.clone());
    names.push((written, now));
    Ok(())
}

/// The name that a relation of FROM is known by.
fn name_of(factor: &ast::TableFactor) -> Result<String> {
    use ast::TableFactor as F;
    let (alias, name) = match factor {
        F::Table { alias, name, .. } => (alias, Some(name)),
        F::Function { alias, name, .. } => (alias, Some(name)),
        F::Derived { alias, .. } | F::NestedJoin { alias, .. } | F::UNNEST { alias, .. } => (alias, None),
        _ => return Err(unprinted()),
    };
    match (alias, name) {
        (Some(alias), _) => Ok(normal(&alias.name)),
        (None, Some(name)) => match name.0.last() {
            Some(ast::ObjectNamePart::Identifier(ident)) => Ok(normal(ident)),
            _ => Err(unprinted()),
        },
        (None, None) => match factor {
            F::UNNEST { .. } => Ok("unnest".to_owned()),
            _ => Err(unprinted()),
        },
    }
}

/// The trees of a function's arguments.
fn trees_of(args: &[ast::FunctionArg]) -> Result<Vec<&ast::Expr>> {
    let tree = |argument| match argument {
        &ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ref tree)) => Ok(tree),
        _ => Err(unprinted()),
    };
    args.iter().map(tree).collect()
}

impl Printer<'_> {
    /// FROM.
    pub(super) fn from(&mut self, out: &mut Layout, from: &[ast::TableWithJoins]) -> Result<()> {
        for (number, entry) in from.iter().enumerate() {
            if number == 0 {
                out.clause(" FROM ", 2);
                self.entry(out, entry)?;
                continue;
            }
            out.push(", ");
            let mut item = out.beside();
            self.entry(&mut item, entry)?;
            let item = item.finish();
            if item.starts_with('\n') {
                out.trim();
            } else {
                out.keyword("", -STEP, STEP, ENTRY);
            }
            out.push(&item);
        }
        Ok(())
    }

    fn entry(&mut self, out: &mut Layout, entry: &ast::TableWithJoins) -> Result<()> {
        self.joined(out, &entry.relation, &entry.joins)
    }

    /// A relation and what it is joined with; the last join is the outermost.
    fn joined(&mut self, out: &mut Layout, first: &ast::TableFactor, joins: &[ast::Join]) -> Result<()> {
        let Some((join, inner)) = joins.split_last() else {
            return self.relation(out, first);
        };
        if !self.pretty {
            out.push("(");
        }
        crate::stack::checkpoint(|| self.joined(out, first, inner))?;
        self.join(out, join)?;
        if !self.pretty {
            out.push(")");
        }
        Ok(())
    }

    fn join(&mut self, out: &mut Layout, join: &ast::Join) -> Result<()> {
        use ast::JoinOperator as O;
        let (word, constraint) = match &join.join_operator {
            O::Join(constraint) | O::Inner(constraint) | O::CrossJoin(constraint) => ("", constraint),
            O::Left(constraint) | O::LeftOuter(constraint) => ("LEFT ", constraint),
            O::Right(constraint) | O::RightOuter(constraint) => ("RIGHT ", constraint),
            O::FullOuter(constraint) => ("FULL ", constraint),
            _ => return Err(unprinted()),
        };
        let mut alias = None;
        let shared = match constraint {
            ast::JoinConstraint::Using(columns) => {
                let (columns, named) = using_alias(columns);
                alias = named;
                columns.iter().map(plain_name).collect::<Result<Vec<_>>>()?
            }
            ast::JoinConstraint::Natural => self.notes.shared(join).to_vec(),
            _ => Vec::new(),
        };
        let on = match constraint {
            ast::JoinConstraint::On(tree) => Some(tree),
            _ => None,
        };
        let is_cross = word.is_empty() && shared.is_empty() && on.is_none();
        let keyword = if is_cross {
            " CROSS JOIN ".to_owned()
        } else {
            format!(" {word}JOIN ")
        };
        out.keyword(&keyword, -STEP, STEP, JOIN);
        self.relation(out, &join.relation)?;
        if !shared.is_empty() {
            let names: Vec<String> = shared.iter().map(|name| quote_identifier(name)).collect();
            out.push(&format!(" USING ({})", names.join(", ")));
            if let Some(alias) = alias {
                out.push(&format!(" AS {}", quote_identifier(&normal(&alias))));
            }
        } else if let Some(tree) = on {
            out.push(" ON ");
            if !self.pretty {
                out.push("(");
            }
            self.shown(out, tree, false)?;
            if !self.pretty {
                out.push(")");
            }
        } else if !is_cross {
            out.push(" ON TRUE");
        }
        Ok(())
    }

    fn relation(&mut self, out: &mut Layout, factor: &ast::TableFactor) -> Result<()> {
        use ast::TableFactor as F;
        match factor {
            F::NestedJoin {
                table_with_joins,
                alias,
            } => {
                // A join with a name of its own hides the names inside.
                if alias.is_some() {
                    return Err(unprinted());
                }
                self.entry(out, table_with_joins)
            }
            F::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let shown = match self.notes.table(name) {
                    Some(table) => self.relation_name(table),
                    None => quote_identifier(&plain_name(name)?),
                };
                out.push(&shown);
                let known_as = name_of(factor)?;
                let printed = self.names.printed(&known_as).to_owned();
                let own = self
                    .notes
                    .table(name)
                    .map_or_else(|| known_as.clone(), |table| table.name.clone());
                if alias.is_some() || printed != own {
                    out.push(" ");
                    out.push(&quote_identifier(&printed));
                }
                let columns = self.notes.aliased_columns(name);
                self.column_names(out, columns.as_deref());
                Ok(())
            }
            F::Derived {
                lateral,
                subquery,
                alias: Some(alias),
                ..
            } => {
                if *lateral {
                    out.push("LATERAL ");
                }
                out.push("(");
                let text = self.query_inside(out, subquery, true)?;
                out.push(&text);
                out.push(") ");
                let printed = self.names.printed(&normal(&alias.name)).to_owned();
                out.push(&quote_identifier(&printed));
                let columns: Vec<String> = alias.columns.iter().map(|column| normal(&column.name)).collect();
                let columns = if columns.is_empty() {
                    None
                } else {
                    self.notes.query_columns(subquery, &columns)
                };
                self.column_names(out, columns.as_deref());
                Ok(())
            }
            F::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality,
                ..
            } => {
                let trees = trees_of(&args.args)?;
                self.function(
                    out,
                    factor,
                    &plain_name(name)?,
                    trees,
                    *with_ordinality,
                    alias.as_ref(),
                )
            }
            F::Function {
                name,
                args,
                alias,
                with_ordinality,
                lateral,
                ..
            } => {
                if *lateral {
                    out.push("LATERAL ");
                }
                let trees = trees_of(args)?;
                self.function(
                    out,
                    factor,
                    &plain_name(name)?,
                    trees,
                    *with_ordinality,
                    alias.as_ref(),
                )
            }
            F::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_ordinality,
                ..
            } => {
                let trees = array_exprs.iter().collect();
                self.function(out, factor, "unnest", trees, *with_ordinality, alias.as_ref())
            }
            _ => Err(unprinted()),
        }
    }

    fn function(
        &mut self,
        out: &mut Layout,
        factor: &ast::TableFactor,
        name: &str,
        trees: Vec<&ast::Expr>,
        with_ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<()> {
        let several = name == "unnest" && trees.len() > 1;
        let nodes = self.nodes_of(trees.into_iter())?;
        let known_as = name_of(factor)?;
        let mut columns = match several {
            true => vec!["unnest".to_owned(); nodes.len()],
            false => vec![known_as.clone()],
        };
        out.push(&if several {
            "UNNEST".to_owned()
        } else {
            quote_identifier(name)
        });
        out.push("(");
        for (number, node) in set_arguments(name, nodes)?.iter().enumerate() {
            out.push(if number == 0 { "" } else { ", " });
            print(out, node, self.pretty, true);
        }
        out.push(")");
        if with_ordinality {
            out.push(" WITH ORDINALITY");
            columns.push("ordinality".to_owned());
        }
        out.push(" ");
        let printed = self.names.printed(&known_as).to_owned();
        out.push(&quote_identifier(&printed));
        let given = alias.map_or(&[][..], |alias| alias.columns.as_slice());
        for (column, given) in columns.iter_mut().zip(given) {
            *column = normal(&given.name);
        }
        self.column_names(out, Some(&columns));
        Ok(())
    }

    fn column_names(&self, out: &mut Layout, columns: Option<&[String]>) {
        if let Some(columns) = columns {
            let names: Vec<String> = columns.iter().map(|name| quote_identifier(name)).collect();
            out.push(&format!("({})", names.join(", ")));
        }
    }

    /// The name of a table, with its schema where it would not be found without.
    fn relation_name(&self, table: &crate::catalog::TableDef) -> String {
        let visible = self.catalog.lookup_table(None, &table.name);
        let name = quote_identifier(&table.name);
        if visible.is_some_and(|found| found.oid == table.oid) {
            return name;
        }
        format!("{}.{name}", quote_identifier(&table.schema.name))
    }
}
