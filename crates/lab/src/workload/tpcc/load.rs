//! The first population of the tables (clause 4.3.3).
//!
//! A table is copied row by row as it is made, each from random numbers of its own, so that all databases that are
//! compared hold the same. `orders` and `order_line` have to agree on how many lines an order has: that is a hash of the
//! order's number (`lines_of`), so that neither has to be kept until the other one is made.
//!
//! Of the orders of a district, customers take one each in random order. The first 70 % are delivered; the others are in
//! `new_order`.

use std::io::Write as _;
use std::sync::Arc;

use clearway_engine::{Engine, EngineError};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::backend::{Backend, InProcess};
use super::random::{self, LAST_NAME_C_LOAD, LAST_NAMES};
use super::schema::{AFTERWARDS, TABLES};
use super::{BAD_CREDIT, DISTRICTS, ORDER_LINES, Population};
use crate::seed::seed_of;

/// Seed of the random numbers of loading, whatever a bench's seed is: a directory may be used by several.
const SEED: u64 = 0x7063_6331;

/// Creates and fills the tables. `progress` gets the number of [`steps`] that are done.
pub fn load(
    engine: &Arc<Engine>,
    population: Population,
    progress: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    load_into(&mut InProcess::open(engine)?, population, progress)
}

/// The same in a session of any kind.
pub fn load_into(
    backend: &mut dyn Backend,
    population: Population,
    progress: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    for table in TABLES {
        backend.execute(table)?;
    }
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut loader = Loader {
        backend,
        population,
        now,
        done: 0,
        progress,
    };
    loader.items()?;
    loader.stock()?;
    loader.districts()?;
    loader.customers()?;
    loader.orders()?;
    for sql in AFTERWARDS {
        loader.backend.execute(sql)?;
    }
    loader.warehouses()?;
    loader.backend.execute("checkpoint")?;
    Ok(())
}

/// Steps of loading: rows, of which those of `district`, `new_order` and `warehouse` are too few to count, and the lines
/// of an order are one.
pub fn steps(population: Population) -> u64 {
    let (items, customers) = (rows_of_items(population), rows_of_customers(population));
    (i64::from(population.items) + items + 4 * customers) as u64
}

/// One row for each item of each warehouse.
fn rows_of_items(population: Population) -> i64 {
    i64::from(population.warehouses) * i64::from(population.items)
}

/// One row for each customer of each district.
fn rows_of_customers(population: Population) -> i64 {
    rows_of_districts(population) * i64::from(population.customers)
}

fn rows_of_districts(population: Population) -> i64 {
    i64::from(population.warehouses) * i64::from(DISTRICTS)
}

/// The row at this place, of tables with `of_each` rows for each warehouse: its warehouse and its number there.
fn place_of(row: i64, of_each: i32) -> (i32, i32) {
    let (row, of_each) = (row - 1, i64::from(of_each));
    ((row / of_each) as i32 + 1, (row % of_each) as i32 + 1)
}

/// The row at this place, of tables with a row for each customer or each order: warehouse, district and number there.
fn place_in_district(row: i64, customers: i32) -> (i32, i32, i32) {
    let (district, number) = place_of(row, customers);
    let (warehouse, district) = place_of(i64::from(district), DISTRICTS);
    (warehouse, district, number)
}

/// The lines that an order was loaded with.
fn lines_of(warehouse: i32, district: i32, order: i32) -> i32 {
    let order = (i64::from(warehouse) << 40) + (i64::from(district) << 32) + i64::from(order);
    let counts = (ORDER_LINES.end() - ORDER_LINES.start() + 1) as u64;
    (seed_of(SEED, order as u64) % counts) as i32 + ORDER_LINES.start()
}

