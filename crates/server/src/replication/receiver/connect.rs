//! Connecting without blocking, so that a stop signal ends the attempt at once.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};

use clearway_machine::invariant;

use super::conninfo::{Address, ConnInfo};
use super::error::{ReceiverError, Result};
use crate::socket::Socket;
use crate::stop::StopSignal;
use crate::tls::client::SslMode;

/// The pause before the next try if the kernel has nothing to wait for: a Unix-domain socket whose queue is full.
const RETRY: Duration = Duration::from_millis(10);

/// Connects to the first address that answers.
pub(super) fn open(info: &ConnInfo, patience: Duration, stop: &StopSignal) -> Result<(Socket, String)> {
    let deadline = Instant::now() + patience;
    let mut failed = None;
    let addresses = info.addresses().map_err(|source| ReceiverError::Connect {
        address: info.host_text.clone(),
        source,
    })?;
    for address in addresses {
        match attempt(&address, info.tls.mode, deadline, stop) {
            Ok(socket) => return Ok((socket, address.to_string())),
            Err(_) if stop.is_stopped() => return Err(ReceiverError::Stopped),
            Err(source) => {
                failed = Some(ReceiverError::Connect {
                    address: address.to_string(),
                    source,
                });
            }
        }
    }
    Err(failed.unwrap_or_else(|| ReceiverError::ConnInfo("it names no address".to_owned())))
}

fn attempt(address: &Address, mode: SslMode, deadline: Instant, stop: &StopSignal) -> io::Result<Socket> {
    if let Address::Tcp(address) = address {
        invariant!(
            1 of receiver::conninfo,
            mode >= SslMode::Require || address.ip().to_canonical().is_loopback(),
            "{address} is to be connected to"
        );
    }
    let family = match address {
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, flags, None)?;
    loop {
        let begun = match address {
            Address::Tcp(address) => connect(&socket, address),
            Address::Unix(path) => connect(&socket, &SocketAddrUnix::new(path)?),
        };
        match begun {
            Ok(()) => break,
            Err(Errno::INPROGRESS | Errno::INTR) => {
                if !wait(Some(&socket), PollFlags::OUT, deadline, stop)? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                sockopt::socket_error(&socket)??;
                break;
            }
            Err(Errno::AGAIN) => {
                if Instant::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                wait::<OwnedFd>(None, PollFlags::OUT, deadline.min(Instant::now() + RETRY), stop)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match address {
        Address::Tcp(address) => Socket::from_tcp(TcpStream::from(socket), *address),
        Address::Unix(_) => Socket::from_unix(UnixStream::from(socket)),
    })
}

/// Waits until `descriptor` is ready, which is whether it is, or until the deadline. An error if the stop signal is given.
pub(super) fn wait<F: AsFd>(
    descriptor: Option<&F>,
    flags: PollFlags,
    deadline: Instant,
    stop: &StopSignal,
) -> io::Result<bool> {
    loop {
        let patience = deadline.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut polled = vec![PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)];
        polled.extend(descriptor.map(|descriptor| PollFd::new(descriptor, flags)));
        match poll(&mut polled, Some(&patience)) {
            Ok(0) => return Ok(false),
            Ok(_) if stop.is_stopped() => return Err(io::ErrorKind::Interrupted.into()),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
