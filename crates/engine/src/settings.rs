//! What SET, SHOW and RESET act on.
//!
//! Clients set a dozen PostgreSQL parameters as a matter of course. Those that mean something here are parsed into
//! fields; those that merely must be accepted keep their text. A name that is neither is 42704, as in PostgreSQL,
//! except that names with a dot (`myapp.user`) are anybody's.
//!
//! SET inside a transaction is undone when it rolls back, SET LOCAL when it ends; [`Settings::end_transaction`] does
//! both from one list of what was replaced.

use std::time::Duration;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::plan::IsolationLevel;

/// How a setting's text is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Kept as it is.
    Text,
    /// `on`, `off` and their spellings.
    Boolean,
    /// A whole number in a range.
    Integer(i64, i64),
    /// A time; a bare number is milliseconds.
    Milliseconds,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Tells, cannot be set.
    ReadOnly,
}

#[derive(Debug)]
struct Definition {
    name: &'static str,
    /// As SHOW spells it.
    shown: &'static str,
    kind: Kind,
    default: &'static str,
    /// Told to the client at the start and whenever it changes.
    reported: bool,
}

const fn setting(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition {
        name,
        shown: name,
        kind,
        default,
        reported: false,
    }
}

const fn reported(name: &'static str, shown: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition {
        name,
        shown,
        kind,
        default,
        reported: true,
    }
}

const ISOLATION: &[&str] = &[
    "read committed",
    "repeatable read",
    "read uncommitted",
    "serializable",
];
const SYNC: &[&str] = &[
    "on",
    "off",
    "local",
    "remote_write",
    "remote_apply",
    "true",
    "false",
    "yes",
    "no",
    "1",
    "0",
];
const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error", "info", "fatal",
    "panic",
];

/// All settings, sorted by name.
static DEFINITIONS: &[Definition] = &[
    reported("application_name", "application_name", Kind::Text, ""),
    setting("autovacuum", Kind::ReadOnly, "on"),
    setting("bytea_output", Kind::Word(&["hex", "escape"]), "hex"),
    setting("check_function_bodies", Kind::Boolean, "on"),
    reported("client_encoding", "client_encoding", Kind::Text, "UTF8"),
    setting("client_min_messages", Kind::Word(LEVELS), "notice"),
    reported("datestyle", "DateStyle", Kind::Text, "ISO, MDY"),
    setting("deadlock_timeout", Kind::Milliseconds, "1s"),
    setting("default_table_access_method", Kind::Text, "heap"),
    setting("default_tablespace", Kind::Text, ""),
    setting("default_transaction_deferrable", Kind::Boolean, "off"),
    setting(
        "default_transaction_isolation",
        Kind::Word(ISOLATION),
        "read committed",
    ),
    reported(
        "default_transaction_read_only",
        "default_transaction_read_only",
        Kind::Boolean,
        "off",
    ),
    setting("enable_seqscan", Kind::Boolean, "on"),
    setting("extra_float_digits", Kind::Integer(-15, 3), "1"),
    setting("fsync", Kind::ReadOnly, "on"),
    setting("idle_in_transaction_session_timeout", Kind::Milliseconds, "0"),
    setting("idle_session_timeout", Kind::Milliseconds, "0"),
    reported("in_hot_standby", "in_hot_standby", Kind::ReadOnly, "off"),
    reported("integer_datetimes", "integer_datetimes", Kind::ReadOnly, "on"),
    reported("intervalstyle", "IntervalStyle", Kind::Text, "postgres"),
    reported("is_superuser", "is_superuser", Kind::ReadOnly, "on"),
    setting("jit", Kind::Boolean, "off"),
    setting("lc_collate", Kind::ReadOnly, "C"),
    setting("lc_ctype", Kind::ReadOnly, "C.UTF-8"),
    setting("lc_messages", Kind::Text, "C"),
    setting("lc_monetary", Kind::Text, "C"),
    setting("lc_numeric", Kind::Text, "C"),
    setting("lc_time", Kind::Text, "C"),
    setting("lock_timeout", Kind::Milliseconds, "0"),
    setting(
        "log_min_duration_statement",
        Kind::Integer(-1, i32::MAX as i64),
        "-1",
    ),
    setting("maintenance_work_mem", Kind::Text, "64MB"),
    setting("max_connections", Kind::ReadOnly, "500"),
    setting("max_parallel_workers_per_gather", Kind::Integer(0, 1024), "0"),
    setting("plan_cache_mode", Kind::Text, "auto"),
    setting("row_security", Kind::Boolean, "on"),
    reported("scram_iterations", "scram_iterations", Kind::ReadOnly, "4096"),
    setting("search_path", Kind::Text, "\"$user\", public"),
    reported("server_encoding", "server_encoding", Kind::ReadOnly, "UTF8"),
    reported(
        "server_version",
        "server_version",
        Kind::ReadOnly,
        "15.0 (Clearway)",
    ),
    setting("server_version_num", Kind::ReadOnly, "150000"),
    reported(
        "session_authorization",
        "session_authorization",
        Kind::Text,
        "clearway",
    ),
    setting(
        "session_replication_role",
        Kind::Word(&["origin", "replica", "local"]),
        "origin",
    ),
    reported(
        "standard_conforming_strings",
        "standard_conforming_strings",
        Kind::Word(&["on", "true"]),
        "on",
    ),
    setting("statement_timeout", Kind::Milliseconds, "0"),
    setting("synchronous_commit", Kind::Word(SYNC), "on"),
    setting("tcp_keepalives_idle", Kind::Integer(0, i32::MAX as i64), "0"),
    reported("timezone", "TimeZone", Kind::Text, "UTC"),
    setting("track_activities", Kind::Boolean, "on"),
    setting("transaction_isolation", Kind::Word(ISOLATION), "read committed"),
    setting("transaction_read_only", Kind::Boolean, "off"),
    setting("vacuum_cost_delay", Kind::Text, "0"),
    setting("work_mem", Kind::Text, "4MB"),
    setting("xmloption", Kind::Word(&["content", "document"]), "content"),
];

