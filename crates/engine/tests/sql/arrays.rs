//! Arrays: in expressions, in columns, in parameters, in indexes. The answers are PostgreSQL's.

use clearway_engine::value::ArrayValue;
use clearway_engine::{Collected, DataType, Value};

use crate::common::{Fixture, error, query, run};

fn each(answers: &[(&str, &str)]) {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    for (expression, expected) in answers {
        assert_eq!(
            query(&mut s, &format!("select {expression}")),
            *expected,
            "{expression}"
        );
    }
}

#[test]
fn arrays_are_written_and_taken_apart() {
    each(&[
        ("'{1,2,NULL,4}'::int[]", "{1,2,NULL,4}"),
        ("array[1,2,3]", "{1,2,3}"),
        ("array['a',NULL,'b c']", r#"{a,NULL,"b c"}"#),
        ("array[[1,2],[3,4]]", "{{1,2},{3,4}}"),
        ("array[array[1,2],array[3,4]]", "{{1,2},{3,4}}"),
        ("array[]::text[]", "{}"),
        ("array[1.5,'2']::int[]", "{2,2}"),
        ("array['1','2']::int[]", "{1,2}"),
        ("array[1,2.5]", "{1,2.5}"),
        ("(array[1,2,3])[2]", "2"),
        ("('{{1,2},{3,4}}'::int[])[2][1]", "3"),
        ("(array[1,2,3])[2:3]", "{2,3}"),
        ("(array[1,2,3])[:2]", "{1,2}"),
        ("(array[1,2,3])[2:]", "{2,3}"),
        ("('{{1,2},{3,4}}'::int[])[1:2][1:1]", "{{1},{3}}"),
        ("('{{1,2},{3,4}}'::int[])[1:2][1]", "{{1},{3}}"),
        ("(array[1,2,3])[5] is null", "t"),
        ("(array[1,2,3])[null] is null", "t"),
    ]);
}

#[test]
fn operators_of_arrays() {
    each(&[
        ("2 = any(array[1,2,3])", "t"),
        ("2 = any('{1,3}'::int[])", "f"),
        ("2 = any('{1,NULL}'::int[]) is null", "t"),
        ("2 <> all('{1,3}'::int[])", "t"),
        ("2 > all('{1,0}'::bigint[])", "t"),
        ("2 = some('{2}')", "t"),
        ("'a' = any('{a,b}')", "t"),
        ("1.5 = any('{1,2}'::int[])", "f"),
        ("1 = any(null::int[]) is null", "t"),
        ("null::int = any('{}'::int[])", "f"),
        ("null::int = all('{}'::int[])", "t"),
        ("array[1,2] || 3", "{1,2,3}"),
        ("0 || array[1,2]", "{0,1,2}"),
        ("array[1,2] || array[3]", "{1,2,3}"),
        ("array[1,2] || '{5}'", "{1,2,5}"),
        ("array[1,2] || null", "{1,2}"),
        ("array[[1,2]] || array[3,4]", "{{1,2},{3,4}}"),
        ("array[1] || 2.5", "{1,2.5}"),
        ("array[1,2,3] @> array[2]", "t"),
        ("array[2] <@ array[1,2,3]", "t"),
        ("array[1,2] && array[3]", "f"),
        ("array[1,NULL] @> array[NULL]::int[]", "f"),
        ("array[1,2] = array[1,2]", "t"),
        ("array[1,2] < array[1,3]", "t"),
        ("array[1,2] < array[1,2,0]", "t"),
        ("'{}'::int[] < '{1}'::int[]", "t"),
        ("array[1,null] = array[1,null]", "t"),
    ]);
}

#[test]
fn functions_of_arrays() {
    each(&[
        ("array_length(array[1,2,3], 1)", "3"),
        ("array_length('{}'::int[], 1) is null", "t"),
        ("array_upper('[2:4]={1,2,3}'::int[], 1)", "4"),
        ("array_lower('[2:4]={1,2,3}'::int[], 1)", "2"),
        ("array_ndims(array[[1],[2]])", "2"),
        ("array_dims(array[[1,2],[2,3]])", "[1:2][1:2]"),
        ("cardinality(array[[1],[2]])", "2"),
        ("array_append(array[1], 2)", "{1,2}"),
        ("array_prepend(1, array[2])", "{1,2}"),
        ("array_cat(array[1], array[2])", "{1,2}"),
        ("array_append(null::int[], 2)", "{2}"),
        ("array_position(array['a','b','a'], 'a', 2)", "3"),
        ("array_position(array[1,null], null)", "2"),
        ("array_positions(array[1,2,1], 1)", "{1,3}"),
        ("array_remove(array[1,2,1,null], 1)", "{2,NULL}"),
        ("array_remove(array[1,null], null)", "{1}"),
        ("array_replace(array[1,2,1], 1, 9)", "{9,2,9}"),
        ("array_to_string(array[1,null,3], ',')", "1,3"),
        ("array_to_string(array[1,null,3], ',', '*')", "1,*,3"),
        ("array_to_string(array[[1,2],[3,4]], ',')", "1,2,3,4"),
        ("string_to_array('a,b,,c', ',')", r#"{a,b,"",c}"#),
        ("string_to_array('a,b,,c', ',', '')", "{a,b,NULL,c}"),
        ("string_to_array('abc', null)", "{a,b,c}"),
        ("string_to_array('', ',')", "{}"),
        ("string_to_array('abc', '')", "{abc}"),
        ("array_fill(7, array[2,2])", "{{7,7},{7,7}}"),
        ("array_fill('x'::text, array[2], array[0])", "[0:1]={x,x}"),
        ("trim_array(array[1,2,3], 1)", "{1,2}"),
    ]);
}

#[test]
fn arrays_are_converted() {
    each(&[
        ("'{1,2}'::text::int[]", "{1,2}"),
        ("array[1,2]::text", "{1,2}"),
        ("array[1,2]::text[]", "{1,2}"),
        ("array['abc','d']::varchar(2)[]", "{ab,d}"),
        ("'{2020-01-01,infinity}'::date[]", "{2020-01-01,infinity}"),
        (
            r#"'{"2020-01-01 12:00:00"}'::timestamp[]"#,
            r#"{"2020-01-01 12:00:00"}"#,
        ),
        ("'{t,f}'::bool[]", "{t,f}"),
        ("'{1.50,NaN}'::numeric[]", "{1.50,NaN}"),
        ("coalesce(null, array[1])", "{1}"),
        ("case when true then array[1] else '{2}' end", "{1}"),
        ("array[1,2] is distinct from array[1,2]", "f"),
        ("greatest(array[1,2], array[1,3])", "{1,3}"),
        ("'1 2 3'::int2vector", "1 2 3"),
        ("('1 2 3'::int2vector)[0]", "1"),
        ("2 = any('1 2 3'::int2vector)", "t"),
        ("'1 2'::oidvector", "1 2"),
        ("array_upper('1 2'::int2vector, 1)", "1"),
        ("'1 2'::int2vector::int2[]", "[0:1]={1,2}"),
        ("array[array[]::int[], array[]::int[]]", "{}"),
        ("array[null]", "{NULL}"),
        ("array[null,null]::int[]", "{NULL,NULL}"),
        ("array_length(array['{1}'::int[]], 2)", "1"),
    ]);
}

#[test]
fn mistakes_with_arrays() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    for (expression, state) in [
        ("array[]", "42P18"),
        ("[1]", "42601"),
        ("array[1, true]", "42804"),
        ("array[1, 'x']", "22P02"),
        ("array[[1, 2], [3]]", "2202E"),
        ("(5)[1]", "42804"),
        ("(array[1])[true]", "42804"),
        ("1 = any (5)", "42809"),
        ("'a' = any (array[1])", "22P02"),
        ("true = any (array[1])", "42883"),
        ("array[1] @> array[1::bigint]", "42883"),
        ("array[1] || 'a'::text", "42883"),
        ("array[1] = array[1::bigint]", "42883"),
        ("array[1] + array[1]", "42883"),
        ("array[[1]] || 1", "22000"),
        ("array[1] || array[[1, 2]]", "2202E"),
        ("array_position(array[[1]], 1)", "0A000"),
        ("array_fill(1, null)", "22004"),
        ("trim_array(array[1, 2], 3)", "2202E"),
        ("array_fill(1, array[100000, 100000])", "54000"),
        ("'{1'::int[]", "22P02"),
        ("array[1]::int", "42846"),
    ] {
        assert_eq!(
            run(&mut s, &format!("select {expression}")),
            format!("ERROR {state}"),
            "{expression}"
        );
    }
    assert_eq!(
        error(&mut s, "select '{1,,2}'::int[]").detail(),
        Some("Unexpected \",\" character.")
    );
}

#[test]
fn columns_of_arrays() {
    let fixture = Fixture::new(
        "create table t (id int primary key, a int[] default '{7}', b varchar(3)[], c text array, d numeric(4,1)[])",
    );
    let mut s = fixture.session();
    query(&mut s, "insert into t (id) values (1)");
    query(
        &mut s,
        "insert into t values (2, '{1,2}', '{abc,NULL}', array['x y', ''], '{1.25}')",
    );
    query(
        &mut s,
        "insert into t values (3, array[3,1], array['a'], null, array[1,2])",
    );
    assert_eq!(
        query(&mut s, "select * from t order by id"),
        r#"1|{7}|||, 2|{1,2}|{abc,NULL}|{"x y",""}|{1.3}, 3|{3,1}|{a}||{1.0,2.0}"#
    );
    assert_eq!(
        run(&mut s, "insert into t values (4, null, '{abcd}')"),
        "ERROR 22001"
    );
    assert_eq!(
        run(&mut s, "insert into t values (4, array['x'::text])"),
        "ERROR 42804"
    );
    assert_eq!(query(&mut s, "select id from t where a[1] = 3"), "3");
    assert_eq!(
        query(&mut s, "select id, t.a[2] from t where 1 = any (a) order by id"),
        "2|2, 3|1"
    );
    assert_eq!(query(&mut s, "select id from t where a @> array[2]"), "2");
    assert_eq!(query(&mut s, "update t set a = a || 9 where id = 1"), "UPDATE 1");
    assert_eq!(
        query(&mut s, "select a, cardinality(a) from t order by a desc"),
        "{7,9}|2, {3,1}|2, {1,2}|2"
    );
    query(&mut s, "create index on t (a)");
    assert_eq!(query(&mut s, "select id from t where a = '{3,1}'"), "3");
    assert_eq!(
        query(&mut s, "select id from t where a > array[1,2] order by a"),
        "3, 1"
    );
    assert_eq!(
        query(
            &mut s,
            "select id from t where a in ('{1,2}', '{7,9}') order by id"
        ),
        "1, 2"
    );
    query(&mut s, "insert into t (id, a) values (5, '{1,2}')");
    assert_eq!(
        query(&mut s, "select a, count(*) from t group by a order by a"),
        "{1,2}|2, {3,1}|1, {7,9}|1"
    );
    assert_eq!(query(&mut s, "select max(a), min(a) from t"), "{7,9}|{1,2}");
    let mut out = Collected {
        copy_input: b"6\t{1,NULL}\t\\N\t{\"a\\\\\"b\"}\t\\N\n".to_vec(),
        ..Collected::default()
    };
    s.execute_simple("copy t from stdin", &mut out).unwrap();
    let mut out = Collected::default();
    s.execute_simple("copy (select a, c from t where id = 6) to stdout", &mut out)
        .unwrap();
    assert_eq!(
        String::from_utf8(out.copied).unwrap(),
        "{1,NULL}\t{\"a\\\\\"b\"}\n"
    );
}

#[test]
fn any_of_an_array_uses_the_index() {
    let fixture = Fixture::new(
        "create table t (id bigint primary key, name text);
         insert into t select i, 'n' || i::text from generate_series(1, 100) i;
         create index on t (name)",
    );
    let mut s = fixture.session();
    let int_array = DataType::array_of(DataType::Int8);
    let find = s
        .prepare("select name from t where id = any ($1) order by id", &[])
        .unwrap();
    assert_eq!(find.param_types(), [int_array]);
    let mut out = Collected::default();
    let wanted = [3, 500, 7, 3]
        .map(Value::Int8)
        .into_iter()
        .chain([Value::Null])
        .collect();
    let wanted: Value = ArrayValue::of(int_array, wanted).unwrap().into();
    s.execute(&find, &[wanted], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(out.rows, [[Value::text("n3")], [Value::text("n7")]]);
    out = Collected::default();
    s.execute(&find, &[Value::Null], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert!(out.rows.is_empty());
    for (condition, rows) in [
        ("id = any ('{5,6}'::int[])", "5, 6"),
        ("id = any (array[5, 6])", "5, 6"),
        ("id = any ('{5,6}'::smallint[])", "5, 6"),
        ("name = any ('{n5,n6}')", "5, 6"),
        ("name = any (array['n5', 'n6']::varchar[])", "5, 6"),
        ("id = any ('{}')", ""),
    ] {
        let plan = query(&mut s, &format!("explain select id from t where {condition}"));
        assert!(plan.contains("Index"), "{condition}: {plan}");
        assert_eq!(
            query(&mut s, &format!("select id from t where {condition} order by id")),
            rows,
            "{condition}"
        );
    }
    // A numeric is no key of a bigint column, and 5.5 must not find 5.
    assert_eq!(
        query(&mut s, "select id from t where id = any ('{5.5,6}'::numeric[])"),
        "6"
    );
    assert_eq!(
        query(&mut s, "select count(*) from t where id <> all ('{5,6}')"),
        "98"
    );
    assert_eq!(
        query(&mut s, "select count(*) from t where id < any ('{5,6}')"),
        "5"
    );
}

#[test]
fn many_arrays_are_sorted_beyond_memory() {
    let fixture = Fixture::new("create table t (a text[])");
    let mut s = fixture.session();
    query(&mut s, "set work_mem = '64kB'");
    query(
        &mut s,
        "insert into t select array[repeat('x', 100), (10000 - i)::text, null] from generate_series(1, 3000) i",
    );
    assert_eq!(
        query(&mut s, "select a[2] from t order by a limit 2"),
        "7000, 7001"
    );
    assert_eq!(query(&mut s, "select count(*) from t"), "3000");
}
