//! Indexes that come and go while other sessions write: CREATE INDEX, REINDEX and DROP INDEX CONCURRENTLY.
//!
//! Mutations of the steps (`mutations/concurrent_index.toml`): each wait taken out, the missing rows not entered, HOT updates
//! that do not count an unfinished index, writers that do not enter their rows into one.

mod common;
#[path = "../../storage/tests/support/copied_log.rs"]
mod copied_log;
#[path = "../../storage/tests/support/set_on_drop.rs"]
mod set_on_drop;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use clearway_engine::{Engine, Session, SessionInfo};
use clearway_machine::Watchdog;
use common::{Fixture, config, error, query, reset_statement_timeout, run};
use set_on_drop::SetOnDrop;

const STAGES: &str = "select c.relname, i.indisvalid, i.indisready, i.indislive from pg_index i \
    join pg_class c on c.oid = i.indexrelid where c.relname like 'by_k%' order by 1";

/// Waits until a statement answers this.
fn wait_for(session: &mut Session, sql: &str, wanted: &str) {
    let start = Instant::now();
    while query(session, sql) != wanted {
        assert!(start.elapsed() < Duration::from_secs(60), "{sql} is not {wanted}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a statement in a session of its own.
fn beside(engine: &Arc<Engine>, sql: &'static str) -> thread::JoinHandle<String> {
    let engine = Arc::clone(engine);
    thread::spawn(move || run(&mut engine.session(SessionInfo::default()).unwrap(), sql))
}

fn assert_sound(fixture: &Fixture) {
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

/// The sum over an index, and over the table.
fn by_index_and_by_table(session: &mut Session) -> [String; 2] {
    [("off", "on"), ("on", "off")].map(|(seq, index)| {
        query(
            session,
            &format!("set enable_seqscan = {seq}; set enable_indexscan = {index}"),
        );
        query(session, "select count(*), sum(k), sum(v) from t where k >= 0")
    })
}

#[test]
fn an_index_is_made_in_steps_that_keep_no_writer_waiting() {
    let _watchdog = Watchdog::over_test();
    let fixture =
        Fixture::new("create table t (id int, k int, v int); insert into t values (1, 10, 1), (2, 20, 2)");
    let (mut alice, mut bob, mut look) = (fixture.session(), fixture.session(), fixture.session());
    let number = query(&mut alice, "select pg_backend_pid()");
    // A chain with two keys, by a transaction that does not know of the index.
    query(&mut alice, "begin; update t set k = 11 where id = 1");
    let create = beside(&fixture.engine, "create index concurrently by_k on t (k)");
    wait_for(&mut look, STAGES, "by_k|f|f|t");
    wait_for(
        &mut look,
        "select pg_blocking_pids(pid) from pg_stat_activity where query like 'create index%'",
        &format!("{{{number}}}"),
    );
    assert_eq!(query(&mut bob, "insert into t values (3, 30, 3)"), "INSERT 0 1");
    assert!(
        !query(
            &mut bob,
            "set enable_seqscan = off; explain select * from t where k = 1"
        )
        .contains("by_k")
    );
    // Carol knows of the index, and does not enter her row yet.
    let mut carol = fixture.session();
    query(&mut carol, "begin; insert into t values (4, 40, 4)");
    query(&mut alice, "insert into t values (5, 50, 5); commit");
    wait_for(&mut look, STAGES, "by_k|f|t|t");
    query(&mut bob, "insert into t values (6, 60, 6)");
    let mut dora = fixture.session();
    query(
        &mut dora,
        "begin isolation level repeatable read; select count(*) from t",
    );
    query(&mut carol, "update t set k = k + 1 where id = 4; commit");
    // Dora's snapshot is one of before.
    thread::sleep(Duration::from_millis(50));
    assert_eq!(query(&mut look, STAGES), "by_k|f|t|t");
    query(&mut dora, "commit");
    assert_eq!(create.join().unwrap(), "CREATE INDEX");
    assert_eq!(query(&mut look, STAGES), "by_k|t|t|t");
    let [by_index, by_table] = by_index_and_by_table(&mut look);
    assert_eq!((by_index.as_str(), by_table.as_str()), ("6|212|21", "6|212|21"));
    assert!(query(&mut bob, "explain select * from t where k = 11").contains("by_k"));
    assert_sound(&fixture);

    // Out again: Alice's plan reads it.
    query(
        &mut alice,
        "begin; set enable_seqscan = off; select * from t where k = 11",
    );
    let drop = beside(&fixture.engine, "drop index concurrently by_k");
    wait_for(&mut look, STAGES, "by_k|f|t|t");
    query(&mut bob, "insert into t values (7, 70, 7)");
    query(&mut alice, "commit");
    assert_eq!(drop.join().unwrap(), "DROP INDEX");
    assert_eq!(query(&mut look, STAGES), "");
    assert_sound(&fixture);
}

/// A row beside another with its key is checked as its constraint says, also while the constraint's index is made anew.
#[test]
fn a_deferred_key_is_checked_by_the_index_that_it_has() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (id int, k int constraint by_k unique deferrable); insert into t values (1, 10), (2, 20)",
    );
    let (mut alice, mut bob, mut look) = (fixture.session(), fixture.session(), fixture.session());
    let number = query(&mut alice, "select pg_backend_pid()");
    query(&mut alice, "begin; insert into t values (3, 30)");
    let reindex = beside(&fixture.engine, "reindex index concurrently by_k");
    wait_for(&mut look, STAGES, "by_k|t|t|t, by_k_ccnew|f|f|t");
    wait_for(
        &mut look,
        "select pg_blocking_pids(pid) from pg_stat_activity where query like 'reindex%'",
        &format!("{{{number}}}"),
    );
    // Bob keeps the new index from being completed, and enters his rows into it when Alice has ended.
    query(&mut bob, "begin; insert into t values (4, 40)");
    query(&mut alice, "commit");
    wait_for(&mut look, STAGES, "by_k|t|t|t, by_k_ccnew|f|t|t");
    let mut carol = fixture.session();
    query(&mut carol, "insert into t values (5, 50), (6, 60)");
    query(&mut carol, "begin; set constraints by_k deferred");
    assert_eq!(query(&mut carol, "update t set k = 60 where id = 5"), "UPDATE 1");
    assert_eq!(query(&mut carol, "update t set k = 50 where id = 6"), "UPDATE 1");
    assert_eq!(query(&mut carol, "commit"), "COMMIT");
    assert_eq!(run(&mut carol, "update t set k = 60 where id = 6"), "ERROR 23505");
    query(&mut bob, "commit");
    assert_eq!(reindex.join().unwrap(), "REINDEX");
    assert_eq!(query(&mut look, STAGES), "by_k|t|t|t");
    assert_eq!(run(&mut carol, "update t set k = 60 where id = 6"), "ERROR 23505");
    assert_eq!(
        query(&mut carol, "update t set k = k + 10 where k >= 50"),
        "UPDATE 2"
    );
    assert_sound(&fixture);
}

/// Alice writes by the definition from before the exchange of the trees, Bob by the one from after it. Each meets the other in
/// the tree that the other has written first, which is not the one that the constraint has for it.
#[test]
fn a_deferred_key_holds_between_definitions_with_either_tree() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (k int constraint by_k unique deferrable initially deferred, id int primary key);
         create table other (id int); insert into t values (10, 1)",
    );
    let (mut bob, mut carol) = (fixture.session(), fixture.session());
    let (mut dan, mut look) = (fixture.session(), fixture.session());
    // Dan's snapshot keeps the new tree from being the constraint's.
    query(
        &mut dan,
        "begin isolation level repeatable read; select count(*) from other",
    );
    let number = query(&mut dan, "select pg_backend_pid()");
    let reindex = beside(&fixture.engine, "reindex index concurrently by_k");
    wait_for(&mut look, STAGES, "by_k|t|t|t, by_k_ccnew|f|t|t");
    wait_for(
        &mut look,
        "select pg_blocking_pids(pid) from pg_stat_activity where query like 'reindex%'",
        &format!("{{{number}}}"),
    );
    // Alice waits for Carol between the first tree and the second.
    query(&mut carol, "begin; insert into t values (90, 2)");
    let alice = beside(&fixture.engine, "insert into t values (30, 2)");
    wait_for(
        &mut look,
        "select count(*) from pg_stat_activity where query like 'insert into t values (30, 2)' \
             and wait_event = 'transactionid'",
        "1",
    );
    query(&mut dan, "commit");
    wait_for(&mut look, STAGES, "by_k|t|t|t, by_k_ccold|f|t|t");
    assert_eq!(query(&mut bob, "insert into t values (30, 3)"), "INSERT 0 1");
    query(&mut carol, "rollback");
    assert_eq!(alice.join().unwrap(), "ERROR 23505");
    assert_eq!(reindex.join().unwrap(), "REINDEX");
    assert_eq!(query(&mut look, "select count(*) from t where k = 30"), "1");
    assert_sound(&fixture);
}

