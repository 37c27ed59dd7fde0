//! `clearway promote`: makes a standby a server of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clearway_storage::directory_state::{PROMOTE_SIGNAL, directory_is_in_use, directory_state};

use crate::error::{CommandError, Result};
use crate::options::duration;
use crate::output::notice;

/// Time between two looks whether the standby was promoted.
const LOOK: Duration = Duration::from_millis(50);

/// Make a running standby a server of its own, which takes writes
///
/// The standby ends its connection to the server that it follows, replays what it has received, and begins a new timeline.
/// Commits that the other server has made and not sent are not in it. The other server cannot follow this one afterwards
/// if its log goes on beyond that point: make a standby of it with a new base backup.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  clearway promote --data /var/tmp/standby")]
pub(crate) struct Arguments {
    /// Data directory of the standby, which is running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// How long to wait for the promotion
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let dir = &arguments.data;
    let refuse =
        |problem: String| CommandError::Usage(format!("cannot promote {}: {problem}", dir.display()));
    let state = || directory_state(dir).map_err(|error| refuse(error.to_string()));
    if !state()?.standby {
        return Err(refuse("it is no standby's directory".to_owned()));
    }
    if !directory_is_in_use(dir).map_err(|error| refuse(error.to_string()))? {
        return Err(refuse(
            "no standby is running on it; start it with \"clearway standby\" first".to_owned(),
        ));
    }
    let signal = dir.join(PROMOTE_SIGNAL);
    std::fs::write(&signal, b"").map_err(CommandError::io("asking the standby"))?;
    let deadline = Instant::now() + arguments.timeout;
    loop {
        let now = state()?;
        if !now.standby {
            notice(format_args!(
                "promoted: {} is on timeline {}",
                dir.display(),
                now.timeline
            ));
            return Ok(());
        }
        let is_over = Instant::now() >= deadline;
        // The standby removes the file when it has done what it can.
        if is_over || !signal.exists() && state()?.standby {
            let _ = std::fs::remove_file(&signal);
            return Err(refuse(if is_over {
                format!(
                    "it is not promoted after {:?}; its log says why",
                    arguments.timeout
                )
            } else {
                "it refused; its log says why".to_owned()
            }));
        }
        std::thread::sleep(LOOK);
    }
}
