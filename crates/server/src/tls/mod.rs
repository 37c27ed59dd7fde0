//! TLS: which connections are encrypted, by which certificate, and by whose word.
//!
//! ```text
//!   SSLRequest ─▶ 'S' ─▶ handshake ─▶ StartupMessage …           every driver
//!   ClientHello with ALPN "postgresql" ─▶ handshake ─▶ …          sslnegotiation=direct
//! ```
//!
//! `rustls` speaks TLS 1.2 and 1.3, with the cryptography of `ring`. The rest is here: [`files`] reads the certificate, its
//! key and the authorities of clients; [`stream`] puts records between a session and its socket; [`certificate`] looks into
//! certificates for channel binding and for the names of clients.
//!
//! # Rules
//!
//! 1. What arrives before the handshake is no part of what is encrypted: bytes behind an SSLRequest end the connection.
//! 2. A handshake has the time that a login has, from the connection's start, and memory for one record.
//! 3. The files are looked at for each connection that asks for TLS; those that have changed hold from then on, and sessions
//!    that there are keep theirs. Files that do not fit together (half of a new pair is there) are not taken: the old
//!    ones stay, and the log says why.
//! 4. A Unix-domain socket is never encrypted; nor is anything where `ssl` is off.

mod certificate;
pub(crate) mod client;
mod files;
pub(crate) mod stream;

pub(crate) use certificate::{common_name, end_point_hash};
pub(crate) use files::TlsFiles;
pub use files::{TlsError, TlsOptions};

/// The protocol's name, by which a handshake without an SSLRequest says what it is for.
pub(crate) const ALPN: &[u8] = b"postgresql";
