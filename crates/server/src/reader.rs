//! Frames out of a socket, many to a read.

use std::io;
use std::ops::Range;

use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::registry::Presence;
use crate::socket::Socket;
use crate::wire::frame::{self, Frame, Split};
use crate::wire::{WireError, startup};

/// What the buffer has at first, and again after a long message.
const BUFFER_BYTES: usize = 8 << 10;

/// A buffer longer than this is given back once it is empty.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Why there is no next frame.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client has closed the connection, or we have.
    Closed,
    /// The operating system says so.
    Io(io::Error),
    /// The client does not speak the protocol.
    Wire(WireError),
}

/// The read side of a connection.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Vec<u8>,
    /// What has arrived and is not consumed.
    filled: Range<usize>,
    /// The most a message that carries a text or data may have.
    message_bytes_max: u32,
}

impl FrameReader {
    pub(crate) fn new(message_bytes_max: u32) -> FrameReader {
        FrameReader {
            buffer: vec![0; BUFFER_BYTES],
            filled: 0..0,
            message_bytes_max,
        }
    }

    /// The next frame, consumed; waits for it. Its body is in [`body`](Self::body) until the next call.
    pub(crate) fn next(&mut self, socket: &Socket, presence: &Presence) -> Result<Frame, ReadError> {
        loop {
            let filled = &self.buffer[self.filled.clone()];
            match frame::split_within(filled, self.message_bytes_max).map_err(ReadError::Wire)? {
                Split::Frame(Frame { kind, body }) => {
                    let start = self.filled.start;
                    self.filled.start += body.end;
                    return Ok(Frame {
                        kind,
                        body: start + body.start..start + body.end,
                    });
                }
                Split::NeedMore(total) => self.fill(total, socket, presence)?,
            }
        }
    }

    /// The body of the frame that `next` gave.
    pub(crate) fn body(&self, frame: &Frame) -> &[u8] {
        &self.buffer[frame.body.clone()]
    }

    /// The first packet of a connection.
    pub(crate) fn startup(
        &mut self,
        socket: &Socket,
        presence: &Presence,
    ) -> Result<startup::Startup, ReadError> {
        loop {
            match startup::split(&self.buffer[self.filled.clone()]).map_err(ReadError::Wire)? {
                startup::Split::Packet(packet, length) => {
                    self.filled.start += length;
                    return Ok(packet);
                }
                startup::Split::NeedMore(total) => self.fill(total, socket, presence)?,
            }
        }
    }

    /// Whether anything is buffered that has not been consumed.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.filled.is_empty()
    }

    /// Reads once, making room for a message of `total` bytes little by little: never more than twice what is there.
    fn fill(&mut self, total: usize, socket: &Socket, presence: &Presence) -> Result<(), ReadError> {
        if self.filled.is_empty() {
            self.filled = 0..0;
            if self.buffer.len() > BUFFER_BYTES_KEPT {
                self.buffer = vec![0; BUFFER_BYTES];
            }
        } else if self.filled.start > 0 && self.filled.start + total > self.buffer.len() {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.filled.end == self.buffer.len() {
            self.buffer
                .resize(total.min(2 * self.buffer.len()).max(self.filled.end + 1), 0);
        }
        let count = {
            let _wait = WaitScope::<Native>::enter(WaitEvent::ClientRead);
            presence.waiting();
            let count = socket.receive(&mut self.buffer[self.filled.end..]);
            presence.working();
            count.map_err(ReadError::Io)?
        };
        if count == 0 {
            return Err(ReadError::Closed);
        }
        self.filled.end += count;
        Ok(())
    }
}
