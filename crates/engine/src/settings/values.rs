//! The texts of values: checked, and spelled as SHOW spells them.

use std::fmt::Display;

use crate::settings::definitions::{Definition, Kind};
use crate::synchronous_commit::SynchronousCommit;
use clearway_sql::error::{EngineError, Result, SqlState, shown};
use clearway_sql::value::datetime::{SessionZone, changed_date_style, shown_date_style};

/// Checks a value and gives it the spelling that SHOW shows.
pub(super) fn checked(definition: &Definition, value: &str) -> Result<String> {
    // A number may be between blanks; everything else is taken as it is.
    let value = match definition.kind {
        Kind::Integer(..)
        | Kind::Real(..)
        | Kind::Milliseconds(_)
        | Kind::Kilobytes(..)
        | Kind::LeastKilobytes
        | Kind::Pages(..) => value.trim(),
        _ => value,
    };
    match definition.kind {
        Kind::Text => text(definition.name, value),
        Kind::Boolean => boolean(definition, value),
        Kind::Integer(least, most) => integer(definition, value, least, most),
        Kind::Real(least, most) => real(definition, value, least, most),
        Kind::Pages(least, most) => pages(definition, value, least, most),
        Kind::Milliseconds(least) => milliseconds(definition, value, least),
        Kind::Kilobytes(least, most) => kilobytes(definition, value, least, most),
        Kind::LeastKilobytes if value == NEVER => Ok(NEVER.to_owned()),
        Kind::LeastKilobytes => kilobytes(definition, value, 0, i32::MAX as u64),
        Kind::Word(words) => word(definition, value, words),
        Kind::Only(spellings) if spellings.contains(&value.to_ascii_lowercase().as_str()) => {
            Ok(definition.default.to_owned())
        }
        Kind::Only(_) => Err(EngineError::not_supported(format!(
            "the value \"{}\" of parameter \"{}\"",
            shown(value),
            definition.shown
        ))
        .with_hint(format!("Only \"{}\" is supported.", definition.default))),
        Kind::ReadOnly => Err(invalid(definition.shown, value)),
    }
}

/// A text: anything, but for the settings whose texts mean something.
fn text(name: &str, value: &str) -> Result<String> {
    match name {
        "client_encoding" => client_encoding(value),
        "timezone" => time_zone(value),
        _ => Ok(value.to_owned()),
    }
}

fn client_encoding(value: &str) -> Result<String> {
    // asyncpg sends the name in quotes.
    let name = value.trim_matches(['\'', '"']).to_ascii_lowercase();
    match name.replace(['-', '_'], "").as_str() {
        "utf8" | "unicode" | "sqlascii" | "auto" => Ok("UTF8".to_owned()),
        _ => Err(
            EngineError::not_supported(format!("client encoding \"{}\"", shown(value)))
                .with_hint("Only UTF8 is supported."),
        ),
    }
}

/// A change of `DateStyle` as SHOW shows its outcome. `now` is the value before, `reset` what RESET goes back to.
pub(super) fn date_style(value: &str, now: &str, reset: &str) -> Result<String> {
    let parts = |shown: &str| changed_date_style(shown, Default::default(), Default::default());
    let changed = changed_date_style(
        value,
        parts(now).unwrap_or_default(),
        parts(reset).unwrap_or_default(),
    );
    match changed {
        Ok((style, order)) => Ok(shown_date_style(style, order)),
        Err(fault) => Err(invalid("DateStyle", value).with_detail(fault.detail())),
    }
}

fn time_zone(value: &str) -> Result<String> {
    match SessionZone::of_setting(value) {
        Ok(zone) => Ok(zone.name().to_owned()),
        Err(fault) => Err(match fault.detail() {
            Some(detail) => invalid("TimeZone", value).with_detail(detail),
            None => invalid("TimeZone", value),
        }),
    }
}

fn boolean(definition: &Definition, value: &str) -> Result<String> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
        _ => Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("parameter \"{}\" requires a Boolean value", definition.shown),
        )),
    }
}

fn integer(definition: &Definition, value: &str, least: i64, most: i64) -> Result<String> {
    match value.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
        Ok(number) => Err(out_of_range(definition, number, "", least, most)),
        Err(_) => Err(invalid(definition.shown, value)),
    }
}

/// The number that stands for no limit.
const NEVER: &str = "-1";

