//! A message that is too long to be gathered: it leaves while it is made.
//!
//! Its length is known first. Then come pieces: long ones leave from where they are, short ones are gathered as other
//! messages are. So a session has [`FULL_BYTES`] of it in memory, however long it is and however slowly its client reads.
//!
//! # Rules
//! 1. A message passes the session's gate once, before its first byte leaves. If it does not pass, all of it is taken back.
//! 2. Once a part has left, the client gets the whole message, or the connection ends. A statement that is to stop
//!    gathers the rest, if there is memory for it, and its error follows the message, as it follows shorter ones.
//! 3. What can fail is done before a message begins: its values are restored, so a page that cannot be read is an error in
//!    the message's place. If pieces do fail, or are not as many bytes as they were to be, the connection ends, without an
//!    error in the midst of a message.

use bytes::BufMut;
use clearway_engine::EngineError;

use crate::channel::Channel;
use crate::writer::{FULL_BYTES, connection_lost};

/// A message under way.
#[derive(Debug)]
pub(crate) struct LongMessage<'c> {
    channel: &'c mut Channel,
    /// Its beginning in the buffer.
    start: usize,
    /// Bytes that have not come.
    left: usize,
    /// True when it has passed the gate: a part of it may have left.
    has_passed: bool,
    /// The reason why the statement is to end: the rest gathers.
    stopped: Option<EngineError>,
    has_ended: bool,
}

impl<'c> LongMessage<'c> {
    /// Begins a message with a body of so many bytes, which is at most what its length can say.
    pub(crate) fn begin(channel: &'c mut Channel, kind: u8, body_bytes: usize) -> LongMessage<'c> {
        let out = &mut channel.out.bytes;
        let start = out.len();
        out.put_u8(kind);
        out.put_u32((body_bytes + 4) as u32);
        LongMessage {
            channel,
            start,
            left: body_bytes,
            has_passed: false,
            stopped: None,
            has_ended: false,
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn piece(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or_else(wrong_length)?;
        let out = &mut self.channel.out;
        if self.stopped.is_none() && bytes.len() >= FULL_BYTES {
            return self.send(bytes);
        }
        out.bytes.extend_from_slice(bytes);
        match self.stopped.is_none() && out.is_full() {
            true => self.send(&[]),
            false => Ok(()),
        }
    }

    /// Sends what has gathered, and then `bytes`.
    fn send(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let Channel {
            out, socket, watch, ..
        } = &mut *self.channel;
        if out.is_broken() {
            return Err(connection_lost());
        }
        if !self.has_passed {
            out.pass_gate_or_end(socket)?;
            self.has_passed = true;
        }
        match out.send_passed(socket, watch.as_ref(), bytes, self.left) {
            Err(error) if !out.is_broken() => {
                self.stopped = Some(error);
                Ok(())
            }
            sent => sent,
        }
    }

    /// Ends it, with what came of its pieces.
    pub(crate) fn end(mut self, written: Result<(), EngineError>) -> Result<(), EngineError> {
        let whole = match self.left {
            0 => written,
            _ => written.and_then(|()| Err(wrong_length())),
        };
        whole?;
        self.has_ended = true;
        if self.has_passed {
            self.channel.out.all_has_passed();
        }
        self.stopped.take().map_or(Ok(()), Err)
    }
}

impl Drop for LongMessage<'_> {
    /// Rules 1 and 3, for a message that is not whole.
    fn drop(&mut self) {
        let out = &mut self.channel.out;
        if self.has_ended || out.is_broken() {
            return;
        }
        match self.has_passed {
            false => out.bytes.truncate(self.start),
            true => drop(out.lose()),
        }
    }
}

#[cold]
fn wrong_length() -> EngineError {
    EngineError::internal("a message has another length than was said")
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use clearway_engine::SqlState;

    use super::*;
    use crate::answer_deadline::AnswerDeadline;
    use crate::codec;
    use crate::registry::Presence;
    use crate::socket::Socket;

    /// A channel that has a message gathered, and the client's end.
    fn channel() -> (Channel, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        let socket = Arc::new(Socket::from_unix(server));
        let presence = Arc::new(Presence::new(Arc::clone(&socket)));
        let mut channel = Channel::new(socket, presence, 1 << 20);
        codec::parse_complete(&mut channel.out.bytes);
        (channel, client)
    }

    /// All that the client gets.
    fn received(channel: Channel, mut client: UnixStream) -> Vec<u8> {
        drop(channel);
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn body(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7) as u8).collect()
    }

    /// The gathered message, and one in pieces.
    fn both(body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&b"1\0\0\0\x04D"[..], &length, body].concat()
    }

