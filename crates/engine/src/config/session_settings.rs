//! Values of SQL settings for sessions that set no other: the keys `settings.NAME`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::{Config, require};
use crate::settings::Settings;
use clearway_sql::error::EngineError;

/// The group of these keys, with the dot behind it.
const GROUP: &str = "settings.";

/// A setting's value as SET takes it; a file may have a number or a truth value for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SettingText(pub String);

impl<'de> Deserialize<'de> for SettingText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SettingText, D::Error> {
        struct AnyValue;
        impl Visitor<'_> for AnyValue {
            type Value = SettingText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or a truth value")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<SettingText, E> {
                Ok(SettingText(text.to_owned()))
            }
            fn visit_bool<E: Error>(self, is_on: bool) -> Result<SettingText, E> {
                Ok(SettingText(if is_on { "on" } else { "off" }.to_owned()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<SettingText, E> {
                Ok(SettingText(number.to_string()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<SettingText, E> {
                Ok(SettingText(number.to_string()))
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

/// The values by the settings' names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize)]
#[serde(transparent)]
pub struct SessionSettings(pub BTreeMap<String, SettingText>);

/// The key of a setting.
pub(crate) fn key_of_setting(setting: &str) -> String {
    format!("{GROUP}{setting}")
}

/// The setting of a key, if it is one of these.
pub fn setting_of_key(key: &str) -> Option<&str> {
    key.strip_prefix(GROUP)
}

impl Config {
    /// The SQL settings whose defaults are keys of their own, with the values that these say.
    pub(crate) fn values_of_settings(&self) -> Vec<(&'static str, String)> {
        /// The most that a setting takes.
        const MOST: u64 = i32::MAX as u64;
        let never = || "-1".to_owned();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).map_or(MOST, |ms| ms.min(MOST));
        let duration = self.log_min_duration_statement.duration();
        let size = self.log_temp_files.bytes();
        let tracking = &self.pg_stat_statements;
        let deadlock_timeout = milliseconds(self.deadlock_timeout.duration()).max(1);
        vec![
            ("synchronous_commit", self.synchronous_commit.name().to_owned()),
            (
                "synchronous_standby_names",
                self.synchronous_standby_names.clone(),
            ),
            ("max_connections", self.max_connections.to_string()),
            ("deadlock_timeout", deadlock_timeout.to_string()),
            ("work_mem", format!("{}kB", self.work_mem.bytes() >> 10)),
            (
                "log_lock_waits",
                if self.log_lock_waits { "on" } else { "off" }.to_owned(),
            ),
            ("log_statement", self.log_statement.word().to_owned()),
            (
                "log_min_duration_statement",
                duration.map_or_else(never, |least| milliseconds(least).to_string()),
            ),
            (
                "log_temp_files",
                size.map_or_else(never, |least| (least >> 10).min(MOST).to_string()),
            ),
            ("pg_stat_statements.max", tracking.max.to_string()),
            ("pg_stat_statements.track", tracking.track.word().to_owned()),
            ("datestyle", self.datestyle.clone()),
            ("timezone", self.timezone.clone()),
        ]
    }

    /// Refuses names and values that SET would refuse, and keys of the configuration.
    pub(super) fn check_session_settings(&self) -> Result<(), EngineError> {
        let mut settings = Settings::new();
        for (name, value) in &self.settings.0 {
            let key = key_of_setting(name);
            require(&key, Settings::is_for_sessions(name), || {
                "is no setting that sessions can change".to_owned()
            })?;
            let taken = settings.set_default(name, &value.0);
            require(&key, taken.is_ok(), || {
                taken.map_or_else(
                    |error| format!("is refused: {}", error.message()),
                    |()| String::new(),
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting with a key of its own is refused as `settings.NAME`: the two would say different things of it.
    #[test]
    fn a_setting_with_a_key_of_its_own_has_no_other() {
        let values = Config::default().values_of_settings();
        let mut changeable = Vec::new();
        for (name, value) in &values {
            assert!(!Settings::is_for_sessions(name), "{name}");
            assert!(Settings::is_known(name), "{name}");
            if Settings::new().set(name, Some(value), false, false).is_ok() {
                changeable.push(*name);
            }
        }
        changeable.sort_unstable();
        assert_eq!(changeable, Settings::keys_of_configuration());
    }

    #[test]
    fn settings_are_checked_as_set_checks_them() {
        let text = "[settings]\nlock_timeout = \"5s\"\nenable_seqscan = false\nrandom_page_cost = 1.5\ngeqo_effort = 3";
        let config = Config::from_toml(text).unwrap();
        let shown: Vec<_> = config
            .settings
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.0.as_str()))
            .collect();
        let expected = [
            ("enable_seqscan", "off"),
            ("geqo_effort", "3"),
            ("lock_timeout", "5s"),
            ("random_page_cost", "1.5"),
        ];
        assert_eq!(shown, expected);
        let again = toml::to_string(&config).unwrap();
        assert_eq!(Config::from_toml(&again).unwrap(), config);
        for (line, told) in [
            ("lock_timeot = 1", "settings.lock_timeot is no setting"),
            ("server_version = \"16\"", "settings.server_version is no setting"),
            ("role = \"joe\"", "settings.role is no setting"),
            ("work_mem = \"8MB\"", "settings.work_mem is no setting"),
            ("lock_timeout = \"soon\"", "settings.lock_timeout is refused: "),
            ("enable_seqscan = 2.5", "settings.enable_seqscan is refused: "),
        ] {
            let error = Config::from_toml(&format!("[settings]\n{line}")).unwrap_err();
            assert!(error.message().contains(told), "{line}: {error}");
        }
    }
}
