//! CHECK constraints and generated columns: a condition or a value over a row of one table.
//!
//! A condition is kept as the text that the deparser makes of it, so that the catalog shows it as it is kept. It is bound
//! anew when the table is read into the catalog, and whenever places, types or names of columns change. There is no
//! statement around it: it has no parameters and no queries, and is not interrupted.

use sqlparser::ast;

use crate::bind::notes::TreeNotes;
use crate::bind::scope::{Names, Scope};
use crate::bind::view::ViewBinding;
use crate::bind::{Binder, Place, normal, refuse};
use crate::catalog::{EmptyCatalog, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::parse_expression;
use crate::plan::NewCheck;
use crate::stack::{Deep, with_stack_for};

/// The place of the condition, as errors name it.
pub(super) const CLAUSE: &str = "check constraints";

/// Compiles the condition of a CHECK constraint, as it is kept in the catalog, over a row of its table.
pub fn bind_check(sql: &str, table: &TableDef) -> Result<Expr> {
    let tree = parse_expression(sql, 0)?;
    bound(sql, &tree, table, None, None).map(|(expr, _)| expr)
}

/// The tree of a condition, with what is found in it.
pub(crate) fn annotated_check(sql: &str, table: &TableDef) -> Result<(Deep<ast::Expr>, TreeNotes)> {
    let tree = parse_expression(sql, 0)?;
    let (_, notes) = bound(sql, &tree, table, Some(TreeNotes::default()), None)?;
    Ok((tree, notes))
}

/// Compiles the expression of a generated column, as it is kept in the catalog, over a row of its table.
pub fn bind_generated(sql: &str, table: &TableDef, column: u16) -> Result<Expr> {
    let tree = parse_expression(sql, 0)?;
    bound(sql, &tree, table, None, Some(column)).map(|(expr, _)| expr)
}

/// The tree of a generated column's expression, with what is found in it.
pub(crate) fn annotated_generated(
    sql: &str,
    table: &TableDef,
    column: u16,
) -> Result<(Deep<ast::Expr>, TreeNotes)> {
    let tree = parse_expression(sql, 0)?;
    let (_, notes) = bound(sql, &tree, table, Some(TreeNotes::default()), Some(column))?;
    Ok((tree, notes))
}

fn bound(
    sql: &str,
    tree: &Deep<ast::Expr>,
    table: &TableDef,
    notes: Option<TreeNotes>,
    generated: Option<u16>,
) -> Result<(Expr, TreeNotes)> {
    let check = || Ok(());
    let mut binder = Binder::new(Place::of(sql, 0), &[], &EmptyCatalog, &[], &check);
    binder.view = notes.map(|notes| Box::new(ViewBinding::with_notes(notes)));
    let bind = |binder: &mut Binder<'_>| match generated {
        None => binder.check_condition(tree, table),
        Some(column) => binder.generation_expression(tree, table, column),
    };
    let expr = with_stack_for(tree.levels(), || bind(&mut binder)).map_err(EngineError::without_position)?;
    let notes = binder.view.take().and_then(|view| view.notes).unwrap_or_default();
    Ok((expr, notes))
}

impl Binder<'_> {
    /// [`bind_generated`], of a column that another table has.
    pub(super) fn kept_generation(sql: &str, table: &TableDef, column: u16) -> Result<Expr> {
        bind_generated(sql, table, column)
    }

    /// The condition of a CHECK constraint.
    fn check_condition(&mut self, tree: &ast::Expr, table: &TableDef) -> Result<Expr> {
        let position = self.position_of(tree);
        let names = Names::of_table(table, None, 0);
        let typed = self.expression(tree, &mut Scope::of(names, CLAUSE))?;
        let expr = self.condition(typed, "CHECK", position)?;
        match self.params.is_empty() {
            true => Ok(expr),
            false => Err(EngineError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            )),
        }
    }

    /// The CHECK constraints of new columns, and of a table that has these columns then: bound, so that errors have a place
    /// in the statement.
    pub(super) fn new_checks(
        &mut self,
        table: &TableDef,
        options: &[&ast::ColumnDef],
        constraints: &[ast::TableConstraint],
    ) -> Result<Vec<NewCheck>> {
        let mut checks = Vec::new();
        for option in options.iter().flat_map(|column| &column.options) {
            if let ast::ColumnOption::Check(check) = &option.option {
                let name = option.name.as_ref().or(check.name.as_ref());
                checks.push(self.new_check(table, check, name)?);
            }
        }
        for constraint in constraints {
            if let ast::TableConstraint::Check(check) = constraint {
                checks.push(self.new_check(table, check, check.name.as_ref())?);
            }
        }
        Ok(checks)
    }

    /// A CHECK constraint of a table.
    pub(super) fn new_check(
        &mut self,
        table: &TableDef,
        check: &ast::CheckConstraint,
        name: Option<&ast::Ident>,
    ) -> Result<NewCheck> {
        refuse(check.no_inherit, "CHECK … NO INHERIT")?;
        refuse(check.enforced.is_some(), "ENFORCED and NOT ENFORCED")?;
        self.check_condition(&check.expr, table)?;
        Ok(NewCheck {
            name: name.map(normal),
            sql: check.expr.to_string(),
            validated: true,
        })
    }
}
