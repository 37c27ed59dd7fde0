//! WITH: the texts of what is refused, and queries without an end.

use clearway_engine::SqlState;
use clearway_machine::Watchdog;

use crate::common::{Fixture, error, query, reset_statement_timeout, run};

/// The rules of recursion, in PostgreSQL's words.
#[test]
fn recursion_is_refused_where_postgresql_refuses_it() {
    let fixture = Fixture::new("create table t (a int)");
    let mut s = fixture.session();
    for (sql, message) in [
        (
            "with recursive x as (select 1 intersect select * from x) select * from x",
            "recursive query \"x\" does not have the form non-recursive-term UNION [ALL] recursive-term",
        ),
        (
            "with recursive x (n) as (select n from x union select 1) select * from x",
            "recursive reference to query \"x\" must not appear within its non-recursive term",
        ),
        (
            "with recursive x (n) as (select 1 union select a from t where a in (select n from x)) select * from x",
            "recursive reference to query \"x\" must not appear within a subquery",
        ),
        (
            "with recursive x (n) as (select 1 union select a from t left join x on a = n) select * from x",
            "recursive reference to query \"x\" must not appear within an outer join",
        ),
        (
            "with recursive x (n) as (select 1 union (select a from t intersect all select n from x)) select * from x",
            "recursive reference to query \"x\" must not appear within INTERSECT",
        ),
        (
            "with recursive x (n) as (select 1 union (select a from t except select n from x)) select * from x",
            "recursive reference to query \"x\" must not appear within EXCEPT",
        ),
        (
            "with recursive x (n) as (select 1 union select p.n from x p, x q) select * from x",
            "recursive reference to query \"x\" must not appear more than once",
        ),
        (
            "with recursive x (n) as (select 1 union select max(n) from x) select * from x",
            "aggregate functions are not allowed in a recursive query's recursive term",
        ),
        (
            "with recursive x as (insert into t select * from x) select 1",
            "recursive query \"x\" must not contain data-modifying statements",
        ),
    ] {
        assert_eq!(run(&mut s, sql), "ERROR 42P19", "{sql}");
        assert_eq!(error(&mut s, sql).message(), message, "{sql}");
    }
    let mutual =
        "with recursive x (n) as (select n from y union select 1), y (n) as (select n from x union select 1)
        select * from x";
    let refused = error(&mut s, mutual);
    assert_eq!(refused.sqlstate(), SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!(
        refused.message(),
        "mutual recursion between WITH items is not implemented"
    );
    let types =
        "with recursive x (n) as (select 1::varchar(3) union all select n || 'x' from x) select * from x";
    assert_eq!(
        error(&mut s, types).message(),
        "recursive query \"x\" column 1 has type character varying(3) in non-recursive term \
         but type character varying overall"
    );
}

/// Rows are made when they are wanted, so LIMIT ends a query that has no end; a timeout ends it without LIMIT.
#[test]
fn a_query_without_end_can_be_ended() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("create table t (n int8)");
    let mut s = fixture.session();
    let endless = "with recursive r (n) as (select 1 union all select n + 1 from r)";
    assert_eq!(
        query(&mut s, &format!("{endless} select n from r limit 2 offset 3")),
        "4, 5"
    );
    let twice = format!("{endless} select (select n from r offset 9 limit 1), n from r limit 1");
    assert_eq!(query(&mut s, &twice), "10|1");
    query(&mut s, "set statement_timeout = '100ms'; set work_mem = '64kB'");
    let silent = "with recursive r (n) as (select 1 union all select n from r where n < 2)";
    let hidden = "with recursive r (n) as (select 1 union all (select n from r union all select 2 from t))";
    for sql in [
        format!("{endless} select count(*) from r"),
        format!("{silent} select n from r where n > 1"),
        format!("{hidden} select count(*) from r where n > 1"),
        format!("insert into t {endless} select n from r"),
        format!("{endless} insert into t select n from r"),
    ] {
        assert_eq!(run(&mut s, &sql), "ERROR 57014", "{sql}");
    }
    reset_statement_timeout(&mut s);
    assert_eq!(query(&mut s, "select count(*) from t"), "0");
}

/// A statement of WITH cannot go where it would not be run.
#[test]
fn statements_of_with_are_refused_where_they_would_not_run() {
    let fixture = Fixture::new("create table t (a int)");
    let mut s = fixture.session();
    for (sql, message) in [
        (
            "select * from (with w as (insert into t values (1) returning a) select * from w) s",
            "WITH clause containing a data-modifying statement must be at the top level",
        ),
        (
            "with w as (insert into t values (1)) select * from w",
            "WITH query \"w\" does not have a RETURNING clause",
        ),
        (
            "create table u as with w as (insert into t values (1) returning a) select * from w",
            "CREATE TABLE … AS with a statement that changes rows in WITH is not supported",
        ),
        (
            "copy (with w as (insert into t values (1) returning a) select * from w) to stdout",
            "COPY with a statement that changes rows in WITH is not supported",
        ),
    ] {
        let refused = error(&mut s, sql);
        assert_eq!(refused.sqlstate(), SqlState::FEATURE_NOT_SUPPORTED, "{sql}");
        assert_eq!(refused.message(), message, "{sql}");
    }
    run(
        &mut s,
        "explain with w as (insert into t values (1) returning a) select * from w",
    );
    assert_eq!(query(&mut s, "select count(*) from t"), "0");
    query(&mut s, "begin read only");
    let written = error(&mut s, "with w as (delete from t) select 1");
    assert_eq!(
        written.message(),
        "cannot execute SELECT in a read-only transaction"
    );
}
