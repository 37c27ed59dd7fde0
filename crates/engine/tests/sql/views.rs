//! Views: what their names mean, what becomes of plans, and what is refused.

use clearway_engine::Collected;

use crate::common::{Fixture, error, query, run};

const SETUP: &str = "create table t (a int primary key, b text); insert into t values (1, 'one'), (2, 'two');
    create view v as select * from t where a > 1; create view w as select v.b, v.a from v";

#[test]
fn views_are_there_after_a_restart() {
    let fixture = Fixture::new(SETUP);
    query(
        &mut fixture.session(),
        "comment on view w is 'above'; alter view v rename to low",
    );
    let fixture = fixture.restarted();
    let mut session = fixture.session();
    assert_eq!(query(&mut session, "select * from w"), "two|2");
    assert_eq!(
        query(&mut session, "select obj_description('w'::regclass)"),
        "above"
    );
    let error = error(&mut session, "drop table t");
    assert_eq!(
        error.message(),
        "cannot drop table t because other objects depend on it"
    );
    assert_eq!(
        error.detail(),
        Some("view low depends on table t\nview w depends on view low")
    );
    assert_eq!(
        error.hint(),
        Some("Use DROP ... CASCADE to drop the dependent objects too.")
    );
    let mut out = Collected::default();
    session.execute_simple("drop table t cascade", &mut out).unwrap();
    assert_eq!(out.notices[0].message, "drop cascades to 2 other objects");
    assert_eq!(
        out.notices[0].detail.as_deref(),
        Some("drop cascades to view low\ndrop cascades to view w")
    );
    assert_eq!(
        query(
            &mut session,
            "select count(*) from pg_class where relkind = 'v' and oid >= 16384"
        ),
        "0"
    );
}

#[test]
fn a_prepared_statement_follows_a_replaced_view() {
    let fixture = Fixture::new(SETUP);
    let mut session = fixture.session();
    let prepared = session.prepare("select b from w order by a", &[]).unwrap();
    let rows = |session: &mut clearway_engine::Session| {
        let mut out = Collected::default();
        session.execute(&prepared, &[], 0, &mut out).unwrap();
        session.sync().unwrap();
        out.rows.len()
    };
    assert_eq!(rows(&mut session), 1);
    let mut other = fixture.session();
    query(&mut other, "create or replace view v as select * from t");
    assert_eq!(rows(&mut session), 2);
    query(
        &mut other,
        "begin; create or replace view v as select * from t where false",
    );
    query(&mut other, "rollback");
    assert_eq!(rows(&mut session), 2);
}

#[test]
fn a_view_is_as_deep_as_a_query_may_be() {
    let fixture =
        Fixture::new("create table t (a int); insert into t values (7); create view v0 as select a from t");
    let mut session = fixture.session();
    for level in 1..=300 {
        let sql = format!("create view v{level} as select a from v{}", level - 1);
        if run(&mut session, &sql) != "CREATE VIEW" {
            assert_eq!(run(&mut session, &sql), "ERROR 54001");
            assert!(level > 50, "{level}");
            assert_eq!(query(&mut session, &format!("select * from v{}", level - 2)), "7");
            return;
        }
    }
    panic!("views have no bound");
}

#[test]
fn views_that_use_one_another_twice_are_bounded() {
    let fixture = Fixture::new("create view v0 as select 1 as a");
    let mut session = fixture.session();
    for level in 1..40 {
        let below = level - 1;
        let sql = format!("create view v{level} as select x.a from v{below} x, v{below} y");
        if run(&mut session, &sql) != "CREATE VIEW" {
            assert_eq!(run(&mut session, &sql), "ERROR 54001");
            return;
        }
    }
    panic!("views have no bound");
}

#[test]
fn what_a_view_cannot_be_is_refused() {
    let fixture = Fixture::new("create table t (a serial primary key)");
    fixture.play(&format!(
        "alice: create view v as select last_value from t_a_seq => ERROR 0A000
         alice: create view v as select a from t for update => ERROR 0A000
         alice: create view v as select '{}' as x => ERROR 54000
         alice: create view nowhere.v as select 1 as x => ERROR 3F000
         alice: create view v as select a from t => CREATE VIEW
         alice: create view w as select a from v => CREATE VIEW
         alice: alter view v rename column a to b => ALTER VIEW
         alice: alter view w rename column a to b => ALTER VIEW
         alice: create or replace view v as select b from w => ERROR 42P17",
        "x".repeat(8_000)
    ));
}