/// A value that SET replaced within the running transaction.
#[derive(Debug, Clone)]
struct Replaced {
    name: String,
    value: Option<String>,
    local: bool,
}

/// One session's settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// What differs from the defaults, by name.
    changed: Vec<(String, String)>,
    /// What start-up and the configuration file made the defaults, by name.
    defaults: Vec<(String, String)>,
    replaced: Vec<Replaced>,
    /// Whether a commit waits for the log to be durable.
    pub(crate) synchronous_commit: bool,
    /// How long a statement may run.
    pub(crate) statement_timeout: Option<Duration>,
    /// How long a lock may be waited for.
    pub(crate) lock_timeout: Option<Duration>,
    /// The isolation of transactions that do not say.
    pub(crate) default_isolation: IsolationLevel,
    /// Whether transactions that do not say are read only.
    pub(crate) default_read_only: bool,
}

fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS
        .binary_search_by(|definition| definition.name.cmp(name))
        .ok()
        .map(|at| &DEFINITIONS[at])
}

fn lookup<'a>(list: &'a [(String, String)], name: &str) -> Option<&'a str> {
    list.iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

fn unrecognized(name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

fn invalid(name: &str, value: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{value}\""),
    )
}

impl Settings {
    /// The defaults.
    pub(crate) fn new() -> Settings {
        debug_assert!(DEFINITIONS.is_sorted_by_key(|definition| definition.name));
        Settings {
            changed: Vec::new(),
            defaults: Vec::new(),
            replaced: Vec::new(),
            synchronous_commit: true,
            statement_timeout: None,
            lock_timeout: None,
            default_isolation: IsolationLevel::ReadCommitted,
            default_read_only: false,
        }
    }

