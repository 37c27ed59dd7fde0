//! The log of a server: lines on standard error, in PostgreSQL's form or as JSON.
//!
//! ```text
//!   tracing events ──layer──▶ line ──form──▶ queue ──one thread──▶ standard error
//!   notices, panics, reports ──▲
//! ```
//!
//! Whatever a server says of itself comes this way, from the first notice to the error that ends the command. No thread but
//! the writer's waits for the reader of standard error ([`queue`] has the rules). At the end of the process, in order or by
//! [`clearway_machine::fatal`], the lines that wait are written, for as long as [`PATIENCE`].
//!
//! Commands that are no server write to standard error themselves ([`output`](crate::output)).

mod layer;
mod line;
mod queue;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use clearway_engine::Config;
use clearway_engine::config::{LogDestination, LogLevel};
use clearway_engine::server_log::session_of_thread;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{CommandError, Result, plural};
use layer::Lines;
use line::Line;
use queue::Queue;

/// The time that the end of a process waits for the reader of its log.
const PATIENCE: Duration = Duration::from_secs(2);

static QUEUE: OnceLock<Queue> = OnceLock::new();
static FORM: RwLock<Option<Arc<Form>>> = RwLock::new(None);

/// The settings of the log.
#[derive(Debug)]
struct Form {
    destination: LogDestination,
    prefix: String,
    least: LogLevel,
    checkpoints: bool,
}

impl Form {
    fn of(config: &Config) -> Form {
        Form {
            destination: config.log_destination,
            prefix: config.log_line_prefix.clone(),
            least: config.log_min_messages,
            checkpoints: config.log_checkpoints,
        }
    }

    /// The one in force.
    fn now() -> Arc<Form> {
        let form = FORM.read().unwrap_or_else(PoisonError::into_inner).clone();
        form.unwrap_or_else(|| Arc::new(Form::of(&Config::default())))
    }
}

/// Makes this process one with a log, in the default form until [`configure`] is called.
///
/// The variable `CLEARWAY_LOG` counts more than `log_min_messages`, if it is set: a filter by levels and modules.
pub(crate) fn begin() -> Result<()> {
    let failed = CommandError::io("beginning the log");
    // A descriptor of its own: the standard library's has a lock, which the writer would hold while nothing is read.
    let mut output = match io::stderr().as_fd().try_clone_to_owned() {
        Ok(descriptor) => File::from(descriptor),
        Err(error) => return Err(failed(error)),
    };
    let queue = QUEUE.get_or_init(Queue::default);
    let writes = move || {
        queue.write_to(&mut output, lost);
    };
    let writer = thread::Builder::new()
        .name("clearway log".to_owned())
        .stack_size(128 << 10);
    writer.spawn(writes).map_err(failed)?;
    let filter = EnvFilter::try_from_env("CLEARWAY_LOG").ok();
    let lines = Lines {
        filtered: filter.is_some(),
    };
    tracing_subscriber::registry().with(filter).with(lines).init();
    clearway_machine::set_reporter(report);
    std::panic::set_hook(Box::new(panicked));
    Ok(())
}

/// Gives the log the form that a configuration says.
pub(crate) fn configure(config: &Config) {
    *FORM.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Form::of(config)));
    tracing::callsite::rebuild_interest_cache();
}

/// True if this process has a log.
pub(crate) fn is_begun() -> bool {
    QUEUE.get().is_some()
}

/// Writes a line for the operator, if `log_min_messages` has it written.
pub(crate) fn notice(severity: LogLevel, message: String) {
    if severity < Form::now().least {
        return;
    }
    let mut line = Line::new(severity, message);
    line.session = session_of_thread();
    write(&line);
}

/// Waits until the log is written, before the process ends.
pub(crate) fn end() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(PATIENCE);
    }
}

fn write(line: &Line) {
    let form = Form::now();
    if let Some(queue) = QUEUE.get() {
        queue.append(&line.written(form.destination, &form.prefix));
    }
}

/// The line in the place of lines that were lost.
fn lost(count: u64) -> String {
    let form = Form::now();
    let lines = plural(count as usize, "line");
    let message = format!("lost {lines}: standard error did not take them in time");
    Line::new(LogLevel::Warning, message).written(form.destination, &form.prefix)
}

/// Reports of the process, which ends after one that is fatal.
fn report(message: std::fmt::Arguments<'_>, is_fatal: bool) {
    let severity = if is_fatal {
        LogLevel::Panic
    } else {
        LogLevel::Warning
    };
    notice(severity, message.to_string());
    if is_fatal {
        end();
    }
}

/// A thread panics: the process may go on without it.
fn panicked(panic: &PanicHookInfo<'_>) {
    let name = thread::current().name().unwrap_or("without a name").to_owned();
    let place = panic
        .location()
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    let what = panic.payload_as_str().unwrap_or("no message");
    notice(LogLevel::Error, format!("thread {name} panicked{place}: {what}"));
}
