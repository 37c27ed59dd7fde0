//! New-order (clause 2.4): an order of 5 to 15 lines.
//!
//! 1. Read the warehouse's tax and the customer's discount.
//! 2. Take the district's next order number. From here to the end the district's row is locked.
//! 3. Insert the order and its row of `new_order`.
//! 4. For each line, read the item and change its stock; insert the line. An item that does not exist, in 1 % of the
//!    orders the last one, rolls all of it back.
//!
//! A stock that would fall below 10 is filled up by 91. One line in a hundred is supplied by another warehouse.

use clearway_engine::{EngineError, Value};
use rand::RngExt;
use rand::rngs::SmallRng;

use super::{district, in_hundred, other_warehouse};
use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, cents, int4, money, text};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;
use crate::workload::tpcc::{DISTRICTS, ORDER_LINES, Population, random};

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    warehouse: Statement,
    customer: Statement,
    district: Statement,
    order: Statement,
    new_order: Statement,
    item: Statement,
    /// One for each district, whose text for the line is in a column of its own.
    stock: Vec<Statement>,
    line: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        let stock = (1..=DISTRICTS).map(|district| {
            connection.prepare(&format!(
                "update stock set s_quantity = case when s_quantity - $1 >= 10 then s_quantity - $1 \
                 else s_quantity - $1 + 91 end, s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + $2 where s_w_id = $3 and s_i_id = $4 \
                 returning s_dist_{district:02}, s_data, s_quantity"
            ))
        });
        Ok(Statements {
            stock: stock.collect::<Result<_, _>>()?,
            warehouse: connection.prepare("select w_tax from warehouse where w_id = $1")?,
            customer: connection.prepare(
                "select c_discount, c_last, c_credit from customer where c_w_id = $1 and c_d_id = $2 and c_id = $3",
            )?,
            district: connection.prepare(
                "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = $1 and d_id = $2 \
                 returning d_next_o_id - 1, d_tax",
            )?,
            order: connection.prepare(
                "insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
                 values ($1, $2, $3, $4, current_timestamp, null, $5, $6)",
            )?,
            new_order: connection
                .prepare("insert into new_order (no_w_id, no_d_id, no_o_id) values ($1, $2, $3)")?,
            item: connection.prepare("select i_price, i_name, i_data from item where i_id = $1")?,
            line: connection.prepare(
                "insert into order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
                 ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) values ($1, $2, $3, $4, $5, $6, null, $7, $8, $9)",
            )?,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Line {
    supply_warehouse: i32,
    item: i32,
    quantity: i32,
}

/// An order to be entered.
#[derive(Debug)]
pub(in crate::workload::tpcc) struct NewOrder {
    warehouse: i32,
    district: i32,
    customer: i32,
    lines: Vec<Line>,
}

impl NewOrder {
    pub(super) fn draw(random: &mut SmallRng, population: Population, home: Home) -> NewOrder {
        let count = random.random_range(ORDER_LINES);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: random::item(random, population.items),
                supply_warehouse: match in_hundred(random, 1) {
                    true => other_warehouse(random, population, home.warehouse),
                    false => home.warehouse,
                },
                quantity: random.random_range(1..=10),
            })
            .collect();
        // In the order of the stocks' keys: two new-orders never wait for each other (R4).
        lines.sort_unstable_by_key(|line| (line.supply_warehouse, line.item));
        if in_hundred(random, 1)
            && let Some(last) = lines.last_mut()
        {
            last.item = population.items + 1;
        }
        NewOrder {
            warehouse: home.warehouse,
            district: district(random),
            customer: random::customer(random, population.customers),
            lines,
        }
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Option<Acknowledged>, EngineError> {
        let (warehouse, district) = (Value::Int4(self.warehouse), Value::Int4(self.district));
        let customer = Value::Int4(self.customer);
        connection.begin()?;
        connection.one(
            statements.warehouse,
            std::slice::from_ref(&warehouse),
            "warehouse",
        )?;
        connection.one(
            statements.customer,
            &[warehouse.clone(), district.clone(), customer.clone()],
            "customer",
        )?;
        let taken = connection.one(
            statements.district,
            &[warehouse.clone(), district.clone()],
            "district",
        )?;
        let order = Value::Int4(int4(taken, 0)?);
        let all_local = self
            .lines
            .iter()
            .all(|line| line.supply_warehouse == self.warehouse);
        connection.run(
            statements.order,
            &[
                warehouse.clone(),
                district.clone(),
                order.clone(),
                customer,
                Value::Int4(self.lines.len() as i32),
                Value::Int4(i32::from(all_local)),
            ],
        )?;
        connection.run(
            statements.new_order,
            &[warehouse.clone(), district.clone(), order.clone()],
        )?;
        let stock = statements.stock[(self.district - 1) as usize];
        for (number, line) in (1..).zip(&self.lines) {
            let (item, quantity) = (Value::Int4(line.item), Value::Int4(line.quantity));
            let supply = Value::Int4(line.supply_warehouse);
            let price_cents = match connection.run(statements.item, std::slice::from_ref(&item))? {
                [found] => cents(found, 0)?,
                _ => {
                    connection.rollback()?;
                    return Ok(None);
                }
            };
            let remote = i32::from(line.supply_warehouse != self.warehouse);
            let changed = connection.one(
                stock,
                &[
                    quantity.clone(),
                    Value::Int4(remote),
                    supply.clone(),
                    item.clone(),
                ],
                "stock",
            )?;
            let district_info = Value::from(text(changed, 0)?);
            connection.run(
                statements.line,
                &[
                    warehouse.clone(),
                    district.clone(),
                    order.clone(),
                    Value::Int4(number),
                    item,
                    supply,
                    quantity,
                    money(price_cents * i64::from(line.quantity)),
                    district_info,
                ],
            )?;
        }
        connection.end()?;
        Ok(Some(Acknowledged {
            new_orders: 1,
            ..Acknowledged::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn orders_are_as_the_standard_wants_them() {
        let mut random = SmallRng::seed_from_u64(11);
        let population = Population::standard(3);
        let home = Home {
            warehouse: 2,
            district: 1,
        };
        let (mut rolled_back, mut remote, mut lines) = (0, 0, 0);
        for _ in 0..20_000 {
            let order = NewOrder::draw(&mut random, population, home);
            assert!((5..=15).contains(&order.lines.len()) && (1..=DISTRICTS).contains(&order.district));
            let last = order.lines.len() - 1;
            let keys: Vec<_> = order
                .lines
                .iter()
                .map(|line| (line.supply_warehouse, line.item))
                .collect();
            assert!(keys.is_sorted());
            assert!(
                order.lines[..last]
                    .iter()
                    .all(|line| (1..=100_000).contains(&line.item))
            );
            assert!(order.lines.iter().all(|line| (1..=10).contains(&line.quantity)));
            rolled_back += usize::from(order.lines[last].item > 100_000);
            remote += order
                .lines
                .iter()
                .filter(|line| line.supply_warehouse != 2)
                .count();
            lines += order.lines.len();
        }
        assert!((140..260).contains(&rolled_back), "{rolled_back} of 20,000");
        assert!((lines / 120..lines / 85).contains(&remote), "{remote} of {lines}");
    }
}
