//! State that the connections of a server share, for SQL and for replication, and the end of each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clearway_engine::{EngineError, SqlState};
use tracing::debug;

use crate::attempts::Attempts;
use crate::channel::Channel;
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
    pub(crate) message_bytes_max: u32,
    pub(crate) attempts: Attempts,
    /// Present if connections may be encrypted.
    pub(crate) tls: Option<TlsFiles>,
}

impl Shared {
    pub(crate) fn new(sessions_max: usize, message_bytes_max: u32, tls: Option<TlsFiles>) -> Shared {
        Shared {
            registry: Arc::default(),
            sessions: AtomicUsize::new(0),
            sessions_max,
            message_bytes_max,
            attempts: Attempts::default(),
            tls,
        }
    }

    /// A place for a session, if there is one.
    pub(crate) fn take_place(&self) -> Option<Place<'_>> {
        let taken = self
            .sessions
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.sessions_max).then_some(taken + 1)
            });
        taken.is_ok().then(|| Place(&self.sessions))
    }
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
