//! Definitions that change under readers.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clearway_engine::{Collected, Completion, SessionInfo, Value};

use crate::common::{error, query, run};
use crate::pair::{PATIENCE, Pair, wait_until};

const SETUP: &str = "create table t (id int primary key, x int);
    insert into t select g, g * 10 from generate_series(1, 20) g";

#[test]
fn each_change_arrives() {
    let pair = Pair::new(SETUP);
    let mut reader = pair.reader();
    // Kept over all changes: it is planned again when it has to be.
    let by_x = reader.prepare("select id from t where x = 30", &[]).unwrap();
    let ids = |reader: &mut clearway_engine::Session| {
        let mut out = Collected::default();
        reader.execute(&by_x, &[], 0, &mut out).unwrap();
        reader.sync().unwrap();
        out.rows
    };
    assert_eq!(ids(&mut reader), [[Value::Int4(3)]]);

    pair.write("create index t_x on t (x)");
    pair.catch_up();
    assert!(query(&mut reader, "explain select id from t where x = 30").contains("t_x"));
    assert_eq!(ids(&mut reader), [[Value::Int4(3)]]);

    pair.write("drop index t_x");
    pair.catch_up();
    assert!(!query(&mut reader, "explain select id from t where x = 30").contains("t_x"));
    assert_eq!(ids(&mut reader), [[Value::Int4(3)]]);

    pair.write("alter table t set (fillfactor = 50)");
    pair.write("truncate t; insert into t values (7, 30)");
    pair.catch_up();
    assert_eq!(ids(&mut reader), [[Value::Int4(7)]]);

    // Of the same name, in one transaction.
    pair.write("begin; drop table t; create table t (id int, x int, y text); insert into t values (8, 30, 'new'); commit");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select * from t"), "8|30|new");

    pair.write("begin; create table u (id int); rollback");
    pair.write("create table v (id serial primary key, at int); insert into v (at) values (5)");
    pair.catch_up();
    assert_eq!(error(&mut reader, "select * from u").sqlstate().as_str(), "42P01");
    assert_eq!(query(&mut reader, "select id, at from v"), "1|5");

    pair.write("create type ty as (a int, b int); create table typed of ty; insert into typed values (1, 2)");
    pair.write("alter type ty add attribute c int cascade, drop attribute a cascade");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select * from typed"), "2|");
    assert_eq!(
        query(
            &mut reader,
            "select reloftype::regtype from pg_class where relname = 'typed'"
        ),
        "ty"
    );

    pair.write("create table w (a int, b int); insert into w values (1, 2)");
    pair.write("alter table w drop column a, add column c text default 'x'");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select * from w"), "2|x");
    pair.write("alter table w alter column b type text; alter table w rename column b to d");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select d || c from w"), "2x");

    pair.write("create sequence s increment 5; select nextval('s'); alter sequence s rename to r");
    pair.catch_up();
    let state = "select last_value, is_called from r";
    assert_eq!(query(&mut reader, state), "161|t");
    let nextval = error(&mut reader, "select nextval('r')");
    assert_eq!(nextval.sqlstate().as_str(), "25006");
    pair.write("begin; alter sequence r restart with 100; alter sequence r owned by v.at; commit");
    pair.catch_up();
    assert_eq!(query(&mut reader, state), "100|f");
    assert_eq!(
        query(&mut reader, "select pg_get_serial_sequence('v', 'at')"),
        "public.r"
    );

    // Expressions over rows of a table of the same transaction.
    pair.write(
        "begin; create table part (a int); create domain positive as part check ((value).a > 0); \
         create table whole (p positive, check ((row(1)::part).a > 0)); insert into whole values (row(3)); commit",
    );
    pair.catch_up();
    assert_eq!(query(&mut reader, "select p from whole"), "(3)");
    // And with a type of that transaction, which is known before the rows are.
    pair.write(
        "begin; create type weather as enum ('fair'); create table sky (a int); \
         create table seen (w weather, check ((row(1)::sky).a > 0)); insert into seen values ('fair'); commit",
    );
    pair.catch_up();
    assert_eq!(query(&mut reader, "select w from seen"), "fair");

    pair.write("drop table t");
    pair.catch_up();
    assert_eq!(error(&mut reader, "select * from t").sqlstate().as_str(), "42P01");

    pair.write("comment on table v is 'first'; comment on column v.at is 'second'");
    pair.write("comment on table v is 'third'");
    pair.catch_up();
    let comments = "select objsubid, description from pg_description order by 1";
    assert_eq!(query(&mut reader, comments), "0|third, 2|second");
    pair.write("comment on column v.at is null; drop table v");
    pair.catch_up();
    assert_eq!(query(&mut reader, comments), "");

    // The files are those of the primary: none is left of what was dropped and rolled back.
    let rels = |engine: &clearway_engine::Engine| engine.storage().list_rels().unwrap();
    assert_eq!(rels(pair.standby()), rels(&pair.primary));
}

