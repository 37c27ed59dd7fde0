//! The write side of a connection: messages are gathered and leave in one write.

use bytes::BytesMut;
use clearway_engine::{EngineError, SqlState};
use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::socket::Socket;

/// The buffer is written out when it has this much, finished or not.
const FULL_BYTES: usize = 16 << 10;

/// A buffer that a long row has made longer than this is given back.
const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// Messages on their way to the client.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// Whole messages, encoded.
    pub(crate) bytes: BytesMut,
    /// Whether a write has failed: the client is gone, and nothing more is tried.
    broken: bool,
}

impl WriteBuffer {
    pub(crate) fn new() -> WriteBuffer {
        WriteBuffer {
            bytes: BytesMut::with_capacity(4 << 10),
            broken: false,
        }
    }

    /// Whether the client cannot be written to any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes out what has gathered.
    pub(crate) fn flush(&mut self, socket: &Socket) {
        if !self.broken && !self.bytes.is_empty() {
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
            self.broken = socket.send_all(&self.bytes).is_err();
        }
        if self.bytes.capacity() > BUFFER_BYTES_KEPT {
            self.bytes = BytesMut::with_capacity(FULL_BYTES);
        } else {
            self.bytes.clear();
        }
    }

    /// Writes out if the buffer is full; the error ends a statement whose client is gone.
    #[inline]
    pub(crate) fn flush_if_full(&mut self, socket: &Socket) -> Result<(), EngineError> {
        if self.bytes.len() < FULL_BYTES {
            return Ok(());
        }
        self.flush(socket);
        if self.broken {
            Err(connection_lost())
        } else {
            Ok(())
        }
    }
}

/// 08006: for the server's own log; there is nobody left to send it to.
#[cold]
pub(crate) fn connection_lost() -> EngineError {
    EngineError::new(SqlState::from_code("08006"), "connection to client lost")
}
