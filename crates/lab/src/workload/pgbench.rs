//! pgbench's tables and transactions, in process.
//!
//! The tables, their contents and the statements are those of PostgreSQL's `pgbench`, so that the numbers
//! compare with other measurements of it. Only the way differs: statements are prepared once on a [`Session`]
//! and run without a socket.
//!
//! # What must hold afterwards
//!
//! `simple-update` adds the same amount to an account and to the history; `tpcb-like` adds it to a teller and a branch
//! too. Every client keeps the sum of the commits that were acknowledged to it. So after any run
//!
//! | rule | |
//! | --- | --- |
//! | B1 | sum(abalance) = sum(history.delta) |
//! | B2 | sum(tbalance) = sum(bbalance) |
//! | B3 | sum(abalance) has grown by what all transactions acknowledged |
//! | B4 | sum(bbalance) has grown by what tpcb-like transactions acknowledged |
//! | B5 | the history has grown by one row per acknowledged writing transaction |

use std::sync::Arc;

use clearway_engine::{DataType, Discard, Engine, EngineError, Prepared, Session, SessionInfo, Value};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::copy::copy;
use super::{Workload, one_number};

/// Accounts a branch has.
pub const ACCOUNTS_PER_BRANCH: i64 = 100_000;

/// Tellers a branch has.
pub const TELLERS_PER_BRANCH: i64 = 10;

pub(crate) const TABLES: [&str; 4] = [
    "create table pgbench_history(tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "create table pgbench_tellers(tid int not null, bid int, tbalance int, filler char(84))",
    "create table pgbench_accounts(aid int not null, bid int, abalance int, filler char(84))",
    "create table pgbench_branches(bid int not null, bbalance int, filler char(88))",
];

pub(crate) const AFTERWARDS: [&str; 6] = [
    "alter table pgbench_branches add primary key (bid)",
    "alter table pgbench_tellers add primary key (tid)",
    "alter table pgbench_accounts add primary key (aid)",
    "vacuum pgbench_branches",
    "vacuum pgbench_tellers",
    "vacuum pgbench_accounts",
];

/// The scale of the tables that are there: the number of branches. `None` when there are no tables.
pub fn loaded_scale(engine: &Arc<Engine>) -> Result<Option<i64>, EngineError> {
    let mut session = engine.session(SessionInfo::default())?;
    match one_number(&mut session, "select count(*) from pgbench_branches") {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.sqlstate() == clearway_engine::SqlState::UNDEFINED_TABLE => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates and fills the tables. `progress` gets the number of accounts that the engine has read so far.
pub fn load(engine: &Arc<Engine>, scale: u32, progress: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
    let mut session = engine.session(SessionInfo::default())?;
    let mut run = |sql: &str| session.execute_simple(sql, &mut Discard::default());
    for table in TABLES {
        run(table)?;
    }
    let scale = i64::from(scale);
    let mut fill = |table: &str, rows: i64, line: fn(i64) -> String, progress: &mut dyn FnMut(u64)| {
        let mut append = |row: i64, text: &mut Vec<u8>| text.extend_from_slice(line(row).as_bytes());
        copy(&mut session, table, rows, &mut append, progress)
    };
    fill(
        "pgbench_branches",
        scale,
        |bid| format!("{bid}\t0\t\\N\n"),
        &mut |_| (),
    )?;
    fill(
        "pgbench_tellers",
        scale * TELLERS_PER_BRANCH,
        |tid| format!("{tid}\t{}\t0\t\\N\n", (tid - 1) / TELLERS_PER_BRANCH + 1),
        &mut |_| (),
    )?;
    fill(
        "pgbench_accounts",
        scale * ACCOUNTS_PER_BRANCH,
        |aid| format!("{aid}\t{}\t0\t\n", (aid - 1) / ACCOUNTS_PER_BRANCH + 1),
        progress,
    )?;
    for sql in AFTERWARDS {
        session.execute_simple(sql, &mut Discard::default())?;
    }
    engine.checkpoint()
}

/// Sums of the transactions that were acknowledged to a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Sum of the amounts of all writing transactions.
    pub all_deltas: i64,
    /// Sum of the amounts of the `tpcb-like` ones.
    pub branch_deltas: i64,
    /// Number of writing transactions.
    pub writes: i64,
}

impl std::ops::AddAssign for Acknowledged {
    fn add_assign(&mut self, other: Acknowledged) {
        self.all_deltas += other.all_deltas;
        self.branch_deltas += other.branch_deltas;
        self.writes += other.writes;
    }
}

/// The sums of a database at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balances {
    /// sum(abalance)
    pub accounts: i64,
    /// sum(tbalance)
    pub tellers: i64,
    /// sum(bbalance)
    pub branches: i64,
    /// sum(delta) over the history
    pub history: i64,
    /// Rows in the history.
    pub history_rows: i64,
}

