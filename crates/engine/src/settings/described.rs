//! Settings as `pg_settings` shows them: values in a unit, the kind of values, their bounds.

use super::definitions::{DEFINITIONS, Kind};
use super::values::{MILLISECONDS_MAX, parse_kilobytes, parse_milliseconds};
use super::{Settings, lookup};

/// A setting with all that there is to say of it.
#[derive(Debug)]
pub(crate) struct SettingRow {
    /// Its name as SHOW spells it.
    pub(crate) name: &'static str,
    /// Its value; a number of `unit` if it has one.
    pub(crate) value: String,
    /// The unit of numbers.
    pub(crate) unit: Option<&'static str>,
    /// Who can change it, as PostgreSQL calls it.
    pub(crate) context: &'static str,
    /// The kind of values, as PostgreSQL calls it.
    pub(crate) kind: &'static str,
    /// The source of the value, as PostgreSQL calls it.
    pub(crate) source: &'static str,
    /// The words that it takes, if it takes words.
    pub(crate) words: Option<&'static [&'static str]>,
    /// The least number.
    pub(crate) least: Option<String>,
    /// The greatest number.
    pub(crate) most: Option<String>,
    /// The value that it has if nothing sets it.
    pub(crate) default: String,
    /// The value that RESET goes back to.
    pub(crate) reset: String,
}

/// A value without its unit.
fn plain(kind: Kind, value: &str) -> String {
    match kind {
        Kind::Milliseconds(_) => parse_milliseconds(value).map(|number| number.to_string()),
        Kind::Kilobytes(..) => parse_kilobytes(value).map(|number| number.to_string()),
        _ => None,
    }
    .unwrap_or_else(|| value.to_owned())
}

impl Settings {
    /// All settings.
    pub(crate) fn described(&self) -> Vec<SettingRow> {
        let row = |definition: &'static super::definitions::Definition| {
            let kind = definition.kind;
            let (unit, kind_name, least, most) = match kind {
                Kind::Boolean => (None, "bool", None, None),
                Kind::Integer(least, most) => (None, "integer", Some(least), Some(most)),
                Kind::Milliseconds(least) => (Some("ms"), "integer", Some(least), Some(MILLISECONDS_MAX)),
                Kind::Kilobytes(least, most) => {
                    let bounds = (least.cast_signed(), most.cast_signed());
                    (Some("kB"), "integer", Some(bounds.0), Some(bounds.1))
                }
                Kind::Word(_) => (None, "enum", None, None),
                Kind::Text | Kind::Only(_) | Kind::ReadOnly => (None, "string", None, None),
            };
            let reset = lookup(&self.defaults, definition.name).unwrap_or(definition.default);
            SettingRow {
                name: definition.shown,
                value: plain(kind, self.value(definition.name).unwrap_or_default()),
                unit,
                context: match kind {
                    Kind::ReadOnly => "internal",
                    _ => "user",
                },
                kind: kind_name,
                source: self.source(definition.name),
                words: match kind {
                    Kind::Word(words) => Some(words),
                    _ => None,
                },
                least: least.map(|number| number.to_string()),
                most: most.map(|number| number.to_string()),
                default: plain(kind, definition.default),
                reset: plain(kind, reset),
            }
        };
        DEFINITIONS.iter().map(row).collect()
    }
}
