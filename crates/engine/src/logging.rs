//! Settings of the server's log, in PostgreSQL's words.

use serde::{Deserialize, Serialize};

/// The form of the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogDestination {
    /// Lines of text.
    #[default]
    Stderr,
    /// A JSON object on each line.
    Jsonlog,
}

/// The severity of a line of the log, from the least. LOG stands between ERROR and FATAL: what an operator wants to know,
/// whatever clients get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Debug5,
    /// As `debug5`.
    Debug4,
    /// As `debug5`.
    Debug3,
    /// As `debug5`.
    Debug2,
    /// For those who look for a fault.
    Debug1,
    /// An answer that a client has asked for.
    Info,
    /// A help for a client.
    Notice,
    /// Probably not as it was meant.
    Warning,
    /// The end of a statement.
    Error,
    /// For the operator.
    Log,
    /// The end of a session, or of the command.
    Fatal,
    /// The end of the process.
    Panic,
}

impl LogLevel {
    /// The word that begins a line of this severity.
    pub const fn name(self) -> &'static str {
        match self {
            LogLevel::Debug5 => "DEBUG5",
            LogLevel::Debug4 => "DEBUG4",
            LogLevel::Debug3 => "DEBUG3",
            LogLevel::Debug2 => "DEBUG2",
            LogLevel::Debug1 => "DEBUG1",
            LogLevel::Info => "INFO",
            LogLevel::Notice => "NOTICE",
            LogLevel::Warning => "WARNING",
            LogLevel::Error => "ERROR",
            LogLevel::Log => "LOG",
            LogLevel::Fatal => "FATAL",
            LogLevel::Panic => "PANIC",
        }
    }
}

/// The statements that the log tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStatement {
    /// None of them.
    #[default]
    None,
    /// Those that change definitions.
    Ddl,
    /// And those that change rows.
    Mod,
    /// All that are understood.
    All,
}

impl LogStatement {
    /// The words of the setting.
    pub(crate) const WORDS: &'static [&'static str] = &["none", "ddl", "mod", "all"];

    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            LogStatement::None => "none",
            LogStatement::Ddl => "ddl",
            LogStatement::Mod => "mod",
            LogStatement::All => "all",
        }
    }

    /// The value that a word stands for.
    pub(crate) fn of_word(word: &str) -> Option<LogStatement> {
        use LogStatement::{All, Ddl, Mod, None as Nothing};
        [Nothing, Ddl, Mod, All]
            .into_iter()
            .find(|value| value.word() == word)
    }
}

/// The letters that may follow a `%` in `log_line_prefix`.
pub const PREFIX_ESCAPES: &str = "adbehmnpqrstu%";

/// Refuses a prefix with an escape that there is not.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), String> {
    let mut characters = prefix.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        match characters.next() {
            Some(letter) if PREFIX_ESCAPES.contains(letter) => {}
            Some(letter) => {
                let known: Vec<String> = PREFIX_ESCAPES.chars().map(|known| format!("%{known}")).collect();
                return Err(format!("has %{letter}; there are {}", known.join(" ")));
            }
            None => return Err("ends with %; a percent sign is written %%".to_owned()),
        }
    }
    Ok(())
}
