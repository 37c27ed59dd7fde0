//! `clearway bench latches`: the latches by themselves.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clearway_lab::latches::table;
use clearway_lab::{LatchBenchOptions, host_use, run_latch_bench};
use clearway_latch::SpinPolicy;

use crate::error::Result;
use crate::options;
use crate::output;

const EXAMPLES: &str = "Examples:\n  \
    clearway bench latches --out result                     also writes result/latches.json and result/latches.html\n  \
    clearway bench latches --threads 2 --section 0 --read-share 0,50,100\n  \
    clearway bench latches --threads 2,64 --spin none      our latches sleep at once\n  \
    clearway bench latches --latch lwlock-queued,lwlock-single-cas --threads 64 --duration 1s";

/// The latches, for the help.
fn latches() -> String {
    let mut text = "Latches:".to_owned();
    for (name, about) in LatchBenchOptions::list() {
        text += &format!("\n  {name:22} {about}");
    }
    text
}

/// Measure our latches beside parking_lot, std and crossbeam's ShardedLock
///
/// Threads take a latch, touch two words, work for the length of the critical section and release it, for every number
/// of threads × section × share of readers; mutexes without readers only. The latches of one point are measured side by
/// side in every round. Prints sizes, throughput with its ratio to parking_lot's lock of the same kind, and the time to
/// acquire: the median, the 99th and 99.9th percentile and the longest, for readers and for writers. "slowest" is the
/// acquisitions of the slowest thread as a share of the fastest's. A latch that lets a reader see half of a write ends the
/// bench with an error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", latches()))]
pub(crate) struct Arguments {
    /// Numbers of threads
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,2,4,8,16,64"
    )]
    threads: Vec<usize>,
    /// Lengths of the critical section, e.g. 0, 50ns, 1us
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', default_value = "0,50ns,1us", value_parser = options::short_time)]
    section: Vec<Duration>,
    /// Shares of acquisitions that are shared, in percent
    #[arg(
        long,
        value_name = "PERCENT,…",
        value_delimiter = ',',
        default_value = "0,50,90,93.5,99,100"
    )]
    read_share: Vec<f64>,
    /// Latches to measure; all unless named
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    latch: Vec<String>,
    /// Spin policy of a thread at our latches before it sleeps: none, adaptive, or a number of polls (the others use
    /// their own)
    #[arg(long, value_name = "POLICY", default_value = "adaptive", value_parser = options::spin_policy)]
    spin: SpinPolicy,
    /// Measured time per point, e.g. 100ms
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = options::duration)]
    duration: Duration,
    /// Measurements of each point; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Print the time to acquire at p50, p99, p99.9 and max, for readers and writers, a row for each latch and point; without
    /// this only up to a hundred rows
    #[arg(long)]
    tail: bool,
    /// Write latches.json and a self-contained latches.html here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the random numbers; all latches of a point draw the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(directory) = &arguments.out {
        options::check_output_directory(directory)?;
    }
    let options = LatchBenchOptions {
        threads: arguments.threads.clone(),
        sections: arguments.section.clone(),
        read_shares: arguments.read_share.clone(),
        latches: arguments.latch.clone(),
        spin: arguments.spin,
        duration: arguments.duration,
        rounds: arguments.rounds,
        seed: arguments.seed,
        command: options::command_line(),
        progress: true,
    };
    clearway_machine::stderr_line(format_args!(
        "Latches side by side: about {} s of measuring.",
        options.estimated_time()?.as_secs_f64().ceil()
    ));
    options::warn_of_debug_build();
    if let Some(warning) = host_use::warning(host_use::share_now(), "other programs use") {
        output::notice(format_args!("{warning}"));
    }
    let result = run_latch_bench(&options)?;
    output::print(format_args!("{}", table::text(&result, arguments.tail)))?;
    output::line(format_args!(
        "\n{}; no write was torn or lost.",
        result.provenance
    ))?;
    if let Some(directory) = &arguments.out {
        result.write(directory)?;
        output::line(format_args!(
            "Wrote {} and latches.html beside it.",
            directory.join("latches.json").display()
        ))?;
    }
    Ok(())
}
