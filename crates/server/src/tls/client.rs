//! The client's side: a standby that follows another machine.
//!
//! | `sslmode` | the connection | the server |
//! | --- | --- | --- |
//! | `disable` | is not encrypted | |
//! | `allow`, `prefer` | is encrypted if the server can | is not known |
//! | `require` | is encrypted | is not known, unless `sslrootcert` is given: then as `verify-ca` |
//! | `verify-ca` | is encrypted | has a certificate of `sslrootcert` |
//! | `verify-full` | is encrypted | and the certificate has the name of the host |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::ALPN;
use super::files::{TlsError, authorities, certificates, read};

/// The demands of a client on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SslMode {
    /// No encryption.
    Disable,
    /// Encryption, if the server can.
    #[default]
    Prefer,
    /// Encryption.
    Require,
    /// And a server that an authority has vouched for.
    VerifyCa,
    /// And that has the name of the host.
    VerifyFull,
}

/// The demands of a client on its login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BindingMode {
    /// It is not bound to the server's certificate.
    Disable,
    /// It is where both sides can.
    #[default]
    Prefer,
    /// It is, or fails.
    Require,
}

/// A client's settings of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// `sslmode`
    pub mode: SslMode,
    /// `channel_binding`
    pub binding: BindingMode,
    /// `sslrootcert`
    pub authorities: Option<PathBuf>,
    /// `sslcert` and `sslkey`
    pub certificate: Option<(PathBuf, PathBuf)>,
}

const MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("prefer", SslMode::Prefer),
    ("allow", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

const BINDINGS: [(&str, BindingMode); 3] = [
    ("disable", BindingMode::Disable),
    ("prefer", BindingMode::Prefer),
    ("require", BindingMode::Require),
];

/// The value of a name.
fn of_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let mut rows = table.iter();
    rows.find_map(|(known, value)| (*known == name).then_some(*value))
}

/// The name of a value.
fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> String {
    let mut rows = table.iter();
    let found = rows.find_map(|(name, known)| (known == value).then_some(*name));
    found.unwrap_or_default().to_owned()
}

impl SslMode {
    /// The mode of this name.
    pub(crate) fn named(name: &str) -> Option<SslMode> {
        of_name(&MODES, name)
    }
}

impl BindingMode {
    /// The mode of this name.
    pub(crate) fn named(name: &str) -> Option<BindingMode> {
        of_name(&BINDINGS, name)
    }
}

impl ClientTls {
    /// The words of a connection string that say what differs from the defaults.
    pub(crate) fn words(&self) -> Vec<(&'static str, String)> {
        let mut words = Vec::new();
        if self.mode != SslMode::default() {
            words.push(("sslmode", name_of(&MODES, &self.mode)));
        }
        if self.binding != BindingMode::default() {
            words.push(("channel_binding", name_of(&BINDINGS, &self.binding)));
        }
        let path = |path: &Path| path.to_string_lossy().into_owned();
        if let Some(file) = &self.authorities {
            words.push(("sslrootcert", path(file)));
        }
        if let Some((certificate, key)) = &self.certificate {
            words.extend([("sslcert", path(certificate)), ("sslkey", path(key))]);
        }
        words
    }

    /// Reads the files.
    pub(crate) fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier {
            trusted: match (&self.authorities, self.mode) {
                (Some(file), mode) if mode >= SslMode::Require => Some(trusted(file, &provider)?),
                _ => None,
            },
            by_name: self.mode == SslMode::VerifyFull,
            provider: Arc::clone(&provider),
        };
        let unusable = |source| TlsError::Client { source };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let wrong = |source| TlsError::Content {
                    path: key.clone(),
                    what: "private key",
                    source,
                };
                let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(wrong)?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|source| TlsError::Pair {
                        certificate: certificate.clone(),
                        key: key.clone(),
                        source,
                    })?
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }
}

fn trusted(file: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let roots = Arc::new(authorities(file)?);
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| TlsError::Authorities {
            path: file.to_owned(),
            reason: error.to_string(),
        })
}

/// Looks at a server's certificate as `sslmode` says. That the server has the certificate's key is checked in any mode.
#[derive(Debug)]
struct Verifier {
    /// Absent where any server will do.
    trusted: Option<Arc<WebPkiServerVerifier>>,
    by_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        match trusted.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: the rest was good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.by_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
