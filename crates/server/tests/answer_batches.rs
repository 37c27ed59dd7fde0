//! Batches of statements, with the setting `synchronous_commit` changed at every place, against a small model of what
//! their answers owe. `SEED=7 ROUNDS=2000 cargo test -p clearway-server --test answer_batches` is the long form.
//!
//! A round: a writer changes the one row of `hot`, and that is held back: from the standby, or from the disk. A reader
//! sends a batch. The model says what the strongest is that any of its answers owes. If that is nothing, the batch is
//! answered while all is held back. Otherwise the reader waits, through each lesser thing that becomes true, and is
//! answered when the strongest does.
//!
//! # The model
//! - An answer is given at the level in force when its statement began.
//! - It owes something at that level if its transaction has read `hot` by then, itself included.
//! - A transaction that has changed rows owes at the level in force when it commits, for itself. Those that read its rows
//!   later owe, too.
//!
//! It knows nothing of marks, gates, or buffers: those of the server may not lower what is owed, and must not wait for
//! more.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/answer_batches.toml` lists them.

mod support;

use std::cell::RefCell;
use std::ops::RangeInclusive;

use clearway_engine::{Config, Engine};
use clearway_storage::disk::HeldLog;
use clearway_storage::sync_replication::ReplicationLevel;
use support::seeded::Random;
use support::{Raw, TestServer, message, query, wait_for};

/// The values of the setting, weakest first; what is owed at one is a number in this list, and 0 is nothing.
const LEVELS: [&str; 5] = ["off", "local", "remote_write", "on", "remote_apply"];

/// The protocol by which the statements of a batch are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// As one query string.
    String,
    /// As a query each, all sent before the first answer is read.
    Queries,
    /// As Parse, Bind and Execute each, and one Sync.
    Pipeline,
    /// The same with a Sync each.
    Syncs,
}

/// The state of the model.
struct Model {
    initial: usize,
    /// The level now, and what it becomes after COMMIT and after ROLLBACK of the block.
    level: usize,
    committed: usize,
    before: usize,
    in_block: bool,
    has_read_hot: bool,
    has_written: bool,
    /// The batch has changed `cold`, and committed.
    cold_is_hot: bool,
    strongest: usize,
}

impl Model {
    fn new(initial: usize) -> Model {
        Model {
            initial,
            level: initial,
            committed: initial,
            before: initial,
            in_block: false,
            has_read_hot: false,
            has_written: false,
            cold_is_hot: false,
            strongest: 0,
        }
    }

    fn set(&mut self, level: usize, local: bool) {
        self.level = level;
        if !local {
            self.committed = level;
        }
        if !self.in_block {
            self.before = level;
        }
    }

    fn answer(&mut self, begun_at: usize) {
        if self.has_read_hot {
            self.strongest = self.strongest.max(begun_at);
        }
    }

    fn end_transaction(&mut self, commits: bool) {
        if commits && self.has_written {
            self.strongest = self.strongest.max(self.level);
            self.cold_is_hot = true;
        }
        (self.has_read_hot, self.has_written) = (false, false);
    }

    fn end_block(&mut self, commits: bool) {
        self.end_transaction(commits);
        self.level = if commits { self.committed } else { self.before };
        (self.committed, self.before) = (self.level, self.level);
        self.in_block = false;
    }
}

/// Makes a batch of one to seven statements and what its answers owe.
fn batch(random: &mut Random, protocol: Protocol, model: &mut Model) -> Vec<String> {
    let mut statements = Vec::new();
    let mut has_changed_cold = false;
    let length = 1 + random.below(6);
    for number in 0..=length {
        let begun_at = model.level;
        let last = number == length;
        let level = random.below(5) as usize;
        let name = LEVELS[level];
        let statement = match random.below(12) {
            _ if last && model.in_block => {
                let commits = random.below(3) > 0;
                model.answer(begun_at);
                model.end_block(commits);
                if commits { "commit" } else { "rollback" }.to_owned()
            }
            _ if last => break,
            0..3 => {
                model.has_read_hot = true;
                "select v from hot".to_owned()
            }
            3 => {
                model.has_read_hot |= model.cold_is_hot;
                "select v from cold".to_owned()
            }
            4 => "select count(*) from pg_settings".to_owned(),
            5 => {
                model.set(level, false);
                format!("set synchronous_commit = {name}")
            }
            6 if model.in_block => {
                model.set(level, true);
                format!("set local synchronous_commit = {name}")
            }
            7 => {
                let local = model.in_block && random.below(2) == 0;
                model.set(level, local);
                format!("select set_config('synchronous_commit', '{name}', {local})")
            }
            8 => {
                model.set(model.initial, false);
                "reset synchronous_commit".to_owned()
            }
            9 if !model.in_block => {
                model.in_block = true;
                (model.before, model.committed) = (model.level, model.level);
                "begin".to_owned()
            }
            10 if !has_changed_cold => {
                (model.has_written, has_changed_cold) = (true, true);
                "update cold set v = v + 1".to_owned()
            }
            11 if protocol == Protocol::Queries && !model.in_block => {
                model.set(model.initial, false);
                "discard all".to_owned()
            }
            _ => "show synchronous_commit".to_owned(),
        };
        model.answer(begun_at);
        if !model.in_block && matches!(protocol, Protocol::Queries | Protocol::Syncs) {
            model.end_transaction(true);
        }
        statements.push(statement);
        if last {
            break;
        }
    }
    model.end_transaction(true);
    statements
}

