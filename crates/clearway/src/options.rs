//! Options that several commands have.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clearway_engine::config::Span;
use clearway_engine::{Config, Mechanisms};

use crate::error::{CommandError, Result};

/// Where an engine's configuration comes from.
#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    /// Configuration file (TOML); every setting has a default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Preset of the mechanisms: classic (what databases ship) or clearway (our best, the default)
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Choose the variant of a mechanism, e.g. --set lwlock=queued; see `clearway mechanisms`
    #[arg(long = "set", value_name = "NAME=VARIANT")]
    settings: Vec<String>,
}

impl ConfigOptions {
    /// The file, then the preset, then single switches.
    pub(crate) fn load(&self) -> Result<Config> {
        let mut config = match &self.config {
            Some(path) => Config::from_file(path).map_err(CommandError::Config)?,
            None => Config::default(),
        };
        if let Some(preset) = &self.preset {
            config.mechanisms = Mechanisms::preset(preset)?;
        }
        for setting in &self.settings {
            config.mechanisms.set(setting)?;
        }
        Ok(config)
    }
}

/// `3s`, `500ms`, `1.5s`, `2min`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    if let Some(seconds) = text
        .strip_suffix('s')
        .and_then(|number| number.parse::<f64>().ok())
    {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    text.parse::<Span>().map(Span::duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("soon").is_err());
        assert!(duration("-1").is_err());
    }
}
