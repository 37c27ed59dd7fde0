//! The settings by which plans of slow statements are told to the server's log.

use std::time::Duration;

use super::values::parse_milliseconds;
use clearway_sql::explained::{ExplainFormat, ExplainOptions};

/// Values of `auto_explain.…`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AutoExplain {
    /// The time from which on the plan of a statement is told; `None`: never.
    pub(crate) least: Option<Duration>,
    /// The form of the plan.
    pub(crate) options: ExplainOptions,
}

impl Default for AutoExplain {
    fn default() -> AutoExplain {
        AutoExplain {
            least: None,
            options: ExplainOptions {
                // The time of the whole stands in front.
                summary: Some(false),
                ..ExplainOptions::default()
            },
        }
    }
}

impl AutoExplain {
    /// Takes over the value of a setting; `name` is without its group.
    pub(super) fn apply(&mut self, name: &str, value: &str) {
        let options = &mut self.options;
        let on = value == "on";
        match name {
            "log_min_duration" => {
                let least = parse_milliseconds(value).and_then(|ms| u64::try_from(ms).ok());
                self.least = least.map(Duration::from_millis);
            }
            "log_analyze" => options.analyze = on,
            "log_buffers" => options.buffers = on,
            "log_settings" => options.settings = on,
            "log_timing" => options.timing = Some(on),
            "log_verbose" => options.verbose = on,
            "log_wal" => options.wal = on,
            "log_format" => {
                options.format = match value {
                    "xml" => ExplainFormat::Xml,
                    "json" => ExplainFormat::Json,
                    "yaml" => ExplainFormat::Yaml,
                    _ => ExplainFormat::Text,
                }
            }
            _ => {}
        }
    }
}