/// The row type of a relation has its name. A text that names the type keeps that name.
#[test]
fn a_relation_whose_row_type_a_text_names_keeps_its_name() {
    let fixture = Fixture::new(
        "create schema s; create schema r; create table s.whole (a int, b text);
         insert into s.whole values (1, 'one');
         create view over as select ((2, 'two')::s.whole).b, row_to_json(whole) as whole from s.whole",
    );
    let mut session = fixture.session();
    let answers = |session: &mut clearway_engine::Session, sql: &str, message: &str| {
        assert_eq!(error(session, sql).message(), message, "{sql}");
        assert_eq!(
            query(session, "select * from over"),
            "two|{\"a\":1,\"b\":\"one\"}",
            "{sql}"
        );
    };
    let kept = "\"whole\", whose row type the definition of \"over\" names, is not supported";
    for (sql, what) in [
        ("alter table s.whole set schema r", "moving"),
        ("alter table s.whole rename to part", "renaming"),
    ] {
        answers(&mut session, sql, &format!("{what} {kept}"));
    }
    answers(
        &mut session,
        "alter schema s rename to q",
        "renaming schema \"s\", of which the definition of \"over\" names a type, is not supported",
    );
    for sql in ["alter view over rename to o", "alter view o set schema r"] {
        run(&mut session, sql);
    }
    assert_eq!(query(&mut session, "select b from r.o"), "two");
    // A view's rows have a type, too.
    for sql in [
        "drop view r.o",
        "create view s.part as select 1 as a, 2 as b",
        "create view over as select (null::s.part[])[1].b",
    ] {
        run(&mut session, sql);
    }
    for sql in ["alter view s.part rename to p", "alter view s.part set schema r"] {
        assert_eq!(error(&mut session, sql).sqlstate().as_str(), "0A000", "{sql}");
    }
    // So do the texts of tables and domains, but for what they have by number.
    for sql in [
        "drop view over",
        "create table holds (a int default (cast((1, 2) as s.part)).b, check ((((a, a)::s.part).a) > 0))",
        "create domain checked as int check (((value, value)::s.part).b > 0)",
    ] {
        assert!(!run(&mut session, sql).starts_with("ERROR"), "{sql}");
    }
    assert_eq!(
        error(&mut session, "alter view s.part rename to p").message(),
        "renaming \"part\", whose row type the definition of \"holds\" names, is not supported"
    );
    run(&mut session, "alter table holds alter a set default 3");
    assert_eq!(run(&mut session, "alter view s.part rename to p"), "ALTER VIEW");
    assert_eq!(run(&mut session, "alter schema s rename to q"), "ALTER SCHEMA");
    let mut session = fixture.session();
    assert_eq!(
        run(&mut session, "insert into holds values (4::checked)"),
        "INSERT 0 1"
    );
    assert_eq!(run(&mut session, "insert into holds values (-4)"), "ERROR 23514");
}

#[test]
fn columns_that_a_text_holds_on_to_keep_their_names() {
    let fixture = Fixture::new(
        "create table t (a int primary key, b int); create table other (b int, c int);
         create view joined as select c from t join other using (b);
         create table holder (r t check ((r).a > 0))",
    );
    fixture.play(
        "alice: alter table other rename b to d => ERROR 0A000
         alice: alter table t rename a to z => ERROR 0A000
         alice: alter table other rename c to d => ALTER TABLE
         alice: select pg_get_viewdef('joined', true) ~ 'other.d AS c' => t
         alice: drop table holder => DROP TABLE
         alice: alter table t rename a to z => ALTER TABLE
         alice: drop view joined => DROP VIEW
         alice: alter table other rename b to c => ALTER TABLE",
    );
}

#[test]
fn a_temporary_view_keeps_its_columns_when_another_session_exchanges_their_names() {
    let fixture = Fixture::new("create table t (a int, b int); insert into t values (1, 2)");
    fixture.play(
        "alice: create temp view v as select a, b from t => CREATE VIEW
         bob: alter table t rename a to c => ALTER TABLE
         bob: alter table t rename b to a => ALTER TABLE
         bob: alter table t rename c to b => ALTER TABLE
         alice: select a, b from v => 1|2
         alice: select b, a from t => 1|2",
    );
}

