//! Storage parameters of a table: `WITH (…)` of CREATE TABLE, SET and RESET of ALTER TABLE.
//!
//! They are checked and kept as PostgreSQL does, with the text that was given. `autovacuum_enabled` decides whether the
//! server vacuums and analyzes the table by itself, and `toast_tuple_target` to how many bytes a long row is shortened; the
//! others change nothing here. Those of the table's long values (`toast.…`) change nothing either, as these are vacuumed with
//! their table.

use crate::error::{EngineError, Result, SqlState};

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Boolean,
    Integer(i64, i64),
    Real(f64, f64),
    /// On, off or left to the server.
    Switch,
}

const MOST: i64 = i32::MAX as i64;

/// The parameters of a table, in the order of their names.
const PARAMETERS: &[(&str, Kind)] = &[
    ("autovacuum_analyze_scale_factor", Kind::Real(0.0, 100.0)),
    ("autovacuum_analyze_threshold", Kind::Integer(0, MOST)),
    ("autovacuum_enabled", Kind::Boolean),
    ("autovacuum_freeze_max_age", Kind::Integer(100_000, 2_000_000_000)),
    ("autovacuum_freeze_min_age", Kind::Integer(0, 1_000_000_000)),
    ("autovacuum_freeze_table_age", Kind::Integer(0, 2_000_000_000)),
    (
        "autovacuum_multixact_freeze_max_age",
        Kind::Integer(10_000, 2_000_000_000),
    ),
    (
        "autovacuum_multixact_freeze_min_age",
        Kind::Integer(0, 1_000_000_000),
    ),
    (
        "autovacuum_multixact_freeze_table_age",
        Kind::Integer(0, 2_000_000_000),
    ),
    ("autovacuum_vacuum_cost_delay", Kind::Real(0.0, 100.0)),
    ("autovacuum_vacuum_cost_limit", Kind::Integer(1, 10_000)),
    ("autovacuum_vacuum_insert_scale_factor", Kind::Real(0.0, 100.0)),
    ("autovacuum_vacuum_insert_threshold", Kind::Integer(-1, MOST)),
    ("autovacuum_vacuum_scale_factor", Kind::Real(0.0, 100.0)),
    ("autovacuum_vacuum_threshold", Kind::Integer(0, MOST)),
    ("fillfactor", Kind::Integer(10, 100)),
    ("log_autovacuum_min_duration", Kind::Integer(-1, MOST)),
    ("parallel_workers", Kind::Integer(0, 1_024)),
    ("toast_tuple_target", Kind::Integer(128, 8_160)),
    ("user_catalog_table", Kind::Boolean),
    ("vacuum_index_cleanup", Kind::Switch),
    ("vacuum_truncate", Kind::Boolean),
];

/// The beginning of the name of a parameter of the table's long values.
pub const OF_LONG_VALUES: &str = "toast.";

/// True if long values may have a parameter: they are neither analyzed nor filled.
fn is_of_long_values(name: &str) -> bool {
    let of_vacuum = name.starts_with("autovacuum_") && !name.starts_with("autovacuum_analyze_");
    of_vacuum
        || [
            "log_autovacuum_min_duration",
            "vacuum_index_cleanup",
            "vacuum_truncate",
        ]
        .contains(&name)
}

/// The parameters that a table was given, each with the text of its value, in the order in which they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageParameters(Vec<(String, String)>);

impl StorageParameters {
    /// Those of a list; 22023 for what PostgreSQL does not take.
    pub fn of(list: impl IntoIterator<Item = (String, String)>) -> Result<StorageParameters> {
        let mut parameters = StorageParameters::default();
        for (name, value) in list {
            if parameters.get(&name).is_some() {
                return Err(invalid(format!("parameter \"{name}\" specified more than once")));
            }
            check(&name, &value)?;
            parameters.0.push((name, value));
        }
        Ok(parameters)
    }

    /// Those that were stored, which were checked when they were given.
    pub fn stored(list: Vec<(String, String)>) -> StorageParameters {
        StorageParameters(list)
    }

