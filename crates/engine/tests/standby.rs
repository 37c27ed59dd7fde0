//! An engine on a standby, beside its primary in one process: what sessions read, what they may not do, and how replay gets
//! them out of its way.

mod common;
#[path = "../../storage/tests/support/standby_copy.rs"]
mod standby_copy;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Collected, Completion, Config, Engine, Session, SessionInfo, WalReceiverStatus};
use clearway_machine::Switch;
use clearway_storage::Lsn;
use clearway_storage::standby::ReplayVariant;
use clearway_txn::KnownXidsVariant;
use common::{Fixture, config, error, query, run};
use standby_copy::{Sender, copy_database};

/// Long enough that a replay that does not wait would be done.
const A_WHILE: Duration = Duration::from_millis(150);

/// A primary, its standby, and what sends the log.
struct Pair {
    primary: Fixture,
    dir: tempfile::TempDir,
    config: Config,
    standby: Arc<Engine>,
    sender: Option<Sender>,
}

impl Pair {
    fn new(setup: &str) -> Pair {
        Pair::with_config(setup, config())
    }

    /// `max_standby_streaming_delay` as given.
    fn with_delay(setup: &str, delay: &str) -> Pair {
        let max_standby_streaming_delay = delay.parse().unwrap();
        Pair::with_config(
            setup,
            Config {
                max_standby_streaming_delay,
                ..config()
            },
        )
    }

    fn with_config(setup: &str, config: Config) -> Pair {
        let quiet = Config {
            autovacuum: false,
            ..config.clone()
        };
        let primary = Fixture::with_config(setup, quiet);
        let dir = tempfile::tempdir().unwrap();
        copy_database(primary.engine.storage(), dir.path());
        let standby = Engine::open_standby(dir.path(), config.clone()).unwrap();
        let sender = Sender::new(primary.engine.storage(), standby.storage());
        Pair {
            primary,
            dir,
            config,
            standby,
            sender: Some(sender),
        }
    }

    fn session(&self) -> Session {
        self.standby.session(SessionInfo::default()).unwrap()
    }

    fn sender(&mut self) -> &mut Sender {
        self.sender.as_mut().unwrap()
    }

    /// Runs statements on the primary.
    #[track_caller]
    fn on_primary(&self, statements: &[&str]) {
        let mut session = self.primary.session();
        for sql in statements {
            query(&mut session, sql);
        }
    }

    /// Sends all, and waits until it is replayed.
    fn catch_up(&mut self) {
        self.sender().catch_up();
    }

    /// Sends all, and does not wait for replay; where that ends.
    fn send(&mut self) -> Lsn {
        let storage = self.primary.engine.storage();
        storage.wal.flush(storage.wal.reserved());
        self.sender().send(64 << 10)
    }

    #[track_caller]
    fn wait_replayed(&self, end: Lsn) {
        let standby = self.standby.storage().standby().unwrap();
        assert!(
            standby.wait_replayed(end, Duration::from_secs(30)),
            "replay is at {}, not at {end}: {:?}",
            standby.replayed(),
            standby.failure()
        );
    }

    fn is_replayed(&self, end: Lsn) -> bool {
        self.standby.storage().standby().unwrap().replayed() >= end
    }

    /// Stops the standby as a crash would, and starts it again.
    fn restart(&mut self) {
        self.sender = None;
        self.standby.storage().stop_threads();
        let standby = Engine::open_standby(tempfile::tempdir().unwrap().path(), self.config.clone());
        assert!(standby.is_err(), "an empty directory is no standby");
        // The last reference goes, and with it the directory's lock.
        let old = std::mem::replace(&mut self.standby, Arc::clone(&self.primary.engine));
        let old = Arc::try_unwrap(old).expect("the only reference");
        drop(old);
        self.standby = Engine::open_standby(self.dir.path(), self.config.clone()).unwrap();
        self.sender = Some(Sender::new(self.primary.engine.storage(), self.standby.storage()));
    }

    /// Ends receiving, and promotes.
    fn promote(&mut self) {
        self.sender = None;
        let (timeline, _) = self.standby.promote("a test").unwrap();
        assert_eq!(timeline, 2);
    }
}

