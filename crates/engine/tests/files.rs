//! The files of tables and indexes: they come and go with transactions, and none is missing without a word.

mod common;

use std::collections::BTreeSet;
use std::fs;

use clearway_engine::Engine;
use common::{Fixture, config, query, run};

/// The relations that have files.
fn relations(fixture: &Fixture) -> BTreeSet<u32> {
    let names = fs::read_dir(fixture.directory.path().join("base")).unwrap();
    names
        .filter_map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().ok())
        .collect()
}

#[test]
fn files_come_and_go_with_transactions() {
    let fixture =
        Fixture::new("create table kept (i int primary key, s serial); insert into kept values (1)");
    let mut session = fixture.session();
    let before = relations(&fixture);
    query(
        &mut session,
        "begin; create table undone (i int primary key, s serial)",
    );
    query(
        &mut session,
        "insert into undone values (1); create index on kept (s)",
    );
    assert_eq!(relations(&fixture).len(), before.len() + 4);
    query(&mut session, "rollback");
    assert_eq!(relations(&fixture), before);
    query(&mut session, "create table made (i int primary key, s serial)");
    assert_eq!(relations(&fixture).len(), before.len() + 3);
    query(&mut session, "begin; drop table made; rollback");
    assert_eq!(query(&mut session, "select count(*) from made"), "0");
    query(&mut session, "drop table made");
    assert_eq!(relations(&fixture), before);
    query(&mut session, "begin; truncate kept");
    assert_eq!(query(&mut session, "select count(*) from kept"), "0");
    query(&mut session, "rollback");
    assert_eq!(relations(&fixture), before);
    assert_eq!(query(&mut session, "select i from kept where i = 1"), "1");
    query(&mut session, "create index extra on kept (s)");
    assert_eq!(relations(&fixture).len(), before.len() + 1);
    query(&mut session, "drop index extra");
    assert_eq!(relations(&fixture), before);
    query(&mut session, "truncate kept");
    assert_eq!(relations(&fixture).len(), before.len());
    assert_eq!(
        query(&mut session, "insert into kept values (2) returning *"),
        "2|2"
    );
}

