//! Messages of a replication stream: each is the body of one CopyData, its kind the first byte.
//!
//! | kind | from | body |
//! | --- | --- | --- |
//! | `w` | server | position (8), end of the log (8), time (8), log |
//! | `k` | server | end of the log (8), time (8), whether an answer is wanted (1) |
//! | `r` | follower | written (8), durable (8), replayed (8), time (8), whether an answer is wanted (1) |
//! | `h` | follower | time (8), oldest xid (4) and its epoch (4), the same of its catalog (8) |
//!
//! Numbers are big-endian, times microseconds since 2000-01-01 UTC.

use bytes::{BufMut, BytesMut};
pub(crate) use clearway_storage::wall_clock::now_us as now;
use clearway_txn::Xid;

use crate::wire::{Body, WireError};

/// A message of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The follower's progress; zero where it does not say.
    Status {
        /// Received and written.
        written: u64,
        /// Durable there.
        flushed: u64,
        /// Replayed there.
        replayed: u64,
        /// It wants an answer.
        wants_answer: bool,
    },
    /// The oldest xid that its sessions' snapshots may need; `None`: none is to be kept.
    Feedback(Option<Xid>),
}

/// A message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent<'a> {
    /// A piece of the log.
    Log {
        /// Its position in the log.
        position: u64,
        /// The end of the server's log.
        end: u64,
        /// The time of sending, by the server's clock.
        time: i64,
        /// The piece.
        data: &'a [u8],
    },
    /// The server is there.
    Keepalive {
        /// The end of the server's log.
        end: u64,
        /// The time of sending, by the server's clock.
        time: i64,
        /// It wants an answer.
        wants_answer: bool,
    },
}

/// Reads a message of the server.
pub fn decode_sent(body: &[u8]) -> Result<Sent<'_>, WireError> {
    let mut body = Body(body);
    match body.byte()? {
        b'w' => Ok(Sent::Log {
            position: body.u64()?,
            end: body.u64()?,
            time: body.u64()?.cast_signed(),
            data: body.0,
        }),
        b'k' => {
            let sent = Sent::Keepalive {
                end: body.u64()?,
                time: body.u64()?.cast_signed(),
                wants_answer: body.byte()? != 0,
            };
            body.end()?;
            Ok(sent)
        }
        other => Err(WireError::UnknownBackendKind(other)),
    }
}

/// The progress of a follower.
pub(crate) fn status(out: &mut BytesMut, [written, flushed, replayed]: [u64; 3], wants_answer: bool) {
    copy_data(out, |out| {
        out.put_u8(b'r');
        out.put_u64(written);
        out.put_u64(flushed);
        out.put_u64(replayed);
        out.put_i64(now());
        out.put_u8(u8::from(wants_answer));
    });
}

/// The oldest transaction that a follower's sessions see; 0 for none.
pub(crate) fn feedback(out: &mut BytesMut, xmin: u64) {
    copy_data(out, |out| {
        out.put_u8(b'h');
        out.put_i64(now());
        out.put_u32(xmin as u32);
        out.put_u32((xmin >> 32) as u32);
        out.put_u64(0);
    });
}

/// Reads a follower's message.
pub fn decode(body: &[u8]) -> Result<Reply, WireError> {
    let mut body = Body(body);
    let kind = body.byte()?;
    let u64 = |body: &mut Body<'_>| Ok::<_, WireError>(u64::from(body.u32()?) << 32 | u64::from(body.u32()?));
    let reply = match kind {
        b'r' => {
            let (written, flushed, replayed) = (u64(&mut body)?, u64(&mut body)?, u64(&mut body)?);
            u64(&mut body)?;
            Reply::Status {
                written,
                flushed,
                replayed,
                wants_answer: body.byte()? != 0,
            }
        }
        b'h' => {
            u64(&mut body)?;
            let (xmin, epoch) = (body.u32()?, body.u32()?);
            // That of the catalog: here one xmin holds for all tables.
            u64(&mut body)?;
            let xmin = Xid(u64::from(epoch) << 32 | u64::from(xmin));
            Reply::Feedback(Some(xmin).filter(|xmin| xmin.is_valid()))
        }
        other => return Err(WireError::UnknownKind(other)),
    };
    body.end()?;
    Ok(reply)
}

