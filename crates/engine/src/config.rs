//! The engine's configuration: `clearway.toml`, with a default for everything.
//!
//! ```toml
//! shared_buffers = "512MB"
//! max_connections = 2000
//! synchronous_commit = "on"
//! checkpoint_timeout = "5min"
//!
//! [mechanisms]
//! preset = "clearway"
//! lwlock = "queued"
//! ```
//!
//! Sizes are written with a unit (`kB`, `MB`, `GB`, powers of 1,024) and times too (`us`, `ms`, `s`, `min`,
//! `h`); a bare number is refused, since readers disagree what it counts. A name that does not exist is an
//! error that shows the line and the nearest name that does. docs/settings.md lists them all.

mod addresses;
pub(crate) mod files;
pub(crate) mod session_settings;
mod units;
pub(crate) mod unknown_keys;
pub(crate) mod values;

use std::path::Path;

use clearway_machine::{Machine, Native};
use clearway_storage::sync_replication::StandbyNames;
use serde::{Deserialize, Serialize};

use crate::logging;
use crate::mechanisms::Mechanisms;
use crate::memory;
use crate::settings::Settings;
use crate::statement_statistics::StatementTracking;
use crate::synchronous_commit::SynchronousCommit;
use clearway_sql::error::{EngineError, SqlState};

pub use crate::logging::{LogDestination, LogLevel, LogStatement, PREFIX_ESCAPES};
pub use files::{AUTO_FILE, Origin, Origins};
pub use session_settings::{SessionSettings, SettingText, setting_of_key};
pub use units::{ByteSize, DelayLimit, SizeLimit, Span};
pub use values::{CHANGEABLE, is_changeable};

/// The kernel's scheduling of a session that wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionScheduling {
    /// As `batch`, and as `normal` while other programs keep the CPUs from sessions, and for the few that sleep in the middle of
    /// their work.
    #[default]
    Adaptive,
    /// As any thread: it may preempt the one that runs.
    Normal,
    /// It waits until the one that runs sleeps, or for some milliseconds: fewer switches where clients share the
    /// machine.
    Batch,
}

/// Encrypted connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ssl {
    /// As `on` where the certificate and its key are there, otherwise as `off`.
    #[default]
    Auto,
    /// A client that asks for TLS gets it; without a certificate the server does not start.
    On,
    /// No client gets it.
    Off,
}

/// The oldest version of TLS that a client may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SslVersion {
    /// 1.2 or 1.3
    #[default]
    #[serde(rename = "TLSv1.2")]
    Tls12,
    /// 1.3
    #[serde(rename = "TLSv1.3")]
    Tls13,
}

