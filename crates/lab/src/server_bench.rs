//! A bench against a server: pgbench's transactions over connections, as `pgbench -M simple` sends them.
//!
//! Each statement is a message of its own, and its answer is waited for. All connections of a point are there before it
//! begins; what ends behind its warm-up and before its end counts. Afterwards the [balances](Balances) have to agree with
//! what was acknowledged, so nothing else may write to the tables meanwhile.
//!
//! A transaction that the server rolls back for another's sake (40001, 40P01) is tried again, with the same numbers; its
//! latency is that of all attempts.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clearway_server::StopSignal;
use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::error::{LabError, Result};
use crate::latencies::{latency_histogram, percentile_us};
use crate::stats;
use crate::workload::Workload;
use crate::workload::pgbench::{
    ACCOUNTS_PER_BRANCH, AFTERWARDS, Acknowledged, Balances, TABLES, TELLERS_PER_BRANCH,
};

/// A server that says nothing for so long is given up, while it is measured.
const PATIENCE: Duration = Duration::from_secs(60);
/// The part of the measured time that warms up before it.
const WARM_UP: u32 = 10;
/// Rolled back for another transaction's sake.
const RETRYABLE: [&str; 2] = ["40001", "40P01"];

/// A bench against a server.
#[derive(Debug, Clone)]
pub struct ServerBenchOptions {
    /// The server.
    pub conninfo: ConnInfo,
    /// Make pgbench's tables with this scale first.
    pub load: Option<u32>,
    /// Workloads on pgbench's tables.
    pub workloads: Vec<Workload>,
    /// Numbers of clients, a connection and a thread each.
    pub clients: Vec<usize>,
    /// Measured time of a point.
    pub duration: Duration,
    /// Measurements of each point.
    pub rounds: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The result of a workload with a number of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCell {
    /// The workload's name.
    pub workload: &'static str,
    /// Number of clients.
    pub clients: usize,
    /// Transactions a second: median of the rounds.
    pub tps: f64,
    /// Half the rounds' range, as a share of their median.
    pub spread: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Transactions that were rolled back and tried again.
    pub retries: u64,
}

/// The result of a bench against a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerBenchResult {
    /// The server's version.
    pub version: String,
    /// The version of TLS, if the connections are encrypted.
    pub tls: Option<String>,
    /// Scale of the tables.
    pub scale: i64,
    /// By workload and clients.
    pub cells: Vec<ServerCell>,
}

/// Measures the server. `stop` ends every wait for it.
pub fn run_server_bench(options: &ServerBenchOptions, stop: &StopSignal) -> Result<ServerBenchResult> {
    check(options)?;
    let connect = || Client::connect_session(&options.conninfo, PATIENCE, stop);
    let mut control = connect()?;
    if let Some(scale) = options.load {
        load(&mut control, scale)?;
    }
    let scale = number(&mut control, "select count(*) from pgbench_branches")?;
    if scale < 1 {
        return Err(bad_number("scale of the tables", scale, "at least 1"));
    }
    let before = Balances::of(|sql| number(&mut control, sql))?;
    let mut acknowledged = Acknowledged::default();
    let mut cells = Vec::new();
    let mut seeds = SmallRng::seed_from_u64(options.seed);
    for workload in &options.workloads {
        for count in &options.clients {
            let mut point = Point::new();
            for _ in 0..options.rounds {
                let sessions: Result<Vec<Session>, ReceiverError> = (0..*count)
                    .map(|_| Ok(Session::new(connect()?, *workload, scale, seeds.random())))
                    .collect();
                point.add_round(
                    options.duration,
                    measure(sessions?, options.duration)?,
                    &mut acknowledged,
                );
            }
            cells.push(point.cell(*workload, *count));
        }
    }
    let after = Balances::of(|sql| number(&mut control, sql))?;
    if let Some(what) = after.fault(&before, &acknowledged) {
        let variant = control.address().to_owned();
        return Err(LabError::Unbalanced { variant, what });
    }
    let tls = "select case when ssl then version end from pg_stat_ssl where pid = pg_backend_pid()";
    Ok(ServerBenchResult {
        version: text(&mut control, "show server_version")?.unwrap_or_default(),
        tls: text(&mut control, tls)?,
        scale,
        cells,
    })
}

