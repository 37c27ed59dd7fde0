//! Stories of several sessions, and small helpers.
//!
//! A story is text. Each line names a session, its statement and the result:
//!
//! ```text
//! alice: update accounts set balance = 0 where id = 1 => UPDATE 1
//! bob:   update accounts set balance = 1 where id = 1 => waits
//! alice: commit                                       => COMMIT
//! bob                                                 => UPDATE 1
//! ```
//!
//! `waits` is for a lock; `waits for table t`, for that table's; `waits for the catalog`, for the lock of all that changes
//! definitions; `waits for the log`, for the log to be durable; `waits for standbys`, for a commit to be replicated; `waits
//! for its turn`, for commits in front of its own to be seen; `waits for a safe snapshot`, for those that the snapshot of a
//! DEFERRABLE transaction may not show. `cancel: bob` sends a cancel request for what Bob's session runs.
//!
//! `reset statement_timeout` has no more time than the statements before it, so it is repeated until it is done.
//!
//! A session that is woken runs when the host lets it. Where the next line needs it to have come to its next wait, the story
//! names that wait.
//!
//! Rows are shown as `a|b` and joined by `, `; errors as `ERROR` and their SQLSTATE; nothing is shown for no
//! rows. Every session has a thread of its own, so a statement that waits keeps only its own session busy.
//! Lines that begin with `#` are remarks.

#![allow(dead_code)]

pub mod upserts;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use clearway_engine::{Collected, Config, Engine, EngineError, Mechanisms, Session, SessionInfo, Value};

/// Time after which a test has failed, whatever it waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// The relation under which the lock of the catalog stands in `pg_locks`.
const CATALOG_LOCK: &str = "1";

const RESET_TIMEOUT: &str = "reset statement_timeout";

/// An engine in a directory that goes away with it.
pub struct Fixture {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Its directory.
    pub directory: tempfile::TempDir,
}

/// The mechanisms to test: the default, with what the environment variable `CLEARWAY_MECHANISMS` sets, such as
/// `page_latch=hybrid,lwlock=queued`.
pub fn mechanisms() -> Mechanisms {
    let mut mechanisms = Mechanisms::default();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    mechanisms
}

/// A configuration for tests: small, quick to find deadlocks, without waiting for the disk.
pub fn config() -> Config {
    Config {
        mechanisms: mechanisms(),
        shared_buffers: "16MB".parse().unwrap(),
        deadlock_timeout: "250ms".parse().unwrap(),
        autovacuum_naptime: "50ms".parse().unwrap(),
        // Tests see plans, which are not to depend on when the worker comes by.
        autovacuum_analyze_threshold: 1 << 31,
        fsync: false,
        ..Config::default()
    }
}

impl Fixture {
    /// A fresh engine, with these statements run.
    pub fn new(setup: &str) -> Fixture {
        Fixture::with_config(setup, config())
    }

    /// As [`Fixture::new`], and transactions share rows, whatever the environment chooses.
    pub fn sharing_rows(setup: &str) -> Fixture {
        let mut config = config();
        config.mechanisms.set("row_locks=shared").unwrap();
        Fixture::with_config(setup, config)
    }

    /// The engine stopped, and its directory opened again.
    pub fn restarted(self) -> Fixture {
        self.engine.shutdown().unwrap();
        let Fixture { engine, directory } = self;
        drop(engine);
        let engine = Engine::open(directory.path(), config()).unwrap();
        Fixture { engine, directory }
    }

    /// As [`Fixture::new`], with another configuration.
    pub fn with_config(setup: &str, config: Config) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), config).unwrap();
        let fixture = Fixture { engine, directory };
        if !setup.trim().is_empty() {
            fixture
                .session()
                .execute_simple(setup, &mut Collected::default())
                .unwrap();
        }
        fixture
    }

    /// A session.
    pub fn session(&self) -> Session {
        self.engine.session(SessionInfo::default()).unwrap()
    }

    /// Plays a story.
    #[track_caller]
    pub fn play(&self, story: &str) {
        self.play_with_disk(story, |order| panic!("there is no disk to {order}"));
    }

    /// Plays a story in which lines that begin with `disk:` are orders to the disk.
    #[track_caller]
    pub fn play_with_disk(&self, story: &str, disk: impl Fn(&str)) {
        let mut stage = Stage::new(Arc::clone(&self.engine));
        for (number, line) in story.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':') {
                Some(("disk", order)) => disk(order.trim()),
                Some(("cancel", name)) => stage.cancel(name.trim()),
                _ => stage.line(number + 1, line),
            }
        }
        stage.close();
    }
}

/// The outcome of a statement, in one line.
pub fn run(session: &mut Session, sql: &str) -> String {
    let mut out = Collected::default();
    show(session.execute_simple(sql, &mut out), &out)
}

/// Takes the limit from the session's statements. That statement has a limit too, and is repeated when it is late.
pub fn reset_statement_timeout(session: &mut Session) -> String {
    loop {
        let shown = run(session, RESET_TIMEOUT);
        if shown != "ERROR 57014" {
            return shown;
        }
    }
}

/// The rows of a query, in one line; panics on errors.
#[track_caller]
pub fn query(session: &mut Session, sql: &str) -> String {
    let shown = run(session, sql);
    assert!(!shown.starts_with("ERROR"), "{sql}: {shown}");
    shown
}

/// The error of a statement.
#[track_caller]
pub fn error(session: &mut Session, sql: &str) -> EngineError {
    session
        .execute_simple(sql, &mut Collected::default())
        .expect_err(sql)
}

/// A value as psql shows it.
pub fn show_value(value: &Value) -> String {
    clearway_engine::value::text::to_text(value).unwrap_or_default()
}

