//! The list of settings: names, kinds of values, defaults.

use crate::logging::LogStatement;
use crate::statement_statistics::TrackedStatements;

/// The check of a setting's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Kept as it is.
    Text,
    /// `on`, `off` and their spellings.
    Boolean,
    /// A whole number in a range.
    Integer(i64, i64),
    /// A number in a range.
    Real(f64, f64),
    /// A size in pages of 8 kB, in a range; a bare number is pages.
    Pages(u64, u64),
    /// A time of at least this many milliseconds; a bare number is milliseconds.
    Milliseconds(i64),
    /// A size in kilobytes, in a range; a bare number is kilobytes.
    Kilobytes(u64, u64),
    /// The least size in kilobytes; a bare number is kilobytes, and -1 none.
    LeastKilobytes,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// The default alone, which may be spelled in these ways: other values would ask for what is not there.
    Only(&'static [&'static str]),
    /// Tells, cannot be set.
    ReadOnly,
}

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    /// As SHOW spells it.
    pub(super) shown: &'static str,
    pub(super) kind: Kind,
    pub(super) default: &'static str,
    /// Told to the client at the start and whenever it changes.
    pub(super) reported: bool,
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

/// The words of `auto_explain.log_format`.
const FORMATS: &[&str] = &["text", "xml", "json", "yaml"];
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
const OFF: &[&str] = &["off", "false", "no", "0"];
const LOCALES: &[&str] = &["", "c", "posix", "c.utf-8", "c.utf8", "en_us.utf-8", "en_us.utf8"];

/// The most kilobytes that a setting takes.
const KILOBYTES_MAX: u64 = i32::MAX as u64;

/// Settings that only superusers change: others would hide from the log what they do.
pub(super) const OF_SUPERUSERS: [&str; 13] = [
    "auto_explain.log_analyze",
    "auto_explain.log_buffers",
    "auto_explain.log_format",
    "auto_explain.log_min_duration",
    "auto_explain.log_settings",
    "auto_explain.log_timing",
    "auto_explain.log_verbose",
    "auto_explain.log_wal",
    "log_lock_waits",
    "log_min_duration_statement",
    "log_statement",
    "log_temp_files",
    "pg_stat_statements.track",
];

