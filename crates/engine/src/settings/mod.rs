//! What SET, SHOW and RESET act on.
//!
//! Clients set a dozen PostgreSQL parameters as a matter of course. Those that mean something here are parsed
//! into fields; those that merely must be accepted keep their text. A name that is neither is 42704, as in
//! PostgreSQL, except that a client may set any name with a dot (`myapp.user`).
//!
//! SET inside a transaction is undone when it rolls back, SET LOCAL when it ends; [`Settings::end_transaction`] does
//! both from one list of what was replaced.

use std::time::Duration;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::path_has_public;
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
    /// A size in kilobytes, in a range; a bare number is kilobytes.
    Kilobytes(u64, u64),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// The default alone, which may be spelled in these ways: other values would ask for what is not there.
    Only(&'static [&'static str]),
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

const ON: &[&str] = &["on", "true", "yes", "1"];
const LOCALES: &[&str] = &["", "c", "posix", "c.utf-8", "c.utf8", "en_us.utf-8", "en_us.utf8"];

/// The most kilobytes that a setting takes.
const KILOBYTES_MAX: u64 = i32::MAX as u64;

/// All settings, sorted by name.
static DEFINITIONS: &[Definition] = &[
    reported("application_name", "application_name", Kind::Text, ""),
    setting("autovacuum", Kind::ReadOnly, "on"),
    setting("bytea_output", Kind::Word(&["hex", "escape"]), "hex"),
    setting("check_function_bodies", Kind::Boolean, "on"),
    reported("client_encoding", "client_encoding", Kind::Text, "UTF8"),
    setting("client_min_messages", Kind::Word(LEVELS), "notice"),
    reported("datestyle", "DateStyle", Kind::Text, "ISO, MDY"),
    setting("deadlock_timeout", Kind::ReadOnly, "1s"),
    setting("default_table_access_method", Kind::Only(&["heap"]), "heap"),
    setting("default_tablespace", Kind::Only(&["", "pg_default"]), ""),
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
    setting("enable_seqscan", Kind::Only(ON), "on"),
    setting("extra_float_digits", Kind::Integer(1, 3), "1"),
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
    setting("lc_messages", Kind::Only(LOCALES), "C"),
    setting("lc_monetary", Kind::Only(LOCALES), "C"),
    setting("lc_numeric", Kind::Only(LOCALES), "C"),
    setting("lc_time", Kind::Only(LOCALES), "C"),
    setting("lock_timeout", Kind::Milliseconds, "0"),
    setting(
        "log_min_duration_statement",
        Kind::Integer(-1, i32::MAX as i64),
        "-1",
    ),
    setting(
        "maintenance_work_mem",
        Kind::Kilobytes(1_024, KILOBYTES_MAX),
        "64MB",
    ),
    setting("max_connections", Kind::ReadOnly, "500"),
    setting("max_parallel_workers_per_gather", Kind::Integer(0, 1024), "0"),
    setting(
        "plan_cache_mode",
        Kind::Word(&["auto", "force_generic_plan"]),
        "auto",
    ),
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
        Kind::ReadOnly,
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
    // pg_dump turns it off, and that is what it is.
    setting(
        "synchronize_seqscans",
        Kind::Only(&["off", "false", "no", "0"]),
        "off",
    ),
    setting("synchronous_commit", Kind::Word(SYNC), "on"),
    setting("tcp_keepalives_idle", Kind::Only(&["0"]), "0"),
    reported("timezone", "TimeZone", Kind::Text, "UTC"),
    setting("track_activities", Kind::Only(ON), "on"),
    setting("transaction_isolation", Kind::Word(ISOLATION), "read committed"),
    setting("transaction_read_only", Kind::Boolean, "off"),
    setting("vacuum_cost_delay", Kind::Only(&["0", "0ms"]), "0"),
    setting("work_mem", Kind::Kilobytes(64, KILOBYTES_MAX), "4MB"),
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
    /// How long a client may be silent outside of a transaction.
    pub(crate) idle_session_timeout: Option<Duration>,
    /// How long a client may be silent in a transaction.
    pub(crate) idle_in_transaction_timeout: Option<Duration>,
    /// Whether names without a schema are looked for among users' tables.
    pub(crate) public_on_path: bool,
    /// The place of the least notice that the client wants, among [`LEVELS`].
    pub(crate) least_notice: usize,
    /// The bytes that a stage of a statement keeps in memory.
    pub(crate) work_mem: usize,
    /// The same for making an index.
    pub(crate) maintenance_work_mem: usize,
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
            idle_session_timeout: None,
            idle_in_transaction_timeout: None,
            public_on_path: true,
            least_notice: level("notice"),
            work_mem: 4 << 20,
            maintenance_work_mem: 64 << 20,
            default_isolation: IsolationLevel::ReadCommitted,
            default_read_only: false,
        }
    }

    /// Makes `value` what RESET goes back to. Read-only settings are set this way too.
    ///
    /// Drivers send the time zone of their host when they connect (those for Java always do). Refusing it would refuse
    /// them everywhere but in UTC, so the session is in UTC, and the client is told so, as of every reported setting.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_lowercase();
        let value = match definition(&name) {
            Some(definition) if definition.name == "timezone" => definition.default.to_owned(),
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

    /// What SHOW would give after SET to this value; the error that SET would give.
    pub(crate) fn would_show(&self, name: &str, value: Option<&str>) -> Result<String> {
        let mut changed = self.clone();
        changed.set(name, value, false, false)?;
        changed.show(name)
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
            None | Some(..=0) => None,
            Some(milliseconds) => Some(Duration::from_millis(milliseconds as u64)),
        };
        let bytes = |text: &str| parse_kilobytes(text).map_or(0, |size| size as usize) << 10;
        match name {
            "synchronous_commit" => {
                self.synchronous_commit = !matches!(value, "off" | "false" | "no" | "0");
            }
            "statement_timeout" => self.statement_timeout = timeout(value),
            "lock_timeout" => self.lock_timeout = timeout(value),
            "idle_session_timeout" => self.idle_session_timeout = timeout(value),
            "idle_in_transaction_session_timeout" => self.idle_in_transaction_timeout = timeout(value),
            "search_path" => self.public_on_path = path_has_public(value),
            "client_min_messages" => self.least_notice = level(value),
            "work_mem" => self.work_mem = bytes(value),
            "maintenance_work_mem" => self.maintenance_work_mem = bytes(value),
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
            // asyncpg sends the name in quotes.
            "client_encoding" => match value
                .trim_matches(['\'', '"'])
                .to_ascii_lowercase()
                .replace(['-', '_'], "")
                .as_str()
            {
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
                    _ if is_zero_offset(zone) => Ok("UTC".to_owned()),
                    _ => Err(
                        EngineError::not_supported(format!("time zone \"{zone}\"")).with_hint(
                            "Only UTC is supported: values are shown in it, and converted by the client.",
                        ),
                    ),
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
            Some(number @ 0..=MILLISECONDS_MAX) => Ok(show_milliseconds(number as u64)),
            Some(number @ ..0) => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{number} ms is outside the valid range for parameter \"{}\" (0 .. {MILLISECONDS_MAX})",
                    definition.shown
                ),
            )),
            Some(_) => Err(wrong().with_hint("Value exceeds integer range.")),
            None => Err(wrong().with_hint(
                "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
            )),
        },
        Kind::Kilobytes(least, most) => match parse_kilobytes(value) {
            Some(size) if (least..=most).contains(&size) => Ok(show_kilobytes(size)),
            Some(size) => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{size} kB is outside the valid range for parameter \"{}\" ({least} kB .. {most} kB)",
                    definition.shown
                ),
            )),
            None => Err(wrong()
                .with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")),
        },
        Kind::Word(words) => {
            let lower = value.to_ascii_lowercase();
            if !words.contains(&lower.as_str()) {
                return Err(wrong().with_hint(format!("Available values: {}.", words.join(", "))));
            }
            if lower == "serializable" {
                return Err(EngineError::not_supported("isolation level SERIALIZABLE")
                    .with_hint("REPEATABLE READ is snapshot isolation."));
            }
            Ok(lower)
        }
        Kind::Only(spellings) if spellings.contains(&value.to_ascii_lowercase().as_str()) => {
            Ok(definition.default.to_owned())
        }
        Kind::Only(_) => Err(EngineError::not_supported(format!(
            "the value \"{value}\" of parameter \"{}\"",
            definition.shown
        ))
        .with_hint(format!("Only \"{}\" is supported.", definition.default))),
        Kind::ReadOnly => Err(wrong()),
    }
}

