//! Plans: the same rows whatever the order, the methods and the statistics.

use crate::common::{Fixture, query};

/// Twelve tables: `t0` refers to `t1` and so on, and all to `hub`.
fn twelve() -> Fixture {
    let mut setup = String::new();
    for n in 0..12 {
        let rows = [40, 7, 90, 13, 60, 25, 80, 11, 70, 33, 20, 50][n];
        setup += &format!(
            "create table t{n} (id int primary key, next int, v int);
             insert into t{n} select g, g * 7 % 11 + 1, g % 5 from generate_series(1, {rows}) g;"
        );
    }
    Fixture::new(&setup)
}

#[test]
fn a_join_of_twelve_tables_gives_the_same_rows_in_any_order_and_by_any_method() {
    let fixture = twelve();
    let mut s = fixture.session();
    let chain = |order: &[usize]| {
        let from: Vec<String> = order.iter().map(|n| format!("t{n}")).collect();
        let conditions: Vec<String> = (1..12).map(|n| format!("t{}.next = t{n}.id", n - 1)).collect();
        format!(
            "select count(*), sum(t0.id), sum(t11.v) from {} where {} and t4.v <> 2",
            from.join(", "),
            conditions.join(" and ")
        )
    };
    let forward: Vec<usize> = (0..12).collect();
    let backward: Vec<usize> = (0..12).rev().collect();
    let mixed = [5, 0, 11, 3, 8, 1, 10, 2, 7, 4, 9, 6];
    // From each row of t0 one path leads on, as long as the next key is there.
    let mut expected = (0, 0, 0);
    let rows = [40, 7, 90, 13, 60, 25, 80, 11, 70, 33, 20, 50];
    for start in 1..=rows[0] {
        let mut id = start;
        let mut is_whole = true;
        for (n, count) in rows.iter().enumerate() {
            is_whole &= id <= *count && (n != 4 || id % 5 != 2);
            if n < 11 {
                id = id * 7 % 11 + 1;
            }
        }
        if is_whole {
            expected = (expected.0 + 1, expected.1 + start, expected.2 + id % 5);
        }
    }
    let expected = format!("{}|{}|{}", expected.0, expected.1, expected.2);
    for analyzed in [false, true] {
        if analyzed {
            query(&mut s, "analyze");
        }
        for method in [
            "enable_hashjoin",
            "enable_mergejoin",
            "enable_nestloop",
            "enable_indexscan",
            "enable_seqscan",
        ] {
            query(&mut s, &format!("set {method} = off"));
            for order in [&forward[..], &backward, &mixed] {
                assert_eq!(query(&mut s, &chain(order)), expected, "{method} off");
            }
            query(&mut s, &format!("reset {method}"));
        }
    }
}

#[test]
fn methods_that_are_not_wanted_are_not_taken() {
    let fixture = Fixture::new(
        "create table a (id int primary key, b int, note text);
         create table b (id int primary key, note text);
         insert into b select g, 'b' || g from generate_series(1, 2000) g;
         insert into a select g, g % 2000 + 1, 'a' || g from generate_series(1, 2000) g;
         create index a_b on a (b);
         analyze",
    );
    let mut s = fixture.session();
    let mut plan = |setting: &str, sql: &str| {
        query(&mut s, &format!("set {setting} = off"));
        let shown = query(&mut s, &format!("explain {sql}"));
        query(&mut s, &format!("reset {setting}"));
        shown
    };
    let join = "select * from a join b on a.b = b.id";
    assert!(plan("enable_sort", join).contains("Hash Join"));
    assert!(plan("enable_hashjoin", join).contains("Merge Join"));
    assert!(!plan("enable_hashjoin", join).contains("Hash"));
    assert!(plan("enable_nestloop", "select * from a join b on a.b < b.id").contains("Nested Loop"));
    let loops = "select * from a join b on a.b + 0 < b.id + 0";
    assert!(plan("enable_sort", loops).contains("Materialize"));
    assert!(!plan("enable_material", loops).contains("Materialize"));
    let half = "select * from a where b < 1000";
    assert!(plan("enable_sort", half).contains("Seq Scan"));
    assert!(plan("enable_seqscan", half).contains("Index Scan using a_b"));
    let few = "select * from a where b < 10";
    assert!(plan("enable_sort", few).contains("Index Scan using a_b"));
    assert!(plan("enable_indexscan", few).contains("Seq Scan"));
    assert!(plan("enable_sort", "select * from a order by b").contains("Index Scan using a_b"));
    assert!(plan("enable_hashjoin", "select * from a order by b").contains("Sort"));
    // A point query keeps its way, however small the table is.
    assert!(plan("enable_sort", "select * from a where id = 5").contains("Index Scan using a_pkey"));
}

