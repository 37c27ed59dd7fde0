//! `clearway simulate`: experiments on machines one does not own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use clearway_lab::simulate::{
    Calibration, EXPERIMENTS, Experiment, HereOptions, JAMS, LatchFamily, Seeds, Shard, SimulateOptions,
    SimulationResult, calibrate, here_text, html, is_cost, json, overview, run_experiment, run_here,
    set_costs, text,
};
use clearway_lab::{LabError, host_use};
use clearway_sim::{MachineModel, PRESETS};

use crate::error::{CommandError, Result};
use crate::options;
use crate::output;
use crate::simulate_machine;

/// Run an experiment on a simulated machine: real latches, log and bookkeeping on a model of caches, sockets and
/// scheduler
///
/// The same command gives the same numbers, on any host. What the model holds and leaves out, and how far it agrees
/// with published measurements, is in docs/simulator.md: believe orderings and ratios, not absolute throughput.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:\n  \
    clearway simulate list\n  \
    clearway simulate numa-simple-update --out result\n  \
    clearway simulate latch-mix --set read_percent=50 --clients 8,72,288 --machine arm-2s\n  \
    clearway simulate latch-mix --set os.tick_us=4000 --set os.tick=2000            with timer interrupts\n  \
    clearway simulate log-flush --set beside=80 --set os.wakeup_preemption=false    beside 80 busy loops, sessions as under SCHED_BATCH\n  \
    clearway simulate numa-tpcb --shard 2/8 --out shard-2     the second of eight pieces, for `clearway report`\n  \
    clearway simulate log-flush --machine cloud-16 --seeds 1..9      nine seeds, for an order that three do not share\n  \
    clearway simulate --calibrate > here.toml          then: --machine here.toml\n  \
    clearway simulate here                             the latches of `bench latches`, on this host and simulated, side by side\n  \
    clearway simulate here --latch lwlock-single-cas --section 0,1us --set coherence.rmw_hit=1")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The experiment: a name that `clearway simulate list` shows, a TOML file, or `here`: calibrate, then hold 1 and 2
    /// threads of `clearway bench latches` against their simulation
    #[arg(required_unless_present = "calibrate")]
    experiment: Option<String>,
    /// The machine, instead of the experiment's: a name, `this`, or a TOML file
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Numbers of clients, instead of the experiment's; threads for `here`
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Change one of the experiment's numbers, e.g. --set work_us=300; one of the machine's costs: coherence.cross=200;
    /// or compare one variant only: lwlock=queued. With `here`, calibrated costs only
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Seeds of the simulation's random numbers: a range with both ends, or a list. The table has medians, lowest and
    /// highest, and calls an order one only if all seeds share it [default: 1..3]
    #[arg(long, value_name = "A..B|N,…")]
    seeds: Option<Seeds>,
    /// One seed alone, which is faster; of `here`, 1 unless given
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Write result.json and report.html here (here.json for `here`)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a trace of half a millisecond of the last point, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also show what each cost and parameter does alone when it is 50 % lower or higher
    #[arg(long)]
    sweep: bool,
    /// Run every N-th point only, from the K-th on, and write them for `clearway report`; needs --out
    #[arg(long, value_name = "K/N", requires = "out", conflicts_with_all = ["trace", "calibrate"])]
    shard: Option<Shard>,
    /// Measure this host's costs and print its description
    #[arg(long, conflicts_with = "experiment")]
    calibrate: bool,
    #[command(flatten)]
    here: HereArguments,
}

/// Commands beside the running of an experiment.
#[derive(Debug, Subcommand)]
enum Command {
    /// Descriptions of machines that are not here
    Machine {
        #[command(subcommand)]
        command: simulate_machine::Command,
    },
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With `here`")]
struct HereArguments {
    /// Latches to simulate, by their names in `clearway bench latches --help`; all that are both measured and simulated
    /// unless named
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    latch: Vec<String>,
    /// Lengths of the critical section [default: 0,50ns,1us]
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = options::short_time)]
    section: Vec<Duration>,
    /// Shares of acquisitions that are shared, in percent [default: 0,50,100]
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',')]
    read_share: Vec<f64>,
    /// Native samples of each cell; the table shows medians [default: 7]
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Longest time to take samples [default: 100s]
    #[arg(long, value_name = "TIME", value_parser = options::duration)]
    time: Option<Duration>,
}