#[test]
fn an_index_that_fails_is_left_behind_and_made_whole_or_dropped() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (id int, k int, v int); insert into t values (1, 1, 1), (2, 1, 2), (3, 3, 3)",
    );
    let mut s = fixture.session();
    let refused = error(&mut s, "create unique index concurrently by_k on t (k)");
    assert_eq!(refused.message(), "could not create unique index \"by_k\"");
    assert_eq!(refused.detail(), Some("Key (k)=(1) is duplicated."));
    assert_eq!(query(&mut s, STAGES), "by_k|f|f|t");
    assert_eq!(run(&mut s, "create index by_k on t (v)"), "ERROR 42P07");
    assert_eq!(run(&mut s, "reindex index by_k"), "ERROR 23505");
    query(&mut s, "delete from t where id = 2");
    assert_eq!(query(&mut s, "reindex index by_k"), "REINDEX");
    assert_eq!(query(&mut s, STAGES), "by_k|t|t|t");
    assert_eq!(run(&mut s, "insert into t values (4, 1, 1)"), "ERROR 23505");

    // Cancelled while it waits for a writer, with the rows there are in it.
    let mut writer = fixture.session();
    query(&mut writer, "begin; insert into t values (5, 5, 5)");
    query(&mut s, "set statement_timeout = '200ms'");
    assert_eq!(
        run(&mut s, "create index concurrently by_kv on t (k, v)"),
        "ERROR 57014"
    );
    reset_statement_timeout(&mut s);
    query(&mut writer, "commit");
    assert_eq!(query(&mut s, STAGES), "by_k|t|t|t, by_kv|f|f|t");
    query(
        &mut s,
        "alter index by_kv rename to by_k2; insert into t values (6, 6, 6)",
    );
    assert_eq!(query(&mut s, "reindex table concurrently t"), "REINDEX");
    assert_eq!(query(&mut s, STAGES), "by_k|t|t|t, by_k2|f|f|t");
    assert_eq!(query(&mut s, "reindex index concurrently by_k2"), "REINDEX");
    assert_eq!(query(&mut s, STAGES), "by_k|t|t|t, by_k2|t|t|t");
    assert_sound(&fixture);
    assert_eq!(query(&mut s, "drop index by_k2"), "DROP INDEX");
    assert_eq!(run(&mut s, "insert into t values (7, 6, 6)"), "ERROR 23505");

    for (sql, code) in [
        ("begin; create index concurrently i on t (v)", "ERROR 25001"),
        ("begin; reindex table concurrently t", "ERROR 25001"),
        ("begin; reindex schema public", "ERROR 25001"),
        ("reindex database other", "ERROR 0A000"),
        ("reindex index t", "ERROR 42809"),
        ("reindex table by_k", "ERROR 42809"),
        ("reindex index missing", "ERROR 42P01"),
        ("reindex schema missing", "ERROR 3F000"),
        ("reindex system concurrently clearway", "ERROR 0A000"),
        ("drop index concurrently by_k, by_k", "ERROR 0A000"),
        ("drop index concurrently by_k cascade", "ERROR 0A000"),
    ] {
        assert_eq!(run(&mut s, sql), code, "{sql}");
        run(&mut s, "rollback");
    }
    assert_eq!(
        query(&mut s, "create index concurrently if not exists by_k on t (v)"),
        "CREATE INDEX"
    );
    assert_eq!(
        query(&mut s, "begin; reindex table t; reindex index by_k; rollback"),
        "BEGIN; REINDEX; REINDEX; ROLLBACK"
    );
    assert_eq!(query(&mut s, "reindex schema public"), "REINDEX");
    assert_sound(&fixture);
}

