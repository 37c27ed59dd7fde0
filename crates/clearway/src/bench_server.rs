//! `clearway bench server`: a server by its clients.

use std::time::Duration;

use clap::Args;
use clearway_lab::workload::Workload;
use clearway_lab::{ServerBenchOptions, ServerBenchResult, run_server_bench};
use clearway_server::StopSignal;
use clearway_server::replication::receiver::conninfo::ConnInfo;

use crate::error::{CommandError, Result};
use crate::options;
use crate::output;

/// Run pgbench's transactions over connections to a server
///
/// Each statement is sent by itself, and its answer is waited for, as by `pgbench -M simple`. The tables are those of
/// `pgbench -i`, or --load makes them. Afterwards the balances must agree with the commits that were acknowledged, or the
/// run is an error: nothing else may write to the tables meanwhile. A server on another machine is spoken to over TLS:
/// sslmode, sslrootcert, channel_binding and passfile in --connect are libpq's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway bench server --connect 'host=127.0.0.1 port=5433 dbname=postgres' --load 10\n  \
    clearway bench server --connect 'host=db1.example.org port=5433 user=bench dbname=postgres passfile=pass \\\n    \
    sslmode=verify-full sslrootcert=db1.crt channel_binding=require' --clients 16 --duration 10s")]
pub(crate) struct Arguments {
    /// The server: 'host=… port=… user=… dbname=…' or postgresql://…; without dbname, the database has the user's name
    #[arg(long, value_name = "CONNINFO")]
    connect: String,
    /// Make the tables first, with this scale: 100,000 accounts each
    #[arg(long, value_name = "SCALE")]
    load: Option<u32>,
    /// Numbers of clients, a connection and a thread each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,4,16")]
    clients: Vec<usize>,
    /// Measured time per point, e.g. 3s or 500ms; a tenth of it warms up before
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = options::duration)]
    duration: Duration,
    /// Measurements of each point; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Workloads: select-only, simple-update, tpcb-like
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "select-only,simple-update,tpcb-like"
    )]
    workload: Vec<String>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let workloads = arguments.workload.iter().map(|name| Workload::from_name(name));
    let options = ServerBenchOptions {
        conninfo: arguments.connect.parse::<ConnInfo>()?,
        load: arguments.load,
        workloads: workloads.collect::<Result<_, _>>()?,
        clients: arguments.clients.clone(),
        duration: arguments.duration,
        rounds: arguments.rounds,
        seed: arguments.seed,
    };
    options::warn_of_debug_build();
    let stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let result = run_server_bench(&options, &stop)?;
    output::print(format_args!("{}", table(&result)))?;
    let encryption = result.tls.as_deref().unwrap_or("no encryption");
    output::line(format_args!(
        "\nServer {}, {encryption}, scale {}; the balances add up.",
        result.version, result.scale
    ))
}

fn table(result: &ServerBenchResult) -> String {
    let mut text = format!(
        "{:14} {:>7} {:>11} {:>7} {:>10} {:>10} {:>8}\n",
        "workload", "clients", "TPS", "±", "p50 µs", "p99 µs", "retries"
    );
    for cell in &result.cells {
        text += &format!(
            "{:14} {:>7} {:>11.0} {:>5.1} % {:>10.0} {:>10.0} {:>8}\n",
            cell.workload,
            cell.clients,
            cell.tps,
            cell.spread * 100.0,
            cell.p50_us,
            cell.p99_us,
            cell.retries
        );
    }
    text
}
