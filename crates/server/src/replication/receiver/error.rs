//! Reasons why log or files could not be received.

use std::io;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use clearway_storage::{Lsn, StorageError};

use crate::wire::WireError;
use crate::wire::backend::Report;

/// A result of the receiver.
pub type Result<T, E = ReceiverError> = std::result::Result<T, E>;

/// The reason why log or files could not be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiverError {
    /// The connection string is none, or asks for what is not there.
    #[error("connection string: {0}")]
    ConnInfo(String),
    /// No connection came about.
    #[error("could not connect to the server at {address}: {source}")]
    Connect {
        /// The server.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The connection is gone.
    #[error("the connection to the server at {address} was lost: {source}")]
    Lost {
        /// The server.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The server has ended the connection.
    #[error("the server at {address} has closed the connection")]
    Closed {
        /// The server.
        address: String,
    },
    /// The server sends nothing, or takes nothing.
    #[error("the server at {address} has been silent for {patience:?} (wal_receiver_timeout)")]
    Silent {
        /// The server.
        address: String,
        /// For how long.
        patience: Duration,
    },
    /// The connection could not be encrypted, or not as it was asked for.
    #[error("the connection to the server at {address}: {problem}")]
    Tls {
        /// The server.
        address: String,
        /// The fault.
        problem: String,
    },
    /// The stop signal was given.
    #[error("stopped")]
    Stopped,
    /// The server does not speak the protocol.
    #[error("the server at {address} broke the protocol: {problem}")]
    Protocol {
        /// The server.
        address: String,
        /// The fault.
        problem: String,
    },
    /// The server has answered with an error.
    #[error("the server at {address} says: {report}")]
    Server {
        /// The server.
        address: String,
        /// Its error message.
        report: Box<Report>,
    },
    /// The server wants to know who we are.
    #[error(
        "the server at {address} wants authentication (method {method}), and there is no password for it, or it is of \
         another kind than SCRAM-SHA-256: give password= or passfile="
    )]
    Authentication {
        /// The server.
        address: String,
        /// The number of the method.
        method: u32,
    },
    /// Another program.
    #[error(
        "the server at {address} is no Clearway server (it calls itself {version}); only the log of a Clearway server can \
         be followed"
    )]
    NotClearway {
        /// The server.
        address: String,
        /// Its name for itself.
        version: String,
    },
    /// Another database.
    #[error(
        "the database at {address} is another one: its system identifier is {theirs}, and that of this directory is \
         {ours}; follow the server that the directory was copied from, or make a new base backup: \"clearway standby\" \
         with the name of an empty directory"
    )]
    OtherSystem {
        /// The server.
        address: String,
        /// The number of the directory's database.
        ours: u64,
        /// The number of the server's database.
        theirs: u64,
    },
    /// A server that this standby has left behind.
    #[error(
        "the server at {address} is on timeline {theirs}, and this standby's log is on timeline {ours}: it was the primary \
         before a promotion, and must not be followed any more"
    )]
    EarlierTimeline {
        /// The server.
        address: String,
        /// Of the directory.
        ours: u32,
        /// Of the server.
        theirs: u32,
    },
    /// The server's log does not continue that of the directory.
    #[error("the log of the server at {address} cannot be followed: {problem}")]
    Diverged {
        /// The server.
        address: String,
        /// The reason.
        problem: String,
    },
    /// The server's log has another past than that of the directory.
    #[error(
        "the log of the server at {address} cannot be followed: from {position} on it continues other records than those that          are here, so the two were written to separately"
    )]
    Unlinked {
        /// The server.
        address: String,
        /// The first record that was refused.
        position: Lsn,
    },
    /// It is not known yet if the server's log continues that of the directory, or the disk failed.
    #[error("the timeline of the server at {address} cannot be followed yet: {problem}")]
    NotYetFollowed {
        /// The server.
        address: String,
        /// The reason.
        problem: String,
    },
    /// The log from the standby's position on is not there any more.
    #[error(
        "the server at {address} no longer has the log from {position} on, which this standby needs next ({report}); make a \
         new base backup: remove the data directory and start \"clearway standby\" again, with --slot and --create-slot so \
         that the log is kept"
    )]
    LogRemoved {
        /// The server.
        address: String,
        /// The end of the standby's log.
        position: Lsn,
        /// The server's error message.
        report: Box<Report>,
    },
    /// The server's log begins behind the end of the directory's.
    #[error(
        "the server at {address} no longer has the log from {position} on, which this standby needs next: its log begins at \
         {begins}; make a new base backup: \"clearway standby\" with the name of an empty directory, with --slot and \
         --create-slot so that the log is kept"
    )]
    LogBeginsLater {
        /// The server.
        address: String,
        /// End of the directory's log.
        position: Lsn,
        /// Beginning of the server's.
        begins: Lsn,
    },
    /// The bytes that were sent are no log.
    #[error(
        "the server at {address} sends no whole log record at {position}: it was changed on its way, or on the server's \
         disk; it is asked for it again (attempt {attempt})"
    )]
    Damaged {
        /// The server.
        address: String,
        /// The start of the bad record.
        position: Lsn,
        /// Number of attempts in a row that got no record there.
        attempt: u32,
    },
    /// A record did not become whole.
    #[error(
        "the server at {address} has sent the beginning of a log record at {position}, and nothing more for {patience:?}; it \
         is asked for it again"
    )]
    Unfinished {
        /// The server.
        address: String,
        /// The start of the record.
        position: Lsn,
        /// For how long.
        patience: Duration,
    },
    /// There is no use in log that cannot be replayed, and none may be acknowledged.
    #[error("replay has failed, so no more log is received or acknowledged: {problem}")]
    ReplayFailed {
        /// The reason.
        problem: String,
    },
    /// The data directory.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ReceiverError {
    /// True if it would be the same at the next attempt, and the one after that.
    pub fn is_final(&self) -> bool {
        match self {
            ReceiverError::ConnInfo(_)
            | ReceiverError::NotClearway { .. }
            | ReceiverError::OtherSystem { .. }
            | ReceiverError::Diverged { .. }
            | ReceiverError::Unlinked { .. }
            | ReceiverError::ReplayFailed { .. }
            | ReceiverError::LogRemoved { .. }
            | ReceiverError::LogBeginsLater { .. } => true,
            // Space may be made.
            ReceiverError::Storage(error) => !error.wants_room(),
            _ => false,
        }
    }

    /// True if the database here can only follow the server after its files were rewound, or copied from it anew.
    pub fn needs_copy(&self) -> bool {
        matches!(
            self,
            ReceiverError::Diverged { .. }
                | ReceiverError::Unlinked { .. }
                | ReceiverError::LogRemoved { .. }
                | ReceiverError::LogBeginsLater { .. }
        )
    }

    /// True if a changed byte on the connection may be the cause: then one more attempt tells.
    pub(super) fn is_hearsay(&self) -> bool {
        matches!(
            self,
            ReceiverError::NotClearway { .. }
                | ReceiverError::OtherSystem { .. }
                | ReceiverError::LogRemoved { .. }
                | ReceiverError::LogBeginsLater { .. }
                | ReceiverError::Unlinked { .. }
        )
    }

    /// The kind of the error, so that attempts that fail in the same way are logged once.
    pub(crate) fn kind(&self) -> (Discriminant<ReceiverError>, String) {
        let detail = match self {
            ReceiverError::Server { report, .. } => report.sqlstate.clone(),
            ReceiverError::Connect { source, .. } | ReceiverError::Lost { source, .. } => {
                format!("{:?}", source.kind())
            }
            _ => String::new(),
        };
        (discriminant(self), detail)
    }

    pub(crate) fn wire(address: &str, error: &WireError) -> ReceiverError {
        ReceiverError::Protocol {
            address: address.to_owned(),
            problem: error.to_string(),
        }
    }
}
