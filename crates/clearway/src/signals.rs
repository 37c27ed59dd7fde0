//! A server's reactions to signals: docs/operating/running.md has the table.
//!
//! By default most signals end a process, and none of them says so. So each one that can be handled is: a server ends by no
//! signal that means nothing to it, and by none without a line in its log.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;

use clearway_engine::{Config, Engine, ReloadHook, Reloaded};
use clearway_server::StopSignal;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::error::{CommandError, Result};
use crate::output::notice;
use crate::server_log;
use crate::supervisor;

/// The exit code of a process that gave up its clean shutdown.
const ABANDONED: i32 = 130;

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error of that write. Without, a client that makes a
/// table grow ends the server.
pub(crate) fn survive_file_size_limit() -> Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(CommandError::io("installing a signal handler"))
}

/// SIGSTKFLT and SIGPWR, which only Linux has.
const OF_LINUX: [i32; 2] = [16, 30];

/// The real-time signals but those that C libraries keep for themselves, which a program cannot handle.
const REAL_TIME: std::ops::RangeInclusive<i32> = 35..=64;

/// Signals that mean nothing to a server, and that end a process by default.
fn meaningless() -> impl Iterator<Item = i32> {
    [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO]
        .into_iter()
        .chain(OF_LINUX)
        .chain(REAL_TIME)
}

/// The hook by which SIGHUP reads the configuration again, once there is a server to take it.
#[derive(Clone, Default)]
pub(crate) struct OnHangUp(Arc<OnceLock<ReloadHook>>);

impl OnHangUp {
    /// Has SIGHUP and `pg_reload_conf()` read the configuration by `load`, for `engine`.
    pub(crate) fn reload(
        &self,
        load: impl Fn() -> Result<Config> + Send + Sync + 'static,
        engine: &Arc<Engine>,
    ) {
        self.reload_with(load, engine, |config, take| take(config));
    }

    /// As [`reload`](Self::reload); `adjust` may change what was read before it has it taken.
    pub(crate) fn reload_with(
        &self,
        load: impl Fn() -> Result<Config> + Send + Sync + 'static,
        engine: &Arc<Engine>,
        adjust: impl Fn(&mut Config, &dyn Fn(&Config) -> Result<Reloaded>) -> Result<Reloaded>
        + Send
        + Sync
        + 'static,
    ) {
        let weak = Arc::downgrade(engine);
        let hook: ReloadHook = Arc::new(move || {
            weak.upgrade().is_some_and(|engine| {
                let take = |config: &Config| {
                    let reloaded = engine.reload(config).map_err(CommandError::Config)?;
                    server_log::configure(config);
                    Ok(reloaded)
                };
                reload(load().and_then(|mut config| adjust(&mut config, &take)))
            })
        });
        let _ = self.0.set(Arc::clone(&hook));
        engine.set_reload(hook);
    }
}

/// Says what has become of a configuration that was read again; whether it was taken.
fn reload(taken: Result<Reloaded>) -> bool {
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

/// A stop signal that is given when SIGTERM or SIGINT arrives, or the limit of CPU time is reached. SIGQUIT ends the process
/// at once, SIGHUP reads the configuration again, a signal that means nothing to a server does nothing, and one that the
/// process cannot outlive is told of.
pub(crate) fn handle_signals(on_hang_up: OnHangUp) -> Result<StopSignal> {
    clearway_machine::tell_of_fatal_signals().map_err(CommandError::io("installing signal handlers"))?;
    let stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let handled = [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGXCPU].into_iter();
    let mut signals =
        Signals::new(handled.chain(meaningless())).map_err(CommandError::io("installing signal handlers"))?;
    let given = stop.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut told_of = HashSet::new();
            for signal in signals.forever() {
                match signal {
                    // It comes every second from now on, to the hard limit, at which the kernel ends the process.
                    SIGXCPU => {
                        if !given.is_stopped() {
                            supervisor::stopping();
                            given.stop();
                            notice(format_args!(
                                "the limit of CPU time (ulimit -t) is reached: shutting down"
                            ));
                        }
                    }
                    SIGTERM | SIGINT if !given.is_stopped() => {
                        // Before the process can end.
                        supervisor::stopping();
                        given.stop();
                        notice(format_args!(
                            "shutting down (once more to stop without a checkpoint)"
                        ));
                    }
                    SIGTERM | SIGINT | SIGQUIT => {
                        notice(format_args!(
                            "stopped without a checkpoint; the next start recovers from the log"
                        ));
                        server_log::end();
                        std::process::exit(ABANDONED);
                    }
                    SIGHUP => match on_hang_up.0.get() {
                        Some(reload) => {
                            supervisor::reloading();
                            reload();
                            supervisor::reloaded();
                        }
                        // It has been read a moment ago.
                        None => notice(format_args!("SIGHUP: the server is starting, nothing to reload")),
                    },
                    meaningless => {
                        // A timer would fill the log.
                        if told_of.insert(meaningless) {
                            notice(format_args!("{} means nothing to a server", name_of(meaningless)));
                        }
                    }
                }
            }
        })
        .map_err(CommandError::io("starting the signal thread"))?;
    Ok(stop)
}

/// A signal's name, or its number if it has none.
fn name_of(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}
