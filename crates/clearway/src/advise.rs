//! `clearway advise`: which variant of each mechanism for a machine.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use clearway_lab::LabError;
use clearway_lab::advise::{AdviseOptions, advice_text, cells_text, configuration, run_advise};
use clearway_lab::simulate::calibrate;
use clearway_sim::MachineModel;

use crate::error::{CommandError, Result};
use crate::options;
use crate::output;

/// Find the variant of each mechanism that serves a machine best, by simulation, as a clearway.toml
///
/// Takes the preset clearway, changes one switch at a time to each of its variants, and simulates those on the workloads
/// that the switch has a part in: with 1 client, with as many as the machine has CPUs, and with twice as many. The table
/// has the variant advised for each switch, where it wins, what it costs, and what turns the verdict; the configuration
/// is what `clearway serve --config` takes.
///
/// The rule: a variant wins a cell (a workload with a number of clients) if its throughput is 2 % or more above that of
/// the preset's, and by more than the seeds are apart. It is allowed if it wins a cell, loses no more than 1 % with one
/// client, and no more than 2 % in any other cell. Its best and its worst cell are then run again with ten influential
/// costs halved and raised by half; if more than a quarter of these changes turn the verdict, the win was an accident. Of
/// those that are left, the one with the highest mean is advised. Else the preset's stays, and the table shows what the
/// closest one would win and lose. All advised variants are then run together, and one that makes them lose more than that
/// is given up.
///
/// It is a simulation: docs/simulator.md, "What to believe", and docs/simulator/advise.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway advise cloud-16 --out clearway.toml       then: clearway serve --data DIR --config clearway.toml\n  \
    clearway advise this --quick                       this host: calibrated first, then simulated\n  \
    clearway advise haswell-ex-4s --switch lwlock,log_flush --workload tpcb-like\n  \
    clearway advise my-machine.toml --clients 1,64,200 --set work_us=200 --details\n\n\
    Machines: clearway simulate list. Switches: clearway mechanisms. To check an advice on the machine itself:\n  \
    clearway bench --vary SWITCH")]
pub(crate) struct Arguments {
    /// The machine: a name that `clearway simulate list` shows, a description's file, or `this`: this host, calibrated
    /// first
    machine: String,
    /// Advise on these switches only; all others stay as in the preset
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    switch: Vec<String>,
    /// Count these workloads only: point-select, mixed, simple-update, simple-update-async, tpcb-like,
    /// read-not-in-buffers, standby-long-transaction, standby-replay, hot-parent
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    workload: Vec<String>,
    /// Numbers of clients [default: 1, the machine's CPUs, twice its CPUs]; standby-replay has 1 to 8 workers always
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Seeds of each point: medians are compared, and how far they are apart is the margin of error [default: 3, or 2
    /// with --quick]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Run each switch on its most telling workload alone, with 1 client and as many as there are CPUs
    #[arg(long)]
    quick: bool,
    /// Change a number of the workloads, e.g. --set work_us=200, --set device_factor=5
    #[arg(long = "set", value_name = "NAME=NUMBER")]
    settings: Vec<String>,
    /// Write the configuration to this file, which must not exist, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file of --out
    #[arg(long, requires = "out")]
    force: bool,
    /// Also print every cell of every variant
    #[arg(long)]
    details: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut options = AdviseOptions {
        // Names and numbers are checked before this host is calibrated.
        machine: MachineModel::load(&arguments.machine).map_err(LabError::from)?,
        switches: arguments.switch.clone(),
        workloads: arguments.workload.clone(),
        clients: arguments.clients.clone(),
        seeds: arguments.seeds.unwrap_or(if arguments.quick { 2 } else { 3 }),
        quick: arguments.quick,
        settings: arguments.settings.clone(),
        progress: true,
        threads: 0,
    };
    options.check()?;
    if let Some(path) = &arguments.out {
        check_place(path, arguments.force)?;
    }
    if arguments.machine == "this" {
        output::notice(format_args!(
            "calibrating; other load on this host spoils all that follows"
        ));
        options.machine = calibrate()?.machine;
    }
    let advice = run_advise(&options)?;
    output::print(format_args!("{}", advice_text(&advice)))?;
    if arguments.details {
        output::print(format_args!("\n{}", cells_text(&advice)))?;
    }
    let text = configuration(&advice, &options::command_line())?;
    match &arguments.out {
        Some(path) => {
            write(path, arguments.force, &text)?;
            output::line(format_args!("\nWrote {}.", path.display()))
        }
        None => output::print(format_args!("\n{text}")),
    }
}

/// Told before the simulations, not after them.
fn check_place(path: &Path, force: bool) -> Result<()> {
    if path.exists() && !force {
        return Err(exists(path));
    }
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(CommandError::Usage(format!(
            "cannot write {}: {} is no directory; make it first",
            path.display(),
            directory.display()
        )));
    }
    Ok(())
}

fn exists(path: &Path) -> CommandError {
    CommandError::Usage(format!(
        "{} exists already: name another file, or overwrite it with --force",
        path.display()
    ))
}

fn write(path: &Path, force: bool, text: &str) -> Result<()> {
    let mut open = OpenOptions::new();
    open.write(true);
    if force {
        open.create(true).truncate(true);
    } else {
        open.create_new(true);
    }
    let mut file = open.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => CommandError::io("writing the configuration")(error),
    })?;
    file.write_all(text.as_bytes())
        .map_err(CommandError::io("writing the configuration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_not_overwritten_unless_forced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clearway.toml");
        check_place(&path, false).unwrap();
        write(&path, false, "a = 1 # long").unwrap();
        for error in [
            check_place(&path, false).unwrap_err(),
            write(&path, false, "b").unwrap_err(),
        ] {
            assert!(error.to_string().contains("--force"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a = 1 # long");
        check_place(&path, true).unwrap();
        write(&path, true, "b = 2").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b = 2");
        let error = check_place(&directory.path().join("none/clearway.toml"), false).unwrap_err();
        assert!(error.to_string().contains("no directory"), "{error}");
    }
}
