//! Random transactions of three sessions on four rows, beside a model of what each statement must do.
//!
//! Every statement names one row, by its key or by a group that only this row can be in, so the rules are short:
//!
//! 1. The row is looked for in the statement's snapshot: a new one under READ COMMITTED, the transaction's under
//!    REPEATABLE READ, and what the transaction has changed itself in both. If it is not there, nothing happens.
//! 2. If another transaction holds the row, the statement waits for that transaction's end; a REPEATABLE READ
//!    transaction for whose snapshot the row has changed already does not.
//! 3. If the row has changed since the snapshot: READ COMMITTED looks at the newest version once more, and leaves the
//!    row out if that is not what was asked for; REPEATABLE READ fails with 40001.
//!
//! At most one session waits for a row, so that it is certain which one goes on. A transaction takes rows in the order
//! of their keys, so no two wait for each other. `SEED=n` repeats a run.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clearway_engine::{Engine, SessionInfo};
use common::{Fixture, query, run};

const SESSIONS: usize = 3;
const ROWS: usize = 4;
const ROUNDS: usize = 40;
const STEPS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(120);

/// A session with a thread of its own.
struct Actor {
    orders: Sender<String>,
    results: Receiver<String>,
    process_id: u32,
}

impl Actor {
    fn start(engine: &Arc<Engine>) -> Actor {
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let process_id = session.cancel_key().0;
        let (orders, inbox) = channel::<String>();
        let (outbox, results) = channel();
        std::thread::spawn(move || {
            for sql in inbox {
                if outbox.send(run(&mut session, &sql)).is_err() {
                    return;
                }
            }
        });
        Actor {
            orders,
            results,
            process_id,
        }
    }

    fn result(&self) -> String {
        self.results.recv_timeout(PATIENCE).expect("a result in time")
    }

    /// Returns when the session waits for a lock; panics if it has a result instead.
    fn expect_waiting(&self, engine: &Engine) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let activity = engine.activity();
            if activity
                .iter()
                .any(|a| a.process_id == self.process_id && a.wait_event_type == Some("Lock"))
            {
                return;
            }
            if let Ok(result) = self.results.try_recv() {
                panic!("expected to wait, but got {result:?}");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        panic!("neither a result nor a wait");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    grp: i64,
    v: i64,
}

/// A row as committed, and how often it has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Committed {
    row: Option<Row>,
    changes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Add(i64),
    Move(i64),
    Delete,
    Lock,
}

/// A statement about one row.
#[derive(Debug, Clone, Copy)]
struct Statement {
    row: usize,
    grp: i64,
    by_key: bool,
    change: Change,
}

impl Statement {
    fn sql(&self) -> String {
        let wanted = match self.by_key {
            true => format!("where id = {} and grp = {}", self.row, self.grp),
            false => format!("where grp = {}", self.grp),
        };
        match self.change {
            Change::Add(n) => format!("update t set v = v + {n} {wanted}"),
            Change::Move(grp) => format!("update t set grp = {grp} {wanted}"),
            Change::Delete => format!("delete from t {wanted}"),
            Change::Lock => format!("select v from t {wanted} for update"),
        }
    }

    fn wants(&self, row: Option<Row>) -> bool {
        row.is_some_and(|row| row.grp == self.grp)
    }

    fn nothing(&self) -> String {
        match self.change {
            Change::Add(_) | Change::Move(_) => "UPDATE 0",
            Change::Delete => "DELETE 0",
            Change::Lock => "",
        }
        .to_owned()
    }

