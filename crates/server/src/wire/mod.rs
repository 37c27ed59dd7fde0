//! Messages that arrive: frames and the messages in them, from clients and, on a standby, from its primary (`backend`).
//!
//! Pure functions over byte slices, without I/O or state, so that a fuzzer can reach all of it. Nothing here
//! allocates for a message that is sound in form (but start-up), and nothing panics for one that is not.
//!
//! `pgwire` has decoders too. They are not used for what a client sends: on a body that is shorter than its own
//! counts say they panic, they replace bad UTF-8 silently, and they copy every name and parameter. The tests encode
//! with `pgwire` and decode with this module, so that both must agree on the format.

pub mod backend;
pub mod frame;
pub mod frontend;
pub mod sasl;
pub mod startup;

use std::fmt;

/// The fault in a client's message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// A length field that no message can have.
    InvalidLength {
        /// The message's type byte; 0 for a start-up packet.
        kind: u8,
        /// The length it claims.
        length: u32,
    },
    /// Longer than we take.
    TooLong {
        /// The message's type byte; 0 for a start-up packet.
        kind: u8,
        /// The length it claims.
        length: u32,
        /// The most that such a message may have.
        limit: u32,
    },
    /// A type byte that no client sends.
    UnknownKind(u8),
    /// A message that is not the answer of a client that logs in.
    UnexpectedKind(u8),
    /// A type byte that no server sends.
    UnknownBackendKind(u8),
    /// The body ends before what its counts promise.
    Truncated,
    /// The body goes on after its end.
    TrailingBytes,
    /// A string without its final zero byte.
    UnterminatedString,
    /// Bytes that are not UTF-8.
    InvalidText {
        /// The first byte that does not fit.
        byte: u8,
    },
    /// A format code other than 0 and 1.
    InvalidFormat(i16),
    /// A byte that should say "statement" or "portal".
    InvalidTarget(u8),
    /// Another major version of the protocol.
    UnsupportedProtocol {
        /// The version asked for.
        major: u16,
        /// Its minor part.
        minor: u16,
    },
}

impl WireError {
    /// The SQLSTATE to answer with.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            WireError::InvalidText { .. } => "22021",
            WireError::UnsupportedProtocol { .. } => "0A000",
            _ => "08P01",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::InvalidLength { kind: 0, length } => {
                write!(f, "invalid length of startup packet: {length}")
            }
            WireError::InvalidLength { kind, length } => {
                write!(
                    f,
                    "invalid length {length} of message type \"{}\"",
                    kind.escape_ascii()
                )
            }
            WireError::TooLong {
                kind: 0,
                length,
                limit,
            } => {
                write!(f, "startup packet of {length} bytes is longer than {limit}")
            }
            WireError::TooLong { kind, length, limit } => {
                write!(
                    f,
                    "message of type \"{}\" with {length} bytes is longer than {limit}",
                    kind.escape_ascii()
                )
            }
            WireError::UnexpectedKind(kind) => write!(f, "expected SASL response, got message type {kind}"),
            WireError::UnknownKind(kind) => write!(f, "invalid frontend message type {kind}"),
            WireError::UnknownBackendKind(kind) => {
                write!(f, "invalid backend message type \"{}\"", kind.escape_ascii())
            }
            WireError::Truncated => f.write_str("insufficient data left in message"),
            WireError::TrailingBytes => f.write_str("invalid message format: bytes after its end"),
            WireError::UnterminatedString => f.write_str("invalid string in message"),
            WireError::InvalidText { byte } => {
                write!(f, "invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}")
            }
            WireError::InvalidFormat(code) => write!(f, "unsupported format code: {code}"),
            WireError::InvalidTarget(byte) => {
                write!(f, "invalid message subtype \"{}\"", byte.escape_ascii())
            }
            WireError::UnsupportedProtocol { major, minor } => {
                write!(
                    f,
                    "unsupported frontend protocol {major}.{minor}: server supports 3.0"
                )
            }
        }
    }
}

impl std::error::Error for WireError {}

/// Reads a body from its start; every method fails rather than go past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Body<'a>(pub(crate) &'a [u8]);

impl<'a> Body<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A string up to its zero byte.
    pub(crate) fn string(&mut self) -> Result<&'a str, WireError> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(WireError::UnterminatedString)?;
        let text = utf8(&self.0[..end])?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    pub(crate) fn end(self) -> Result<(), WireError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(WireError::TrailingBytes)
        }
    }
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes).map_err(|error| WireError::InvalidText {
        byte: bytes[error.valid_up_to()],
    })
}