impl Arguments {
    fn seeds(&self) -> Seeds {
        let named = self.seeds.clone().or(self.seed.map(Seeds::one));
        named.unwrap_or_default()
    }
}

impl HereArguments {
    fn is_given(&self) -> bool {
        !(self.latch.is_empty() && self.section.is_empty() && self.read_share.is_empty())
            || self.samples.is_some()
            || self.time.is_some()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(Command::Machine { command }) = &arguments.command {
        return simulate_machine::run(command);
    }
    let name = match &arguments.experiment {
        Some(name) if name == "list" => return list(),
        Some(name) if name == "here" => return here(arguments),
        _ if arguments.here.is_given() => {
            return Err(CommandError::Usage(
                "--latch, --section, --read-share, --samples and --time go with `clearway simulate here`"
                    .to_owned(),
            ));
        }
        Some(name) => name,
        None => {
            let calibration = calibrated()?;
            let text = toml::to_string(&calibration.machine).map_err(|error| CommandError::Io {
                what: "writing the description",
                source: std::io::Error::other(error),
            })?;
            output::print(format_args!("{text}"))?;
            return Ok(());
        }
    };
    let mut experiment = Experiment::load(name)?;
    let (costs, settings): (Vec<_>, Vec<_>) = arguments.settings.iter().partition(|setting| is_cost(setting));
    for setting in settings {
        experiment.set(setting)?;
    }
    if !arguments.clients.is_empty() {
        experiment.clients.clone_from(&arguments.clients);
    }
    let machines = match &arguments.machine {
        Some(machine) => vec![machine.clone()],
        None => std::iter::once(&experiment.machine)
            .chain(&experiment.also_on)
            .cloned()
            .collect(),
    };
    let changed: String = costs.iter().map(|cost| format!("; {cost}")).collect();
    let mut results = Vec::new();
    for name in &machines {
        let first = results.is_empty();
        let mut machine = MachineModel::load(name).map_err(LabError::from)?;
        set_costs(&mut machine, &costs)?;
        let options = SimulateOptions {
            machine,
            experiment: experiment.clone(),
            seeds: arguments.seeds(),
            trace: arguments.trace.clone().filter(|_| first),
            sweep: arguments.sweep,
            shard: arguments.shard,
            progress: true,
            threads: 0,
        };
        let result = run_experiment(&options)?;
        if first {
            output::line(format_args!(
                "{}: {}",
                result.experiment.name, result.experiment.description
            ))?;
        }
        output::line(format_args!(
            "on {}: {}{}; {}\n",
            result.machine.name, result.machine.description, changed, result.seeds
        ))?;
        // The table and the report are of the whole.
        if arguments.shard.is_none() {
            output::line(format_args!("{}", text(&result)))?;
        }
        if let Some(directory) = &arguments.out {
            let suffix = if first { String::new() } else { format!("-{name}") };
            write(&result, directory, &suffix)?;
        }
        results.push(result);
    }
    if results.len() > 1 && arguments.shard.is_none() {
        output::line(format_args!(
            "All machines; ratios to the first variant:\n\n{}",
            overview(&results)
        ))?;
    }
    Ok(())
}

/// `result.json` and `report.html`, with the machine in the name for all but the first.
fn write(result: &SimulationResult, directory: &Path, suffix: &str) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(CommandError::io("making the directory for the result"))?;
    let file = directory.join(format!("result{suffix}.json"));
    std::fs::write(&file, json(result)).map_err(CommandError::io("writing the result"))?;
    if let Some(shard) = result.shard {
        output::line(format_args!(
            "Wrote {}, shard {shard}: {} points, {} changes. All shards together: clearway report DIR… --out DIR\n",
            file.display(),
            result.points.len(),
            result.sweep.len()
        ))?;
        return Ok(());
    }
    let report = directory.join(format!("report{suffix}.html"));
    std::fs::write(&report, html(result)?).map_err(CommandError::io("writing the report"))?;
    output::line(format_args!(
        "Wrote {} and {}.\n",
        file.display(),
        report.display()
    ))?;
    Ok(())
}

