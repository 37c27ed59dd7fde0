//! Constant parts of expressions: what is computed before a statement runs, and what fails then. As in PostgreSQL 15.

use crate::common::{Fixture, query, run};

/// Statements over an empty table that fail all the same (22012), since they divide constants by zero.
const FAILING: &[&str] = &[
    "select 1/0 where false",
    "select 1/0 from t",
    "select case when x > 0 then 1/0 else 2 end from t",
    "select * from t where x = 1/0",
    "select * from t where x = 5 and 1/0 = 1",
    "select coalesce(x, 1/0) from t",
    "select 1/0 = 1 or true from t",
    "select x > 0 or 1/0 = 1 from t",
    "select 1/0 = 1 and false",
    "select count(*) from t having 1/0 = 1",
    "select sum(1/0) from t",
    "select 1 from t limit 1/0",
    "select 1 from t order by 1/0",
    "select (select 1/0) from t",
    "select (select 1/0 where false)",
    "select x in (select 1/0) from t",
    "select * from t join t u on 1/0 = 1",
    "select array[1, 1/0] from t",
    "select x in (1, 1/0) from t",
    "select x from t where x between 1 and 1/0",
    "select x from t where x > all (array[1/0])",
    "select case when x is null then 1 when 1/0 = 1 then 2 end from t",
    "select max(x) filter (where 1/0 = 1) from t",
    "with a as (select 1/0 as y) select y from a where false",
    "select y from (select 1/0 as y) s where false",
    "insert into t select 1/0 where false",
    "explain select 1/0 from t",
];

/// Statements with such a part that is not looked at, and their rows.
const PASSING: &[(&str, &str)] = &[
    ("select case when false then 1/0 else 2 end", "2"),
    ("select case when true then 3 else 1/0 end", "3"),
    ("select case 1 when 1 then 3 when 2 then 1/0 end", "3"),
    ("select * from t where false and x = 1/0", ""),
    ("select coalesce(null, 1, 1/0)", "1"),
    ("select true or 1/0 = 1", "t"),
    ("select false and 1/0 = 1", "f"),
    ("select exists (select 1/0)", "t"),
    ("select exists (select 1/0 where false)", "f"),
    ("select count(*) from (select 1/0 as y from t) s", "0"),
    ("select x / 0 from t", ""),
    ("select random()::int / 0 from t", ""),
    ("with a as (select 1/0 as y) select 1", "1"),
    (
        "select 1 from t where exists (select 1/0 from t u where u.x = t.x)",
        "",
    ),
];

/// Statements and the lines of their plans.
const PLANS: &[(&str, &[&str])] = &[
    (
        "select 1 from t where 1 = 2",
        &["Result", "One-Time Filter: false"],
    ),
    (
        "select 1 from t where x = 1 and null",
        &["Result", "One-Time Filter: false"],
    ),
    (
        "select 1 from t a join t b on a.x = b.x where false",
        &["Result", "One-Time Filter: false"],
    ),
    ("select 1 from t where true or x = 1", &["Seq Scan on t"]),
    (
        "select 1 from t where true and x = 1",
        &["Seq Scan on t", "Filter: (x = 1)"],
    ),
    (
        "select 1 from t where case when 1 = 1 then x = 3 else false end",
        &["Seq Scan on t", "Filter: (x = 3)"],
    ),
    (
        "select 1 from t where not (not (x = 1))",
        &["Seq Scan on t", "Filter: (x = 1)"],
    ),
    (
        "select 1 from t where not (x = 1 and x = 2)",
        &["Seq Scan on t", "Filter: ((x <> 1) OR (x <> 2))"],
    ),
    (
        "select 1 from t where not (x < 1)",
        &["Seq Scan on t", "Filter: (x >= 1)"],
    ),
];

#[test]
fn constant_parts_are_computed_before_a_statement_runs() {
    let fixture = Fixture::new("create table t (x int)");
    let mut s = fixture.session();
    for sql in FAILING {
        let failed = run(&mut s, sql);
        assert!(failed.contains("22012"), "{sql}: {failed}");
    }
    for (sql, rows) in PASSING {
        assert_eq!(query(&mut s, sql), *rows, "{sql}");
    }
    for (sql, lines) in PLANS {
        let shown = query(&mut s, &format!("explain (costs off) {sql}"));
        let shown: Vec<&str> = shown.split(", ").map(str::trim).collect();
        assert_eq!(shown, *lines, "{sql}");
    }
    // What is prepared or kept as a text does not run yet.
    query(&mut s, "prepare p as select 1/0 from t");
    assert!(run(&mut s, "execute p").contains("22012"));
    query(&mut s, "create view v as select 1/0 as y, 2 as z");
    assert_eq!(query(&mut s, "select z from v"), "2");
    assert!(run(&mut s, "select y from v where false").contains("22012"));
}
