//! The settings of SET, SHOW and RESET.
//!
//! Clients set a dozen PostgreSQL parameters as a matter of course. Those that mean something here are parsed
//! into fields; those that merely must be accepted keep their text. A name that is neither is 42704, as in
//! PostgreSQL, except that a client may set any name with a dot (`myapp.user`).
//!
//! `definitions` lists them, `values` checks and spells their texts, `planner` reads those that choose among plans, `auto_explain`
//! those that tell the log of plans; here is one session's state of them.
//!
//! SET inside a transaction is undone when it rolls back, SET LOCAL when it ends; [`Settings::end_transaction`] does
//! both from one list of what was replaced.

mod auto_explain;
mod definitions;
mod described;
mod planner;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;
use std::time::Duration;

use crate::logging::LogStatement;
use crate::synchronous_commit::SynchronousCommit;
use auto_explain::AutoExplain;
use clearway_sql::SearchPath;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::escapes::StringRules;
use clearway_sql::plan::IsolationLevel;
use clearway_sql::settings::PlannerSettings;
use clearway_sql::value::datetime::in_force::DateTimeSettings;
use clearway_sql::value::text::SHORTEST;
use definitions::{DEFINITIONS, Definition, KEYS_OF_CONFIGURATION, Kind, definition};
use values::{checked, date_style, parse_kilobytes};

pub(crate) use definitions::level;
pub(crate) use described::{in_unit, sentence_of};
pub(crate) use planner::PlanningSettings;
pub(crate) use values::parse_milliseconds;

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
    /// Values that differ from the defaults, by name.
    changed: Vec<(String, String)>,
    /// Defaults from start-up and from the configuration file, by name.
    defaults: Vec<(String, String)>,
    /// The sources of `defaults`, in the same order.
    sources: Vec<DefaultSource>,
    replaced: Vec<Replaced>,
    /// The parts that a commit waits for.
    pub(crate) synchronous_commit: SynchronousCommit,
    /// The time limit of a statement.
    pub(crate) statement_timeout: Option<Duration>,
    /// The time limit of a wait for a lock.
    pub(crate) lock_timeout: Option<Duration>,
    /// Duration of a wait for a lock after which a deadlock is looked for.
    pub(crate) deadlock_timeout: Duration,
    /// Waits for locks that take longer are told to the log.
    pub(crate) log_lock_waits: bool,
    /// The statements that are told to the log,
    pub(crate) log_statement: LogStatement,
    /// the time from which on one is,
    pub(crate) log_min_duration: Option<Duration>,
    /// and the bytes of a temporary file from which on it is.
    pub(crate) log_temp_files: Option<u64>,
    /// True if the statements are counted in `pg_stat_statements`.
    pub(crate) counts_statements: bool,
    /// The statements whose plans are told to the log.
    pub(crate) auto_explain: AutoExplain,
    /// The time that a client may be silent outside of a transaction.
    pub(crate) idle_session_timeout: Option<Duration>,
    /// The time that a client may be silent in a transaction.
    pub(crate) idle_in_transaction_timeout: Option<Duration>,
    /// The schemas that names without one are looked for in.
    pub(crate) search_path: Arc<SearchPath>,
    /// `extra_float_digits`
    pub(crate) float_digits: i32,
    /// The place of the least notice that the client wants, among those of `client_min_messages`.
    pub(crate) least_notice: usize,
    /// The bytes that a stage of a statement keeps in memory.
    pub(crate) work_mem: usize,
    /// The same for making an index.
    pub(crate) maintenance_work_mem: usize,
    /// The settings that choose among plans.
    pub(crate) planner: PlannerSettings,
    /// `DateStyle` and `TimeZone`; `None` for the defaults.
    date_times: Option<Arc<DateTimeSettings>>,
    /// Those that a plan depends on, together: another one when one of them has changed.
    pub(crate) planning: Arc<PlanningSettings>,
    /// The isolation of transactions that do not say.
    pub(crate) default_isolation: IsolationLevel,
    /// True if transactions that do not say wait for a safe snapshot.
    pub(crate) default_deferrable: bool,
    /// True if transactions that do not say are read only.
    pub(crate) default_read_only: bool,
    /// Counts the changes of the session's roles.
    pub(crate) identities: u64,
    /// The rules by which strings in texts are read.
    pub(crate) strings: StringRules,
    /// True if the client is warned of escapes in plain strings.
    pub(crate) escape_string_warning: bool,
}

