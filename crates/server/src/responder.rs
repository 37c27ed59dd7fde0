//! The engine's output as protocol messages, COPY data in both directions included.

use bytes::BytesMut;
use clearway_engine::output::Notice;
use clearway_engine::{Column, CopyFormat, EngineError, Output, SqlState, Value, memory};

use crate::channel::Channel;
use crate::codec::{self, ResultFormats, Scratch};
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

    /// 54000 for a message that its length does not fit, which is taken back: bytes in hex, or a row of several values.
    #[inline]
    fn check_length(&mut self, start: usize) -> Result<(), EngineError> {
        if self.channel.out.bytes.len() - start <= MESSAGE_MAX {
            return Ok(());
        }
        self.channel.out.bytes.truncate(start);
        Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "row too large: a message has 2 GB at most",
        ))
    }

    /// Writes out at the bound, while the statement can still be cancelled: every message that it may send
    /// any number of times goes through this.
    #[inline]
    fn flush_if_full(&mut self) -> Result<(), EngineError> {
        self.channel.flush_statement_if_full()
    }
}

/// The output of a Parse: notices are all that it has beside its answer.
pub(crate) struct NoticesAlone<'a>(pub(crate) &'a mut BytesMut);

impl Output for NoticesAlone<'_> {
    fn row_description(&mut self, _columns: &[Column]) -> Result<(), EngineError> {
        Ok(())
    }

    fn row(&mut self, _values: &[Value]) -> Result<(), EngineError> {
        Ok(())
    }

    fn complete(&mut self, _tag: &str) -> Result<(), EngineError> {
        Ok(())
    }

    fn notice(&mut self, notice: &Notice) -> Result<(), EngineError> {
        codec::notice(self.0, notice);
        Ok(())
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
        let start = self.channel.out.bytes.len();
        codec::data_row(&mut self.channel.out.bytes, values, self.formats, self.scratch);
        self.check_length(start)?;
        self.flush_if_full()
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
        let start = self.channel.out.bytes.len();
        codec::copy_data(&mut self.channel.out.bytes, line);
        self.check_length(start)?;
        self.flush_if_full()
    }

    fn copy_out_done(&mut self) -> Result<(), EngineError> {
        codec::copy_done(&mut self.channel.out.bytes);
        Ok(())
    }
}
