//! Both directions of a connection.

use std::sync::{Arc, OnceLock};

use clearway_engine::{EngineError, StatementWatch};

use crate::codec;
use crate::reader::{FrameReader, ReadError};
use crate::registry::Presence;
use crate::socket::Socket;
use crate::wake::Event;
use crate::writer::WriteBuffer;

/// A connection as its session reads from it and writes to it.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) socket: Arc<Socket>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) reader: FrameReader,
    pub(crate) out: WriteBuffer,
    /// Tells whether the running statement is to stop; there once there is a session.
    pub(crate) watch: Option<StatementWatch>,
    /// Raised when there is something for a session that listens; there once it does.
    pub(crate) event: Arc<OnceLock<Arc<Event>>>,
    /// The hash of the server's certificate that a login over this connection binds to, if it is encrypted.
    pub(crate) end_point: Option<Vec<u8>>,
    /// Set when reading ended in the middle of a statement.
    pub(crate) ended: Option<ReadError>,
}

impl Channel {
    pub(crate) fn new(socket: Arc<Socket>, presence: Arc<Presence>, message_bytes_max: u32) -> Channel {
        Channel {
            socket,
            presence,
            reader: FrameReader::new(message_bytes_max),
            out: WriteBuffer::new(),
            watch: None,
            end_point: None,
            event: Arc::default(),
            ended: None,
        }
    }

    /// Writes out what has gathered, for a session that owes nothing before it leaves.
    pub(crate) fn flush(&mut self) {
        if let Err(error) = self.out.flush(&self.socket) {
            codec::error(&mut self.out.bytes, "ERROR", &error);
            self.out.broken |= self.out.flush(&self.socket).is_err();
        }
    }

    /// Writes out the answers that have gathered. An error: they were dropped, and the client is to get it instead
    /// ([`WriteBuffer::flush`]).
    pub(crate) fn flush_answers(&mut self) -> Result<(), EngineError> {
        self.out.flush(&self.socket)
    }

    /// Writes out if the buffer is full, unless the running statement is to stop.
    #[inline]
    pub(crate) fn flush_statement_if_full(&mut self) -> Result<(), EngineError> {
        match &self.watch {
            Some(watch) if self.out.is_full() => self.out.flush_watched(&self.socket, watch),
            _ => self.out.flush_if_full(&self.socket),
        }
    }

    /// Says why the connection ends.
    pub(crate) fn fatal(&mut self, error: &EngineError) {
        tracing::error!(
            severity = "FATAL",
            sqlstate = error.sqlstate().as_str(),
            detail = error.detail(),
            hint = error.hint(),
            "{}",
            error.message()
        );
        self.out.flush_with_fatal(&self.socket, error);
    }
}
