//! The binding of FROM: a table, a series, a function.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::{Binder, Scope, ScopeColumn, identifier, normal, plain_name, refuse};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::plan::Series;
use crate::value::DataType;

/// The source that FROM names.
pub(super) enum From {
    Nothing,
    Table(Arc<TableDef>),
    Series(Series),
}

/// An error for more names of columns than there are columns.
fn check_column_aliases(alias: Option<&ast::TableAlias>, columns: usize) -> Result<()> {
    match alias {
        Some(alias) if alias.columns.len() > columns => Err(EngineError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{}\" has {columns} columns available but {} columns specified",
                normal(&alias.name),
                alias.columns.len()
            ),
        )),
        _ => Ok(()),
    }
}

impl Binder<'_> {
    /// The source that FROM names, and the scope of its columns.
    pub(super) fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<(Scope, From)> {
        let one = match from {
            [] => return Ok((Scope::empty("WHERE"), From::Nothing)),
            [one] => one,
            [_, second, ..] => {
                return Err(EngineError::not_supported("a query over several tables (a join)")
                    .or_position(self.position_of_relation(&second.relation)));
            }
        };
        self.relation(one)
    }

    fn relation(&mut self, one: &ast::TableWithJoins) -> Result<(Scope, From)> {
        if let Some(join) = one.joins.first() {
            return Err(
                EngineError::not_supported("JOIN").or_position(self.position_of_relation(&join.relation))
            );
        }
        match &one.relation {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                with_ordinality: false,
                sample: None,
                ..
            } => {
                let table = self.table(name)?;
                let known_as = alias.as_ref().map(|alias| identifier(&alias.name));
                let mut scope = Scope::of_table(&table, known_as.transpose()?, "WHERE");
                check_column_aliases(alias.as_ref(), scope.columns.len())?;
                for (column, renamed) in scope
                    .columns
                    .iter_mut()
                    .zip(alias.iter().flat_map(|alias| &alias.columns))
                {
                    column.name = normal(&renamed.name);
                }
                Ok((scope, From::Table(table)))
            }
            ast::TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality: false,
                ..
            } => self.series(name, &args.args, alias.as_ref()),
            ast::TableFactor::Function {
                lateral: false,
                name,
                args,
                alias,
                with_ordinality: false,
            } => self.series(name, args, alias.as_ref()),
            ast::TableFactor::Derived { .. } => Err(EngineError::not_supported("a subquery in FROM")
                .or_position(self.position_of_relation(&one.relation))),
            other => Err(EngineError::not_supported(format!("{other} in FROM"))),
        }
    }

    fn series(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Scope, From)> {
        let function = plain_name(name)?;
        if function != "generate_series" {
            return self.function_row(&function, args, alias);
        }
        let mut bounds = Vec::new();
        let mut scope = Scope::empty("functions in FROM");
        for argument in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) = argument else {
                return Err(EngineError::not_supported(format!("the argument {argument}")));
            };
            bounds.push(self.expression(tree, &mut scope)?);
        }
        let types: Vec<DataType> = bounds.iter().map(|bound| bound.data_type).collect();
        let data_type = match () {
            _ if types
                .iter()
                .all(|t| matches!(t, DataType::Int2 | DataType::Int4 | DataType::Unknown)) =>
            {
                DataType::Int4
            }
            _ if types.iter().all(|t| t.is_integer() || *t == DataType::Unknown) => DataType::Int8,
            _ if types
                .iter()
                .all(|t| t.is_integer() || matches!(t, DataType::Numeric | DataType::Unknown)) =>
            {
                DataType::Numeric
            }
            _ => {
                return Err(EngineError::not_supported(
                    "generate_series over anything but integers and numerics",
                ));
            }
        };
        if !(2..=3).contains(&bounds.len()) {
            return Err(EngineError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function generate_series with {} arguments does not exist",
                    bounds.len()
                ),
            ));
        }
        let mut bounds = bounds
            .into_iter()
            .map(|bound| self.coerce(bound, data_type, None))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        let series = Series {
            start: bounds.next().expect("two bounds"),
            stop: bounds.next().expect("two bounds"),
            step: bounds.next(),
            data_type,
            filter: None,
        };
        check_column_aliases(alias, 1)?;
        let table = alias.map_or(function, |alias| normal(&alias.name));
        let column = alias
            .and_then(|alias| alias.columns.first())
            .map_or(table.clone(), |column| normal(&column.name));
        let mut scope = Scope::empty("WHERE");
        scope.alias = Some(table);
        scope.columns.push(ScopeColumn {
            name: column,
            data_type,
            typmod: -1,
            value: None,
        });
        Ok((scope, From::Series(series)))
    }

    /// `FROM current_schema()`: one row with the function's value.
    fn function_row(
        &mut self,
        function: &str,
        args: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Scope, From)> {
        let mut trees = Vec::with_capacity(args.len());
        for argument in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(tree)) = argument else {
                return Err(EngineError::not_supported(format!("the argument {argument}")));
            };
            trees.push(tree);
        }
        let typed = self.scalar(function, &trees, &mut Scope::empty("functions in FROM"), None)?;
        // Each use of the column computes the value, which must be the same each time.
        refuse(
            !typed.expr.is_stable(),
            &format!("the function {function} in FROM"),
        )?;
        check_column_aliases(alias, 1)?;
        let table = alias.map_or(function.to_owned(), |alias| normal(&alias.name));
        let column = alias
            .and_then(|alias| alias.columns.first())
            .map_or(table.clone(), |column| normal(&column.name));
        let mut scope = Scope::empty("WHERE");
        scope.alias = Some(table);
        scope.columns.push(ScopeColumn {
            name: column,
            data_type: typed.data_type,
            typmod: typed.typmod,
            value: Some(typed.expr),
        });
        Ok((scope, From::Nothing))
    }
}
