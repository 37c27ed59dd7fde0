//! Prepared statements by name.
//!
//! PREPARE and the protocol's Parse share one set of names, as in PostgreSQL: drivers free with DEALLOCATE what they
//! made with Parse, and a pool that says DEALLOCATE ALL or DISCARD ALL expects that no statement is left. The unnamed
//! statement is not in the set: it belongs to the protocol alone.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::system::ListedStatement;
use crate::output::Output;
use crate::session::Session;
use crate::session::prepared::Prepared;
use clearway_sql::ParsedStatement;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{IntoTable, RowsStatement, Statement};
use clearway_sql::value::DataType;

/// A prepared statement that has a name.
#[derive(Debug)]
pub(super) struct NamedStatement {
    prepared: Arc<Prepared>,
    /// Microseconds since 2000.
    prepared_us: i64,
    /// The text of PREPARE, of one that it has prepared.
    from_sql: Option<Arc<str>>,
}

impl NamedStatement {
    /// The statement.
    pub(super) fn prepared(&self) -> &Prepared {
        &self.prepared
    }
}

/// The rows of `pg_prepared_statements`.
pub(super) fn listed(named: &HashMap<String, NamedStatement>) -> Vec<ListedStatement> {
    let statements = named.iter().map(|(name, statement)| ListedStatement {
        name: name.clone(),
        statement: match &statement.from_sql {
            Some(text) => text.to_string(),
            None => statement.prepared.text.to_string(),
        },
        prepared_us: statement.prepared_us,
        parameters: statement.prepared.param_types().to_vec(),
        is_from_sql: statement.from_sql.is_some(),
    });
    statements.collect()
}

impl Session {
    /// Parses and binds a statement and keeps it under a name; 42P05 if there is one of that name. Warnings about the text go
    /// to `out`.
    pub fn prepare_named(
        &mut self,
        name: &str,
        sql: &str,
        param_types: &[Option<DataType>],
        out: &mut dyn Output,
    ) -> Result<(), EngineError> {
        self.check_name_is_free(name)?;
        let prepared = self.prepare_to(sql, param_types, out)?;
        self.keep_named(name, prepared, None);
        Ok(())
    }

    /// Keeps a statement under a name. `from_sql`: the text of PREPARE, by which it was prepared.
    pub(super) fn keep_named(&mut self, name: &str, prepared: Arc<Prepared>, from_sql: Option<Arc<str>>) {
        let statement = NamedStatement {
            prepared,
            prepared_us: crate::clock::now_us(),
            from_sql,
        };
        self.named.insert(name.to_owned(), statement);
    }

    /// The statement of that name; 26000 if there is none.
    pub fn named_statement(&self, name: &str) -> Result<&Arc<Prepared>, EngineError> {
        let found = self.named.get(name).map(|found| &found.prepared);
        found.ok_or_else(|| no_statement(name))
    }

    /// Removes the statement of that name; 26000 if there is none.
    pub fn remove_named(&mut self, name: &str) -> Result<(), EngineError> {
        self.named
            .remove(name)
            .map(drop)
            .ok_or_else(|| no_statement(name))
    }

    pub(crate) fn check_name_is_free(&self, name: &str) -> Result<()> {
        match self.named.contains_key(name) {
            false => Ok(()),
            true => Err(EngineError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            )),
        }
    }

    /// The statement that EXECUTE runs. Parse takes texts that PREPARE refuses; EXECUTE refuses those, because a
    /// statement that executes itself would never end.
    pub(crate) fn statement_to_execute(&mut self, name: &str) -> Result<Arc<Prepared>> {
        let prepared = Arc::clone(self.named_statement(name)?);
        match &self.current_plan(&prepared)?.plan.statement {
            Statement::Rows(
                RowsStatement::Select(_)
                | RowsStatement::Insert(_)
                | RowsStatement::Update(_)
                | RowsStatement::Delete(_)
                | RowsStatement::Merge(_),
            ) => Ok(prepared),
            other => Err(EngineError::not_supported(format!(
                "EXECUTE of a statement {} that was prepared by Parse",
                other.tag()
            ))),
        }
    }

    /// CREATE TABLE … AS with the rows of a prepared query.
    pub(crate) fn prepared_into(&mut self, query: &Arc<Prepared>, into: &IntoTable) -> Result<Arc<Prepared>> {
        let plan = self.current_plan(query)?;
        let is_query = matches!(&plan.plan.statement, Statement::Rows(RowsStatement::Select(_)));
        let parsed = clearway_sql::parse(&query.text)?.pop().filter(|_| is_query);
        let Some(parsed) = parsed else {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "prepared statement is not a SELECT",
            ));
        };
        let types: Vec<_> = query.param_types().iter().copied().map(Some).collect();
        let statement = ParsedStatement::create_table_as(into.clone(), parsed);
        let text = Arc::clone(&query.text);
        self.bind(text, Some(statement), &types, None).map(Arc::new)
    }
}

fn no_statement(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_SQL_STATEMENT_NAME,
        format!("prepared statement \"{name}\" does not exist"),
    )
}