/// Statistics are there for the standby's planner, and its readers are not in the way.
#[test]
fn statistics_arrive_beside_a_reader() {
    let pair = Pair::new(SETUP);
    let mut reader = pair.reader();
    query(&mut reader, "begin; select * from t");
    for target in [10, 20] {
        pair.write(&format!("set default_statistics_target = {target}"));
        pair.write("analyze t");
    }
    pair.catch_up();
    query(&mut reader, "select * from t");
    query(&mut reader, "commit");
    let shown = "select n_distinct, histogram_bounds from pg_stats where attname = 'id'";
    assert_eq!(
        query(&mut reader, shown),
        "-1|{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}"
    );
    let rels = |engine: &clearway_engine::Engine| engine.storage().list_rels().unwrap();
    assert_eq!(rels(pair.standby()), rels(&pair.primary));
    assert_eq!(error(&mut reader, "analyze t").sqlstate().as_str(), "25006");
}

#[test]
fn schemas_arrive_with_their_tables() {
    let pair = Pair::new(SETUP);
    let mut reader = pair.reader();
    pair.write("create schema s; create table s.t (id int primary key); insert into s.t values (100)");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select id from s.t"), "100");
    assert_eq!(query(&mut reader, "select max(id) from t"), "20");
    query(&mut reader, "set search_path to s, r");
    assert_eq!(query(&mut reader, "select id from t"), "100");
    pair.write("alter schema s rename to r");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select id from r.t"), "100");
    assert_eq!(query(&mut reader, "select id from t"), "100");
    assert_eq!(
        error(&mut reader, "select id from s.t").sqlstate().as_str(),
        "42P01"
    );
    assert_eq!(error(&mut reader, "create schema u").sqlstate().as_str(), "25006");
    pair.write("create table early (id serial primary key, y int unique nulls not distinct)");
    pair.write("alter table early set schema r; insert into r.early (y) values (null)");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select id, y from early"), "1|");
    assert_eq!(
        query(
            &mut reader,
            "select relname from pg_class where relnamespace = 'r'::regnamespace and relname ~ '^early' order by 1"
        ),
        "early, early_id_seq, early_pkey, early_y_key"
    );
    assert_eq!(
        error(&mut reader, "select id from public.early")
            .sqlstate()
            .as_str(),
        "42P01"
    );
    pair.write("drop schema r cascade; drop schema public cascade");
    pair.catch_up();
    assert_eq!(
        error(&mut reader, "select id from r.t").sqlstate().as_str(),
        "42P01"
    );
    assert_eq!(
        query(&mut reader, "select count(*) from pg_namespace where oid >= 2200"),
        "1"
    );
    pair.write("create schema public; create table t (id int)");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select count(*) from public.t"), "0");
}

/// A standby has no file of the primary's temporary tables, whatever becomes of them: not when they are made, nor for the
/// relations that each commit gives them anew. Nor has one that starts again in the middle, or that is promoted.
#[test]
fn temporary_tables_of_the_primary_have_no_files_here() {
    let mut pair = Pair::new(SETUP);
    let rels = |engine: &clearway_engine::Engine| engine.storage().list_rels().unwrap();
    let lasting = rels(&pair.primary);
    let mut writer = pair.writer();
    run(
        &mut writer,
        "create temp table t (id serial primary key, v text); \
         create temp table emptied (a int primary key, b int) on commit delete rows; create index on emptied (b); \
         create temp view of_t as select v from t",
    );
    for round in 0..3 {
        run(
            &mut writer,
            "insert into t (v) select g::text from generate_series(1, 1000) g; \
             update t set v = v || '!' where id % 3 = 0; truncate emptied; analyze t",
        );
        for row in 0..10 {
            run(&mut writer, &format!("insert into emptied values ({row}, 1)"));
        }
        run(
            &mut writer,
            "begin; create temp table more (a int) on commit drop; insert into more values (1); commit",
        );
        if round == 1 {
            // What is replayed from the restartpoint on tells of pages of relations that are not here.
            pair.write("checkpoint");
            pair.catch_up();
            pair.close_standby(true);
            pair.open_standby();
        }
        pair.catch_up();
        assert_eq!(rels(pair.standby()), lasting, "round {round}");
        let mut reader = pair.reader();
        assert_eq!(query(&mut reader, "select count(*) from t"), "20");
        assert_eq!(
            query(
                &mut reader,
                "select count(*) from pg_class where relpersistence = 't'"
            ),
            "0"
        );
        assert_eq!(
            error(&mut reader, "create temp table u (a int)")
                .sqlstate()
                .as_str(),
            "25006"
        );
    }
    assert_eq!(query(&mut writer, "select count(*) from t"), "3000");
    assert!(rels(&pair.primary).len() > lasting.len());
    // A view, whose number is that of a relation without a file.
    pair.write("create table last (a int); create view of_last as select a from last");
    drop(writer);
    pair.catch_up();
    assert_eq!(rels(pair.standby()), rels(&pair.primary));
    let newest = *rels(&pair.primary).last().unwrap();
    pair.cut();
    pair.standby().promote("a test").unwrap();
    let mut promoted = pair.reader();
    run(
        &mut promoted,
        "create table after (a int); create temp table own (a int)",
    );
    assert!(rels(pair.standby()).last().is_some_and(|rel| *rel > newest));
    assert_eq!(query(&mut promoted, "select count(*) from t"), "20");
}

