//! Stock-level (clause 2.8): how many items of the last 20 orders of the terminal's district are below a threshold in
//! the home warehouse.
//!
//! The standard joins `order_line` with `stock`. The engine has no joins, so the distinct items of these lines are read
//! first, about 200, and then the stock row of each. The standard allows READ COMMITTED here, under which a single
//! statement would see one moment and these see several.

use clearway_engine::{EngineError, Value};
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, int4};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;

/// Orders that are looked at.
pub(crate) const RECENT_ORDERS: i32 = 20;

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    district: Statement,
    items: Statement,
    stock: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            district: connection
                .prepare("select d_next_o_id from district where d_w_id = $1 and d_id = $2")?,
            items: connection.prepare(
                "select distinct ol_i_id from order_line \
                 where ol_w_id = $1 and ol_d_id = $2 and ol_o_id >= $3 and ol_o_id < $4",
            )?,
            stock: connection.prepare("select s_quantity from stock where s_w_id = $1 and s_i_id = $2")?,
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
        let lines = [
            warehouse.clone(),
            district,
            Value::Int4(next - RECENT_ORDERS),
            Value::Int4(next),
        ];
        let rows = connection.run(statements.items, &lines)?;
        let items = rows.iter().map(|row| int4(row, 0));
        let items: Vec<i32> = items.collect::<Result<_, _>>()?;
        let mut low = 0;
        for item in &items {
            let row = connection.one(
                statements.stock,
                &[warehouse.clone(), Value::Int4(*item)],
                "stock",
            )?;
            low += usize::from(int4(row, 0)? < self.threshold);
        }
        connection.end()?;
        // A terminal would show it.
        std::hint::black_box(low);
        Ok(Acknowledged::default())
    }
}
