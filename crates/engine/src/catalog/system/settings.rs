//! `pg_settings`: the settings of SHOW, then the other keys of the configuration.

use super::Sources;
use super::rows::{NULL, Rows, boolean, text, texts};
use crate::config::Config;
use crate::in_force::{self, CHANGEABLE};
use clearway_sql::value::Value;

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
            ("short_desc", NULL),
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
        rows.push([
            ("name", text(&key)),
            ("setting", text(&value)),
            ("unit", NULL),
            ("category", NULL),
            ("short_desc", NULL),
            ("extra_desc", NULL),
            (
                "context",
                text(if is_changeable { "sighup" } else { "postmaster" }),
            ),
            ("vartype", text("string")),
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
            ("boot_val", default.map_or(NULL, |default| text(default))),
            ("reset_val", text(&value)),
            ("sourcefile", NULL),
            ("sourceline", NULL),
            (
                "pending_restart",
                boolean(in_force.pending_restart.contains(&key)),
            ),
        ]);
    }
}