/// The bytes of a batch, and how many times its server is ready again.
fn encode(statements: &[String], protocol: Protocol) -> (Vec<u8>, usize) {
    let extended = |sql: &String| {
        [
            support::parse("", sql),
            support::bind("", "", &[]),
            support::execute("", 0),
        ]
        .concat()
    };
    match protocol {
        Protocol::String => (query(&statements.join("; ")), 1),
        Protocol::Queries => {
            let queries = statements.iter().flat_map(|sql| query(sql));
            (queries.collect(), statements.len())
        }
        Protocol::Pipeline => {
            let mut bytes: Vec<u8> = statements.iter().flat_map(extended).collect();
            bytes.extend(support::sync());
            (bytes, 1)
        }
        Protocol::Syncs => {
            let each = |sql| [extended(sql), support::sync()].concat();
            (statements.iter().flat_map(each).collect(), statements.len())
        }
    }
}

/// A reader whose answers are read by a thread of their own.
struct Reader {
    client: Option<Raw>,
    answers: Option<std::thread::JoinHandle<Raw>>,
}

impl Reader {
    fn send(&mut self, bytes: &[u8], ready: usize) {
        let mut client = self.client.take().unwrap();
        client.send(bytes);
        self.answers = Some(std::thread::spawn(move || {
            for _ in 0..ready {
                let replies = client.until_ready();
                assert!(replies.iter().all(|reply| reply.kind != b'E'), "{replies:?}");
            }
            client
        }));
    }

    fn has_been_answered(&self) -> bool {
        self.answers.as_ref().unwrap().is_finished()
    }

    fn finish(&mut self) {
        self.client = Some(self.answers.take().unwrap().join().unwrap());
    }
}

fn rounds(default: u64) -> u64 {
    let rounds = std::env::var("ROUNDS").ok();
    rounds.map_or(default, |rounds| rounds.parse().unwrap())
}

/// Plays one round after another: `held` are the levels whose waits the world tells apart and holds back. `hold_back`
/// changes `hot`, which is held back from then on; `waits` says whether the reader waits; `let_go` makes true what the
/// level with this number asks for.
fn play(
    server: &TestServer,
    held: RangeInclusive<usize>,
    mut hold_back: impl FnMut(),
    waits: impl Fn() -> bool,
    mut let_go: impl FnMut(usize),
) {
    let mut random = Random::begin(20_261_127);
    for round in 0..rounds(60) {
        let protocol = [
            Protocol::String,
            Protocol::Queries,
            Protocol::Pipeline,
            Protocol::Syncs,
        ][random.below(4) as usize];
        let initial = random.below(5) as usize;
        let mut model = Model::new(initial);
        let statements = batch(&mut random, protocol, &mut model);
        let mut client = server.connect();
        client.start(&[("user", "reader"), ("synchronous_commit", LEVELS[initial])]);
        let mut reader = Reader {
            client: Some(client),
            answers: None,
        };
        hold_back();
        let (bytes, ready) = encode(&statements, protocol);
        let owed = format!(
            "round {round}, {protocol:?} from {}: {statements:?} owes {}",
            LEVELS[initial], LEVELS[model.strongest]
        );
        reader.send(&bytes, ready);
        let strongest = model.strongest.min(*held.end());
        for (level, name) in LEVELS.iter().enumerate().take(strongest + 1).skip(*held.start()) {
            wait_for(&owed, || reader.has_been_answered() || waits());
            assert!(!reader.has_been_answered(), "answered before {name}: {owed}");
            let_go(level);
        }
        wait_for(&owed, || {
            if !reader.has_been_answered() && held.contains(&strongest) {
                // Its own commits come later than the one that it has read.
                let_go(strongest);
            }
            reader.has_been_answered()
        });
        reader.finish();
        // Nothing is left for the next round, not even what was committed at `off`.
        let_go(*held.end());
        let wal = &server.engine.storage().wal;
        wal.flush(wal.reserved());
        let_go(*held.end());
    }
}

