//! The messages of a server, as a program that connects to one reads them: what replication needs of them.
//!
//! As for clients' messages: a length is checked as soon as it is there, a body to its last byte, and nothing panics.
//! `pgwire` has decoders for these too; the folder's `mod.rs` says why they are not used.

use super::frame::{Split, split_by};
use super::{Body, WireError};

/// The most a message with a row or a piece of a stream may have. Servers send log in pieces of 128 KiB, and tar
/// archives in smaller ones.
pub const DATA_BYTES_MAX: u32 = 1 << 20;
/// The most any other message may have.
pub const OTHER_BYTES_MAX: u32 = 64 << 10;

/// A server's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// The proof of identity that the server wants; 0: none.
    Authentication(u32),
    /// A step of a login by password.
    Sasl {
        /// The number of the step: 10, 11 or 12.
        step: u32,
        /// The names of mechanisms, or a message of the mechanism.
        data: &'a [u8],
    },
    /// A setting that the server reports.
    ParameterStatus {
        /// Its name.
        name: &'a str,
        /// Its value.
        value: &'a str,
    },
    /// The server waits for a command.
    ReadyForQuery,
    /// The names of a result's columns.
    RowDescription(Vec<&'a str>),
    /// The values of a row; `None` is NULL.
    DataRow(Vec<Option<&'a [u8]>>),
    /// The end of a command.
    CommandComplete(&'a str),
    /// A command failed.
    Error(Report),
    /// Something that the user may want to know.
    Notice(Report),
    /// The server begins to send a stream.
    CopyOut,
    /// The server begins to send a stream, and reads one.
    CopyBoth,
    /// A piece of a stream.
    CopyData(&'a [u8]),
    /// The end of a stream.
    CopyDone,
    /// A message that this program need not know: how to cancel, protocol options, notifications, an empty statement.
    Ignored,
}

/// An error or a notice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// ERROR, FATAL, WARNING and so on.
    pub severity: String,
    /// The SQLSTATE.
    pub sqlstate: String,
    /// The text.
    pub message: String,
    /// Details of the error.
    pub detail: Option<String>,
    /// Advice.
    pub hint: Option<String>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        for more in [&self.detail, &self.hint].into_iter().flatten() {
            write!(f, "; {more}")?;
        }
        write!(f, " ({})", self.sqlstate)
    }
}

/// Looks for a frame at the front of `buffer`.
pub fn split(buffer: &[u8]) -> Result<Split, WireError> {
    split_by(buffer, |kind| match kind {
        b'D' | b'd' => Ok(DATA_BYTES_MAX),
        b'A' | b'C' | b'E' | b'G' | b'H' | b'I' | b'K' | b'N' | b'R' | b'S' | b'T' | b'W' | b'Z' | b'c'
        | b'v' => Ok(OTHER_BYTES_MAX),
        other => Err(WireError::UnknownBackendKind(other)),
    })
}

/// Reads the body of a message.
pub fn decode(kind: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    let mut body = Body(body);
    let message = match kind {
        b'R' => {
            let method = body.u32()?;
            if let 10..=12 = method {
                return Ok(Message::Sasl {
                    step: method,
                    data: body.0,
                });
            }
            // What another method wants to say beside is of no use to us.
            if method != 0 {
                return Ok(Message::Authentication(method));
            }
            Message::Authentication(method)
        }
        b'S' => Message::ParameterStatus {
            name: body.string()?,
            value: body.string()?,
        },
        b'Z' => {
            body.byte()?;
            Message::ReadyForQuery
        }
        b'T' => {
            let mut names = Vec::new();
            for _ in 0..body.u16()? {
                names.push(body.string()?);
                // Table, attribute, type, its size, its modifier, format.
                body.bytes(4 + 2 + 4 + 2 + 4 + 2)?;
            }
            Message::RowDescription(names)
        }
        b'D' => {
            let mut values = Vec::new();
            for _ in 0..body.u16()? {
                values.push(match body.i32()? {
                    -1 => None,
                    length => Some(body.bytes(usize::try_from(length).map_err(|_| WireError::Truncated)?)?),
                });
            }
            Message::DataRow(values)
        }
        b'C' => Message::CommandComplete(body.string()?),
        b'E' => Message::Error(report(&mut body)?),
        b'N' => Message::Notice(report(&mut body)?),
        b'H' | b'W' => {
            body.byte()?;
            for _ in 0..body.u16()? {
                body.u16()?;
            }
            match kind {
                b'H' => Message::CopyOut,
                _ => Message::CopyBoth,
            }
        }
        b'd' => return Ok(Message::CopyData(body.0)),
        b'c' => Message::CopyDone,
        b'A' | b'I' | b'K' | b'v' => return Ok(Message::Ignored),
        other => return Err(WireError::UnknownBackendKind(other)),
    };
    body.end()?;
    Ok(message)
}

fn report(body: &mut Body<'_>) -> Result<Report, WireError> {
    let mut report = Report::default();
    loop {
        let field = body.byte()?;
        if field == 0 {
            return Ok(report);
        }
        let end = body.0.iter().position(|byte| *byte == 0);
        let value = body.bytes(end.ok_or(WireError::UnterminatedString)?)?;
        body.byte()?;
        // A message in another encoding is better than none.
        let value = String::from_utf8_lossy(value).into_owned();
        match field {
            b'S' if report.severity.is_empty() => report.severity = value,
            b'V' => report.severity = value,
            b'C' => report.sqlstate = value,
            b'M' => report.message = value,
            b'D' => report.detail = Some(value),
            b'H' => report.hint = Some(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use clearway_engine::{EngineError, SqlState, TransactionStatus, Value};

    use super::*;
    use crate::codec::{self, ResultFormats, Scratch};

    /// The frame that `encode` writes.
    fn frame(encode: impl FnOnce(&mut BytesMut)) -> (u8, Vec<u8>) {
        let mut bytes = BytesMut::new();
        encode(&mut bytes);
        for end in 0..bytes.len() {
            assert!(matches!(split(&bytes[..end]), Ok(Split::NeedMore(_))), "{end}");
        }
        match split(&bytes).unwrap() {
            Split::Frame(frame) => (frame.kind, bytes[frame.body].to_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// Our server's messages are read to the last byte, and no part of one is a message.
    #[test]
    fn what_a_server_sends_is_read() {
        let error = EngineError::new(SqlState::from_code("58P01"), "gone").with_hint("copy again");
        let row = [Value::Int4(7), Value::Null, Value::text("x".to_owned())];
        let report = Report {
            severity: "ERROR".to_owned(),
            sqlstate: "58P01".to_owned(),
            message: "gone".to_owned(),
            detail: None,
            hint: Some("copy again".to_owned()),
        };
        assert_eq!(report.to_string(), "gone; copy again (58P01)");
        let values = vec![Some(&b"7"[..]), None, Some(&b"x"[..])];
        let messages: [((u8, Vec<u8>), Message<'_>); 9] = [
            (frame(codec::authentication_ok), Message::Authentication(0)),
            (
                frame(|out| codec::parameter_status(out, "a", "b")),
                Message::ParameterStatus {
                    name: "a",
                    value: "b",
                },
            ),
            (
                frame(|out| codec::ready_for_query(out, TransactionStatus::Idle)),
                Message::ReadyForQuery,
            ),
            (
                frame(|out| codec::gathered_row(out, &row, &ResultFormats::Text, &mut Scratch::default())),
                Message::DataRow(values),
            ),
            (
                frame(|out| codec::command_complete(out, "SELECT")),
                Message::CommandComplete("SELECT"),
            ),
            (
                frame(|out| codec::error(out, "ERROR", &error)),
                Message::Error(report),
            ),
            (
                frame(|out| codec::copy_out_response(out, 2, false)),
                Message::CopyOut,
            ),
            (frame(codec::copy_done), Message::CopyDone),
            (
                frame(|out| codec::copy_data(out, b"data")),
                Message::CopyData(b"data"),
            ),
        ];
        for ((kind, body), expected) in &messages {
            assert_eq!(decode(*kind, body).as_ref(), Ok(expected));
            if matches!(kind, b'd') {
                continue;
            }
            for end in 0..body.len() {
                assert!(decode(*kind, &body[..end]).is_err(), "{expected:?}, {end} bytes");
            }
            assert!(
                decode(*kind, &[&body[..], &[1]].concat()).is_err(),
                "{expected:?}"
            );
        }
    }

    #[test]
    fn lengths_are_checked_before_the_body_arrives() {
        assert!(matches!(
            split(b"d\x00\x10\x00\x01"),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            split(b"E\x00\x01\x00\x01"),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            split(b"d\0\0\0\x03"),
            Err(WireError::InvalidLength { .. })
        ));
        assert_eq!(split(b"q"), Err(WireError::UnknownBackendKind(b'q')));
        // A row of 65,535 values that are not there.
        assert_eq!(decode(b'D', b"\xff\xff"), Err(WireError::Truncated));
        assert_eq!(decode(b'D', b"\0\x01\x80\0\0\0"), Err(WireError::Truncated));
    }
}
