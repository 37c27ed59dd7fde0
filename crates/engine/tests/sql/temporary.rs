//! Temporary tables: whose they are, how long they are there, and what they do beside the tables that all share.

use std::collections::BTreeSet;

use clearway_engine::Engine;

use crate::common::{Fixture, error, run};

fn relations(engine: &Engine) -> BTreeSet<u32> {
    let listed = engine.storage().list_rels().unwrap();
    listed.into_iter().map(|rel| rel.0).collect()
}

#[test]
fn each_session_has_its_own() {
    let fixture = Fixture::new("create table t (v text); insert into t values ('shared')");
    fixture.play(
        "alice: create temp table t (v text) => CREATE TABLE
         alice: insert into t values ('of alice') => INSERT 0 1
         bob:   select v from t => shared
         bob:   create temp table t (v text, w int) => CREATE TABLE
         bob:   insert into t values ('of bob', 1) => INSERT 0 1
         alice: select v from t => of alice
         bob:   select v from t => of bob
         bob:   select count(*) from pg_class where relname = 't' => 2
         bob:   drop table t => DROP TABLE
         bob:   select v from t => shared
         alice: select v from t => of alice
         carol: select v from t => shared
         carol: select count(*) from pg_class where relpersistence = 't' => 0",
    );
}

#[test]
fn they_are_gone_with_their_session() {
    let fixture = Fixture::new("create table t (v text)");
    let before = relations(&fixture.engine);
    let mut session = fixture.session();
    run(
        &mut session,
        "create temp table a (id serial primary key, v text unique)",
    );
    run(
        &mut session,
        "insert into a (v) select g::text from generate_series(1, 1000) g",
    );
    run(&mut session, "analyze a");
    run(&mut session, "begin");
    run(&mut session, "create temp table b (id int)");
    assert!(relations(&fixture.engine).len() > before.len());
    drop(session);
    assert_eq!(relations(&fixture.engine), before);
}

#[test]
fn kept_plans_see_them_come_and_go() {
    let fixture = Fixture::new("create table t (v text); insert into t values ('shared')");
    fixture.play(
        "alice: prepare p as select v from t => PREPARE
         alice: execute p => shared
         alice: create temp table t (v text) => CREATE TABLE
         alice: execute p =>
         alice: insert into t values ('own') => INSERT 0 1
         alice: execute p => own
         alice: set search_path to public, pg_temp => SET
         alice: execute p => shared
         alice: reset search_path => RESET
         alice: drop table t => DROP TABLE
         alice: execute p => shared",
    );
}

#[test]
fn what_others_define_is_seen_beside_them() {
    let fixture = Fixture::new("create table t (v text)");
    fixture.play(
        "alice: create temp table own (a int) => CREATE TABLE
         alice: insert into own values (1) => INSERT 0 1
         bob:   create table later (a int) => CREATE TABLE
         bob:   insert into later values (2) => INSERT 0 1
         alice: select own.a, later.a from own, later => 1|2
         bob:   drop table later => DROP TABLE
         alice: select a from later => ERROR 42P01
         alice: create table shared (a int) => CREATE TABLE
         bob:   create index shared_a on shared (a) => CREATE INDEX
         bob:   select a from own => ERROR 42P01
         alice: analyze shared => ANALYZE
         bob:   create table another (a int) => CREATE TABLE
         alice: create table last (a int) => CREATE TABLE
         bob:   select count(*) from another, last, shared => 0
         alice: select indexname from pg_indexes where tablename = 'shared' => shared_a
         alice: select a from own => 1",
    );
}

#[test]
fn they_do_not_wait_for_the_definitions_of_others() {
    let fixture = Fixture::new("");
    fixture.play(
        "bob:   begin => BEGIN
         bob:   create table t (a int) => CREATE TABLE
         alice: create temp table t (a int primary key) => CREATE TABLE
         alice: create index on t (a) => CREATE INDEX
         alice: truncate t => TRUNCATE TABLE
         alice: drop table t => DROP TABLE
         bob:   commit => COMMIT",
    );
}

#[test]
fn they_have_no_comments() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    run(&mut session, "create temp table t (a int)");
    let refused = error(&mut session, "comment on table t is 'mine'");
    assert_eq!(refused.sqlstate().as_str(), "0A000");
}

#[test]
fn a_text_that_comes_again_may_have_other_columns() {
    let fixture = Fixture::new("create table t (v text); insert into t values ('shared')");
    fixture.play(
        "alice: select * from t => shared
         alice: select * from t => shared
         alice: select * from t => shared
         alice: create temp table t (a int, b int) => CREATE TABLE
         alice: insert into t values (1, 2) => INSERT 0 1
         alice: select * from t => 1|2
         alice: set search_path to public, pg_temp => SET
         alice: select * from t => shared
         alice: reset search_path => RESET
         alice: select * from t => 1|2
         alice: discard temp => DISCARD TEMP
         alice: select * from t => shared",
    );
}

/// The planner knows their size, as that of any other table, before they are analyzed.
#[test]
fn their_rows_are_counted() {
    let fixture = Fixture::new("");
    let count = "select reltuples from pg_class where relname = 't'";
    fixture.play(&format!(
        "alice: create temp table t (a int) => CREATE TABLE
         alice: insert into t select generate_series(1, 1000) => INSERT 0 1000
         alice: {count} => 1000
         alice: begin => BEGIN
         alice: insert into t select generate_series(1, 500) => INSERT 0 500
         alice: rollback => ROLLBACK
         alice: {count} => 1000
         alice: delete from t where a > 200 => DELETE 800
         alice: {count} => 200
         alice: drop table t => DROP TABLE
         alice: create temp table t (a int) on commit delete rows => CREATE TABLE
         alice: insert into t select generate_series(1, 1000) => INSERT 0 1000
         alice: {count} => 0
         alice: create table shared (a int) => CREATE TABLE
         alice: insert into shared select generate_series(1, 1000) => INSERT 0 1000
         bob:   select reltuples from pg_class where relname = 'shared' => 1000",
    ));
}

#[test]
fn a_table_that_is_emptied_is_not_referenced_by_one_that_is_not() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    run(&mut s, "begin");
    run(
        &mut s,
        "create temp table one (a int primary key) on commit delete rows",
    );
    run(&mut s, "create temp table two (a int references one)");
    let refused = error(&mut s, "commit");
    assert_eq!(refused.sqlstate().as_str(), "0A000");
    assert_eq!(
        refused.message(),
        "unsupported ON COMMIT and foreign key combination"
    );
    run(&mut s, "begin");
    run(
        &mut s,
        "create temp table one (a int primary key) on commit delete rows",
    );
    run(
        &mut s,
        "create temp table two (a int references one) on commit delete rows",
    );
    assert_eq!(run(&mut s, "commit"), "COMMIT");
}
