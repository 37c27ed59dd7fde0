//! A connected stream socket, TCP or Unix-domain alike, encrypted or not.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustls::Connection;

use crate::tls::stream::TlsStream;

/// One end of a connection. Reads and writes go straight to the operating system, or through TLS once hands were shaken.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    peer: Option<SocketAddr>,
    /// The address of this end; absent on a Unix-domain socket.
    own: Option<SocketAddr>,
    tls: OnceLock<TlsStream>,
}

impl Socket {
    pub(crate) fn from_tcp(stream: TcpStream, peer: SocketAddr) -> Socket {
        // Answers are written whole; waiting for more of them would only delay the client.
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
        Socket {
            own: stream.local_addr().ok(),
            descriptor: stream.into(),
            peer: Some(peer),
            tls: OnceLock::new(),
        }
    }

    pub(crate) fn from_unix(stream: UnixStream) -> Socket {
        Socket {
            descriptor: stream.into(),
            peer: None,
            own: None,
            tls: OnceLock::new(),
        }
    }

    /// The client's address; none on a Unix-domain socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The same without the port.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip().to_canonical())
    }

    /// The address of this end; absent on a Unix-domain socket.
    pub(crate) fn own_address(&self) -> Option<SocketAddr> {
        self.own
    }

    /// Shakes hands; from then on both directions are encrypted. `begun` is what has arrived of it already, and `may_wait`
    /// is called before each wait for the peer.
    pub(crate) fn shake_hands(
        &self,
        connection: impl Into<Connection>,
        begun: Vec<u8>,
        may_wait: impl FnMut(&OwnedFd) -> io::Result<()>,
    ) -> io::Result<()> {
        let stream = TlsStream::shake_hands(connection, &self.descriptor, begun, may_wait)?;
        match self.tls.set(stream) {
            Ok(()) => Ok(()),
            Err(_) => Err(io::Error::other("the stream is encrypted already")),
        }
    }

    /// The encrypted stream, once hands were shaken.
    pub(crate) fn tls(&self) -> Option<&TlsStream> {
        self.tls.get()
    }

    /// The certificate that a client has shown and an authority has vouched for.
    pub(crate) fn client_certificate(&self) -> Option<Vec<u8>> {
        self.tls()?.with(|connection| match connection {
            Connection::Server(connection) => Some(connection.peer_certificates()?.first()?.to_vec()),
            Connection::Client(_) => None,
        })
    }

    /// True if a read gets something without waiting. Absent without encryption: then a `poll` of the socket tells, which
    /// under TLS it does not.
    pub(crate) fn has_received(&self) -> Option<bool> {
        self.tls().map(|tls| tls.has_received(&self.descriptor))
    }

    /// The name of the user whose process is at the other end of a Unix-domain socket.
    pub(crate) fn peer_user(&self) -> Option<String> {
        let peer = rustix::net::sockopt::socket_peercred(&self.descriptor).ok()?;
        user_named(&std::fs::read_to_string("/etc/passwd").ok()?, peer.uid.as_raw())
    }

    /// Reads what there is, waiting for at least one byte; 0 at the end of the stream.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(tls) = self.tls() {
            let received = tls.receive(&self.descriptor, buffer, RecvFlags::empty())?;
            return Ok(received.unwrap_or(0));
        }
        loop {
            match rustix::net::recv(&self.descriptor, &mut *buffer, RecvFlags::empty()) {
                Ok((_, count)) => return Ok(count),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what there is at once: `None` when there is nothing yet, 0 at the end of the stream.
    pub(crate) fn receive_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(tls) = self.tls() {
            return tls.receive(&self.descriptor, buffer, RecvFlags::DONTWAIT);
        }
        loop {
            match rustix::net::recv(&self.descriptor, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, count)) => return Ok(Some(count)),
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes what can be written at once: 0 bytes when the client has to read first.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(tls) = self.tls() {
            return tls.send_now(&self.descriptor, bytes);
        }
        loop {
            match rustix::net::send(&self.descriptor, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => return Ok(count),
                Err(rustix::io::Errno::AGAIN) => return Ok(0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until something can be written or the connection has failed, or until `patience` is over.
    pub(crate) fn wait_until_writable(&self, patience: Duration) -> io::Result<()> {
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::OUT)];
        match poll(&mut polled, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = self.tls() {
            return tls.send_all(&self.descriptor, bytes);
        }
        while !bytes.is_empty() {
            match rustix::net::send(&self.descriptor, bytes, SendFlags::NOSIGNAL) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Makes this and every later read report the end of the stream, also one that waits in another thread.
    pub(crate) fn stop_reading(&self) {
        let _ = rustix::net::shutdown(&self.descriptor, Shutdown::Read);
    }

    /// Ends both directions.
    pub(crate) fn stop(&self) {
        let _ = rustix::net::shutdown(&self.descriptor, Shutdown::Both);
    }

    /// Limits how long one read may wait.
    pub(crate) fn set_receive_timeout(&self, timeout: Option<Duration>) {
        let _ = rustix::net::sockopt::set_socket_timeout(
            &self.descriptor,
            rustix::net::sockopt::Timeout::Recv,
            timeout,
        );
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(tls) = self.tls() {
            tls.close(&self.descriptor);
        }
    }
}

/// The name of the user of this number, in the text of `/etc/passwd`.
fn user_named(users: &str, number: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, found) = (fields.next()?, fields.nth(1)?);
        (found.parse() == Ok(number)).then(|| name.to_owned())
    })
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::user_named;

    #[test]
    fn a_user_has_the_name_of_its_number() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:115:120::/var/lib/postgresql:/bin/bash\n";
        assert_eq!(user_named(users, 115).as_deref(), Some("postgres"));
        assert_eq!(user_named(users, 120), None);
    }
}
