//! Order-status (clause 2.6): a customer's last order and its lines. It writes nothing.

use clearway_engine::{EngineError, Value};
use rand::rngs::SmallRng;

use super::customer::{self, Choice};
use super::district;
use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, int4};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;
use crate::workload::tpcc::{ORDER_LINES, Population};

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    by_name: Statement,
    customer: Statement,
    last_order: Statement,
    lines: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            by_name: customer::prepare(connection)?,
            customer: connection.prepare(
                "select c_balance, c_first, c_middle, c_last from customer \
                 where c_w_id = $1 and c_d_id = $2 and c_id = $3",
            )?,
            last_order: connection.prepare(
                "select o_id, o_entry_d, o_carrier_id from orders where o_w_id = $1 and o_d_id = $2 and o_c_id = $3 \
                 order by o_id desc limit 1",
            )?,
            lines: connection.prepare(
                "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line \
                 where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
            )?,
        })
    }
}

/// Whose order is asked for.
#[derive(Debug)]
pub(in crate::workload::tpcc) struct OrderStatus {
    warehouse: i32,
    district: i32,
    customer: Choice,
}

impl OrderStatus {
    pub(super) fn draw(random: &mut SmallRng, population: Population, home: Home) -> OrderStatus {
        OrderStatus {
            warehouse: home.warehouse,
            district: district(random),
            customer: Choice::draw(random, population),
        }
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Acknowledged, EngineError> {
        connection.begin()?;
        let customer = self
            .customer
            .number(connection, statements.by_name, self.warehouse, self.district)?;
        let key = [self.warehouse, self.district, customer].map(Value::Int4);
        connection.one(statements.customer, &key, "customer")?;
        let order = int4(connection.one(statements.last_order, &key, "orders")?, 0)?;
        let [warehouse, district, _] = key;
        let lines = connection.run(statements.lines, &[warehouse, district, Value::Int4(order)])?;
        if !ORDER_LINES.contains(&(lines.len() as i32)) {
            return Err(EngineError::internal(format!(
                "order {order} of warehouse {}, district {} has {} lines, but must have {} to {}",
                self.warehouse,
                self.district,
                lines.len(),
                ORDER_LINES.start(),
                ORDER_LINES.end(),
            )));
        }
        connection.end()?;
        Ok(Acknowledged::default())
    }
}