#[test]
fn a_query_of_in_that_gives_each_value_once_is_ordered_with_the_other_tables() {
    let fixture = Fixture::new(
        "create table big (id int primary key, k int, v int);
         create table side (id int primary key, big int);
         insert into big select g, g % 500, g % 7 from generate_series(1, 5000) g;
         insert into side select g, g % 5000 + 1 from generate_series(1, 8000) g;
         insert into side values (9000, null);
         analyze",
    );
    let mut s = fixture.session();
    let join = "from side join big on side.big = big.id where";
    for (condition, is_inner, rows) in [
        ("side.id in (select v from big group by v)", true, "6"),
        ("side.id in (select distinct v from big)", false, "6"),
        (
            "side.id in (select distinct count(*)::int from big group by v)",
            true,
            "2",
        ),
        ("side.id in (select max(id) from big)", true, "1"),
        ("side.id in (select distinct on (v) v from big)", false, "6"),
        ("side.id in (select v from big group by v, k)", false, "6"),
        (
            "side.id in (select distinct v from big union all select 3)",
            false,
            "6",
        ),
        // What groups tell apart may be equal afterwards.
        ("side.id in (select v / 2 from big group by v)", false, "3"),
        ("side.id::bigint in (select v from big group by v)", false, "6"),
        (
            "side.id in (select v from big group by grouping sets ((v), (k, v)))",
            false,
            "6",
        ),
    ] {
        let sql = format!("select count(*) {join} {condition}");
        assert_eq!(query(&mut s, &sql), rows, "{condition}");
        let plan = query(&mut s, &format!("explain {sql}"));
        assert_eq!(!plan.contains("Semi"), is_inner, "{condition}: {plan}");
    }
}

#[test]
fn lookups_that_share_their_pages_cost_less_than_reading_all() {
    let fixture = Fixture::new(
        "create table kinds (id int primary key, name text);
         create table few (id int primary key, kind int);
         create table many (id int primary key, few int, pad text);
         create index many_few on many (few);
         insert into kinds select g, 'kind ' || g from generate_series(0, 49) g;
         insert into few select g, g % 50 from generate_series(1, 1000) g;
         insert into many select g, g * 7919 % 1000 + 1, repeat('x', 100) from generate_series(1, 40000) g;
         analyze",
    );
    let mut s = fixture.session();
    // All rows of `few` may ask for pages of `many`, and twenty do.
    let sql = "select count(*) from kinds join few on few.kind = kinds.id join many on many.few = few.id \
               where kinds.name = 'kind 3'";
    assert_eq!(query(&mut s, sql), "800");
    let plan = query(&mut s, &format!("explain {sql}"));
    assert!(plan.contains("Index Scan using many_few"), "{plan}");
    let loops = query(&mut s, &format!("explain (analyze, timing off) {sql}"));
    assert!(loops.contains("loops=20"), "{loops}");
}