/// All settings of an engine that do not belong to one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The data directory of a server whose command line names none; empty: none.
    pub data_directory: String,
    /// The address that a server listens on if its command line says none; empty: that of its command, `none`: no address.
    pub listen: String,
    /// The directory of a server's Unix-domain socket if its command line says none; empty: no socket.
    pub socket_dir: String,
    /// Memory for pages.
    pub shared_buffers: ByteSize,
    /// Memory that the server may have, with everything; 0: nine tenths of the machine's or its control group's.
    pub server_memory: ByteSize,
    /// Sessions at a time.
    pub max_connections: u32,
    /// Sessions of `max_connections` that only superusers get; one at least is for all.
    pub superuser_reserved_connections: u32,
    /// A client that has not logged in after this long is given up.
    pub authentication_timeout: Span,
    /// Files of relations that are open at a time; 0: what the process's limit of open files leaves beside connections.
    pub max_open_files: u32,
    /// The name of the one database that a data directory holds; a client that asks for another one is refused.
    pub database: String,
    /// True if the owner's group may read a data directory that is made.
    pub allow_group_access: bool,
    /// The rules of who may connect, and how; a relative path begins at the data directory.
    pub hba_file: String,
    /// Encrypted connections.
    pub ssl: Ssl,
    /// The server's certificate, in PEM; a relative path begins at the data directory.
    pub ssl_cert_file: String,
    /// The certificate's key, in PEM; likewise.
    pub ssl_key_file: String,
    /// The authorities whose word for a client's certificate counts, in PEM; empty: none.
    pub ssl_ca_file: String,
    /// The oldest version of TLS that a client may speak.
    pub ssl_min_protocol_version: SslVersion,
    /// The scheduling of sessions when a message wakes them.
    pub session_scheduling: SessionScheduling,
    /// True if files are synced at all. Without, a crash of the operating system may lose or damage everything.
    pub fsync: bool,
    /// The parts that a commit waits for; sessions may change it for themselves.
    pub synchronous_commit: SynchronousCommit,
    /// The standbys that commits wait for.
    pub synchronous_standby_names: String,
    /// The time that a commit waits for company before it syncs the log.
    pub commit_delay: Span,
    /// Interval at which the log is written in the background for commits that do not wait.
    pub wal_writer_delay: Span,
    /// A checkpoint is made after this much log
    pub max_wal_size: ByteSize,
    /// or after this long.
    pub checkpoint_timeout: Span,
    /// This much log before its end stays on disk for followers without a slot.
    pub wal_keep_size: ByteSize,
    /// A replication slot that holds more log than this is lost; 0: none ever is.
    pub max_slot_wal_keep_size: ByteSize,
    /// A follower that has not answered for this long is given up.
    pub wal_sender_timeout: Span,
    /// The server that a standby follows; empty: the command line says it.
    pub primary_conninfo: String,
    /// The replication slot that a standby uses there; empty: none.
    pub primary_slot_name: String,
    /// A server that sends nothing for this long is given up by its standby.
    pub wal_receiver_timeout: Span,
    /// A standby says how far it is at least so often.
    pub wal_receiver_status_interval: Span,
    /// True if a standby has its primary keep the row versions that sessions here see.
    pub hot_standby_feedback: bool,
    /// True if a standby that has diverged from its primary answers reads.
    pub diverged_standby_reads: bool,
    /// Workers of a standby that change pages, under `replay = parallel`.
    pub replay_workers: u32,
    /// The time that replay waits for sessions in its way before it cancels them.
    pub max_standby_streaming_delay: DelayLimit,
    /// A standby replays a commit when it is at least this old; 0: at once.
    pub recovery_min_apply_delay: Span,
    /// Duration of a lock wait after which a deadlock is looked for.
    pub deadlock_timeout: Span,
    /// True if dead rows are cleared away, and tables that have changed are analyzed, in the background.
    pub autovacuum: bool,
    /// Interval at which the background vacuum looks for tables that need it, or ANALYZE.
    pub autovacuum_naptime: Span,
    /// A table needs it when this many rows are dead,
    pub autovacuum_vacuum_threshold: u64,
    /// plus this part of its rows.
    pub autovacuum_vacuum_scale_factor: f64,
    /// A table is analyzed when this many rows have changed since the last time,
    pub autovacuum_analyze_threshold: u64,
    /// plus this part of the rows that it had then.
    pub autovacuum_analyze_scale_factor: f64,
    /// Memory for one sort or grouping before it goes on in temporary files; sessions may change it for themselves.
    pub work_mem: ByteSize,
    /// The form of dates in a session that asks for no other: a value of the setting `DateStyle`.
    pub datestyle: String,
    /// The time zone of a session that asks for no other: a value of the setting `TimeZone`.
    pub timezone: String,
    /// Memory that all sessions together may use to parse and plan statements longer than 64 kB.
    pub planning_memory: ByteSize,
    /// Prepared statements of a session that keep their plans; others are planned when they run.
    pub plan_cache_entries: u32,
    /// The longest message that a client may send: a statement's text, its parameters, a piece of COPY data.
    pub max_message_size: ByteSize,
    /// The address at which the server's metrics are read; empty: none.
    pub metrics_listen: String,
    /// The form of the server's log, on standard error.
    pub log_destination: LogDestination,
    /// The beginning of each line of the log, if it is text.
    pub log_line_prefix: String,
    /// The least severity of a line of the log.
    pub log_min_messages: LogLevel,
    /// True if the log tells of connections that begin,
    pub log_connections: bool,
    /// and of those that end.
    pub log_disconnections: bool,
    /// True if the log tells of checkpoints and restartpoints.
    pub log_checkpoints: bool,
    /// The statements that the log tells of; a superuser's session may change it for itself, and the three that follow.
    pub log_statement: LogStatement,
    /// The log tells of a statement that takes this long, or longer.
    pub log_min_duration_statement: DelayLimit,
    /// The log tells of a temporary file of this size, or larger.
    pub log_temp_files: SizeLimit,
    /// True if the log tells of waits for locks of more than `deadlock_timeout`.
    pub log_lock_waits: bool,
    /// The statements that are counted in the view of this name, and their number.
    pub pg_stat_statements: StatementTracking,
    /// Values of SQL settings for sessions that set no other.
    pub settings: SessionSettings,
    /// The variant of each mechanism.
    pub mechanisms: Mechanisms,
    /// The places of the values, if they come from files.
    #[serde(skip)]
    pub origins: Origins,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            data_directory: String::new(),
            listen: String::new(),
            socket_dir: String::new(),
            shared_buffers: ByteSize::mib(128),
            server_memory: ByteSize::mib(0),
            max_connections: 500,
            superuser_reserved_connections: 3,
            authentication_timeout: Span::from_secs(60),
            max_open_files: 0,
            database: "postgres".to_owned(),
            allow_group_access: false,
            hba_file: "pg_hba.conf".to_owned(),
            ssl: Ssl::default(),
            ssl_cert_file: "server.crt".to_owned(),
            ssl_key_file: "server.key".to_owned(),
            ssl_ca_file: String::new(),
            ssl_min_protocol_version: SslVersion::default(),
            session_scheduling: SessionScheduling::default(),
            fsync: true,
            synchronous_commit: SynchronousCommit::On,
            synchronous_standby_names: String::new(),
            commit_delay: Span::from_micros(0),
            wal_writer_delay: Span::from_millis(10),
            max_wal_size: ByteSize::mib(1024),
            checkpoint_timeout: Span::from_secs(300),
            wal_keep_size: ByteSize::mib(0),
            max_slot_wal_keep_size: ByteSize::mib(0),
            wal_sender_timeout: Span::from_secs(60),
            primary_conninfo: String::new(),
            primary_slot_name: String::new(),
            wal_receiver_timeout: Span::from_secs(60),
            wal_receiver_status_interval: Span::from_secs(10),
            hot_standby_feedback: false,
            diverged_standby_reads: false,
            replay_workers: 2,
            max_standby_streaming_delay: DelayLimit::After(Span::from_secs(30)),
            recovery_min_apply_delay: Span::from_secs(0),
            deadlock_timeout: Span::from_secs(1),
            autovacuum: true,
            autovacuum_naptime: Span::from_secs(10),
            autovacuum_vacuum_threshold: 50,
            autovacuum_vacuum_scale_factor: 0.2,
            autovacuum_analyze_threshold: 50,
            autovacuum_analyze_scale_factor: 0.1,
            work_mem: ByteSize::mib(4),
            datestyle: "ISO, MDY".to_owned(),
            timezone: "UTC".to_owned(),
            planning_memory: ByteSize::mib(4096),
            plan_cache_entries: 256,
            max_message_size: ByteSize::mib(16),
            metrics_listen: String::new(),
            log_destination: LogDestination::default(),
            log_line_prefix: "%m [%p] %q%u@%d ".to_owned(),
            log_min_messages: LogLevel::Warning,
            log_connections: false,
            log_disconnections: false,
            log_checkpoints: true,
            log_statement: LogStatement::None,
            log_min_duration_statement: DelayLimit::Never,
            log_temp_files: SizeLimit::Never,
            log_lock_waits: false,
            pg_stat_statements: StatementTracking::default(),
            settings: SessionSettings::default(),
            mechanisms: Mechanisms::default(),
            origins: Origins::default(),
        }
    }
}

