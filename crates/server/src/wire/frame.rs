//! Frames: a type byte, a length that counts itself, a body.
//!
//! ```text
//!   0      1               5                    1 + length
//!   ┌──────┬───────────────┬───────────────────┐
//!   │ kind │ length (u32)  │ body              │
//!   └──────┴───────────────┴───────────────────┘
//! ```
//!
//! The length is checked against a limit for the kind as soon as it is there, before anything is read or reserved
//! for the body: five bytes from a client can never cost more than five bytes.

use std::ops::Range;

use crate::wire::WireError;

/// The bytes before a body.
pub const HEADER_BYTES: usize = 5;

/// The most bytes of a message that carries a text or data, unless the server is configured otherwise: 16 MiB.
pub const LARGE_MESSAGE_BYTES_MAX: u32 = 16 << 20;

/// The most any other message may have.
pub const SMALL_MESSAGE_BYTES_MAX: u32 = 10_000;

/// The content of a buffer's front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// Not yet a whole frame: it will have this many bytes in all, as far as is known.
    NeedMore(usize),
    /// A whole frame.
    Frame(Frame),
}

/// The places of a frame's parts, counted from the start of the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The type byte.
    pub kind: u8,
    /// The body; its end is the frame's end.
    pub body: Range<usize>,
}

/// Looks for a frame at the front of `buffer`.
pub fn split(buffer: &[u8]) -> Result<Split, WireError> {
    split_within(buffer, LARGE_MESSAGE_BYTES_MAX)
}

/// Looks for a frame at the front of `buffer`; one that carries a text or data may have `large_max` bytes.
pub fn split_within(buffer: &[u8], large_max: u32) -> Result<Split, WireError> {
    split_by(buffer, |kind| limit(kind, large_max))
}

/// Looks for a frame at the front of `buffer`; `limit` says how long a message of a kind may be, or that there is none.
pub(crate) fn split_by(
    buffer: &[u8],
    limit: impl Fn(u8) -> Result<u32, WireError>,
) -> Result<Split, WireError> {
    let Some((header, _)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        // A wrong type byte is an error at once: four more bytes may never come.
        if let Some(kind) = buffer.first() {
            limit(*kind)?;
        }
        return Ok(Split::NeedMore(HEADER_BYTES));
    };
    let [kind, length @ ..] = *header;
    let length = u32::from_be_bytes(length);
    let limit = limit(kind)?;
    if length < 4 {
        return Err(WireError::InvalidLength { kind, length });
    }
    if length > limit {
        return Err(WireError::TooLong { kind, length, limit });
    }
    let end = 1 + length as usize;
    if buffer.len() < end {
        return Ok(Split::NeedMore(end));
    }
    Ok(Split::Frame(Frame {
        kind,
        body: HEADER_BYTES..end,
    }))
}

/// The longest a message of this kind may claim to be.
fn limit(kind: u8, large_max: u32) -> Result<u32, WireError> {
    match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => Ok(large_max),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Ok(SMALL_MESSAGE_BYTES_MAX),
        other => Err(WireError::UnknownKind(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_found_when_its_last_byte_is_there() {
        let bytes = b"Q\0\0\0\x0dselect 1\0";
        assert_eq!(bytes.len(), 14);
        for end in 0..bytes.len() {
            assert!(
                matches!(split(&bytes[..end]), Ok(Split::NeedMore(_))),
                "after {end} bytes"
            );
        }
        assert_eq!(
            split(bytes),
            Ok(Split::Frame(Frame {
                kind: b'Q',
                body: 5..14
            }))
        );
    }

    #[test]
    fn lengths_are_checked_before_the_body_arrives() {
        assert_eq!(
            split(b"S\0\0\0\x03"),
            Err(WireError::InvalidLength {
                kind: b'S',
                length: 3
            })
        );
        assert!(matches!(
            split(b"S\0\x01\0\0"),
            Err(WireError::TooLong { kind: b'S', .. })
        ));
        assert!(matches!(
            split(b"Q\xff\xff\xff\xff"),
            Err(WireError::TooLong { kind: b'Q', .. })
        ));
        assert!(matches!(
            split(b"Q\x01\0\0\x01"),
            Err(WireError::TooLong { kind: b'Q', .. })
        ));
        assert_eq!(split(b"Q\x01\0\0\0"), Ok(Split::NeedMore(1 + (16 << 20))));
        assert_eq!(
            split_within(b"Q\x0f\0\0\0", 1 << 30),
            Ok(Split::NeedMore(1 + 0x0f00_0000))
        );
    }

    #[test]
    fn an_unknown_kind_is_an_error_at_its_first_byte() {
        assert_eq!(split(b"G"), Err(WireError::UnknownKind(b'G')));
        assert_eq!(split(b""), Ok(Split::NeedMore(HEADER_BYTES)));
    }
}