/// The source of a value that RESET goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultSource {
    /// Nothing has chosen it.
    None,
    /// A file of the configuration.
    File,
    /// ALTER ROLE … SET
    Role,
    /// The client, when it connected.
    Client,
}

impl DefaultSource {
    /// PostgreSQL's words for it.
    const fn name(self) -> &'static str {
        match self {
            DefaultSource::None => "default",
            DefaultSource::File => "configuration file",
            DefaultSource::Role => "user",
            DefaultSource::Client => "client",
        }
    }
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

impl Settings {
    /// The defaults.
    pub(crate) fn new() -> Settings {
        debug_assert!(DEFINITIONS.is_sorted_by_key(|definition| definition.name));
        Settings {
            changed: Vec::new(),
            defaults: Vec::new(),
            sources: Vec::new(),
            replaced: Vec::new(),
            synchronous_commit: SynchronousCommit::On,
            statement_timeout: None,
            lock_timeout: None,
            deadlock_timeout: Duration::from_secs(1),
            log_lock_waits: false,
            log_statement: LogStatement::None,
            log_min_duration: None,
            log_temp_files: None,
            counts_statements: false,
            auto_explain: AutoExplain::default(),
            idle_session_timeout: None,
            idle_in_transaction_timeout: None,
            search_path: Arc::new(SearchPath::parse("\"$user\", public")),
            float_digits: SHORTEST,
            least_notice: level("notice"),
            work_mem: 4 << 20,
            maintenance_work_mem: 64 << 20,
            planner: PlannerSettings::default(),
            date_times: None,
            planning: Arc::default(),
            default_isolation: IsolationLevel::ReadCommitted,
            default_deferrable: false,
            default_read_only: false,
            identities: 0,
            strings: StringRules::default(),
            escape_string_warning: true,
        }
    }

    /// 42501 for a setting that only superusers change.
    pub(crate) fn check_may_set(name: &str, is_superuser: bool) -> Result<()> {
        let name = name.to_ascii_lowercase();
        match is_superuser || !definitions::OF_SUPERUSERS.contains(&name.as_str()) {
            true => Ok(()),
            false => Err(EngineError::new(
                SqlState::from_code("42501"),
                format!("permission denied to set parameter \"{name}\""),
            )),
        }
    }

    /// True for the name of a setting.
    pub(crate) fn is_known(name: &str) -> bool {
        definition(name).is_some()
    }

    /// True for a setting that a session can change, and whose default the configuration may say as `settings.NAME`: it is no
    /// key of its own, and no role.
    pub(crate) fn is_for_sessions(name: &str) -> bool {
        let is_of_client = matches!(
            name,
            "application_name" | "client_encoding" | "role" | "session_authorization"
        );
        let is_of_transaction = name.starts_with("transaction_");
        definition(name).is_some_and(|definition| definition.kind != Kind::ReadOnly)
            && !(is_of_client || is_of_transaction || KEYS_OF_CONFIGURATION.contains(&name))
    }

    /// The settings that plans depend on and that have another value than their default, each with its value.
    pub(crate) fn changed_planning(value: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let shown = planner::NAMES.iter().filter_map(|name| {
            let value = value(name)?;
            let default = definition(name).map_or("", |definition| definition.default);
            (value != default).then(|| ((*name).to_owned(), value))
        });
        shown.collect()
    }

