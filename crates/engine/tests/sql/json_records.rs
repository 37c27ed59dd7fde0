//! Records and composite values as JSON, and JSON as them. The answers are PostgreSQL's.

use crate::common::{Fixture, query, run};

#[test]
fn json_fills_composite_values() {
    let fixture = Fixture::new(
        "create type pair as (x int, y int);
         create domain ordered as pair check ((value).x <= (value).y);
         create type parts as (t text, j json, b jsonb, k int)",
    );
    let mut s = fixture.session();
    // A text is kept as it was written, and null is no value of JSON.
    for (expression, expected) in [
        (
            r#"json_populate_record(null::parts, '{"t":[1,  2],"j":{"z":4},"b":{"z":4}}')"#,
            r#"("[1,  2]","{""z"":4}","{""z"": 4}",)"#,
        ),
        (
            r#"jsonb_populate_record(null::parts, '{"t":[1,  2],"j":{"z":4},"b":{"z":4}}')"#,
            r#"("[1, 2]","{""z"": 4}","{""z"": 4}",)"#,
        ),
        (
            r#"json_populate_record(row('a','1','2',3)::parts, '{"b":null,"j":null}')"#,
            "(a,,,3)",
        ),
        (
            r#"jsonb_populate_record(row('a','1','2',3)::parts, '{"b":null,"j":null}')"#,
            "(a,,,3)",
        ),
        (r#"json_populate_record(null::parts, '{"k":1,"k":2}')"#, "(,,,2)"),
        (r#"json_populate_record(row(1,2)::ordered, '{"x":0}')"#, "(0,2)"),
        (
            r#"pg_typeof(json_populate_record(row(1,2)::ordered, '{"x":0}'))"#,
            "ordered",
        ),
    ] {
        assert_eq!(
            query(&mut s, &format!("select {expression}")),
            expected,
            "{expression}"
        );
    }
    for (call, state) in [
        (
            r#"select json_populate_record(row(1,2)::ordered, '{"x":1,"y":0}')"#,
            "23514",
        ),
        (
            r#"select json_populate_recordset(row(1,2)::ordered, '[{"x":0},{"x":1,"y":0}]')"#,
            "23514",
        ),
        (
            r#"select json_populate_record(null::parts, '{"k":"x"}')"#,
            "22P02",
        ),
        (r#"select json_populate_record(null::parts, '[1]')"#, "22023"),
    ] {
        assert_eq!(run(&mut s, call), format!("ERROR {state}"), "{call}");
    }
    assert_eq!(
        query(
            &mut s,
            r#"select * from json_populate_recordset(row(1,2)::pair, '[{"x":0},{"y":9}]')"#
        ),
        "0|2, 1|9"
    );
}

#[test]
fn records_show_names_of_objects() {
    let fixture = Fixture::new("create table t (a int); insert into t values (1), (2), (3); analyze t");
    let mut s = fixture.session();
    for (statement, expected) in [
        (
            "select row_to_json(r) from (select 'pg_class'::regclass as name, 1 as n) r",
            r#"{"name":"pg_class","n":1}"#,
        ),
        (
            "select to_jsonb(r) from (select array['int4'::regtype] as types) r",
            r#"{"types": ["integer"]}"#,
        ),
        (
            "select to_json(histogram_bounds) from pg_stats where tablename = 't'",
            "[1,2,3]",
        ),
        (
            "select histogram_bounds::text::int[] from pg_stats where tablename = 't'",
            "{1,2,3}",
        ),
    ] {
        assert_eq!(query(&mut s, statement), expected, "{statement}");
    }
}

#[test]
fn values_of_one_domain_stay_of_it() {
    let fixture = Fixture::new("create domain small as int check (value < 10)");
    let mut s = fixture.session();
    for (expression, expected) in [
        ("coalesce(4::small, 7::small)", "small"),
        ("greatest(4::small, 7::small)", "small"),
        ("coalesce(4::small, 7)", "integer"),
        ("nullif(4::small, 7::small)", "integer"),
    ] {
        assert_eq!(
            query(&mut s, &format!("select pg_typeof({expression})")),
            expected,
            "{expression}"
        );
    }
}
