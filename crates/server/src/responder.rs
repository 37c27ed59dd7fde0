//! The engine's output as protocol messages, COPY data in both directions included.

use clearway_engine::output::{Notice, WritePieces};
use clearway_engine::value::sent::{LONG_BYTES, each_row_piece, row_length};
use clearway_engine::{Column, CopyFormat, EngineError, Output, SqlState, Value, memory};

use crate::channel::Channel;
use crate::codec::{self, LongColumn, ResultFormats, Scratch};
use crate::long_message::LongMessage;
use crate::reader::ReadError;
use crate::wire::frontend::{self, Message};
use crate::writer::connection_lost;

/// The longest message: a length is a signed number of 32 bits.
const MESSAGE_MAX: usize = i32::MAX as usize;

/// Writes what the engine says to one client.
#[derive(Debug)]
pub(crate) struct Responder<'a> {
    channel: &'a mut Channel,
    /// Of the running statement.
    formats: &'a ResultFormats,
    /// Those that the client has asked for.
    asked: &'a ResultFormats,
    scratch: &'a mut Scratch,
}

impl<'a> Responder<'a> {
    pub(crate) fn new(
        channel: &'a mut Channel,
        formats: &'a ResultFormats,
        scratch: &'a mut Scratch,
    ) -> Self {
        Responder {
            channel,
            formats,
            asked: formats,
            scratch,
        }
    }

    /// Sends a message with this body in pieces; 54000 if its length does not fit: bytes in hex, or a row of several values.
    #[cold]
    fn long_message(
        &mut self,
        kind: u8,
        body_bytes: usize,
        write: &mut WritePieces<'_>,
    ) -> Result<(), EngineError> {
        if body_bytes > MESSAGE_MAX - 4 {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "row too large: a message has 2 GB at most",
            ));
        }
        let mut message = LongMessage::begin(self.channel, kind, body_bytes);
        let written = write(&mut |piece| message.piece(piece));
        message.end(written)
    }

    /// A row with long values.
    #[cold]
    fn long_row(&mut self, values: &[Value], long: LongColumn) -> Result<(), EngineError> {
        let forms = codec::long_row(values, self.formats, self.scratch, long);
        self.long_message(b'D', row_length(&forms), &mut |take| each_row_piece(&forms, take))
    }

    /// Writes out at the bound, while the statement can still be cancelled: every message that it may send
    /// any number of times goes through this.
    #[inline]
    fn flush_if_full(&mut self) -> Result<(), EngineError> {
        self.channel.flush_statement_if_full()
    }
}

