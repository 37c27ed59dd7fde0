//! Errors of a node and of the commands about a cluster.

/// A result of this crate.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

/// The reason why something about a cluster failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// An option that cannot be.
    #[error("{0}")]
    Option(String),
    /// A file that cannot be read.
    #[error("reading {}: {source}", .path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The fault.
        source: std::io::Error,
    },
    /// No endpoint of etcd has answered in time.
    #[error("etcd does not answer: {0}")]
    Unreachable(String),
    /// etcd has refused a request.
    #[error("etcd refuses: {0}")]
    Refused(String),
    /// An answer of etcd that is not understood.
    #[error("an answer of etcd is not understood: {0}")]
    Answer(String),
    /// The wish of an operator is not possible.
    #[error("{0}")]
    Cluster(String),
    /// The checks' address cannot be listened on.
    #[error("listening on {address} for checks: {source}")]
    Listen {
        /// As it was given.
        address: String,
        /// The fault.
        source: std::io::Error,
    },
}
