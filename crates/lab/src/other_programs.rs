//! Programs that want the CPUs and the disk of the machine while a bench measures.
//!
//! A server is seldom alone on its machine, and variants that are level on a quiet one may differ beside others:
//!
//! | program | does, again and again |
//! | --- | --- |
//! | a busy loop | counts, and never sleeps |
//! | a program that syncs a file | writes 32 KiB of a file beside the databases, and syncs it |
//!
//! # Rules
//! 1. Each is a process, and a login session of its own, as another service of the machine is. Linux shares CPUs out by
//!    session (autogroup): a thread of the bench would only take from the bench's own part.
//! 2. They run while points are measured, and neither while tables are loaded nor while they are checked.
//! 3. None outlives the bench. [`Running`] kills each and waits for it wherever it is dropped, and the kernel kills it
//!    when the bench ends without dropping anything: for this the program itself asks, since only it can.
//! 4. One that ends by itself makes the bench an error: what was measured after it is not what was asked for.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// The most busy loops.
pub(crate) const BUSY_LOOPS_MAX: usize = 1_000;

/// Number and kind of the programs beside a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OtherPrograms {
    /// Number of busy loops.
    pub busy_loops: usize,
    /// True if there is a program that syncs a file.
    pub syncs_file: bool,
}

/// A program to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherProgram<'a> {
    /// A busy loop.
    BusyLoop,
    /// A program that syncs a file in this directory, which goes away afterwards.
    FileSyncs(&'a Path),
}

/// The way to start a program: a command that makes itself a login session, and ends with the thread that starts it.
pub type OtherProgramCommand = for<'a> fn(OtherProgram<'a>) -> Command;

impl OtherPrograms {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        *self == OtherPrograms::default()
    }
}

impl std::fmt::Display for OtherPrograms {
    /// `4 busy loops and a program that syncs a file`; nothing if there are none.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let and = if self.busy_loops > 0 && self.syncs_file {
            " and "
        } else {
            ""
        };
        match self.busy_loops {
            0 => {}
            1 => f.write_str("1 busy loop")?,
            loops => write!(f, "{loops} busy loops")?,
        }
        f.write_str(and)?;
        if self.syncs_file {
            f.write_str("a program that syncs a file")?;
        }
        Ok(())
    }
}

/// The directory of a file that is synced; dropping it removes both.
#[derive(Debug)]
struct SyncedDirectory(PathBuf);

impl SyncedDirectory {
    /// The name is the same for each bench, so that one removes what another, which was killed, has left.
    fn create_in(root: &Path) -> io::Result<SyncedDirectory> {
        let path = root.join("clearway-beside");
        std::fs::create_dir_all(&path)?;
        Ok(SyncedDirectory(path))
    }
}

impl Drop for SyncedDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The programs that run now; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Running {
    children: Vec<Child>,
    /// It is removed after the program that syncs in it has ended.
    _directory: Option<SyncedDirectory>,
}

impl Running {
    /// Starts the programs. The synced file is in a directory of its own in `root`. They end with the calling thread at
    /// the latest.
    pub(crate) fn start(
        programs: OtherPrograms,
        command: OtherProgramCommand,
        root: &Path,
    ) -> Result<Running> {
        let mut running = Running {
            children: Vec::new(),
            _directory: None,
        };
        for _ in 0..programs.busy_loops {
            running.add(command(OtherProgram::BusyLoop))?;
        }
        if programs.syncs_file {
            let directory =
                SyncedDirectory::create_in(root).map_err(LabError::io("creating a directory in", root))?;
            running.add(command(OtherProgram::FileSyncs(&directory.0)))?;
            running._directory = Some(directory);
        }
        Ok(running)
    }

    fn add(&mut self, mut command: Command) -> Result<()> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.children.push(child.map_err(LabError::OtherProgram)?);
        Ok(())
    }

    /// Ends the programs.
    ///
    /// # Errors
    /// One of them had ended before.
    pub(crate) fn stop(mut self) -> Result<()> {
        for child in &mut self.children {
            if let Some(status) = child.try_wait().map_err(LabError::OtherProgram)? {
                return Err(LabError::OtherProgram(io::Error::other(format!(
                    "it ended before the bench did: {status}"
                ))));
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: OtherPrograms = OtherPrograms {
        busy_loops: 2,
        syncs_file: true,
    };

    fn sleeps(program: OtherProgram<'_>) -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000");
        if let OtherProgram::FileSyncs(directory) = program {
            command.current_dir(directory);
        }
        command
    }

    #[test]
    fn what_runs_beside_is_said_in_words() {
        let said = |busy_loops, syncs_file| {
            OtherPrograms {
                busy_loops,
                syncs_file,
            }
            .to_string()
        };
        assert_eq!(said(1, false), "1 busy loop");
        assert_eq!(said(0, true), "a program that syncs a file");
        assert_eq!(said(4, true), "4 busy loops and a program that syncs a file");
        assert!(said(0, false).is_empty() && OtherPrograms::default().is_none() && !BOTH.is_none());
    }

    #[test]
    fn dropped_programs_have_ended_and_their_directory_is_gone() {
        let root = tempfile::tempdir().unwrap();
        // Of a bench that was killed.
        std::fs::create_dir(root.path().join("clearway-beside")).unwrap();
        std::fs::write(root.path().join("clearway-beside/file"), "x").unwrap();
        let running = Running::start(BOTH, sleeps, root.path()).unwrap();
        let processes: Vec<_> = running
            .children
            .iter()
            .map(|child| format!("/proc/{}", child.id()))
            .collect();
        assert_eq!(processes.len(), 3);
        assert!(processes.iter().all(|process| Path::new(process).exists()));
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
        running.stop().unwrap();
        assert!(!processes.iter().any(|process| Path::new(process).exists()));
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_program_that_has_ended_by_itself_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let mut running = Running::start(BOTH, |_| Command::new("false"), root.path()).unwrap();
        // Waited for here, so that the test does not depend on when it ends.
        running.children[1].wait().unwrap();
        let error = running.stop().unwrap_err().to_string();
        assert!(error.contains("ended before the bench did"), "{error}");
        let missing = |_: OtherProgram<'_>| Command::new("/no/such/program");
        let error = Running::start(BOTH, missing, root.path()).unwrap_err();
        assert!(matches!(error, LabError::OtherProgram(_)), "{error}");
    }
}