struct Loader<'a> {
    backend: &'a mut dyn Backend,
    population: Population,
    now: String,
    done: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Loader<'_> {
    /// Copies a table, and counts its rows if they are among the [`steps`].
    fn table(
        &mut self,
        table: &str,
        rows: i64,
        counted: bool,
        row: &mut dyn FnMut(i64, &mut Vec<u8>),
    ) -> Result<(), EngineError> {
        let (done, progress) = (self.done, &mut *self.progress);
        self.backend.copy(table, rows, row, &mut |rows| {
            if counted {
                progress(done + rows);
            }
        })?;
        if counted {
            self.done += rows as u64;
        }
        Ok(())
    }

    fn items(&mut self) -> Result<(), EngineError> {
        let mut random = SmallRng::seed_from_u64(SEED + 1);
        let items = i64::from(self.population.items);
        self.table("item", items, true, &mut |id, text| {
            let _ = write!(text, "{id}\t{}\t", random.random_range(1..=10_000));
            random::letters(&mut random, 14..=24, text);
            let _ = write!(text, "\t{}\t", Cents(random.random_range(100..=10_000)));
            random::data(&mut random, text);
            text.push(b'\n');
        })
    }

    fn stock(&mut self) -> Result<(), EngineError> {
        let mut random = SmallRng::seed_from_u64(SEED + 2);
        let (population, rows) = (self.population, rows_of_items(self.population));
        self.table("stock", rows, true, &mut |row, text| {
            let (warehouse, item) = place_of(row, population.items);
            let _ = write!(text, "{warehouse}\t{item}\t{}\t", random.random_range(10..=100));
            for _ in 0..DISTRICTS {
                random::letters(&mut random, 24..=24, text);
                text.push(b'\t');
            }
            text.extend_from_slice(b"0\t0\t0\t");
            random::data(&mut random, text);
            text.push(b'\n');
        })
    }

    fn districts(&mut self) -> Result<(), EngineError> {
        let mut random = SmallRng::seed_from_u64(SEED + 3);
        let (population, rows) = (self.population, rows_of_districts(self.population));
        self.table("district", rows, false, &mut |row, text| {
            let (warehouse, district) = place_of(row, DISTRICTS);
            let _ = write!(text, "{warehouse}\t{district}\t");
            random::letters(&mut random, 6..=10, text);
            address(&mut random, text);
            let ytd = Cents(i64::from(population.customers) * 1_000);
            let _ = writeln!(
                text,
                "\t{}\t{ytd}\t{}",
                tax(&mut random),
                population.customers + 1
            );
        })
    }

    fn warehouses(&mut self) -> Result<(), EngineError> {
        let mut random = SmallRng::seed_from_u64(SEED + 4);
        let population = self.population;
        self.table(
            "warehouse",
            i64::from(population.warehouses),
            false,
            &mut |row, text| {
                let _ = write!(text, "{row}\t");
                random::letters(&mut random, 6..=10, text);
                address(&mut random, text);
                let ytd = Cents(i64::from(DISTRICTS) * i64::from(population.customers) * 1_000);
                let _ = writeln!(text, "\t{}\t{ytd}", tax(&mut random));
            },
        )
    }

    /// Customers, and the one payment that each of them has made.
    fn customers(&mut self) -> Result<(), EngineError> {
        let (customers, rows) = (self.population.customers, rows_of_customers(self.population));
        let now = self.now.clone();
        let mut random = SmallRng::seed_from_u64(SEED + 5);
        self.table("customer", rows, true, &mut |row, text| {
            let (warehouse, district, id) = place_in_district(row, customers);
            let _ = write!(text, "{warehouse}\t{district}\t{id}\t");
            random::letters(&mut random, 8..=16, text);
            let name = if id <= LAST_NAMES {
                id - 1
            } else {
                random::last_name_number(&mut random, LAST_NAME_C_LOAD, customers)
            };
            let _ = write!(text, "\tOE\t{}", random::last_name(name));
            address(&mut random, text);
            text.push(b'\t');
            random::digits(&mut random, 16, text);
            let credit = if random.random_range(0..100 / BAD_CREDIT) == 0 {
                "BC"
            } else {
                "GC"
            };
            let discount = random.random_range(0..=5_000);
            let _ = write!(
                text,
                "\t{now}\t{credit}\t50000.00\t0.{discount:04}\t-10.00\t10.00\t1\t0\t"
            );
            random::letters(&mut random, 300..=500, text);
            text.push(b'\n');
        })?;
        let now = self.now.clone();
        let mut random = SmallRng::seed_from_u64(SEED + 6);
        self.table("history", rows, true, &mut |row, text| {
            let (warehouse, district, id) = place_in_district(row, customers);
            let _ = write!(
                text,
                "{id}\t{district}\t{warehouse}\t{district}\t{warehouse}\t{now}\t10.00\t"
            );
            random::letters(&mut random, 12..=24, text);
            text.push(b'\n');
        })
    }

    /// Orders, their lines, and which of them are new.
    fn orders(&mut self) -> Result<(), EngineError> {
        let (population, rows) = (self.population, rows_of_customers(self.population));
        let (customers, now) = (population.customers, self.now.clone());
        let mut random = SmallRng::seed_from_u64(SEED + 7);
        let mut shuffled: Vec<i32> = (1..=customers).collect();
        self.table("orders", rows, true, &mut |row, text| {
            let (warehouse, district, id) = place_in_district(row, customers);
            if id == 1 {
                shuffled.shuffle(&mut random);
            }
            let customer = shuffled[(id - 1) as usize];
            let _ = write!(text, "{warehouse}\t{district}\t{id}\t{customer}\t{now}\t");
            if population.is_delivered(id) {
                let _ = write!(text, "{}", random.random_range(1..=10));
            } else {
                text.extend_from_slice(b"\\N");
            }
            let _ = writeln!(text, "\t{}\t1", lines_of(warehouse, district, id));
        })?;
        let now = self.now.clone();
        let mut random = SmallRng::seed_from_u64(SEED + 8);
        self.table("order_line", rows, true, &mut |row, text| {
            let (warehouse, district, id) = place_in_district(row, customers);
            for line in 1..=lines_of(warehouse, district, id) {
                let item = random.random_range(1..=population.items);
                let _ = write!(
                    text,
                    "{warehouse}\t{district}\t{id}\t{line}\t{item}\t{warehouse}\t"
                );
                if population.is_delivered(id) {
                    let _ = write!(text, "{now}\t5\t0.00\t");
                } else {
                    let _ = write!(text, "\\N\t5\t{}\t", Cents(random.random_range(1..=999_999)));
                }
                random::letters(&mut random, 24..=24, text);
                text.push(b'\n');
            }
        })?;
        self.table("new_order", rows, false, &mut |row, text| {
            let (warehouse, district, id) = place_in_district(row, customers);
            if !population.is_delivered(id) {
                let _ = writeln!(text, "{warehouse}\t{district}\t{id}");
            }
        })
    }
}

