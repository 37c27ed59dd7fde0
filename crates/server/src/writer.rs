//! The write side of a connection: messages are gathered and leave in one write.
//!
//! Answers may depend on commits that are not durable yet (`lock_release = early`), or not replicated. Each write passes
//! the session's gate first, so what was gathered waits once, and then the [deadline](crate::answer_deadline) of a server that
//! is the primary for a limited time. The wait may end without what it is for: a cancel request, the
//! statement's time limit, the end of the server. Then what has not passed is dropped, and an error leaves in its place.
//! Messages of which a part has left have passed, so the stream stays whole. Messages that are too long to gather:
//! [`long_message`](crate::long_message).

use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use clearway_engine::{AnswerGate, EngineError, SqlState, StatementWatch, memory};
use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::answer_deadline::AnswerDeadline;
use crate::codec;
use crate::socket::Socket;

/// The buffer is written out when it has this much, finished or not.
pub(crate) const FULL_BYTES: usize = 16 << 10;

/// Interval at which a statement that waits for its client looks if it is to stop.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// A buffer that a long row has made longer than this is given back.
const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// Messages on their way to the client.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// Whole messages, encoded.
    pub(crate) bytes: BytesMut,
    /// True if a write has failed: the client is gone, and nothing more is tried.
    pub(crate) broken: bool,
    /// Number of bytes that have passed the gate, and have only to be sent.
    passed: usize,
    /// The gate at which the session's answers wait; there once there is a session.
    pub(crate) gate: Option<AnswerGate>,
    /// The time after which nothing passes, if there is one.
    pub(crate) deadline: Option<AnswerDeadline>,
}

impl WriteBuffer {
    pub(crate) fn new() -> WriteBuffer {
        WriteBuffer {
            bytes: BytesMut::with_capacity(4 << 10),
            broken: false,
            passed: 0,
            gate: None,
            deadline: None,
        }
    }

    /// Waits until what has gathered may be shown. Otherwise what has not passed is dropped, and the error is what the
    /// client is to be told in its place.
    #[inline]
    fn pass_gate(&mut self) -> Result<(), EngineError> {
        let waited = self.gate.as_ref().map_or(Ok(()), AnswerGate::wait);
        // Last, so that the time of the wait counts.
        match waited.and_then(|()| self.deadline.as_ref().map_or(Ok(()), AnswerDeadline::check)) {
            Ok(()) => {
                self.passed = self.bytes.len();
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(self.passed);
                Err(error)
            }
        }
    }

    /// As [`pass_gate`](Self::pass_gate); an error that ends the connection has left when this returns.
    #[inline]
    pub(crate) fn pass_gate_or_end(&mut self, socket: &Socket) -> Result<(), EngineError> {
        self.pass_gate().inspect_err(|error| {
            if error.sqlstate() == SqlState::ADMIN_SHUTDOWN {
                codec::error(&mut self.bytes, "FATAL", error);
                self.send_last(socket);
            }
        })
    }

    /// Writes the last words of a connection.
    #[cold]
    fn send_last(&mut self, socket: &Socket) {
        let _ = socket.send_all(&self.bytes);
        self.broken = true;
        self.reset();
    }

    /// True if the client cannot be written to any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes out the buffered messages. On an error, the session was asked to stop waiting for them. They were
    /// dropped, and the caller sends the client the error instead, after it has had the session give them up.
    pub(crate) fn flush(&mut self, socket: &Socket) -> Result<(), EngineError> {
        if !self.broken && !self.bytes.is_empty() {
            match self.pass_gate_or_end(socket) {
                Err(_) if self.broken => return Ok(()),
                Err(error) => return Err(error),
                Ok(()) => {}
            }
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
            self.broken = socket.send_all(&self.bytes).is_err();
        }
        self.reset();
        Ok(())
    }

    /// As [`flush`](Self::flush), before the connection ends with `error`: answers that do not pass are dropped.
    pub(crate) fn flush_with_fatal(&mut self, socket: &Socket, error: &EngineError) {
        if self.broken {
            return;
        }
        if self.pass_gate_or_end(socket).is_ok() || !self.broken {
            codec::error(&mut self.bytes, "FATAL", error);
            self.send_last(socket);
        }
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
        self.passed = 0;
    }

