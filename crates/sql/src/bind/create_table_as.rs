//! CREATE TABLE … AS and SELECT INTO: a table with the columns of a query, and the query's rows in it.

use std::sync::Arc;

use sqlparser::ast::{self, Spanned};

use crate::bind::definition::TABLE_COLUMNS_MAX;
use crate::bind::schema::{on_commit, require_logged};
use crate::bind::{Binder, bind_checked, normal, query_columns};
use crate::catalog::{ColumnDef, require_no_system_name};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::ParsedStatement;
use crate::parse::utility::create_table::too_many_names;
use crate::plan::{
    Column, CreateTable, CreateTableAs, DefinitionStatement, IntoTable, RowsStatement, SelectPlan, Statement,
};
use crate::planner::Planner;

impl Binder<'_> {
    pub(super) fn create_table_as(
        &mut self,
        into: &IntoTable,
        query: &ParsedStatement,
    ) -> Result<DefinitionStatement> {
        let plan = bind_checked(query, self.catalog, &self.params, self.check)?;
        if !plan.changes.is_empty() {
            return Err(EngineError::not_supported(
                "CREATE TABLE … AS with a statement that changes rows in WITH",
            ));
        }
        self.params = plan.param_types.iter().copied().map(Some).collect();
        self.planned = plan.subqueries;
        self.failure.take_over(plan.failure);
        self.reads.extend(plan.reads);
        self.accesses.extend(plan.accesses);
        match plan.statement {
            Statement::Rows(RowsStatement::Select(select)) => {
                self.table_for(into, Arc::unwrap_or_clone(select))
            }
            other => Err(EngineError::not_supported(format!(
                "CREATE TABLE … AS {}",
                other.tag()
            ))),
        }
    }

    /// SELECT INTO, if a query is one.
    pub(super) fn select_into(&mut self, query: &ast::Query) -> Result<Option<DefinitionStatement>> {
        if !begins_with_into(&query.body) {
            return Ok(None);
        }
        let mut query = query.clone();
        let Some(written) = take_into(&mut query.body) else {
            return Ok(None);
        };
        let into = self.target_of(&written)?;
        let block = self.query(&query, true)?;
        let select = Planner::new(self.catalog, &self.subqueries, &self.failure).block(block)?;
        self.table_for(&into, select).map(Some)
    }

    fn target_of(&self, written: &ast::SelectInto) -> Result<IntoTable> {
        let idents = match written.targets.as_slice() {
            [ast::Expr::Identifier(name)] => std::slice::from_ref(name),
            [ast::Expr::CompoundIdentifier(parts)] => parts.as_slice(),
            _ => return Err(EngineError::not_supported("SELECT INTO of several names")),
        };
        let (schema, name) = match idents {
            [name] => (None, name),
            [schema, name] => (Some(normal(schema)), name),
            _ => return Err(EngineError::not_supported("a database in front of a schema")),
        };
        Ok(IntoTable {
            schema,
            name: normal(name),
            position: self.position(written.targets[0].span()).unwrap_or(1),
            temporary: written.temporary,
            unlogged: written.unlogged,
            is_select_into: true,
            ..IntoTable::default()
        })
    }

    fn table_for(&self, into: &IntoTable, select: SelectPlan) -> Result<DefinitionStatement> {
        let schema = self.schema_for_table(
            into.temporary,
            into.schema.as_deref(),
            &into.name,
            Some(into.position),
        )?;
        require_logged(into.unlogged, &schema)?;
        Ok(DefinitionStatement::CreateTableAs(Box::new(CreateTableAs {
            create: CreateTable {
                on_commit: on_commit(into.on_commit, &schema)?,
                schema,
                name: into.name.clone(),
                if_not_exists: into.if_not_exists,
                of_type: None,
                columns: columns_of(&select.columns, &into.columns)?,
                indexes: Vec::new(),
                checks: Vec::new(),
                foreign_keys: Vec::new(),
                parameters: into.parameters.clone(),
                unlogged: into.unlogged,
                comments: Vec::new(),
            },
            select: Box::new(select),
            with_data: into.with_data,
            is_select_into: into.is_select_into,
            is_execute: into.is_execute,
        })))
    }
}

/// The columns of a table for rows of these columns, the first of them under other names.
fn columns_of(described: &[Column], names: &[String]) -> Result<Vec<ColumnDef>> {
    if names.len() > described.len() {
        return Err(too_many_names());
    }
    if described.len() > TABLE_COLUMNS_MAX {
        return Err(EngineError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {TABLE_COLUMNS_MAX} columns"),
        ));
    }
    let columns = query_columns::named(described, names.iter())?;
    columns
        .iter()
        .try_for_each(|column| require_no_system_name(&column.name))?;
    Ok(columns)
}

/// The first SELECT of a query, where INTO may stand.
fn first_select(body: &ast::SetExpr) -> Option<&ast::Select> {
    match body {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// True for the query of SELECT INTO.
pub(super) fn begins_with_into(body: &ast::SetExpr) -> bool {
    first_select(body).is_some_and(|select| select.into.is_some())
}

fn take_into(body: &mut ast::SetExpr) -> Option<ast::SelectInto> {
    match body {
        ast::SetExpr::Select(select) => select.into.take(),
        ast::SetExpr::SetOperation { left, .. } => take_into(left),
        _ => None,
    }
}