    /// The settings that sessions can change and that have a key of their own.
    #[cfg(test)]
    pub(crate) fn keys_of_configuration() -> &'static [&'static str] {
        &KEYS_OF_CONFIGURATION
    }

    /// As [`set_default_from`](Self::set_default_from), for a value that nothing has chosen.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) -> Result<()> {
        self.set_default_from(DefaultSource::None, name, value)
    }

    /// Makes `value` what RESET goes back to. Read-only settings are set this way too.
    pub(crate) fn set_default_from(&mut self, source: DefaultSource, name: &str, value: &str) -> Result<()> {
        let name = name.to_ascii_lowercase();
        let value = match definition(&name) {
            Some(definition) if definition.kind == Kind::ReadOnly => value.to_owned(),
            Some(definition) => self.completed(definition, value)?,
            None if name.contains('.') => value.to_owned(),
            None => return Err(unrecognized(&name)),
        };
        match self.defaults.iter().position(|(known, _)| *known == name) {
            Some(place) => {
                self.defaults[place].1 = value;
                self.sources[place] = source;
            }
            None => {
                self.defaults.push((name.clone(), value));
                self.sources.push(source);
            }
        }
        self.apply(&name);
        Ok(())
    }

    /// Takes what RESET goes back to from other settings; the names of those that clients are to be told of.
    pub(crate) fn replace_defaults(&mut self, other: &Settings) -> Vec<&'static str> {
        let told = self.reported();
        let before = std::mem::replace(&mut self.defaults, other.defaults.clone());
        self.sources.clone_from(&other.sources);
        // One that is not among the others goes back to its definition.
        let gone = before
            .iter()
            .filter(|(name, _)| lookup(&other.defaults, name).is_none());
        for (name, _) in other.defaults.iter().chain(gone) {
            self.apply(name);
        }
        let reported = DEFINITIONS.iter().filter(|definition| definition.reported);
        reported
            .zip(told)
            .filter(|(definition, (_, before))| self.value(definition.name).unwrap_or_default() != before)
            .map(|(definition, _)| definition.name)
            .collect()
    }

    /// The source of a setting's value, in PostgreSQL's words.
    pub(crate) fn source(&self, name: &str) -> &'static str {
        if lookup(&self.changed, name).is_some() {
            return "session";
        }
        let place = self.defaults.iter().position(|(known, _)| known == name);
        place
            .map_or(DefaultSource::None, |place| self.sources[place])
            .name()
    }

    /// SET; `None` is SET … TO DEFAULT. Returns true if the new value is to be reported to the client.
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
            (None, _) if !name.contains('.') || name.starts_with("auto_explain.") => {
                return Err(unrecognized(&name));
            }
            (Some(definition), _) if definition.kind == Kind::ReadOnly => {
                return Err(EngineError::new(
                    SqlState::from_code("55P02"),
                    format!("parameter \"{name}\" cannot be changed"),
                ));
            }
            (_, None) => None,
            (Some(definition), Some(value)) => Some(self.completed(definition, value)?),
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

    /// Checks a value; one that says a part only is completed by the value before.
    fn completed(&self, definition: &Definition, value: &str) -> Result<String> {
        let name = definition.name;
        if name != "datestyle" {
            return checked(definition, value);
        }
        let reset = lookup(&self.defaults, name).unwrap_or(definition.default);
        date_style(value, self.value(name).unwrap_or(reset), reset)
    }

    /// RESET ALL.
    pub(crate) fn reset_all(&mut self, in_transaction: bool) {
        let (kept, reset) = std::mem::take(&mut self.changed)
            .into_iter()
            .partition(|(name, _)| matches!(name.as_str(), "role" | "session_authorization"));
        self.changed = kept;
        for (name, value) in reset {
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

    /// The number of values that the running transaction has replaced.
    pub(crate) fn replaced_count(&self) -> usize {
        self.replaced.len()
    }

    /// Puts back the values that the transaction has replaced, but for the first `count`: it goes back to a savepoint. The
    /// names of reported settings that changed.
    pub(crate) fn go_back_to(&mut self, count: usize) -> Vec<&'static str> {
        let behind = self.replaced.split_off(count.min(self.replaced.len()));
        let mut told = Vec::new();
        for replaced in behind.into_iter().rev() {
            self.put_back(replaced, &mut told);
        }
        told
    }

    fn put_back(&mut self, replaced: Replaced, told: &mut Vec<&'static str>) {
        self.put(&replaced.name, replaced.value);
        if let Some(definition) = definition(&replaced.name).filter(|d| d.reported)
            && !told.contains(&definition.name)
        {
            told.push(definition.name);
        }
    }

    /// Undoes what the end of the transaction undoes; the names of reported settings that changed.
    #[inline]
    pub(crate) fn end_transaction(&mut self, committed: bool) -> Vec<&'static str> {
        if self.replaced.is_empty() {
            return Vec::new();
        }
        self.settle_replaced(committed)
    }

    fn settle_replaced(&mut self, committed: bool) -> Vec<&'static str> {
        let mut told = Vec::new();
        // What a SET without LOCAL has set last stays, whatever LOCAL had set before it.
        let mut settled: Vec<String> = Vec::new();
        for replaced in std::mem::take(&mut self.replaced).into_iter().rev() {
            if committed && (!replaced.local || settled.contains(&replaced.name)) {
                settled.push(replaced.name);
            } else {
                self.put_back(replaced, &mut told);
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

    /// The value that SHOW would give after SET to this value; the error that SET would give.
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

    /// The value of a setting that SET has given it.
    pub(crate) fn changed_value(&self, name: &str) -> Option<&str> {
        lookup(&self.changed, name)
    }

    /// All settings with their values, as SHOW ALL gives them.
    pub(crate) fn all(&self) -> Vec<(&'static str, String)> {
        DEFINITIONS
            .iter()
            .map(|d| (d.shown, self.value(d.name).unwrap_or_default().to_owned()))
            .collect()
    }

    /// The settings that are reported to a client, under the names it expects.
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
                self.synchronous_commit = SynchronousCommit::parse(value).unwrap_or_default();
            }
            "statement_timeout" => self.statement_timeout = timeout(value),
            "role" | "session_authorization" => self.identities += 1,
            "lock_timeout" => self.lock_timeout = timeout(value),
            "deadlock_timeout" => {
                if let Some(timeout) = timeout(value) {
                    self.deadlock_timeout = timeout;
                }
            }
            "log_lock_waits" => self.log_lock_waits = value == "on",
            "log_statement" => self.log_statement = LogStatement::of_word(value).unwrap_or_default(),
            "log_min_duration_statement" => {
                let least = parse_milliseconds(value).and_then(|ms| u64::try_from(ms).ok());
                self.log_min_duration = least.map(Duration::from_millis);
            }
            "log_temp_files" => self.log_temp_files = parse_kilobytes(value).map(|size| size << 10),
            "pg_stat_statements.track" => self.counts_statements = value != "none",
            "idle_session_timeout" => self.idle_session_timeout = timeout(value),
            "idle_in_transaction_session_timeout" => self.idle_in_transaction_timeout = timeout(value),
            "search_path" => self.search_path = Arc::new(SearchPath::parse(value)),
            "extra_float_digits" => self.float_digits = value.parse().unwrap_or(SHORTEST),
            "datestyle" | "timezone" => {
                let value = |name| self.value(name).unwrap_or_default();
                let settings = DateTimeSettings::of_shown(value("datestyle"), value("timezone"));
                self.date_times = settings.unwrap_or_default();
            }
            "client_min_messages" => self.least_notice = level(value),
            "work_mem" => {
                let size = bytes(value);
                self.work_mem = size;
                self.planner.work_bytes = size as f64;
            }
            "maintenance_work_mem" => self.maintenance_work_mem = bytes(value),
            "default_transaction_isolation" => {
                self.default_isolation =
                    IsolationLevel::named(value).unwrap_or(IsolationLevel::ReadCommitted);
            }
            "default_transaction_deferrable" => self.default_deferrable = value == "on",
            "standard_conforming_strings" => self.strings.plain_escapes = value == "off",
            "backslash_quote" => self.strings.backslash_quote = value != "off",
            "escape_string_warning" => self.escape_string_warning = value == "on",
            "default_transaction_read_only" => self.default_read_only = value == "on",
            _ => {
                if let Some(name) = name.strip_prefix("auto_explain.") {
                    let mut auto_explain = self.auto_explain;
                    auto_explain.apply(name, value);
                    self.auto_explain = auto_explain;
                    return;
                }
                let mut planner = self.planner;
                planner::apply(&mut planner, name, value);
                self.planner = planner;
            }
        }
        self.renew_planning();
    }

    /// Lets names be looked for in another path; the one before.
    pub(crate) fn search(&mut self, path: Arc<SearchPath>) -> Arc<SearchPath> {
        let before = std::mem::replace(&mut self.search_path, path);
        self.renew_planning();
        before
    }

    fn renew_planning(&mut self) {
        let same_times = match (&self.planning.date_times, &self.date_times) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same_times || self.planning.planner != self.planner || self.planning.path != self.search_path {
            self.planning = Arc::new(PlanningSettings {
                path: Arc::clone(&self.search_path),
                planner: self.planner,
                date_times: self.date_times.clone(),
            });
        }
    }
}
