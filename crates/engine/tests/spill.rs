//! Data that does not fit into `work_mem` goes to temporary files, and the results are the same.

mod common;

use std::path::Path;

use clearway_engine::{Collected, Session};
use clearway_machine::Watchdog;
use common::*;

/// Rows with NULLs, ties and texts of many lengths, in no order.
fn fill(session: &mut Session) {
    query(
        session,
        "create table t (id int primary key, a int, b text, n numeric, d float8)",
    );
    query(
        session,
        "insert into t select g, nullif((g * 7919) % 1000, 13), nullif(repeat('xy', g % 40), ''),
            nullif(g % 977 / 8.0, 3.0), g * 31 % 500 / 16.0::float8 from generate_series(1, 6000) g",
    );
}

fn spilled(directory: &Path) -> bool {
    directory.join("tmp").exists()
}

const QUERIES: &[&str] = &[
    "select * from t order by b, id",
    "select * from t order by a desc, n nulls first, id desc",
    "select id, b from t order by b desc nulls last, d, id",
    // Ties: the order of the table.
    "select id from t order by a",
    "select id from t order by b desc limit 5000 offset 100",
    "select distinct b, a from t",
    "select distinct a, n from t order by n desc, a",
    "select distinct on (b, a) id, a from t order by a desc, b, d, id",
    "select a, count(*), sum(n), min(b), max(b), sum(d), avg(d) from t group by a",
    "select b, a, count(*) from t group by b, a",
    "select b, a, count(*) from t group by b, a having count(*) > 1 order by 3 desc, 2, 1",
    "select count(distinct id), count(distinct b), sum(distinct d), avg(distinct n) from t",
    "select a % 10, count(distinct id), sum(distinct d) from t group by 1",
    "select id % 2000, count(distinct b), count(distinct a), count(*) from t group by 1",
    "select a, b, id % 3, grouping(a, b), count(*), sum(n), count(distinct d) from t
        group by cube (a, b), rollup (id % 3)",
    "select a, array_agg(distinct b order by b desc), string_agg(id::text, ',' order by d, id) from t group by a",
    "select id % 700, percentile_disc(0.3) within group (order by d), mode() within group (order by b),
        rank(100) within group (order by a), count(distinct n) from t group by 1",
    "select percentile_cont(array[0.1, 0.5, 0.9]) within group (order by d), sum(d order by n, id),
        dense_rank('x') within group (order by b), array_agg(distinct a) filter (where id % 3 = 0) from t",
];

/// Windows: partitions that do not fit, and readers that go through them forwards, backwards and far away.
const WINDOWS: &[&str] = &[
    "select id, row_number() over (order by a, id), lag(b, 3) over (order by id), lead(b, 5000) over (order by id)
        from t order by id",
    "select id, lag(id, (id * 37 % 4000) - 2000) over (order by id),
        nth_value(id, id * 7919 % 5000 + 1) over (order by id rows between unbounded preceding and unbounded following)
        from t order by id",
    "select id, sum(n) over (order by id rows between 10 preceding and 5 following), last_value(id) over (order by a, id),
        sum(d) over (order by id rows between 3 preceding and 1 following) from t order by id",
    "select id, count(*) over (order by a range between 5 preceding and 5 following),
        max(b) over (partition by a % 7 order by id rows between 3 preceding and 3 following exclude current row),
        ntile(7) over (order by b, id), cume_dist() over (order by b) from t order by id",
    "select id, sum(d) over (), count(*) over (partition by b), rank() over (order by a),
        sum(a) over (order by a groups between 2 preceding and 1 preceding) from t order by id",
    "select a, sum(count(*)) over (order by a), first_value(sum(n)) over (order by count(*), a) from t group by a
        order by a",
];

#[test]
fn windows_give_the_same_rows_however_much_fits() {
    same_rows_however_much_fits(WINDOWS);
}

