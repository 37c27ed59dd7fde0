//! Types of the catalog: names for numbers, positions in the log, places of rows. The answers are PostgreSQL's.

use clearway_engine::{Collected, DataType, Value};

use crate::common::{Fixture, query, run};

#[test]
fn values_of_the_types_of_the_catalog() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    for (expression, expected) in [
        ("'int4'::regtype", "integer"),
        ("23::regtype", "integer"),
        ("'integer[]'::regtype::oid", "1007"),
        ("'pg_class'::regclass", "pg_class"),
        ("'pg_class'::regclass::oid", "1259"),
        ("1259::regclass", "pg_class"),
        ("'pg_catalog.pg_class'::regclass::text || 'x'", "pg_classx"),
        ("0::regclass", "-"),
        ("99999::regclass", "99999"),
        ("'1259'::regclass", "pg_class"),
        ("'public'::regnamespace", "public"),
        ("11::regnamespace", "pg_catalog"),
        ("'{pg_class,pg_type}'::regclass[]", "{pg_class,pg_type}"),
        (
            "array['pg_class'::regclass, 1247::regclass]",
            "{pg_class,pg_type}",
        ),
        ("1259 = 'pg_class'::regclass", "t"),
        ("'pg_class'::regclass in (1259, 3)", "t"),
        ("'pg_class'::regclass = any('{1259}'::oid[])", "t"),
        ("'16/B374D848'::pg_lsn - '16/B374D840'::pg_lsn", "8"),
        ("'0/10'::pg_lsn + 16", "0/20"),
        ("'0/20'::pg_lsn - 16::numeric", "0/10"),
        ("'0/10'::pg_lsn < '0/11'", "t"),
        ("'(0, 1)'::tid", "(0,1)"),
        ("'(0,1)'::tid = '(0,1)'", "t"),
        ("'7'::xid", "7"),
        ("'7'::xid::text::int", "7"),
        (r#"'a'::"char"::int"#, "97"),
        (r#"98::"char""#, "b"),
        (r#"'abc'::"char""#, "a"),
        ("length(repeat('x', 70)::name::text)", "63"),
        ("(-1)::oid", "4294967295"),
        ("4294967295::oid::int", "-1"),
        ("coalesce('pg_class'::regclass, 0)", "pg_class"),
        ("case when true then 'pg_class'::regclass end", "pg_class"),
        ("'{0/1,0/2}'::pg_lsn[]", "{0/1,0/2}"),
    ] {
        assert_eq!(
            query(&mut s, &format!("select {expression}")),
            expected,
            "{expression}"
        );
    }
    for (expression, state) in [
        ("'nowhere'::regclass", "42P01"),
        ("'nowhere.t'::regclass", "3F000"),
        ("'a b'::regclass", "42602"),
        ("'nonsense'::regtype", "42704"),
        ("'nowhere'::regnamespace", "3F000"),
        ("'pg_class'::regclass = 'pg_class'", "22P02"),
        ("'1/'::pg_lsn", "22P02"),
        ("'0/1'::pg_lsn - 2", "22003"),
        ("'0/1'::pg_lsn + '0/1'::pg_lsn", "42883"),
        ("200::\"char\"", "22003"),
        ("(-1)::bigint::oid", "22003"),
        ("1::xid", "42846"),
    ] {
        assert_eq!(
            run(&mut s, &format!("select {expression}")),
            format!("ERROR {state}"),
            "{expression}"
        );
    }
}

#[test]
fn columns_show_names() {
    let fixture = Fixture::new(
        "create table t (id int primary key, c regclass, l pg_lsn, x xid, place tid);
         create table \"T x\" (a int)",
    );
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into t values (1, 't', '0/A', '5', '(1,2)'), (2, '\"T x\"', null, null, null), (3, 't_pkey', null, null, null)",
    );
    let all = "1|t|0/A|5|(1,2), 2|\"T x\"|||, 3|t_pkey|||";
    assert_eq!(query(&mut s, "select * from t order by id"), all);
    assert_eq!(query(&mut s, "select id from t where c = 't'::regclass"), "1");
    assert_eq!(query(&mut s, "insert into t values (4, 't') returning c"), "t");
    query(&mut s, "create index on t (c)");
    assert_eq!(
        query(&mut s, "select id from t where c = 't'::regclass order by id"),
        "1, 4"
    );
    assert_eq!(
        query(
            &mut s,
            "select attname from pg_attribute where attrelid = 'public.t'::regclass and attnum > 0 order by attnum"
        ),
        "id, c, l, x, place"
    );
    let mut out = Collected::default();
    s.execute_simple(
        "copy (select c, id from t where id < 3 order by id) to stdout",
        &mut out,
    )
    .unwrap();
    assert_eq!(String::from_utf8(out.copied).unwrap(), "t\t1\n\"T x\"\t2\n");
    let mut out = Collected {
        copy_input: b"7\tt\t\\N\t\\N\t\\N\n".to_vec(),
        ..Collected::default()
    };
    s.execute_simple("copy t from stdin", &mut out).unwrap();
    assert_eq!(query(&mut s, "select c from t where id = 7"), "t");
    query(&mut s, "set search_path to pg_catalog");
    assert_eq!(query(&mut s, "select c from public.t where id = 7"), "public.t");
}

#[test]
fn a_portal_goes_on_with_names() {
    let fixture = Fixture::new("create table t (a int)");
    let mut s = fixture.session();
    let find = s
        .prepare(
            "select 't'::regclass, $1::regclass from generate_series(1, 2)",
            &[],
        )
        .unwrap();
    assert_eq!(find.param_types(), [DataType::Regclass]);
    let named = s.read_name("t", DataType::Regclass).unwrap();
    let mut out = Collected::default();
    let clearway_engine::Completion::Suspended(portal) = s.execute(&find, &[named], 1, &mut out).unwrap()
    else {
        panic!("all rows came at once")
    };
    s.resume(portal, 0, &mut out).unwrap();
    s.sync().unwrap();
    let row = [Value::text("t"), Value::text("t")];
    assert_eq!(out.rows, [row.clone(), row]);
}
