//! Output of the commands: results on standard output, notices on standard error.
//!
//! Either may have lost its reader (`clearway check | head -1`, a server whose log collector has ended). `println!` and
//! `eprintln!` panic then. Here the text is lost and the command goes on to its end and its exit code. An output that
//! cannot take the text for another reason, such as a full disk, is an error.

use std::fmt;
use std::io::{self, Write};

use clearway_engine::config::LogLevel;

use crate::error::{CommandError, Result};
use crate::server_log;

/// Writes text to standard output.
pub(crate) fn print(text: fmt::Arguments<'_>) -> Result<()> {
    let mut output = io::stdout().lock();
    match output.write_fmt(text).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::io("writing to standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard output.
pub(crate) fn line(text: fmt::Arguments<'_>) -> Result<()> {
    print(format_args!("{text}\n"))
}

/// Tells the operator: a line of the log of a server, and of another command a line on standard error.
pub(crate) fn notice(text: fmt::Arguments<'_>) {
    match server_log::is_begun() {
        true => server_log::notice(LogLevel::Log, text.to_string()),
        false => clearway_machine::stderr_line(format_args!("clearway: {text}")),
    }
}

/// Tells the operator of the error that ends the command.
pub(crate) fn last_error(error: &CommandError) {
    match server_log::is_begun() {
        true => server_log::notice(LogLevel::Fatal, error.to_string()),
        false => clearway_machine::stderr_line(format_args!("clearway: {error}")),
    }
}

/// Standard error of a command that is no server, for events: what it cannot take is lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