/// Settings whose defaults are keys of the configuration.
pub(super) const KEYS_OF_CONFIGURATION: [&str; 10] = [
    "datestyle",
    "deadlock_timeout",
    "log_lock_waits",
    "log_min_duration_statement",
    "log_statement",
    "log_temp_files",
    "pg_stat_statements.track",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

/// All settings, sorted by name.
pub(super) static DEFINITIONS: &[Definition] = &[
    reported("application_name", "application_name", Kind::Text, ""),
    setting("array_nulls", Kind::Only(ON), "on"),
    setting("auto_explain.log_analyze", Kind::Boolean, "off"),
    setting("auto_explain.log_buffers", Kind::Boolean, "off"),
    setting("auto_explain.log_format", Kind::Word(FORMATS), "text"),
    setting("auto_explain.log_min_duration", Kind::Milliseconds(-1), "-1"),
    setting("auto_explain.log_settings", Kind::Boolean, "off"),
    setting("auto_explain.log_timing", Kind::Boolean, "on"),
    setting("auto_explain.log_verbose", Kind::Boolean, "off"),
    setting("auto_explain.log_wal", Kind::Boolean, "off"),
    setting("autovacuum", Kind::ReadOnly, "on"),
    // Nothing reaches this age, since numbers of transactions do not come around; programs compare ages with it.
    setting("autovacuum_freeze_max_age", Kind::ReadOnly, "200000000"),
    setting("autovacuum_max_workers", Kind::ReadOnly, "1"),
    setting(
        "backslash_quote",
        Kind::Word(&["safe_encoding", "on", "off"]),
        "safe_encoding",
    ),
    setting("block_size", Kind::ReadOnly, "8192"),
    setting("bytea_output", Kind::Word(&["hex", "escape"]), "hex"),
    setting("check_function_bodies", Kind::Boolean, "on"),
    reported("client_encoding", "client_encoding", Kind::Text, "UTF8"),
    setting("client_min_messages", Kind::Word(LEVELS), "notice"),
    setting(
        "constraint_exclusion",
        Kind::Word(&["partition", "on", "off"]),
        "partition",
    ),
    setting("cpu_index_tuple_cost", Kind::Real(0.0, f64::MAX), "0.005"),
    setting("cpu_operator_cost", Kind::Real(0.0, f64::MAX), "0.0025"),
    setting("cpu_tuple_cost", Kind::Real(0.0, f64::MAX), "0.01"),
    setting("cursor_tuple_fraction", Kind::Real(0.0, 1.0), "0.1"),
    setting("data_checksums", Kind::ReadOnly, "on"),
    setting("data_directory_mode", Kind::ReadOnly, "0700"),
    reported("datestyle", "DateStyle", Kind::Text, "ISO, MDY"),
    setting("deadlock_timeout", Kind::Milliseconds(1), "1s"),
    setting("default_statistics_target", Kind::Integer(1, 10_000), "100"),
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
    setting("effective_cache_size", Kind::Pages(1, i32::MAX as u64), "4GB"),
    setting("enable_async_append", Kind::Boolean, "on"),
    setting("enable_bitmapscan", Kind::Boolean, "on"),
    setting("enable_gathermerge", Kind::Boolean, "on"),
    setting("enable_hashagg", Kind::Boolean, "on"),
    setting("enable_hashjoin", Kind::Boolean, "on"),
    setting("enable_incremental_sort", Kind::Boolean, "on"),
    setting("enable_indexonlyscan", Kind::Boolean, "on"),
    setting("enable_indexscan", Kind::Boolean, "on"),
    setting("enable_material", Kind::Boolean, "on"),
    setting("enable_memoize", Kind::Boolean, "on"),
    setting("enable_mergejoin", Kind::Boolean, "on"),
    setting("enable_nestloop", Kind::Boolean, "on"),
    setting("enable_parallel_append", Kind::Boolean, "on"),
    setting("enable_parallel_hash", Kind::Boolean, "on"),
    setting("enable_partition_pruning", Kind::Boolean, "on"),
    setting("enable_partitionwise_aggregate", Kind::Boolean, "off"),
    setting("enable_partitionwise_join", Kind::Boolean, "off"),
    setting("enable_seqscan", Kind::Boolean, "on"),
    setting("enable_sort", Kind::Boolean, "on"),
    setting("enable_tidscan", Kind::Boolean, "on"),
    setting("escape_string_warning", Kind::Boolean, "on"),
    setting("extra_float_digits", Kind::Integer(-15, 3), "1"),
    setting(
        "force_parallel_mode",
        Kind::Word(&["off", "on", "regress"]),
        "off",
    ),
    setting("from_collapse_limit", Kind::Integer(1, i32::MAX as i64), "8"),
    setting("fsync", Kind::ReadOnly, "on"),
    setting("geqo", Kind::Boolean, "off"),
    setting("geqo_effort", Kind::Integer(1, 10), "5"),
    setting("geqo_generations", Kind::Integer(0, i32::MAX as i64), "0"),
    setting("geqo_pool_size", Kind::Integer(0, i32::MAX as i64), "0"),
    setting("geqo_seed", Kind::Real(0.0, 1.0), "0"),
    setting("geqo_selection_bias", Kind::Real(1.5, 2.0), "2"),
    setting("geqo_threshold", Kind::Integer(2, i32::MAX as i64), "12"),
    setting("hash_mem_multiplier", Kind::Real(1.0, 1_000.0), "2"),
    setting("hot_standby", Kind::ReadOnly, "on"),
    setting("idle_in_transaction_session_timeout", Kind::Milliseconds(0), "0"),
    setting("idle_session_timeout", Kind::Milliseconds(0), "0"),
    reported("in_hot_standby", "in_hot_standby", Kind::ReadOnly, "off"),
    reported("integer_datetimes", "integer_datetimes", Kind::ReadOnly, "on"),
    reported(
        "intervalstyle",
        "IntervalStyle",
        Kind::Word(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "postgres",
    ),
    reported("is_superuser", "is_superuser", Kind::ReadOnly, "on"),
    setting("jit", Kind::Boolean, "off"),
    setting("jit_above_cost", Kind::Real(-1.0, f64::MAX), "100000"),
    setting("jit_inline_above_cost", Kind::Real(-1.0, f64::MAX), "500000"),
    setting("jit_optimize_above_cost", Kind::Real(-1.0, f64::MAX), "500000"),
    setting("join_collapse_limit", Kind::Integer(1, i32::MAX as i64), "8"),
    setting("lc_collate", Kind::ReadOnly, "C"),
    setting("lc_ctype", Kind::ReadOnly, "C.UTF-8"),
    setting("lc_messages", Kind::Only(LOCALES), "C"),
    setting("lc_monetary", Kind::Only(LOCALES), "C"),
    setting("lc_numeric", Kind::Only(LOCALES), "C"),
    setting("lc_time", Kind::Only(LOCALES), "C"),
    setting("lo_compat_privileges", Kind::Only(OFF), "off"),
    setting("lock_timeout", Kind::Milliseconds(0), "0"),
    setting("log_lock_waits", Kind::Boolean, "off"),
    setting("log_min_duration_statement", Kind::Milliseconds(-1), "-1"),
    setting("log_statement", Kind::Word(LogStatement::WORDS), "none"),
    setting("log_temp_files", Kind::LeastKilobytes, "-1"),
    setting(
        "maintenance_work_mem",
        Kind::Kilobytes(1_024, KILOBYTES_MAX),
        "64MB",
    ),
    setting("max_connections", Kind::ReadOnly, "500"),
    setting("max_function_args", Kind::ReadOnly, "100"),
    setting("max_identifier_length", Kind::ReadOnly, "63"),
    setting("max_index_keys", Kind::ReadOnly, "32"),
    setting("max_parallel_maintenance_workers", Kind::Integer(0, 1024), "2"),
    setting("max_parallel_workers", Kind::Integer(0, 1024), "8"),
    setting("max_parallel_workers_per_gather", Kind::Integer(0, 1024), "0"),
    setting("max_prepared_transactions", Kind::ReadOnly, "0"),
    setting(
        "min_parallel_index_scan_size",
        Kind::Pages(0, 715_827_882),
        "512kB",
    ),
    setting("min_parallel_table_scan_size", Kind::Pages(0, 715_827_882), "8MB"),
    setting("parallel_leader_participation", Kind::Boolean, "on"),
    setting("parallel_setup_cost", Kind::Real(0.0, f64::MAX), "1000"),
    setting("parallel_tuple_cost", Kind::Real(0.0, f64::MAX), "0.1"),
    setting(
        "password_encryption",
        Kind::Only(&["scram-sha-256"]),
        "scram-sha-256",
    ),
    setting("pg_stat_statements.max", Kind::ReadOnly, "5000"),
    setting(
        "pg_stat_statements.track",
        Kind::Word(TrackedStatements::WORDS),
        "none",
    ),
    setting(
        "plan_cache_mode",
        Kind::Word(&["auto", "force_generic_plan"]),
        "auto",
    ),
    setting("quote_all_identifiers", Kind::Only(OFF), "off"),
    setting("random_page_cost", Kind::Real(0.0, f64::MAX), "4"),
    setting("recursive_worktable_factor", Kind::Real(0.001, 1_000_000.0), "10"),
    setting("role", Kind::Text, "none"),
    setting("row_security", Kind::Boolean, "on"),
    reported(
        "scram_iterations",
        "scram_iterations",
        Kind::Integer(1, i32::MAX as i64),
        "4096",
    ),
    setting("search_path", Kind::Text, "\"$user\", public"),
    setting("seq_page_cost", Kind::Real(0.0, f64::MAX), "1"),
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
    setting("shared_memory_size", Kind::ReadOnly, "128MB"),
    setting("shared_memory_size_in_huge_pages", Kind::ReadOnly, "64"),
    setting("ssl", Kind::ReadOnly, "off"),
    reported(
        "standard_conforming_strings",
        "standard_conforming_strings",
        Kind::Boolean,
        "on",
    ),
    setting("statement_timeout", Kind::Milliseconds(0), "0"),
    // pg_dump turns it off, and that is what it is.
    setting("synchronize_seqscans", Kind::Only(OFF), "off"),
    setting("synchronous_commit", Kind::Word(SYNC), "on"),
    setting("synchronous_standby_names", Kind::ReadOnly, ""),
    setting("tcp_keepalives_count", Kind::Only(&["0"]), "0"),
    setting("tcp_keepalives_idle", Kind::Only(&["0"]), "0"),
    setting("tcp_keepalives_interval", Kind::Only(&["0"]), "0"),
    reported("timezone", "TimeZone", Kind::Text, "UTC"),
    setting("track_activities", Kind::Only(ON), "on"),
    setting("track_counts", Kind::Only(ON), "on"),
    setting("transaction_deferrable", Kind::Boolean, "off"),
    setting("transaction_isolation", Kind::Word(ISOLATION), "read committed"),
    setting("transaction_read_only", Kind::Boolean, "off"),
    setting("transform_null_equals", Kind::Only(OFF), "off"),
    setting("vacuum_cost_delay", Kind::Only(&["0", "0ms"]), "0"),
    setting("wal_block_size", Kind::ReadOnly, "8192"),
    setting("wal_level", Kind::ReadOnly, "replica"),
    setting("wal_segment_size", Kind::ReadOnly, "16MB"),
    setting("work_mem", Kind::Kilobytes(64, KILOBYTES_MAX), "4MB"),
    setting("xmloption", Kind::Word(&["content", "document"]), "content"),
];

/// The setting of this lower-case name.
pub(super) fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS
        .binary_search_by(|definition| definition.name.cmp(name))
        .ok()
        .map(|at| &DEFINITIONS[at])
}

/// The place of a severity among those that `client_min_messages` takes; `debug5` is 0.
pub(crate) fn level(name: &str) -> usize {
    LEVELS.iter().position(|level| *level == name).unwrap_or(0)
}
