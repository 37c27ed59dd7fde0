//! Power cuts under SQL: tables, indexes and rows are as they were acknowledged to a session, or as its open
//! transaction makes them.
//!
//! Each session has tables of its own: it inserts, copies, updates and deletes rows in transactions, makes, truncates and
//! drops tables, adds indexes, stores values apart from their rows, goes back to savepoints, and commits with and without
//! waiting for the disk. Each commit that has changed something counts in a row by an upsert, and leaves a row that names
//! the session's by a foreign key which is checked at the commit. Checkpoints run all the time, and the pool is small.
//! The disk is that of `crates/storage/tests/power_cuts.rs`, which says what an image of a cut holds. Every image is
//! recovered, compared with the ledger (a state that the session has asked for, and none before the last one that was
//! acknowledged as durable) and checked as `clearway check` does.
//!
//! Under `lock_release = early` the sessions also update one row that all of them count in, and show each other how far
//! they are: what a session was shown that waits for the disk is durable, whether the other waits or not. Each commit of
//! an image counts once in that row.
//!
//! `SEED=7 IMAGES=1000 cargo test --release -p clearway-engine --test power_cuts` is the long form.

mod common;
#[path = "../../storage/tests/support/recording_disk/mod.rs"]
mod recording_disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use clearway_engine::{Collected, Config, Engine, Mechanisms, Session, SessionInfo};
use clearway_storage::LockReleaseVariant;
use clearway_storage::disk::SyncPurpose;
use common::{config, mechanisms, query, run};
use recording_disk::{Frozen, Random, RecordingDisk};

const DIRECTORY: &str = "/disk/data";
const SESSIONS: usize = 2;

/// 9,600 bytes that do not get shorter.
const LONG_NOTE: &str = "(select string_agg(md5(id || '/' || g), '') from generate_series(1, 300) g)";

/// The last commit of each session, the number of all, and a row of each.
const PROGRESS: &str = "create table progress (id int primary key, n int);
    create table steps (session int references progress deferrable initially deferred, n int, primary key (session, n))";

/// Finds nothing: the rows of the commits are as many as there are commits, name their sessions, and none was taken back.
fn wrong_steps() -> String {
    format!(
        "select p.id, p.n, count(s.n), max(s.n) from progress p
            left join steps s on p.id = s.session or p.id = {SESSIONS} group by p.id, p.n
            having p.n <> case p.id when {SESSIONS} then count(s.n) else coalesce(max(s.n), 0) end
         union all select s.session, null, null, s.n from steps s
            where not exists (select from progress p where p.id = s.session)"
    )
}

/// A session's tables, and their rows by key.
type Tables = BTreeMap<String, BTreeMap<u64, u64>>;

/// The requests of a session and their acknowledgements.
#[derive(Debug, Clone, Default)]
struct Ledger {
    /// The content of the tables after each commit that has begun, from the first on.
    states: Vec<Tables>,
    /// The numbers, from 1, of those commits that changed anything.
    changes: Vec<usize>,
    /// The commits that have returned.
    returned: usize,
    /// The commits that are durable for sure.
    floor: usize,
}

type Ledgers = Arc<Mutex<Vec<Ledger>>>;

fn open(disk: &RecordingDisk, mechanisms: Mechanisms) -> Result<Arc<Engine>, String> {
    let config = Config {
        mechanisms,
        fsync: true,
        autovacuum: false,
        shared_buffers: "1MB".parse().unwrap(),
        ..config()
    };
    Engine::open_on(Arc::new(disk.clone()), DIRECTORY, config).map_err(|error| format!("{error:?}"))
}

struct Client {
    session: Session,
    number: usize,
    ledgers: Ledgers,
    tables: Tables,
    random: Random,
    made: u64,
    /// True if what others have committed is durable before it is shown.
    shows_durable: bool,
}

impl Client {
    fn some_table(&mut self) -> Option<String> {
        let number = self.random.below(self.tables.len() as u64) as usize;
        self.tables.keys().nth(number).cloned()
    }

    fn run(&mut self, sql: &str) {
        query(&mut self.session, sql);
    }

