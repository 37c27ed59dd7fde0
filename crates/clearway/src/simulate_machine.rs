//! `clearway simulate machine`: descriptions of machines that are not here.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use clearway_lab::simulate::{MachineTexts, import_machine};

use crate::error::{CommandError, Result};
use crate::output;

/// Commands of `clearway simulate machine`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a machine's description from a core-to-core matrix, `lscpu` and `numactl -H`
    ///
    /// Costs that the tools do not measure are those of a built-in machine; each says so, with its source. The description
    /// goes to the standard output; it wants a look before it is believed.
    Import(Import),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    lscpu -p > lscpu.txt; numactl -H > numactl.txt; core-to-core-latency --csv > matrix.csv      on the machine\n  \
    clearway simulate machine import --lscpu lscpu.txt --numactl numactl.txt --latency matrix.csv > mine.toml\n  \
    clearway simulate numa-simple-update --machine mine.toml")]
pub(crate) struct Import {
    /// Output of `lscpu -p`, which has the place of each CPU, or of `lscpu -J`, a summary
    #[arg(long, value_name = "FILE")]
    lscpu: PathBuf,
    /// Core-to-core matrix: the CSV of core-to-core-latency, or the output of c2clat; nanoseconds of one way
    #[arg(long, value_name = "FILE")]
    latency: Option<PathBuf>,
    /// Output of `numactl -H`: nodes within sockets, and hops between sockets
    #[arg(long, value_name = "FILE")]
    numactl: Option<PathBuf>,
    /// Machine that all other costs are taken from, instead of the one whose transfer costs are nearest
    #[arg(long, value_name = "NAME")]
    like: Option<String>,
    /// Name of the machine in the description
    #[arg(long, value_name = "NAME", default_value = "imported")]
    name: String,
}

/// The longest file: a matrix of 512 CPUs with 20 characters a cell is a third of it.
const BYTES_MAX: u64 = 16 << 20;

pub(crate) fn run(command: &Command) -> Result<()> {
    let Command::Import(arguments) = command;
    let lscpu = read(&arguments.lscpu)?;
    let latency = arguments.latency.as_deref().map(read).transpose()?;
    let numactl = arguments.numactl.as_deref().map(read).transpose()?;
    let imported = import_machine(&MachineTexts {
        name: &arguments.name,
        lscpu: (&arguments.lscpu, &lscpu),
        latency: arguments.latency.as_deref().zip(latency.as_deref()),
        numactl: arguments.numactl.as_deref().zip(numactl.as_deref()),
        like: arguments.like.as_deref(),
    })?;
    for note in &imported.notes {
        clearway_machine::stderr_line(format_args!("Left out: {note}."));
    }
    let text = toml::to_string(&imported.machine).map_err(|error| CommandError::Io {
        what: "writing the description",
        source: std::io::Error::other(error),
    })?;
    output::print(format_args!("{text}"))
}

/// A file of text, with its name in errors.
fn read(path: &Path) -> Result<String> {
    let refuse = |why: String| CommandError::Usage(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = String::new();
    let length = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    match length {
        Ok(length) if length as u64 > BYTES_MAX => Err(refuse(format!("longer than {BYTES_MAX} bytes"))),
        Ok(_) => Ok(text),
        Err(error) => Err(refuse(error.to_string())),
    }
}
