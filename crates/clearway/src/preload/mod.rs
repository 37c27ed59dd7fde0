//! `clearway preload`: runs a program with Clearway's latches under its pthread locks.
//!
//! It becomes that program: no process stands between the two. So it looks first at what would have the loader leave the
//! library out without a word, or the library end the program, and refuses that (`program`).

mod library;
mod program;

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use rustix::fs::{Access, access};

use crate::error::{CommandError, Result};

/// Names of the latches under a mutex. A test holds the names to those that the library knows.
const LATCHES: [&str; 5] = [
    "srw-single-wake",
    "srw-fetch-add-bts",
    "srw-cas-loop",
    "ssux",
    "libc",
];

/// Names of the signals that may ask for a table.
const SIGNALS: [&str; 3] = ["USR1", "USR2", "PROF"];

/// Run a program with Clearway's latches under its pthread locks, and see which of them it waits for
#[derive(Debug, Args)]
#[command(
    override_usage = "clearway preload [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
    after_help = "Examples:\n  \
        clearway preload --report waits.txt -- memcached -t 4      a table of its locks, when it ends\n  \
        clearway preload --report stderr --latch libc -- pigz -c big > big.gz\n                                                             \
        the same table of libc's own locks\n  \
        clearway preload --report waits.txt --signal USR2 -- mariadbd --user=mysql\n                                                             \
        then at any time: pkill -USR2 mariadbd\n  \
        for latch in libc srw-single-wake ssux; do time clearway preload --latch $latch -- xz -T4 -k big; done\n                                                             \
        does another latch pay? Take times without --report\n\n\
        The first rows of the table are the locks that were waited for longest; of the same latch, the row with the largest \
        \"held max\" is the call that keeps the others waiting. docs/embedding/preload.md explains each column.\n\n\
        The program's exit code is passed on. 127: there is no such program; 126: it cannot run so; 1: the library is not \
        there, or the table cannot be written; 2: an option means nothing."
)]
pub(crate) struct Arguments {
    /// Latch under mutexes; libc: libc's own locks of all kinds, to be counted like ours. Reader-writer locks are ssux
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(LATCHES), hide_possible_values = false)]
    latch: Option<String>,
    /// Append a table of its locks to this file when a process of the program ends, or write it to "stderr"
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Have the table written at this signal too: USR1, USR2, PROF or a number. The program must not use it itself
    #[arg(long, value_name = "SIGNAL", requires = "report", value_parser = signal)]
    signal: Option<String>,
    /// The library, if it is neither beside this program nor in ../lib
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

fn signal(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let is_number = text.parse::<u8>().is_ok_and(|number| (1..=64).contains(&number));
    if is_number || SIGNALS.contains(&name) {
        Ok(text.to_owned())
    } else {
        Err(format!("{}, or a number from 1 to 64", SIGNALS.join(", ")))
    }
}

/// Becomes the program.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match become_program(arguments)? {}
}

fn become_program(arguments: &Arguments) -> Result<Infallible> {
    let [name, rest @ ..] = &arguments.program[..] else {
        return Err(CommandError::Usage("no program is named".to_owned()));
    };
    let library = library::find(arguments.library.as_deref())?;
    let path = program::find(name)?;
    program::check(&path, library.machine)?;
    let mut command = Command::new(&path);
    command.arg0(name).args(rest);
    command.env("LD_PRELOAD", library.preload()?);
    if let Some(latch) = &arguments.latch {
        command.env("CLEARWAY_LATCH", latch);
    }
    if let Some(report) = &arguments.report {
        command.env("CLEARWAY_REPORT", place(report)?);
    }
    if let Some(signal) = &arguments.signal {
        command.env("CLEARWAY_REPORT_SIGNAL", signal);
    }
    let source = command.exec();
    Err(CommandError::CannotRun(format!("{}: {source}", path.display())))
}

/// The place of the table, wherever the program goes. A file that cannot be written is an error now and not when the program
/// has run.
fn place(report: &Path) -> Result<PathBuf> {
    if report == Path::new("stderr") {
        return Ok(report.to_owned());
    }
    let refuse = |source: std::io::Error| {
        CommandError::Usage(format!(
            "no table can be written to {}: {source}",
            report.display()
        ))
    };
    let path = std::path::absolute(report).map_err(refuse)?;
    match std::fs::OpenOptions::new().append(true).open(&path) {
        Ok(_) => {}
        // Nothing is made here: another program may be about to write its table there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().unwrap_or(Path::new("/"));
            access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| refuse(error.into()))?;
        }
        Err(error) => return Err(refuse(error)),
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_those_that_the_library_takes() {
        for name in ["USR1", "SIGUSR2", "PROF", "1", "64"] {
            assert_eq!(signal(name).as_deref(), Ok(name));
        }
        for name in ["", "KILLER", "0", "65", "-1", "usr1"] {
            assert!(signal(name).unwrap_err().contains("USR1, USR2, PROF"), "{name}");
        }
    }
}