fn milliseconds(definition: &Definition, value: &str, least: i64) -> Result<String> {
    let wrong = |hint| Err(invalid(definition.shown, value).with_hint(hint));
    match parse_milliseconds(value) {
        Some(-1) if least == -1 => Ok(NEVER.to_owned()),
        Some(number) if (least..=MILLISECONDS_MAX).contains(&number) => Ok(show_milliseconds(number as u64)),
        Some(number) if number < least => Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "{number} ms is outside the valid range for parameter \"{}\" ({least} .. {MILLISECONDS_MAX})",
                definition.shown
            ),
        )),
        Some(_) => wrong("Value exceeds integer range."),
        None => Err(unknown_unit(definition.shown, value, TIME_UNITS)),
    }
}

/// Units of times and of sizes, as a hint names them.
const TIME_UNITS: &str =
    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
const SIZE_UNITS: &str = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";

/// The error of a value that is no number, or of a number whose unit is unknown: only the latter has the hint.
fn unknown_unit(name: &str, value: &str, units: &str) -> EngineError {
    let error = invalid(name, value);
    let number = value.trim_start();
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    match number.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        true => error.with_hint(units),
        false => error,
    }
}

fn kilobytes(definition: &Definition, value: &str, least: u64, most: u64) -> Result<String> {
    match parse_kilobytes(value) {
        Some(size) if (least..=most).contains(&size) => Ok(show_kilobytes(size)),
        Some(size) => Err(out_of_range(definition, size, " kB", least, most)),
        None => Err(unknown_unit(definition.shown, value, SIZE_UNITS)),
    }
}

fn real(definition: &Definition, value: &str, least: f64, most: f64) -> Result<String> {
    match value.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(show_real(number)),
        Ok(number) if !number.is_nan() => Err(out_of_range(
            definition,
            show_real(number),
            "",
            show_real(least),
            show_real(most),
        )),
        _ => Err(invalid(definition.shown, value)),
    }
}

/// A number in as many characters as it takes.
fn show_real(number: f64) -> String {
    clearway_sql::value::text::to_text(&clearway_sql::value::Value::Float8(number)).unwrap_or_default()
}

fn pages(definition: &Definition, value: &str, least: u64, most: u64) -> Result<String> {
    match parse_pages(value) {
        Some(size) if (least..=most).contains(&size) => Ok(show_kilobytes(size * KILOBYTES_PER_PAGE)),
        Some(size) => Err(out_of_range(definition, size, " 8kB", least, most)),
        None => Err(unknown_unit(definition.shown, value, SIZE_UNITS)),
    }
}

const KILOBYTES_PER_PAGE: u64 = 8;

/// A size in pages, rounded to the nearest.
pub(super) fn parse_pages(text: &str) -> Option<u64> {
    let is_bare = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    let number = parse_kilobytes(text)?;
    match is_bare {
        true => Some(number),
        false => Some(number.saturating_add(KILOBYTES_PER_PAGE / 2) / KILOBYTES_PER_PAGE),
    }
}

fn word(definition: &Definition, value: &str, words: &[&str]) -> Result<String> {
    let lower = value.to_ascii_lowercase();
    if definition.name == "backslash_quote"
        && let Ok(spelled) = boolean(definition, value)
    {
        return Ok(spelled);
    }
    if !words.contains(&lower.as_str()) {
        let hint = format!("Available values: {}.", words.join(", "));
        // Not as SHOW has it, as in PostgreSQL.
        return Err(invalid(definition.name, value).with_hint(hint));
    }
    // Of several spellings SHOW gives one.
    match SynchronousCommit::parse(&lower) {
        Some(value) if definition.name == "synchronous_commit" => Ok(value.name().to_owned()),
        _ => Ok(lower),
    }
}

/// An error for a number beyond its setting's range, both in this `unit`.
fn out_of_range(
    definition: &Definition,
    number: impl Display,
    unit: &str,
    least: impl Display,
    most: impl Display,
) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "{number}{unit} is outside the valid range for parameter \"{}\" ({least}{unit} .. {most}{unit})",
            definition.shown
        ),
    )
}

/// The longest time that a setting takes.
pub(super) const MILLISECONDS_MAX: i64 = i32::MAX as i64;

/// A time in milliseconds, rounded to the nearest.
pub(crate) fn parse_milliseconds(text: &str) -> Option<i64> {
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

/// A size in kilobytes, rounded to the nearest; too large for any range when it cannot be counted.
pub(super) fn parse_kilobytes(text: &str) -> Option<u64> {
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

fn invalid(name: &str, value: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{}\"", shown(value)),
    )
}
