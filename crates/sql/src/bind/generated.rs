//! Generated columns: a value that is made of the other columns of its row.
//!
//! The expression is kept and bound anew as the condition of a CHECK constraint is ([`super::check`]). It reads no
//! generated column, so that the order in which they are made does not matter, and gives the same value for the same row at
//! any time.

use std::borrow::Cow;

use sqlparser::ast;

use crate::bind::Binder;
use crate::bind::scope::{Names, Scope};
use crate::catalog::{ColumnDef, ColumnDefault, TableDef};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::value::Value;
use crate::value::cast::cast_depends_on_settings;

/// The place of the expression, as errors name it.
const CLAUSE: &str = "column generation expressions";

fn invalid(message: impl Into<Cow<'static, str>>) -> EngineError {
    EngineError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

impl Binder<'_> {
    /// The expression of a generated column of a table.
    pub(super) fn generation_expression(
        &mut self,
        tree: &ast::Expr,
        table: &TableDef,
        column: u16,
    ) -> Result<Expr> {
        let position = self.position_of(tree);
        let names = Names::of_table(table, None, 0);
        let typed = self.expression(tree, &mut Scope::of(names, CLAUSE))?;
        if typed.expr.has_subquery() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use subquery in column generation expression",
            )
            .or_position(position));
        }
        let mut problem = None;
        typed.expr.walk(&mut |part| match part {
            Expr::Column(read) => {
                let read = table.columns.get(usize::from(*read));
                if let Some(read) = read.filter(|read| read.generated().is_some()) {
                    let message = format!(
                        "cannot use generated column \"{}\" in column generation expression",
                        read.name
                    );
                    problem.get_or_insert(
                        invalid(message)
                            .with_detail("A generated column cannot reference another generated column."),
                    );
                }
            }
            Expr::Row { .. } => {
                problem.get_or_insert(invalid(
                    "cannot use whole-row variable in column generation expression",
                ));
            }
            _ => {}
        });
        if let Some(problem) = problem {
            return Err(problem.or_position(position));
        }
        if !is_immutable(&typed.expr) {
            return Err(invalid("generation expression is not immutable"));
        }
        let def = &table.columns[usize::from(column)];
        let expr = self.assign(typed, def.data_type, def.typmod, &def.name, position)?;
        match self.params.is_empty() {
            true => Ok(expr),
            false => Err(EngineError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            )),
        }
    }

    /// Binds the expressions of the generated columns among `columns`, which a table has then; `trees`: the columns that the
    /// statement defines.
    pub(super) fn bind_generated_columns(
        &mut self,
        name: &str,
        columns: &mut [ColumnDef],
        trees: &[&ast::ColumnDef],
    ) -> Result<()> {
        if columns.iter().all(|column| column.generated().is_none()) {
            return Ok(());
        }
        let table = TableDef::in_the_making(name, columns);
        for (place, column) in (0..).zip(columns) {
            let Some(ColumnDefault::Generated { sql, expr }) = &mut column.default else {
                continue;
            };
            let own = trees.iter().find(|tree| super::normal(&tree.name) == column.name);
            *expr = match own.and_then(|tree| generation_tree(tree)) {
                Some(tree) => self.generation_expression(tree, &table, place)?,
                None => Binder::kept_generation(sql, &table, place)?,
            };
        }
        Ok(())
    }
}

/// The expression of a column that is said to be generated.
fn generation_tree(column: &ast::ColumnDef) -> Option<&ast::Expr> {
    column.options.iter().find_map(|option| match &option.option {
        ast::ColumnOption::Generated { generation_expr, .. } => generation_expr.as_ref(),
        _ => None,
    })
}

/// A generated column's default in the making: its expression is bound when all columns are known.
pub(super) fn unbound(tree: &ast::Expr) -> ColumnDefault {
    ColumnDefault::Generated {
        sql: tree.to_string(),
        expr: Expr::Constant(Value::Null),
    }
}

/// True if an expression gives the same value for the same row at any time.
pub(super) fn is_immutable(expr: &Expr) -> bool {
    let mut immutable = true;
    expr.walk(&mut |part| match part {
        Expr::Call { function, .. } => immutable &= function.is_immutable(),
        Expr::NextSerial { .. } => immutable = false,
        Expr::Cast { from, to, .. } => immutable &= !cast_depends_on_settings(*from, *to),
        _ => {}
    });
    immutable
}