/// Alice and Bob move money on the primary and note each transfer. A reader on the standby always finds the same sum, as
/// many notes as it found before or more, and the notes of each writer without a gap.
#[test]
fn readers_see_whole_transactions_in_order() {
    let variants = KnownXidsVariant::ALL
        .iter()
        .map(|&known_xids| (known_xids, ReplayVariant::Serial));
    let parallel = (KnownXidsVariant::default(), ReplayVariant::Parallel);
    for (known_xids, replay) in variants.chain([parallel, parallel]) {
        let mut config = config();
        config.mechanisms.known_xids = known_xids;
        config.mechanisms.replay = replay;
        let mut pair = Pair::with_config(
            "create table accounts (id int primary key, balance int);
             insert into accounts select g, 100 from generate_series(1, 20) g;
             create table notes (writer int, number int)",
            config,
        );
        let stop = AtomicBool::new(false);
        let sessions = [pair.session(), pair.session()];
        let writers = [pair.primary.session(), pair.primary.session()];
        let mut sender = pair.sender.take().unwrap();
        thread::scope(|scope| {
            let stop = &stop;
            for (writer, mut session) in writers.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) {
                        number += 1;
                        let (from, to) = ((number * 7 + writer) % 20 + 1, (number * 3) % 20 + 1);
                        // In the order of the ids, so that no two wait for each other.
                        for (id, amount) in [(from.min(to), -1), (from.max(to), 1)] {
                            run(
                                &mut session,
                                if id == from.min(to) && amount < 0 {
                                    "begin"
                                } else {
                                    "select 1"
                                },
                            );
                            query(
                                &mut session,
                                &format!("update accounts set balance = balance + {amount} where id = {id}"),
                            );
                        }
                        query(
                            &mut session,
                            &format!("insert into notes values ({writer}, {number})"),
                        );
                        // Some are rolled back, and their number is used again.
                        if number % 5 == 4 && run(&mut session, "select random() < 0.3") == "t" {
                            query(&mut session, "rollback");
                            number -= 1;
                        } else {
                            query(&mut session, "commit");
                        }
                    }
                });
            }
            for mut session in sessions {
                scope.spawn(move || {
                    let mut seen = 0;
                    while !stop.load(Ordering::Relaxed) {
                        query(&mut session, "begin isolation level repeatable read");
                        assert_eq!(query(&mut session, "select sum(balance) from accounts"), "2000");
                        let by_index: i64 = (1..=20)
                            .map(|id| {
                                let sql = format!("select balance from accounts where id = {id}");
                                query(&mut session, &sql).parse::<i64>().unwrap()
                            })
                            .sum();
                        assert_eq!(by_index, 2_000);
                        let notes = query(
                            &mut session,
                            "select count(*), count(distinct number) from notes where writer = 0",
                        );
                        let (count, distinct) = notes.split_once('|').unwrap();
                        assert_eq!(count, distinct, "a note twice");
                        let newest = query(
                            &mut session,
                            "select coalesce(max(number), 0) from notes where writer = 0",
                        );
                        assert_eq!(newest, count, "a commit is missing");
                        let all = query(&mut session, "select count(*) from notes").parse().unwrap();
                        assert!(seen <= all, "{seen} were seen, then {all}");
                        seen = all;
                        query(&mut session, "commit");
                    }
                    assert!(seen > 10, "the reader saw {seen} transfers");
                });
            }
            let end = Instant::now() + Duration::from_millis(1_200);
            while Instant::now() < end {
                let storage = pair.primary.engine.storage();
                storage.wal.flush(storage.wal.reserved());
                sender.send(3_000);
                thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
        });
        sender.catch_up();
        pair.sender = Some(sender);
        let count = "select count(*), sum(number) from notes";
        let expected = query(&mut pair.primary.session(), count);
        assert_eq!(
            query(&mut pair.session(), count),
            expected,
            "{known_xids:?} {replay:?}"
        );
    }
}