impl Config {
    /// Reads a configuration from TOML.
    pub fn from_toml(text: &str) -> Result<Config, EngineError> {
        let config: Config = toml::from_str(text).map_err(|error| unknown_keys::readable(&error))?;
        config.check()?;
        Ok(config)
    }

    /// Reads a configuration file.
    pub fn from_file(path: &Path) -> Result<Config, EngineError> {
        Config::from_files(Some(path), None)
    }

    /// All keys with their values as texts, in one order; a switch is `mechanisms.NAME`.
    pub fn values(&self) -> Vec<(String, String)> {
        values::values_of(self)
    }

    /// The key that is most like `name`, if any is.
    pub fn nearest_key(name: &str) -> Option<String> {
        unknown_keys::nearest_key(name)
    }

    /// The standbys that commits wait for, if any are named.
    pub fn standby_names(&self) -> Result<Option<StandbyNames>, EngineError> {
        StandbyNames::parse(&self.synchronous_standby_names).map_err(|error| {
            let message = format!("synchronous_standby_names: {error}");
            EngineError::new(SqlState::CONFIG_FILE_ERROR, message)
        })
    }

    /// Refuses values that cannot work.
    pub fn check(&self) -> Result<(), EngineError> {
        self.standby_names()?;
        self.check_memory()?;
        self.check_workers()?;
        require("database", !self.database.is_empty(), || {
            "must not be empty".to_owned()
        })?;
        self.check_addresses()?;
        self.check_log()?;
        self.check_replication()?;
        self.check_statements()?;
        self.check_session_settings()?;
        let prefix = logging::check_prefix(&self.log_line_prefix);
        require("log_line_prefix", prefix.is_ok(), || prefix.unwrap_err())?;
        self.check_maintenance()
    }

