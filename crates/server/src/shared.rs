//! State that the connections of a server share, for SQL and for replication, and the end of each connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clearway_engine::{EngineError, SqlState};
use tracing::debug;

use crate::answer_deadline::AnswerDeadline;
use crate::attempts::Attempts;
use crate::channel::Channel;
use crate::options::ServerOptions;
use crate::reader::ReadError;
use crate::registry::Registry;
use crate::tls::TlsFiles;
use crate::wire::WireError;

/// State that all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    sessions: AtomicUsize,
    pub(crate) sessions_max: usize,
    /// As many of them are superusers'.
    reserved: usize,
    pub(crate) authentication_timeout: Duration,
    pub(crate) message_bytes_max: u32,
    pub(crate) attempts: Attempts,
    /// The rules for logins.
    pub(crate) hba_file: PathBuf,
    /// Present if connections may be encrypted.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) answer_deadline: Option<AnswerDeadline>,
}

impl Shared {
    /// `sessions_max`: what the process's files leave of the options' number.
    pub(crate) fn new(options: &ServerOptions, sessions_max: usize, tls: Option<TlsFiles>) -> Shared {
        Shared {
            registry: Arc::default(),
            sessions: AtomicUsize::new(0),
            sessions_max,
            reserved: options
                .superuser_reserved_connections
                .min(sessions_max.saturating_sub(1)),
            authentication_timeout: options.authentication_timeout,
            message_bytes_max: options.message_bytes_max,
            attempts: Attempts::default(),
            hba_file: options.hba_file.clone(),
            tls,
            answer_deadline: options.answer_deadline.clone(),
        }
    }

    /// A place for a session of a client that has logged in; 53300 if there is none.
    pub(crate) fn take_place(&self, is_superuser: bool) -> Result<Place<'_>, EngineError> {
        let open = match is_superuser {
            true => self.sessions_max,
            false => self.sessions_max - self.reserved,
        };
        let taken = self
            .sessions
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < open).then_some(taken + 1)
            });
        match taken {
            Ok(_) => Ok(Place(&self.sessions)),
            Err(taken) if taken < self.sessions_max => Err(EngineError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                "remaining connection slots are reserved for non-replication superuser connections",
            )),
            Err(_) => Err(too_many()),
        }
    }
}

/// 53300
pub(crate) fn too_many() -> EngineError {
    EngineError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

/// A session's place among those allowed.
pub(crate) struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection's reads have ended: says so if anyone may be listening.
pub(crate) fn end(channel: &mut Channel, shared: &Shared, error: &ReadError) {
    match error {
        ReadError::Wire(error) => channel.fatal(&wire_error(error)),
        ReadError::Refused { error, .. } => channel.fatal(error),
        _ if shared.registry.is_stopping() => channel.fatal(&shutting_down()),
        ReadError::Closed => {}
        ReadError::Io(error) => debug!("a connection ended: {error}"),
    }
}

/// The error of a message that breaks the protocol.
pub(crate) fn wire_error(error: &WireError) -> EngineError {
    EngineError::new(SqlState::from_code(error.sqlstate()), error.to_string())
}

pub(crate) fn shutting_down() -> EngineError {
    EngineError::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}