    /// True if it is time to write out.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES
    }

    /// Writes out for a statement that may be cancelled while its client does not read.
    ///
    /// The part that has not been written when the statement ends stays in the buffer, cut where the client's stream
    /// is: the error's message follows it, and the messages stay whole.
    pub(crate) fn flush_watched(
        &mut self,
        socket: &Socket,
        watch: &StatementWatch,
    ) -> Result<(), EngineError> {
        if self.broken {
            return Err(connection_lost());
        }
        self.pass_gate_or_end(socket)?;
        self.send_passed(socket, Some(watch), &[], 0)
    }

    /// Sends what has gathered and passed the gate, and then `bytes` from where they are.
    ///
    /// If the statement is to stop, what has not left of both stays in the buffer, with room for `to_come` bytes of the
    /// same message. If there is no memory for them the connection ends.
    pub(crate) fn send_passed(
        &mut self,
        socket: &Socket,
        watch: Option<&StatementWatch>,
        bytes: &[u8],
        to_come: usize,
    ) -> Result<(), EngineError> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ClientWrite);
        match send_watched(socket, watch, &self.bytes) {
            Ok(()) => self.reset(),
            Err(Unsent::Lost) => return Err(self.lose()),
            Err(Unsent::Stopped { sent, error }) => {
                self.bytes.advance(sent);
                return Err(self.keep(bytes, to_come, error));
            }
        }
        match send_watched(socket, watch, bytes) {
            Ok(()) => Ok(()),
            Err(Unsent::Lost) => Err(self.lose()),
            Err(Unsent::Stopped { sent, error }) => Err(self.keep(&bytes[sent..], to_come, error)),
        }
    }

    /// Keeps the rest of a message for after the statement, which has ended with `error`.
    fn keep(&mut self, rest: &[u8], to_come: usize, error: EngineError) -> EngineError {
        if memory::require(rest.len() + to_come).is_err() {
            return self.lose();
        }
        self.bytes.reserve(rest.len() + to_come);
        self.bytes.extend_from_slice(rest);
        self.passed = self.bytes.len();
        error
    }

    /// All that has gathered belongs to messages of which a part has left.
    pub(crate) fn all_has_passed(&mut self) {
        self.passed = self.bytes.len();
    }

    /// The client is gone, or its stream cannot be made whole any more: nothing more is written.
    #[cold]
    pub(crate) fn lose(&mut self) -> EngineError {
        self.broken = true;
        self.bytes.clear();
        connection_lost()
    }

    /// Writes out if the buffer is full; the error ends a statement whose client is gone.
    #[inline]
    pub(crate) fn flush_if_full(&mut self, socket: &Socket) -> Result<(), EngineError> {
        if !self.is_full() {
            return Ok(());
        }
        self.flush(socket)?;
        if self.broken {
            Err(connection_lost())
        } else {
            Ok(())
        }
    }
}

/// Bytes were not all sent.
enum Unsent {
    /// The client is gone.
    Lost,
    /// The statement is to stop.
    Stopped { sent: usize, error: EngineError },
}

/// Sends bytes, and looks meanwhile if the statement is to stop.
fn send_watched(socket: &Socket, watch: Option<&StatementWatch>, bytes: &[u8]) -> Result<(), Unsent> {
    let mut written = 0;
    while written < bytes.len() {
        let sent = match socket.send_now(&bytes[written..]) {
            Ok(0) => socket.wait_until_writable(WATCH_EVERY).map(|()| 0),
            sent => sent,
        };
        written += sent.map_err(|_| Unsent::Lost)?;
        if let Some(Err(error)) = watch.map(StatementWatch::check) {
            return Err(Unsent::Stopped { sent: written, error });
        }
    }
    Ok(())
}

/// 08006: for the server's own log; the client that would receive it is gone.
#[cold]
pub(crate) fn connection_lost() -> EngineError {
    EngineError::new(SqlState::from_code("08006"), "connection to client lost")
}
