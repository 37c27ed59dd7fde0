//! A server's reactions to signals: docs/settings.md has the table.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;

use clearway_engine::{Engine, ReloadHook};
use clearway_server::StopSignal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{CommandError, Result};
use crate::options::ConfigOptions;
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

/// The hook by which SIGHUP reads the configuration again, once there is a server to take it.
#[derive(Clone, Default)]
pub(crate) struct OnHangUp(Arc<OnceLock<ReloadHook>>);

impl OnHangUp {
    /// Has SIGHUP and `pg_reload_conf()` read the configuration that `options` name, for `engine`.
    pub(crate) fn reload(&self, options: &ConfigOptions, engine: &Arc<Engine>) {
        let options = options.clone();
        let weak = Arc::downgrade(engine);
        let hook: ReloadHook =
            Arc::new(move || weak.upgrade().is_some_and(|engine| reload(&options, &engine)));
        let _ = self.0.set(Arc::clone(&hook));
        engine.set_reload(hook);
    }
}

/// Reads the configuration again, and says what has become of it; whether it was taken.
fn reload(options: &ConfigOptions, engine: &Engine) -> bool {
    let taken = options
        .load()
        .and_then(|config| engine.reload(&config).map_err(CommandError::Config));
    let reloaded = match taken {
        Ok(reloaded) => reloaded,
        Err(error) => {
            notice(format_args!(
                "the configuration was not taken, and the settings stay as they are: {error}"
            ));
            return false;
        }
    };
    let list = |keys: &[String]| keys.join(", ");
    match reloaded.changed.is_empty() {
        true => notice(format_args!("read the configuration again: nothing has changed")),
        false => notice(format_args!(
            "read the configuration again: {} changed",
            list(&reloaded.changed)
        )),
    }
    if !reloaded.pending_restart.is_empty() {
        notice(format_args!(
            "to be taken at the next start: {}",
            list(&reloaded.pending_restart)
        ));
    }
    true
}

/// A stop signal that is given when SIGTERM or SIGINT arrives. SIGQUIT ends the process at once, SIGHUP reads the
/// configuration again, SIGUSR1 and SIGUSR2 do nothing.
pub(crate) fn handle_signals(on_hang_up: OnHangUp) -> Result<StopSignal> {
    let stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2])
        .map_err(CommandError::io("installing signal handlers"))?;
    let given = stop.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGTERM | SIGINT if !given.is_stopped() => {
                        given.stop();
                        notice(format_args!(
                            "shutting down (once more to stop without a checkpoint)"
                        ));
                    }
                    SIGTERM | SIGINT | SIGQUIT => {
                        notice(format_args!(
                            "stopped without a checkpoint; the next start recovers from the log"
                        ));
                        std::process::exit(ABANDONED);
                    }
                    SIGHUP => match on_hang_up.0.get() {
                        Some(reload) => {
                            reload();
                        }
                        // It has been read a moment ago.
                        None => notice(format_args!("SIGHUP: the server is starting, nothing to reload")),
                    },
                    _ => {}
                }
            }
        })
        .map_err(CommandError::io("starting the signal thread"))?;
    Ok(stop)
}