/// Joins, whose rows come in the order of their hash table or of their keys.
const JOINS: &[&str] = &[
    "select x.id, y.id from t x join t y on x.a = y.a order by 1, 2",
    "select x.id, y.id, y.b from t x left join t y on x.a = y.a and y.id % 7 = 0 and x.id <> y.id order by 1, 2",
    "select x.id, y.id from t x right join t y on x.id = y.id * 2 order by 2, 1",
    "select x.id, y.id from (select * from t where id % 2 = 0) x
        full join (select * from t where id % 3 = 0) y on x.id = y.id order by 1, 2",
    "select x.id, y.id from t x full join t y on x.a = y.a and x.n = y.n and x.b < y.b order by 1, 2",
    "select id from t where a in (select a from t where b like 'xyxyxy%' and id % 2 = 0) order by 1",
    "select id from t where not exists (select 1 from t y where y.a = t.a and y.n = t.n and y.id <> t.id) order by 1",
    "select id from t where id < 300 and repeat(coalesce(b, '-'), 3) || id::text
        not in (select repeat(coalesce(b, '-'), 3) || id::text from t where id % 3 = 0) order by 1",
    "select id from t where a = any (select a from t where id > 3000) and id < 100 order by 1",
    "select x.id, y.id, length(y.w) from (select id from t where id < 300) x
        left join (select id, repeat('z', 900) as w from t where id % 60 = 0) y on x.id > y.id and y.w > 'y'
        order by 1, 2",
    "select a, n from t union select a, d::numeric from t order by 1, 2",
    "select b from t where id < 4000 intersect all select b from t where id > 2000 order by 1",
    "select a, b from t except all select a, b from t where id % 2 = 0 order by 1, 2",
    "with recursive r (n, round) as (select id, 1 from t union all select n, round + 1 from r where round < 4)
        select round, count(*), sum(n) from r group by round order by 1",
    "with recursive r (n, b) as (select id, b from t where id <= 2000
        union select n * 31 % 5000, repeat('xy', n % 40) from r) select n, b from r order by 1, 2",
    "with recursive r (n) as (select 1 union select m from r, lateral (values (n * 2 % 9973), (n * 3 % 9973)) v (m))
        select n from r order by 1",
    "with q as (select id, a, b from t) select x.id, y.id from q x join q y on x.id = y.id * 2 order by 1",
    "with q as (select id, b from t) select (select count(*) from q), count(*) from q x
        where id in (select id + 1 from q where b > 'xyxy') and id <> (select max(id) from q)
        union select max(id), count(b) from q order by 1",
];

#[test]
fn joins_give_the_same_rows_however_much_fits() {
    same_rows_however_much_fits(JOINS);
}

fn same_rows_however_much_fits(queries: &[&str]) {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    fill(&mut s);
    query(&mut s, "set work_mem = '256MB'");
    let large: Vec<String> = queries.iter().map(|sql| query(&mut s, sql)).collect();
    assert!(!spilled(fixture.directory.path()), "256 MB are enough");
    query(&mut s, "set work_mem = '64kB'");
    for (sql, large) in queries.iter().zip(&large) {
        let _ = std::fs::remove_dir_all(fixture.directory.path().join("tmp"));
        let small = query(&mut s, sql);
        assert!(spilled(fixture.directory.path()), "64 kB are not enough: {sql}");
        assert!(small == *large, "{sql}: other rows with 64 kB");
        assert!(large.len() > 10, "{sql}: {large}");
    }
}

#[test]
fn results_and_their_order_do_not_depend_on_work_mem() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    fill(&mut s);
    query(&mut s, "set work_mem = '256MB'");
    let large: Vec<String> = QUERIES.iter().map(|sql| query(&mut s, sql)).collect();
    assert!(!spilled(fixture.directory.path()), "256 MB are enough");
    query(&mut s, "set work_mem = '64kB'");
    for (sql, large) in QUERIES.iter().zip(&large) {
        let _ = std::fs::remove_dir_all(fixture.directory.path().join("tmp"));
        let small = query(&mut s, sql);
        assert!(spilled(fixture.directory.path()), "64 kB are not enough: {sql}");
        assert!(
            small == *large,
            "{sql}: {} and {} bytes",
            small.len(),
            large.len()
        );
        assert!(!large.is_empty());
    }
}

