//! SIGTERM and SIGINT ask for a clean shutdown; a second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use clearway_server::StopSignal;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{CommandError, Result};
use crate::output::notice;

/// The exit code of a process that gave up its clean shutdown.
const ABANDONED: i32 = 130;

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error of that write. Without, a client that makes a
/// table grow ends the server.
pub(crate) fn survive_file_size_limit() -> Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(CommandError::io("installing a signal handler"))
}

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