/// Many tables in one transaction, and rows of the definitions that move.
#[test]
fn many_changes_arrive_in_one_commit() {
    let pair = Pair::new(SETUP);
    for round in 0..5 {
        let mut sql = "begin;".to_owned();
        for table in 0..30 {
            sql.push_str(&format!(
                "drop table if exists w{table}; create table w{table} (r{round} int);"
            ));
        }
        pair.write(&format!("{sql} commit"));
        pair.write("vacuum");
    }
    pair.catch_up();
    let mut reader = pair.reader();
    for table in 0..30 {
        assert_eq!(query(&mut reader, &format!("select r4 from w{table}")), "");
    }
}

/// The same tables, indexes and files on both.
#[track_caller]
fn assert_same_definitions(pair: &Pair) {
    pair.catch_up();
    let defined = "select tablename, indexname, indexdef from pg_indexes order by 2";
    assert_eq!(
        query(&mut pair.reader(), defined),
        query(&mut pair.writer(), defined)
    );
    let rels = |engine: &clearway_engine::Engine| engine.storage().list_rels().unwrap();
    assert_eq!(rels(pair.standby()), rels(&pair.primary));
}

/// Tables are made, changed, dropped, and rolled back, over many pages of definitions, of which a commit looks only at those
/// that it has changed. The standby is away now and then, once while a transaction has changed definitions and not ended: no
/// record tells the new start of that change.
#[test]
fn each_commit_finds_all_that_it_has_changed() {
    let mut pair = Pair::new(SETUP);
    let made = |number: usize| format!("create table m{number} (id serial primary key, note text)");
    for number in 0..90_usize {
        let before = number.saturating_sub(1);
        match number % 6 {
            1 => pair.write(&format!("create index m_note{number} on m{before} (note)")),
            2 => pair.write(&format!(
                "truncate m0 restart identity; drop table if exists m{before}"
            )),
            3 => pair.write(&format!(
                "begin; {}; drop table m0; rollback",
                made(1_000 + number)
            )),
            4 => pair.write("vacuum"),
            5 => pair.write("alter table m0 set (fillfactor = 70)"),
            _ => {}
        }
        pair.write(&made(number));
        if number % 9 == 0 {
            assert_same_definitions(&pair);
        }
        if number % 30 == 20 {
            pair.close_standby(number % 60 == 20);
            pair.open_standby();
        }
    }
    assert_same_definitions(&pair);

    let mut alice = pair.writer();
    run(
        &mut alice,
        "begin; create table slow (id int primary key); drop table m5",
    );
    pair.write("checkpoint");
    pair.catch_up();
    run(&mut pair.reader(), "checkpoint");
    pair.close_standby(false);
    pair.open_standby();
    // Bob's commit comes first, and is no change of definitions.
    pair.write("update t set x = 1 where id = 1");
    run(&mut alice, "commit");
    assert_same_definitions(&pair);
    assert_eq!(query(&mut pair.reader(), "select count(*) from slow"), "0");
    assert_eq!(
        error(&mut pair.reader(), "select * from m5").sqlstate().as_str(),
        "42P01"
    );
    pair.write("drop table slow");
    assert_same_definitions(&pair);
}

/// A reader in the middle of a table: the table is dropped when it is done, and its file is there until then. Other
/// sessions that come meanwhile wait behind replay.
#[test]
fn a_table_is_dropped_when_its_readers_are_done() {
    let pair = Pair::new(SETUP);
    pair.catch_up();
    let mut reader = pair.reader();
    let all = reader.prepare("select id from t order by id", &[]).unwrap();
    run(&mut reader, "begin");
    let mut out = Collected::default();
    let Completion::Suspended(portal) = reader.execute(&all, &[], 3, &mut out).unwrap() else {
        panic!("all rows came at once");
    };
    pair.write("drop table t");
    let end = pair.logged();
    assert!(
        !pair.has_replayed(end, Duration::from_millis(150)),
        "replay did not wait"
    );
    let mut late = pair.reader();
    let waiting = thread::spawn(move || error(&mut late, "select count(*) from t"));
    wait_until("the other session queues", || {
        let activity = pair.standby().activity();
        activity
            .iter()
            .any(|session| session.wait_event == Some("relation"))
    });
    reader.resume(portal, 0, &mut out).unwrap();
    assert_eq!(out.rows.len(), 20);
    assert!(
        !pair.has_replayed(end, Duration::from_millis(50)),
        "the transaction still has the lock"
    );
    run(&mut reader, "commit");
    assert!(pair.has_replayed(end, PATIENCE));
    assert_eq!(waiting.join().unwrap().sqlstate().as_str(), "42P01");
}

