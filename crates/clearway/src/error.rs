//! Errors of a command.

use std::path::{Path, PathBuf};

use clearway_engine::EngineError;
use clearway_engine::mechanisms::MechanismError;
use clearway_lab::LabError;
use clearway_node::NodeError;
use clearway_server::ServerError;
use clearway_server::replication::receiver::ReceiverError;
use clearway_storage::StorageError;

pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

/// An error of a command, in words for the terminal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Cluster(#[from] NodeError),
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    #[error("{what} {}: {source}", .path.display())]
    Database {
        what: &'static str,
        path: PathBuf,
        source: EngineError,
    },
    #[error("{0}")]
    Config(EngineError),
    #[error("{what}: {source}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
    #[error("{} cannot be written: {source}", .path.display())]
    NotWritten { path: PathBuf, source: std::io::Error },
    #[error("{} in {}; they are listed above", plural(*.count, "problem"), .path.display())]
    Damaged { count: usize, path: PathBuf },
    #[error("{0}")]
    NotChecked(Box<CommandError>),
    #[error("no server runs on {}", .path.display())]
    NotRunning { path: PathBuf },
    #[error("{}: {source}", .path.display())]
    NoDirectory { path: PathBuf, source: std::io::Error },
    /// A node cannot go on.
    #[error("{0}")]
    Node(String),
    /// There is no such program.
    #[error("{0}")]
    NoProgram(String),
    /// A program cannot be run as was asked.
    #[error("{0}")]
    CannotRun(String),
    #[error("{0}")]
    Usage(String),
}

impl CommandError {
    /// The command's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // `check` found nothing wrong, for it could not look.
            CommandError::NotChecked(_) => 2,
            // As those of pg_ctl.
            CommandError::NotRunning { .. } => 3,
            CommandError::NoDirectory { .. } => 4,
            // As those of env, nice and timeout.
            CommandError::CannotRun(_) => 126,
            CommandError::NoProgram(_) => 127,
            _ => 1,
        }
    }

    pub(crate) fn database(what: &'static str, path: &Path) -> impl FnOnce(EngineError) -> CommandError {
        let path = path.to_owned();
        move |source| CommandError::Database { what, path, source }
    }

    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> CommandError {
        move |source| CommandError::Io { what, source }
    }
}

/// `1 problem`, `2 problems`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