    /// Makes `value` what RESET goes back to. Read-only settings are set this way too.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_lowercase();
        let value = match definition(&name) {
            Some(definition) if definition.kind == Kind::ReadOnly => value.to_owned(),
            Some(definition) => checked(definition, value)?,
            None if name.contains('.') => value.to_owned(),
            None => return Err(unrecognized(&name)),
        };
        self.defaults.retain(|(known, _)| *known != name);
        self.defaults.push((name.clone(), value));
        self.apply(&name);
        Ok(())
    }

    /// SET; `None` is SET … TO DEFAULT. Whether the client is to be told of the new value.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        in_transaction: bool,
    ) -> Result<bool> {
        let name = match name.to_ascii_lowercase().as_str() {
            "time zone" | "time_zone" => "timezone".to_owned(),
            "names" => "client_encoding".to_owned(),
            other => other.to_owned(),
        };
        let known = definition(&name);
        let value = match (known, value) {
            (None, _) if !name.contains('.') => return Err(unrecognized(&name)),
            (Some(definition), _) if definition.kind == Kind::ReadOnly => {
                return Err(EngineError::new(
                    SqlState::from_code("55P02"),
                    format!("parameter \"{name}\" cannot be changed"),
                ));
            }
            (_, None) => None,
            (Some(definition), Some(value)) => Some(checked(definition, value)?),
            (None, Some(value)) => Some(value.to_owned()),
        };
        if in_transaction {
            let old = lookup(&self.changed, &name).map(str::to_owned);
            self.replaced.push(Replaced {
                name: name.clone(),
                value: old,
                local,
            });
        }
        self.put(&name, value);
        Ok(known.is_some_and(|definition| definition.reported))
    }

    /// RESET ALL.
    pub(crate) fn reset_all(&mut self, in_transaction: bool) {
        for (name, value) in std::mem::take(&mut self.changed) {
            if in_transaction {
                self.replaced.push(Replaced {
                    name: name.clone(),
                    value: Some(value),
                    local: false,
                });
            }
            self.apply(&name);
        }
    }

    /// Undoes what the end of the transaction undoes; the names of reported settings that changed.
    pub(crate) fn end_transaction(&mut self, committed: bool) -> Vec<&'static str> {
        let mut told = Vec::new();
        if self.replaced.is_empty() {
            return told;
        }
        for replaced in std::mem::take(&mut self.replaced).into_iter().rev() {
            if replaced.local || !committed {
                self.put(&replaced.name, replaced.value);
                if let Some(definition) = definition(&replaced.name).filter(|d| d.reported)
                    && !told.contains(&definition.name)
                {
                    told.push(definition.name);
                }
            }
        }
        told
    }

    /// The value as SHOW gives it; 42704 for an unknown name.
    pub(crate) fn show(&self, name: &str) -> Result<String> {
        let name = match name.to_ascii_lowercase().as_str() {
            "time zone" | "time_zone" => "timezone".to_owned(),
            "transaction isolation level" => "transaction_isolation".to_owned(),
            other => other.to_owned(),
        };
        self.value(&name)
            .map(str::to_owned)
            .ok_or_else(|| unrecognized(&name))
    }

    /// The value of a setting by its lower-case name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        lookup(&self.changed, name)
            .or_else(|| lookup(&self.defaults, name))
            .or_else(|| definition(name).map(|definition| definition.default))
    }

    /// All settings with their values, as SHOW ALL gives them.
    pub(crate) fn all(&self) -> Vec<(&'static str, String)> {
        DEFINITIONS
            .iter()
            .map(|d| (d.shown, self.value(d.name).unwrap_or_default().to_owned()))
            .collect()
    }

    /// The settings a client is told, under the names it expects.
    pub(crate) fn reported(&self) -> Vec<(&'static str, String)> {
        DEFINITIONS
            .iter()
            .filter(|d| d.reported)
            .map(|d| (d.shown, self.value(d.name).unwrap_or_default().to_owned()))
            .collect()
    }

    /// A setting's name as clients expect it.
    pub(crate) fn shown_name(name: &str) -> &'static str {
        definition(name).map_or("", |definition| definition.shown)
    }

    fn put(&mut self, name: &str, value: Option<String>) {
        self.changed.retain(|(known, _)| known != name);
        if let Some(value) = value {
            self.changed.push((name.to_owned(), value));
        }
        self.apply(name);
    }

    /// Brings the parsed fields up to date with the text.
    fn apply(&mut self, name: &str) {
        let value = self.value(name).unwrap_or_default();
        let timeout = |text: &str| match parse_milliseconds(text) {
            None | Some(0) => None,
            Some(milliseconds) => Some(Duration::from_millis(milliseconds)),
        };
        match name {
            "synchronous_commit" => {
                self.synchronous_commit = !matches!(value, "off" | "false" | "no" | "0");
            }
            "statement_timeout" => self.statement_timeout = timeout(value),
            "lock_timeout" => self.lock_timeout = timeout(value),
            "default_transaction_isolation" => {
                self.default_isolation = match value {
                    "repeatable read" => IsolationLevel::RepeatableRead,
                    _ => IsolationLevel::ReadCommitted,
                };
            }
            "default_transaction_read_only" => self.default_read_only = value == "on",
            _ => {}
        }
    }
}