    /// The text of a parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// True unless a parameter is off.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).and_then(boolean) != Some(false)
    }

    /// Names and values of the table itself, in order.
    pub fn of_table(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(name, _)| !name.starts_with(OF_LONG_VALUES))
    }

    /// Names and values of its long values, in order.
    pub fn of_long_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(OF_LONG_VALUES)?, value)))
    }

    /// Names and values, in order, those of long values behind [`OF_LONG_VALUES`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The parameters after SET of some, or RESET of those without a value.
    #[must_use]
    pub fn changed(&self, changes: &[(String, Option<String>)]) -> StorageParameters {
        let is_changed = |name: &str| changes.iter().any(|(changed, _)| changed == name);
        let kept = self.0.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let set = changes.iter();
        let set = set.filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        StorageParameters(kept.chain(set).collect())
    }
}

fn invalid(message: String) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The truth value that a text is the beginning of a word for, as everywhere in settings.
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str| !text.is_empty() && word.starts_with(text.as_str());
    match text.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        "o" => None,
        _ if begins("true") || begins("yes") || begins("on") => Some(true),
        _ if begins("false") || begins("no") || begins("off") => Some(false),
        _ => None,
    }
}

/// Checks the name of a parameter and its value.
pub fn check(name: &str, value: &str) -> Result<()> {
    let (name, is_known) = match name.strip_prefix(OF_LONG_VALUES) {
        None => (name, true),
        Some(name) => (name, is_of_long_values(name)),
    };
    let found = PARAMETERS.binary_search_by_key(&name, |(known, _)| known);
    let Some(place) = found.ok().filter(|_| is_known) else {
        return Err(invalid(format!("unrecognized parameter \"{name}\"")));
    };
    let wrong = |kind: &str| invalid(format!("invalid value for {kind} option \"{name}\": {value}"));
    let beyond = |least: String, most: String| {
        Err(
            invalid(format!("value {value} out of bounds for option \"{name}\""))
                .with_detail(format!("Valid values are between \"{least}\" and \"{most}\".")),
        )
    };
    match PARAMETERS[place].1 {
        Kind::Boolean => boolean(value).map(drop).ok_or_else(|| wrong("boolean")),
        // A fraction is rounded.
        Kind::Integer(least, most) => match value.trim().parse::<f64>().map(f64::round_ties_even) {
            Ok(number) if number.abs() > MOST as f64 || number.is_nan() => Err(wrong("integer")),
            Ok(number) if (least..=most).contains(&(number as i64)) => Ok(()),
            Ok(_) => beyond(least.to_string(), most.to_string()),
            Err(_) => Err(wrong("integer")),
        },
        Kind::Real(least, most) => match value.trim().parse::<f64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(()),
            Ok(_) => beyond(format!("{least:.6}"), format!("{most:.6}")),
            Err(_) => Err(wrong("floating point")),
        },
        Kind::Switch => match value.to_ascii_lowercase().as_str() {
            "auto" | "on" | "off" | "true" | "false" | "yes" | "no" | "1" | "0" => Ok(()),
            _ => Err(wrong("enum").with_detail("Valid values are \"on\", \"off\", and \"auto\".")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(PARAMETERS.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn values_are_checked_as_postgresql_does() {
        for (name, value, message) in [
            (
                "fillfactor",
                "9",
                "value 9 out of bounds for option \"fillfactor\"",
            ),
            (
                "fillfactor",
                "x",
                "invalid value for integer option \"fillfactor\": x",
            ),
            (
                "autovacuum_enabled",
                "perhaps",
                "invalid value for boolean option \"autovacuum_enabled\": perhaps",
            ),
            (
                "autovacuum_vacuum_scale_factor",
                "-1",
                "value -1 out of bounds for option \"autovacuum_vacuum_scale_factor\"",
            ),
            (
                "vacuum_index_cleanup",
                "maybe",
                "invalid value for enum option \"vacuum_index_cleanup\": maybe",
            ),
            ("colour", "red", "unrecognized parameter \"colour\""),
        ] {
            let error = check(name, value).unwrap_err();
            assert_eq!(error.message(), message);
            assert_eq!(error.sqlstate(), SqlState::INVALID_PARAMETER_VALUE);
        }
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters =
            StorageParameters::of([given("fillfactor", "70"), given("autovacuum_enabled", "off")]).unwrap();
        assert!(!parameters.is_on("autovacuum_enabled") && parameters.is_on("vacuum_truncate"));
        let changed = parameters.changed(&[("fillfactor".to_owned(), None)]);
        assert_eq!(
            changed.iter().collect::<Vec<_>>(),
            [("autovacuum_enabled", "off")]
        );
        assert!(StorageParameters::of([given("fillfactor", "70"), given("fillfactor", "70")]).is_err());
    }
}
