//! Writing to standard error without failing.

use std::fmt;
use std::io::Write;

/// Writes a line to standard error. If that fails, the line is lost and the program runs on. `eprintln!`
/// panics in that case, but a server whose terminal or log collector has ended must still obey its signals.
pub fn stderr_line(line: fmt::Arguments<'_>) {
    // One write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
