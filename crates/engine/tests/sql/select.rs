//! Answers of queries: expressions, order, groups, and how long a list may be.

use clearway_engine::SqlState;

use crate::common::{Fixture, error, query, run};
use crate::shop;

/// A string with an `E` does not go on from the one in the line above.
#[test]
fn strings_of_two_kinds_are_no_string() {
    let fixture = shop();
    let mut s = fixture.session();
    for (sql, near) in [
        ("select 'a'\nE'\\x41'", "E'\\x41'"),
        ("select 'a'\nE'b'", "E'b'"),
        ("select E'a'\nE'b'", "E'b'"),
        ("select E'\\x41'\nE'\\x42'\n'c'", "E'\\x42'"),
    ] {
        let found = error(&mut s, sql);
        assert_eq!(found.sqlstate(), SqlState::SYNTAX_ERROR, "{sql}");
        let line = sql.find('\n').unwrap() as u32 + 2;
        assert_eq!(found.position(), Some(line), "{sql}: {}", found.message());
        assert!(found.message().contains(near), "{sql}: {}", found.message());
    }
    assert_eq!(query(&mut s, "select E'\\x41'\n'b', 'a'\n'b'"), "Ab|ab");
}

/// Texts that sqlparser reads otherwise than PostgreSQL; the answers are PostgreSQL's.
#[test]
fn texts_mean_what_they_mean_in_postgresql() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select -2 ^ 2, 2 ^ -3 ^ 2, - -2 ^ 2"),
        "4|0.015625|4"
    );
    assert_eq!(query(&mut s, "select @ -5 + 3, |/ 7 + 9, @ -5 || 'x'"), "2|4|5x");
    assert_eq!(
        query(&mut s, "select 1 isnull, null isnull or false, 1 isnull = false"),
        "f|t|t"
    );
    assert_eq!(query(&mut s, "select 'a'\n'b' -- and\n 'c'"), "abc");
    assert_eq!(
        query(&mut s, "select concat(true, null, 'ab'::char(4), 'x', false)"),
        "tab  xf"
    );
    assert_eq!(
        query(
            &mut s,
            "select coalesce(null, 1, 1 / 0), coalesce(id, 1 / (id - id)) from items where id = 1"
        ),
        "1|1"
    );
    for mistake in [
        "select 'a' 'b'",
        "select 1 as 'b'",
        "select 1 'b'",
        "select id from items 'i'",
    ] {
        assert_eq!(run(&mut s, mistake), "ERROR 42601", "{mistake}");
    }
}

#[test]
fn where_order_limit_and_arithmetic() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select name from items where price > 1 order by price desc"
        ),
        "cheese, bread"
    );
    assert_eq!(
        query(&mut s, "select id from items where id in (3, 1, 9) order by id"),
        "1, 3"
    );
    assert_eq!(
        query(
            &mut s,
            "select id from items where id between 2 and 3 order by 1 desc"
        ),
        "3, 2"
    );
    assert_eq!(query(&mut s, "select id from items where stock is null"), "3");
    assert_eq!(
        query(
            &mut s,
            "select id from items where not (id = 1 or name = 'bread')"
        ),
        "3"
    );
    assert_eq!(
        query(
            &mut s,
            "select id, price * 2 from items order by id limit 1 offset 1"
        ),
        "2|4.50"
    );
    assert_eq!(
        query(&mut s, "select id from items where name like '%e%' order by id"),
        "1, 2, 3"
    );
    assert_eq!(
        query(&mut s, "select distinct stock is null from items order by 1"),
        "f, t"
    );
    assert_eq!(
        query(&mut s, "select id from items order by stock nulls first, id"),
        "3, 2, 1"
    );
    assert_eq!(query(&mut s, "select 2 + 3 * 4, 7 / 2, -7 % 3"), "14|3|-1");
    assert_eq!(run(&mut s, "select 1 / 0"), "ERROR 22012");
    assert_eq!(run(&mut s, "select id from items limit -1"), "ERROR 2201W");
}

#[test]
fn aggregates_and_groups() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select count(*), count(stock), sum(stock), min(name), max(price) from items"
        ),
        "3|2|110|apple|7.80"
    );
    assert_eq!(
        query(&mut s, "select count(*), sum(stock) from items where id > 99"),
        "0|"
    );
    query(
        &mut s,
        "insert into log select i, case when i % 2 = 0 then 'even' else 'odd' end from generate_series(1, 9) i",
    );
    assert_eq!(
        query(
            &mut s,
            "select what, count(*), avg(at) from log group by what order by what"
        ),
        "even|4|5.0000000000000000, odd|5|5.0000000000000000"
    );
    assert_eq!(
        query(&mut s, "select what from log group by what having count(*) > 4"),
        "odd"
    );
    assert_eq!(query(&mut s, "select count(distinct what) from log"), "2");
    assert_eq!(run(&mut s, "select at, count(*) from log"), "ERROR 42803");
    // The ends of an index are looked up, not searched for.
    assert_eq!(query(&mut s, "select min(id), max(id) from items"), "1|3");
    assert_eq!(query(&mut s, "select max(id) from items where id < 3"), "2");
}