/// Checks a value and gives it the spelling that SHOW shows.
fn checked(definition: &Definition, value: &str) -> Result<String> {
    let value = value.trim();
    let wrong = || invalid(definition.shown, value);
    match definition.kind {
        Kind::Text => match definition.name {
            "client_encoding" => match value.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
                "utf8" | "unicode" | "sqlascii" | "auto" => Ok("UTF8".to_owned()),
                _ => Err(EngineError::not_supported(format!("client encoding \"{value}\""))
                    .with_hint("Only UTF8 is supported.")),
            },
            "datestyle" => {
                let lower = value.to_ascii_lowercase();
                let fits = lower.split(',').map(str::trim).all(|word| {
                    matches!(
                        word,
                        "iso" | "mdy" | "us" | "noneuropean" | "noneuropean, us" | "default"
                    )
                });
                if fits {
                    Ok("ISO, MDY".to_owned())
                } else {
                    Err(EngineError::not_supported(format!("DateStyle \"{value}\""))
                        .with_hint("Only \"ISO, MDY\" is supported."))
                }
            }
            "intervalstyle" if value.eq_ignore_ascii_case("postgres") => Ok("postgres".to_owned()),
            "intervalstyle" => Err(EngineError::not_supported(format!("IntervalStyle \"{value}\""))),
            "timezone" => {
                let zone = value.trim_matches('\'');
                match zone.to_ascii_uppercase().as_str() {
                    "UTC" | "GMT" | "ETC/UTC" | "ETC/GMT" | "Z" | "0" | "UCT" | "ZULU" | "DEFAULT"
                    | "LOCAL" | "UNIVERSAL" => Ok("UTC".to_owned()),
                    // Drivers send their host's zone at the start: taken, shown as what is used.
                    _ if zone.contains('/') || zone.len() <= 5 => Ok("UTC".to_owned()),
                    _ => Err(wrong()),
                }
            }
            _ => Ok(value.to_owned()),
        },
        Kind::Boolean => match value.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
            "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
            _ => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("parameter \"{}\" requires a Boolean value", definition.shown),
            )),
        },
        Kind::Integer(least, most) => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
            Ok(number) => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{number} is outside the valid range for parameter \"{}\" ({least} .. {most})",
                    definition.shown
                ),
            )),
            Err(_) => Err(wrong()),
        },
        Kind::Milliseconds => match parse_milliseconds(value) {
            Some(milliseconds) => Ok(show_milliseconds(milliseconds)),
            None => Err(wrong()),
        },
        Kind::Word(words) => {
            let lower = value.to_ascii_lowercase();
            if !words.contains(&lower.as_str()) {
                return Err(wrong());
            }
            if lower == "serializable" {
                return Err(EngineError::not_supported("isolation level SERIALIZABLE")
                    .with_hint("REPEATABLE READ is snapshot isolation."));
            }
            Ok(lower)
        }
        Kind::ReadOnly => Err(wrong()),
    }
}

fn parse_milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number
        .checked_mul(factor)
        .filter(|milliseconds| *milliseconds <= i32::MAX as u64)
}

fn show_milliseconds(milliseconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    if milliseconds == 0 {
        return "0".to_owned();
    }
    match UNITS
        .iter()
        .find(|(factor, _)| milliseconds.is_multiple_of(*factor))
    {
        Some((factor, unit)) => format!("{}{unit}", milliseconds / factor),
        None => format!("{milliseconds}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_sorted_and_their_defaults_valid() {
        assert!(DEFINITIONS.is_sorted_by(|a, b| a.name < b.name));
        for definition in DEFINITIONS.iter().filter(|d| d.kind != Kind::ReadOnly) {
            assert!(
                checked(definition, definition.default).is_ok(),
                "{}",
                definition.name
            );
        }
    }

    #[test]
    fn a_rollback_undoes_set_and_any_end_undoes_set_local() {
        let mut settings = Settings::new();
        settings
            .set("statement_timeout", Some("5s"), false, false)
            .unwrap();
        settings
            .set("statement_timeout", Some("7s"), false, true)
            .unwrap();
        settings.end_transaction(false);
        assert_eq!(settings.statement_timeout, Some(Duration::from_secs(5)));
        settings
            .set("statement_timeout", Some("250"), true, true)
            .unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "250ms");
        settings.end_transaction(true);
        assert_eq!(settings.show("STATEMENT_TIMEOUT").unwrap(), "5s");
    }

    #[test]
    fn unknown_names_are_42704_unless_dotted() {
        let mut settings = Settings::new();
        let error = settings
            .set("no_such_thing", Some("1"), false, false)
            .unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::UNDEFINED_OBJECT);
        settings.set("myapp.user", Some("alice"), false, false).unwrap();
        assert_eq!(settings.show("myapp.user").unwrap(), "alice");
    }

    #[test]
    fn a_reset_goes_back_to_what_the_session_started_with() {
        let mut settings = Settings::new();
        settings.set_default("application_name", "psql").unwrap();
        settings
            .set("application_name", Some("other"), false, false)
            .unwrap();
        settings.set("application_name", None, false, false).unwrap();
        assert_eq!(settings.show("application_name").unwrap(), "psql");
    }
}
