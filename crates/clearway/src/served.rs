//! The data directory of a server, and the addresses at which it serves it.
//!
//! The command line counts more than what ALTER SYSTEM wrote, and that more than the configuration file
//! ([`clearway_engine::config`]). The data directory itself can only be said by the first or the last.

use std::path::{Path, PathBuf};

use clap::Args;
use clearway_engine::Config;

use crate::error::{CommandError, Result};
use crate::options::ConfigOptions;

/// Address of a server if nothing says another one.
pub(crate) const LISTEN: &str = "127.0.0.1:5433";
/// Address of a standby if nothing says another one.
pub(crate) const LISTEN_STANDBY: &str = "127.0.0.1:5434";

/// Data directory, addresses and configuration of a server.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServedOptions {
    /// Data directory; otherwise data_directory of the configuration file
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address to listen on, loopback only without TLS; "none" for Unix-domain sockets alone. Otherwise listen of the
    /// configuration, 127.0.0.1:5433, or 5434 of a standby
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Directory for a Unix-domain socket, `.s.PGSQL.<port>`; otherwise socket_dir of the configuration
    #[arg(long, value_name = "DIR")]
    socket_dir: Option<PathBuf>,
    /// Port in the Unix-domain socket's name, if it differs from that of --listen
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    #[command(flatten)]
    config: ConfigOptions,
}

impl ServedOptions {
    /// The data directory.
    pub(crate) fn data(&self) -> Result<PathBuf> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let configured = self.config.load(None)?.data_directory;
        if configured.is_empty() {
            return Err(CommandError::Usage(
                "which data directory? Give --data DIR, or set data_directory in the configuration file"
                    .to_owned(),
            ));
        }
        Ok(configured.into())
    }

    /// The configuration, with the place and the addresses that count; `listen` is the address if nothing says one. The file
    /// of ALTER SYSTEM is in `auto`, which is the data directory, or was.
    pub(crate) fn load(&self, data: &Path, auto: &Path, listen: &str) -> Result<Config> {
        let mut config = self.config.load(Some(auto))?;
        let origins = &mut config.origins;
        config.data_directory = data.display().to_string();
        if self.data.is_some() {
            origins.set_by_command_line("data_directory");
        }
        if let Some(given) = &self.listen {
            config.listen.clone_from(given);
            origins.set_by_command_line("listen");
        } else if config.listen.is_empty() {
            listen.clone_into(&mut config.listen);
        }
        if let Some(given) = &self.socket_dir {
            config.socket_dir = given.display().to_string();
            origins.set_by_command_line("socket_dir");
        }
        Ok(config)
    }
}

/// The directory of the Unix-domain socket, if there is to be one.
pub(crate) fn socket_dir(config: &Config) -> Option<&Path> {
    (!config.socket_dir.is_empty()).then(|| Path::new(&config.socket_dir))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clearway_engine::config::{AUTO_FILE, Origin};

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        served: ServedOptions,
    }

    fn options(arguments: &[&str]) -> ServedOptions {
        let program = std::iter::once(&"clearway").chain(arguments);
        Arguments::try_parse_from(program).unwrap().served
    }

    #[test]
    fn the_file_says_what_is_served_and_the_command_line_counts_more() {
        let place = tempfile::tempdir().unwrap();
        let (file, data) = (place.path().join("clearway.toml"), place.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        let text = format!(
            "data_directory = {:?}\nlisten = \"127.0.0.1:6000\"\nsocket_dir = \"/tmp\"\n",
            data.display().to_string()
        );
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let served = options(&["--config", file]);
        assert_eq!(served.data().unwrap(), data);
        let config = served.load(&data, &data, LISTEN).unwrap();
        assert_eq!(
            (&*config.listen, socket_dir(&config)),
            ("127.0.0.1:6000", Some(Path::new("/tmp")))
        );
        std::fs::write(data.join(AUTO_FILE), "listen = \"127.0.0.1:6001\"\n").unwrap();
        assert_eq!(
            served.load(&data, &data, LISTEN).unwrap().listen,
            "127.0.0.1:6001"
        );

        let served = options(&["--config", file, "--listen", "none", "--data", "/else"]);
        assert_eq!(served.data().unwrap(), Path::new("/else"));
        let config = served.load(Path::new("/else"), &data, LISTEN).unwrap();
        assert_eq!((&*config.listen, &*config.data_directory), ("none", "/else"));
        assert_eq!(config.origins.of("listen"), Some(&Origin::CommandLine));
    }

    #[test]
    fn without_a_word_the_address_is_the_commands_and_the_directory_is_asked_for() {
        let error = options(&[]).data().unwrap_err();
        assert!(error.to_string().contains("data_directory"), "{error}");
        let data = Path::new("/nowhere");
        let config = options(&[]).load(data, data, LISTEN_STANDBY).unwrap();
        assert_eq!((&*config.listen, socket_dir(&config)), (LISTEN_STANDBY, None));
    }
}