#[test]
fn a_standby_refuses_what_writes() {
    let pair = Pair::new("create table t (id serial primary key, x int); insert into t (x) values (1)");
    let mut bob = pair.session();
    for (sql, name) in [
        ("insert into t (x) values (2)", "INSERT"),
        ("update t set x = 2", "UPDATE"),
        ("delete from t", "DELETE"),
        ("copy t from stdin", "COPY FROM"),
        ("select * from t for update", "SELECT FOR UPDATE"),
        ("select * from t for share", "SELECT FOR SHARE"),
        ("truncate t", "TRUNCATE TABLE"),
        ("create table u (id int)", "CREATE TABLE"),
        ("create index i on t (x)", "CREATE INDEX"),
        ("drop index t_pkey", "DROP INDEX"),
        ("alter table t add constraint c unique (x)", "ALTER TABLE"),
        ("drop table t", "DROP TABLE"),
    ] {
        let refused = error(&mut bob, sql);
        assert_eq!(refused.sqlstate().as_str(), "25006", "{sql}: {refused}");
        assert_eq!(
            refused.message(),
            format!("cannot execute {name} in a read-only transaction"),
            "{sql}"
        );
    }
    for (sql, name) in [
        ("vacuum", "VACUUM"),
        ("vacuum t", "VACUUM"),
        ("analyze", "ANALYZE"),
    ] {
        let refused = error(&mut bob, sql);
        assert_eq!(refused.sqlstate().as_str(), "25006", "{sql}: {refused}");
        assert_eq!(
            refused.message(),
            format!("cannot execute {name} during recovery")
        );
    }
    assert!(pair.standby.vacuum().is_err());
    for sql in ["begin read write", "set transaction_read_only = off"] {
        let refused = error(&mut bob, sql);
        assert_eq!(refused.sqlstate().as_str(), "0A000", "{sql}: {refused}");
        assert_eq!(
            refused.message(),
            "cannot set transaction read-write mode during recovery"
        );
        run(&mut bob, "rollback");
    }
    query(&mut bob, "begin");
    assert_eq!(run(&mut bob, "set transaction_read_only = off"), "ERROR 0A000");
    query(&mut bob, "rollback");
    query(&mut bob, "prepare p as insert into t (x) values (3)");
    assert_eq!(run(&mut bob, "execute p"), "ERROR 25006");
    assert_eq!(query(&mut bob, "show transaction_read_only"), "on");
    assert_eq!(query(&mut bob, "show in_hot_standby"), "on");
    query(&mut bob, "begin read only");
    assert_eq!(query(&mut bob, "select x from t"), "1");
    query(&mut bob, "commit");
    query(&mut bob, "checkpoint");
    assert_eq!(
        query(&mut bob, "explain insert into t (x) values (2)").is_empty(),
        false
    );
}

#[test]
fn positions_and_the_receiver_are_shown() {
    let mut pair = Pair::new("create table t (id int)");
    let mut alice = pair.primary.session();
    query(&mut alice, "insert into t values (1)");
    pair.catch_up();
    let mut bob = pair.session();
    assert_eq!(query(&mut bob, "select pg_is_in_recovery()"), "t");
    assert_eq!(
        query(
            &mut alice,
            "select pg_is_in_recovery(), pg_last_wal_receive_lsn()"
        ),
        "f|"
    );
    let flushed = query(&mut alice, "select pg_current_wal_flush_lsn()");
    assert_eq!(query(&mut bob, "select pg_last_wal_receive_lsn()"), flushed);
    assert_eq!(query(&mut bob, "select pg_last_wal_replay_lsn()"), flushed);
    let sql = format!("select pg_wal_lsn_diff('{flushed}', '0/0') > 0, pg_wal_lsn_diff('0/0', '1/0')");
    assert_eq!(query(&mut bob, &sql), "t|-4294967296");
    let age =
        "select pg_last_xact_replay_timestamp() between now() - interval '1 hour' and clock_timestamp()";
    let shown = run(&mut bob, age);
    assert!(shown == "t" || shown.starts_with("ERROR"), "{shown}");
    assert_ne!(query(&mut bob, "select pg_last_xact_replay_timestamp()"), "");
    for sql in ["select pg_current_wal_lsn()", "select pg_current_wal_flush_lsn()"] {
        let refused = error(&mut bob, sql);
        assert_eq!(refused.sqlstate().as_str(), "55000");
        assert_eq!(refused.message(), "recovery is in progress");
    }
    assert_eq!(run(&mut alice, "select pg_promote()"), "ERROR 55000");
    assert_eq!(query(&mut bob, "select pid from pg_stat_wal_receiver"), "");
    pair.standby.set_wal_receiver(Arc::new(|| {
        Some(WalReceiverStatus {
            process_id: 7,
            status: "streaming".to_owned(),
            receive_start: Lsn(0),
            receive_start_timeline: 1,
            written: Lsn(0x1_0000_0010),
            flushed: Lsn(0x10),
            received_timeline: 1,
            last_message_sent: None,
            last_message_received: None,
            latest_end: None,
            latest_end_time: None,
            slot_name: None,
            sender_host: None,
            sender_port: Some(5432),
            conninfo: String::new(),
        })
    }));
    assert_eq!(
        query(
            &mut bob,
            "select pid, status, written_lsn, flushed_lsn, sender_port from pg_stat_wal_receiver"
        ),
        "7|streaming|1/10|0/10|5432"
    );
}

