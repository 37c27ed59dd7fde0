//! TPC-C's tables and transactions, in process.
//!
//! A wholesaler has W warehouses of ten districts with 3,000 customers each, and 100,000 items that each warehouse has in
//! stock. Five transactions, after the standard's revision 5.11:
//!
//! | transaction | of 100 | reads and writes |
//! | --- | --- | --- |
//! | new-order | 45 | takes the district's next order number; reads 5 to 15 items, changes their stocks, inserts as many lines |
//! | payment | 43 | adds an amount to warehouse and district, takes it from a customer (60 % by last name) |
//! | order-status | 4 | reads a customer's last order |
//! | delivery | 4 | takes the oldest new order of each of ten districts, adds its amount to its customer |
//! | stock-level | 4 | counts the items of the district's last 20 orders with little stock, by a join |
//!
//! A payment updates the one row of its warehouse, and a new-order the row of its district, so few warehouses make a
//! workload of row locks, and many one of pages and log.
//!
//! # Example: client 5 of a run with two warehouses
//!
//! 1. Its home is warehouse 5 mod 2 + 1 = 2; its district, for stock-level, (5 / 2) mod 10 + 1 = 3. Other transactions
//!    draw a district of the home warehouse.
//! 2. The deck (`deck.rs`) deals `payment`. Its input is drawn: district 7, 2,310.45, customer by the name `ESEBAROUGHT`, in
//!    15 % of payments of another warehouse.
//! 3. The statements run, each one prepared, then `end`. An error 40001 or 40P01 is rolled back, counted, and the same
//!    input runs again.
//! 4. The client notes that a payment of 231,045 cents is committed. After the run the sums must say the same.
//!
//! # One client
//!
//! | where it runs | its sessions | run by |
//! | --- | --- | --- |
//! | `clearway bench --workload tpcc` | in process ([`InProcess`]) | `crate::run`, beside other workloads |
//! | `scripts/tpcc` | of any server (the example `tpcc_client`) | [`run_sessions`](crate::tpcc_sessions::run_sessions) |
//! | `clearway simulate` | simulated: which rows the statements touch, but no text and no rows | `crate::simulate::tpcc` |
//!
//! All deal from one deck and take the numbers of the standard from here.
//!
//! # Rules
//!
//! - R1. All but new-order's 1 % with an item that does not exist commit. These are rolled back as their input wants:
//!   they count as transactions, not as new orders.
//! - R2. What is read to be changed is read by the statement that changes it (`UPDATE … RETURNING`) or locked by one
//!   before, so READ COMMITTED suffices: the simple version, SELECT and then UPDATE, gives two orders the same number.
//! - R3. A delivery takes an order by deleting its row of `new_order`. One whose DELETE finds no row, because another
//!   delivery was there first, looks for the oldest again.
//! - R4. New-order changes stocks in the order of their keys, so that two of them cannot wait for each other in a circle.
//!   Payment and delivery lock a customer after all else that they share with others.
//!
//! # What must hold afterwards
//!
//! The consistency conditions ([`consistency`]) 1 to 4 of clause 3.3.2, and the sums of the acknowledged transactions.
//!
//! # What differs from the standard
//!
//! - No keying and no think times, no terminals: a client runs one transaction after the other, so a warehouse does far
//!   more than the 12.86 new-orders a minute of the standard, and response times have no meaning beside published ones.
//! - Orders are entered with their items in the order of their keys (R4), where the standard has them in any order.
//! - A delivery is run by its client, not put into a queue.
//! - There are no durability and isolation tests, no 8-hour run, no priced configuration and no disclosure report.
//!   Numbers are for comparing variants here; they are not an audited result.
//!
//! # Origin
//!
//! TPC Benchmark C, revision 5.11 (2010); the clauses are named where they are followed.

mod backend;
mod client;
mod connection;
pub mod consistency;
mod deck;
mod home;
mod load;
mod random;
mod schema;
mod transactions;

use std::ops::RangeInclusive;
use std::sync::Arc;

use clearway_engine::{Engine, EngineError, SessionInfo, SqlState};

pub use self::backend::{Backend, InProcess, Statement};
pub use self::client::Client;
pub use self::consistency::{Acknowledged, Totals};
pub(crate) use self::deck::Deck;
pub use self::deck::Kind;
pub use self::load::{load, load_into, steps};
pub use self::transactions::LOW_STOCK;
pub(crate) use self::transactions::{BY_NAME, RECENT_ORDERS};
use super::one_number;

/// Districts of a warehouse.
pub const DISTRICTS: i32 = 10;

/// The lines that an order may have.
pub(crate) const ORDER_LINES: RangeInclusive<i32> = 5..=15;

/// Of a hundred customers, how many have bad credit.
pub(crate) const BAD_CREDIT: u32 = 10;

/// The number of rows in the tables when they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and so the stocks of a warehouse.
    pub items: i32,
    /// Customers of a district, and so its orders.
    pub customers: i32,
}

impl Population {
    /// That of the standard.
    pub const fn standard(warehouses: u32) -> Population {
        Population {
            warehouses,
            items: 100_000,
            customers: 3_000,
        }
    }

    /// True if an order was loaded as delivered.
    fn is_delivered(self, order: i32) -> bool {
        order <= self.customers * 7 / 10
    }
}

/// Warehouses of the tables that are there, 0 if they were loaded in part; `None` when there are no tables.
pub fn loaded_warehouses(engine: &Arc<Engine>) -> Result<Option<i64>, EngineError> {
    let mut session = engine.session(SessionInfo::default())?;
    match one_number(&mut session, "select count(*) from item where i_id = 1") {
        Ok(_) => {}
        Err(error) if error.sqlstate() == SqlState::UNDEFINED_TABLE => return Ok(None),
        Err(error) => return Err(error),
    }
    match one_number(&mut session, "select count(*) from warehouse") {
        Err(error) if error.sqlstate() == SqlState::UNDEFINED_TABLE => Ok(Some(0)),
        count => count.map(Some),
    }
}
