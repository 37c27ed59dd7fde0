//! `clearway report`: results of several runs in one report.

use std::path::PathBuf;

use clap::Args;
use clearway_lab::gather::{compare, gather};

use crate::error::{CommandError, Result};
use crate::output;

/// Put results of several runs together, or set two side by side
///
/// The shards of an experiment (`clearway simulate --shard`) become the experiment's result, byte for byte as one run would
/// have written it. Benches of different workloads, clients or variants become one bench, if they are of one commit,
/// machine, scale and duration; ratios stay those of the rounds in which they were measured. What does not belong
/// together is refused with the directory's name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    for k in 1 2 3 4; do clearway simulate numa-tpcb --shard $k/4 --out shard-$k; done\n  \
    clearway report shard-* --out numa-tpcb        one result.json and report.html\n  \
    clearway report --compare before after         a table on the terminal\n  \
    clearway report --compare before after --out difference\n\n\
    docs/simulator/sweeps.md has the same with GNU parallel and with a Slurm job array.")]
pub(crate) struct Arguments {
    /// Directories that `--out` of simulate or bench wrote
    #[arg(
        value_name = "DIR",
        required_unless_present = "compare",
        conflicts_with = "compare"
    )]
    directories: Vec<PathBuf>,
    /// Set two results of the same kind side by side: rates, their ratio and 99th percentiles, point by point
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    compare: Vec<PathBuf>,
    /// Write result.json and report.html here; with --compare, report.html
    #[arg(long, value_name = "DIR", required_unless_present = "compare")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let [a, b] = &*arguments.compare {
        let comparison = compare(a, b)?;
        output::line(format_args!("{}", comparison.text()))?;
        if let Some(out) = &arguments.out {
            comparison.write(out)?;
            output::line(format_args!("Wrote {}.", out.join("report.html").display()))?;
        }
        return Ok(());
    }
    let Some(out) = &arguments.out else {
        return Err(CommandError::Usage("--out is missing".to_owned()));
    };
    let gathered = gather(&arguments.directories)?;
    gathered.write(out)?;
    output::line(format_args!("{}", gathered.text()))?;
    output::line(format_args!(
        "Wrote {} and {}.",
        out.join("result.json").display(),
        out.join("report.html").display()
    ))?;
    Ok(())
}