/// Definitions arrive with their commits, each of them while Bob has a session and plans of before.
#[test]
fn definitions_follow_the_primary() {
    for replay in ReplayVariant::ALL {
        let mut config = config();
        config.mechanisms.replay = *replay;
        let mut pair = Pair::with_config("create table t (id int primary key, x int)", config);
        let mut bob = pair.session();
        let prepared = bob.prepare("select x from t where id = 1", &[]).unwrap();
        let prepared_row = |bob: &mut Session| {
            let mut out = Collected::default();
            let result = bob.execute(&prepared, &[], 0, &mut out).map(|_| ());
            let _ = bob.sync();
            result
                .map(|()| out.rows.len())
                .map_err(|error| error.sqlstate().as_str().to_owned())
        };
        pair.on_primary(&["insert into t values (1, 10), (2, 20)"]);
        pair.catch_up();
        assert_eq!(prepared_row(&mut bob), Ok(1));
        pair.on_primary(&[
            "create table u (id serial, y text)",
            "insert into u (y) values ('a'), ('b')",
        ]);
        assert_eq!(run(&mut bob, "select * from u"), "ERROR 42P01");
        pair.catch_up();
        assert_eq!(query(&mut bob, "select * from u"), "1|a, 2|b");
        pair.on_primary(&["create index t_x on t (x)"]);
        pair.catch_up();
        assert_eq!(query(&mut bob, "select id from t where x = 20"), "2");
        assert!(query(&mut bob, "select indexname from pg_indexes where tablename = 't'").contains("t_x"));
        let files = pair.standby.storage().list_rels().unwrap().len();
        pair.on_primary(&["begin", "truncate t", "insert into t values (3, 30)", "commit"]);
        assert_eq!(query(&mut bob, "select id from t"), "1, 2");
        pair.catch_up();
        assert_eq!(query(&mut bob, "select id from t"), "3");
        assert_eq!(prepared_row(&mut bob), Ok(0));
        assert_eq!(
            pair.standby.storage().list_rels().unwrap().len(),
            files,
            "the files of before are gone"
        );
        pair.on_primary(&[
            "begin",
            "drop table u",
            "create table u (z int)",
            "insert into u values (7)",
            "rollback",
        ]);
        pair.on_primary(&["drop index t_x", "alter table t add constraint t_x unique (x)"]);
        pair.catch_up();
        assert_eq!(query(&mut bob, "select y from u where id = 2"), "b");
        assert_eq!(query(&mut bob, "select id from t where x = 30"), "3");
        pair.on_primary(&[
            "drop table t",
            "begin",
            "drop table u",
            "create table u (z int)",
            "insert into u values (7)",
            "commit",
        ]);
        pair.catch_up();
        assert_eq!(prepared_row(&mut bob), Err("42P01".to_owned()));
        assert_eq!(query(&mut bob, "select * from u"), "7");
    }
}

/// Bob has read the table in his transaction. Replay of its change waits for him, Carol behind replay; then all go on.
#[test]
fn a_change_of_a_table_waits_for_its_readers() {
    let mut pair = Pair::new("create table t (id int); insert into t values (1)");
    let (mut bob, mut carol) = (pair.session(), pair.session());
    query(&mut bob, "begin");
    assert_eq!(query(&mut bob, "select id from t"), "1");
    pair.on_primary(&["truncate t", "insert into t values (2)"]);
    let end = pair.send();
    thread::sleep(A_WHILE);
    assert!(!pair.is_replayed(end), "replay did not wait");
    let carol = thread::spawn(move || query(&mut carol, "select id from t"));
    thread::sleep(A_WHILE);
    assert!(!carol.is_finished(), "Carol starves replay");
    assert_eq!(query(&mut bob, "select id from t"), "1", "Bob has the lock");
    query(&mut bob, "commit");
    pair.wait_replayed(end);
    let carol = carol.join().unwrap();
    assert!(carol.is_empty() || carol == "2", "{carol}");
    assert_eq!(query(&mut bob, "select id from t"), "2");
}

