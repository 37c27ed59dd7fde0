//! Options about etcd, which `clearway node` and `clearway cluster` have.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clearway_node::cluster_state::prefix;
use clearway_node::etcd::{Etcd, EtcdOptions};

use crate::error::{CommandError, Result};

/// The etcd that a cluster is agreed through.
#[derive(Debug, Args)]
pub(crate) struct EtcdArguments {
    /// Endpoints of etcd: one or more of HTTPS, separated by commas, or of HTTP for one on this machine
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true)]
    etcd: Vec<String>,
    /// Certificates (PEM) that the endpoints' are checked with
    #[arg(long, value_name = "FILE")]
    etcd_cacert: Option<PathBuf>,
    /// Certificate (PEM) by which etcd knows this client
    #[arg(long, value_name = "FILE")]
    etcd_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE")]
    etcd_key: Option<PathBuf>,
    /// User of etcd
    #[arg(long, value_name = "NAME")]
    etcd_user: Option<String>,
    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE")]
    etcd_passfile: Option<PathBuf>,
    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    cluster: String,
}

impl EtcdArguments {
    /// The number of endpoints.
    pub(crate) fn endpoints(&self) -> usize {
        self.etcd.len()
    }

    /// A client that gives each endpoint `patience`.
    pub(crate) fn client(&self, patience: Duration) -> Result<Etcd> {
        check_name("cluster", &self.cluster)?;
        let options = EtcdOptions {
            endpoints: self.etcd.clone(),
            cacert: self.etcd_cacert.clone(),
            cert: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
            user: self.etcd_user.clone(),
            passfile: self.etcd_passfile.clone(),
        };
        Ok(Etcd::new(&options, prefix(&self.cluster), patience)?)
    }
}

/// A name that is a part of etcd's keys, of connection strings and of settings.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match (1..=63).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(CommandError::Usage(format!(
            "the name of a {what} has letters, digits, '-', '_' and '.', 63 at most, not \"{name}\""
        ))),
    }
}
