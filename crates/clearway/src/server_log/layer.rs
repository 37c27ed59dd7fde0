//! Events of `tracing` as lines of the log.
//!
//! | level | severity |
//! | --- | --- |
//! | error, warn, info | ERROR, WARNING, LOG |
//! | debug, trace | DEBUG1, DEBUG2 |
//!
//! An event may name another severity ([`clearway_engine::server_log`]). Its fields without a meaning of their own are written
//! behind its message. Callsites that the settings leave out cost a look at a flag: their interest is computed when the settings
//! change.

use std::fmt::{Debug, Write as _};

use clearway_engine::config::LogLevel;
use clearway_engine::server_log::{CHECKPOINTS, session_of_thread};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::line::Line;
use super::{Form, write};

/// The events that the settings ask for.
#[derive(Debug)]
pub(super) struct Lines {
    /// True if a filter of the environment counts in place of `log_min_messages`.
    pub(super) filtered: bool,
}

fn severity_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Log,
        Level::DEBUG => LogLevel::Debug1,
        Level::TRACE => LogLevel::Debug2,
    }
}

/// The most that events of this server can be wanted for. Those that are wanted are compared again, by their severity.
pub(super) fn level_of(least: LogLevel) -> LevelFilter {
    match least {
        LogLevel::Debug5 | LogLevel::Debug4 | LogLevel::Debug3 | LogLevel::Debug2 => LevelFilter::TRACE,
        LogLevel::Debug1 => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    }
}

impl Lines {
    fn wants(&self, event: &Metadata<'_>) -> bool {
        let form = Form::now();
        (event.target() != CHECKPOINTS || form.checkpoints)
            && (self.filtered || *event.level() <= level_of(form.least))
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn register_callsite(&self, event: &'static Metadata<'static>) -> Interest {
        match self.wants(event) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, event: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.wants(event)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match self.filtered {
            true => None,
            false => Some(level_of(Form::now().least)),
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::new(severity_of(*event.metadata().level()), String::new());
        let mut fields = Fields {
            line: &mut line,
            behind: String::new(),
        };
        event.record(&mut fields);
        let behind = fields.behind;
        line.message.push_str(&behind);
        line.session = session_of_thread();
        if self.filtered || line.severity >= Form::now().least {
            write(&line);
        }
    }
}

/// The fields of an event, on their way into a line.
struct Fields<'a> {
    line: &'a mut Line,
    /// The fields without a meaning of their own.
    behind: String,
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let line = &mut *self.line;
        match field.name() {
            "message" => value.clone_into(&mut line.message),
            "severity" if value == "FATAL" => line.severity = LogLevel::Fatal,
            "sqlstate" => line.sqlstate = Some(value.to_owned()),
            "detail" => line.detail = Some(value.to_owned()),
            "hint" => line.hint = Some(value.to_owned()),
            "statement" => line.statement = Some(value.to_owned()).filter(|text| !text.is_empty()),
            name => {
                let _ = write!(self.behind, " {name}={value}");
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.line.message = format!("{value:?}"),
            name => {
                let _ = write!(self.behind, " {name}={value:?}");
            }
        }
    }
}