/// Starts a statement that runs for a minute, in a thread; its error, and how long it took.
fn long_statement(
    mut session: Session,
    sql: &'static str,
) -> thread::JoinHandle<(clearway_engine::EngineError, Session)> {
    let handle = thread::spawn(move || {
        let error = error(&mut session, sql);
        (error, session)
    });
    thread::sleep(A_WHILE);
    handle
}

const LOCK_DETAIL: &str = "User was holding a relation lock for too long.";
const SNAPSHOT_DETAIL: &str = "User query might have needed to see row versions that must be removed.";

/// Four sessions hold the lock of a table that goes, in four ways. Each is told 40001, once, and is sound afterwards.
#[test]
fn sessions_that_hold_a_table_are_cancelled() {
    let mut pair = Pair::with_delay(
        "create table t (id int); insert into t select * from generate_series(1, 5000);
         create table u (id int); insert into u values (1)",
        "300ms",
    );
    let runs = long_statement(pair.session(), "select pg_sleep(60) from t");
    let (mut idle, mut commits, mut rolls_back) = (pair.session(), pair.session(), pair.session());
    for session in [&mut idle, &mut commits, &mut rolls_back] {
        query(session, "begin");
        assert_eq!(query(session, "select count(*) from t"), "5000");
    }
    let mut extended = pair.session();
    let prepared = extended.prepare("select id from t", &[]).unwrap();
    let completion = extended.execute(&prepared, &[], 2, &mut Collected::default());
    let Ok(Completion::Suspended(portal)) = completion else {
        panic!("all rows came at once");
    };
    let mut other = pair.session();
    query(&mut other, "begin isolation level repeatable read");
    query(&mut other, "select * from u");

    pair.on_primary(&["drop table t"]);
    let started = Instant::now();
    let end = pair.send();
    pair.wait_replayed(end);
    assert!(
        started.elapsed() >= Duration::from_millis(250),
        "replay did not wait"
    );
    let (ended, mut runs) = runs.join().unwrap();
    let told = |error: &clearway_engine::EngineError| {
        assert_eq!(error.sqlstate().as_str(), "40001", "{error}");
        assert_eq!(
            error.message(),
            "canceling statement due to conflict with recovery"
        );
        assert_eq!(error.detail(), Some(LOCK_DETAIL));
        assert!(error.is_retryable());
    };
    told(&ended);
    told(&error(&mut idle, "select 1"));
    assert_eq!(run(&mut idle, "select 1"), "ERROR 25P02");
    assert_eq!(query(&mut idle, "rollback"), "ROLLBACK");
    told(&error(&mut commits, "commit"));
    assert_eq!(query(&mut rolls_back, "rollback"), "ROLLBACK");
    told(&extended.resume(portal, 2, &mut Collected::default()).unwrap_err());
    extended.sync().unwrap();
    for session in [&mut runs, &mut idle, &mut commits, &mut rolls_back, &mut extended] {
        assert_eq!(run(session, "select * from t"), "ERROR 42P01");
        assert_eq!(query(session, "select * from u"), "1");
    }
    assert_eq!(query(&mut other, "select * from u"), "1", "it was not in the way");
    query(&mut other, "commit");
}