    /// One statement, and what it does to the model.
    fn statement(&mut self) {
        let table = self.some_table();
        let (choice, key) = (self.random.below(20), self.random.below(40));
        match (choice, table) {
            (0, _) | (_, None) => {
                let name = format!("t{}_{}", self.number, self.made);
                self.made += 1;
                self.run(&format!(
                    "create table {name} (id int primary key, v int, note text)"
                ));
                self.tables.insert(name, BTreeMap::new());
            }
            (1, Some(table)) if self.tables.len() > 2 => {
                self.run(&format!("drop table {table}"));
                self.tables.remove(&table);
            }
            (2, Some(table)) => {
                self.run(&format!("truncate {table}"));
                self.tables.get_mut(&table).unwrap().clear();
            }
            (3, Some(table)) => {
                let name = format!("i{}_{}", self.number, self.made);
                self.made += 1;
                self.run(&format!("create index {name} on {table} (v)"));
            }
            (4..=6, Some(table)) => {
                self.run(&format!("delete from {table} where id = {key}"));
                self.tables.get_mut(&table).unwrap().remove(&key);
            }
            (7..=12, Some(table)) => {
                self.run(&format!("update {table} set v = v + 1 where id >= {key}"));
                let rows = self.tables.get_mut(&table).unwrap();
                rows.range_mut(key..).for_each(|(_, value)| *value += 1);
                if choice == 7 {
                    // Stored apart; `check` reads them all.
                    self.run(&format!("update {table} set note = {LONG_NOTE} where id = {key}"));
                }
            }
            (13..=14, Some(table)) => self.copy(&table, key, choice),
            (_, Some(table)) => {
                if self.tables.get_mut(&table).unwrap().insert(key, choice).is_some() {
                    self.run(&format!("update {table} set v = {choice} where id = {key}"));
                } else {
                    let note = "n".repeat(20 * choice as usize);
                    self.run(&format!("insert into {table} values ({key}, {choice}, '{note}')"));
                }
            }
        }
    }

    /// COPY of the rows that the table does not have among those from `first` on.
    fn copy(&mut self, table: &str, first: u64, value: u64) {
        let rows = self.tables.get_mut(table).unwrap();
        let missing: Vec<u64> = (first..40).filter(|key| !rows.contains_key(key)).collect();
        rows.extend(missing.iter().map(|key| (*key, value)));
        // Some pages of rows, in descending order of keys.
        let line = |key: &u64| format!("{key}\t{value}\t{}\n", "c".repeat(20 * *key as usize));
        let mut out = Collected {
            copy_input: missing.iter().rev().map(line).collect::<String>().into_bytes(),
            ..Collected::default()
        };
        self.session
            .execute_simple(&format!("copy {table} from stdin"), &mut out)
            .unwrap();
    }

    /// Statements behind a savepoint, most of them taken back, some after an error.
    fn behind_savepoint(&mut self, depth: u32) {
        let name = format!("s{depth}");
        self.run(&format!("savepoint {name}"));
        let before = self.tables.clone();
        for _ in 0..1 + self.random.below(4) {
            if depth < 3 && self.random.one_in(4) {
                self.behind_savepoint(depth + 1);
            } else {
                self.statement();
            }
        }
        if self.random.one_in(4) {
            run(&mut self.session, "select 1 / 0");
        } else if self.random.one_in(3) {
            self.run(&format!("release {name}"));
            return;
        }
        self.run(&format!("rollback to {name}"));
        self.tables = before;
    }

    fn transaction(&mut self) {
        let synchronous = self.random.one_in(2);
        let setting = if synchronous { "on" } else { "off" };
        self.run(&format!("set synchronous_commit = {setting}"));
        self.run("begin");
        let before = self.tables.clone();
        for _ in 0..1 + self.random.below(4) {
            if self.random.one_in(4) {
                self.behind_savepoint(1);
            } else {
                self.statement();
            }
        }
        if self.random.one_in(8) {
            self.run("rollback");
            self.tables = before;
            return;
        }
        let changes = self.tables != before;
        if changes {
            let number = self.ledgers.lock().unwrap()[self.number].states.len() + 1;
            self.count(number);
        }
        let returned: Vec<_> = {
            let mut ledgers = self.ledgers.lock().unwrap();
            let ledger = &mut ledgers[self.number];
            ledger.states.push(self.tables.clone());
            if changes {
                ledger.changes.push(ledger.states.len());
            }
            ledgers.iter().map(|ledger| ledger.returned).collect()
        };
        self.run("commit");
        let mut ledgers = self.ledgers.lock().unwrap();
        ledgers[self.number].returned += 1;
        // A transaction that has changed nothing has no commit record, and waits for no earlier one.
        if synchronous && changes {
            // What had returned to any session before this commit began is durable with it.
            for (ledger, returned) in ledgers.iter_mut().zip(returned) {
                ledger.floor = ledger.floor.max(returned);
            }
            ledgers[self.number].floor = ledgers[self.number].returned;
        }
    }