/// A row that is deleted while the index is made does not stand in the way of another with its key.
#[test]
fn uniqueness_is_that_of_rows_that_are_alive() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (id int, k int);
         insert into t select g, g from generate_series(9, 20000) g;
         insert into t select g, g from generate_series(1, 8) g",
    );
    let stop = Arc::new(AtomicBool::new(false));
    let engine = Arc::clone(&fixture.engine);
    let stopped = Arc::clone(&stop);
    let mover = thread::spawn(move || {
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let mut state = 1;
        while !stopped.load(Ordering::Relaxed) {
            // Few and in no order, so that some move both while the tree is built and while it is completed.
            let k = random(&mut state, 8) + 1;
            let sql = format!("begin; delete from t where k = {k}; insert into t values (0, {k}); commit");
            query(&mut session, &sql);
        }
    });
    let mut s = fixture.session();
    // Behind so many others that the rows in question move while the tree is completed.
    for _ in 0..3 {
        assert_eq!(
            query(&mut s, "create unique index concurrently by_k on t (k)"),
            "CREATE INDEX"
        );
        assert_sound(&fixture);
        assert_eq!(query(&mut s, "drop index concurrently by_k"), "DROP INDEX");
    }
    stop.store(true, Ordering::Relaxed);
    mover.join().unwrap();
}