/// Vacuum on the primary removes versions that Bob's snapshot needs. Replay waits for him, and then cancels him.
#[test]
fn an_old_snapshot_is_cancelled_when_replay_has_waited() {
    let mut pair = Pair::with_delay(
        "create table t (id int primary key, x int); insert into t select g, 0 from generate_series(1, 100) g",
        "300ms",
    );
    let (mut in_time, mut late, mut reads_committed) = (pair.session(), pair.session(), pair.session());
    for session in [&mut in_time, &mut late] {
        query(session, "begin isolation level repeatable read");
        assert_eq!(query(session, "select sum(x) from t"), "0");
    }
    query(&mut reads_committed, "begin");
    assert_eq!(query(&mut reads_committed, "select sum(x) from t"), "0");
    let runs = long_statement(pair.session(), "select pg_sleep(60), x from t");
    pair.on_primary(&["update t set x = 1", "delete from t where id > 50", "vacuum t"]);
    let started = Instant::now();
    let end = pair.send();
    thread::sleep(A_WHILE);
    assert!(!pair.is_replayed(end), "replay did not wait");
    assert_eq!(query(&mut in_time, "select sum(x), count(*) from t"), "0|100");
    query(&mut in_time, "commit");
    pair.wait_replayed(end);
    assert!(started.elapsed() >= Duration::from_millis(250));
    let ended = error(&mut late, "select sum(x) from t");
    assert_eq!(ended.sqlstate().as_str(), "40001");
    assert_eq!(ended.detail(), Some(SNAPSHOT_DETAIL));
    query(&mut late, "rollback");
    let (ended, _) = runs.join().unwrap();
    assert_eq!(
        (ended.sqlstate().as_str(), ended.detail()),
        ("40001", Some(SNAPSHOT_DETAIL))
    );
    for session in [&mut in_time, &mut late, &mut reads_committed] {
        assert_eq!(query(session, "select sum(x), count(*) from t"), "50|50");
    }
}

/// A standby without a limit waits for a session as long as that takes.
#[test]
fn replay_waits_for_ever_if_it_is_told_so() {
    let mut pair = Pair::with_delay("create table t (id int); insert into t values (1)", "never");
    let mut bob = pair.session();
    query(&mut bob, "begin isolation level repeatable read");
    query(&mut bob, "select * from t");
    pair.on_primary(&["drop table t"]);
    let end = pair.send();
    thread::sleep(A_WHILE * 4);
    assert!(!pair.is_replayed(end));
    assert_eq!(query(&mut bob, "select * from t"), "1");
    query(&mut bob, "commit");
    pair.wait_replayed(end);
}

/// Bob holds t2 and waits for t1, replay the reverse, without a limit. If Bob came last, his own search ends it (40P01).
#[test]
fn a_session_finds_its_deadlock_with_replay() {
    let mut pair = Pair::with_delay("create table t1 (id int); create table t2 (id int)", "never");
    let mut bob = pair.session();
    query(&mut bob, "begin");
    query(&mut bob, "select * from t2");
    pair.on_primary(&["begin", "truncate t1", "truncate t2", "commit"]);
    let end = pair.send();
    // Longer than replay's one look.
    thread::sleep(pair.config.deadlock_timeout.duration() * 3);
    assert_eq!(run(&mut bob, "select * from t1"), "ERROR 40P01");
    pair.wait_replayed(end);
}

/// If replay came last, it looks once, and cancels Bob: he has queued behind it while Carol kept it waiting, and has
/// searched in vain by the time that she lets it go on.
#[test]
fn replay_finds_its_deadlock_with_a_session() {
    let mut pair = Pair::with_delay("create table t1 (id int); create table t2 (id int)", "never");
    let (mut bob, mut carol) = (pair.session(), pair.session());
    query(&mut carol, "begin");
    query(&mut carol, "select * from t1");
    query(&mut bob, "begin");
    query(&mut bob, "select * from t2");
    pair.on_primary(&["begin", "truncate t1", "truncate t2", "commit"]);
    let end = pair.send();
    thread::sleep(A_WHILE);
    let bob = thread::spawn(move || run(&mut bob, "select * from t1"));
    thread::sleep(pair.config.deadlock_timeout.duration() * 3);
    assert!(!bob.is_finished() && !pair.is_replayed(end));
    query(&mut carol, "commit");
    assert_eq!(bob.join().unwrap(), "ERROR 40001");
    pair.wait_replayed(end);
}

