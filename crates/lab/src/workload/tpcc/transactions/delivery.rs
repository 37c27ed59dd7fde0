//! Delivery (clause 2.7): the oldest new order of each of the ten districts, in one transaction.
//!
//! For each district:
//!
//! 1. Find the oldest order number in `new_order`. A district without one is left out.
//! 2. Delete that row. If no row was deleted, another delivery has taken the order: go to 1.
//! 3. Set the order's carrier and its lines' time of delivery, add the lines' amounts to the customer's balance.

use clearway_engine::{EngineError, Value};
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::workload::tpcc::DISTRICTS;
use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, cents, int4, money};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    oldest: Statement,
    take: Statement,
    order: Statement,
    lines: Statement,
    amount: Statement,
    customer: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            oldest: connection.prepare(
                "select no_o_id from new_order where no_w_id = $1 and no_d_id = $2 order by no_o_id limit 1",
            )?,
            take: connection.prepare(
                "delete from new_order where no_w_id = $1 and no_d_id = $2 and no_o_id = $3 returning no_o_id",
            )?,
            order: connection.prepare(
                "update orders set o_carrier_id = $1 where o_w_id = $2 and o_d_id = $3 and o_id = $4 \
                 returning o_c_id",
            )?,
            lines: connection.prepare(
                "update order_line set ol_delivery_d = current_timestamp \
                 where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
            )?,
            amount: connection.prepare(
                "select sum(ol_amount) from order_line where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
            )?,
            customer: connection.prepare(
                "update customer set c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
                 where c_w_id = $2 and c_d_id = $3 and c_id = $4 returning c_balance",
            )?,
        })
    }
}

/// A delivery to be made.
#[derive(Debug)]
pub(in crate::workload::tpcc) struct Delivery {
    warehouse: i32,
    carrier: i32,
}

impl Delivery {
    pub(super) fn draw(random: &mut SmallRng, home: Home) -> Delivery {
        Delivery {
            warehouse: home.warehouse,
            carrier: random.random_range(1..=10),
        }
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Acknowledged, EngineError> {
        let mut delivered = 0;
        connection.begin()?;
        for district in 1..=DISTRICTS {
            let place = [Value::Int4(self.warehouse), Value::Int4(district)];
            if let Some(order) = take(connection, statements, &place)? {
                self.deliver(connection, statements, place, order)?;
                delivered += 1;
            }
        }
        connection.end()?;
        Ok(Acknowledged {
            delivered,
            ..Acknowledged::default()
        })
    }

    fn deliver(
        &self,
        connection: &mut Connection,
        statements: &Statements,
        [warehouse, district]: [Value; 2],
        order: i32,
    ) -> Result<(), EngineError> {
        let key = [warehouse.clone(), district.clone(), Value::Int4(order)];
        let [first, second, third] = key.clone();
        let changed = connection.one(
            statements.order,
            &[Value::Int4(self.carrier), first, second, third],
            "orders",
        )?;
        let customer = Value::Int4(int4(changed, 0)?);
        connection.run(statements.lines, &key)?;
        let amount = money(cents(connection.one(statements.amount, &key, "order_line")?, 0)?);
        connection.one(
            statements.customer,
            &[amount, warehouse, district, customer],
            "customer",
        )?;
        Ok(())
    }
}

/// Takes the oldest new order of a district; `None` if there is none.
fn take(
    connection: &mut Connection,
    statements: &Statements,
    [warehouse, district]: &[Value; 2],
) -> Result<Option<i32>, EngineError> {
    loop {
        let found = connection.run(statements.oldest, &[warehouse.clone(), district.clone()])?;
        let Some(row) = found.first() else {
            return Ok(None);
        };
        let order = int4(row, 0)?;
        let key = [warehouse.clone(), district.clone(), Value::Int4(order)];
        if !connection.run(statements.take, &key)?.is_empty() {
            return Ok(Some(order));
        }
    }
}
