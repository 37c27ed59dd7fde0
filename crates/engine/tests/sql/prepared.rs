//! Prepared statements: their parameters' types, their portals, PREPARE and EXECUTE.

use clearway_engine::{Collected, Completion, DataType, Value};

use crate::common::{Fixture, error, query, run};
use crate::shop;

#[test]
fn prepared_statements_follow_changed_definitions() {
    let fixture = shop();
    let mut s = fixture.session();
    let mut out = Collected::default();
    let find = s.prepare("select name from items where id = $1", &[]).unwrap();
    assert_eq!(find.param_types(), [DataType::Int4]);
    assert_eq!(find.columns().unwrap()[0].name, "name");
    s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(out.rows, [[Value::text("bread")]]);
    let mut other = fixture.session();
    query(&mut other, "create index by_name on items (name)");
    query(&mut other, "truncate items");
    out = Collected::default();
    s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert!(out.rows.is_empty());
    query(&mut other, "drop table items");
    let error = s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "42P01");
    query(&mut other, "create table items (id int, name int)");
    let error = s.execute(&find, &[Value::Int4(2)], 0, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "0A000");
}

#[test]
fn a_statement_planned_anew_keeps_the_types_of_its_parameters() {
    let fixture = Fixture::new("create table t (id int primary key, x int); insert into t values (1, 5)");
    let mut s = fixture.session();
    let mut out = Collected::default();
    let find = s
        .prepare("select id from t where x = $1 and $2 = x", &[None, None])
        .unwrap();
    assert_eq!(find.param_types(), [DataType::Int4, DataType::Int4]);
    // Another table of that name, where the parameters would be inferred as numeric.
    query(
        &mut fixture.session(),
        "drop table t; create table t (id int primary key, x numeric(10, 2)); insert into t values (1, 5), (2, 6)",
    );
    let five = [Value::Int4(5), Value::Int4(5)];
    s.execute(&find, &five, 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(out.rows, [[Value::Int4(1)]]);
    assert_eq!(find.param_types(), [DataType::Int4, DataType::Int4]);
    // And where integers cannot be compared with the new column, that is an error.
    query(
        &mut fixture.session(),
        "drop table t; create table t (id int primary key, x text); insert into t values (1, '5')",
    );
    let refused = s.execute(&find, &five, 0, &mut out).unwrap_err();
    assert_eq!(refused.sqlstate().as_str(), "42883");
}

#[test]
fn the_first_use_of_a_parameter_gives_it_its_type() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    let mut holds = |sql: &str, types: &[DataType], value: Value| {
        let mut out = Collected::default();
        let prepared = s.prepare(sql, &[]).unwrap();
        assert_eq!(prepared.param_types(), types, "{sql}");
        s.execute(&prepared, &[value], 0, &mut out).unwrap();
        s.sync().unwrap();
        out.rows[0][0].clone()
    };
    let int = [DataType::Int4];
    assert_eq!(
        holds("select $1 between 5 and 9.5", &int, Value::Int4(9)),
        Value::Bool(true)
    );
    assert_eq!(
        holds("select $1 not between 5 and 9.5", &int, Value::Int4(10)),
        Value::Bool(true)
    );
    assert_eq!(
        holds("select $1 between 5 and 9.5", &int, Value::Int4(10)),
        Value::Bool(false)
    );
    assert_eq!(
        holds(
            "select case $1 when 5 then 'a' when 9.5 then 'b' else 'c' end",
            &int,
            Value::Int4(5)
        ),
        Value::text("a")
    );
    assert_eq!(
        holds("select $1 = 5 or $1 = 9.5", &int, Value::Int4(5)),
        Value::Bool(true)
    );
    // Two uses that want different types, neither of which knew of the other.
    for sql in ["select concat($1, $1 + 1)", "select repeat($1, $1 + 1)"] {
        let refused = s.prepare(sql, &[]).unwrap_err();
        assert_eq!(refused.sqlstate().as_str(), "42P08", "{sql}");
        assert_eq!(
            refused.message(),
            "inconsistent types deduced for parameter $1",
            "{sql}"
        );
    }
}

#[test]
fn a_portal_gives_its_rows_in_portions() {
    let fixture = shop();
    let mut s = fixture.session();
    let all = s.prepare("select id from items order by id", &[]).unwrap();
    let mut out = Collected::default();
    let Completion::Suspended(portal) = s.execute(&all, &[], 2, &mut out).unwrap() else {
        panic!("not suspended")
    };
    assert_eq!(out.rows.len(), 2);
    assert!(matches!(
        s.resume(portal, 2, &mut out).unwrap(),
        Completion::Complete
    ));
    assert_eq!(out.rows.len(), 3);
    assert_eq!(out.tags, ["SELECT 1"]);
    s.sync().unwrap();
}

/// An error inside the text that PREPARE takes is placed in the text that the client has sent.
#[test]
fn an_error_of_prepare_is_placed_in_the_whole_text() {
    let fixture = shop();
    let mut s = fixture.session();
    for sql in [
        "prepare p as select nope",
        "prepare p (int, text) as\n select id from items where nope = $1",
        "select 'é'; prepare p as select nope from items",
        "prepare p as select E'\\x41\\x42', nope from items",
        "set datestyle = E'I\\x53O'; prepare p as select E'\\x41', 'é' || nope",
    ] {
        let expected = sql.find("nope").map(|at| sql[..at].chars().count() as u32 + 1);
        let found = error(&mut s, sql);
        assert_eq!(found.sqlstate().as_str(), "42703", "{sql}");
        assert_eq!(found.position(), expected, "{sql}");
    }
    let found = error(&mut s, "select 1; prepare p as select 1 fromm items i j");
    assert_eq!((found.sqlstate().as_str(), found.position()), ("42601", Some(39)));
}

#[test]
fn sql_level_prepare_and_execute() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(
            &mut s,
            "prepare find (int) as select name from items where id = $1"
        ),
        "PREPARE"
    );
    assert_eq!(query(&mut s, "execute find(1 + 1)"), "bread");
    assert_eq!(run(&mut s, "execute find"), "ERROR 42601");
    assert_eq!(query(&mut s, "deallocate find"), "DEALLOCATE");
    assert_eq!(run(&mut s, "execute find(1)"), "ERROR 26000");
}