/// An index that is added keeps no reader waiting, and no reader keeps it waiting.
#[test]
fn an_index_is_added_under_a_reader() {
    let pair = Pair::new(SETUP);
    let mut reader = pair.reader();
    run(&mut reader, "begin; select * from t");
    pair.write("create index t_x on t (x)");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select id from t where x = 30"), "3");
    assert!(query(&mut reader, "explain select id from t where x = 30").contains("t_x"));
}

/// A snapshot from before a TRUNCATE and from before an index: the table cannot be read with it any more, as on the
/// primary.
#[test]
fn an_old_snapshot_is_turned_away() {
    let pair = Pair::new(&format!("{SETUP}; create table other (id int)"));
    for sql in ["truncate t", "create index t_x on t (x)"] {
        let mut reader = pair.reader();
        run(
            &mut reader,
            "begin isolation level repeatable read; select * from other",
        );
        pair.write(sql);
        pair.catch_up();
        let error = error(&mut reader, "select count(*) from t");
        assert_eq!(error.sqlstate().as_str(), "40001", "{sql}");
        assert!(error.message().contains("redefined"), "{error}");
    }
    // What only takes something away can be read by it.
    let mut reader = pair.reader();
    run(
        &mut reader,
        "begin isolation level repeatable read; select * from other",
    );
    pair.write("drop index t_x");
    pair.catch_up();
    assert_eq!(query(&mut reader, "select count(*) from t"), "0");
}

/// Indexes that were made and dropped beside writers: readers find them when they are whole, and an older snapshot is turned
/// away where it would miss rows.
#[test]
fn an_index_made_beside_writers_arrives() {
    let pair = Pair::new(SETUP);
    let mut reader = pair.reader();
    let stage = "select indisvalid, indisready from pg_index i join pg_class c on c.oid = indexrelid \
        where relname = 't_x'";
    let (mut alice, mut bob, mut carol) = (pair.writer(), pair.writer(), pair.writer());
    query(&mut alice, "begin; insert into t values (21, 210)");
    let primary = Arc::clone(&pair.primary);
    let create = thread::spawn(move || {
        let mut session = primary.session(SessionInfo::default()).unwrap();
        run(&mut session, "create index concurrently t_x on t (x)")
    });
    wait_until("the index is being built", || {
        query(&mut pair.writer(), stage) == "f|f"
    });
    // They know of the index, and enter nothing into it. Bob's row is there for a snapshot of between, and for no later one.
    query(&mut bob, "begin; insert into t values (22, 220)");
    query(&mut carol, "begin; insert into t values (23, 230)");
    query(&mut alice, "commit");
    wait_until("the index is written", || {
        query(&mut pair.writer(), stage) == "f|t"
    });
    query(&mut bob, "commit");
    pair.catch_up();
    let mut older = pair.reader();
    query(
        &mut older,
        "begin isolation level repeatable read; select count(*) from t",
    );
    pair.write("delete from t where id = 22");
    query(&mut carol, "commit");
    assert_eq!(create.join().unwrap(), "CREATE INDEX");
    pair.catch_up();
    let by_index = "set enable_seqscan = off; select id from t where x = 30";
    assert_eq!(query(&mut reader, by_index), "3");
    assert!(query(&mut reader, "explain select id from t where x = 30").contains("t_x"));
    assert_eq!(error(&mut older, by_index).sqlstate().as_str(), "40001");
    query(&mut older, "rollback");
    assert_eq!(query(&mut reader, stage), "t|t");
    pair.write("reindex table concurrently t");
    pair.catch_up();
    assert_eq!(query(&mut reader, by_index), "3");
    pair.write("drop index concurrently t_x");
    pair.catch_up();
    assert_eq!(query(&mut reader, stage), "");
    assert_eq!(query(&mut reader, by_index), "3");
    // One that fails.
    pair.write("update t set x = 1 where id < 3");
    let failed = error(
        &mut pair.writer(),
        "create unique index concurrently t_x on t (x)",
    );
    assert_eq!(failed.sqlstate().as_str(), "23505");
    pair.catch_up();
    assert_eq!(query(&mut reader, stage), "f|f");
    pair.write("drop index t_x");
    pair.catch_up();
    assert_eq!(query(&mut reader, stage), "");
}
