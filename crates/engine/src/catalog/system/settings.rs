//! `pg_settings`: the settings of SHOW, then the other keys of the configuration.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int4, text, texts};
use crate::config::session_settings::{key_of_setting, setting_of_key};
use crate::config::values::{CHANGEABLE, FOR_SUPERUSERS, unit_of, values_of};
use crate::config::{Config, Origin};
use crate::settings::{in_unit, sentence_of};
use clearway_sql::value::Value;

/// The kind of a value without a unit, as PostgreSQL calls it.
fn kind_of(value: &str) -> &'static str {
    match value {
        "on" | "off" => "bool",
        number if number.parse::<i64>().is_ok() => "integer",
        number if number.parse::<f64>().is_ok() => "real",
        _ => "string",
    }
}

/// `sourcefile` and `sourceline` of a key, as far as the role may know them.
fn place_of(sources: &Sources<'_>, config: &Config, key: &str) -> (Value, Value) {
    let origins = &config.origins;
    match origins.of(key).or_else(|| origins.of(&key_of_setting(key))) {
        Some(Origin::File { file, line }) if sources.catalog.sees_all_settings(sources.identity.current) => (
            Value::text(file.display().to_string()),
            int4(i32::try_from(*line).unwrap_or(i32::MAX)),
        ),
        _ => (NULL, NULL),
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
        let (sourcefile, sourceline) = match setting.source {
            "configuration file" => place_of(sources, &in_force.config, &key),
            _ => (NULL, NULL),
        };
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
            ("sourcefile", sourcefile),
            ("sourceline", sourceline),
            (
                "pending_restart",
                boolean(in_force.pending_restart.contains(&key)),
            ),
        ]);
    }
    let defaults = values_of(&Config::default());
    for (key, value) in values_of(&in_force.config) {
        if keys.contains(&key)
            || setting_of_key(&key).is_some()
            || FOR_SUPERUSERS.contains(&&*key) && !sources.catalog.sees_all_settings(sources.identity.current)
        {
            continue;
        }
        let default = defaults
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, default)| default);
        let (sourcefile, sourceline) = place_of(sources, &in_force.config, &key);
        let source = match in_force.config.origins.of(&key) {
            None => "default",
            Some(Origin::File { .. }) => "configuration file",
            Some(Origin::CommandLine) => "command line",
        };
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
            ("source", text(source)),
            ("min_val", NULL),
            ("max_val", NULL),
            ("enumvals", NULL),
            (
                "boot_val",
                default.map_or(NULL, |default| Value::text(shown(default))),
            ),
            ("reset_val", Value::text(shown(&value))),
            ("sourcefile", sourcefile),
            ("sourceline", sourceline),
            (
                "pending_restart",
                boolean(in_force.pending_restart.contains(&key)),
            ),
        ]);
    }
}
