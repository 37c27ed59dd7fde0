//! `clearway other-program`: one of the programs that `clearway bench --beside` runs beside itself.
//!
//! It is a process and a login session of its own, and asks the kernel to kill it when the thread that started it ends:
//! nothing that ends the bench, `kill -9` included, leaves it behind.

use std::convert::Infallible;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};
use clearway_lab::OtherProgram;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

use crate::error::{CommandError, Result};

/// Bytes of a write: four pages of a database.
const WRITE_SIZE: u64 = 32 << 10;

/// Size of the file that is written and synced.
const FILE_SIZE: u64 = 64 << 20;

/// Want the CPUs or the disk until the process that started it ends
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// Number of that process
    #[arg(long)]
    parent: u32,
    #[command(subcommand)]
    work: Work,
}

/// The work of the program, which never ends.
#[derive(Debug, Subcommand)]
enum Work {
    /// Use one CPU
    BusyLoop,
    /// Write and sync a file
    SyncFile {
        /// Directory of the file
        directory: PathBuf,
    },
}

/// The command that starts one from a bench in this program.
pub(crate) fn command(program: OtherProgram<'_>) -> Command {
    // What runs now, also if its file has been replaced since.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("clearway")
        .args(["other-program", "--parent", &std::process::id().to_string()]);
    match program {
        OtherProgram::BusyLoop => command.arg("busy-loop"),
        OtherProgram::FileSyncs(directory) => command.arg("sync-file").arg(directory),
    };
    command
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    end_with(arguments.parent)?;
    match &arguments.work {
        Work::BusyLoop => busy_loop(),
        Work::SyncFile { directory } => {
            match sync_file(directory).map_err(CommandError::io("writing and syncing a file"))? {}
        }
    }
}

/// Makes this process a login session that ends with its parent.
fn end_with(parent: u32) -> Result<()> {
    setsid().map_err(|error| CommandError::io("beginning a session")(error.into()))?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| CommandError::io("asking to end with the bench")(error.into()))?;
    // A parent that had ended before gives no signal.
    match getppid().map(Pid::as_raw_nonzero) {
        Some(now) if now.get() as u32 == parent => Ok(()),
        _ => Err(CommandError::Usage("the bench has ended".to_owned())),
    }
}

fn busy_loop() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn sync_file(directory: &Path) -> std::io::Result<Infallible> {
    let file = File::create(directory.join("file"))?;
    let bytes = [0; WRITE_SIZE as usize];
    let mut position = 0;
    loop {
        file.write_all_at(&bytes, position)?;
        file.sync_all()?;
        position = (position + WRITE_SIZE) % FILE_SIZE;
    }
}
