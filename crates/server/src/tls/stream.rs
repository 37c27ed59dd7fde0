//! An encrypted stream over a socket.
//!
//! A session's thread reads and writes through here as it does without encryption: bytes out of [`TlsStream::receive`],
//! bytes into [`TlsStream::send_now`]. Records of TLS are between them, so four things differ.
//!
//! # Rules
//!
//! 1. **No read loses what has been decrypted.** A record may hold more than its reader has room for; the rest is given
//!    before anything is read from the socket. A thread that polls the socket asks [`TlsStream::has_received`] before.
//! 2. **Bytes count as sent when their whole record has left.** [`TlsStream::send_now`] encrypts a part of at most
//!    [`RECORD_BYTES`]; if the socket does not take all of the record, it answers 0 and owes the part. The next call has the
//!    same bytes at its front (a [`WriteBuffer`](crate::writer::WriteBuffer) drops only what counts as sent), so it only
//!    sends the rest of the record.
//! 3. **Bytes at the socket are no bytes for the reader.** A record may hold nothing that is for it, as the one does by which
//!    a peer changes its keys, or it is there in part. A thread that must not wait in a read asks
//!    [`TlsStream::has_received`] behind each poll too: it decrypts all that has arrived.
//! 4. The state is locked for a step of encryption or a send, never while a read waits for the client.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{RecvFlags, SendFlags};
use rustls::Connection;

/// The most bytes of a record.
pub(crate) const RECORD_BYTES: usize = 16 << 10;

/// Room for a record, and what encryption adds to it.
const RECEIVE_BYTES: usize = RECORD_BYTES + 512;

/// Both directions of an encrypted stream.
pub(crate) struct TlsStream(Mutex<State>);

struct State {
    connection: Connection,
    /// Arrived and not yet decrypted: the bytes from `start` on.
    arrived: Vec<u8>,
    start: usize,
    /// Bytes whose record has not wholly left (rule 2).
    owed: usize,
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStream").finish_non_exhaustive()
    }
}

/// The socket as a place to write records to.
struct Records<'a>(&'a OwnedFd, SendFlags);

