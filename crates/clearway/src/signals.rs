//! SIGTERM and SIGINT ask for a clean shutdown; a second one ends the process at once.

use std::thread;

use clearway_server::StopSignal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{CommandError, Result};
use crate::output::notice;

/// The exit code of a process that gave up its clean shutdown.
const ABANDONED: i32 = 130;

/// A stop signal that is given when SIGTERM or SIGINT arrives.
pub(crate) fn stop_on_signals() -> Result<StopSignal> {
    let stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(CommandError::io("installing signal handlers"))?;
    let given = stop.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _ in signals.forever() {
                if given.is_stopped() {
                    notice(format_args!(
                        "stopped without a checkpoint; the next start recovers from the log"
                    ));
                    std::process::exit(ABANDONED);
                }
                given.stop();
                notice(format_args!(
                    "shutting down (once more to stop without a checkpoint)"
                ));
            }
        })
        .map_err(CommandError::io("starting the signal thread"))?;
    Ok(stop)
}
