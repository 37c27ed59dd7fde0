//! A session as other sessions see it.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Column, Config, CopyFormat, EngineError, Output, Session, Value};
use common::{Fixture, query};

#[test]
fn a_long_query_is_shown_from_its_beginning() {
    let fixture = Fixture::new("");
    let mut alice = fixture.session();
    let shown = |of: &Session| {
        let activity = fixture.engine.activity();
        let process_id = of.cancel_key().0;
        let found = activity.iter().find(|session| session.process_id == process_id);
        found.unwrap().query.to_string()
    };
    let long = format!("select '{}'", "ä".repeat(2_000));
    query(&mut alice, &long);
    let beginning = shown(&alice);
    assert!(
        long.starts_with(&beginning) && (1_000..=1_024).contains(&beginning.len()),
        "{}",
        beginning.len()
    );
    query(&mut alice, "select 1");
    assert_eq!(shown(&alice), "select 1");
}

#[test]
fn a_session_shows_its_transaction_and_its_snapshot() {
    let fixture = Fixture::new("create table t (a int)");
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    let ids = "select count(backend_xid), count(backend_xmin) from pg_stat_activity where pid = ";
    let alices = format!("{ids}{}", alice.cancel_key().0);
    assert_eq!(query(&mut bob, &alices), "0|0");
    query(&mut alice, "begin isolation level repeatable read; select 1");
    assert_eq!(query(&mut bob, &alices), "0|1");
    query(&mut alice, "insert into t values (1)");
    assert_eq!(query(&mut bob, &alices), "1|1");
    query(&mut alice, "commit");
    assert_eq!(query(&mut bob, &alices), "0|0");
    // A statement's own snapshot, while it runs.
    assert_eq!(query(&mut bob, &format!("{ids} pg_backend_pid()")), "0|1");
}

