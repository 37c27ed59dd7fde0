//! A customer by number or by last name: 60 % of payments and order-status ask for a name.
//!
//! Several customers of a district have the same last name. The one in the middle, in the order of first names, is meant
//! (clause 2.5.2.2): of three the second, of four the second.

use clearway_engine::{EngineError, Value};
use rand::rngs::SmallRng;

use super::in_hundred;
use crate::workload::tpcc::Population;
use crate::workload::tpcc::backend::Statement;
use crate::workload::tpcc::connection::{Connection, int4};
use crate::workload::tpcc::random::{self, LAST_NAME_C_RUN};

/// Of a hundred, how many ask for a name.
pub(crate) const BY_NAME: u32 = 60;

/// The way a customer is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Number(i32),
    LastName(String),
}

impl Choice {
    pub(super) fn draw(random: &mut SmallRng, population: Population) -> Choice {
        if in_hundred(random, BY_NAME) {
            let number = random::last_name_number(random, LAST_NAME_C_RUN, population.customers);
            Choice::LastName(random::last_name(number))
        } else {
            Choice::Number(random::customer(random, population.customers))
        }
    }

    /// The customer's number.
    pub(super) fn number(
        &self,
        connection: &mut Connection,
        by_name: Statement,
        warehouse: i32,
        district: i32,
    ) -> Result<i32, EngineError> {
        let name = match self {
            Choice::Number(number) => return Ok(*number),
            Choice::LastName(name) => name,
        };
        let found = connection.run(
            by_name,
            &[
                Value::Int4(warehouse),
                Value::Int4(district),
                Value::from(&**name),
            ],
        )?;
        match middle(found) {
            Some(row) => int4(row, 0),
            None => Err(EngineError::internal(format!(
                "district {district} of warehouse {warehouse} has no customer {name}"
            ))),
        }
    }
}

/// The row at place n / 2, rounded up, of n.
fn middle(rows: &[Vec<Value>]) -> Option<&Vec<Value>> {
    rows.get(rows.len().saturating_sub(1) / 2)
}

/// The statement that finds customers by name.
pub(super) fn prepare(connection: &mut Connection) -> Result<Statement, EngineError> {
    connection.prepare(
        "select c_id from customer where c_w_id = $1 and c_d_id = $2 and c_last = $3 order by c_first",
    )
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_one_in_the_middle() {
        let of = |count: i32| {
            let rows: Vec<Vec<Value>> = (1..=count).map(|row| vec![Value::Int4(row)]).collect();
            middle(&rows).cloned()
        };
        let row = |number| Some(vec![Value::Int4(number)]);
        assert_eq!(of(0), None);
        assert_eq!(
            [of(1), of(2), of(3), of(4), of(5)],
            [row(1), row(1), row(2), row(2), row(3)]
        );
    }

    #[test]
    fn six_of_ten_are_meant_by_name() {
        let mut random = SmallRng::seed_from_u64(9);
        let names = (0..10_000)
            .filter(|_| {
                matches!(
                    Choice::draw(&mut random, Population::standard(1)),
                    Choice::LastName(_)
                )
            })
            .count();
        assert!((5_800..6_200).contains(&names), "{names}");
    }
}