    fn check_maintenance(&self) -> Result<(), EngineError> {
        let factors = [
            (
                "autovacuum_vacuum_scale_factor",
                self.autovacuum_vacuum_scale_factor,
            ),
            (
                "autovacuum_analyze_scale_factor",
                self.autovacuum_analyze_scale_factor,
            ),
        ];
        for (name, factor) in factors {
            require(name, (0.0..=100.0).contains(&factor), || {
                "must be 0 to 100".to_owned()
            })?;
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), EngineError> {
        let buffers = self.shared_buffers;
        if let Some(memory) = memory::machine_bytes() {
            require("shared_buffers", buffers.bytes() <= memory, || {
                format!("is {buffers}, but the machine has {}MB of memory", memory >> 20)
            })?;
        }
        let work_mem = self.work_mem;
        let fits = (64 << 10..=(i32::MAX as u64) << 10).contains(&work_mem.bytes());
        require("work_mem", fits, || {
            format!("is {work_mem}, but must be 64kB to 2147483647kB")
        })?;
        let planning = self.planning_memory;
        let fits = (1 << 20..=1 << 40).contains(&planning.bytes());
        require("planning_memory", fits, || {
            format!("is {planning}, but must be 1MB to 1TB")
        })?;
        require("shared_buffers", buffers.bytes() >= 1 << 20, || {
            format!("is {buffers}, but must be at least 1MB")
        })
    }

    /// Checks how many threads there may be, and files.
    fn check_workers(&self) -> Result<(), EngineError> {
        let replay = self.replay_workers;
        require("replay_workers", (1..=64).contains(&replay), || {
            format!("is {replay}, but must be 1 to 64")
        })?;
        let (connections, most) = (self.max_connections, connections_max());
        require("max_connections", (1..=most).contains(&connections), || {
            format!(
                "is {connections}, but must be 1 to {most}: each session's thread needs one of the {} worker slots that the process begins with",
                Native::workers().capacity_at_first()
            )
        })?;
        let (second, most) = (Span::from_secs(1), Span::from_secs(600));
        require_at_least("authentication_timeout", self.authentication_timeout, second)?;
        require(
            "authentication_timeout",
            self.authentication_timeout <= most,
            || format!("is {}, but must be at most {most}", self.authentication_timeout),
        )?;
        let files = self.max_open_files;
        require("max_open_files", !(1..4).contains(&files), || {
            format!("is {files}, but must be 0, or 4 or more")
        })
    }

    fn check_log(&self) -> Result<(), EngineError> {
        let size = self.max_wal_size;
        require("max_wal_size", size.bytes() >= 32 << 20, || {
            format!("is {size}, but must be at least 32MB")
        })?;
        require_at_least("checkpoint_timeout", self.checkpoint_timeout, Span::from_secs(1))
    }

    fn check_replication(&self) -> Result<(), EngineError> {
        let tenth = Span::from_millis(100);
        require_at_least("wal_sender_timeout", self.wal_sender_timeout, tenth)?;
        require_at_least("wal_receiver_timeout", self.wal_receiver_timeout, tenth)?;
        let interval = self.wal_receiver_status_interval;
        require_at_least("wal_receiver_status_interval", interval, Span::from_millis(10))
    }

    /// Checks what a session may send and keep.
    fn check_statements(&self) -> Result<(), EngineError> {
        let size = self.max_message_size;
        let fits = (64 << 10..=1 << 30).contains(&size.bytes());
        require("max_message_size", fits, || {
            format!("is {size}, but must be 64kB to 1GB")
        })?;
        let most = self.pg_stat_statements.max;
        let fits = (100..=100_000).contains(&most);
        require("pg_stat_statements.max", fits, || {
            format!("is {most}, but must be 100 to 100000")
        })?;
        let mut settings = Settings::new();
        settings.set_default("datestyle", &self.datestyle)?;
        settings.set_default("timezone", &self.timezone)?;
        require("plan_cache_entries", self.plan_cache_entries > 0, || {
            "is 0, but must be at least 1".to_owned()
        })
    }
}

/// An error for the setting `name`, which `otherwise` says what is wrong with, unless it `holds`.
fn require(name: &str, holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), EngineError> {
    if holds {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::CONFIG_FILE_ERROR,
        format!("{name} {}", otherwise()),
    ))
}

