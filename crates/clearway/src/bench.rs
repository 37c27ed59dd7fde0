//! `clearway bench`: the main job.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use clearway_engine::config::ByteSize;
use clearway_lab::workload::Mix;
use clearway_lab::workload::tpcc::Population;
use clearway_lab::{BenchOptions, OtherPrograms, Variant, host_use, run_bench, table};

use crate::error::{Result, plural};
use crate::output;
use crate::{bench_latches, bench_server, options, other_program};

/// Run pgbench's or TPC-C's transactions in process, under two presets side by side, and show where the time goes
///
/// Opens an embedded database per preset (in a temporary directory unless --data names one), loads the tables,
/// and measures every workload × clients under the presets in turn (A B, B A, …), so that both meet the same
/// conditions. With --vary, compares all variants of one switch instead. Prints one table: the median TPS and its spread,
/// latency, the ratio to the first preset, and what the clients waited for. A ratio is that of the median round, and ≈ 1
/// where the rounds lie on both sides of 1. Afterwards the balances must add up, and TPC-C's consistency conditions hold,
/// or the run is an error. A line says if other programs used more than a tenth of the CPUs meanwhile.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    clearway bench --out result                       also writes result/result.json and result/report.html\n  \
    clearway bench --workload tpcb-like --clients 16 --duration 10s\n  \
    clearway bench --set lwlock=queued                the clearway preset against itself with one switch changed\n  \
    clearway bench --vary log_flush --workload simple-update --clients 1,16,64\n  \
                                                      every variant of one switch, everything else equal, and what a\n  \
                                                      commit costs: syncs, wake-ups, context switches, CPU time\n  \
    clearway bench --vary snapshot --workload tpcb-like+select-only --clients 4,16\n  \
                                                      half of the clients read while the other half write\n  \
    clearway bench --vary commit_log --sync-commit off --preset classic\n  \
    clearway bench --sync-commit off --data /mnt/fast/bench\n  \
    clearway bench --vary buffer_map --scale 50 --buffers 64MB --workload select-only\n  \
                                                      tables that are larger than the buffer pool\n  \
    clearway bench --follower --workload simple-update --clients 1,4,16 --duration 3s --rounds 9\n  \
                                                      what a standby that receives the log costs the primary\n  \
    clearway bench --workload tpcc --warehouses 2 --clients 1,4,16 --duration 5s --rounds 3\n  \
                                                      TPC-C's five transactions without think times: new-orders a\n  \
                                                      minute (NOPM), and latency by transaction\n  \
    clearway bench --vary log_flush --beside 4 --beside-syncs\n  \
                                                      on a machine that other programs share: four busy loops, and one\n  \
                                                      that writes and syncs a file\n  \
    clearway bench latches                            the latches by themselves, beside parking_lot and std\n  \
    clearway bench server --connect 'host=db1.example.org user=bench dbname=postgres sslmode=verify-full …'\n  \
                                                      a server by its clients, over TLS\n\n\
    Which presets are compared: without --preset and --set, classic against clearway. With --set alone, clearway against\n\
    clearway with these settings. With --preset, the named ones, with the settings applied to each. With --vary, one\n\
    preset (clearway unless --preset names another), with the settings applied, under each variant of the switch. With\n\
    --follower, each of these without and with a follower; clearway alone if neither a preset nor a setting is given."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    alone: Option<StandaloneBench>,
    /// Scale of pgbench's tables: 100,000 accounts each
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Warehouses of TPC-C's tables, about 130 MB each; 1 unless said otherwise. Client i is at home in warehouse
    /// i mod W
    #[arg(long, value_name = "W")]
    warehouses: Option<u32>,
    /// Numbers of clients, a thread with a session each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16")]
    clients: Vec<usize>,
    /// Measured time per point, e.g. 3s or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = options::duration)]
    duration: Duration,
    /// Measurements of each point; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Workloads: select-only, simple-update, tpcb-like, tpcc; or some of them side by side with `+` in between, which take
    /// the clients in turn (tpcb-like+select-only: half of them each) and have a row each in the table. Waits and costs
    /// are then those of all clients
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "select-only,simple-update,tpcb-like"
    )]
    workload: Vec<String>,
    /// Presets to compare: classic, clearway
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    preset: Vec<String>,
    /// Choose the variant of a mechanism, e.g. --set lwlock=queued; see `clearway mechanisms`
    #[arg(long = "set", value_name = "NAME=VARIANT")]
    settings: Vec<String>,
    /// Compare all variants of this switch instead of presets, and show what a commit costs under each
    #[arg(long, value_name = "SWITCH")]
    vary: Option<String>,
    /// Compare each of these with itself while a follower receives its log over loopback, confirms it and keeps none of
    /// it: what feeding a standby costs. A follower that does not keep up is an error
    #[arg(long)]
    follower: bool,
    /// Buffer memory of each database, e.g. 64MB; without it, as much as holds everything
    #[arg(long, value_name = "SIZE")]
    buffers: Option<ByteSize>,
    /// Measure beside N busy loops, each a process and a login session of its own: variants that are level on a quiet
    /// machine may not be beside programs that want the same CPUs
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    beside: usize,
    /// Measure beside a program that writes and syncs a file in the file system of the databases
    #[arg(long)]
    beside_syncs: bool,
    /// Keep the databases here, one directory per preset or variant, and use what is there already
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// True if a commit waits until it is on disk
    #[arg(long, value_name = "on|off", default_value = "on")]
    sync_commit: Switch,
    /// Write result.json and a self-contained report.html here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the random numbers; all that is compared draws the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Benches without presets: latches without an engine, and a server by its clients.
