//! The system under the transactions: the engine in process ([`InProcess`]), or whatever else implements [`Backend`],
//! as the example `tpcc_client` does for a server.

use std::fmt::Debug;
use std::sync::Arc;

use clearway_engine::{
    Collected, Column, Engine, EngineError, Output, Prepared, Session, SessionInfo, Value,
};

use crate::workload::copy;

/// A prepared statement: its place among those of its backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub usize);

/// A session of a database. An error of 40001 or 40P01 must come out with that SQLSTATE: the transaction is then rolled
/// back and run again.
pub trait Backend: Debug + Send {
    /// Prepares a statement, whose parameters have the types that the server infers.
    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError>;

    /// Runs a prepared statement to its end, and puts its rows into `rows`, which comes empty.
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<(), EngineError>;

    /// Runs a statement once; its rows.
    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, EngineError>;

    /// Fills a table by COPY with the lines of 1 to `last`, which `line` appends to the text that it is given;
    /// `progress` gets the number that are made.
    fn copy(
        &mut self,
        table: &str,
        last: i64,
        line: &mut dyn FnMut(i64, &mut Vec<u8>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError>;
}

/// A session of an engine in this process.
#[derive(Debug)]
pub struct InProcess {
    session: Session,
    statements: Vec<Arc<Prepared>>,
}

impl InProcess {
    /// Opens one.
    pub fn open(engine: &Arc<Engine>) -> Result<InProcess, EngineError> {
        Ok(InProcess {
            session: engine.session(SessionInfo::default())?,
            statements: Vec::new(),
        })
    }
}

impl Backend for InProcess {
    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.statements.push(self.session.prepare(sql, &[])?);
        Ok(Statement(self.statements.len() - 1))
    }

    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<(), EngineError> {
        self.session
            .execute(&self.statements[statement.0], parameters, 0, &mut Rows { rows })?;
        self.session.sync()
    }

    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, EngineError> {
        let mut out = Collected::default();
        self.session.execute_simple(sql, &mut out)?;
        Ok(out.rows)
    }

    fn copy(
        &mut self,
        table: &str,
        last: i64,
        line: &mut dyn FnMut(i64, &mut Vec<u8>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        copy::copy(&mut self.session, table, last, line, progress)
    }
}

/// An output that keeps the rows of one statement.
struct Rows<'a> {
    rows: &'a mut Vec<Vec<Value>>,
}

impl Output for Rows<'_> {
    fn row_description(&mut self, _columns: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> Result<(), EngineError> {
        self.rows.push(values.to_vec());
        Ok(())
    }
    fn complete(&mut self, _tag: &str) -> Result<(), EngineError> {
        Ok(())
    }
}
