//! The part of the rows that conditions let through, over a table whose values are known.

use std::sync::Arc;

use crate::bind::bind;
use crate::catalog::{CatalogView, ColumnDef, TableDef, TableKind};
use crate::plan::{RowsStatement, Statement};
use crate::planner::cost::Costs;
use crate::settings::PlannerSettings;
use crate::statistics::{ColumnSample, SampledTable, TableStatistics};
use crate::value::{DataType, Value};

/// A table `t` of 1,000 rows: `id` 0 to 999; `few` 0 for half of the rows, and 1 to 5; `part` NULL for three rows of four;
/// `name` of `a000` to `j999`; `unknown` without statistics.
struct Analyzed {
    table: Arc<TableDef>,
    statistics: Arc<TableStatistics>,
}

impl Analyzed {
    fn new() -> Analyzed {
        let types = [
            DataType::Int4,
            DataType::Int4,
            DataType::Int8,
            DataType::Text,
            DataType::Char,
        ];
        let names = ["id", "few", "part", "name", "padded"];
        let mut columns: Vec<ColumnDef> = names
            .iter()
            .zip(types)
            .map(|(name, data_type)| ColumnDef::new(*name, data_type))
            .collect();
        columns.push(ColumnDef::new("unknown", DataType::Int4));
        let mut samples = types.map(ColumnSample::new);
        for n in 0..1_000i32 {
            let few = if n % 2 == 0 { 0 } else { n / 2 % 5 + 1 };
            let part = if n % 4 == 0 {
                Value::Int8(i64::from(n))
            } else {
                Value::Null
            };
            let letter = char::from(b'a' + (n / 100) as u8);
            let name = Value::text(format!("{letter}{n:03}"));
            let padded = Value::text(if n % 4 == 0 { "a  " } else { "b  " });
            let row = [Value::Int4(n), Value::Int4(few), part, name, padded];
            samples
                .iter_mut()
                .zip(row)
                .for_each(|(sample, value)| sample.add(value));
        }
        let sampled = SampledTable {
            rows: 1_000.0,
            sampled: 1_000,
            target: 100,
        };
        let mut found: Vec<_> = samples.map(|sample| Some(sample.finish(sampled))).into();
        found.push(None);
        Analyzed {
            table: Arc::new(TableDef::new(1, "t", TableKind::Heap { rel: 2 }, columns)),
            statistics: Arc::new(TableStatistics {
                rows: 1_000.0,
                pages: 10,
                columns: found,
            }),
        }
    }

    /// The estimated rows of a SELECT.
    fn rows(&self, sql: &str) -> f64 {
        let statement = crate::parse(sql).unwrap().remove(0);
        let plan = bind(&statement, self, &[]).unwrap();
        let Statement::Rows(RowsStatement::Select(select)) = &plan.statement else {
            panic!("{sql}");
        };
        Costs::new(self).select(select).top.rows
    }

    #[track_caller]
    fn check(&self, condition: &str, least: f64, most: f64) {
        let rows = self
            .rows(&format!("select * from t where {condition}"))
            .round()
            .max(1.0);
        assert!((least..=most).contains(&rows), "{condition}: {rows}");
    }
}

impl CatalogView for Analyzed {
    fn lookup_table(&self, _: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        ["t", "u"].contains(&name).then(|| {
            let mut table = (*self.table).clone();
            table.name = name.to_owned();
            Arc::new(table)
        })
    }

    fn estimated_rows(&self, _: &TableDef) -> Option<u64> {
        Some(1_000)
    }

    fn statistics(&self, _: &TableDef) -> Option<Arc<TableStatistics>> {
        Some(Arc::clone(&self.statistics))
    }

    fn planner_settings(&self) -> PlannerSettings {
        PlannerSettings::default()
    }
}

#[test]
fn values_and_bounds() {
    let t = Analyzed::new();
    t.check("id = 7", 1.0, 1.0);
    t.check("few = 0", 500.0, 500.0);
    t.check("few = 3", 100.0, 100.0);
    t.check("few <> 0", 500.0, 500.0);
    t.check("few = 9", 1.0, 10.0);
    t.check("few = $1", 150.0, 175.0);
    t.check("few in (1, 2, 9)", 200.0, 210.0);
    t.check("few not in (0)", 500.0, 500.0);
    t.check("few = any ('{1,2}')", 200.0, 200.0);
    t.check("few > 3", 200.0, 200.0);
    t.check("id < 100", 95.0, 105.0);
    t.check("100 > id", 95.0, 105.0);
    t.check("id >= 900", 95.0, 105.0);
    t.check("id between 100 and 199", 95.0, 105.0);
    t.check("id > 100 and few = 0 and id < 300", 95.0, 105.0);
    t.check("id < 100 or id >= 900", 185.0, 200.0);
    t.check("not (id < 100)", 895.0, 905.0);
    t.check("id > 5000", 1.0, 1.0);
    t.check("id < 100::bigint", 95.0, 105.0);
    t.check("padded = 'a'", 250.0, 250.0);
    t.check("padded in ('b', 'c')", 750.0, 753.0);
    t.check("name < 'b'", 95.0, 112.0);
    t.check("name between 'c5' and 'd5'", 90.0, 150.0);
}

#[test]
fn nulls_patterns_and_what_is_not_known() {
    let t = Analyzed::new();
    t.check("part is null", 750.0, 750.0);
    t.check("part is not null", 250.0, 250.0);
    t.check("part < 500", 120.0, 130.0);
    t.check("name like 'b%'", 90.0, 110.0);
    t.check("name like '%c2%'", 90.0, 110.0);
    t.check("name not like 'b%'", 890.0, 910.0);
    t.check("name ilike 'B%'", 90.0, 110.0);
    t.check("unknown = 1", 5.0, 5.0);
    t.check("unknown > 1", 333.0, 334.0);
    t.check("unknown between 1 and 2", 5.0, 5.0);
}

#[test]
fn joins_and_groups() {
    let t = Analyzed::new();
    let rows = |sql: &str| t.rows(sql);
    let close = |sql: &str, expected: f64| {
        let found = rows(sql);
        assert!((found / expected - 1.0).abs() < 0.05, "{sql}: {found}");
    };
    close("select * from t join u on t.id = u.id", 1_000.0);
    // Half of the rows on both sides, and a tenth five times.
    close("select * from t join u on t.few = u.few", 300_000.0);
    close("select * from t join u on t.few = u.few and t.id = u.id", 300.0);
    close("select * from t, u", 1_000_000.0);
    close(
        "select * from t where exists (select from u where u.id = t.id and u.id < 100)",
        100.0,
    );
    close(
        "select * from t where not exists (select from u where u.id = t.id and u.id < 100)",
        900.0,
    );
    close("select * from t left join u on t.id = u.part", 1_000.0);
    close("select few from t group by few", 6.0);
    close("select few, part from t group by few, part", 1_000.0);
    close("select distinct few from t", 6.0);
    close("select count(*) from t", 1.0);
    close("select * from t limit 10", 10.0);
}
