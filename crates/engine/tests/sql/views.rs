//! Views: what their names mean, what becomes of plans, and what is refused.

use clearway_engine::{Collected, Engine};

use crate::common::{Fixture, config, error, query, run};

const SETUP: &str = "create table t (a int primary key, b text); insert into t values (1, 'one'), (2, 'two');
    create view v as select * from t where a > 1; create view w as select b, a from v";

#[test]
fn views_are_there_after_a_restart() {
    let fixture = Fixture::new(SETUP);
    query(
        &mut fixture.session(),
        "comment on view w is 'above'; alter view v rename to low",
    );
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    let engine = Engine::open(directory.path(), config()).unwrap();
    let fixture = Fixture { engine, directory };
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
         alice: create temp view v as select 1 as x => ERROR 0A000
         alice: create recursive view v (x) as select 1 => ERROR 0A000
         alice: create view v as select '{}' as x => ERROR 54000
         alice: create view nowhere.v as select 1 as x => ERROR 3F000
         alice: create view v as select a from t => CREATE VIEW
         alice: create view w as select a from v => CREATE VIEW
         alice: alter view v rename column a to b => ERROR 0A000
         alice: alter view w rename column a to b => ALTER VIEW
         alice: create or replace view v as select b as a from w => ERROR 42P17",
        "x".repeat(8_000)
    ));
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