/// The longest time that a setting takes.
const MILLISECONDS_MAX: i64 = i32::MAX as i64;

/// A time in milliseconds, rounded to the nearest.
fn parse_milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    // The conversion saturates, far beyond the range.
    Some((number * factor).round_ties_even() as i64)
}

/// Whether an offset such as `+00:00` or `-0:00:00` is none.
fn is_zero_offset(zone: &str) -> bool {
    zone.contains(':') && zone.chars().all(|c| matches!(c, '+' | '-' | ':' | '0'))
}

/// The place of a severity among those that `client_min_messages` takes; `debug5` is 0.
pub(crate) fn level(name: &str) -> usize {
    LEVELS.iter().position(|level| *level == name).unwrap_or(0)
}

/// A size in kilobytes, rounded to the nearest; too large for any range when it cannot be counted.
fn parse_kilobytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = match text[..digits].parse() {
        Ok(number) => number,
        Err(_) if digits > 0 => u64::MAX,
        Err(_) => return None,
    };
    let factor = match text[digits..].trim() {
        "B" => return Some(number.saturating_add(512) >> 10),
        "" | "kB" => 1,
        "MB" => 1 << 10,
        "GB" => 1 << 20,
        "TB" => 1 << 30,
        _ => return None,
    };
    Some(number.saturating_mul(factor))
}