#[test]
fn a_standby_goes_on_after_a_restart() {
    let mut pair = Pair::new("create table t (id int primary key, x int)");
    pair.on_primary(&["insert into t values (1, 1)", "create index t_x on t (x)"]);
    pair.catch_up();
    let mut open = pair.primary.session();
    query(&mut open, "begin");
    query(&mut open, "insert into t values (2, 2)");
    pair.catch_up();
    for round in 3..6 {
        pair.restart();
        let mut bob = pair.session();
        assert!(!query(&mut bob, "select id from t").contains('2'), "it runs");
        pair.on_primary(&[&format!("insert into t values ({round}, {round})"), "checkpoint"]);
        pair.on_primary(&[&format!("create table t{round} (id int)")]);
        pair.catch_up();
        assert_eq!(
            query(&mut bob, &format!("select id from t where x = {round}")),
            round.to_string()
        );
        assert_eq!(query(&mut bob, &format!("select * from t{round}")), "");
        query(&mut bob, "checkpoint");
    }
    query(&mut open, "commit");
    pair.catch_up();
    assert_eq!(query(&mut pair.session(), "select count(*) from t"), "5");
}

#[test]
fn a_promoted_standby_is_a_primary() {
    let mut pair =
        Pair::new("create table t (id serial primary key, x int); insert into t (x) values (1), (2)");
    let mut unfinished = pair.primary.session();
    query(&mut unfinished, "begin");
    query(&mut unfinished, "create table lost (id int)");
    query(&mut unfinished, "insert into t (x) values (99)");
    pair.on_primary(&["insert into t (x) values (3)"]);
    pair.catch_up();
    let files = |engine: &Engine| engine.storage().list_rels().unwrap().len();
    let before = files(&pair.standby);
    let (mut bob, mut carol) = (pair.session(), pair.session());
    query(&mut bob, "begin isolation level repeatable read");
    assert_eq!(query(&mut bob, "select count(*) from t"), "3");
    pair.promote();
    assert_eq!(
        files(&pair.standby),
        before - 1,
        "the file of a table that was never committed is gone"
    );
    assert_eq!(query(&mut carol, "select pg_is_in_recovery()"), "f");
    assert_eq!(query(&mut carol, "show transaction_read_only"), "off");
    query(&mut carol, "insert into t (x) values (4)");
    query(&mut carol, "create table u (id int)");
    query(&mut carol, "delete from t where x = 1");
    query(&mut carol, "vacuum t");
    assert_eq!(
        query(&mut bob, "select count(*) from t"),
        "3",
        "Bob's snapshot is of before"
    );
    assert_eq!(
        run(&mut bob, "insert into t (x) values (5)"),
        "ERROR 25006",
        "as his transaction"
    );
    query(&mut bob, "rollback");
    query(&mut bob, "insert into t (x) values (5)");
    let rows = "select x from t order by x";
    assert_eq!(query(&mut bob, rows), "2, 3, 4, 5");
    assert_eq!(
        query(&mut bob, "select count(distinct id) from t"),
        "4",
        "no number twice"
    );
    assert_eq!(run(&mut bob, "select * from lost"), "ERROR 42P01");
    drop((bob, carol));
    pair.standby.shutdown().unwrap();
    let standby = std::mem::replace(&mut pair.standby, Arc::clone(&pair.primary.engine));
    drop(standby);
    let again = Engine::open(pair.dir.path(), pair.config.clone()).unwrap();
    let mut dave = again.session(SessionInfo::default()).unwrap();
    assert_eq!(query(&mut dave, rows), "2, 3, 4, 5");
    query(&mut dave, "insert into u values (1)");
}

/// A session asks for the promotion, and waits for it.
#[test]
fn a_session_promotes_the_standby() {
    let mut pair = Pair::new("create table t (id int)");
    let mut bob = pair.session();
    assert_eq!(
        run(&mut bob, "select pg_promote()"),
        "ERROR 55000",
        "there is no one to do it"
    );
    assert_eq!(run(&mut bob, "select pg_promote(true, 0)"), "ERROR 22023");
    let wanted = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&wanted);
    pair.standby
        .set_promotion(Arc::new(move || asked.store(true, Ordering::Relaxed)));
    assert_eq!(query(&mut bob, "select pg_promote(false)"), "t");
    assert!(wanted.swap(false, Ordering::Relaxed) && pair.standby.is_standby());
    assert_eq!(
        query(&mut bob, "select pg_promote(true, 1)"),
        "f",
        "it takes longer than that"
    );
    wanted.store(false, Ordering::Relaxed);
    let waits = thread::spawn(move || (query(&mut bob, "select pg_promote()"), bob));
    while !wanted.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    pair.promote();
    let (shown, mut bob) = waits.join().unwrap();
    assert_eq!(shown, "t");
    query(&mut bob, "insert into t values (1)");
}
