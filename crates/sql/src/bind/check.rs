//! CHECK constraints and generated columns: a condition or a value over a row of one table.
//!
//! A condition is kept as the text that the deparser makes of it, so that the catalog shows it as it is kept. It is bound
//! anew when the table is read into the catalog, and whenever places, types or names of columns change. There is no
//! statement around it: it has no parameters and no queries, and is not interrupted.

use sqlparser::ast;

use crate::bind::notes::TreeNotes;
use crate::bind::scope::{Names, Scope};
use crate::bind::view::ViewBinding;
use crate::bind::{Binder, Place, Typed, normal, refuse};
use crate::catalog::{EmptyCatalog, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::parse_expression;
use crate::plan::NewCheck;
use crate::stack::{Deep, with_stack_for};
use crate::value::DataType;
use crate::value::datetime::in_force as date_times;

/// The place of the condition, as errors name it.
pub(super) const CLAUSE: &str = "check constraints";

/// Compiles the condition of a CHECK constraint, as it is kept in the catalog, over a row of its table.
pub fn bind_check(sql: &str, table: &TableDef) -> Result<Expr> {
    let _as_kept = date_times::under(None);
    let tree = parse_expression(sql, 0)?;
    bound(sql, &tree, table, None, Kept::Check).map(|(typed, _)| typed.expr)
}

/// Compiles the expression of a generated column, as it is kept in the catalog, over a row of its table.
pub fn bind_generated(sql: &str, table: &TableDef, column: u16) -> Result<Expr> {
    let _as_kept = date_times::under(None);
    let tree = parse_expression(sql, 0)?;
    bound(sql, &tree, table, None, Kept::Generated(column)).map(|(typed, _)| typed.expr)
}

/// Compiles an expression that is a part of an index's key, as it is kept in the catalog, over a row of its table, and
/// gives its type.
pub fn bind_index_key(sql: &str, table: &TableDef) -> Result<(Expr, DataType)> {
    let _as_kept = date_times::under(None);
    let tree = parse_expression(sql, 0)?;
    let (typed, _) = bound(sql, &tree, table, None, Kept::IndexKey)?;
    Ok((typed.expr, typed.data_type))
}

/// Compiles the predicate of an index, as it is kept in the catalog, over a row of its table.
pub fn bind_index_predicate(sql: &str, table: &TableDef) -> Result<Expr> {
    let _as_kept = date_times::under(None);
    let tree = parse_expression(sql, 0)?;
    bound(sql, &tree, table, None, Kept::IndexPredicate).map(|(typed, _)| typed.expr)
}

/// The tree of an expression that is kept in the catalog, its type, and what is found in it.
pub(crate) fn annotated(
    sql: &str,
    table: &TableDef,
    kept: Kept,
) -> Result<(Deep<ast::Expr>, DataType, TreeNotes)> {
    let tree = parse_expression(sql, 0)?;
    let (typed, notes) = bound(sql, &tree, table, Some(TreeNotes::default()), kept)?;
    Ok((tree, typed.data_type, notes))
}

/// The use of an expression over a row that is kept in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The condition of a CHECK constraint.
    Check,
    /// The default of a column, by its place: it names no column.
    Default(u16),
    /// The value of a generated column, by its place.
    Generated(u16),
    /// A part of an index's key.
    IndexKey,
    /// The predicate of an index.
    IndexPredicate,
}

fn bound(
    sql: &str,
    tree: &Deep<ast::Expr>,
    table: &TableDef,
    notes: Option<TreeNotes>,
    kept: Kept,
) -> Result<(Typed, TreeNotes)> {
    let check = || Ok(());
    let mut binder = Binder::new(Place::of(sql, 0), &[], &EmptyCatalog, &[], &check);
    binder.view = notes.map(|notes| Box::new(ViewBinding::with_notes(notes)));
    let bind = |binder: &mut Binder<'_>| {
        let (expr, data_type) = match kept {
            Kept::Check => (binder.check_condition(tree, table)?, DataType::Bool),
            Kept::Default(column) => {
                let column = &table.columns[usize::from(column)];
                let typed = binder.expression(tree, &mut Scope::empty("DEFAULT expressions"))?;
                let expr = binder.assign(typed, column.data_type, column.typmod, &column.name, None)?;
                (expr, column.data_type)
            }
            Kept::Generated(column) => {
                let expr = binder.generation_expression(tree, table, column)?;
                (expr, table.columns[usize::from(column)].data_type)
            }
            Kept::IndexKey => return binder.index_key(tree, table),
            Kept::IndexPredicate => (binder.index_predicate(tree, table)?, DataType::Bool),
        };
        Ok(Typed::new(expr, data_type))
    };
    let typed = with_stack_for(tree.levels(), || bind(&mut binder)).map_err(EngineError::without_position)?;
    let notes = binder.view.take().and_then(|view| view.notes).unwrap_or_default();
    Ok((typed, notes))
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
