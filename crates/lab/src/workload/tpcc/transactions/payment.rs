//! Payment (clause 2.5): 1.00 to 5,000.00 from a customer.
//!
//! 1. Add the amount to the warehouse, then to the district. The warehouse's row is locked from here to the end, so
//!    payments to one warehouse run one after the other.
//! 2. Find the customer, take the amount from its balance.
//! 3. If its credit is bad ("BC"), write the payment in front of the customer's data, of which 500 characters are kept.
//! 4. Insert a row of history.
//!
//! In 15 % the customer is one of another warehouse.

use clearway_engine::{EngineError, Value};
use rand::RngExt;
use rand::rngs::SmallRng;

use super::customer::{self, Choice};
use super::{district, in_hundred, other_warehouse};
use crate::workload::tpcc::Population;
use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, money, text};
use crate::workload::tpcc::consistency::Acknowledged;
use crate::workload::tpcc::home::Home;

/// Of a hundred payments, how many come from a customer of another warehouse.
const REMOTE: u32 = 15;

/// Characters of a customer's data.
const DATA_LENGTH_MAX: usize = 500;

#[derive(Debug)]
pub(in crate::workload::tpcc) struct Statements {
    warehouse: Statement,
    district: Statement,
    by_name: Statement,
    customer: Statement,
    customer_data: Statement,
    history: Statement,
}

impl Statements {
    pub(super) fn prepare(connection: &mut Connection) -> Result<Statements, EngineError> {
        Ok(Statements {
            warehouse: connection.prepare(
                "update warehouse set w_ytd = w_ytd + $1 where w_id = $2 \
                 returning w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            )?,
            district: connection.prepare(
                "update district set d_ytd = d_ytd + $1 where d_w_id = $2 and d_id = $3 \
                 returning d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            )?,
            by_name: customer::prepare(connection)?,
            customer: connection.prepare(
                "update customer set c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
                 c_payment_cnt = c_payment_cnt + 1 where c_w_id = $2 and c_d_id = $3 and c_id = $4 \
                 returning c_credit, c_data, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
                 c_zip, c_phone, c_since, c_credit_lim, c_discount, c_balance",
            )?,
            customer_data: connection.prepare(
                "update customer set c_data = $1 where c_w_id = $2 and c_d_id = $3 and c_id = $4",
            )?,
            history: connection.prepare(
                "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 values ($1, $2, $3, $4, $5, current_timestamp, $6, $7)",
            )?,
        })
    }
}

/// A payment to be taken.
#[derive(Debug)]
pub(in crate::workload::tpcc) struct Payment {
    warehouse: i32,
    district: i32,
    customer_warehouse: i32,
    customer_district: i32,
    customer: Choice,
    amount_cents: i64,
}

impl Payment {
    pub(super) fn draw(random: &mut SmallRng, population: Population, home: Home) -> Payment {
        let own = district(random);
        let (customer_warehouse, customer_district) = match in_hundred(random, REMOTE) {
            true => (
                other_warehouse(random, population, home.warehouse),
                district(random),
            ),
            false => (home.warehouse, own),
        };
        Payment {
            warehouse: home.warehouse,
            district: own,
            customer_warehouse,
            customer_district,
            customer: Choice::draw(random, population),
            amount_cents: random.random_range(100..=500_000),
        }
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        statements: &Statements,
    ) -> Result<Acknowledged, EngineError> {
        let (warehouse, district) = (Value::Int4(self.warehouse), Value::Int4(self.district));
        let amount = money(self.amount_cents);
        connection.begin()?;
        let changed = connection.one(
            statements.warehouse,
            &[amount.clone(), warehouse.clone()],
            "warehouse",
        )?;
        let mut names = text(changed, 0)?.to_owned();
        let changed = connection.one(
            statements.district,
            &[amount.clone(), warehouse.clone(), district.clone()],
            "district",
        )?;
        names.push_str("    ");
        names.push_str(text(changed, 0)?);

        let number = self.customer.number(
            connection,
            statements.by_name,
            self.customer_warehouse,
            self.customer_district,
        )?;
        let key = [self.customer_warehouse, self.customer_district, number].map(Value::Int4);
        let [first, second, third] = key.clone();
        let [customer_warehouse, customer_district, customer] = key;
        let changed = connection.one(
            statements.customer,
            &[amount.clone(), first.clone(), second.clone(), third.clone()],
            "customer",
        )?;
        if text(changed, 0)? == "BC" {
            let data = self.data_before(number, text(changed, 1)?);
            connection.run(
                statements.customer_data,
                &[Value::text(data), first, second, third],
            )?;
        }
        connection.run(
            statements.history,
            &[
                customer,
                customer_district,
                customer_warehouse,
                district,
                warehouse,
                amount,
                Value::text(names),
            ],
        )?;
        connection.end()?;
        Ok(Acknowledged {
            payments: 1,
            paid_cents: self.amount_cents,
            ..Acknowledged::default()
        })
    }

    /// The customer's data with this payment in front of it, cut to its length.
    fn data_before(&self, customer: i32, data: &str) -> String {
        let noted = format!(
            "{customer} {} {} {} {} {}.{:02} ",
            self.customer_district,
            self.customer_warehouse,
            self.district,
            self.warehouse,
            self.amount_cents / 100,
            self.amount_cents % 100
        );
        noted.chars().chain(data.chars()).take(DATA_LENGTH_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const HOME: Home = Home {
        warehouse: 2,
        district: 1,
    };

    #[test]
    fn fifteen_of_a_hundred_come_from_elsewhere() {
        let mut random = SmallRng::seed_from_u64(12);
        let mut remote = 0;
        for _ in 0..10_000 {
            let payment = Payment::draw(&mut random, Population::standard(3), HOME);
            assert!((100..=500_000).contains(&payment.amount_cents));
            if payment.customer_warehouse == 2 {
                assert_eq!(payment.customer_district, payment.district);
            } else {
                remote += 1;
            }
        }
        assert!((1_350..1_650).contains(&remote), "{remote}");
    }

    #[test]
    fn bad_credit_is_noted_in_front() {
        let payment = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: Choice::Number(5),
            amount_cents: 12_305,
        };
        assert_eq!(payment.data_before(5, "old"), "5 4 3 2 1 123.05 old");
        let long = payment.data_before(5, &"x".repeat(500));
        assert_eq!(long.chars().count(), 500);
    }
}