    /// The row after the statement, and the statement's answer.
    fn apply(&self, row: Row) -> (Option<Row>, String) {
        match self.change {
            Change::Add(n) => (Some(Row { v: row.v + n, ..row }), "UPDATE 1".to_owned()),
            Change::Move(grp) => (Some(Row { grp, ..row }), "UPDATE 1".to_owned()),
            Change::Delete => (None, "DELETE 1".to_owned()),
            Change::Lock => (Some(row), row.v.to_string()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Open,
    Failed,
}

#[derive(Debug)]
struct Transaction {
    phase: Phase,
    repeatable: bool,
    snapshot: Option<[Committed; ROWS]>,
    /// The rows it holds: what it makes of them, and whether that is a change.
    held: BTreeMap<usize, (Option<Row>, bool)>,
    waiting: Option<(Statement, [Committed; ROWS])>,
}

#[derive(Debug)]
struct Model {
    rows: [Committed; ROWS],
    transactions: [Transaction; SESSIONS],
}

/// The immediate outcome of a statement.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Says(String),
    Waits,
}

impl Model {
    fn new() -> Model {
        Model {
            rows: std::array::from_fn(|row| Committed {
                row: Some(Row {
                    grp: row as i64 * 10,
                    v: 0,
                }),
                changes: 0,
            }),
            transactions: std::array::from_fn(|_| Transaction {
                phase: Phase::Idle,
                repeatable: false,
                snapshot: None,
                held: BTreeMap::new(),
                waiting: None,
            }),
        }
    }

    fn holder(&self, row: usize) -> Option<usize> {
        (0..SESSIONS).find(|session| self.transactions[*session].held.contains_key(&row))
    }

    fn snapshot(&mut self, session: usize) -> [Committed; ROWS] {
        let transaction = &mut self.transactions[session];
        if transaction.phase == Phase::Open && transaction.repeatable {
            *transaction.snapshot.get_or_insert(self.rows)
        } else {
            self.rows
        }
    }

    fn execute(&mut self, session: usize, statement: Statement) -> Answer {
        let snapshot = self.snapshot(session);
        let own = self.transactions[session].held.get(&statement.row).copied();
        let seen = own.map_or(snapshot[statement.row].row, |(row, _)| row);
        if !statement.wants(seen) {
            return Answer::Says(statement.nothing());
        }
        let lost = self.transactions[session].repeatable
            && self.rows[statement.row].changes != snapshot[statement.row].changes;
        if own.is_none() && self.holder(statement.row).is_some() && !lost {
            self.transactions[session].waiting = Some((statement, snapshot));
            return Answer::Waits;
        }
        Answer::Says(self.take(session, statement, &snapshot))
    }

    /// The row is free, or the session's own: rule 3.
    fn take(&mut self, session: usize, statement: Statement, snapshot: &[Committed; ROWS]) -> String {
        let now = self.rows[statement.row];
        let own = self.transactions[session].held.get(&statement.row).copied();
        let (row, changed) = own.unwrap_or((now.row, false));
        if now.changes != snapshot[statement.row].changes {
            if self.transactions[session].repeatable {
                self.end(session, false);
                self.transactions[session].phase = Phase::Failed;
                return "ERROR 40001".to_owned();
            }
            if !statement.wants(row) {
                return statement.nothing();
            }
        }
        let (after, says) = statement.apply(row.expect("the row is wanted, so it is there"));
        let changes = changed || !matches!(statement.change, Change::Lock);
        self.transactions[session]
            .held
            .insert(statement.row, (after, changes));
        if self.transactions[session].phase == Phase::Idle {
            self.end(session, true);
        }
        says
    }

    fn end(&mut self, session: usize, commit: bool) {
        let transaction = &mut self.transactions[session];
        for (number, (row, changed)) in std::mem::take(&mut transaction.held) {
            if commit && changed {
                self.rows[number].row = row;
                self.rows[number].changes += 1;
            }
        }
        transaction.phase = Phase::Idle;
        transaction.snapshot = None;
    }

    /// Whose wait is over, and what the statement says.
    fn wake(&mut self) -> Option<(usize, String)> {
        let free = |session: &usize| {
            let waiting = self.transactions[*session].waiting.as_ref();
            waiting.is_some_and(|(statement, _)| self.holder(statement.row).is_none())
        };
        let session = (0..SESSIONS).find(free)?;
        let (statement, snapshot) = self.transactions[session].waiting.take()?;
        Some((session, self.take(session, statement, &snapshot)))
    }
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A statement that neither makes a second session wait for a row nor takes rows out of order.
fn statement(random: &mut Random, model: &Model, session: usize) -> Option<Statement> {
    let row = random.below(ROWS);
    let waited_for = model.transactions.iter().any(|other| {
        other
            .waiting
            .as_ref()
            .is_some_and(|(waiting, _)| waiting.row == row)
    });
    let out_of_order = model.transactions[session]
        .held
        .last_key_value()
        .is_some_and(|(last, _)| row < *last);
    if waited_for || out_of_order {
        return None;
    }
    let group = |random: &mut Random| (row * 10 + random.below(2)) as i64;
    Some(Statement {
        row,
        grp: group(random),
        by_key: random.below(2) == 0,
        change: match random.below(12) {
            0..5 => Change::Add(random.below(100) as i64),
            5..9 => Change::Move(group(random)),
            9..11 => Change::Lock,
            _ => Change::Delete,
        },
    })
}

/// One step of one session; `None` when there is none for it now.
fn step(random: &mut Random, model: &mut Model, actors: &[Actor], engine: &Engine) -> Option<()> {
    let session = random.below(SESSIONS);
    if model.transactions[session].waiting.is_some() {
        return None;
    }
    let phase = model.transactions[session].phase;
    let (sql, answer) = match (phase, random.below(4)) {
        (Phase::Idle, 0) => {
            let repeatable = random.below(3) == 0;
            let transaction = &mut model.transactions[session];
            (transaction.phase, transaction.repeatable) = (Phase::Open, repeatable);
            let level = if repeatable {
                "repeatable read"
            } else {
                "read committed"
            };
            (
                format!("begin isolation level {level}"),
                Answer::Says("BEGIN".to_owned()),
            )
        }
        (Phase::Failed, _) => {
            model.end(session, false);
            ("commit".to_owned(), Answer::Says("ROLLBACK".to_owned()))
        }
        (Phase::Open, 0) => {
            let commit = random.below(4) > 0;
            model.end(session, commit);
            let word = if commit { "COMMIT" } else { "ROLLBACK" };
            (word.to_lowercase(), Answer::Says(word.to_owned()))
        }
        _ => {
            if phase == Phase::Idle {
                model.transactions[session].repeatable = false;
            }
            let statement = statement(random, model, session)?;
            (statement.sql(), model.execute(session, statement))
        }
    };
    let done = format!("session {session}: {sql} => {answer:?}");
    println!("{done}");
    actors[session].orders.send(sql).unwrap();
    match answer {
        Answer::Waits => actors[session].expect_waiting(engine),
        Answer::Says(says) => assert_eq!(actors[session].result(), says, "{done}"),
    }
    wake_all(model, actors);
    Some(())
}

fn wake_all(model: &mut Model, actors: &[Actor]) {
    while let Some((session, says)) = model.wake() {
        println!("session {session} goes on => {says:?}");
        assert_eq!(actors[session].result(), says, "session {session} has waited");
    }
}

fn finish(model: &mut Model, actors: &[Actor]) {
    while let Some(session) = (0..SESSIONS)
        .find(|s| model.transactions[*s].waiting.is_none() && model.transactions[*s].phase != Phase::Idle)
    {
        let word = match model.transactions[session].phase {
            Phase::Failed => "ROLLBACK",
            _ => "COMMIT",
        };
        model.end(session, word == "COMMIT");
        println!("session {session}: commit");
        actors[session].orders.send("commit".to_owned()).unwrap();
        assert_eq!(actors[session].result(), word);
        wake_all(model, actors);
    }
}

fn compare_with_the_model(index: &str) {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(0x5EED_2026);
    println!("SEED={seed}");
    let mut random = Random(seed | 1);
    let fixture = Fixture::new(&format!(
        "create table t (id int primary key, grp int, v int); {index}"
    ));
    let actors: Vec<Actor> = (0..SESSIONS).map(|_| Actor::start(&fixture.engine)).collect();
    let mut s = fixture.session();
    for _ in 0..ROUNDS {
        query(&mut s, "delete from t");
        query(
            &mut s,
            "insert into t select n, n * 10, 0 from generate_series(0, 3) as s(n)",
        );
        let mut model = Model::new();
        for _ in 0..STEPS {
            step(&mut random, &mut model, &actors, &fixture.engine);
        }
        finish(&mut model, &actors);
        let rows: Vec<String> = (0..ROWS)
            .filter_map(|id| {
                model.rows[id]
                    .row
                    .map(|row| format!("{id}|{}|{}", row.grp, row.v))
            })
            .collect();
        assert_eq!(
            query(&mut s, "select id, grp, v from t order by id"),
            rows.join(", ")
        );
    }
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn random_transactions_do_what_the_model_says_by_scans() {
    compare_with_the_model("");
}

#[test]
fn random_transactions_do_what_the_model_says_by_an_index() {
    compare_with_the_model("create index t_grp on t (grp)");
}