#[test]
fn others_wait_for_a_view_that_is_dropped() {
    Fixture::new(SETUP).play(
        "alice: begin => BEGIN
         alice: select * from w => two|2
         bob: drop view v cascade => waits
         alice: commit => COMMIT
         bob => DROP VIEW
         alice: select * from w => ERROR 42P01
         alice: begin => BEGIN
         alice: create view v as select a from t => CREATE VIEW
         bob: drop table t => waits
         alice: commit => COMMIT
         bob => ERROR 2BP01
         bob: drop table t cascade => DROP TABLE
         alice: select * from v => ERROR 42P01",
    );
}

#[test]
fn definitions_are_told_as_postgresql_writes_them() {
    let fixture = Fixture::new(
        "create table t (a int primary key, b varchar(10), c numeric); create table u (a int, e text);
         create view v as select * from t where b in ('x', 'y') and a between 1 and 5;
         create view w (n, m) as select count(*), max(t.c) from t join u using (a) group by t.a order by 1;
         create view x as select a from v union all select (select 5) from v v2",
    );
    let mut session = fixture.session();
    let plain = "select pg_get_viewdef('v'::regclass)";
    assert_eq!(
        query(&mut session, plain),
        " SELECT t.a,\n    t.b,\n    t.c\n   FROM t\n  WHERE (((t.b)::text = ANY ((ARRAY['x'::character varying, \
         'y'::character varying])::text[])) AND ((t.a >= 1) AND (t.a <= 5)));"
    );
    assert_eq!(
        query(&mut session, "select pg_get_viewdef('v', true)"),
        " SELECT t.a,\n    t.b,\n    t.c\n   FROM t\n  WHERE (t.b::text = ANY (ARRAY['x'::character varying, \
         'y'::character varying]::text[])) AND t.a >= 1 AND t.a <= 5;"
    );
    assert_eq!(
        query(
            &mut session,
            "select definition from pg_views where viewname = 'w'"
        ),
        " SELECT count(*) AS n,\n    max(t.c) AS m\n   FROM (t\n     JOIN u USING (a))\n  GROUP BY t.a\n  ORDER BY (count(*));"
    );
    assert_eq!(
        query(&mut session, "select pg_get_viewdef('x'::regclass)"),
        " SELECT v.a\n   FROM v\nUNION ALL\n SELECT ( SELECT 5) AS a\n   FROM v v2;"
    );
    query(&mut session, "alter view v rename to renamed");
    query(&mut session, "set search_path to pg_catalog");
    assert_eq!(
        query(
            &mut session,
            "select view_definition from information_schema.views where table_name = 'x'"
        ),
        " SELECT renamed.a\n   FROM public.renamed\nUNION ALL\n SELECT ( SELECT 5) AS a\n   FROM public.renamed v2;"
    );
}

/// `ORDER BY 1` is the entry once more, BETWEEN its left side: texts that grow with a power of their depth.
#[test]
fn a_definition_that_repeats_itself_without_end_is_told_as_it_was_written() {
    let fixture = Fixture::new("create table t (a int, b bool)");
    let mut s = fixture.session();
    let deep = |levels: usize, inner: &str, around: &dyn Fn(&str) -> String| {
        (0..levels).fold(inner.to_owned(), |inner, _| around(&inner))
    };
    let queries = deep(16, "select 1 as x", &|inner| {
        format!("select ({inner} group by 1 order by 1) as x")
    });
    let between = deep(30, "b", &|inner| format!("({inner} between b and true)"));
    let lists = deep(20, "b", &|inner| format!("({inner} in (b, b, b))"));
    for (name, text) in [
        ("queries", format!("{queries} group by 1 order by 1")),
        ("betweens", format!("select {between} as x from t")),
        ("lists", format!("select {lists} as x from t")),
    ] {
        query(&mut s, &format!("create view {name} as {text}"));
        let shown = query(&mut s, &format!("select pg_get_viewdef('{name}'::regclass)"));
        assert_eq!(shown, format!(" {text};"), "{name}");
    }
    // One that repeats itself a few times is printed.
    query(
        &mut s,
        "create view few as select b between (a > 1) and true as x from t order by 1",
    );
    let shown = query(&mut s, "select pg_get_viewdef('few'::regclass)");
    assert!(
        shown.contains("ORDER BY ((t.b >= (t.a > 1)) AND (t.b <= true))"),
        "{shown}"
    );
}

