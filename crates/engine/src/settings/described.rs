//! Settings as `pg_settings` shows them: values in a unit, the kind of values, their bounds.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::definitions::{DEFINITIONS, Kind, OF_SUPERUSERS};
use super::values::{MILLISECONDS_MAX, parse_kilobytes, parse_milliseconds, parse_pages};
use super::{Settings, lookup};
use clearway_sql::value::Value;
use clearway_sql::value::text::to_text;

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
        Kind::Kilobytes(..) | Kind::LeastKilobytes => parse_kilobytes(value).map(|number| number.to_string()),
        Kind::Pages(..) => parse_pages(value).map(|number| number.to_string()),
        Kind::ReadOnly => told(value).0.and_then(|unit| in_unit(value, unit)),
        _ => None,
    }
    .unwrap_or_else(|| value.to_owned())
}

/// The page that says what each setting and each key of the configuration does.
const PAGE: &str = include_str!("../../../../docs/settings.md");

/// The sentences of a section of the page, by names.
fn sentences(of_settings: bool) -> HashMap<&'static str, &'static str> {
    let (keys, settings) = PAGE.split_once("## SQL settings").unwrap_or((PAGE, ""));
    let section = if of_settings { settings } else { keys };
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter_map(|row| {
        let (name, rest) = row.split_once('`')?;
        let sentence = rest.trim_end_matches(" |").rsplit(" | ").next()?;
        Some((name, sentence))
    });
    rows.collect()
}

/// The sentence that says what a setting does, or a key of the configuration that is no setting.
pub(crate) fn sentence_of(name: &str) -> Option<&'static str> {
    static SENTENCES: LazyLock<[HashMap<&str, &str>; 2]> =
        LazyLock::new(|| [sentences(true), sentences(false)]);
    SENTENCES.iter().find_map(|known| known.get(name).copied())
}

/// The unit and the kind of a value that is only told.
fn told(value: &str) -> (Option<&'static str>, &'static str) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match value {
        "on" | "off" => (None, "bool"),
        size if size.strip_suffix("MB").is_some_and(is_number) => (Some("MB"), "integer"),
        number if is_number(number) => (None, "integer"),
        _ => (None, "string"),
    }
}

/// A value of the configuration as a number of a unit; `None` if it is none.
pub(crate) fn in_unit(value: &str, unit: &str) -> Option<String> {
    let number = match unit {
        "8kB" => parse_kilobytes(value)? / 8,
        "kB" => parse_kilobytes(value)?,
        "MB" => parse_kilobytes(value)? / 1_024,
        "ms" => return parse_milliseconds(value).map(|number| number.to_string()),
        "s" => return parse_milliseconds(value).map(|number| (number / 1_000).to_string()),
        _ => return None,
    };
    Some(number.to_string())
}

/// A number as PostgreSQL writes it.
fn real(number: f64) -> Option<String> {
    to_text(&Value::Float8(number))
}

impl Settings {
    /// All settings.
    pub(crate) fn described(&self) -> Vec<SettingRow> {
        let row = |definition: &'static super::definitions::Definition| {
            let kind = definition.kind;
            let number = |number: i64| Some(number.to_string());
            let (unit, kind_name, least, most) = match kind {
                Kind::Boolean => (None, "bool", None, None),
                Kind::Integer(least, most) => (None, "integer", number(least), number(most)),
                Kind::Real(least, most) => (None, "real", real(least), real(most)),
                Kind::Pages(least, most) => {
                    let bounds = (least.cast_signed(), most.cast_signed());
                    (Some("8kB"), "integer", number(bounds.0), number(bounds.1))
                }
                Kind::Milliseconds(least) => (Some("ms"), "integer", number(least), number(MILLISECONDS_MAX)),
                Kind::Kilobytes(least, most) => {
                    let bounds = (least.cast_signed(), most.cast_signed());
                    (Some("kB"), "integer", number(bounds.0), number(bounds.1))
                }
                Kind::LeastKilobytes => (Some("kB"), "integer", number(-1), number(i32::MAX.into())),
                Kind::Word(_) => (None, "enum", None, None),
                Kind::ReadOnly => {
                    let (unit, kind) = told(self.value(definition.name).unwrap_or_default());
                    (unit, kind, None, None)
                }
                Kind::Text | Kind::Only(_) => (None, "string", None, None),
            };
            let reset = lookup(&self.defaults, definition.name).unwrap_or(definition.default);
            SettingRow {
                name: definition.shown,
                value: plain(kind, self.value(definition.name).unwrap_or_default()),
                unit,
                context: match kind {
                    Kind::ReadOnly => "internal",
                    _ if OF_SUPERUSERS.contains(&definition.name) => "superuser",
                    _ => "user",
                },
                kind: kind_name,
                source: self.source(definition.name),
                words: match kind {
                    Kind::Word(words) => Some(words),
                    _ => None,
                },
                least,
                most,
                default: plain(kind, definition.default),
                reset: plain(kind, reset),
            }
        };
        DEFINITIONS.iter().map(row).collect()
    }
}
