//! `clearway simulate`: experiments on machines one does not own.

use std::path::PathBuf;

use clap::Args;
use clearway_lab::LabError;
use clearway_lab::simulate::{
    EXPERIMENTS, Experiment, SimulateOptions, calibrate, html, run_experiment, text,
};
use clearway_sim::{MachineModel, PRESETS};

use crate::error::{CommandError, Result};

/// Run an experiment on a simulated machine: real latches, log and bookkeeping on a model of caches, sockets and scheduler
///
/// The same command gives the same numbers, on any host. What the model holds and leaves out, and how far it agrees with
/// published measurements, is in docs/simulator.md: believe orderings and ratios, not absolute throughput.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway simulate list\n  \
    clearway simulate numa-simple-update --out result\n  \
    clearway simulate latch-mix --set read_percent=50 --clients 8,72,288 --machine arm-2s\n  \
    clearway simulate --calibrate > here.toml          then: --machine here.toml")]
pub(crate) struct Arguments {
    /// The experiment: a name that `clearway simulate list` shows, or a TOML file
    #[arg(required_unless_present = "calibrate")]
    experiment: Option<String>,
    /// The machine, instead of the experiment's: a name, `this`, or a TOML file
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Numbers of clients, instead of the experiment's
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Change one of the experiment's numbers, e.g. --set work_us=300; or compare one variant only: lwlock=queued
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// What the simulation's random numbers start from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write result.json and report.html here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a trace of half a millisecond of the last point, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also show what each cost and parameter does alone when it is 50 % lower or higher
    #[arg(long)]
    sweep: bool,
    /// Measure this host's costs and print its description
    #[arg(long, conflicts_with = "experiment")]
    calibrate: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let name = match &arguments.experiment {
        Some(name) if name == "list" => return list(),
        Some(name) => name,
        None => {
            let calibration = calibrate().map_err(LabError::from)?;
            let text = toml::to_string(&calibration.machine).map_err(|error| CommandError::Io {
                what: "writing the description",
                source: std::io::Error::other(error),
            })?;
            print!("{text}");
            return Ok(());
        }
    };
    let mut experiment = Experiment::load(name)?;
    for setting in &arguments.settings {
        experiment.set(setting)?;
    }
    if !arguments.clients.is_empty() {
        experiment.clients.clone_from(&arguments.clients);
    }
    let machine = arguments.machine.as_ref().unwrap_or(&experiment.machine);
    let options = SimulateOptions {
        machine: MachineModel::load(machine).map_err(LabError::from)?,
        experiment,
        seed: arguments.seed,
        trace: arguments.trace.clone(),
        sweep: arguments.sweep,
        progress: true,
        threads: 0,
    };
    let result = run_experiment(&options)?;
    println!(
        "{}: {}\non {}: {}; seed {}\n",
        result.experiment.name,
        result.experiment.description,
        result.machine.name,
        result.machine.description,
        result.seed
    );
    print!("{}", text(&result));
    if let Some(directory) = &arguments.out {
        std::fs::create_dir_all(directory)
            .map_err(CommandError::io("making the directory for the result"))?;
        let file = directory.join("result.json");
        let json = serde_json::to_string_pretty(&result).map_err(std::io::Error::other);
        json.and_then(|json| std::fs::write(&file, json))
            .map_err(CommandError::io("writing the result"))?;
        let report = directory.join("report.html");
        std::fs::write(&report, html(&result)?).map_err(CommandError::io("writing the report"))?;
        println!("\nWrote {} and {}.", file.display(), report.display());
    }
    Ok(())
}

fn list() -> Result<()> {
    println!("Experiments:");
    for (name, _) in EXPERIMENTS {
        println!("  {name:20} {}", Experiment::load(name)?.description);
    }
    println!("\nMachines:");
    for (name, _) in PRESETS {
        let model = MachineModel::load(name).map_err(LabError::from)?;
        println!("  {name:20} {}", model.description);
    }
    println!("  {:20} this host, from /sys", "this");
    Ok(())
}
