//! Reasons why a server could not start or had to stop.

use std::io;
use std::path::PathBuf;

use clearway_engine::EngineError;

use crate::tls::TlsError;

/// A result of this crate.
pub type Result<T, E = ServerError> = std::result::Result<T, E>;

/// The reason why a server could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address to listen on is not an address.
    #[error("cannot listen on \"{address}\": {source}")]
    Address {
        /// As it was given.
        address: String,
        /// The fault.
        source: io::Error,
    },
    /// The address is reachable from other machines.
    #[error(
        "refusing to listen on {address} without TLS: each machine on the way could read and change everything. Listen on \
         127.0.0.1, or let clients in by these three lines:\n  \
         clearway cert --data DIR                                                 a certificate\n  \
         echo 'hostssl all,replication all all scram-sha-256' >> DIR/pg_hba.conf  who may enter, by password\n  \
         ssl = \"on\"                                                               in the file of --config"
    )]
    NotLoopback {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// The files of TLS cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// A file of rules that is not understood.
    #[error("{0}; no client could connect")]
    Rules(String),
    /// Neither an address nor a socket directory was given.
    #[error("nothing to listen on: give an address, a socket directory, or both")]
    NothingToListenOn,
    /// Another server has this Unix-domain socket.
    #[error("another server{} uses the socket {}", .process.map(|id| format!(" (process {id})")).unwrap_or_default(), .path.display())]
    SocketInUse {
        /// The socket.
        path: PathBuf,
        /// The process that wrote the lock file, if it is known.
        process: Option<u32>,
    },
    /// The socket's path is longer than the operating system allows.
    #[error("the socket path {} has {length} bytes; at most {limit} are possible", .path.display())]
    SocketPathTooLong {
        /// The socket.
        path: PathBuf,
        /// Its length.
        length: usize,
        /// The longest possible.
        limit: usize,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// The attempted operation.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The engine failed while it was being closed.
    #[error("closing the database: {0}")]
    Engine(#[from] EngineError),
}

impl ServerError {
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> ServerError {
        ServerError::Io {
            what: what.into(),
            source: source.into(),
        }
    }
}
