//! The values of a configuration as texts, and which of its keys can change while the server runs.

use super::Config;
use super::session_settings::setting_of_key;

/// The keys of the configuration that change at run time, sorted.
pub const CHANGEABLE: [&str; 20] = [
    "autovacuum_analyze_scale_factor",
    "autovacuum_analyze_threshold",
    "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_threshold",
    "datestyle",
    "log_checkpoints",
    "log_connections",
    "log_destination",
    "log_disconnections",
    "log_line_prefix",
    "log_lock_waits",
    "log_min_duration_statement",
    "log_min_messages",
    "log_statement",
    "log_temp_files",
    "pg_stat_statements.track",
    "synchronous_commit",
    "synchronous_standby_names",
    "timezone",
    "work_mem",
];

/// True for a key whose value changes at run time: one of these, or of a SQL setting.
pub fn is_changeable(key: &str) -> bool {
    CHANGEABLE.contains(&key) || setting_of_key(key).is_some()
}

/// The unit in which PostgreSQL shows a key of the configuration, or would show one of ours.
pub(crate) fn unit_of(key: &str) -> Option<&'static str> {
    Some(match key {
        "shared_buffers" => "8kB",
        "log_temp_files" | "max_message_size" | "planning_memory" | "server_memory" | "work_mem" => "kB",
        "max_slot_wal_keep_size" | "max_wal_size" | "wal_keep_size" => "MB",
        "deadlock_timeout"
        | "log_min_duration_statement"
        | "max_standby_streaming_delay"
        | "recovery_min_apply_delay"
        | "wal_receiver_timeout"
        | "wal_sender_timeout"
        | "wal_writer_delay" => "ms",
        "authentication_timeout"
        | "autovacuum_naptime"
        | "checkpoint_timeout"
        | "wal_receiver_status_interval" => "s",
        _ => return None,
    })
}

/// Keys whose values only superusers see, and members of `pg_read_all_settings`: one may have a password in it.
pub(crate) const FOR_SUPERUSERS: [&str; 3] = ["data_directory", "hba_file", "primary_conninfo"];

/// The keys whose values differ; those of the mechanisms as `mechanisms.NAME`.
pub(crate) fn differing(one: &Config, other: &Config) -> Vec<String> {
    let (values, others) = (values_of(one), values_of(other));
    let is_other = |(name, _): &&(String, String)| !values.iter().any(|(known, _)| known == name);
    let added: Vec<_> = others
        .iter()
        .filter(is_other)
        .map(|(name, _)| name.clone())
        .collect();
    let changed = values.into_iter().filter(|value| !others.contains(value));
    changed.map(|(name, _)| name).chain(added).collect()
}

/// All keys with their values as texts.
pub(crate) fn values_of(config: &Config) -> Vec<(String, String)> {
    let Ok(toml::Value::Table(table)) = toml::Value::try_from(config) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(switches) => {
                let switches = switches.into_iter();
                values.extend(switches.map(|(switch, value)| (format!("{name}.{switch}"), shown(&value))));
            }
            value => values.push((name, shown(&value))),
        }
    }
    values
}

fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Boolean(true) => "on".to_owned(),
        toml::Value::Boolean(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_are_told_by_name() {
        let one = Config::default();
        let mut other = Config::from_toml("max_connections = 20\nwork_mem = \"8MB\"").unwrap();
        assert_eq!(differing(&one, &other), ["max_connections", "work_mem"]);
        other.max_connections = one.max_connections;
        other.work_mem = one.work_mem;
        assert!(differing(&one, &other).is_empty());
        other.mechanisms = crate::Mechanisms::preset("classic").unwrap();
        assert!(differing(&one, &other).contains(&"mechanisms.lwlock".to_owned()));
    }

    #[test]
    fn the_keys_that_change_are_keys() {
        let values = values_of(&Config::default());
        assert!(CHANGEABLE.is_sorted());
        for key in CHANGEABLE {
            assert!(values.iter().any(|(name, _)| name == key), "{key}");
        }
    }
}
