//! `clearway cert`: a certificate for a server, signed by itself.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd};

use crate::error::{CommandError, Result};
use crate::output::notice;

/// Make a certificate, so that clients can encrypt their connections
///
/// Writes server.crt and server.key into the data directory. `clearway serve` uses them from the next connection on. The
/// certificate is signed by itself: a client that has a copy of server.crt as its sslrootcert knows the server by it
/// (sslmode=verify-full). Where an authority signs certificates, put its files in their place.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway cert --data /var/tmp/clearway\n  \
    clearway cert --data /var/tmp/clearway --name db.example.org --name 192.0.2.7\n\n\
    Then, at the client, with a copy of server.crt:\n  \
    psql 'host=db.example.org sslmode=verify-full sslrootcert=server.crt user=me dbname=postgres'")]
pub(crate) struct Arguments {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Name or address by which clients reach the server; may be given several times. Without: localhost, 127.0.0.1, ::1 and
    /// the machine's name
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Replace the certificate and the key that are there
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let data = &arguments.data;
    if !data.is_dir() {
        let text = format!(
            "{} is not a directory; `clearway init --data {0}` makes one",
            data.display()
        );
        return Err(CommandError::Usage(text));
    }
    let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
    for file in [&certificate, &key] {
        if !arguments.replace && file.exists() {
            let text = format!("{} is there; --replace makes a new one", file.display());
            return Err(CommandError::Usage(text));
        }
    }
    let names = match arguments.names.is_empty() {
        true => usual_names(),
        false => arguments.names.clone(),
    };
    let (certificate_text, key_text) = make(&names)?;
    // The key first: a certificate without its key would keep the server from starting, a key alone would not.
    write(&key, &key_text, 0o600)?;
    write(&certificate, &certificate_text, 0o644)?;
    notice(format_args!(
        "wrote {} and server.key for {}; a server that runs without them has to be started again",
        certificate.display(),
        names.join(", ")
    ));
    Ok(())
}

/// The names of this machine.
fn usual_names() -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if !host.is_empty() && host != "localhost" {
        names.push(host.to_owned());
    }
    names
}

/// A certificate for these names and its key, in PEM.
fn make(names: &[String]) -> Result<(String, String)> {
    let failed = |error: rcgen::Error| {
        CommandError::Usage(format!("no certificate for {}: {error}", names.join(", ")))
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut params = CertificateParams::new(names).map_err(failed)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, names[0].as_str());
    params.distinguished_name = subject;
    // Signed by itself, it has no authority whose life would end it.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 12, 31);
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Writes beside the file and gives it the name, so that a server never reads half of it.
fn write(file: &Path, text: &str, mode: u32) -> Result<()> {
    let new = file.with_extension("new");
    let written = std::fs::remove_file(&new)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
        .and_then(|()| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&new)
        })
        .and_then(|mut made| made.write_all(text.as_bytes()).and_then(|()| made.sync_all()))
        .and_then(|()| std::fs::rename(&new, file));
    written.map_err(|source| CommandError::Io {
        what: "writing the certificate",
        source,
    })
}