    /// Notes the number of a commit that has changed something, and counts it.
    fn count(&mut self, number: usize) {
        let session = self.number;
        if self.random.one_in(4) {
            self.run("savepoint counted");
            self.run(&format!("insert into steps values ({session}, 1000000)"));
            self.run(&format!("update progress set n = 1000000 where id = {session}"));
            self.run("rollback to counted");
        }
        self.run(&format!("insert into steps values ({session}, {number})"));
        self.run(&format!(
            "insert into progress values ({session}, {number}) on conflict (id) do update set n = excluded.n"
        ));
        self.run(&format!(
            "insert into progress values ({SESSIONS}, 1) on conflict (id) do update set n = progress.n + 1"
        ));
    }

    /// Looks how far the other sessions are. What this one is shown is durable.
    fn look(&mut self) {
        self.run("set synchronous_commit = on");
        let shown = query(&mut self.session, "select id, n from progress where id < 1000");
        if !self.shows_durable {
            return;
        }
        let mut ledgers = self.ledgers.lock().unwrap();
        for (id, n) in progress(&shown) {
            if let Some(ledger) = ledgers.get_mut(id) {
                ledger.floor = ledger.floor.max(n);
            }
        }
    }
}

/// The rows of the table in which sessions count.
fn progress(shown: &str) -> BTreeMap<usize, usize> {
    let row = |row: &str| {
        let (id, n) = row.split_once('|').unwrap();
        (id.parse().unwrap(), n.parse().unwrap())
    };
    shown.split(", ").map(row).collect()
}