impl Write for Records<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL | self.1) {
                Err(rustix::io::Errno::INTR) => {}
                sent => return Ok(sent?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes what has arrived; 0 at the end of the stream, and nothing if there is nothing yet and `flags` say not to wait.
fn receive_from(socket: &OwnedFd, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Option<usize>> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, flags) {
            Ok((_, count)) => return Ok(Some(count)),
            // On a socket whose reads are limited in time, it is an error that the caller knows.
            Err(rustix::io::Errno::AGAIN) if flags.contains(RecvFlags::DONTWAIT) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl State {
    /// Sends records until none is left, or until the socket takes no more; whether none is left.
    fn send_records(&mut self, socket: &OwnedFd, flags: SendFlags) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Records(socket, flags)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Decrypts a part of what has arrived. On an error the peer is told by an alert, if it still listens.
    fn decrypt(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let mut bytes = &self.arrived[self.start..];
        let taken = self.connection.read_tls(&mut bytes)?;
        self.start += taken;
        match self.connection.process_new_packets() {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refuse(error, socket)),
        }
    }

    /// Sends the alert that tells the peer of this error. The connection gives the error again each time that it is asked.
    fn refuse(&mut self, error: rustls::Error, socket: &OwnedFd) -> io::Error {
        let _ = self.send_records(socket, SendFlags::DONTWAIT);
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Decrypts what has arrived until a read has something to give, a byte or the stream's end; whether it has.
    fn decrypt_until_readable(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        loop {
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => return Err(self.refuse(error, socket)),
            };
            if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                return Ok(true);
            }
            if self.start == self.arrived.len() {
                return Ok(false);
            }
            self.decrypt(socket)?;
        }
    }

    /// Decrypted bytes; nothing if more has to arrive first.
    fn decrypted(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.connection.reader().read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // The connection was closed without a word. Each message of ours has a length, so no end is mistaken.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }
}

impl TlsStream {
    /// Shakes hands. `begun` has arrived already; `may_wait` is called before each wait for the peer, and can end it.
    pub(crate) fn shake_hands(
        connection: impl Into<Connection>,
        socket: &OwnedFd,
        begun: Vec<u8>,
        mut may_wait: impl FnMut(&OwnedFd) -> io::Result<()>,
    ) -> io::Result<TlsStream> {
        let mut state = State {
            connection: connection.into(),
            arrived: begun,
            start: 0,
            owed: 0,
        };
        loop {
            while state.start < state.arrived.len() && state.connection.is_handshaking() {
                state.decrypt(socket)?;
            }
            while !state.send_records(socket, SendFlags::empty())? {
                wait_until_writable(socket)?;
            }
            if !state.connection.is_handshaking() {
                return Ok(TlsStream(Mutex::new(state)));
            }
            state.arrived.resize(RECEIVE_BYTES, 0);
            may_wait(socket)?;
            let count = match receive_from(socket, &mut state.arrived, RecvFlags::empty()) {
                // A socket that never blocks: look again when `may_wait` has waited.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    state.arrived.clear();
                    state.start = 0;
                    continue;
                }
                count => count?.unwrap_or(0),
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            state.arrived.truncate(count);
            state.start = 0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the connection.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&Connection) -> R) -> R {
        look(&self.lock().connection)
    }

    /// Decrypted bytes, 0 at the stream's end; nothing if there are none yet and `flags` say not to wait.
    pub(crate) fn receive(
        &self,
        socket: &OwnedFd,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<Option<usize>> {
        loop {
            let mut arrived = {
                let mut state = self.lock();
                if let Some(count) = state.decrypted(buffer)? {
                    return Ok(Some(count));
                }
                if state.decrypt_until_readable(socket)? {
                    continue;
                }
                std::mem::take(&mut state.arrived)
            };
            // Rule 4. The session's thread alone reads, so the buffer is not missed meanwhile.
            arrived.resize(RECEIVE_BYTES, 0);
            let received = receive_from(socket, &mut arrived, flags);
            let count = received.as_ref().map_or(0, |count| count.unwrap_or(0));
            arrived.truncate(count);
            let mut state = self.lock();
            (state.arrived, state.start) = (arrived, 0);
            match received? {
                Some(0) => return Ok(Some(0)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// True if a read gets bytes, the stream's end or an error without waiting (rules 1 and 3). It takes what the socket has
    /// and decrypts it, and does not wait either.
    pub(crate) fn has_received(&self, socket: &OwnedFd) -> bool {
        let mut state = self.lock();
        loop {
            match state.decrypt_until_readable(socket) {
                Ok(false) => {}
                Ok(true) | Err(_) => return true,
            }
            state.arrived.resize(RECEIVE_BYTES, 0);
            let received = receive_from(socket, &mut state.arrived, RecvFlags::DONTWAIT);
            let count = received.as_ref().map_or(0, |count| count.unwrap_or(0));
            state.arrived.truncate(count);
            state.start = 0;
            match received {
                Ok(None) => return false,
                Ok(Some(1..)) => {}
                // The read that follows is told of the end again.
                Ok(Some(0)) | Err(_) => return true,
            }
        }
    }

    /// Sends what can be sent at once: 0 bytes when the client has to read first (rule 2).
    pub(crate) fn send_now(&self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if !state.send_records(socket, SendFlags::DONTWAIT)? {
            return Ok(0);
        }
        if state.owed == 0 {
            let part = &bytes[..bytes.len().min(RECORD_BYTES)];
            state.connection.writer().write_all(part)?;
            state.owed = part.len();
            if !state.send_records(socket, SendFlags::DONTWAIT)? {
                return Ok(0);
            }
        }
        Ok(std::mem::take(&mut state.owed).min(bytes.len()))
    }

    /// Sends all of `bytes`, of which the front may be owed.
    pub(crate) fn send_all(&self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        let owed = std::mem::take(&mut state.owed).min(bytes.len());
        for part in bytes[owed..].chunks(RECORD_BYTES) {
            while !state.send_records(socket, SendFlags::empty())? {
                wait_until_writable(socket)?;
            }
            state.connection.writer().write_all(part)?;
        }
        while !state.send_records(socket, SendFlags::empty())? {
            wait_until_writable(socket)?;
        }
        Ok(())
    }

    /// Tells the peer that nothing more comes, if the socket takes that at once.
    pub(crate) fn close(&self, socket: &OwnedFd) {
        let mut state = self.lock();
        state.connection.send_close_notify();
        let _ = state.send_records(socket, SendFlags::DONTWAIT);
    }
}

/// For a socket that does not block.
fn wait_until_writable(socket: &OwnedFd) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    match poll(&mut [PollFd::new(socket, PollFlags::OUT)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