fn show(result: Result<(), EngineError>, out: &Collected) -> String {
    match result {
        Err(error) => format!("ERROR {}", error.sqlstate().as_str()),
        Ok(()) if out.columns.is_empty() => out.tags.join("; "),
        Ok(()) => {
            let row = |row: &Vec<Value>| row.iter().map(show_value).collect::<Vec<_>>().join("|");
            out.rows.iter().map(row).collect::<Vec<_>>().join(", ")
        }
    }
}

struct Actor {
    orders: Sender<String>,
    results: Receiver<String>,
    process_id: u32,
    secret: u32,
    busy: bool,
}

struct Stage {
    engine: Arc<Engine>,
    actors: HashMap<String, Actor>,
}

impl Stage {
    fn new(engine: Arc<Engine>) -> Stage {
        Stage {
            engine,
            actors: HashMap::new(),
        }
    }

    fn actor(&mut self, name: &str) -> &mut Actor {
        let engine = &self.engine;
        self.actors.entry(name.to_owned()).or_insert_with(|| {
            let (orders, inbox) = channel::<String>();
            let (outbox, results) = channel();
            let mut session = engine.session(SessionInfo::default()).unwrap();
            let (process_id, secret) = session.cancel_key();
            std::thread::spawn(move || {
                for sql in inbox {
                    let shown = match sql.as_str() {
                        RESET_TIMEOUT => reset_statement_timeout(&mut session),
                        sql => run(&mut session, sql),
                    };
                    if outbox.send(shown).is_err() {
                        return;
                    }
                }
            });
            Actor {
                orders,
                results,
                process_id,
                secret,
                busy: false,
            }
        })
    }

    fn cancel(&mut self, name: &str) {
        let actor = self.actor(name);
        let (process_id, secret) = (actor.process_id, actor.secret);
        assert!(self.engine.cancel(process_id, secret), "no session of {name}");
    }

    #[track_caller]
    fn line(&mut self, number: usize, line: &str) {
        let (order, expected) = line.rsplit_once("=>").unwrap_or((line, ""));
        let expected = expected.trim();
        let (name, sql) = match order.split_once(':') {
            Some((name, sql)) => (name.trim(), Some(sql.trim())),
            None => (order.trim(), None),
        };
        let actor = self.actor(name);
        if let Some(sql) = sql {
            assert!(!actor.busy, "line {number}: {name} is still busy");
            actor.orders.send(sql.to_owned()).unwrap();
            actor.busy = true;
        }
        if let Some(table) = expected.strip_prefix("waits for table ") {
            return self.expect_waiting_for_relation(number, name, &format!("'{table}'::regclass"));
        }
        match expected {
            "waits for the catalog" => return self.expect_waiting_for_relation(number, name, CATALOG_LOCK),
            "waits" => return self.expect_waiting(number, name, |wait| wait.0 == "Lock"),
            "waits for a safe snapshot" => {
                return self.expect_waiting(number, name, |wait| wait.1 == "SafeSnapshot");
            }
            "waits for its turn" => {
                return self.expect_waiting(number, name, |wait| wait.1 == "CommitOrder");
            }
            "waits for standbys" => {
                return self.expect_waiting(number, name, |wait| wait == ("IPC", "SyncRep"));
            }
            "waits for the log" => {
                return self.expect_waiting(number, name, |wait| {
                    ["WALWrite", "WALSync", "WALFlushGroup"].contains(&wait.1)
                });
            }
            _ => {}
        }
        let actor = self.actor(name);
        match actor.results.recv_timeout(PATIENCE) {
            Ok(result) => {
                actor.busy = false;
                assert_eq!(result, expected, "line {number}: {line}");
            }
            Err(RecvTimeoutError::Timeout) => panic!("line {number}: {name} has no result: {line}"),
            Err(RecvTimeoutError::Disconnected) => panic!("line {number}: {name} has died: {line}"),
        }
    }

    /// Waits until the session is seen in such a wait, given by type and name.
    #[track_caller]
    fn expect_waiting(&mut self, number: usize, name: &str, is_meant: impl Fn((&str, &str)) -> bool) {
        self.expect_seen(number, name, |engine, process_id| {
            let activity = engine.activity();
            let mut own = activity.iter().filter(|a| a.process_id == process_id);
            own.any(|a| a.wait_event_type.zip(a.wait_event).is_some_and(&is_meant))
        });
    }

    /// Waits until the session is seen to wait for a relation's lock, given as `pg_locks.relation` is compared with it.
    #[track_caller]
    fn expect_waiting_for_relation(&mut self, number: usize, name: &str, relation: &str) {
        let mut observer = self.engine.session(SessionInfo::default()).unwrap();
        self.expect_seen(number, name, |_, process_id| {
            let sql = format!(
                "select count(*) from pg_locks
                 where pid = {process_id} and relation = {relation} and not granted"
            );
            run(&mut observer, &sql) == "1"
        });
    }

    /// Waits until a look at the engine shows the session, given by its process id, as it should be: waiting.
    #[track_caller]
    fn expect_seen(&mut self, number: usize, name: &str, mut look: impl FnMut(&Engine, u32) -> bool) {
        let start = Instant::now();
        let process_id = self.actor(name).process_id;
        while start.elapsed() < PATIENCE {
            if look(&self.engine, process_id) {
                return;
            }
            if let Ok(result) = self.actor(name).results.try_recv() {
                panic!("line {number}: {name} should wait, but got {result:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("line {number}: {name} does not wait as it should");
    }

    #[track_caller]
    fn close(self) {
        for (name, actor) in self.actors {
            assert!(!actor.busy, "at the end {name} is still busy");
        }
    }
}
