//! The choice of access paths.

use super::*;

#[test]
fn index_choice() {
    for (sql, expected) in [
        (
            "select * from kinds where s = 1 and l = 2",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: ((s = 1) AND (l = 2))",
        ),
        (
            "select * from kinds where l > 2 and s = 1",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: ((s = 1) AND (l > 2))",
        ),
        (
            "select * from kinds where l = 2",
            "Seq Scan on kinds\n  Filter: (l = 2)",
        ),
        (
            "select * from kinds where s = 1 and t = 'x'",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: (s = 1)\n  Filter: (t = 'x'::text)",
        ),
        (
            "select * from sbtest1 where id in (3, 1, 2)",
            "Index Scan using sbtest1_pkey on sbtest1\n  Index Cond: (id IN (3, 1, 2))",
        ),
        (
            "select * from sbtest1 where 5 < id",
            "Index Scan using sbtest1_pkey on sbtest1\n  Index Cond: (id > 5)",
        ),
        (
            "select * from sbtest1 where id = 1.5",
            "Seq Scan on sbtest1\n  Filter: ((id)::numeric = 1.5)",
        ),
        (
            "select * from sbtest1 where id = 1 or k = 2",
            "Seq Scan on sbtest1\n  Filter: ((id = 1) OR (k = 2))",
        ),
        (
            "select * from sbtest1 where id = random()",
            "Seq Scan on sbtest1\n  Filter: ((id)::double precision = random())",
        ),
        (
            "select max(id) from sbtest1",
            "Aggregate\n  ->  Index Scan Backward using sbtest1_pkey on sbtest1\n        Index Cond: (id IS NOT NULL)",
        ),
        (
            "select * from sbtest1 order by id limit 5",
            "Limit\n  ->  Index Scan using sbtest1_pkey on sbtest1",
        ),
        (
            "select * from sbtest1 order by id desc limit 5",
            "Limit\n  ->  Index Scan Backward using sbtest1_pkey on sbtest1",
        ),
        (
            "select k, sum(k) over (order by k), count(*) over (), rank() over (partition by k order by id desc) from
                sbtest1 order by rank() over (partition by k order by id desc)",
            "Sort\n  Sort Key: (rank() OVER (?))\n  ->  WindowAgg\n        ->  WindowAgg\n              ->  WindowAgg\n                    \
             ->  Sort\n                          Sort Key: k, id DESC\n                          ->  Seq Scan on sbtest1",
        ),
        (
            "select distinct on (k) k from sbtest1",
            "Unique\n  ->  Sort\n        Sort Key: k\n        ->  Seq Scan on sbtest1",
        ),
        (
            "select id from sbtest1 order by id",
            "Sort\n  Sort Key: id\n  ->  Seq Scan on sbtest1",
        ),
        (
            "select id from sbtest1 where id > 7 order by id desc",
            "Index Scan Backward using sbtest1_pkey on sbtest1\n  Index Cond: (id > 7)",
        ),
        (
            "select l from kinds where s = 1 order by l",
            "Index Scan using kinds_pkey on kinds\n  Index Cond: (s = 1)",
        ),
        (
            "select k, count(*) from sbtest1 group by k order by 2 desc",
            "Sort\n  Sort Key: count(*) DESC\n  ->  HashAggregate\n        Group Key: k\n        ->  Seq Scan on sbtest1",
        ),
        ("select 1", "Result"),
    ] {
        assert_eq!(explained(sql), expected, "{sql}");
    }
}

#[test]
fn a_conversion_that_changes_values_hides_the_index() {
    for sql in [
        "select 1 from sbtest1 where id::smallint = 5",
        "select 1 from sbtest1 where id::text = '5'",
        "select 1 from sbtest1 where -id = 5",
        "select 1 from sbtest1 where id::float8 = 5",
    ] {
        assert!(explained(sql).contains("Seq Scan"), "{sql}: {}", explained(sql));
    }
    assert!(explained("select 1 from sbtest1 where id::bigint = 5").contains("Index Scan"));
}

#[test]
fn key_ranges_survive_values_the_column_cannot_hold() {
    let ranges = |sql: &str, params: &[Value]| {
        let types: Vec<Option<DataType>> = params.iter().map(|value| Some(value.natural_type())).collect();
        let select = select(plan_with(sql, &types).unwrap());
        let Source::Table(scan) = &select.source else {
            panic!()
        };
        assert!(scan.access.index().is_some(), "{sql}");
        scan.access
            .key_ranges(&scan.table, &EvalContext::new(params, &NoSession))
            .unwrap()
    };
    let big = Value::Int8(1 << 40);
    assert!(ranges("select 1 from sbtest1 where id = $1", std::slice::from_ref(&big)).is_empty());
    assert!(ranges("select 1 from sbtest1 where id > $1", std::slice::from_ref(&big)).is_empty());
    assert_eq!(
        ranges("select 1 from sbtest1 where id < $1", std::slice::from_ref(&big)).len(),
        1
    );
    assert_eq!(
        ranges("select 1 from sbtest1 where id >= $1", &[Value::Int8(-(1 << 40))]).len(),
        1
    );
    assert_eq!(
        ranges(
            "select 1 from sbtest1 where id in (1, 1, 2, $1)",
            std::slice::from_ref(&big)
        )
        .len(),
        2
    );
    assert!(ranges("select 1 from sbtest1 where id between 5 and 4", &[]).is_empty());
    assert!(ranges("select 1 from sbtest1 where id = null", &[]).is_empty());
    let range = &ranges("select 1 from sbtest1 where id > 5 and id <= 7", &[])[0];
    let inside = |id: i32| {
        let key = crate::value::encode_key(&[Value::Int4(id)], &[DataType::Int4]);
        key >= range.lower && range.upper.as_ref().is_none_or(|upper| key < *upper)
    };
    assert_eq!(
        (5..=8).map(inside).collect::<Vec<_>>(),
        [false, true, true, false]
    );
}
