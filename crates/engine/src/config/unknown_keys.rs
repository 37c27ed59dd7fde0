//! Errors of configuration files in words for their writers.
//!
//! The deserializer lists every key that there is behind one that is not. A reader wants the nearest one.

use super::Config;
use crate::nearest::nearest;
use clearway_sql::error::{EngineError, SqlState};

/// The error of a configuration that could not be read: the line, and of a key that does not exist the nearest one.
pub(super) fn readable(error: &toml::de::Error) -> EngineError {
    let whole = error.to_string();
    let whole = whole.trim_end();
    let Some(name) = unknown_field(error.message()) else {
        return EngineError::new(SqlState::CONFIG_FILE_ERROR, whole.to_owned());
    };
    let place = whole.strip_suffix(error.message().trim_end()).unwrap_or_default();
    let near = nearest_key(name).map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    let message = format!("{place}there is no key \"{name}\"{near}");
    EngineError::new(SqlState::CONFIG_FILE_ERROR, message)
}

/// The key of the configuration that is most like `name`, if any is: `mechanisms.NAME` for a switch.
pub(crate) fn nearest_key(name: &str) -> Option<String> {
    let keys = super::values::values_of(&Config::default());
    nearest(name, keys.iter().map(|(key, _)| key.as_str())).map(str::to_owned)
}

fn unknown_field(message: &str) -> Option<&str> {
    message.split_once("unknown field `")?.1.split('`').next()
}