/// A file that is made behind a savepoint and taken back goes at the end of the transaction, however it ends; one that was to go stays.
#[test]
fn files_of_what_a_savepoint_takes_back_go_at_the_end() {
    let fixture =
        Fixture::new("create table kept (i int primary key, s serial); insert into kept values (1)");
    let mut session = fixture.session();
    let before = relations(&fixture);
    for end in ["commit", "rollback"] {
        for sql in [
            "begin",
            "savepoint outer_one",
            "create table undone (i int primary key, s serial)",
            "savepoint inner_one",
            "truncate kept",
            "create index on kept (s)",
            "rollback to inner_one",
            "drop table kept",
            "create temp table fleeting (i int)",
            "insert into undone values (1)",
            "rollback to outer_one",
            "insert into kept values (2)",
            "delete from kept where i = 2",
            end,
        ] {
            query(&mut session, sql);
        }
        assert_eq!(relations(&fixture), before, "{end}");
        assert_eq!(query(&mut session, "select i from kept where i > 0"), "1");
        assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn a_start_removes_what_no_table_owns_and_misses_what_one_does() {
    let fixture = Fixture::new("create table t (i int primary key); insert into t values (7)");
    let before = relations(&fixture);
    let mut session = fixture.session();
    query(&mut session, "create table dropped (i int)");
    let added = *relations(&fixture).difference(&before).next().unwrap();
    let base = fixture.directory.path().join("base");
    let copy = fixture.directory.path().join("copy");
    fs::copy(base.join(added.to_string()), &copy).unwrap();
    query(&mut session, "drop table dropped");
    drop(session);
    let Fixture { engine, directory } = fixture;
    engine.shutdown().unwrap();
    drop(engine);
    // A file of a number that was handed out, as a crash before the end of the drop leaves it.
    fs::copy(&copy, base.join(added.to_string())).unwrap();
    // One that this database cannot have made stays.
    fs::copy(&copy, base.join("4000000000")).unwrap();
    let fixture = Fixture {
        engine: Engine::open(directory.path(), config()).unwrap(),
        directory,
    };
    let after = relations(&fixture);
    assert!(after.contains(&4_000_000_000));
    assert_eq!(
        after
            .iter()
            .filter(|rel| **rel != 4_000_000_000)
            .copied()
            .collect::<BTreeSet<_>>(),
        before
    );
    assert_eq!(query(&mut fixture.session(), "select * from t"), "7");
    let Fixture { engine, directory } = fixture;
    engine.shutdown().unwrap();
    drop(engine);
    // Each file of the table is missed: its rows, and its index.
    for rel in before.iter().rev().take(2) {
        let (file, away) = (base.join(rel.to_string()), base.join("away"));
        fs::rename(&file, &away).unwrap();
        let refused = Engine::open(directory.path(), config()).unwrap_err();
        assert_eq!(refused.sqlstate().as_str(), "XX001", "{refused}");
        fs::rename(&away, &file).unwrap();
    }
    let engine = Engine::open(directory.path(), config()).unwrap();
    let fixture = Fixture { engine, directory };
    assert_eq!(query(&mut fixture.session(), "select * from t where i = 7"), "7");
}

#[test]
fn a_vacuum_takes_dead_rows_away_but_none_that_a_snapshot_sees() {
    let fixture = Fixture::with_config(
        "create table t (i int primary key, v text); create table u (i int);
         insert into t select g, repeat('x', 200) from generate_series(1, 300) g",
        clearway_engine::Config {
            autovacuum: false,
            ..config()
        },
    );
    let (mut session, mut reader) = (fixture.session(), fixture.session());
    let mut counts = || {
        query(
            &mut session,
            "select n_live_tup, n_dead_tup from pg_stat_user_tables where relname = 't'",
        )
    };
    assert_eq!(counts(), "300|0");
    query(&mut reader, "begin isolation level repeatable read");
    assert_eq!(query(&mut reader, "select count(*) from t"), "300");
    let mut writer = fixture.session();
    assert_eq!(query(&mut writer, "delete from t where i > 100"), "DELETE 200");
    assert_eq!(
        query(&mut writer, "update t set v = 'y' where i <= 50"),
        "UPDATE 50"
    );
    assert_eq!(counts(), "100|200");
    query(&mut writer, "begin; delete from t; update u set i = 1; rollback");
    query(&mut writer, "vacuum t");
    assert_eq!(
        query(&mut reader, "select count(*), count(distinct v), max(i) from t"),
        "300|1|300"
    );
    assert_eq!(query(&mut reader, "select i from t where i = 250"), "250");
    query(&mut reader, "commit");
    fixture.engine.vacuum().unwrap();
    assert_eq!(counts(), "100|0");
    assert_eq!(
        query(&mut writer, "select count(*), count(distinct v), max(i) from t"),
        "100|2|100"
    );
    assert_eq!(
        run(&mut writer, "insert into t values (250, 'again')"),
        "INSERT 0 1"
    );
    assert_eq!(query(&mut reader, "select v from t where i = 250"), "again");
}

#[test]
fn the_background_vacuum_comes_by_itself() {
    let fixture = Fixture::with_config(
        "create table t (i int primary key); insert into t select g from generate_series(1, 200) g",
        clearway_engine::Config {
            autovacuum_naptime: "5ms".parse().unwrap(),
            autovacuum_vacuum_threshold: 20,
            autovacuum_vacuum_scale_factor: 0.1,
            ..config()
        },
    );
    let mut session = fixture.session();
    assert_eq!(query(&mut session, "delete from t where i > 100"), "DELETE 100");
    let dead = "select n_live_tup, n_dead_tup from pg_stat_user_tables where relname = 't'";
    let start = std::time::Instant::now();
    while query(&mut session, dead) != "100|0" {
        assert!(start.elapsed() < std::time::Duration::from_secs(60));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn tables_that_have_changed_are_analyzed_by_themselves() {
    let fixture = Fixture::with_config(
        "create table t (i int); create table still (i int)",
        clearway_engine::Config {
            autovacuum_naptime: "5ms".parse().unwrap(),
            autovacuum_analyze_threshold: 100,
            autovacuum_analyze_scale_factor: 0.5,
            ..config()
        },
    );
    let mut session = fixture.session();
    let mut until = |sql: &str, wanted: &str| {
        let start = std::time::Instant::now();
        loop {
            let found = query(&mut session, sql);
            if found == wanted {
                break;
            }
            assert!(
                start.elapsed() < std::time::Duration::from_secs(60),
                "{sql}: {found}"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    let mut writer = fixture.session();
    let counts = "select autoanalyze_count, n_mod_since_analyze, last_autoanalyze <= now(), analyze_count, last_analyze \
                  from pg_stat_user_tables where relname = 't'";
    let distinct = "select n_distinct from pg_stats where tablename = 't'";
    query(
        &mut writer,
        "insert into still select g from generate_series(1, 100) g",
    );
    query(
        &mut writer,
        "begin; insert into t select 1 from generate_series(1, 1000) g; rollback",
    );
    until(counts, "0|0||0|");
    query(
        &mut writer,
        "insert into t select g % 10 from generate_series(1, 1000) g",
    );
    until(counts, "1|0|t|0|");
    until(distinct, "10");
    // Half of 1,000 and 100 more are not yet enough, one more is.
    query(
        &mut writer,
        "update t set i = 77 where i < 2; delete from t where i between 2 and 5",
    );
    until(counts, "1|600|t|0|");
    std::thread::sleep(std::time::Duration::from_millis(50));
    until(counts, "1|600|t|0|");
    query(
        &mut writer,
        "insert into t select 78 from generate_series(1, 64) g",
    );
    until(counts, "2|0|t|0|");
    until(distinct, "6");
    until(
        "select autoanalyze_count, n_mod_since_analyze from pg_stat_user_tables where relname = 'still'",
        "0|100",
    );
    query(&mut writer, "analyze still (i)");
    until(
        "select analyze_count, n_mod_since_analyze from pg_stat_user_tables where relname = 'still'",
        "1|100",
    );
    query(&mut writer, "analyze");
    until(
        "select analyze_count, n_mod_since_analyze from pg_stat_user_tables where relname = 'still'",
        "2|0",
    );
}

#[test]
fn a_locked_table_is_vacuumed_another_time() {
    let fixture = Fixture::with_config(
        "create table held (i int); create table t (i int);
         insert into held select g from generate_series(1, 100) g; insert into t select * from held",
        clearway_engine::Config {
            autovacuum_naptime: "5ms".parse().unwrap(),
            autovacuum_vacuum_threshold: 10,
            autovacuum_vacuum_scale_factor: 0.0,
            ..config()
        },
    );
    let (mut session, mut holder) = (fixture.session(), fixture.session());
    query(
        &mut holder,
        "begin; lock table held in share update exclusive mode",
    );
    query(&mut session, "delete from held");
    query(&mut session, "delete from t");
    let mut wait_for = |wanted: &str| {
        let counts = "select relname, autovacuum_count > 0 from pg_stat_user_tables order by 1";
        let start = std::time::Instant::now();
        while query(&mut session, counts) != wanted {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "{wanted}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    wait_for("held|f, t|t");
    query(&mut holder, "commit");
    wait_for("held|t, t|t");
}

#[test]
fn a_locked_table_is_analyzed_another_time() {
    let fixture = Fixture::with_config(
        "create table held (i int); create table t (i int)",
        clearway_engine::Config {
            autovacuum_naptime: "5ms".parse().unwrap(),
            autovacuum_analyze_threshold: 10,
            ..config()
        },
    );
    let (mut session, mut holder, mut third) = (fixture.session(), fixture.session(), fixture.session());
    query(
        &mut holder,
        "begin; lock table held in share update exclusive mode",
    );
    query(
        &mut session,
        "insert into held select g from generate_series(1, 100) g",
    );
    query(
        &mut session,
        "insert into t select g from generate_series(1, 100) g",
    );
    let mut wait_for = |wanted: &str| {
        let counts = "select sum(autoanalyze_count) from pg_stat_user_tables";
        let start = std::time::Instant::now();
        while query(&mut third, counts) != wanted {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "{wanted}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    wait_for("1");
    query(&mut holder, "commit");
    wait_for("2");
}
