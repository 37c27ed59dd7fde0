//! The statements of each of the five transactions, and the rows that they read and change.
//!
//! Two forms of the same transactions:
//!
//! | | `arrays = 0` | `arrays = 1` |
//! | --- | --- | --- |
//! | as in | `workload/tpcc/transactions`, but for stock-level | HammerDB's stored procedures for PostgreSQL, since it has those with arrays |
//! | new-order's lines | item, stock and line: three statements a line | three statements for all |
//! | delivery | six statements a district | four for the ten districts |
//! | stock-level | the lines, then a statement for each of 200 stocks | one, a join |
//! | statements a transaction of the mix | 28 | 6 |
//!
//! Stock-level with `arrays = 0` is what a client does that joins by itself; the workload has one statement, a join.
//!
//! Payment and order-status are the same in both. A new-order with an item that does not exist (1 %) is like any other,
//! and commits.

use clearway_sim::random_below;

use super::tables::Table;
use crate::workload::tpcc::{self, BAD_CREDIT, BY_NAME, Kind, ORDER_LINES, RECENT_ORDERS};

/// The use of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowAction {
    Read,
    /// Read and changed, or deleted.
    Change,
    Insert,
}

/// Rows of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) table: Table,
    pub(super) what: RowAction,
    /// Number of descents of the index, each to rows of one heap page.
    pub(super) finds: u32,
    /// Rows there.
    pub(super) rows: u32,
    /// By the table's second index: a customer's name, a customer's orders.
    pub(super) by_second: bool,
}

impl Access {
    const fn new(table: Table, what: RowAction, finds: u32) -> Self {
        Self {
            table,
            what,
            finds,
            rows: 1,
            by_second: false,
        }
    }
}

/// One statement, with a snapshot of its own.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) accesses: Vec<Access>,
}

impl Statement {
    /// Its share of its transaction's work.
    pub(super) fn weight(&self) -> u64 {
        let rows = self.accesses.iter().map(|access| access.finds * access.rows);
        2 + u64::from(rows.sum::<u32>())
    }
}

/// Rows of the lines of an order, on one page: the mean.
const LINES: u32 = ((*ORDER_LINES.start() + *ORDER_LINES.end()) / 2) as u32;
const DISTRICTS: u32 = tpcc::DISTRICTS as u32;
/// Heap pages with the lines of a district's last orders, and the items among them, about all of which are different.
const RECENT_LINES_PAGES: u32 = 4;
const RECENT_ITEMS: u32 = RECENT_ORDERS as u32 * LINES;

/// Lines of a new order.
fn lines_of_a_new_order() -> u32 {
    let (least, most) = (*ORDER_LINES.start(), *ORDER_LINES.end());
    least as u32 + random_below((most - least + 1) as u64) as u32
}

/// The statements of a transaction, with what is drawn for it.
pub(super) fn statements(kind: Kind, arrays: bool) -> Vec<Statement> {
    use RowAction::{Change, Insert, Read};
    use Table::{Customer, District, History, Item, NewOrder, OrderLine, Orders, Stock, Warehouse};
    let mut all = Vec::new();
    let mut statement = |accesses: &[Access]| {
        all.push(Statement {
            accesses: accesses.to_vec(),
        });
    };
    let one = |table, what| Access::new(table, what, 1);
    let in_hundred = |times: u32| random_below(100) < u64::from(times);
    let by_name = Access {
        finds: 1,
        rows: 3,
        by_second: true,
        ..one(Customer, Read)
    };
    let lines_of_an_order = |what, finds| Access {
        finds,
        rows: LINES,
        ..one(OrderLine, what)
    };
    match kind {
        Kind::NewOrder => {
            let lines = lines_of_a_new_order();
            if arrays {
                statement(&[one(Customer, Read), one(Warehouse, Read)]);
            } else {
                statement(&[one(Warehouse, Read)]);
                statement(&[one(Customer, Read)]);
            }
            statement(&[one(District, Change)]);
            statement(&[one(Orders, Insert)]);
            statement(&[one(NewOrder, Insert)]);
            let (times, rows) = if arrays { (1, lines) } else { (lines, 1) };
            for _ in 0..times {
                statement(&[Access::new(Item, Read, rows)]);
                statement(&[Access::new(Stock, Change, rows)]);
                statement(&[Access::new(OrderLine, Insert, rows)]);
            }
        }
        Kind::Payment => {
            statement(&[one(Warehouse, Change)]);
            statement(&[one(District, Change)]);
            if in_hundred(BY_NAME) {
                statement(&[by_name]);
            }
            statement(&[one(Customer, Change)]);
            // Of a customer with bad credit the data too.
            if in_hundred(BAD_CREDIT) {
                statement(&[one(Customer, Change)]);
            }
            statement(&[one(History, Insert)]);
        }
        Kind::OrderStatus => {
            if in_hundred(BY_NAME) {
                statement(&[by_name]);
            }
            statement(&[one(Customer, Read)]);
            statement(&[Access {
                by_second: true,
                ..one(Orders, Read)
            }]);
            statement(&[lines_of_an_order(Read, 1)]);
        }
        Kind::Delivery if arrays => {
            statement(&[Access::new(NewOrder, Change, DISTRICTS)]);
            statement(&[Access::new(Orders, Change, DISTRICTS)]);
            statement(&[lines_of_an_order(Change, DISTRICTS)]);
            statement(&[Access::new(Customer, Change, DISTRICTS)]);
        }
        Kind::Delivery => {
            for _ in 0..DISTRICTS {
                statement(&[one(NewOrder, Read)]);
                statement(&[one(NewOrder, Change)]);
                statement(&[one(Orders, Change)]);
                statement(&[lines_of_an_order(Change, 1)]);
                statement(&[lines_of_an_order(Read, 1)]);
                statement(&[one(Customer, Change)]);
            }
        }
        Kind::StockLevel => {
            let district = one(District, Read);
            let lines = Access {
                rows: RECENT_ITEMS / RECENT_LINES_PAGES,
                ..Access::new(OrderLine, Read, RECENT_LINES_PAGES)
            };
            if arrays {
                statement(&[district, lines, Access::new(Stock, Read, RECENT_ITEMS)]);
            } else {
                statement(&[district]);
                statement(&[lines]);
                for _ in 0..RECENT_ITEMS {
                    statement(&[one(Stock, Read)]);
                }
            }
        }
    }
    all
}