impl Output for Responder<'_> {
    fn row_description(&mut self, columns: &[Column]) -> Result<(), EngineError> {
        codec::row_description(&mut self.channel.out.bytes, columns, self.formats);
        self.flush_if_full()
    }

    fn binary_rows(&mut self) {
        self.formats = &ResultFormats::Binary;
    }

    #[inline]
    fn is_text(&self, column: usize) -> bool {
        !self.formats.is_binary(column)
    }

    fn row(&mut self, values: &[Value]) -> Result<(), EngineError> {
        let out = &mut self.channel.out.bytes;
        match codec::data_row(out, values, self.formats, self.scratch) {
            Ok(()) => self.flush_if_full(),
            Err(long) => self.long_row(values, long),
        }
    }

    #[inline]
    fn complete(&mut self, tag: &str) -> Result<(), EngineError> {
        codec::command_complete(&mut self.channel.out.bytes, tag);
        self.formats = self.asked;
        // The statement may have been committed: a cancel comes too late for it.
        self.channel.out.flush_if_full(&self.channel.socket)
    }

    fn empty(&mut self) -> Result<(), EngineError> {
        codec::empty_query_response(&mut self.channel.out.bytes);
        self.flush_if_full()
    }

    fn notice(&mut self, notice: &Notice) -> Result<(), EngineError> {
        codec::notice(&mut self.channel.out.bytes, notice);
        self.flush_if_full()
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Result<(), EngineError> {
        codec::parameter_status(&mut self.channel.out.bytes, name, value);
        self.flush_if_full()
    }

    fn copy_in_start(&mut self, columns: usize, format: CopyFormat) -> Result<(), EngineError> {
        let binary = format == CopyFormat::Binary;
        codec::copy_in_response(&mut self.channel.out.bytes, columns, binary);
        self.channel.flush_answers()
    }

    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool, EngineError> {
        let channel = &mut *self.channel;
        loop {
            let frame = match channel.reader.next(&channel.socket, &channel.presence) {
                Ok(frame) => frame,
                Err(ReadError::Refused { error, .. }) => return Err(error),
                Err(error) => {
                    let told = match &error {
                        ReadError::Wire(error) => {
                            EngineError::new(SqlState::PROTOCOL_VIOLATION, error.to_string())
                        }
                        _ => connection_lost(),
                    };
                    channel.ended = Some(error);
                    return Err(told);
                }
            };
            let violation = |message: String| Err(EngineError::new(SqlState::PROTOCOL_VIOLATION, message));
            match frontend::decode(frame.kind, channel.reader.body(&frame)) {
                Ok(Message::CopyData([])) => {}
                Ok(Message::CopyData(data)) => {
                    memory::require(data.len())?;
                    buffer.extend_from_slice(data);
                    return Ok(true);
                }
                Ok(Message::CopyDone) => return Ok(false),
                Ok(Message::CopyFail(reason)) => {
                    return Err(EngineError::new(
                        SqlState::QUERY_CANCELED,
                        format!("COPY from stdin failed: {reason}"),
                    ));
                }
                // Clients may send these without knowing that a COPY has begun.
                Ok(Message::Flush | Message::Sync) => {}
                Ok(Message::Terminate) => {
                    channel.ended = Some(ReadError::Closed);
                    return Err(connection_lost());
                }
                Ok(_) => {
                    return violation(format!(
                        "unexpected message type \"{}\" during COPY from stdin",
                        frame.kind.escape_ascii()
                    ));
                }
                Err(error) => return violation(error.to_string()),
            }
        }
    }

    fn copy_out_start(&mut self, columns: usize, format: CopyFormat) -> Result<(), EngineError> {
        let binary = format == CopyFormat::Binary;
        codec::copy_out_response(&mut self.channel.out.bytes, columns, binary);
        Ok(())
    }

    fn copy_out_data(&mut self, line: &[u8]) -> Result<(), EngineError> {
        if line.len() >= LONG_BYTES {
            return self.long_message(b'd', line.len(), &mut |take| take(line));
        }
        codec::copy_data(&mut self.channel.out.bytes, line);
        self.flush_if_full()
    }

    fn copy_out_long(&mut self, length: usize, write: &mut WritePieces<'_>) -> Result<(), EngineError> {
        self.long_message(b'd', length, write)
    }

    fn copy_out_done(&mut self) -> Result<(), EngineError> {
        codec::copy_done(&mut self.channel.out.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;
    use crate::registry::Presence;
    use crate::socket::Socket;

    #[test]
    fn a_message_that_is_too_long_is_not_begun() {
        let (server, _client) = UnixStream::pair().unwrap();
        let socket = Arc::new(Socket::from_unix(server));
        let presence = Arc::new(Presence::new(Arc::clone(&socket)));
        let mut channel = Channel::new(socket, presence, 1 << 20);
        let (formats, mut scratch) = (ResultFormats::Text, Scratch::default());
        let mut responder = Responder::new(&mut channel, &formats, &mut scratch);
        let refused = responder.copy_out_long(MESSAGE_MAX - 3, &mut |_| panic!("it is made"));
        assert_eq!(refused.unwrap_err().sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(channel.out.bytes.is_empty());
    }
}
