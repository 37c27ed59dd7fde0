//! Conditions that must hold after a run.
//!
//! | rule | for each | |
//! | --- | --- | --- |
//! | C1 | warehouse | w_ytd = sum(d_ytd) |
//! | C2 | district | d_next_o_id − 1 = max(o_id) = max(no_o_id) |
//! | C3 | district | max(no_o_id) − min(no_o_id) + 1 = rows of new_order |
//! | C4 | district | sum(o_ol_cnt) = rows of order_line |
//! | A1 | database | sum(d_next_o_id) has grown by the new orders acknowledged |
//! | A2 | database | sum(w_ytd) has grown by the payments acknowledged, and history by a row each |
//! | A3 | database | sum(c_delivery_cnt) has grown by the deliveries acknowledged, and new_order by the others' rows |
//!
//! C1 to C4 are the standard's consistency conditions 1 to 4 (clause 3.3.2). In a district all of whose orders are
//! delivered, `new_order` has no rows: then C3 and the second half of C2 say nothing. C1 to C4 hold also for a database
//! that has lost whole transactions; that none is lost is what A1 to A3 say.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearway_engine::{Engine, EngineError};

use super::backend::{Backend, InProcess};
use super::connection::int;
use crate::workload::number_of;

/// Sums of the transactions that were acknowledged to a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Orders entered.
    pub new_orders: i64,
    /// Payments.
    pub payments: i64,
    /// Their sum, in cents.
    pub paid_cents: i64,
    /// Orders delivered: up to ten by each delivery.
    pub delivered: i64,
}

impl std::ops::AddAssign for Acknowledged {
    fn add_assign(&mut self, other: Acknowledged) {
        self.new_orders += other.new_orders;
        self.payments += other.payments;
        self.paid_cents += other.paid_cents;
        self.delivered += other.delivered;
    }
}

/// Sums over a whole database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// sum(d_next_o_id)
    pub order_numbers: i64,
    /// sum(w_ytd), in cents
    pub paid_cents: i64,
    /// Rows of history.
    pub history_rows: i64,
    /// sum(c_delivery_cnt)
    pub delivered: i64,
    /// Rows of new_order.
    pub new_order_rows: i64,
}

/// A district: its warehouse and its number.
type District = (i64, i64);

impl Totals {
    /// Reads them.
    pub fn read(engine: &Arc<Engine>) -> Result<Totals, EngineError> {
        Totals::read_from(&mut InProcess::open(engine)?)
    }

    /// Reads them in a session of any kind.
    pub fn read_from(backend: &mut dyn Backend) -> Result<Totals, EngineError> {
        let mut number = |sql: &str| number_of(sql, &backend.execute(sql)?);
        Ok(Totals {
            order_numbers: number("select sum(d_next_o_id) from district")?,
            paid_cents: number("select (sum(w_ytd) * 100)::bigint from warehouse")?,
            history_rows: number("select count(*) from history")?,
            delivered: number("select sum(c_delivery_cnt) from customer")?,
            new_order_rows: number("select count(*) from new_order")?,
        })
    }

    /// The faults in these sums, given those before and the acknowledgements in between.
    pub fn faults(&self, before: &Totals, acknowledged: &Acknowledged) -> Vec<String> {
        let rules = [
            (
                "A1: growth of sum(d_next_o_id) against acknowledged new orders",
                self.order_numbers - before.order_numbers,
                acknowledged.new_orders,
            ),
            (
                "A2: growth of sum(w_ytd) in cents against acknowledged payments",
                self.paid_cents - before.paid_cents,
                acknowledged.paid_cents,
            ),
            (
                "A2: growth of the history against acknowledged payments",
                self.history_rows - before.history_rows,
                acknowledged.payments,
            ),
            (
                "A3: growth of sum(c_delivery_cnt) against acknowledged deliveries",
                self.delivered - before.delivered,
                acknowledged.delivered,
            ),
            (
                "A3: growth of new_order against acknowledged new orders that are not delivered",
                self.new_order_rows - before.new_order_rows,
                acknowledged.new_orders - acknowledged.delivered,
            ),
        ];
        let broken = rules.into_iter().filter(|(_, left, right)| left != right);
        broken
            .map(|(rule, left, right)| format!("{rule}: {left} is not {right}"))
            .collect()
    }
}