/// An amount of money as text.
struct Cents(i64);

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

fn tax(random: &mut SmallRng) -> String {
    format!("0.{:04}", random.random_range(0..=2_000))
}

/// Street, street, city, state and zip code, each after a tab.
fn address(random: &mut SmallRng, text: &mut Vec<u8>) {
    for length in [10..=20, 10..=20, 10..=20, 2..=2] {
        text.push(b'\t');
        random::letters(random, length, text);
    }
    text.push(b'\t');
    random::digits(random, 4, text);
    text.extend_from_slice(b"11111");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_places() {
        assert_eq!(place_of(1, 100), (1, 1));
        assert_eq!(place_of(100, 100), (1, 100));
        assert_eq!(place_of(101, 100), (2, 1));
        assert_eq!(place_in_district(1, 30), (1, 1, 1));
        assert_eq!(place_in_district(30, 30), (1, 1, 30));
        assert_eq!(place_in_district(31, 30), (1, 2, 1));
        assert_eq!(place_in_district(301, 30), (2, 1, 1));
        assert_eq!(place_in_district(600, 30), (2, 10, 30));
    }

    #[test]
    fn orders_have_five_to_fifteen_lines() {
        let lines: Vec<i32> = (1..=3_000).map(|order| lines_of(1, 1, order)).collect();
        for count in 5..=15 {
            let orders = lines.iter().filter(|lines| **lines == count).count();
            assert!((200..350).contains(&orders), "{orders} of {count} lines");
        }
        assert!(lines.iter().all(|lines| (5..=15).contains(lines)));
        assert_ne!(
            lines,
            (1..=3_000).map(|order| lines_of(1, 2, order)).collect::<Vec<_>>()
        );
    }
}
