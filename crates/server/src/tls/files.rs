//! The files of TLS: the server's certificate and key, and the authorities whose word for a client counts.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tracing::{info, warn};

use super::{ALPN, end_point_hash};

/// The settings of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The server's certificate, and those that lead from it to its authority, in PEM.
    pub certificate: PathBuf,
    /// The certificate's key, in PEM.
    pub key: PathBuf,
    /// The authorities whose word for a client counts, in PEM; without, no client's certificate does.
    pub authorities: Option<PathBuf>,
    /// True if TLS 1.2 is refused.
    pub only_1_3: bool,
}

/// The reason why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file is not PEM, or has nothing of what it should have.
    #[error("{} has no {what}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The missing content.
        what: &'static str,
        /// The reader's reason.
        source: rustls::pki_types::pem::Error,
    },
    /// The key may be read by others than its owner.
    #[error("the key {} may be read by its group or by others: chmod 0600 makes it private", path.display())]
    NotPrivate {
        /// The key's file.
        path: PathBuf,
    },
    /// Certificate and key are not a pair, or are of a kind that is not known.
    #[error("{} and {} cannot be used: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The library's reason.
        source: rustls::Error,
    },
    /// A client's settings cannot be used.
    #[error("TLS: {source}")]
    Client {
        /// The library's reason.
        source: rustls::Error,
    },
    /// The authorities cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The library's reason.
        reason: String,
    },
}

/// The contents of the files.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    /// The hash of the certificate that a login binds to, if it has one.
    pub(crate) end_point: Option<Vec<u8>>,
}

/// The files as they were when they were read.
type Stamp = Vec<Option<(u64, u64, i64, i64)>>;

/// The files of a server, as they are now ([rule 3](super)).
#[derive(Debug)]
pub(crate) struct TlsFiles {
    options: TlsOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    loaded: Loaded,
    /// Of the files that were read last, be they good or not.
    stamp: Stamp,
}

impl TlsFiles {
    /// Reads the files; an error if they are not good.
    pub(crate) fn open(options: TlsOptions) -> Result<TlsFiles, TlsError> {
        let stamp = stamp(&options);
        let loaded = load(&options)?;
        Ok(TlsFiles {
            options,
            state: Mutex::new(State { loaded, stamp }),
        })
    }

    /// The files as they are now; as they were, if they are not good now.
    pub(crate) fn now(&self) -> Loaded {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.options);
        if stamp != state.stamp {
            state.stamp = stamp;
            match load(&self.options) {
                Ok(loaded) => {
                    info!("new files of TLS are in use");
                    state.loaded = loaded;
                }
                Err(error) => warn!("the files of TLS stay as they were: {error}"),
            }
        }
        state.loaded.clone()
    }
}

fn stamp(options: &TlsOptions) -> Stamp {
    let of = |metadata: Metadata| {
        (
            metadata.ino(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        )
    };
    let files = [
        Some(&options.certificate),
        Some(&options.key),
        options.authorities.as_ref(),
    ];
    let files = files.into_iter().flatten();
    files.map(|file| std::fs::metadata(file).ok().map(of)).collect()
}

fn load(options: &TlsOptions) -> Result<Loaded, TlsError> {
    require_private(&options.key)?;
    let chain = certificates(&options.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&options.key)?).map_err(|source| TlsError::Content {
        path: options.key.clone(),
        what: "private key",
        source,
    })?;
    let versions: &[&SupportedProtocolVersion] = match options.only_1_3 {
        true => &[&version::TLS13],
        false => &[&version::TLS13, &version::TLS12],
    };
    let pair = |source| TlsError::Pair {
        certificate: options.certificate.clone(),
        key: options.key.clone(),
        source,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(pair)?;
    let builder = match &options.authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let wrong = |reason: String| TlsError::Authorities {
                path: path.clone(),
                reason,
            };
            let roots = authorities(path)?;
            // Who has no certificate is let on: `pg_hba.conf` says who needs one.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| wrong(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let end_point = chain.first().and_then(|first| end_point_hash(first));
    let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Loaded {
        config: Arc::new(config),
        end_point,
    })
}

/// The authorities of a file.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::Authorities {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// The certificates of a file, of which there is at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = |source| TlsError::Content {
        path: path.to_owned(),
        what: "certificate",
        source,
    };
    let bytes = read(path)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(content)?;
    match certificates.is_empty() {
        true => Err(content(rustls::pki_types::pem::Error::NoItemsFound)),
        false => Ok(certificates),
    }
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// As PostgreSQL: of a key that root owns, its group may read.
fn require_private(path: &Path) -> Result<(), TlsError> {
    let metadata = std::fs::metadata(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    match metadata.mode() & forbidden {
        0 => Ok(()),
        _ => Err(TlsError::NotPrivate {
            path: path.to_owned(),
        }),
    }
}
