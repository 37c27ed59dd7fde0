//! `pg_settings`: the settings of SHOW, then the other keys of the configuration.

use super::Sources;
use super::rows::{NULL, Rows, boolean, text, texts};
use crate::config::Config;
use crate::in_force::{self, CHANGEABLE};
use crate::settings::{in_unit, sentence_of};
use clearway_sql::value::Value;

/// The unit in which PostgreSQL shows a key of the configuration, or would show one of ours.
fn unit_of(key: &str) -> Option<&'static str> {
    Some(match key {
        "shared_buffers" => "8kB",
        "max_message_size" | "planning_memory" | "server_memory" => "kB",
        "max_slot_wal_keep_size" | "max_wal_size" | "wal_keep_size" => "MB",
        "max_standby_streaming_delay"
        | "wal_receiver_timeout"
        | "wal_sender_timeout"
        | "wal_writer_delay" => "ms",
        "autovacuum_naptime" | "checkpoint_timeout" | "wal_receiver_status_interval" => "s",
        _ => return None,
    })
}

/// The kind of a value without a unit, as PostgreSQL calls it.
fn kind_of(value: &str) -> &'static str {
    match value {
        "on" | "off" => "bool",
        number if number.parse::<i64>().is_ok() => "integer",
        number if number.parse::<f64>().is_ok() => "real",
        _ => "string",
    }
}

/// `pg_settings`
pub(super) fn settings(sources: &Sources<'_>, rows: &mut Rows) {
    let in_force = (sources.in_force)();
    let optional = |value: Option<String>| value.map_or(NULL, Value::text);
    let known = sources.settings.described();
    let keys: Vec<String> = known
        .iter()
        .map(|setting| setting.name.to_ascii_lowercase())
        .collect();
    for setting in known {
        let key = setting.name.to_ascii_lowercase();
        let context = match setting.context {
            "internal" if CHANGEABLE.contains(&key.as_str()) => "sighup",
            context => context,
        };
        rows.push([
            ("name", text(setting.name)),
            ("setting", Value::text(setting.value)),
            ("unit", setting.unit.map_or(NULL, text)),
            ("category", NULL),
            ("short_desc", sentence_of(setting.name).map_or(NULL, text)),
            ("extra_desc", NULL),
            ("context", text(context)),
            ("vartype", text(setting.kind)),
            ("source", text(setting.source)),
            ("min_val", optional(setting.least)),
            ("max_val", optional(setting.most)),
            (
                "enumvals",
                setting
                    .words
                    .map_or(NULL, |words| texts(words.iter().map(|word| (*word).to_owned()))),
            ),
            ("boot_val", Value::text(setting.default)),
            ("reset_val", Value::text(setting.reset)),
            ("sourcefile", NULL),
            ("sourceline", NULL),
            (
                "pending_restart",
                boolean(in_force.pending_restart.contains(&key)),
            ),
        ]);
    }
    let defaults = in_force::values_of(&Config::default());
    for (key, value) in in_force::values_of(&in_force.config) {
        if keys.contains(&key) {
            continue;
        }
        let default = defaults
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, default)| default);
        let is_changeable = CHANGEABLE.contains(&key.as_str());
        let unit = unit_of(&key);
        let shown = |value: &str| {
            unit.and_then(|unit| in_unit(value, unit))
                .unwrap_or_else(|| value.to_owned())
        };
        rows.push([
            ("name", text(&key)),
            ("setting", Value::text(shown(&value))),
            ("unit", unit.map_or(NULL, text)),
            ("category", NULL),
            ("short_desc", sentence_of(&key).map_or(NULL, text)),
            ("extra_desc", NULL),
            (
                "context",
                text(if is_changeable { "sighup" } else { "postmaster" }),
            ),
            (
                "vartype",
                text(if unit.is_some() {
                    "integer"
                } else {
                    kind_of(&value)
                }),
            ),
            (
                "source",
                text(if default == Some(&value) {
                    "default"
                } else {
                    "configuration file"
                }),
            ),
            ("min_val", NULL),
            ("max_val", NULL),
            ("enumvals", NULL),
            (
                "boot_val",
                default.map_or(NULL, |default| Value::text(shown(default))),
            ),
            ("reset_val", Value::text(shown(&value))),
            ("sourcefile", NULL),
            ("sourceline", NULL),
            (
                "pending_restart",
                boolean(in_force.pending_restart.contains(&key)),
            ),
        ]);
    }
}
