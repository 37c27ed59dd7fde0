//! Random statements behind random savepoints, beside a model of the table.
//!
//! Two sessions take turns, each with keys of its own in one table, so that their versions share pages and neither waits.
//! A third reads what is committed, vacuums, and makes the pages full. A model of each session's rows is copied at each
//! savepoint and comes back with it. After each statement the session sees its model and what the other has committed, by
//! a scan and by two indexes; the third sees what both have committed.
//!
//! `SEED=7 STEPS=100000 cargo test -p clearway-engine --test isolation savepoints_random` repeats a run, or takes longer.

use std::collections::BTreeMap;

use clearway_engine::Session;

use crate::common::{Fixture, query, run};

/// Keys of a session.
const KEYS: i32 = 12;

/// Rows by key: an indexed value, and one that is not.
type Rows = BTreeMap<i32, (i32, i32)>;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0 to below `bound`.
    pub(crate) fn below(&mut self, bound: i32) -> i32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as i32
    }
}

struct Client {
    session: Session,
    /// Its keys begin here.
    first: i32,
    committed: Rows,
    now: Rows,
    savepoints: Vec<(String, Rows)>,
    in_block: bool,
}

fn shown(rows: &Rows) -> String {
    let row = |(key, (a, b)): (&i32, &(i32, i32))| format!("{key}|{a}|{b}");
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

impl Client {
    fn new(fixture: &Fixture, first: i32) -> Client {
        Client {
            session: fixture.session(),
            first,
            committed: Rows::new(),
            now: Rows::new(),
            savepoints: Vec::new(),
            in_block: false,
        }
    }

    /// One statement that changes rows, and what it does to the model; `false`: an error.
    fn change(&mut self, random: &mut Random) -> bool {
        let key = self.first + random.below(KEYS);
        let other = self.first + random.below(KEYS);
        let value = random.below(1_000);
        let (from, to) = (key.min(other), key.max(other));
        let (sql, ok) = match random.below(9) {
            0 | 1 => {
                let is_new = !self.now.contains_key(&key);
                if is_new {
                    self.now.insert(key, (value, 0));
                }
                (format!("insert into t values ({key}, {value}, 0)"), is_new)
            }
            2 => {
                let row = self.now.entry(key).or_insert((value, -1));
                *row = (row.0, row.1 + 1);
                let sql = format!(
                    "insert into t values ({key}, {value}, 0) on conflict (k) do update set b = t.b + 1"
                );
                (sql, true)
            }
            // A HOT update, of rows that this transaction may have locked.
            3 | 4 => {
                if random.below(10) < 3 {
                    query(
                        &mut self.session,
                        &format!("select k from t where k = {key} for update"),
                    );
                }
                self.now.range_mut(from..=to).for_each(|(_, row)| row.1 += 1);
                (
                    format!("update t set b = b + 1 where k between {from} and {to}"),
                    true,
                )
            }
            // One that gives rows new entries in an index.
            5 => {
                self.now.range_mut(from..=to).for_each(|(_, row)| row.0 += 1);
                (
                    format!("update t set a = a + 1 where k between {from} and {to}"),
                    true,
                )
            }
            6 => {
                let ok = !self.now.contains_key(&key) || !self.now.contains_key(&other) || key == other;
                if ok && let Some(row) = self.now.remove(&key) {
                    self.now.insert(other, row);
                }
                (format!("update t set k = {other} where k = {key}"), ok)
            }
            7 => {
                self.now.retain(|key, _| !(from..=to).contains(key));
                (format!("delete from t where k between {from} and {to}"), true)
            }
            _ => {
                self.now.remove(&key);
                (format!("delete from t where k = {key}"), true)
            }
        };
        let answer = run(&mut self.session, &sql);
        assert_eq!(answer.starts_with("ERROR"), !ok, "{sql}: {answer}");
        ok
    }

    fn step(&mut self, random: &mut Random) {
        if !self.in_block {
            query(&mut self.session, "begin");
            self.in_block = true;
        }
        match random.below(20) {
            0..=11 => {
                if !self.change(random) {
                    self.after_error(random);
                }
            }
            12..=14 => {
                let name = format!("s{}", random.below(3));
                query(&mut self.session, &format!("savepoint {name}"));
                self.savepoints.push((name, self.now.clone()));
            }
            15 => self.release(random),
            16 | 17 => self.go_back(random),
            18 => {
                run(&mut self.session, "select 1 / 0");
                self.after_error(random);
            }
            _ => self.end(random.below(10) < 7),
        }
    }

    /// The newest savepoint of a name, if there is one.
    fn some_savepoint(&self, random: &mut Random) -> Option<usize> {
        if self.savepoints.is_empty() {
            return None;
        }
        let name = &self.savepoints[random.below(self.savepoints.len() as i32) as usize].0;
        self.savepoints.iter().rposition(|(other, _)| other == name)
    }

    fn release(&mut self, random: &mut Random) {
        if let Some(index) = self.some_savepoint(random) {
            query(
                &mut self.session,
                &format!("release {}", self.savepoints[index].0),
            );
            self.savepoints.truncate(index);
        }
    }

    fn go_back(&mut self, random: &mut Random) {
        if let Some(index) = self.some_savepoint(random) {
            query(
                &mut self.session,
                &format!("rollback to {}", self.savepoints[index].0),
            );
            self.savepoints.truncate(index + 1);
            self.now.clone_from(&self.savepoints[index].1);
        }
    }

    fn after_error(&mut self, random: &mut Random) {
        if self.savepoints.is_empty() {
            self.end(false);
        } else {
            self.go_back(random);
        }
    }

    fn end(&mut self, commits: bool) {
        query(&mut self.session, if commits { "commit" } else { "rollback" });
        match commits {
            true => self.committed.clone_from(&self.now),
            false => self.now.clone_from(&self.committed),
        }
        self.savepoints.clear();
        self.in_block = false;
    }
}

fn assert_sees(session: &mut Session, rows: &Rows, what: &str) {
    for order in [
        "select k, a, b from t order by k",
        "select k, a, b from t where k >= 0 order by k",
        "select k, a, b from t where a >= 0 order by k",
    ] {
        assert_eq!(query(session, order), shown(rows), "{what}: {order}");
    }
}

fn both(first: &Rows, second: &Rows) -> Rows {
    first
        .iter()
        .chain(second)
        .map(|(key, row)| (*key, *row))
        .collect()
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn random_statements_are_taken_back() {
    let seeds = match number("SEED", 0) {
        0 => 1..=8,
        seed => seed..=seed,
    };
    for seed in seeds {
        let mut random = Random(seed);
        let fixture = Fixture::new(
            "create table t (k int primary key, a int, b int);
             create index on t (a)",
        );
        let mut clients = [0, 100].map(|first| Client::new(&fixture, first));
        let mut third = fixture.session();
        for step in 0..number("STEPS", 250) {
            let at = random.below(2) as usize;
            clients[at].step(&mut random);
            let what = format!("seed {seed}, step {step}");
            let [first, second] = &mut clients;
            assert_sees(&mut first.session, &both(&first.now, &second.committed), &what);
            assert_sees(&mut second.session, &both(&first.committed, &second.now), &what);
            assert_sees(&mut third, &both(&first.committed, &second.committed), &what);
            if random.below(40) == 0 {
                query(&mut third, "vacuum t");
            }
        }
        clients
            .iter_mut()
            .filter(|client| client.in_block)
            .for_each(|client| client.end(true));
        let all = both(&clients[0].committed, &clients[1].committed);
        for after in ["select 1", "vacuum t"] {
            query(&mut third, after);
            assert_sees(&mut third, &all, after);
            let report = fixture.engine.check().unwrap();
            assert_eq!(report.problems, Vec::<String>::new(), "seed {seed}");
        }
    }
}