/// Violations of conditions 1 to 4, a sentence each.
pub fn violations(engine: &Arc<Engine>) -> Result<Vec<String>, EngineError> {
    violations_in(&mut InProcess::open(engine)?)
}

/// The same in a session of any kind.
pub fn violations_in(backend: &mut dyn Backend) -> Result<Vec<String>, EngineError> {
    let mut found = Vec::new();
    let warehouses = grouped(backend, 1, "select w_id, w_ytd * 100 from warehouse")?;
    let of_districts = grouped(
        backend,
        1,
        "select d_w_id, sum(d_ytd) * 100 from district group by d_w_id",
    )?;
    for (warehouse, paid) in &warehouses {
        let districts = of_districts.get(warehouse).map_or(0, |sums| sums[0]);
        if paid[0] != districts {
            found.push(format!(
                "C1: w_ytd of warehouse {} is {} cents, but the d_ytd of its districts are {districts}",
                warehouse.0, paid[0]
            ));
        }
    }

    let districts = grouped(backend, 2, "select d_w_id, d_id, d_next_o_id from district")?;
    let orders = grouped(
        backend,
        2,
        "select o_w_id, o_d_id, max(o_id), sum(o_ol_cnt) from orders group by o_w_id, o_d_id",
    )?;
    let new_orders = grouped(
        backend,
        2,
        "select no_w_id, no_d_id, max(no_o_id), min(no_o_id), count(*) from new_order group by no_w_id, no_d_id",
    )?;
    let lines = grouped(
        backend,
        2,
        "select ol_w_id, ol_d_id, count(*) from order_line group by ol_w_id, ol_d_id",
    )?;
    for (district, next) in &districts {
        let place = format!("warehouse {}, district {}", district.0, district.1);
        let last = next[0] - 1;
        let (newest, counted) = orders.get(district).map_or((0, 0), |sums| (sums[0], sums[1]));
        if last != newest {
            found.push(format!(
                "C2: d_next_o_id - 1 of {place} is {last}, but max(o_id) is {newest}"
            ));
        }
        if let Some([newest, oldest, rows]) = new_orders.get(district).map(Vec::as_slice) {
            if last != *newest {
                found.push(format!(
                    "C2: d_next_o_id - 1 of {place} is {last}, but max(no_o_id) is {newest}"
                ));
            }
            if newest - oldest + 1 != *rows {
                found.push(format!(
                    "C3: new_order of {place} has {rows} rows from no_o_id {oldest} to {newest}"
                ));
            }
        }
        let there = lines.get(district).map_or(0, |sums| sums[0]);
        if counted != there {
            found.push(format!(
                "C4: sum(o_ol_cnt) of {place} is {counted}, but order_line has {there} rows"
            ));
        }
    }
    Ok(found)
}

/// The rows of a query by their first one or two columns; the others are numbers, or amounts in cents if they are not
/// whole. The second part of a key of one column is 0.
fn grouped(
    backend: &mut dyn Backend,
    keys: usize,
    sql: &str,
) -> Result<BTreeMap<District, Vec<i64>>, EngineError> {
    let mut groups = BTreeMap::new();
    for row in &backend.execute(sql)? {
        let key = (int(row, 0)?, if keys == 2 { int(row, 1)? } else { 0 });
        let numbers = (keys..row.len()).map(|column| int(row, column));
        groups.insert(key, numbers.collect::<Result<_, _>>()?);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_agree_and_totals_that_do_not() {
        let before = Totals {
            order_numbers: 310,
            paid_cents: 5_000,
            history_rows: 30,
            delivered: 0,
            new_order_rows: 90,
        };
        let told = Acknowledged {
            new_orders: 5,
            payments: 2,
            paid_cents: 700,
            delivered: 10,
        };
        let after = Totals {
            order_numbers: 315,
            paid_cents: 5_700,
            history_rows: 32,
            delivered: 10,
            new_order_rows: 85,
        };
        assert_eq!(after.faults(&before, &told), Vec::<String>::new());
        let lost = Totals {
            order_numbers: 314,
            delivered: 9,
            ..after
        };
        let faults = lost.faults(&before, &told);
        assert!(
            faults.len() == 2 && faults[0].starts_with("A1") && faults[1].starts_with("A3"),
            "{faults:?}"
        );
    }
}