#[test]
fn the_catalogs_tell_of_views() {
    let fixture = Fixture::new(SETUP);
    fixture.play(
        "alice: select relkind, relhasrules, relnatts, reltuples, relam, relfilenode from pg_class where relname = 'v' => v|t|2|-1|0|0
         alice: select attname, atttypid::regtype from pg_attribute where attrelid = 'w'::regclass order by attnum => b|text, a|integer
         alice: select rulename, ev_class::regclass, ev_type, is_instead from pg_rewrite order by ev_class => _RETURN|v|1|t, _RETURN|w|1|t
         alice: select refobjid::regclass, refobjsubid, deptype from pg_depend d join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass where ev_class = 'w'::regclass order by 1, 2 => v|1|n, v|2|n, w|0|i
         alice: select table_name, check_option, is_updatable, is_insertable_into from information_schema.views where table_schema = 'public' order by 1 => v|NONE|YES|YES, w|NONE|YES|YES
         alice: select table_name, table_type, is_insertable_into from information_schema.tables where table_schema = 'public' order by 1 => t|BASE TABLE|YES, v|VIEW|YES, w|VIEW|YES
         alice: select view_name, table_name, column_name from information_schema.view_column_usage order by 1, 3 => v|t|a, v|t|b, w|v|a, w|v|b
         alice: select view_name, table_name from information_schema.view_table_usage order by 1 => v|t, w|v
         alice: create view z as select a + 1 as next, a from t => CREATE VIEW
         alice: select column_name, is_updatable from information_schema.columns where table_name = 'z' order by ordinal_position => next|NO, a|YES
         alice: select pg_relation_size('v'), pg_table_size('v') => 0|0",
    );
}

#[test]
fn errors_of_changes_through_views_have_their_reasons() {
    let fixture = Fixture::new(
        "create table t (a int primary key, b text); create view d as select distinct a from t;
        create view v as select a, b || '!' as c from t where a > 0 with check option",
    );
    let mut session = fixture.session();
    let refused = error(&mut session, "update d set a = 1");
    assert_eq!(refused.message(), "cannot update view \"d\"");
    assert_eq!(
        refused.detail(),
        Some("Views containing DISTINCT are not automatically updatable.")
    );
    assert!(
        refused
            .hint()
            .unwrap()
            .starts_with("To enable updating the view, provide an INSTEAD OF UPDATE trigger")
    );
    let column = error(&mut session, "insert into v values (1, 'x')");
    assert_eq!(column.message(), "cannot insert into column \"c\" of view \"v\"");
    let check = error(&mut session, "insert into v (a) values (-1)");
    assert_eq!(check.message(), "new row violates check option for view \"v\"");
    assert_eq!(check.detail(), Some("Failing row contains (-1, null)."));
    assert_eq!(query(&mut session, "select count(*) from t"), "0");
}

#[test]
fn temporary_views_go_with_their_session() {
    Fixture::new(SETUP).play(
        "alice: create temp view mine as select b from w => CREATE VIEW
         alice: select * from mine => two
         bob: select * from mine => ERROR 42P01
         alice: create temp table seen (a int) => CREATE TABLE
         alice: insert into seen values (7) => INSERT 0 1
         alice: create view over as select a from seen => CREATE VIEW
         alice: select * from over => 7
         alice: select relname, relpersistence from pg_class where relname in ('mine', 'over') order by 1 => mine|t, over|t
         alice: insert into over values (8) => INSERT 0 1
         alice: drop table seen => ERROR 2BP01
         alice: create or replace view over as select a + 1 as a from seen => CREATE VIEW
         alice: select * from over order by 1 => 8, 9
         alice: create temp view public.x as select 1 as x => ERROR 42P16
         alice: discard temp => DISCARD TEMP
         alice: select * from over => ERROR 42P01
         bob: drop table t cascade => DROP TABLE",
    );
}

