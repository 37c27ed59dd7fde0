//! `clearway promote`: a standby stops following and takes writes.
//!
//! The running standby does it. This command writes the file `promote.signal` into its data directory, which the standby
//! looks for, and waits until the control file says that the directory is no standby's any more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clearway_storage::directory_state::{
    PROMOTE_FAILED, PROMOTE_SIGNAL, directory_is_in_use, directory_state,
};

use crate::error::{CommandError, Result};
use crate::options::duration;
use crate::output;

/// Interval between two looks at whether the standby is promoted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Make a running standby take writes, on a timeline of its own
///
/// The standby replays what it has received, and then begins a new timeline. The server that it followed does not learn
/// of it: see to it that clients do not write there any more. It can follow the promoted one if it has not logged
/// anything that the standby had not received.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    clearway promote --data /var/tmp/standby\n\n\
    From a session on the standby, this does the same:\n  \
    select pg_promote();")]
pub(crate) struct Arguments {
    /// Data directory of the standby, which must be running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Longest wait for the promotion
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

/// True if the directory is no standby's.
fn is_promoted(data: &Path) -> Result<bool> {
    Ok(!directory_state(data)?.standby)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let data = &arguments.data;
    let refuse = |problem: String| Err(CommandError::Usage(problem));
    let shown = data.display();
    if is_promoted(data)? {
        return refuse(format!(
            "{shown} is not a standby's directory: it takes writes as it is"
        ));
    }
    if !directory_is_in_use(data)? {
        return refuse(format!(
            "no server runs on {shown}, and the running standby does the promotion; start it with \"clearway standby \
             --data {shown} --from …\" first (it need not reach the primary)"
        ));
    }
    let signal = data.join(PROMOTE_SIGNAL);
    let failed = data.join(PROMOTE_FAILED);
    let _ = fs::remove_file(&failed);
    File::create(&signal).map_err(CommandError::io("writing promote.signal"))?;
    let deadline = Instant::now() + arguments.timeout;
    // The directory is a primary's before the checkpoint behind that is made; the standby removes the file when it takes
    // writes.
    while !is_promoted(data)? || signal.exists() && directory_is_in_use(data)? {
        if !directory_is_in_use(data)? && !is_promoted(data)? {
            let _ = fs::remove_file(&signal);
            return refuse(format!(
                "the server on {shown} has ended without a promotion; what it said last tells why"
            ));
        }
        if Instant::now() >= deadline {
            return refuse(format!(
                "{shown} is not promoted after {:?}; the standby goes on with it: \"select pg_is_in_recovery()\" tells when \
                 it is done",
                arguments.timeout
            ));
        }
        if !signal.exists() && failed.exists() {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    // Written before the signal is removed.
    if let Ok(problem) = fs::read_to_string(&failed) {
        return refuse(format!("{shown} is not promoted: {}", problem.trim_end()));
    }
    let timeline = directory_state(data)?.timeline;
    output::line(format_args!(
        "promoted: {shown} takes writes, on timeline {timeline}"
    ))
}