/// Calibrates this host, and says if other programs use it, before and after.
fn calibrated() -> Result<Calibration> {
    let say = |warning: Option<String>| {
        if let Some(warning) = warning {
            output::notice(format_args!("{warning}"));
        }
    };
    say(host_use::warning(host_use::share_now(), "other programs use"));
    clearway_machine::stderr_line(format_args!(
        "Calibrating; other load on this host spoils all that follows."
    ));
    let calibration = calibrate()?;
    say(host_use::warning(calibration.others_share, "other programs used"));
    Ok(calibration)
}

/// Holds this host against its simulation.
fn here(arguments: &Arguments) -> Result<()> {
    if arguments.machine.is_some()
        || arguments.sweep
        || arguments.trace.is_some()
        || arguments.shard.is_some()
        || arguments.seeds.is_some()
    {
        return Err(CommandError::Usage(
            "--machine, --seeds, --sweep, --shard and --trace do not go with `here`: the machine is this host, as calibrated"
                .to_owned(),
        ));
    }
    let defaults = HereOptions::default();
    let asked = &arguments.here;
    let or = |given: &[Duration], default: Vec<Duration>| {
        if given.is_empty() { default } else { given.to_vec() }
    };
    let options = HereOptions {
        threads: if arguments.clients.is_empty() {
            defaults.threads
        } else {
            arguments.clients.clone()
        },
        sections: or(&asked.section, defaults.sections),
        read_shares: if asked.read_share.is_empty() {
            defaults.read_shares
        } else {
            asked.read_share.clone()
        },
        latches: asked.latch.clone(),
        samples: asked.samples.unwrap_or(defaults.samples),
        time_max: asked.time.unwrap_or(defaults.time_max),
        seed: arguments.seed.unwrap_or(1),
        command: options::command_line(),
        progress: true,
        ..defaults
    };
    options.check()?;
    Calibration::check_settings(&arguments.settings)?;
    options::warn_of_debug_build();
    let mut calibration = calibrated()?;
    calibration.set(&arguments.settings)?;
    let result = run_here(&options, &calibration)?;
    output::print(format_args!("{}", here_text(&result)))?;
    output::line(format_args!("\n{}", result.provenance))?;
    if let Some(directory) = &arguments.out {
        result.write(directory)?;
        output::line(format_args!("Wrote {}.", directory.join("here.json").display()))?;
    }
    Ok(())
}

fn list() -> Result<()> {
    output::line(format_args!("Experiments:"))?;
    for (name, _) in EXPERIMENTS {
        output::line(format_args!(
            "  {name:20} {}",
            Experiment::load(name)?.description
        ))?;
    }
    output::line(format_args!(
        "  {:20} this host measured and simulated, latch by latch",
        "here"
    ))?;
    output::line(format_args!("\nJams (docs/jams.md):"))?;
    for jam in &JAMS {
        output::line(format_args!("  {:20} {}", jam.full_name(), jam.story))?;
    }
    output::line(format_args!(
        "\nLatches, for `latch = \"NAME\"` in the file of a latch-mix:"
    ))?;
    for latch in LatchFamily::all() {
        output::line(format_args!("  {:20} {}", latch.name(), latch.text()))?;
    }
    output::line(format_args!("\nMachines:"))?;
    for (name, _) in PRESETS {
        let model = MachineModel::load(name).map_err(LabError::from)?;
        output::line(format_args!("  {name:20} {}", model.description))?;
    }
    output::line(format_args!("  {:20} this host, from /sys", "this"))?;
    Ok(())
}
