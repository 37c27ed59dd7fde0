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
    assert!(plan("enable_hashjoin", join).contains("Nested Loop"));
    assert!(!plan("enable_hashjoin", join).contains("Hash"));
    assert!(plan("enable_nestloop", "select * from a join b on a.b < b.id").contains("Nested Loop"));
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