/// Clients at work on a new disk; the states at the cuts and at the end, each with what had been promised.
fn work(
    random: &mut Random,
    ignored: Option<SyncPurpose>,
    mechanisms: Mechanisms,
) -> Vec<(Frozen, Vec<Ledger>)> {
    let disk = RecordingDisk::with_directory(Path::new("/disk"));
    let engine = open(&disk, mechanisms).unwrap();
    let mut setup = engine.session(SessionInfo::default()).unwrap();
    query(&mut setup, PROGRESS);
    for id in 0..=SESSIONS {
        query(&mut setup, &format!("insert into progress values ({id}, 0)"));
    }
    disk.ignore(ignored);
    let ledgers: Ledgers = Arc::new(Mutex::new(vec![Ledger::default(); SESSIONS]));
    let snapshots: Arc<Mutex<BTreeMap<u64, Vec<Ledger>>>> = Arc::default();
    let (kept, copied) = (Arc::clone(&snapshots), Arc::clone(&ledgers));
    let before = move |number| {
        let now = copied.lock().unwrap().clone();
        kept.lock().unwrap().insert(number, now);
    };
    let operations: Vec<_> = (0..3).map(|_| random.below(900)).collect();
    disk.cut_before(operations, Some(Arc::new(before)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let mut client = Client {
                    session: engine.session(SessionInfo::default()).unwrap(),
                    number,
                    ledgers: Arc::clone(&ledgers),
                    tables: Tables::new(),
                    random: Random(random.next()),
                    made: 0,
                    shows_durable: mechanisms.lock_release == LockReleaseVariant::Early,
                };
                scope.spawn(move || {
                    for _ in 0..60 {
                        client.transaction();
                        if client.random.one_in(2) {
                            client.look();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                engine.checkpoint().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        for client in clients {
            client.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut states: Vec<_> = disk
        .take_frozen()
        .into_iter()
        .map(|(number, frozen)| (frozen, snapshots.lock().unwrap()[&number].clone()))
        .collect();
    states.push((disk.freeze(), ledgers.lock().unwrap().clone()));
    if ignored.is_none() {
        assert_eq!(disk.violations(), Vec::<String>::new());
    }
    engine.shutdown().unwrap();
    states
}

/// A table as a session sees it: its rows, or that it is not there.
fn shown(session: &mut Session, table: &str) -> String {
    run(session, &format!("select id, v from {table} order by id"))
}

fn expected(tables: &Tables, table: &str) -> String {
    match tables.get(table) {
        None => "ERROR 42P01".into(),
        Some(rows) => rows
            .iter()
            .map(|(id, value)| format!("{id}|{value}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Recovers an image and compares it with what was promised.
fn check(image: &RecordingDisk, promised: &[Ledger], mechanisms: Mechanisms) -> Result<(), String> {
    let engine = open(image, mechanisms)?;
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let counts = run(&mut session, "select id, n from progress");
    if counts.starts_with("ERROR") {
        // Without some sync a page may be torn and the log whole.
        return Err(format!("the counts of commits cannot be read: {counts}"));
    }
    let done = progress(&counts);
    let counted =
        |(number, ledger): (usize, &Ledger)| ledger.changes.iter().filter(|n| **n <= done[&number]).count();
    let commits: usize = promised.iter().enumerate().map(counted).sum();
    if commits != done[&SESSIONS] {
        return Err(format!(
            "{commits} commits are there, and {} were counted",
            done[&SESSIONS]
        ));
    }
    let wrong = run(&mut session, &wrong_steps());
    if !wrong.is_empty() {
        return Err(format!(
            "the rows of commits are not those of their sessions: {wrong}"
        ));
    }
    for (number, ledger) in promised.iter().enumerate() {
        let names: BTreeSet<_> = ledger.states.iter().flat_map(Tables::keys).collect();
        let found: BTreeMap<_, _> = names
            .into_iter()
            .map(|name| (name, shown(&mut session, name)))
            .collect();
        let nothing = Tables::new();
        let states = || std::iter::once(&nothing).chain(&ledger.states).skip(ledger.floor);
        let fits = |tables: &Tables| found.iter().all(|(name, found)| *found == expected(tables, name));
        if !states().any(fits) {
            let last = states().next().unwrap();
            let different = found.iter().find(|(name, found)| **found != expected(last, name));
            return Err(format!(
                "session {number}, {} of {} commits durable: {different:?} is not {:?}",
                ledger.floor,
                ledger.states.len(),
                different.map(|(name, _)| expected(last, name))
            ));
        }
    }
    for name in promised
        .iter()
        .flat_map(|ledger| &ledger.states)
        .flat_map(Tables::keys)
        .collect::<BTreeSet<_>>()
    {
        let wrong = format!("select id from {name} where length(note) = 9600 and note <> {LONG_NOTE}");
        match &run(&mut session, &wrong)[..] {
            "" | "ERROR 42P01" => {}
            other => return Err(format!("long values of {name} are wrong: {other}")),
        }
    }
    let report = engine.check().map_err(|error| format!("{error:?}"))?;
    if let Some(problem) = report.problems.first() {
        return Err(problem.clone());
    }
    drop(session);
    engine.shutdown().map_err(|error| format!("{error:?}"))?;
    match image.violations().pop() {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    play(mechanisms());
}

#[test]
fn nothing_shown_is_lost() {
    let early = LockReleaseVariant::Early;
    play(Mechanisms {
        lock_release: early,
        ..mechanisms()
    });
}

fn play(mechanisms: Mechanisms) {
    let variable = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let (seed, images) = (variable("SEED", 3), variable("IMAGES", 30));
    println!("SEED={seed} IMAGES={images}");
    let mut random = Random(seed);
    let mut done = 0;
    while done < images {
        for (frozen, promised) in work(&mut random, None, mechanisms) {
            for _ in 0..3 {
                done += 1;
                if let Err(problem) = check(&frozen.random_image(&mut random), &promised, mechanisms) {
                    panic!("SEED={seed}, image {done}, a cut during work: {problem}");
                }
            }
            // A kill, and the power is cut in the recovery after it.
            let killed = frozen.after_kill();
            killed.cut_before([random.below(60), random.below(120)], None);
            check(&killed, &promised, mechanisms)
                .unwrap_or_else(|problem| panic!("SEED={seed}, a kill: {problem}"));
            for inner in killed.take_frozen().into_values() {
                done += 1;
                if let Err(problem) = check(&inner.random_image(&mut random), &promised, mechanisms) {
                    panic!("SEED={seed}, image {done}, a cut during replay: {problem}");
                }
            }
        }
    }
}

/// The test above can fail: on a disk that ignores the syncs of the log, of data files or of their names,
/// some image fails. Which one depends on how the threads ran, so the test plays new stories until one fails.
#[test]
fn without_a_sync_an_image_fails() {
    const STORIES: u64 = 50;
    for purpose in [
        SyncPurpose::LogFlush,
        SyncPurpose::DataFile,
        SyncPurpose::DataFileNames,
    ] {
        let (mut random, mechanisms) = (Random(5), mechanisms());
        let found = (1..=STORIES).find_map(|story| {
            work(&mut random, Some(purpose), mechanisms)
                .into_iter()
                .flat_map(|state| std::iter::repeat_n(state, 4))
                .find_map(|(frozen, promised)| {
                    check(&frozen.random_image(&mut random), &promised, mechanisms).err()
                })
                .map(|problem| (story, problem))
        });
        println!("without {purpose:?}: {found:?}");
        assert!(found.is_some(), "{purpose:?}");
    }
}
