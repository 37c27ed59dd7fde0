//! Options that several commands have.

use clearway_latch::SpinPolicy;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clearway_engine::config::Span;
use clearway_engine::{Config, Mechanisms};
use clearway_storage::directory_state::check_access;
use clearway_storage::disk::NativeDiskWithModes;

use crate::error::{CommandError, Result};

/// Source of an engine's configuration.
#[derive(Debug, Clone, Default, Args)]
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
    /// The file, then what ALTER SYSTEM wrote into the data directory, then the preset, then single switches.
    pub(crate) fn load(&self, data: Option<&Path>) -> Result<Config> {
        let mut config = Config::from_files(self.config.as_deref(), data).map_err(CommandError::Config)?;
        if let Some(preset) = &self.preset {
            config.mechanisms = Mechanisms::preset(preset)?;
            for switch in Mechanisms::SWITCHES {
                let key = format!("mechanisms.{}", switch.name);
                config.origins.set_by_command_line(&key);
            }
        }
        for setting in &self.settings {
            config.mechanisms.set(setting)?;
            if let Some((name, _)) = setting.split_once('=') {
                config
                    .origins
                    .set_by_command_line(&format!("mechanisms.{}", name.trim()));
            }
        }
        Ok(config)
    }
}

/// Sets the process's umask so that what it makes is for the owner of the data directory `data`, and for the owner's group
/// if the directory's mode or `group_access` says so. Disk and spill files have such modes of their own; this is for
/// everything else.
///
/// A directory that others may enter, or that another user owns, is refused.
pub(crate) fn keep_private(data: &Path, group_access: bool) -> Result<()> {
    check_access(data)?;
    let disk = NativeDiskWithModes::of(data, group_access);
    let taken = !disk.directory_mode() & 0o777;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(taken));
    Ok(())
}

/// Creates the directory for results and writes a file into it, so that an unwritable directory is an error before the
/// measuring and not after it.
pub(crate) fn check_output_directory(directory: &Path) -> Result<()> {
    let refuse = |error: std::io::Error| {
        CommandError::Usage(format!(
            "cannot write results to {}: {error}",
            directory.display()
        ))
    };
    std::fs::create_dir_all(directory).map_err(refuse)?;
    let probe = directory.join(".clearway-probe");
    std::fs::write(&probe, b"").map_err(refuse)?;
    std::fs::remove_file(&probe).map_err(refuse)
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

/// `50ns`, `1us`, or what [`duration`] takes.
pub(crate) fn short_time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3)];
    let short = units.iter().find_map(|(unit, ns)| {
        let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        Some(number * ns)
    });
    match short {
        Some(ns) => Duration::try_from_secs_f64(ns / 1e9).map_err(|error| error.to_string()),
        None => duration(text).map_err(|_| format!("\"{text}\" is not a time such as 50ns, 1us or 2ms")),
    }
}

/// `none`, `adaptive`, or a number of polls.
pub(crate) fn spin_policy(text: &str) -> Result<SpinPolicy, String> {
    match text {
        "none" => Ok(SpinPolicy::None),
        "adaptive" => Ok(SpinPolicy::Adaptive),
        number => match number.parse() {
            Ok(polls) => Ok(SpinPolicy::Fixed(polls)),
            Err(_) => Err("none, adaptive, or a number of polls such as 100".to_owned()),
        },
    }
}

/// The command as it was typed, but for the binary's directory.
pub(crate) fn command_line() -> String {
    std::iter::once("clearway".to_owned())
        .chain(std::env::args().skip(1))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Says so if numbers from this binary mean nothing.
pub(crate) fn warn_of_debug_build() {
    if cfg!(debug_assertions) {
        clearway_machine::stderr_line(format_args!(
            "This is a debug build: the numbers mean nothing. Use cargo run --release."
        ));
    }
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
        assert_eq!(short_time("50ns"), Ok(Duration::from_nanos(50)));
        assert_eq!(short_time("1us"), Ok(Duration::from_micros(1)));
        assert_eq!(short_time("0"), Ok(Duration::ZERO));
        assert!(short_time("-5ns").is_err());
        assert!(duration("soon").is_err());
        assert!(duration("-1").is_err());
    }

    #[test]
    fn a_place_for_results_is_tried_before_the_measuring() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("a/b");
        check_output_directory(&deep).unwrap();
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0);
        let file = directory.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let error = check_output_directory(&file.join("result")).unwrap_err();
        assert!(error.to_string().contains("cannot write results"), "{error}");
    }
}
