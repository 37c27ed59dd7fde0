//! The write side of a connection: messages are gathered and leave in one write.
//!
//! Answers may depend on commits that are not durable yet (`lock_release = early`). Each write passes the session's
//! gate first, so what was gathered waits once.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use clearway_engine::{AnswerGate, EngineError, SqlState, StatementWatch};
use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::socket::Socket;

/// The buffer is written out when it has this much, finished or not.
const FULL_BYTES: usize = 16 << 10;

/// How often a statement that waits for its client looks whether it is to stop.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// A buffer that a long row has made longer than this is given back.
const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// Messages on their way to the client.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// Whole messages, encoded.
    pub(crate) bytes: BytesMut,
    /// Whether a write has failed: the client is gone, and nothing more is tried.
    broken: bool,
    /// What the session's answers wait in; there once there is a session.
    pub(crate) gate: Option<AnswerGate>,
}

impl WriteBuffer {
    pub(crate) fn new() -> WriteBuffer {
        WriteBuffer {
            bytes: BytesMut::with_capacity(4 << 10),
            broken: false,
            gate: None,
        }
    }

    /// Waits until what has gathered may be shown.
    fn pass_gate(&self) {
        if let Some(gate) = &self.gate {
            gate.wait();
        }
    }

    /// Whether the client cannot be written to any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes out what has gathered.
    pub(crate) fn flush(&mut self, socket: &Socket) {
        if !self.broken && !self.bytes.is_empty() {
            self.pass_gate();
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
            self.broken = socket.send_all(&self.bytes).is_err();
        }
        self.reset();
    }

    /// Writes out what has gathered; `TimedOut` if the client takes nothing of it for `patience`.
    pub(crate) fn flush_within(&mut self, socket: &Socket, patience: Duration) -> io::Result<()> {
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
        let (mut written, mut moved) = (0, Instant::now());
        while written < self.bytes.len() {
            let sent = match socket.send_now(&self.bytes[written..]) {
                Ok(0) if moved.elapsed() >= patience => Err(io::ErrorKind::TimedOut.into()),
                Ok(0) => socket.wait_until_writable(WATCH_EVERY).map(|()| 0),
                sent => sent,
            };
            match sent {
                Ok(0) => {}
                Ok(count) => {
                    written += count;
                    moved = Instant::now();
                }
                Err(error) => {
                    self.broken = true;
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.reset();
        Ok(())
    }

    /// Empties the buffer.
    fn reset(&mut self) {
        if self.bytes.capacity() > BUFFER_BYTES_KEPT {
            self.bytes = BytesMut::with_capacity(FULL_BYTES);
        } else {
            self.bytes.clear();
        }
    }

    /// Whether it is time to write out.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES
    }

    /// Writes out for a statement that may be cancelled while its client does not read.
    ///
    /// What has not been written when the statement ends stays in the buffer, cut where the client's stream is: the
    /// error's message follows it, and the messages stay whole.
    pub(crate) fn flush_watched(
        &mut self,
        socket: &Socket,
        watch: &StatementWatch,
    ) -> Result<(), EngineError> {
        if self.broken {
            return Err(connection_lost());
        }
        self.pass_gate();
        let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
        let mut written = 0;
        while written < self.bytes.len() {
            let sent = match socket.send_now(&self.bytes[written..]) {
                Ok(0) => socket.wait_until_writable(WATCH_EVERY).map(|()| 0),
                sent => sent,
            };
            let stopped = watch.check();
            match (sent, stopped) {
                (Ok(count), Ok(())) => written += count,
                (Ok(count), Err(error)) => {
                    self.bytes.advance(written + count);
                    return Err(error);
                }
                (Err(_), _) => {
                    self.broken = true;
                    self.bytes.clear();
                    return Err(connection_lost());
                }
            }
        }
        self.reset();
        Ok(())
    }

    /// Writes out if the buffer is full; the error ends a statement whose client is gone.
    #[inline]
    pub(crate) fn flush_if_full(&mut self, socket: &Socket) -> Result<(), EngineError> {
        if !self.is_full() {
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

/// 08006: for the server's own log; the client that would receive it is gone.
#[cold]
pub(crate) fn connection_lost() -> EngineError {
    EngineError::new(SqlState::from_code("08006"), "connection to client lost")
}
