//! Statements that are refused, and the positions in the errors.

use super::*;

#[test]
fn binding_errors() {
    for (sql, expected) in [
        ("select nope from sbtest1", SqlState::UNDEFINED_COLUMN),
        ("select x.id from sbtest1", SqlState::UNDEFINED_TABLE),
        ("select sbtest1.id from sbtest1 as s", SqlState::UNDEFINED_TABLE),
        ("select * from nope", SqlState::UNDEFINED_TABLE),
        ("select * from other.sbtest1", SqlState::UNDEFINED_TABLE),
        ("select nope(1)", SqlState::UNDEFINED_FUNCTION),
        ("select 1 + 'x'::text", SqlState::UNDEFINED_FUNCTION),
        ("select id = 'x'::text from sbtest1", SqlState::UNDEFINED_FUNCTION),
        ("select true + 1", SqlState::UNDEFINED_FUNCTION),
        ("select id from sbtest1 where id", SqlState::DATATYPE_MISMATCH),
        ("update sbtest1 set k = true", SqlState::DATATYPE_MISMATCH),
        ("update sbtest1 set k = 1, k = 2", SqlState::SYNTAX_ERROR),
        ("update sbtest1 set nope = 1", SqlState::UNDEFINED_COLUMN),
        (
            "insert into sbtest1(k, k) values (1, 2)",
            SqlState::DUPLICATE_COLUMN,
        ),
        ("insert into sbtest1(k) values (1, 2)", SqlState::SYNTAX_ERROR),
        ("insert into sbtest1(k, c) values (1)", SqlState::SYNTAX_ERROR),
        (
            "insert into sbtest1(k) values ('x')",
            SqlState::INVALID_TEXT_REPRESENTATION,
        ),
        ("select k, count(*) from sbtest1", SqlState::GROUPING_ERROR),
        (
            "select k from sbtest1 where count(*) > 1",
            SqlState::GROUPING_ERROR,
        ),
        ("select sum(count(*)) from sbtest1", SqlState::GROUPING_ERROR),
        (
            "select k as x, k as y from sbtest1 group by x, rollup (y)",
            SqlState::FEATURE_NOT_SUPPORTED,
        ),
        (
            "select 5 as x, 5 as y from sbtest1 group by rollup (x)",
            SqlState::FEATURE_NOT_SUPPORTED,
        ),
        ("select sum(c) from sbtest1", SqlState::UNDEFINED_FUNCTION),
        (
            "select distinct c from sbtest1 order by k",
            SqlState::INVALID_COLUMN_REFERENCE,
        ),
        ("select 1 order by 2", SqlState::INVALID_COLUMN_REFERENCE),
        ("select null::nope", SqlState::UNDEFINED_OBJECT),
        ("select true::float8", SqlState::CANNOT_COERCE),
        ("create table t(a int, a int)", SqlState::DUPLICATE_COLUMN),
        (
            "create table t(a int primary key, primary key (a))",
            SqlState::INVALID_TABLE_DEFINITION,
        ),
        (
            "create table t(a int, primary key (b))",
            SqlState::UNDEFINED_COLUMN,
        ),
        ("create index on sbtest1(nope)", SqlState::UNDEFINED_COLUMN),
        ("drop table nope", SqlState::UNDEFINED_TABLE),
        ("drop index nope", SqlState::UNDEFINED_OBJECT),
        (
            "insert into pg_stat_activity values (1)",
            SqlState::WRONG_OBJECT_TYPE,
        ),
        (
            "select * from sbtest1 where id = $0",
            SqlState::UNDEFINED_PARAMETER,
        ),
    ] {
        assert_eq!(code(sql), expected, "{sql}");
    }
    let error = plan_with("select id, nope from sbtest1", &[]).unwrap_err();
    assert_eq!(error.position(), Some(12));
    let parsed = parse("select 1; select * from nope").unwrap();
    assert_eq!(bind(&parsed[1], tables(), &[]).unwrap_err().position(), Some(25));
}

/// The work is counted, not timed: without the checks a statement of a million expressions could not be cancelled.
#[test]
fn binding_asks_now_and_then_whether_to_stop() {
    let asked = |sql: &str| {
        let count = std::cell::Cell::new(0u32);
        let check = || {
            count.set(count.get() + 1);
            Ok(())
        };
        let statement = parse(sql).unwrap().remove(0);
        bind_checked(&statement, tables(), &[], &check).unwrap();
        count.get()
    };
    let rows = |count: usize| format!("select 1 where 1 in ({})", vec!["1 + 2"; count].join(","));
    let chain = |count: usize| format!("select 1{}", " + 1".repeat(count));
    for sql in [&rows as &dyn Fn(usize) -> String, &chain] {
        assert_eq!(asked(&sql(10)), 0);
        let (short, long) = (asked(&sql(5_000)), asked(&sql(20_000)));
        assert!(short >= 5_000 / EXPRESSIONS_PER_CHECK, "{short}");
        // Four times the length is four times the work.
        assert!(long.abs_diff(4 * short) <= 4, "{short} and {long}");
    }
    // What is asked for is done.
    let statement = parse(&rows(5_000)).unwrap().remove(0);
    let stop = || Err(EngineError::new(SqlState::QUERY_CANCELED, "canceling statement"));
    let error = bind_checked(&statement, tables(), &[], &stop).unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::QUERY_CANCELED);
}

/// A position is found without counting the characters before it again.
#[test]
fn positions_are_right_in_later_lines() {
    let sql = "select 'é',\n  1,\n  'ü', nonsense";
    let error = plan_with(sql, &[]).unwrap_err();
    let before = sql.split("nonsense").next().unwrap().chars().count() as u32;
    assert_eq!(error.position(), Some(before + 1));
}

#[test]
fn what_is_not_done_is_named() {
    for sql in [
        "select row_number() over (order by generate_series(1, 2)) from sbtest1",
        "create table t(a int references sbtest1 match partial)",
        "create table t(a int check (a > 0) no inherit)",
        "create table t(a int) partition by range (a)",
        "create table t(a money)",
        "create index on sbtest1 using gin (k)",
        "alter table sbtest1 set tablespace apart",
        "create database d",
        "cluster x",
    ] {
        let error = match plan_with(sql, &[]) {
            Err(error) => error,
            Ok(plan) => panic!("{sql}: {plan:?}"),
        };
        assert_eq!(
            error.sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{sql}: {error:?}"
        );
        assert!(
            error.message().len() > " is not supported".len(),
            "{sql}: {error:?}"
        );
    }
}