#[test]
fn the_server_s_own_threads_have_rows() {
    let fixture = Fixture::new("");
    let mut alice = fixture.session();
    let rows = "select backend_type, wait_event_type from pg_stat_activity where state is null and datname is null \
                order by backend_type";
    let shown = "autovacuum launcher|Activity, checkpointer|Activity, walwriter|Activity";
    // Each enters itself when it begins, and now and then it is at work.
    for _ in 0..10_000 {
        if query(&mut alice, rows) == shown {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(query(&mut alice, rows), shown);
}

#[test]
fn the_database_s_row_has_what_its_sessions_have_done() {
    let fixture = Fixture::new("create table t (a int primary key)");
    let mut alice = fixture.session();
    let columns = "tup_inserted, tup_updated, tup_deleted, temp_files, deadlocks, sessions, sessions_killed";
    let mut counts = || -> Vec<i64> {
        let row = query(&mut alice, &format!("select {columns} from pg_stat_database"));
        row.split('|').map(|count| count.parse().unwrap()).collect()
    };
    let before = counts();
    let mut bob = fixture.session();
    query(&mut bob, "insert into t select generate_series(1, 5)");
    query(
        &mut bob,
        "begin; update t set a = a + 10 where a > 3; delete from t where a = 1",
    );
    query(&mut bob, "rollback");
    query(
        &mut bob,
        "set work_mem = '64kB'; select count(*) from (select n from generate_series(1, 20000) n order by 1 offset 0) s",
    );
    let after: Vec<i64> = counts()
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    // What a transaction that rolls back has changed counts too, as in PostgreSQL.
    assert_eq!(after, [5, 2, 1, 1, 0, 1, 0]);
    query(&mut bob, "begin; select pg_sleep(0.02)");
    std::thread::sleep(std::time::Duration::from_millis(20));
    query(&mut bob, "rollback");
    drop(bob);
    let after: Vec<i64> = counts()
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    assert_eq!(after[5], 1, "a session that has closed is counted once");
    let times = "active_time >= 20, idle_in_transaction_time >= 20, session_time >= active_time + idle_in_transaction_time";
    assert_eq!(
        query(&mut alice, &format!("select {times} from pg_stat_database")),
        "t|t|t"
    );
}

#[test]
fn scans_of_an_index_are_counted_for_it_and_for_its_table() {
    let fixture = Fixture::new(
        "create table t (a int primary key, b int); create index t_b on t (b); create table plain (a int);
         insert into t select n, n from generate_series(1, 100) n",
    );
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    for n in 1..=10 {
        query(&mut bob, &format!("select * from t where a = {n}"));
    }
    query(&mut bob, "set enable_seqscan = off");
    query(&mut bob, "select count(*) from t where b between 3 and 5");
    query(&mut bob, "select * from plain");
    drop(bob);
    let indexes = "select indexrelname, idx_scan from pg_stat_user_indexes order by 1";
    assert_eq!(query(&mut alice, indexes), "t_b|1, t_pkey|10");
    let tables = "select relname, idx_scan from pg_stat_user_tables order by 1";
    assert_eq!(query(&mut alice, tables), "plain|, t|11");
}

#[test]
fn a_connection_string_is_for_those_who_may_read_all_settings() {
    let config = Config {
        primary_conninfo: "host=a password=secret".to_owned(),
        ..common::config()
    };
    let fixture = Fixture::with_config("", config);
    let mut alice = fixture.session();
    let rows = "select count(*) from pg_settings where name in ('primary_conninfo', 'hba_file')";
    assert_eq!(
        query(&mut alice, "show primary_conninfo"),
        "host=a password=secret"
    );
    assert_eq!(query(&mut alice, rows), "2");
    common::run(&mut alice, "create role joe");
    common::run(&mut alice, "set role joe");
    assert_eq!(query(&mut alice, rows), "0");
    let mut refused = |sql: &str| common::error(&mut alice, sql).sqlstate().as_str().to_owned();
    assert_eq!(refused("show primary_conninfo"), "42501");
    assert_eq!(refused("select current_setting('primary_conninfo')"), "42704");
    query(
        &mut alice,
        "reset role; grant pg_read_all_settings to joe; set role joe",
    );
    assert_eq!(query(&mut alice, rows), "2");
}

/// A client of COPY that has another session look at the progress before each piece.
struct Watched {
    watcher: Session,
    pieces: Vec<&'static str>,
    seen: Vec<String>,
}

impl Watched {
    fn look(&mut self) {
        let columns = "relid::regclass, command, type, bytes_processed, tuples_processed";
        let shown = query(
            &mut self.watcher,
            &format!("select {columns} from pg_stat_progress_copy"),
        );
        self.seen.push(shown);
    }
}

impl Output for Watched {
    fn row_description(&mut self, _: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }
    fn row(&mut self, _: &[Value]) -> Result<(), EngineError> {
        Ok(())
    }
    fn complete(&mut self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_in_start(&mut self, _: usize, _: CopyFormat) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool, EngineError> {
        self.look();
        let piece = self.pieces.remove(0);
        buffer.extend_from_slice(piece.as_bytes());
        Ok(!self.pieces.is_empty())
    }
    fn copy_out_start(&mut self, _: usize, _: CopyFormat) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_out_data(&mut self, _: &[u8]) -> Result<(), EngineError> {
        self.look();
        Ok(())
    }
}

#[test]
fn the_progress_of_a_copy_is_shown_while_it_runs() {
    let fixture = Fixture::new("create table t (a int)");
    let mut alice = fixture.session();
    let mut client = Watched {
        watcher: fixture.session(),
        pieces: vec!["1\n2\n", "33\n4", "4\n", ""],
        seen: Vec::new(),
    };
    alice.execute_simple("copy t from stdin", &mut client).unwrap();
    client.look();
    let from = |progress: &str| format!("t|COPY FROM|PIPE|{progress}");
    assert_eq!(
        client.seen,
        [&*from("0|0"), &*from("4|2"), &*from("8|3"), &*from("10|4"), ""]
    );
    client.seen.clear();
    alice
        .execute_simple("copy (select a from t order by a) to stdout", &mut client)
        .unwrap();
    client.look();
    let to = |progress: &str| format!("-|COPY TO|PIPE|{progress}");
    assert_eq!(
        client.seen,
        [&*to("2|0"), &*to("4|1"), &*to("7|2"), &*to("10|3"), ""]
    );
}

/// The progress of a command that runs again and again until it was seen, by a session that may see it and by one that may not.
fn seen_while(fixture: &Fixture, prepare: &str, command: &str, view: &str, wanted: &str) {
    let done = AtomicBool::new(false);
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    common::run(&mut bob, "create role joe");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                common::run(&mut alice, prepare);
                common::run(&mut alice, command);
            }
        });
        let _done = SetAtEnd(&done);
        let until = Instant::now() + Duration::from_secs(120);
        let look = format!("select count(*) from {view} where {wanted}");
        while query(&mut bob, &look) == "0" {
            assert!(Instant::now() < until, "{command} was not seen");
        }
        common::run(&mut bob, "set role joe");
        let hidden =
            format!("select count(*) from {view} where pid is not null and phase is null and relid is null");
        while query(&mut bob, &hidden) == "0" {
            assert!(Instant::now() < until, "{command} was not seen by joe");
        }
    });
    assert_eq!(query(&mut bob, &format!("select count(*) from {view}")), "0");
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_progress_of_a_vacuum_is_shown_while_it_runs() {
    let config = Config {
        autovacuum: false,
        ..common::config()
    };
    let fixture = Fixture::with_config(
        "create table t (a int primary key, v text); insert into t select n, repeat('x', 500) from generate_series(1, 3000) n",
        config,
    );
    seen_while(
        &fixture,
        "update t set a = a + 10000",
        "vacuum t",
        "pg_stat_progress_vacuum",
        "relid = 't'::regclass and phase in ('scanning heap', 'vacuuming heap') and heap_blks_total >= 190 \
         and heap_blks_scanned between 1 and heap_blks_total and heap_blks_vacuumed <= heap_blks_scanned \
         and num_dead_tuples between 1 and max_dead_tuples and index_vacuum_count <= 1",
    );
}

