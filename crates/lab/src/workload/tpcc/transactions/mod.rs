//! The five transactions: the input of each, and what it runs.
//!
//! An input is drawn once. A transaction that is rolled back for another's sake runs again with the same one.
//!
//! The columns that a terminal would show are read, and not formatted.

mod customer;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use clearway_engine::EngineError;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::connection::Connection;
use super::consistency::Acknowledged;
use super::deck::Kind;
use super::home::Home;
use super::{DISTRICTS, Population};

pub(crate) use customer::BY_NAME;
pub use stock_level::LOW_STOCK;
pub(crate) use stock_level::RECENT_ORDERS;

/// The input of one transaction.
#[derive(Debug)]
pub(super) enum Input {
    NewOrder(new_order::NewOrder),
    Payment(payment::Payment),
    OrderStatus(order_status::OrderStatus),
    Delivery(delivery::Delivery),
    StockLevel(stock_level::StockLevel),
}

/// The prepared statements of all of them.
#[derive(Debug)]
pub(super) struct Statements {
    new_order: new_order::Statements,
    payment: payment::Statements,
    order_status: order_status::Statements,
    delivery: delivery::Statements,
    stock_level: stock_level::Statements,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            new_order: new_order::Statements::prepare(connection)?,
            payment: payment::Statements::prepare(connection)?,
            order_status: order_status::Statements::prepare(connection)?,
            delivery: delivery::Statements::prepare(connection)?,
            stock_level: stock_level::Statements::prepare(connection)?,
        })
    }
}

impl Input {
    pub(super) fn draw(kind: Kind, random: &mut SmallRng, population: Population, home: Home) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(new_order::NewOrder::draw(random, population, home)),
            Kind::Payment => Input::Payment(payment::Payment::draw(random, population, home)),
            Kind::OrderStatus => {
                Input::OrderStatus(order_status::OrderStatus::draw(random, population, home))
            }
            Kind::Delivery => Input::Delivery(delivery::Delivery::draw(random, home)),
            Kind::StockLevel => Input::StockLevel(stock_level::StockLevel::draw(random, home)),
        }
    }

    /// Runs it to its end. What is committed then; `None` if it was rolled back because the input wants it.
    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Option<Acknowledged>, EngineError> {
        match self {
            Input::NewOrder(input) => input.run(connection, &statements.new_order),
            Input::Payment(input) => input.run(connection, &statements.payment).map(Some),
            Input::OrderStatus(input) => input.run(connection, &statements.order_status).map(Some),
            Input::Delivery(input) => input.run(connection, &statements.delivery).map(Some),
            Input::StockLevel(input) => input.run(connection, &statements.stock_level).map(Some),
        }
    }
}

/// A district of the home warehouse.
fn district(random: &mut SmallRng) -> i32 {
    random.random_range(1..=DISTRICTS)
}

/// A warehouse that is not this one, if there is another.
fn other_warehouse(random: &mut SmallRng, population: Population, home: i32) -> i32 {
    let warehouses = population.warehouses as i32;
    if warehouses == 1 {
        return home;
    }
    let other = random.random_range(1..warehouses);
    if other < home { other } else { other + 1 }
}

/// True in `times` of a hundred cases.
fn in_hundred(random: &mut SmallRng, times: u32) -> bool {
    random.random_range(0..100) < times
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn another_warehouse_is_each_of_the_others() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut drawn = [0; 5];
        for _ in 0..400 {
            drawn[other_warehouse(&mut random, Population::standard(4), 2) as usize] += 1;
        }
        assert!(drawn[0] == 0 && drawn[2] == 0, "{drawn:?}");
        assert!(drawn[1] > 50 && drawn[3] > 50 && drawn[4] > 50, "{drawn:?}");
        assert_eq!(other_warehouse(&mut random, Population::standard(1), 1), 1);
    }
}