/// A random number below `below`, by a linear congruence.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn write_at_random(engine: &Arc<Engine>, seed: u64, stop: &AtomicBool) {
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let mut state = seed;
    while !stop.load(Ordering::Relaxed) {
        query(&mut session, "begin");
        for _ in 0..=random(&mut state, 4) {
            let (id, k) = (random(&mut state, 400), random(&mut state, 1_000));
            let sql = match random(&mut state, 8) {
                0 => format!("insert into t values ({id}, {k}, 1)"),
                1 => format!("delete from t where id = {id}"),
                2 | 3 => format!("update t set v = v + 1 where id = {id}"),
                4 => format!("savepoint s; update t set k = {k} where id = {id}; rollback to s"),
                5 => format!("savepoint s; insert into t values ({id}, {k}, 2); release s"),
                _ => format!("update t set k = {k} where id = {id}"),
            };
            run(&mut session, &sql);
            if random(&mut state, 20) == 0 {
                thread::sleep(Duration::from_millis(random(&mut state, 4)));
            }
        }
        run(
            &mut session,
            if random(&mut state, 5) == 0 {
                "rollback"
            } else {
                "commit"
            },
        );
    }
}

/// Reads by index and by table under one snapshot: both find the same rows, or the definition is too new for the snapshot.
fn read_both_ways(engine: &Arc<Engine>, stop: &AtomicBool) {
    let mut session = engine.session(SessionInfo::default()).unwrap();
    while !stop.load(Ordering::Relaxed) {
        query(
            &mut session,
            "begin isolation level repeatable read; select 1 from t limit 1",
        );
        thread::sleep(Duration::from_millis(3));
        let mut answers = Vec::new();
        for (seq, index) in [("off", "on"), ("on", "off"), ("off", "on")] {
            let sql = format!(
                "set enable_seqscan = {seq}; set enable_indexscan = {index}; \
                 select count(*), sum(k), sum(v) from t where k >= 0"
            );
            let answer = run(&mut session, &sql);
            if answer == "ERROR 40001" {
                answers.clear();
                break;
            }
            answers.push(answer);
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        run(&mut session, "rollback");
    }
}

#[test]
fn indexes_come_and_go_beside_writers_and_readers() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (id int, k int, v int); insert into t select g, g, 0 from generate_series(0, 399) g;
         create index by_id on t (id)",
    );
    let stop = AtomicBool::new(false);
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(7);
    eprintln!("SEED={seed}");
    thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        for writer in 0..3 {
            let (engine, stop) = (&fixture.engine, &stop);
            scope.spawn(move || write_at_random(engine, seed * 10 + writer, stop));
        }
        let (engine, stopped) = (&fixture.engine, &stop);
        scope.spawn(move || read_both_ways(engine, stopped));
        let mut s = fixture.session();
        let end = Instant::now() + Duration::from_secs(4);
        let mut rounds = 0;
        while Instant::now() < end || rounds < 3 {
            for sql in [
                "create index concurrently by_k on t (k)",
                "reindex table concurrently t",
                "drop index concurrently by_k",
            ] {
                assert!(!run(&mut s, sql).starts_with("ERROR"), "{sql}");
                assert_sound(&fixture);
            }
            rounds += 1;
        }
    });
    assert_sound(&fixture);
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_directory(&entry.path(), &target),
            // A file may be unlinked meanwhile.
            false => drop(fs::copy(entry.path(), &target)),
        }
    }
}