/// Without the table its text could not be read.
#[test]
fn a_view_that_names_the_type_of_a_tables_rows_goes_with_the_table() {
    let fixture = Fixture::new("create table p (a int, b text)");
    fixture.play(
        "alice: create temp table t (a int) => CREATE TABLE
         alice: create view of_cast as select (null::t).a as a, cast(null as t[]) as b => CREATE VIEW
         alice: create view of_columns as select (x.r).a from json_to_record('{\"r\": {\"a\": 7}}') as x (r t) => CREATE VIEW
         alice: create view over as select a from of_columns => CREATE VIEW
         alice: select * from over => 7
         alice: select relname, relpersistence from pg_class where relname like 'of_%' or relname = 'over' order by 1 => of_cast|t, of_columns|t, over|t
         alice: drop table t => ERROR 2BP01
         alice: begin => BEGIN
         alice: drop table t cascade => DROP TABLE
         alice: select count(*) from pg_class where relpersistence = 't' => 0
         alice: rollback => ROLLBACK
         alice: select * from over => 7
         bob: select * from over => ERROR 42P01
         bob: create view of_cast as select (null::p).b, (select count(*) from p) => CREATE VIEW
         bob: create view of_literal as select p '(1,x)' as p => CREATE VIEW
         bob: select p from of_literal => (1,x)
         bob: select view_name from information_schema.view_table_usage where table_name = 'p' => of_cast
         bob: select count(*) from pg_depend where refclassid = 'pg_type'::regclass and refobjid = 'p'::regtype and deptype = 'n' => 3
         bob: drop table p => ERROR 2BP01
         bob: drop table p cascade => DROP TABLE
         bob: select * from of_cast => ERROR 42P01
         bob: select * from of_literal => ERROR 42P01",
    );
    let fixture = fixture.restarted();
    fixture.play("alice: select count(*) from pg_class where relname like 'of_%' => 0");
}

/// A query over a view sees the columns that the view had when the query was stored.
#[test]
fn a_view_over_a_view_that_gets_a_column_keeps_its_own() {
    Fixture::new(SETUP).play(
        "alice: create view low as select a, b from w => CREATE VIEW
         alice: create view high as select *, a + 1 as more from low x => CREATE VIEW
         alice: create view whole as select x.* is null as nothing, low.b from low x join low using (a) => CREATE VIEW
         alice: create or replace view low as select a, b, 'new' as c from w => CREATE VIEW
         alice: select * from high => 2|two|3
         alice: select * from whole => f|two
         alice: select c from low => new",
    );
}

#[test]
fn a_views_columns_have_defaults_of_their_own() {
    let fixture = Fixture::new(
        "create table t (a int default 1, b text default 'tab', c int generated always as (a * 2) stored);
         create view v1 as select b, a, c from t; create view v2 as select a as x, b as y from v1",
    );
    let mut s = fixture.session();
    assert_eq!(
        run(&mut s, "alter view v1 alter column b set default 'one'"),
        "ALTER VIEW"
    );
    run(
        &mut s,
        "insert into v1 default values; insert into v1 (a) values (2); insert into v1 values (default, 3)",
    );
    run(
        &mut s,
        "insert into v1 (a) select 4; insert into v2 (x) values (5)",
    );
    run(
        &mut s,
        "alter view v2 alter y set default 'two'; insert into v2 (x) values (6)",
    );
    assert_eq!(run(&mut s, "alter table v1 alter b drop default"), "ALTER TABLE");
    run(
        &mut s,
        "insert into v1 (a) values (7); insert into v2 (x) values (8)",
    );
    assert_eq!(
        query(&mut s, "select a, b from t order by a"),
        "1|one, 2|one, 3|one, 4|one, 5|one, 6|two, 7|tab, 8|two"
    );
    run(
        &mut s,
        "update v2 set y = default where x = 1; update v1 set b = default where a = 2",
    );
    assert_eq!(
        query(&mut s, "select a, b from t where a < 3 order by a"),
        "1|two, 2|"
    );
    // A default is a value that is given.
    run(&mut s, "alter view v1 alter c set default 100");
    assert_eq!(run(&mut s, "insert into v1 (a) values (9)"), "ERROR 428C9");
    run(&mut s, "alter view v1 alter c drop default");
    run(&mut s, "alter view v1 alter a set default 10");
    run(
        &mut s,
        "create or replace view v1 as select b, a, c from t where a > 0",
    );
    assert_eq!(query(&mut s, "insert into v1 (b) values ('z') returning a"), "10");
    assert_eq!(
        query(
            &mut s,
            "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'v1'::regclass"
        ),
        "10"
    );
    assert_eq!(
        run(&mut s, "alter view v1 alter nothing set default 1"),
        "ERROR 42703"
    );
}