#[test]
fn what_is_equal_to_the_same_is_equal() {
    let fixture = Fixture::new(
        "create table a (id int primary key, x int);
         create table b (id int primary key, x int);
         create table c (id int primary key, x int);
         insert into a select g, g % 50 from generate_series(1, 500) g;
         insert into b select g, g % 40 from generate_series(1, 400) g;
         insert into c select g, g % 30 from generate_series(1, 300) g;
         insert into a values (1000, null);
         analyze",
    );
    let mut s = fixture.session();
    let mut plan = |sql: &str| query(&mut s, &format!("explain (costs off) {sql}"));
    // A constant reaches all of them.
    let shown = plan("select * from a, b, c where a.id = b.id and b.id = c.id and c.id = 5");
    assert_eq!(shown.matches("Index Cond: (id = 5)").count(), 3, "{shown}");
    let shown = plan("select * from a join b on a.id = b.id where a.id = 7");
    assert_eq!(shown.matches("Index Cond: (id = 7)").count(), 2, "{shown}");
    let shown = plan("select * from a left join b on a.id = b.id where a.id = 7");
    assert!(shown.contains("Left Join"), "{shown}");
    // Two tables that no condition names together are joined by the third's column; each equality is checked once.
    let shown = plan("select * from a, b, c where a.x = b.x and b.x = c.x and a.id = c.id");
    assert!(
        shown.contains("a.x = c.x") || shown.contains("c.x = a.x"),
        "{shown}"
    );
    for (from, rows) in [
        ("a, b, c where a.x = b.x and b.x = c.x and a.id = c.id", "600"),
        ("a, b, c where a.x = b.x and c.x = b.x and a.x = a.id", "2900"),
        (
            "a, b, c where a.x = b.x and b.x = c.x and c.x = 3 and a.x = 3",
            "1000",
        ),
        (
            "a, b, c where a.x = b.x and b.x = c.x and c.x = 3 and a.x = 4",
            "0",
        ),
        ("a, b, c where a.x = b.x and b.x = c.x and c.x = null", "0"),
        (
            "a, b left join c on b.x = c.id where a.x = b.x and a.x = c.id and c.x = a.x",
            "2900",
        ),
        (
            "a, b, lateral (select * from c where c.x = a.x) c where a.x = b.x and b.x = c.x and a.id = c.id",
            "600",
        ),
    ] {
        assert_eq!(
            query(&mut s, &format!("select count(*) from {from}")),
            rows,
            "{from}"
        );
    }
}

#[test]
fn conditions_without_columns_are_looked_at_once() {
    let fixture = Fixture::new(
        "create table a (id int primary key, x int);
         create table b (id int primary key, x int);
         insert into a select g, g % 5 from generate_series(1, 200) g;
         insert into b select g, g % 4 from generate_series(1, 100) g;
         analyze",
    );
    let mut s = fixture.session();
    for (sql, once, rows) in [
        (
            "select count(*) from a where now() > '2000-01-01'",
            "One-Time Filter: (now() > ",
            "200",
        ),
        (
            "select count(*) from a, b where a.id = b.id and now() < '2000-01-01'",
            "One-Time Filter: (now() < ",
            "0",
        ),
        (
            "select count(*) from a left join b on false",
            "One-Time Filter: false",
            "200",
        ),
        (
            "select count(b.id) from a left join b on a.id = b.id and 1 = 2",
            "One-Time Filter: false",
            "0",
        ),
        (
            "select count(*) from a where not exists (select 1 from b where false)",
            "One-Time Filter: (NOT $0)",
            "200",
        ),
        // An argument of the query inside is one of its constants.
        (
            "select count(*) from a where (select count(*) from b where a.x = 3) > 0",
            "One-Time Filter: ",
            "40",
        ),
    ] {
        let shown = query(&mut s, &format!("explain (costs off) {sql}"));
        assert!(shown.contains(once), "{sql}: {shown}");
        assert_eq!(query(&mut s, sql), rows, "{sql}");
    }
    query(
        &mut s,
        "prepare locking(int) as select id from a where $1 = 1 and id < 3 order by id for update",
    );
    assert_eq!(query(&mut s, "execute locking(1)"), "1, 2");
    assert_eq!(query(&mut s, "execute locking(2)"), "");
    assert_eq!(query(&mut s, "select id from a where false for update"), "");
    // A common table expression has the rows of its query.
    let shown = query(
        &mut s,
        "explain with c as materialized (select * from b where x = 1) select * from c, c d",
    );
    assert_eq!(shown.matches("CTE Scan on").count(), 2, "{shown}");
    assert!(shown.contains("rows=625 "), "{shown}");
}