/// A follower whose reports are the test's.
struct Follower {
    raw: Raw,
    received: u64,
    reported: [u64; 3],
}

impl Follower {
    fn connect(server: &TestServer) -> Follower {
        let mut raw = server.connect();
        raw.start(&[
            ("user", "replicator"),
            ("replication", "true"),
            ("application_name", "berlin"),
        ]);
        let end = server.engine.storage().wal.flushed().0;
        let start = format!("START_REPLICATION {:X}/{:X}", end >> 32, end & 0xFFFF_FFFF);
        raw.send(&query(&start));
        assert_eq!(raw.read().unwrap().kind, b'W');
        Follower {
            raw,
            received: end,
            reported: [0; 3],
        }
    }

    /// Receives all that is durable, and reports it for the levels up to the one with this number in `LEVELS`.
    fn confirm(&mut self, server: &TestServer, level: usize) {
        let storage = server.engine.storage();
        let end = storage.wal.flushed().0;
        while self.received < end {
            let reply = self.raw.read().expect("the stream ended");
            if reply.body[0] == b'w' {
                self.received += reply.body.len() as u64 - 25;
            }
        }
        self.reported[..=level - 2].fill(self.received);
        let mut body = vec![b'r'];
        for number in self.reported.into_iter().chain([0]) {
            body.extend(number.to_be_bytes());
        }
        body.push(0);
        self.raw.send(&message(b'd', &body));
        let replicated = ReplicationLevel::ALL[level - 2];
        let replication = &storage.sync_replication;
        wait_for("a report", || {
            replication.replicated(replicated).0 >= self.received
        });
    }
}

/// True if a session whose user is `reader` waits for one of `events`.
fn reader_waits(server: &TestServer, events: &[&str]) -> bool {
    let activity = server.engine.activity();
    let mut readers = activity.iter().filter(|session| session.user == "reader");
    readers.any(|session| session.wait_event.is_some_and(|event| events.contains(&event)))
}

fn tables(server: &TestServer) -> Raw {
    let mut writer = server.connect();
    writer.start(&[("user", "writer"), ("synchronous_commit", "local")]);
    for table in ["hot", "cold"] {
        writer.rows(&format!(
            "create table {table} (v int); insert into {table} values (1)"
        ));
    }
    writer
}

fn standby_holds_back(lock_release: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::from_toml("autovacuum = false\nsynchronous_standby_names = 'berlin'").unwrap();
    config
        .mechanisms
        .set(&format!("lock_release={lock_release}"))
        .unwrap();
    let engine = Engine::open(directory.path().join("data"), config).unwrap();
    let server = TestServer::over(engine, directory, 20);
    let mut writer = tables(&server);
    let mut follower = Follower::connect(&server);
    // From here on what is applied counts, and there is nothing that has not been.
    let top = LEVELS.len() - 1;
    follower.confirm(&server, top);
    let mut applied = server.connect();
    applied.start(&[("user", "reader"), ("synchronous_commit", "remote_apply")]);
    assert_eq!(applied.value("select v from hot"), "1");
    drop(applied);
    play(
        &server,
        2..=LEVELS.len() - 1,
        || {
            writer.rows("update hot set v = v + 1");
        },
        || reader_waits(&server, &["SyncRep"]),
        |level| follower.confirm(&server, level),
    );
}

#[test]
fn a_batch_waits_for_the_standby_as_the_model_says() {
    standby_holds_back("early");
}

#[test]
fn a_batch_waits_for_the_standby_as_the_model_says_after_flush() {
    standby_holds_back("after-flush");
}

#[test]
fn a_batch_waits_for_the_disk_as_the_model_says() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::from_toml("autovacuum = false").unwrap();
    config.mechanisms.set("lock_release=early").unwrap();
    let (disk, log) = HeldLog::disk();
    let engine = Engine::open_on(disk, directory.path().join("data"), config).unwrap();
    let server = TestServer::over(engine, directory, 20);
    let mut writer = tables(&server);
    writer.rows("set synchronous_commit = off");
    let held = RefCell::new(None);
    play(
        &server,
        1..=1,
        || {
            *held.borrow_mut() = Some(log.hold());
            writer.rows("update hot set v = v + 1");
        },
        || reader_waits(&server, &["WALWrite", "WALSync", "WALFlushGroup"]),
        |_| {
            *held.borrow_mut() = None;
            let wal = &server.engine.storage().wal;
            wal.flush(wal.reserved());
        },
    );
}
