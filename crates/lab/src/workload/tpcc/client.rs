//! One client: a session with its prepared statements, its deck and its random numbers.

use std::sync::Arc;

use clearway_engine::{Engine, EngineError};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::Population;
use super::backend::{Backend, InProcess};
use super::connection::Connection;
use super::consistency::Acknowledged;
use super::deck::{Deck, Kind};
use super::home::Home;
use super::transactions::{Input, Statements};

/// A client.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    statements: Statements,
    population: Population,
    home: Home,
    deck: Deck,
    random: SmallRng,
    /// Sums of the transactions that were acknowledged to it.
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