fn show_kilobytes(size: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB")];
    match UNITS.iter().find(|(factor, _)| size.is_multiple_of(*factor)) {
        Some((factor, unit)) if size > 0 => format!("{}{unit}", size / factor),
        _ => format!("{size}kB"),
    }
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

    /// A setting's row on the page, as far as the code knows it.
    fn documented(definition: &Definition) -> String {
        let values = match definition.kind {
            Kind::Text => "text".to_owned(),
            Kind::Boolean => "on, off".to_owned(),
            Kind::Integer(least, most) if least == most => format!("{least} only"),
            Kind::Integer(least, most) => format!("{least} to {most}"),
            Kind::Milliseconds => "time; a bare number is ms".to_owned(),
            Kind::Kilobytes(least, most) => format!("size, {least}kB to {most}kB; a bare number is kB"),
            Kind::Word(words) => words.join(", "),
            Kind::Only(_) => "the default only".to_owned(),
            Kind::ReadOnly => "read only".to_owned(),
        };
        format!("| `{}` | `{}` | {values} |", definition.shown, definition.default)
    }

    /// docs/settings.md lists every setting with its default and its values, and no others.
    #[test]
    fn the_page_of_settings_agrees_with_the_code() {
        let page = include_str!("../../../../docs/settings.md");
        let section = page.split("## SQL settings").nth(1).expect("the section");
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        for definition in DEFINITIONS {
            let row = documented(definition);
            let found = rows.iter().filter(|line| line.starts_with(&row)).count();
            assert_eq!(found, 1, "docs/settings.md lacks the row: {row} … |");
        }
        assert_eq!(
            rows.len(),
            DEFINITIONS.len(),
            "a row on docs/settings.md is about no setting"
        );
        let told = rows
            .iter()
            .all(|row| row.split(" | ").nth(3).is_some_and(|effect| effect.len() > 5));
        assert!(told, "each row says what the setting does");
    }

    /// What is accepted works; the rest is refused with PostgreSQL's codes and texts.
    #[test]
    fn values_out_of_range_or_without_effect_are_refused() {
        let mut settings = Settings::new();
        for (name, value, sqlstate, text) in [
            (
                "statement_timeout",
                "-1",
                "22023",
                "-1 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)",
            ),
            (
                "lock_timeout",
                "5parsecs",
                "22023",
                "invalid value for parameter \"lock_timeout\": \"5parsecs\"",
            ),
            (
                "idle_session_timeout",
                "100d",
                "22023",
                "invalid value for parameter \"idle_session_timeout\": \"100d\"",
            ),
            (
                "extra_float_digits",
                "9",
                "22023",
                "9 is outside the valid range for parameter \"extra_float_digits\" (1 .. 3)",
            ),
            (
                "client_min_messages",
                "loud",
                "22023",
                "invalid value for parameter \"client_min_messages\": \"loud\"",
            ),
            (
                "jit",
                "perhaps",
                "22023",
                "parameter \"jit\" requires a Boolean value",
            ),
            (
                "enable_seqscan",
                "off",
                "0A000",
                "the value \"off\" of parameter \"enable_seqscan\" is not supported",
            ),
            (
                "default_tablespace",
                "fast",
                "0A000",
                "the value \"fast\" of parameter \"default_tablespace\" is not supported",
            ),
            (
                "client_encoding",
                "latin1",
                "0A000",
                "client encoding \"latin1\" is not supported",
            ),
            (
                "server_version",
                "17",
                "55P02",
                "parameter \"server_version\" cannot be changed",
            ),
        ] {
            let error = settings.set(name, Some(value), false, false).unwrap_err();
            assert_eq!(error.sqlstate().as_str(), sqlstate, "{name} = {value}");
            assert_eq!(error.message(), text);
        }
        for (name, value, shown) in [
            ("statement_timeout", "1.5s", "1500ms"),
            ("statement_timeout", "1500us", "2ms"),
            ("client_encoding", "'utf-8'", "UTF8"),
            ("timezone", "+00:00", "UTC"),
            ("lc_messages", "en_US.UTF-8", "C"),
            ("search_path", "nowhere, public", "nowhere, public"),
        ] {
            settings.set(name, Some(value), false, false).unwrap();
            assert_eq!(settings.show(name).unwrap(), shown);
        }
        assert!(settings.public_on_path);
        settings.set("search_path", Some(""), false, false).unwrap();
        assert!(!settings.public_on_path);
    }

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
    fn sizes_have_units_and_a_range() {
        let mut settings = Settings::new();
        let mut set = |text: &str| {
            settings
                .set("work_mem", Some(text), false, false)
                .map(|_| (settings.show("work_mem").unwrap(), settings.work_mem))
                .map_err(|error| (error.sqlstate(), error.message().to_owned()))
        };
        assert_eq!(set("64"), Ok(("64kB".to_owned(), 64 << 10)));
        assert_eq!(set("1MB"), Ok(("1MB".to_owned(), 1 << 20)));
        assert_eq!(set(" 1500 kB "), Ok(("1500kB".to_owned(), 1500 << 10)));
        assert_eq!(set("2GB"), Ok(("2GB".to_owned(), 2 << 30)));
        assert_eq!(set("65536B"), Ok(("64kB".to_owned(), 64 << 10)));
        for wrong in ["63", "0", "3TB", "99999999999999999999999"] {
            let (sqlstate, message) = set(wrong).unwrap_err();
            assert_eq!(sqlstate, SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
            assert!(message.contains("outside the valid range"), "{message}");
        }
        for wrong in ["4XB", "4mb", "MB", "-1", "much", ""] {
            let (sqlstate, message) = set(wrong).unwrap_err();
            assert_eq!(sqlstate, SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
            assert!(message.contains("invalid value"), "{message}");
        }
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