#[test]
fn the_progress_of_an_index_is_shown_while_it_is_made() {
    let fixture = Fixture::new(
        "create table t (a int, v text); insert into t select n, repeat('x', 500) from generate_series(1, 3000) n",
    );
    for (phase, counts) in [
        (
            "building index: scanning table",
            "blocks_total >= 190 and blocks_done between 1 and 200 and tuples_total = 0",
        ),
        (
            "building index: loading tuples in tree",
            "tuples_total = 3000 and tuples_done between 1 and 3000",
        ),
    ] {
        seen_while(
            &fixture,
            "drop index if exists t_a",
            "create index t_a on t (a, v)",
            "pg_stat_progress_create_index",
            &format!(
                "relid = 't'::regclass and index_relid <> 0 and command = 'CREATE INDEX' and phase = '{phase}' and {counts}"
            ),
        );
    }
}

#[test]
fn the_progress_of_an_index_made_beside_writers_names_whom_it_waits_for() {
    let fixture = Fixture::new("create table t (a int); insert into t values (1)");
    let (mut alice, mut bob, mut carol) = (fixture.session(), fixture.session(), fixture.session());
    common::run(&mut bob, "begin; insert into t values (2)");
    let engine = &fixture.engine;
    thread::scope(|scope| {
        let made = scope.spawn(|| {
            let made = common::run(&mut alice, "create index concurrently t_a on t (a)");
            (made, common::run(&mut alice, "reindex table concurrently t"))
        });
        let until = Instant::now() + Duration::from_secs(120);
        let mut shown = |command: &str, bob: u32| {
            let columns = "command, phase, lockers_total, lockers_done, current_locker_pid";
            let wanted = format!("{command}|waiting for writers before build|1|0|{bob}");
            loop {
                let rows = query(
                    &mut carol,
                    &format!("select {columns} from pg_stat_progress_create_index"),
                );
                if rows == wanted {
                    return;
                }
                assert!(Instant::now() < until && engine.session_count() >= 3, "{rows}");
                thread::sleep(Duration::from_millis(1));
            }
        };
        shown("CREATE INDEX CONCURRENTLY", bob.cancel_key().0);
        common::run(&mut bob, "commit");
        common::run(&mut bob, "begin; insert into t values (3)");
        // It may have begun to wait for snapshots of this one meanwhile.
        common::run(&mut bob, "commit");
        let (made, again) = made.join().unwrap();
        assert!(
            !made.starts_with("ERROR") && !again.starts_with("ERROR"),
            "{made} {again}"
        );
    });
    assert_eq!(
        query(&mut bob, "select count(*) from pg_stat_progress_create_index"),
        "0"
    );
}