#[derive(Debug, Subcommand)]
enum StandaloneBench {
    Latches(bench_latches::Arguments),
    Server(bench_server::Arguments),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.alone {
        Some(StandaloneBench::Latches(arguments)) => return bench_latches::run(arguments),
        Some(StandaloneBench::Server(arguments)) => return bench_server::run(arguments),
        None => {}
    }
    if let Some(directory) = &arguments.out {
        options::check_output_directory(directory)?;
    }
    let (varied, variants) = match &arguments.vary {
        None if arguments.follower && arguments.preset.is_empty() && arguments.settings.is_empty() => {
            (None, Variant::choose(&["clearway".to_owned()], &[])?)
        }
        None => (None, Variant::choose(&arguments.preset, &arguments.settings)?),
        Some(switch) => {
            let (switch, variants) = Variant::vary(switch, &arguments.preset, &arguments.settings)?;
            (Some(switch), variants)
        }
    };
    let variants = if arguments.follower {
        Variant::each_followed(variants)
    } else {
        variants
    };
    let options = BenchOptions {
        scale: arguments.scale,
        population: arguments.warehouses.map(Population::standard),
        clients: arguments.clients.clone(),
        duration: arguments.duration,
        rounds: arguments.rounds,
        workloads: arguments
            .workload
            .iter()
            .map(|name| Mix::from_name(name))
            .collect::<Result<_, _>>()?,
        varied,
        variants,
        buffers: arguments.buffers,
        data: arguments.data.clone(),
        synchronous_commit: arguments.sync_commit == Switch::On,
        beside: OtherPrograms {
            busy_loops: arguments.beside,
            syncs_file: arguments.beside_syncs,
        },
        other_program: other_program::command,
        seed: arguments.seed,
        command: options::command_line(),
        progress: true,
    };
    let names: Vec<&str> = options
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    clearway_machine::stderr_line(format_args!(
        "{}, {}, {}: about {} s of measuring after the tables are loaded.",
        sizes(&options),
        plural(options.rounds, "round"),
        names.join(" against "),
        options.estimated_time().as_secs_f64().ceil()
    ));
    options::warn_of_debug_build();
    let busy_before = host_use::warning(host_use::share_now(), "other programs use");
    if let Some(warning) = &busy_before {
        output::notice(format_args!("{warning}"));
    }
    let result = run_bench(&options)?;
    if busy_before.is_none()
        && let Some(warning) = host_use::warning(result.provenance.others_share, "other programs used")
    {
        output::notice(format_args!("{warning}"));
    }
    output::print(format_args!("{}", table::text(&result)))?;
    let checked = match (result.balances.is_empty(), result.consistency.is_empty()) {
        (false, true) => "the balances add up",
        (true, _) => "TPC-C's consistency conditions 1 to 4 hold",
        (false, false) => "the balances add up, and TPC-C's consistency conditions 1 to 4 hold",
    };
    output::line(format_args!("\n{}; {checked}.", result.provenance))?;
    if let Some(directory) = &arguments.out {
        result.write(directory)?;
        output::line(format_args!(
            "Wrote {} and report.html beside it.",
            directory.join("result.json").display()
        ))?;
    }
    Ok(())
}

/// Size of the tables: `Scale 10`, `2 warehouses`, or both.
fn sizes(options: &BenchOptions) -> String {
    let scale = format!("Scale {}", options.scale);
    let warehouses = plural(options.sizes().population.warehouses as usize, "warehouse");
    match (options.needs_pgbench(), options.needs_tpcc()) {
        (_, false) => scale,
        (false, true) => warehouses,
        (true, true) => format!("{scale}, {warehouses}"),
    }
}