#[test]
fn temporary_files_go_at_the_end_on_an_error_and_at_the_start() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let tmp = fixture.directory.path().join("tmp");
    let left = || std::fs::read_dir(&tmp).map_or(0, Iterator::count);
    let mut s = fixture.session();
    query(&mut s, "set work_mem = '64kB'");
    let sorted = "select g from generate_series(1, 20000) g order by -g";
    query(&mut s, sorted);
    assert!(tmp.exists());
    assert_eq!(left(), 0, "at the end");
    let error = error(
        &mut s,
        "select 1 / (g - 19999) from generate_series(1, 20000) g order by -g",
    );
    assert_eq!(error.sqlstate().as_str(), "22012");
    assert_eq!(left(), 0, "after an error");
    // What a kill may leave on a file system without nameless files.
    drop(s);
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    std::fs::write(tmp.join("left behind"), "x").unwrap();
    let engine = clearway_engine::Engine::open(directory.path(), config()).unwrap();
    assert_eq!(left(), 0, "at the start");
    drop(engine);
}

#[test]
fn an_index_is_built_within_maintenance_work_mem() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    query(&mut s, "create table t (id int, b text)");
    query(
        &mut s,
        "insert into t select g * 7919 % 30011, repeat('k', g % 50) from generate_series(1, 20000) g",
    );
    query(&mut s, "create index large on t (b, id)");
    assert!(!spilled(fixture.directory.path()));
    query(&mut s, "set maintenance_work_mem = '1MB'");
    query(&mut s, "create unique index small on t (id)");
    query(&mut s, "create index small_b on t (b)");
    assert!(spilled(fixture.directory.path()));
    assert_eq!(
        query(
            &mut s,
            "select b = repeat('k', 17) from t where id = 7919 * 17 % 30011"
        ),
        "t"
    );
    let report = fixture.engine.check().unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    query(&mut s, "drop index small");
    // Keys with a NULL are never duplicates; the last two rows are.
    query(&mut s, "insert into t values (null, 'a'), (null, 'b')");
    query(&mut s, "create unique index with_nulls on t (id)");
    query(&mut s, "drop index with_nulls");
    query(&mut s, "insert into t values (7919, 'again')");
    assert_eq!(run(&mut s, "create unique index again on t (id)"), "ERROR 23505");
}

#[test]
fn a_spilling_statement_can_be_cancelled() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    query(&mut s, "set work_mem = '64kB'; set statement_timeout = '100ms'");
    for sql in [
        "select g from generate_series(1, 2000000000) g order by -g",
        "select distinct g from generate_series(1, 2000000000) g order by 1",
        "select g, count(*) from generate_series(1, 2000000000) g group by g",
        "select count(distinct g) from generate_series(1, 2000000000) g",
    ] {
        let error = s.execute_simple(sql, &mut Collected::default()).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "57014", "{sql}");
    }
}

#[test]
fn a_text_has_a_limit() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    // 1 GiB, or more; nothing of it is made.
    for sql in [
        "select length(repeat('x', 1073741824))",
        "select length(repeat(repeat('x', 40000), 40000))",
        "select length(lpad('x', 1073741824))",
        "select length(replace(repeat('x', 40000), 'x', repeat('y', 40000)))",
    ] {
        assert_eq!(run(&mut s, sql), "ERROR 54000", "{sql}");
    }
}

/// Each level of a nested expression keeps a value while the next is evaluated.
///
/// Mutation: let `keeping` forget what was kept before → no error, with 1.3 GB in memory.
#[test]
fn what_an_expression_keeps_has_a_limit() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    // Texts of 100 MB which are not constants, so that nothing of it is made before the statement runs.
    let text = "repeat('x', 100000000 + (random() * 0)::int)";
    let compared = |levels: usize| {
        let opened = format!("({text} = ").repeat(levels);
        format!("select {opened}'x'{}", ")::text".repeat(levels))
    };
    let called = |levels: usize| {
        let opened = format!("length(concat({text}, ").repeat(levels);
        format!("select {opened}'x'{}", "))".repeat(levels))
    };
    for (few, many) in [(called(2), called(12)), (compared(2), compared(12))] {
        assert!(!run(&mut s, &few).starts_with("ERROR"), "{few}");
        assert_eq!(run(&mut s, &many), "ERROR 54000", "{many}");
    }
}
