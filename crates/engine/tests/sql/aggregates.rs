//! Aggregates that keep their values, and those of truth values. The answers are PostgreSQL's.

use crate::common::{Fixture, query, run};

#[test]
fn values_are_gathered_in_order() {
    let fixture = Fixture::new(
        "create table g (k int, v text, n int);
         insert into g values (1, 'b', 2), (1, 'a', 1), (2, null, 3), (2, 'c', null)",
    );
    let mut s = fixture.session();
    for (call, expected) in [
        ("array_agg(n)", "{2,1,3,NULL}"),
        ("array_agg(n order by n desc)", "{NULL,3,2,1}"),
        ("array_agg(distinct k)", "{1,2}"),
        ("array_agg(distinct n order by n desc nulls last)", "{3,2,1,NULL}"),
        ("array_agg(distinct n)", "{1,2,3,NULL}"),
        ("string_agg(v, ',')", "b,a,c"),
        ("string_agg(v, ',' order by v)", "a,b,c"),
        ("string_agg(v, n::text order by k, n)", "a2bc"),
        ("string_agg(distinct v, '+')", "a+b+c"),
        ("string_agg(v, null order by v)", "abc"),
        ("bool_and(n > 1)", "f"),
        ("bool_or(n > 2)", "t"),
        ("every(k > 0)", "t"),
        ("array_agg(v order by v) filter (where v is not null)", "{a,b,c}"),
        ("array_agg(array[k, k] order by k)", "{{1,1},{1,1},{2,2},{2,2}}"),
        ("array_agg(n) filter (where false)", ""),
        ("string_agg(v, ',') filter (where false)", ""),
        ("sum(n order by n)", "6"),
        ("array_agg(v order by k desc, v nulls first)", "{NULL,c,a,b}"),
        ("array_to_string(array_agg(v order by v), '-')", "a-b-c"),
    ] {
        assert_eq!(
            query(&mut s, &format!("select {call} from g")),
            expected,
            "{call}"
        );
    }
    assert_eq!(
        query(
            &mut s,
            "select k, array_agg(v order by v), string_agg(v, ',') from g group by k order by k"
        ),
        "1|{a,b}|b,a, 2|{c,NULL}|c"
    );
    for (call, state) in [
        ("array_agg(array[]::int[])", "2202E"),
        ("array_agg(null::int[])", "22004"),
        (
            "array_agg(case k when 1 then array[1] else array[1, 2] end)",
            "2202E",
        ),
        ("string_agg(n, ',')", "42883"),
        ("string_agg(v)", "42883"),
        ("array_agg(distinct k order by n)", "42P10"),
        ("bool_and(n)", "42883"),
        ("lower(v order by v)", "42809"),
    ] {
        assert_eq!(
            run(&mut s, &format!("select {call} from g")),
            format!("ERROR {state}"),
            "{call}"
        );
    }
}

#[test]
fn many_values_are_gathered() {
    let fixture = Fixture::new("create table t (a int, b text)");
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into t select i % 7, 'v' || i from generate_series(1, 5000) i",
    );
    query(&mut s, "set work_mem = '64kB'");
    assert_eq!(
        query(
            &mut s,
            "select a, cardinality(array_agg(b)), cardinality(array_agg(distinct b)) from t group by a order by a limit 2"
        ),
        "0|714|714, 1|715|715"
    );
    assert_eq!(query(&mut s, "select length(string_agg(b, '')) from t"), "23893");
}
