//! Frames out of a socket, many to a read.

use std::io;
use std::time::Instant;

use clearway_engine::{EngineError, memory};
use clearway_machine::{Native, WaitEvent, WaitScope};
use rustls::ServerConnection;

use crate::read_buffer::ReadBuffer;
use crate::registry::Presence;
use crate::socket::Socket;
use crate::wire::frame::{self, Frame, Split};
use crate::wire::{WireError, startup};

/// The buffer's size at first, and again after a long message.
const BUFFER_BYTES: usize = 8 << 10;

/// The reason why there is no next frame.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client has closed the connection, or we have.
    Closed,
    /// The operating system says so.
    Io(io::Error),
    /// The client does not speak the protocol.
    Wire(WireError),
    /// There was no memory for a message of this kind. It has been read to its end and dropped.
    Refused {
        /// The message's type byte.
        kind: u8,
        /// The answer.
        error: EngineError,
    },
}

/// The read side of a connection.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: ReadBuffer,
    /// The most a message that carries a text or data may have.
    message_bytes_max: u32,
    /// The client's answer, while it logs in.
    password: Option<Frame>,
    /// The time by which it is to have logged in.
    deadline: Option<Instant>,
}

impl FrameReader {
    pub(crate) fn new(message_bytes_max: u32) -> FrameReader {
        FrameReader {
            buffer: ReadBuffer::new(BUFFER_BYTES),
            message_bytes_max,
            password: None,
            deadline: None,
        }
    }

    /// The next frame, consumed; waits for it. Its body is in [`body`](Self::body) until the next call.
    pub(crate) fn next(&mut self, socket: &Socket, presence: &Presence) -> Result<Frame, ReadError> {
        loop {
            let split = frame::split_within(self.buffer.filled(), self.message_bytes_max);
            match split.map_err(ReadError::Wire)? {
                Split::Frame(frame) => return Ok(self.buffer.consume_frame(frame)),
                Split::NeedMore(total) => match memory::require(self.buffer.growth(total)) {
                    Ok(()) => self.fill(total, socket, presence)?,
                    Err(error) => return Err(self.drop_message(total, error, socket, presence)),
                },
            }
        }
    }

    /// Reads the rest of a message of `total` bytes, of which the beginning is buffered, and drops it: then the stream is
    /// where the next message begins.
    #[cold]
    fn drop_message(
        &mut self,
        total: usize,
        error: EngineError,
        socket: &Socket,
        presence: &Presence,
    ) -> ReadError {
        let kind = self.buffer.filled()[0];
        let mut left = total;
        loop {
            let there = self.buffer.filled().len().min(left);
            self.buffer.consume(there);
            left -= there;
            if left == 0 {
                return ReadError::Refused { kind, error };
            }
            // What the buffer has; it does not grow when it is empty.
            if let Err(error) = self.fill(1, socket, presence) {
                return error;
            }
        }
    }

    /// The body of the frame that `next` gave.
    pub(crate) fn body(&self, frame: &Frame) -> &[u8] {
        self.buffer.body(frame)
    }

    /// Reads the answer of a client that is to prove who it is, and no other message: its body is in
    /// [`last_body`](Self::last_body).
    pub(crate) fn next_password(&mut self, socket: &Socket, presence: &Presence) -> Result<(), ReadError> {
        loop {
            let limit = |kind| match kind {
                b'p' => Ok(frame::SMALL_MESSAGE_BYTES_MAX),
                other => Err(WireError::UnexpectedKind(other)),
            };
            match frame::split_by(self.buffer.filled(), limit).map_err(ReadError::Wire)? {
                Split::Frame(frame) => {
                    self.password = Some(self.buffer.consume_frame(frame));
                    return Ok(());
                }
                Split::NeedMore(total) => self.fill(total, socket, presence)?,
            }
        }
    }

    /// The body of the answer that [`next_password`](Self::next_password) has read.
    pub(crate) fn last_body(&self) -> &[u8] {
        self.password
            .as_ref()
            .map_or(&[], |frame| self.buffer.body(frame))
    }

    /// Reading is over at this time, if it is given: the client has to have logged in by then.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The first packet of a connection.
    pub(crate) fn startup(
        &mut self,
        socket: &Socket,
        presence: &Presence,
    ) -> Result<startup::Startup, ReadError> {
        loop {
            match startup::split(self.buffer.filled()).map_err(ReadError::Wire)? {
                startup::Split::Packet(packet, length) => {
                    self.buffer.consume(length);
                    return Ok(packet);
                }
                startup::Split::NeedMore(total) => self.fill(total, socket, presence)?,
            }
        }
    }

    /// True if anything is buffered that has not been consumed.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.buffer.filled().is_empty()
    }

    /// Shakes hands over the socket, within the deadline. What is buffered is the beginning.
    pub(crate) fn shake_hands(
        &mut self,
        socket: &Socket,
        connection: ServerConnection,
    ) -> Result<(), ReadError> {
        let deadline = self.deadline;
        let _wait = WaitScope::<Native>::enter(WaitEvent::ClientRead);
        let may_wait = |_: &_| {
            let Some(deadline) = deadline else { return Ok(()) };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            socket.set_receive_timeout(Some(left));
            Ok(())
        };
        let shaken = socket.shake_hands(connection, self.buffer.take(), may_wait);
        shaken.map_err(ReadError::Io)
    }

    /// Reads once; a message of `total` bytes is what is waited for.
    fn fill(&mut self, total: usize, socket: &Socket, presence: &Presence) -> Result<(), ReadError> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ReadError::Io(io::ErrorKind::TimedOut.into()));
            }
            socket.set_receive_timeout(Some(left));
        }
        let room = self.buffer.room(total);
        let count = {
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientRead);
            presence.waiting();
            let count = socket.receive(room);
            presence.working();
            count.map_err(ReadError::Io)?
        };
        if count == 0 {
            return Err(ReadError::Closed);
        }
        self.buffer.arrived(count);
        Ok(())
    }
}
