//! Joins of many tables, written in different orders.

use std::sync::Arc;

use crate::bind::bind;
use crate::catalog::{CatalogView, ColumnDef, TableDef, TableKind};
use crate::index::{IndexDef, IndexKey};
use crate::plan::{RowsStatement, Statement};
use crate::planner::cost::Costs;
use crate::settings::PlannerSettings;
use crate::statistics::TableStatistics;
use crate::value::DataType;

/// Greedy plans of twelve tables cost no more than so many times the best.
const FACTOR_MAX: f64 = 2.0;

/// Tables `t0` to `t11` with a key `id` and columns `a` to `l` that refer to the others' keys, of very different sizes.
struct Many {
    searched: usize,
}

fn rows(number: usize) -> f64 {
    [1e5, 20.0, 3e3, 1e6, 7.0, 5e4, 400.0, 2e5, 90.0, 1.5e4, 1e3, 6e5][number]
}

impl CatalogView for Many {
    fn lookup_table(&self, _: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        let number: u32 = name.strip_prefix('t')?.parse().ok()?;
        let columns = ["id", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let columns = columns.map(|name| ColumnDef::new(name, DataType::Int4));
        let mut table = TableDef::new(number, name, TableKind::Heap { rel: number }, columns.into());
        table.indexes.push(Arc::new(IndexDef {
            oid: 100 + number,
            name: format!("{name}_pkey"),
            rel: 100 + number,
            unique: true,
            check_time: crate::CheckTime::default(),
            nulls_not_distinct: false,
            primary: true,
            constraint: true,
            keys: vec![IndexKey::column(0)],
            included: Vec::new(),
            predicate: None,
            marks: crate::IndexMarks::default(),
            types: vec![DataType::Int4],
        }));
        Some(Arc::new(table))
    }

    fn estimated_rows(&self, table: &TableDef) -> Option<u64> {
        Some(rows(table.oid as usize) as u64)
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let rows = rows(table.oid as usize);
        Some(Arc::new(TableStatistics {
            rows,
            pages: (rows / 100.0).ceil() as u32,
            columns: Vec::new(),
        }))
    }

    fn planner_settings(&self) -> PlannerSettings {
        PlannerSettings {
            searched_relations: self.searched,
            ..PlannerSettings::default()
        }
    }
}

impl Many {
    fn cost(&self, sql: &str) -> f64 {
        let statement = crate::parse(sql).unwrap().remove(0);
        let plan = bind(&statement, self, &[]).unwrap();
        let Statement::Rows(RowsStatement::Select(select)) = &plan.statement else {
            panic!("{sql}");
        };
        Costs::new(self).select(select).top.total
    }
}

/// Numbers below `count` in an order that a seed decides.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, (state % (at as u64 + 1)) as usize);
    }
    order
}

/// Each table refers to the next.
fn chain(count: usize) -> Vec<String> {
    (1..count).map(|n| format!("t{}.a = t{n}.id", n - 1)).collect()
}

/// One table refers to all others.
fn star(count: usize) -> Vec<String> {
    let column = |n: usize| char::from(b'a' + n as u8);
    (1..count)
        .map(|n| format!("t0.{} = t{n}.id", column(n)))
        .collect()
}

/// A join of tables in an order of the FROM and of the conditions that a seed decides.
fn written(conditions: &[String], seed: u64) -> String {
    let count = conditions.len() + 1;
    let tables = shuffled(count, seed).into_iter().map(|n| format!("t{n}"));
    let from = tables.collect::<Vec<_>>().join(if seed.is_multiple_of(2) {
        ", "
    } else {
        " cross join "
    });
    let order = shuffled(conditions.len(), seed + 1);
    let shown: Vec<&str> = order.iter().map(|at| conditions[*at].as_str()).collect();
    format!(
        "select count(*) from {from} where {} and t1.b < 10",
        shown.join(" and ")
    )
}

#[test]
fn the_written_order_does_not_matter() {
    let many = Many { searched: 8 };
    for conditions in [chain(8), star(8), chain(3), star(5)] {
        let best = many.cost(&written(&conditions, 0));
        for seed in 1..10 {
            let sql = written(&conditions, seed);
            let cost = many.cost(&sql);
            assert!((cost / best - 1.0).abs() < 1e-6, "{sql}: {cost}, not {best}");
        }
    }
}

#[test]
fn greedy_plans_of_twelve_tables_are_near_the_best() {
    for conditions in [chain(12), star(12)] {
        let sql = written(&conditions, 0);
        let best = Many { searched: 12 }.cost(&sql);
        for seed in 0..10 {
            let sql = written(&conditions, seed);
            let cost = Many { searched: 8 }.cost(&sql);
            assert!(cost <= FACTOR_MAX * best, "{sql}: {cost}, and {best} is possible");
        }
    }
}

#[test]
fn a_product_is_made_where_no_condition_connects() {
    let many = Many { searched: 8 };
    assert!(many.cost("select * from t1, t4, t8").is_finite());
    assert!(
        many.cost("select * from t1, t4, t8 where t1.a = t8.id")
            .is_finite()
    );
    assert!(
        many.cost("select * from t1, lateral (select * from t4 where t4.a = t1.id) x, t8")
            .is_finite()
    );
}