fn bad_number(what: &'static str, value: impl ToString, must: &'static str) -> LabError {
    let value = value.to_string();
    LabError::BadNumber { what, value, must }
}

fn check(options: &ServerBenchOptions) -> Result<()> {
    if let Some(other) = options
        .workloads
        .iter()
        .find(|workload| !Workload::PGBENCH.contains(workload))
    {
        return Err(LabError::UnknownName {
            what: "workload of a bench against a server",
            name: other.name().to_owned(),
            available: Workload::PGBENCH
                .iter()
                .map(|workload| workload.name())
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    if options.clients.contains(&0) {
        return Err(bad_number("the number of clients", 0, "at least 1"));
    }
    if options.rounds == 0 {
        return Err(bad_number("the number of rounds", 0, "at least 1"));
    }
    if options.duration.is_zero() {
        return Err(bad_number("the duration", "0", "more than 0"));
    }
    match options.load {
        Some(scale @ (0 | 20_001..)) => Err(bad_number("the scale", scale, "1 to 20000")),
        _ => Ok(()),
    }
}

/// Makes pgbench's tables.
fn load(client: &mut Client, scale: u32) -> Result<()> {
    let (tellers, accounts) = (
        i64::from(scale) * TELLERS_PER_BRANCH,
        i64::from(scale) * ACCOUNTS_PER_BRANCH,
    );
    let fill = [
        format!("insert into pgbench_branches select g, 0 from generate_series(1, {scale}) g"),
        format!(
            "insert into pgbench_tellers select g, (g - 1) / {TELLERS_PER_BRANCH} + 1, 0 from generate_series(1, {tellers}) g"
        ),
        format!(
            "insert into pgbench_accounts select g, (g - 1) / {ACCOUNTS_PER_BRANCH} + 1, 0, '' \
             from generate_series(1, {accounts}) g"
        ),
    ];
    let statements = TABLES
        .into_iter()
        .chain(fill.iter().map(String::as_str))
        .chain(AFTERWARDS);
    for statement in statements {
        client.query_patiently(statement)?;
    }
    Ok(())
}

/// The first value of a query's only row.
fn text(client: &mut Client, sql: &str) -> Result<Option<String>, ReceiverError> {
    // A sum over all accounts may take long.
    let results = client.query_patiently(sql)?;
    let value = results
        .first()
        .and_then(|result| result.rows.first()?.first()?.as_deref())
        .map(|value| String::from_utf8_lossy(value).into_owned());
    Ok(value)
}

/// The same as a number; 0 for NULL.
fn number(client: &mut Client, sql: &str) -> Result<i64> {
    let Some(value) = text(client, sql)? else {
        return Ok(0);
    };
    value
        .parse()
        .map_err(|_| bad_number("the answer of the server", value, "a number"))
}

/// The rounds of a point.
struct Point {
    latency: Histogram<u64>,
    tps: Vec<f64>,
    retries: u64,
}

impl Point {
    fn new() -> Point {
        Point {
            latency: latency_histogram(),
            tps: Vec::new(),
            retries: 0,
        }
    }

    fn add_round(&mut self, duration: Duration, sessions: Vec<Session>, acknowledged: &mut Acknowledged) {
        let mut count = 0;
        for session in sessions {
            count += session.latency.len();
            self.latency
                .add(&session.latency)
                .expect("all histograms have the same bounds");
            self.retries += session.retries;
            *acknowledged += session.acknowledged;
        }
        self.tps.push(count as f64 / duration.as_secs_f64());
    }

    fn cell(&self, workload: Workload, clients: usize) -> ServerCell {
        ServerCell {
            workload: workload.name(),
            clients,
            tps: stats::median(&self.tps),
            spread: stats::spread(&self.tps),
            p50_us: percentile_us(&self.latency, 0.5),
            p99_us: percentile_us(&self.latency, 0.99),
            retries: self.retries,
        }
    }
}

/// Runs all sessions at once, until `duration` behind the warm-up.
fn measure(sessions: Vec<Session>, duration: Duration) -> Result<Vec<Session>> {
    let barrier = Barrier::new(sessions.len());
    thread::scope(|scope| {
        let running: Vec<_> = sessions
            .into_iter()
            .map(|session| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    session.run(duration)
                })
            })
            .collect();
        let ended = running.into_iter().map(|thread| match thread.join() {
            Ok(ended) => Ok(ended?),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

/// A connection with its transactions.
struct Session {
    client: Client,
    workload: Workload,
    scale: i64,
    random: SmallRng,
    latency: Histogram<u64>,
    acknowledged: Acknowledged,
    retries: u64,
}

impl Session {
    fn new(client: Client, workload: Workload, scale: i64, seed: u64) -> Session {
        Session {
            client,
            workload,
            scale,
            random: SmallRng::seed_from_u64(seed),
            latency: latency_histogram(),
            acknowledged: Acknowledged::default(),
            retries: 0,
        }
    }

    fn run(mut self, duration: Duration) -> Result<Session, ReceiverError> {
        let from = Instant::now() + duration / WARM_UP;
        let until = from + duration;
        loop {
            let began = Instant::now();
            if began >= until {
                return Ok(self);
            }
            self.transaction()?;
            let ended = Instant::now();
            if (from..until).contains(&ended) {
                let nanoseconds = u64::try_from((ended - began).as_nanos()).unwrap_or(u64::MAX);
                self.latency.saturating_record(nanoseconds);
            }
        }
    }

    /// Runs one transaction to its commit.
    fn transaction(&mut self) -> Result<(), ReceiverError> {
        let aid = self.random.random_range(1..=ACCOUNTS_PER_BRANCH * self.scale);
        let select = format!("select abalance from pgbench_accounts where aid = {aid}");
        if !self.workload.writes() {
            return self.client.query(&select).map(drop);
        }
        let bid = self.random.random_range(1..=self.scale);
        let tid = self.random.random_range(1..=TELLERS_PER_BRANCH * self.scale);
        let delta = self.random.random_range(-5_000..=5_000);
        let mut statements = vec![
            "begin".to_owned(),
            format!("update pgbench_accounts set abalance = abalance + {delta} where aid = {aid}"),
            select,
        ];
        if self.workload == Workload::TpcbLike {
            statements.extend([
                format!("update pgbench_tellers set tbalance = tbalance + {delta} where tid = {tid}"),
                format!("update pgbench_branches set bbalance = bbalance + {delta} where bid = {bid}"),
            ]);
            self.acknowledged.branch_deltas += delta;
        }
        statements.extend([
            format!(
                "insert into pgbench_history (tid, bid, aid, delta, mtime) values ({tid}, {bid}, {aid}, {delta}, \
                 current_timestamp)"
            ),
            "end".to_owned(),
        ]);
        while let Err(error) = self.attempt(&statements) {
            match &error {
                ReceiverError::Server { report, .. } if RETRYABLE.contains(&report.sqlstate.as_str()) => {}
                _ => return Err(error),
            }
            self.client.query("rollback")?;
            self.retries += 1;
        }
        self.acknowledged.writes += 1;
        self.acknowledged.all_deltas += delta;
        Ok(())
    }

    fn attempt(&mut self, statements: &[String]) -> Result<(), ReceiverError> {
        for statement in statements {
            self.client.query(statement)?;
        }
        Ok(())
    }
}
