//! A session as other sessions see it.

mod common;

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
