//! Stock-level (clause 2.8): how many items of the last 20 orders of the terminal's district are below a threshold in
//! the home warehouse.
//!
//! One join of `order_line` and `stock` counts them. Its plan must find the stock of each line by the primary key: about
//! 200 rows of the 100,000 that a warehouse has. Which plan that is must not hang on ANALYZE having run.

use clearway_engine::{EngineError, Value};
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, int, int4};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;

/// Orders that are looked at.
pub(crate) const RECENT_ORDERS: i32 = 20;

/// Counts the items: of a warehouse, a district, its orders from one number to another, below a threshold.
pub const LOW_STOCK: &str = "select count(distinct s_i_id) from order_line, stock \
     where ol_w_id = $1 and ol_d_id = $2 and ol_o_id >= $3 and ol_o_id < $4 \
     and s_w_id = $1 and s_i_id = ol_i_id and s_quantity < $5";

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    district: Statement,
    low_stock: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            district: connection
                .prepare("select d_next_o_id from district where d_w_id = $1 and d_id = $2")?,
            low_stock: connection.prepare(LOW_STOCK)?,
        })
    }
}

/// A question about stock.
#[derive(Debug)]
pub(in crate::workload::tpcc) struct StockLevel {
    home: Home,
    threshold: i32,
}

impl StockLevel {
    pub(super) fn draw(random: &mut SmallRng, home: Home) -> StockLevel {
        StockLevel {
            home,
            threshold: random.random_range(10..=20),
        }
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Acknowledged, EngineError> {
        let place = [self.home.warehouse, self.home.district].map(Value::Int4);
        connection.begin()?;
        let next = int4(connection.one(statements.district, &place, "district")?, 0)?;
        let [warehouse, district] = place;
        let asked = [
            warehouse,
            district,
            Value::Int4(next - RECENT_ORDERS),
            Value::Int4(next),
            Value::Int4(self.threshold),
        ];
        let low = int(connection.one(statements.low_stock, &asked, "low stock")?, 0)?;
        connection.end()?;
        // A terminal would show it.
        std::hint::black_box(low);
        Ok(Acknowledged::default())
    }
}
