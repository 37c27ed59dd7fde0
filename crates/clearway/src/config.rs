//! `clearway config`: what a server would make of its configuration, without a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clearway_engine::Config;
use clearway_engine::config::{Origin, is_changeable};
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::{Server, check_rules};

use crate::error::{CommandError, Result, plural};
use crate::options::ConfigOptions;
use crate::output;
use crate::serve::server_options;
use crate::served::LISTEN;

/// Read a configuration as a server would, and tell what it says
///
/// With a data directory, what ALTER SYSTEM wrote there counts too, and the address, pg_hba.conf and the files of TLS are checked,
/// as without one they cannot be. A running
/// server has the same in pg_settings and pg_file_settings, and takes a changed file by "clearway reload".
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway config check --config clearway.toml --data /var/tmp/clearway\n  \
    clearway config show --config clearway.toml work_mem mechanisms.lwlock\n  \
    clearway config diff --data /var/tmp/clearway")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell whether a server would start with it; exit code 1 if not
    Check(Source),
    /// List all keys with their values, and where each value comes from
    Show {
        #[command(flatten)]
        source: Source,
        /// Keys to show; all, if none is named
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
    },
    /// List the keys whose values are not the defaults, and what a change of each needs
    Diff(Source),
}

#[derive(Debug, Args)]
struct Source {
    /// Data directory; otherwise data_directory of the configuration file
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigOptions,
}

impl Source {
    fn read(&self) -> Result<(Config, Option<PathBuf>)> {
        let data = match &self.data {
            Some(data) => Some(data.clone()),
            None => {
                let configured = self.config.load(None)?.data_directory;
                (!configured.is_empty()).then(|| configured.into())
            }
        };
        Ok((self.config.load(data.as_deref())?, data))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Check(source) => check(source),
        Command::Show { source, keys } => show(&source.read()?.0, keys),
        Command::Diff(source) => diff(&source.read()?.0),
    }
}

fn check(source: &Source) -> Result<()> {
    let (mut config, data) = source.read()?;
    if config.listen.is_empty() {
        LISTEN.clone_into(&mut config.listen);
    }
    if let Some(data) = &data {
        let options = server_options(0, data, &config, None);
        check_rules(data, &options.hba_file, options.tls.as_ref())?;
        Server::check(&options)?;
    }
    if !config.primary_conninfo.is_empty() {
        config.primary_conninfo.parse::<ConnInfo>()?;
    }
    let set = config
        .values()
        .iter()
        .filter(|(key, _)| config.origins.of(key).is_some())
        .count();
    let files: Vec<String> = config
        .origins
        .files()
        .map(|file| file.display().to_string())
        .collect();
    match files.is_empty() {
        true => output::line(format_args!("sound: no file, all defaults")),
        false => output::line(format_args!(
            "sound: {} in {}",
            plural(set, "key"),
            files.join(" and ")
        )),
    }
}

/// The place of a key's value, in words.
fn place_of(config: &Config, key: &str) -> String {
    match config.origins.of(key) {
        None => "default".to_owned(),
        Some(Origin::CommandLine) => "command line".to_owned(),
        Some(Origin::File { file, line }) => format!("{}:{line}", file.display()),
    }
}

fn show(config: &Config, keys: &[String]) -> Result<()> {
    let values = config.values();
    if let Some(key) = keys
        .iter()
        .find(|key| !values.iter().any(|(known, _)| known == *key))
    {
        let near =
            Config::nearest_key(key).map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        return Err(CommandError::Usage(format!("there is no key \"{key}\"{near}")));
    }
    for (key, value) in values {
        if keys.is_empty() || keys.contains(&key) {
            output::line(format_args!("{key} = {value}    # {}", place_of(config, &key)))?;
        }
    }
    Ok(())
}

fn diff(config: &Config) -> Result<()> {
    let defaults = Config::default().values();
    for (key, value) in config.values() {
        let default = defaults.iter().find(|(known, _)| *known == key);
        let default = default.map(|(_, default)| default.as_str());
        if default == Some(value.as_str()) {
            continue;
        }
        // That of a session's setting is in the server, not in the configuration.
        let default = default.unwrap_or_default();
        let needs = if is_changeable(&key) { "reload" } else { "restart" };
        let place = place_of(config, &key);
        output::line(format_args!(
            "{key}: {default} -> {value}    # {place}; a change needs a {needs}"
        ))?;
    }
    Ok(())
}