/// Opens what a crash at this moment would leave.
fn crashed(fixture: &Fixture) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (fixture.directory.path(), directory.path());
    fs::copy(from.join("control"), to.join("control")).unwrap();
    copy_directory(&from.join("base"), &to.join("base"));
    copied_log::copy_log(&from.join("pg_wal"), &to.join("pg_wal"));
    let engine = Engine::open(directory.path(), config()).unwrap();
    Fixture { engine, directory }
}

#[test]
fn a_crash_leaves_an_index_in_its_stage() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new(
        "create table t (id int, k int, v int); insert into t select g, g, g from generate_series(1, 2000) g",
    );
    let (mut writer, mut look) = (fixture.session(), fixture.session());
    query(&mut writer, "begin; insert into t values (0, 0, 0)");
    let create = beside(&fixture.engine, "create index concurrently by_k on t (k)");
    wait_for(&mut look, STAGES, "by_k|f|f|t");
    let building = crashed(&fixture);
    let mut other = fixture.session();
    query(&mut other, "begin; insert into t values (-1, -1, -1)");
    query(&mut writer, "commit");
    wait_for(&mut look, STAGES, "by_k|f|t|t");
    let written = crashed(&fixture);
    query(&mut other, "commit");
    assert_eq!(create.join().unwrap(), "CREATE INDEX");
    let whole = crashed(&fixture);
    for (fixture, stages, rows) in [
        (building, "by_k|f|f|t", "2000"),
        (written, "by_k|f|t|t", "2001"),
        (whole, "by_k|t|t|t", "2002"),
    ] {
        let mut s = fixture.session();
        assert_eq!(query(&mut s, STAGES), stages);
        assert_sound(&fixture);
        query(&mut s, "update t set k = k + 1 where id % 100 = 0");
        query(&mut s, "vacuum t");
        assert_eq!(query(&mut s, "select count(*) from t"), rows);
        assert_eq!(query(&mut s, "reindex index concurrently by_k"), "REINDEX");
        assert_eq!(query(&mut s, STAGES), "by_k|t|t|t");
        let [by_index, by_table] = by_index_and_by_table(&mut s);
        assert_eq!(by_index, by_table);
        assert_sound(&fixture);
        assert_eq!(query(&mut s, "drop index concurrently by_k"), "DROP INDEX");
    }
}