impl Balances {
    /// Reads them.
    pub fn read(engine: &Arc<Engine>) -> Result<Balances, EngineError> {
        let mut session = engine.session(SessionInfo::default())?;
        Balances::of(|sql| one_number(&mut session, sql))
    }

    /// Those of queries for a number, which `number` answers; 0 for NULL.
    pub(crate) fn of<E>(mut number: impl FnMut(&str) -> Result<i64, E>) -> Result<Balances, E> {
        Ok(Balances {
            accounts: number("select sum(abalance) from pgbench_accounts")?,
            tellers: number("select sum(tbalance) from pgbench_tellers")?,
            branches: number("select sum(bbalance) from pgbench_branches")?,
            history: number("select sum(delta) from pgbench_history")?,
            history_rows: number("select count(*) from pgbench_history")?,
        })
    }

    /// The fault in these sums, given those before and the acknowledgements in between; `None` when all is well.
    pub fn fault(&self, before: &Balances, acknowledged: &Acknowledged) -> Option<String> {
        let rules = [
            (
                "B1: sum(abalance) against sum(history.delta)",
                self.accounts,
                self.history,
            ),
            (
                "B2: sum(tbalance) against sum(bbalance)",
                self.tellers,
                self.branches,
            ),
            (
                "B3: growth of sum(abalance) against acknowledged amounts",
                self.accounts - before.accounts,
                acknowledged.all_deltas,
            ),
            (
                "B4: growth of sum(bbalance) against acknowledged tpcb-like amounts",
                self.branches - before.branches,
                acknowledged.branch_deltas,
            ),
            (
                "B5: growth of the history against acknowledged transactions",
                self.history_rows - before.history_rows,
                acknowledged.writes,
            ),
        ];
        let faults: Vec<String> = rules
            .into_iter()
            .filter(|(_, left, right)| left != right)
            .map(|(rule, left, right)| format!("{rule}: {left} is not {right}"))
            .collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// One client: a session with its prepared statements and its random numbers.
#[derive(Debug)]
pub struct Client {
    session: Session,
    workload: Workload,
    scale: i64,
    random: SmallRng,
    statements: Statements,
    out: Discard,
    /// Sums of the transactions that were acknowledged to it.
    pub acknowledged: Acknowledged,
    /// Transactions that were rolled back and tried again (40001, 40P01).
    pub retries: u64,
}

#[derive(Debug)]
struct Statements {
    begin: Arc<Prepared>,
    end: Arc<Prepared>,
    rollback: Arc<Prepared>,
    select_account: Arc<Prepared>,
    update_account: Arc<Prepared>,
    update_teller: Arc<Prepared>,
    update_branch: Arc<Prepared>,
    insert_history: Arc<Prepared>,
}

impl Client {
    /// Opens a session and prepares the statements. A workload on other tables than pgbench's is an error.
    pub fn new(
        engine: &Arc<Engine>,
        workload: Workload,
        scale: u32,
        seed: u64,
    ) -> Result<Client, EngineError> {
        if !Workload::PGBENCH.contains(&workload) {
            return Err(EngineError::internal(format!(
                "{} is none of pgbench's transactions",
                workload.name()
            )));
        }
        let mut session = engine.session(SessionInfo::default())?;
        let int = Some(DataType::Int4);
        let mut prepare = |sql: &str, parameters: usize| session.prepare(sql, &[int; 5][..parameters]);
        let statements = Statements {
            begin: prepare("begin", 0)?,
            end: prepare("end", 0)?,
            rollback: prepare("rollback", 0)?,
            select_account: prepare("select abalance from pgbench_accounts where aid = $1", 1)?,
            update_account: prepare(
                "update pgbench_accounts set abalance = abalance + $1 where aid = $2",
                2,
            )?,
            update_teller: prepare(
                "update pgbench_tellers set tbalance = tbalance + $1 where tid = $2",
                2,
            )?,
            update_branch: prepare(
                "update pgbench_branches set bbalance = bbalance + $1 where bid = $2",
                2,
            )?,
            insert_history: prepare(
                "insert into pgbench_history (tid, bid, aid, delta, mtime) values ($1, $2, $3, $4, current_timestamp)",
                4,
            )?,
        };
        Ok(Client {
            session,
            workload,
            scale: i64::from(scale),
            random: SmallRng::seed_from_u64(seed),
            statements,
            out: Discard::default(),
            acknowledged: Acknowledged::default(),
            retries: 0,
        })
    }

    /// Runs one transaction to its commit, again and again if it has to be rolled back for another's sake.
    #[inline]
    pub fn transaction(&mut self) -> Result<(), EngineError> {
        let aid = self.random.random_range(1..=ACCOUNTS_PER_BRANCH * self.scale) as i32;
        if !self.workload.writes() {
            self.out.rows = 0;
            self.session.execute(
                &self.statements.select_account,
                &[Value::Int4(aid)],
                0,
                &mut self.out,
            )?;
            self.session.sync()?;
            return match self.out.rows {
                1 => Ok(()),
                rows => Err(EngineError::internal(format!(
                    "account {aid} was found {rows} times"
                ))),
            };
        }
        let bid = self.random.random_range(1..=self.scale) as i32;
        let tid = self.random.random_range(1..=TELLERS_PER_BRANCH * self.scale) as i32;
        let delta = self.random.random_range(-5_000..=5_000);
        while let Err(error) = self.write(aid, bid, tid, delta) {
            if !error.is_retryable() {
                return Err(error);
            }
            self.session
                .execute(&self.statements.rollback, &[], 0, &mut self.out)?;
            self.session.sync()?;
            self.retries += 1;
        }
        self.acknowledged.writes += 1;
        self.acknowledged.all_deltas += i64::from(delta);
        if self.workload == Workload::TpcbLike {
            self.acknowledged.branch_deltas += i64::from(delta);
        }
        Ok(())
    }

    fn write(&mut self, aid: i32, bid: i32, tid: i32, delta: i32) -> Result<(), EngineError> {
        let Client {
            session,
            statements,
            out,
            ..
        } = self;
        let (aid, bid, tid, delta) = (
            Value::Int4(aid),
            Value::Int4(bid),
            Value::Int4(tid),
            Value::Int4(delta),
        );
        let mut run = |statement: &Arc<Prepared>, parameters: &[Value]| -> Result<(), EngineError> {
            session.execute(statement, parameters, 0, out)?;
            session.sync()
        };
        run(&statements.begin, &[])?;
        run(&statements.update_account, &[delta.clone(), aid.clone()])?;
        run(&statements.select_account, std::slice::from_ref(&aid))?;
        if self.workload == Workload::TpcbLike {
            run(&statements.update_teller, &[delta.clone(), tid.clone()])?;
            run(&statements.update_branch, &[delta.clone(), bid.clone()])?;
        }
        run(&statements.insert_history, &[tid, bid, aid, delta])?;
        run(&statements.end, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_agree_and_sums_that_do_not() {
        let before = Balances {
            accounts: 10,
            tellers: 4,
            branches: 4,
            history: 10,
            history_rows: 2,
        };
        let told = Acknowledged {
            all_deltas: 5,
            branch_deltas: 2,
            writes: 2,
        };
        let after = Balances {
            accounts: 15,
            tellers: 6,
            branches: 6,
            history: 15,
            history_rows: 4,
        };
        assert_eq!(after.fault(&before, &told), None);
        let lost = Balances {
            tellers: 5,
            history_rows: 3,
            ..after
        };
        let fault = lost.fault(&before, &told).unwrap();
        assert!(
            fault.contains("B2") && fault.contains("B5") && !fault.contains("B3"),
            "{fault}"
        );
    }
}