/// A piece of the log that begins at `position`.
pub(crate) fn log(out: &mut BytesMut, position: u64, end: u64, data: &[u8]) {
    copy_data(out, |out| {
        out.put_u8(b'w');
        out.put_u64(position);
        out.put_u64(end);
        out.put_i64(now());
        out.put_slice(data);
    });
}

/// The server is there, and its log ends at `end`.
pub(crate) fn keepalive(out: &mut BytesMut, end: u64, wants_answer: bool) {
    copy_data(out, |out| {
        out.put_u8(b'k');
        out.put_u64(end);
        out.put_i64(now());
        out.put_u8(u8::from(wants_answer));
    });
}

/// A CopyData message around what `body` writes.
pub(crate) fn copy_data(out: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_slice(&[b'd', 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_body() -> Vec<u8> {
        let mut body = vec![b'r'];
        for number in [5_u64, 1 << 40, 3, 99] {
            body.extend(number.to_be_bytes());
        }
        body.push(1);
        body
    }

    #[test]
    fn replies_are_read_to_the_last_byte() {
        let body = status_body();
        let expected = Reply::Status {
            written: 5,
            flushed: 1 << 40,
            replayed: 3,
            wants_answer: true,
        };
        assert_eq!(decode(&body), Ok(expected));
        let mut feedback = vec![b'h'];
        feedback.extend([0; 8]);
        feedback.extend([0, 0, 0, 7, 0, 0, 0, 1]);
        feedback.extend([0; 8]);
        assert_eq!(decode(&feedback), Ok(Reply::Feedback(Some(Xid(1 << 32 | 7)))));
        let mut none = feedback.clone();
        none[9..17].fill(0);
        assert_eq!(decode(&none), Ok(Reply::Feedback(None)));
        none[16] = 1;
        assert_eq!(
            decode(&none),
            Ok(Reply::Feedback(Some(Xid(1 << 32)))),
            "a whole epoch"
        );
        for body in [body, feedback] {
            for end in 0..body.len() {
                assert!(decode(&body[..end]).is_err(), "{end} bytes of {}", body.len());
            }
            assert_eq!(decode(&[&body[..], &[0]].concat()), Err(WireError::TrailingBytes));
        }
        assert_eq!(decode(b"x"), Err(WireError::UnknownKind(b'x')));
    }

    /// Each end reads what the other one writes.
    #[test]
    fn both_ends_agree() {
        let mut out = BytesMut::new();
        status(&mut out, [7, 6, 5], true);
        let expected = Reply::Status {
            written: 7,
            flushed: 6,
            replayed: 5,
            wants_answer: true,
        };
        assert_eq!(decode(&out[5..]), Ok(expected));
        let mut out = BytesMut::new();
        feedback(&mut out, 3 << 32 | 9);
        assert_eq!(decode(&out[5..]), Ok(Reply::Feedback(Some(Xid(3 << 32 | 9)))));
        let mut out = BytesMut::new();
        log(&mut out, 1 << 33, 1 << 34, b"log");
        match decode_sent(&out[5..]).unwrap() {
            Sent::Log {
                position, end, data, ..
            } => {
                assert_eq!((position, end, data), (1 << 33, 1 << 34, &b"log"[..]))
            }
            other => panic!("{other:?}"),
        }
        for end in 5..5 + 25 {
            assert!(decode_sent(&out[5..end]).is_err(), "{end}");
        }
        let mut out = BytesMut::new();
        keepalive(&mut out, 7, true);
        let keepalive = decode_sent(&out[5..]).unwrap();
        assert!(matches!(
            keepalive,
            Sent::Keepalive {
                end: 7,
                wants_answer: true,
                ..
            }
        ));
        for end in 5..out.len() {
            assert!(decode_sent(&out[5..end]).is_err(), "{end}");
        }
        assert!(decode_sent(b"x").is_err());
    }

    #[test]
    fn messages_have_postgresqls_form() {
        let mut out = BytesMut::new();
        log(&mut out, 0x0102, 0x0304, b"log");
        assert_eq!(out[..5], [b'd', 0, 0, 0, 4 + 1 + 24 + 3]);
        assert_eq!(out[5], b'w');
        assert_eq!(out[6..22], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        assert_eq!(&out[30..], b"log");
        let mut out = BytesMut::new();
        keepalive(&mut out, 7, true);
        assert_eq!(out[..5], [b'd', 0, 0, 0, 4 + 18]);
        assert_eq!((out[5], out[13], out[22], out.len()), (b'k', 7, 1, 23));
    }
}