/// An error if the time of the setting `name` is shorter than `least`.
fn require_at_least(name: &str, time: Span, least: Span) -> Result<(), EngineError> {
    require(name, time.duration() >= least.duration(), || {
        format!("is {time}, but must be at least {least}")
    })
}

/// Worker slots for threads that are no session's: background work, signals, and clients that are being turned away.
const OTHER_THREADS: u32 = 96;

/// The most sessions that a process serves: those for which there are worker slots from the start.
fn connections_max() -> u32 {
    (Native::workers().capacity_at_first() as u32).saturating_sub(OTHER_THREADS)
}

/// An error about a configuration file.
fn file_error(message: String) -> EngineError {
    EngineError::new(SqlState::CONFIG_FILE_ERROR, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_default_survives_its_own_file() {
        let text = toml::to_string(&Config::default()).unwrap();
        assert_eq!(Config::from_toml(&text).unwrap(), Config::default());
        assert_eq!(Config::from_toml("").unwrap(), Config::default());
    }

    #[test]
    fn units() {
        let config = Config::from_toml(
            "shared_buffers = \"512MB\"\ncheckpoint_timeout = \"2min\"\ncommit_delay = \"20us\"",
        )
        .unwrap();
        assert_eq!(config.shared_buffers, ByteSize::mib(512));
        assert_eq!(config.checkpoint_timeout, Span::from_secs(120));
        assert_eq!(config.commit_delay, Span::from_micros(20));
        assert_eq!(config.shared_buffers.to_string(), "512MB");
        assert_eq!(config.checkpoint_timeout.to_string(), "2min");
        assert!("12parsecs".parse::<Span>().unwrap_err().contains("min"));
    }

    #[test]
    fn a_delay_may_be_without_limit() {
        for (text, expected) in [
            ("never", None),
            ("-1", None),
            ("0", Some(Duration::ZERO)),
            ("5min", Some(Duration::from_secs(300))),
        ] {
            let config = Config::from_toml(&format!("max_standby_streaming_delay = \"{text}\"")).unwrap();
            assert_eq!(config.max_standby_streaming_delay.duration(), expected, "{text}");
            let again = toml::to_string(&config).unwrap();
            assert_eq!(Config::from_toml(&again).unwrap(), config);
        }
        let error = Config::from_toml("max_standby_streaming_delay = \"soon\"").unwrap_err();
        assert!(error.message().contains("never"), "{error}");
    }

    #[test]
    fn what_the_log_tells_of_is_said_in_postgresqls_words() {
        let text = "log_destination = \"jsonlog\"\nlog_min_messages = \"debug1\"\nlog_statement = \"mod\"\n\
                    log_min_duration_statement = \"250ms\"\nlog_temp_files = 0";
        let config = Config::from_toml(text).unwrap();
        assert_eq!(config.log_destination, LogDestination::Jsonlog);
        assert_eq!(config.log_min_messages, LogLevel::Debug1);
        assert_eq!(config.log_statement, LogStatement::Mod);
        assert_eq!(
            config.log_min_duration_statement,
            DelayLimit::After(Span::from_millis(250))
        );
        assert_eq!(config.log_temp_files.bytes(), Some(0));
        let again = toml::to_string(&config).unwrap();
        assert_eq!(Config::from_toml(&again).unwrap(), config);
        let never = Config::from_toml("log_temp_files = -1\nlog_min_duration_statement = -1").unwrap();
        assert_eq!(never.log_temp_files.bytes(), None);
        assert_eq!(never.log_min_duration_statement, DelayLimit::Never);
        for (text, told) in [
            ("log_destination = \"syslog\"", "jsonlog"),
            ("log_statement = \"most\"", "ddl"),
            ("log_line_prefix = \"%z\"", "%z"),
            ("log_line_prefix = \"50%\"", "%%"),
            ("shared_buffers = -1", "-1"),
        ] {
            let error = Config::from_toml(text).unwrap_err();
            assert!(error.message().contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_typo_gets_its_line_and_a_suggestion() {
        let error = Config::from_toml("max_connections = 10\nshared_bufers = \"1GB\"").unwrap_err();
        assert!(error.message().contains("line 2"), "{error}");
        let said = |error: &EngineError| error.message().lines().last().unwrap_or_default().to_owned();
        assert_eq!(
            said(&error),
            "there is no key \"shared_bufers\" (did you mean shared_buffers?)"
        );
        let error = Config::from_toml("colour = \"blue\"").unwrap_err();
        assert_eq!(said(&error), "there is no key \"colour\"");
        let error = Config::from_toml("[mechanisms]\nlwlok = \"queued\"").unwrap_err();
        assert_eq!(
            said(&error),
            "there is no mechanism \"lwlok\" (did you mean lwlock?)"
        );
        let error = Config::from_toml("[mechanisms]\nsnapshot = \"snap\"").unwrap_err();
        assert!(error.message().contains("available: scan"), "{error}");
    }

    /// docs/settings.md lists every key with its default, and no others.
    #[test]
    fn the_page_of_settings_agrees_with_the_code() {
        let page = include_str!("../../../docs/settings.md");
        let section = page.split("## clearway.toml").nth(1).expect("the section");
        let section = section
            .split("## SQL settings")
            .next()
            .expect("the section's end");
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let Ok(toml::Value::Table(keys)) = toml::Value::try_from(Config::default()) else {
            panic!("a configuration is a table");
        };
        let keys = keys.into_iter().flat_map(|(name, value)| match value {
            toml::Value::Table(group) => {
                let group = group.into_iter();
                group
                    .map(|(key, value)| (format!("{name}.{key}"), value))
                    .collect()
            }
            value => vec![(name, value)],
        });
        let mut expected = 0;
        for (name, default) in keys {
            let row = format!("| `{name}` | `{default}` |");
            let found = rows.iter().filter(|line| line.starts_with(&row)).count();
            assert_eq!(found, 1, "docs/settings.md lacks the row: {row} … |");
            expected += 1;
        }
        assert_eq!(rows.len(), expected, "a row on docs/settings.md is about no key");
        for switch in Mechanisms::SWITCHES {
            let meaning = format!(" | {} |", switch.about);
            let told = rows.iter().any(|row| {
                row.starts_with(&format!("| `mechanisms.{}` |", switch.name)) && row.ends_with(&meaning)
            });
            assert!(
                told,
                "docs/settings.md: the row of {} should end with{meaning}",
                switch.name
            );
        }
        let told = rows
            .iter()
            .all(|row| row.split(" | ").nth(2).is_some_and(|effect| effect.len() > 5));
        assert!(told, "each row says what the key does");
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        assert!(Config::from_toml("shared_buffers = \"8kB\"").is_err());
        assert!(Config::from_toml("max_connections = 0").is_err());
        assert!(Config::from_toml("database = \"\"").is_err());
        let error = Config::from_toml("shared_buffers = \"4000TB\"").unwrap_err();
        assert!(error.message().contains("of memory"), "{error}");
        assert!(Config::from_toml("work_mem = \"1kB\"").is_err());
        assert!(Config::from_toml("datestyle = \"german\"\ntimezone = \"Europe/Berlin\"").is_ok());
        assert!(Config::from_toml("datestyle = \"french\"").is_err());
        assert!(Config::from_toml("timezone = \"Europe/Nowhere\"").is_err());
        assert!(Config::from_toml("pg_stat_statements.max = 99").is_err());
        assert!(Config::from_toml("pg_stat_statements.track = \"all\"").is_err());
        assert!(Config::from_toml("[pg_stat_statements]\nmax = 100\ntrack = \"top\"").is_ok());
        assert!(Config::from_toml("wal_receiver_timeout = \"1ms\"").is_err());
        assert!(Config::from_toml("wal_receiver_status_interval = 0").is_err());
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        for (text, suggested) in [
            ("checkpoint_timeout = 300", "\"300s\""),
            ("checkpoint_timeout = \"300\"", "\"300s\""),
            ("shared_buffers = 128", "\"128MB\""),
        ] {
            let error = Config::from_toml(text).unwrap_err();
            assert!(error.message().contains(suggested), "{error}");
        }
        assert!(Config::from_toml("commit_delay = 0").is_ok());
    }

    /// Each session's thread takes a worker slot of the process at its first wait, and there are 4,096 from the start.
    #[test]
    fn more_connections_than_worker_slots_are_refused_at_the_start() {
        assert!(Config::from_toml("max_connections = 4000").is_ok());
        let error = Config::from_toml("max_connections = 4001").unwrap_err();
        assert!(error.message().contains("must be 1 to 4000"), "{error}");
    }
}
