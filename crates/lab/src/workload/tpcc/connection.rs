//! A client's session, and values of its rows.

use clearway_engine::value::Numeric;
use clearway_engine::{EngineError, Value};

use super::backend::{Backend, Statement};

/// A session and the answer to its last statement.
#[derive(Debug)]
pub(super) struct Connection {
    backend: Box<dyn Backend>,
    rows: Vec<Vec<Value>>,
    begin: Statement,
    end: Statement,
    rollback: Statement,
}

impl Connection {
    pub(super) fn new(mut backend: Box<dyn Backend>) -> Result<Connection, EngineError> {
        Ok(Connection {
            begin: backend.prepare("begin")?,
            end: backend.prepare("end")?,
            rollback: backend.prepare("rollback")?,
            backend,
            rows: Vec::new(),
        })
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.backend.prepare(sql)
    }

    /// Runs a statement; its rows.
    pub(super) fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<&[Vec<Value>], EngineError> {
        self.rows.clear();
        self.backend.run(statement, parameters, &mut self.rows)?;
        Ok(&self.rows)
    }

    /// Runs a statement that finds one row; that row. `what` it looks for is named if it does not.
    pub(super) fn one(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        what: &str,
    ) -> Result<&[Value], EngineError> {
        match self.run(statement, parameters)? {
            [row] => Ok(row),
            rows => Err(EngineError::internal(format!(
                "{} rows of {what} were found with {parameters:?} where one was expected",
                rows.len()
            ))),
        }
    }

    pub(super) fn begin(&mut self) -> Result<(), EngineError> {
        self.run(self.begin, &[]).map(|_| ())
    }

    pub(super) fn end(&mut self) -> Result<(), EngineError> {
        self.run(self.end, &[]).map(|_| ())
    }

    pub(super) fn rollback(&mut self) -> Result<(), EngineError> {
        self.run(self.rollback, &[]).map(|_| ())
    }
}

fn unexpected(row: &[Value], column: usize, wanted: &str) -> EngineError {
    EngineError::internal(format!(
        "column {} of a row is {:?} where {wanted} was expected",
        column + 1,
        row.get(column)
    ))
}

/// A whole number of a row.
pub(super) fn int(row: &[Value], column: usize) -> Result<i64, EngineError> {
    let number = match row.get(column) {
        Some(Value::Numeric(number)) => number.to_i128().and_then(|whole| i64::try_from(whole).ok()),
        Some(value) => value.as_i64(),
        None => None,
    };
    number.ok_or_else(|| unexpected(row, column, "a whole number"))
}

/// A number of a row that fits a column of type integer.
pub(super) fn int4(row: &[Value], column: usize) -> Result<i32, EngineError> {
    i32::try_from(int(row, column)?).map_err(|_| unexpected(row, column, "an integer of 32 bits"))
}

/// An amount of money of a row, in cents.
pub(super) fn cents(row: &[Value], column: usize) -> Result<i64, EngineError> {
    let amount = match row.get(column) {
        Some(Value::Numeric(amount)) => amount.multiply(&Numeric::from(100i64))?.to_i128(),
        _ => None,
    };
    amount
        .and_then(|cents| i64::try_from(cents).ok())
        .ok_or_else(|| unexpected(row, column, "an amount of money"))
}

/// A text of a row.
pub(super) fn text(row: &[Value], column: usize) -> Result<&str, EngineError> {
    row.get(column)
        .and_then(Value::as_str)
        .ok_or_else(|| unexpected(row, column, "a text"))
}

/// An amount of money as a parameter.
pub(super) fn money(cents: i64) -> Value {
    Value::Numeric(Numeric::new(i128::from(cents), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_goes_out_as_it_comes_in() {
        for amount in [0, 1, 99, 100, 231_045, -1_000] {
            assert_eq!(cents(&[money(amount)], 0).unwrap(), amount);
        }
        assert!(cents(&[Value::Null], 0).is_err());
        assert!(int(&[], 0).is_err());
    }
}
