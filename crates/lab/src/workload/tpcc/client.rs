//! One client: a session with its prepared statements, its deck and its random numbers.

use std::sync::Arc;

use clearway_engine::value::Numeric;
use clearway_engine::{Engine, EngineError, Value};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::backend::{Backend, InProcess, Statement};
use super::consistency::Acknowledged;
use super::deck::{Deck, Kind};
use super::transactions::{Input, Statements};
use super::{DISTRICTS, Population};

/// Where a client's terminal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) warehouse: i32,
    pub(super) district: i32,
}

impl Home {
    /// That of the client at this place among all clients: warehouses in turn, then their districts.
    fn of(client: usize, population: Population) -> Home {
        let warehouses = population.warehouses as usize;
        Home {
            warehouse: (client % warehouses) as i32 + 1,
            district: (client / warehouses % DISTRICTS as usize) as i32 + 1,
        }
    }
}

/// A client.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    statements: Statements,
    population: Population,
    home: Home,
    deck: Deck,
    random: SmallRng,
    /// What it was told is committed.
    pub acknowledged: Acknowledged,
    /// Transactions that were rolled back and tried again (40001, 40P01).
    pub retries: u64,
}

impl Client {
    /// Opens a session and prepares the statements. `place` is the client's among those of this workload.
    pub fn new(
        engine: &Arc<Engine>,
        population: Population,
        place: usize,
        seed: u64,
    ) -> Result<Client, EngineError> {
        Client::on(Box::new(InProcess::open(engine)?), population, place, seed)
    }

    /// The same on a session of another kind.
    pub fn on(
        backend: Box<dyn Backend>,
        population: Population,
        place: usize,
        seed: u64,
    ) -> Result<Client, EngineError> {
        let mut connection = Connection::new(backend)?;
        let statements = Statements::prepare(&mut connection)?;
        Ok(Client {
            connection,
            statements,
            population,
            home: Home::of(place, population),
            deck: Deck::default(),
            random: SmallRng::seed_from_u64(seed),
            acknowledged: Acknowledged::default(),
            retries: 0,
        })
    }

    /// Runs one transaction to its end, again and again if it has to be rolled back for another's sake. Says which it
    /// was, and whether it has committed: a new-order with an item that does not exist does not.
    pub fn transaction(&mut self) -> Result<(Kind, bool), EngineError> {
        let kind = self.deck.deal(&mut self.random);
        let input = Input::draw(kind, &mut self.random, self.population, self.home);
        let done = loop {
            match input.run(&mut self.connection, &self.statements) {
                Ok(done) => break done,
                Err(error) if error.is_retryable() => {
                    self.connection.rollback()?;
                    self.retries += 1;
                }
                Err(error) => return Err(error),
            }
        };
        if let Some(done) = done {
            self.acknowledged += done;
        }
        Ok((kind, done.is_some()))
    }
}

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
    fn new(mut backend: Box<dyn Backend>) -> Result<Connection, EngineError> {
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
    fn clients_have_homes_in_turn() {
        let population = Population::standard(2);
        let homes: Vec<(i32, i32)> = [0, 1, 2, 5, 19, 20]
            .into_iter()
            .map(|client| Home::of(client, population))
            .map(|home| (home.warehouse, home.district))
            .collect();
        assert_eq!(homes, [(1, 1), (2, 1), (1, 2), (2, 3), (2, 10), (1, 1)]);
    }

    #[test]
    fn money_goes_out_as_it_comes_in() {
        for amount in [0, 1, 99, 100, 231_045, -1_000] {
            assert_eq!(cents(&[money(amount)], 0).unwrap(), amount);
        }
        assert!(cents(&[Value::Null], 0).is_err());
        assert!(int(&[], 0).is_err());
    }
}
