//! `clearway status`, `stop` and `reload`: commands about the server that runs on a data directory.
//!
//! A server holds a lock on its directory (`flock`) while it runs, and nothing else says who it is: no file can be left behind
//! by a crash and name a process that has another task by now.
//!
//! 1. The kernel lists the processes that hold such locks (`/proc/locks`), with numbers that not all file systems show as
//!    `stat` does. So the process that is looked for is the one of them that has the directory open.
//! 2. A handle on it (`pidfd`) is taken, and 1 is repeated: the number is still that of the server, and from here on the handle
//!    is.
//! 3. The signal goes to the handle.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | the server runs; it has ended; it was told to read its configuration |
//! | 1 | it has not ended in time, or may not be told |
//! | 3 | no server runs on the directory |
//! | 4 | there is no such directory |

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use clearway_storage::directory_state::{directory_is_in_use, directory_state};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::{CommandError, Result};
use crate::options::duration;
use crate::output;

/// The commands that are servers. Others have a directory open for a while too.
const SERVERS: [&str; 3] = ["serve", "standby", "node"];

/// Tell whether a server runs on a data directory, and what it is
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes, as those of pg_ctl: 0, it runs; 3, none does; 4, there is no such directory."
)]
pub(crate) struct StatusArguments {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Stop the server that runs on a data directory, and wait for its end
#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Manner of the end
    #[arg(long, value_enum, default_value = "fast")]
    mode: StopMode,
    /// Longest wait for the end
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

/// The manner in which a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StopMode {
    /// Ends sessions, makes a checkpoint
    Fast,
    /// Ends at once; the next start recovers from the log
    Immediate,
}

/// Have the server that runs on a data directory read its configuration again
#[derive(Debug, Args)]
#[command(
    after_help = "What became of it is in the server's log; a session has it from \"select pg_reload_conf()\"."
)]
pub(crate) struct ReloadArguments {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// A server that runs.
#[derive(Debug)]
struct RunningServer {
    process: Pid,
    handle: OwnedFd,
}

impl RunningServer {
    fn signal(&self, signal: Signal) -> Result<()> {
        pidfd_send_signal(&self.handle, signal).map_err(|error| {
            CommandError::Usage(format!(
                "cannot send a signal to the server, process {}: {}",
                self.process.as_raw_nonzero(),
                std::io::Error::from(error)
            ))
        })
    }

    /// Waits for the end of the process; false if it has not ended by then.
    fn has_ended_before(&self, deadline: Instant) -> Result<bool> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| too_long())?;
            // A handle on a process can be read from when it has ended.
            match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&left)) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(CommandError::io("waiting for the server")(error.into())),
                Ok(count) => return Ok(count > 0),
            }
        }
    }
}

fn too_long() -> CommandError {
    CommandError::Usage("the timeout is too long".to_owned())
}

/// The process that holds the lock on a directory: step 1.
fn process_with_lock(directory: &fs::Metadata) -> Result<Option<Pid>> {
    let locks = fs::read_to_string("/proc/locks").map_err(CommandError::io("reading /proc/locks"))?;
    let holders = locks.lines().filter_map(|line| {
        // 12: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", "ADVISORY", "WRITE", process, ..] => Pid::from_raw(process.parse().ok()?),
            _ => None,
        }
    });
    let has_open = |process: &Pid| {
        let Ok(files) = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())) else {
            // Another user's, or it has ended.
            return false;
        };
        let mut opened = files.flatten().filter_map(|file| fs::metadata(file.path()).ok());
        opened.any(|file| (file.dev(), file.ino()) == (directory.dev(), directory.ino()))
    };
    let mut holding = holders.into_iter().filter(has_open);
    let first = holding.next();
    // Another program may hold a lock of its own while it has the directory open.
    let server = first
        .into_iter()
        .chain(holding)
        .find(|process| is_server(*process));
    Ok(server.or(first))
}

/// True if the process is one of [`SERVERS`].
fn is_server(process: Pid) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero())).unwrap_or_default();
    let command = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    SERVERS.iter().any(|server| server.as_bytes() == command)
}

/// The server that runs on a data directory. An error if none does, or if it is another user's.
fn server_of(data: &Path) -> Result<RunningServer> {
    let missing = |source| CommandError::NoDirectory {
        path: data.to_owned(),
        source,
    };
    let directory = fs::metadata(data).map_err(missing)?;
    while let Some(process) = process_with_lock(&directory)? {
        let handle = match pidfd_open(process, PidfdFlags::empty()) {
            Ok(handle) => handle,
            // It has ended meanwhile.
            Err(Errno::SRCH) => continue,
            Err(error) => return Err(CommandError::io("opening a handle on the server")(error.into())),
        };
        if process_with_lock(&directory)? != Some(process) {
            continue;
        }
        return match is_server(process) {
            true => Ok(RunningServer { process, handle }),
            false => Err(CommandError::Usage(format!(
                "process {} uses {}, and is no server",
                process.as_raw_nonzero(),
                data.display()
            ))),
        };
    }
    match directory_is_in_use(data)? {
        true => Err(CommandError::Usage(format!(
            "a server runs on {}, which this user cannot tell anything: be its user, or root",
            data.display()
        ))),
        false => Err(CommandError::NotRunning {
            path: data.to_owned(),
        }),
    }
}

/// `clearway status`
pub(crate) fn status(arguments: &StatusArguments) -> Result<()> {
    let data = &arguments.data;
    let server = server_of(data)?;
    let state = directory_state(data)?;
    let role = if state.standby { "standby" } else { "primary" };
    output::line(format_args!(
        "a {role} runs on {}: process {}, timeline {}",
        data.display(),
        server.process.as_raw_nonzero(),
        state.timeline
    ))
}

/// `clearway stop`
pub(crate) fn stop(arguments: &StopArguments) -> Result<()> {
    let data = &arguments.data;
    let deadline = Instant::now()
        .checked_add(arguments.timeout)
        .ok_or_else(too_long)?;
    let server = server_of(data)?;
    server.signal(match arguments.mode {
        StopMode::Fast => Signal::TERM,
        StopMode::Immediate => Signal::QUIT,
    })?;
    match server.has_ended_before(deadline)? {
        true => {}
        false => {
            return Err(CommandError::Usage(format!(
                "the server, process {}, has not ended after {:?}; it goes on with it",
                server.process.as_raw_nonzero(),
                arguments.timeout
            )));
        }
    }
    output::line(format_args!(
        "stopped: no server runs on {} any more",
        data.display()
    ))
}

/// `clearway reload`
pub(crate) fn reload(arguments: &ReloadArguments) -> Result<()> {
    let server = server_of(&arguments.data)?;
    server.signal(Signal::HUP)?;
    output::line(format_args!(
        "told the server, process {}, to read its configuration again",
        server.process.as_raw_nonzero()
    ))
}