    #[test]
    fn pieces_of_any_length_are_one_message() {
        for lengths in [
            &[0, 1, FULL_BYTES, 5, FULL_BYTES - 1, FULL_BYTES + 1][..],
            &[FULL_BYTES - 1, 1],
            &[3, 4],
            &[1_000; 40],
        ] {
            let (mut channel, client) = channel();
            let body = body(lengths.iter().sum());
            let mut rest = &body[..];
            let mut message = LongMessage::begin(&mut channel, b'D', body.len());
            for length in lengths {
                let (piece, behind) = rest.split_at(*length);
                message.piece(piece).unwrap();
                rest = behind;
            }
            message.end(Ok(())).unwrap();
            assert!(channel.out.bytes.len() < 2 * FULL_BYTES);
            channel.flush();
            assert!(received(channel, client) == both(&body), "{lengths:?}");
        }
    }

    /// Rule 1: it is taken back.
    #[test]
    fn a_message_of_which_nothing_has_left_is_taken_back() {
        for (length, failed) in [(10, Ok(())), (100, Err(connection_lost()))] {
            let (mut channel, client) = channel();
            let mut message = LongMessage::begin(&mut channel, b'D', 100);
            message.piece(&body(length)).unwrap();
            message.end(failed).unwrap_err();
            channel.flush();
            assert_eq!(received(channel, client), *b"1\0\0\0\x04");
        }
        let (mut channel, mut client) = channel();
        let deadline = AnswerDeadline::default();
        deadline.set_ns(0);
        channel.out.deadline = Some(deadline);
        let mut message = LongMessage::begin(&mut channel, b'D', FULL_BYTES);
        let error = message.piece(&body(FULL_BYTES)).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::ADMIN_SHUTDOWN);
        drop(message);
        let mut kind = [0];
        client.read_exact(&mut kind).unwrap();
        assert_eq!(kind, *b"E");
        assert!(channel.out.is_broken());
    }

    /// Rule 3.
    #[test]
    fn half_a_message_ends_the_connection() {
        for (more, failed) in [
            (&[][..], Ok(())),
            (&[FULL_BYTES + 1][..], Ok(())),
            (&[FULL_BYTES][..], Err(connection_lost())),
        ] {
            let (mut channel, client) = channel();
            let mut message = LongMessage::begin(&mut channel, b'D', 2 * FULL_BYTES);
            message.piece(&body(FULL_BYTES)).unwrap();
            let written = more.iter().try_for_each(|length| message.piece(&body(*length)));
            message.end(written.and(failed)).unwrap_err();
            assert!(channel.out.is_broken());
            channel.fatal(&EngineError::internal("in its midst"));
            let received = received(channel, client);
            assert!(!received.windows(6).any(|part| part == b"in its"));
        }
    }

    /// Rules 1 and 2: what has passed leaves whole, its end as well, which gathers.
    #[test]
    fn a_message_passes_once() {
        let (mut channel, client) = channel();
        let deadline = AnswerDeadline::default();
        channel.out.deadline = Some(deadline.clone());
        let body = body(2 * FULL_BYTES + 10);
        let mut message = LongMessage::begin(&mut channel, b'D', body.len());
        message.piece(&body[..FULL_BYTES]).unwrap();
        deadline.set_ns(0);
        message.piece(&body[FULL_BYTES..2 * FULL_BYTES]).unwrap();
        message.piece(&body[2 * FULL_BYTES..]).unwrap();
        message.end(Ok(())).unwrap();
        codec::no_data(&mut channel.out.bytes);
        channel.flush();
        let received = received(channel, client);
        let behind = received.strip_prefix(&both(&body)[..]).unwrap();
        assert_eq!(behind.first(), Some(&b'E'), "what had not passed is not there");
    }
}