#[test]
fn values_of_double_precision() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "select sum(g::double precision / 4), avg(g::double precision) from generate_series(1, 3) g"
        ),
        "1.5|2"
    );
    assert_eq!(
        query(
            &mut s,
            "select sqrt(2.25::double precision), power(1.5::double precision, 2)"
        ),
        "1.5|2.25"
    );
}

/// Each entry is compared with those before it, so their number is bounded, as in PostgreSQL. More than 32,767
/// aggregates were once counted in 16 bits.
#[test]
fn lists_have_a_limit() {
    let fixture = Fixture::new("create table t (x int); insert into t values (1)");
    let mut s = fixture.session();
    let list = |of: &str, count: usize| {
        let entries: Vec<String> = (0..count)
            .map(|number| of.replace('#', &number.to_string()))
            .collect();
        entries.join(", ")
    };
    let sum = |count: usize| list("sum(x + #)", count).replace(", sum", " + sum");
    let statements = |count: usize| {
        [
            format!("select {} from t", list("#", count)),
            format!("select x from t order by {}", list("x + #", count - 1)),
            format!("select 1 from t group by {}", list("x + #", count)),
            format!("select {} from t", sum(count)),
            format!("select x from t group by x having {} > 0", sum(count)),
            format!("delete from t where x < 0 returning {}", list("#", count)),
        ]
    };
    for sql in statements(1_664) {
        assert!(!run(&mut s, &sql).starts_with("ERROR"), "{}", &sql[..60]);
    }
    for sql in statements(1_665).into_iter().chain(statements(40_000)) {
        let error = error(&mut s, &sql);
        assert_eq!(
            error.sqlstate(),
            SqlState::TOO_MANY_COLUMNS,
            "{}: {error:?}",
            &sql[..60]
        );
    }
    // The same one again is none more.
    assert_eq!(
        query(&mut s, &format!("select x from t group by {}", list("x", 5_000))),
        "1"
    );
    assert_eq!(
        query(&mut s, &format!("select x from t order by {}", list("x", 5_000))),
        "1"
    );
    assert_eq!(
        query(
            &mut s,
            &format!("select {} from t", list("sum(x)", 5_000).replace(',', " +"))
        ),
        "5000"
    );
}

#[test]
fn functions_work_over_columns() {
    let fixture = shop();
    let mut s = fixture.session();
    for (sql, expected) in [
        ("select id from items where name ~ '^[ab]' order by id", "1, 2"),
        ("select id from items where name !~* 'E$' order by id", "2"),
        (
            "select id from items where (id, name) in ((1, 'apple'), (2, 'x'))",
            "1",
        ),
        (
            "select id from items where (stock, id) < (50, 3) order by id",
            "2",
        ),
        (
            "select id from items where id between symmetric 3 and 2 order by id",
            "2, 3",
        ),
        (
            "select regexp_replace(name, '([aeiou])', '<\\1>', 'g') from items order by id",
            "<a>ppl<e>, br<e><a>d, ch<e><e>s<e>",
        ),
        (
            "select lpad(id::text, 3, '0') || substring(name from 2 for 2) from items where id = 1",
            "001pp",
        ),
        (
            "select id & 1, id << 2, id # 3 from items order by id",
            "1|4|2, 0|8|1, 1|12|0",
        ),
        (
            "select extract(year from d), date_trunc('month', d) from (select date '2020-03-04' as d) t",
            "2020|2020-03-01 00:00:00+00",
        ),
        (
            "select name from items where name collate \"C\" operator(pg_catalog.>) 'b' order by name collate \"C\"",
            "bread, cheese",
        ),
        (
            "select count(*) from items where stock is distinct from 10 and (id, stock) is not null",
            "1",
        ),
    ] {
        assert_eq!(query(&mut s, sql), expected, "{sql}");
    }
}

#[test]
fn fractions_of_seconds_are_rounded_as_their_field_says() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    for (call, expected) in [
        (
            "'2018-11-02 12:34:56.12', 'YYYY-MM-DD HH24:MI:SS.FF1'",
            "2018-11-02 12:34:56.1+00",
        ),
        (
            "'2018-11-02 12:34:56.12345', 'YYYY-MM-DD HH24:MI:SS.FF4'",
            "2018-11-02 12:34:56.1235+00",
        ),
        (
            "'20181102123459960000', 'YYYYMMDDHH24MISSFF1'",
            "2018-11-02 12:35:00+00",
        ),
        (
            "'2018-11-02 12:34:56.12', 'YYYY-MM-DD HH24:MI:SS.US'",
            "2018-11-02 12:34:56.12+00",
        ),
        (
            "'2018 1 999 000001', 'YYYY SS MS US'",
            "2018-01-01 00:00:01.999001+00",
        ),
    ] {
        assert_eq!(
            query(&mut s, &format!("select to_timestamp({call})")),
            expected,
            "{call}"
        );
    }
    for call in [
        "'56.123456789', 'SS.FF6'",
        "'59.1000', 'SS.MS'",
        "'1 999 001000', 'SS MS US'",
    ] {
        assert_eq!(
            run(&mut s, &format!("select to_timestamp({call})")),
            "ERROR 22008",
            "{call}"
        );
    }
}
