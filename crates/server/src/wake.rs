//! A session that listens sleeps on two things: its socket, and an event that other sessions raise when there is something
//! for it. A session that does not listen sleeps in a read of its socket, and has no event.
//!
//! An event is a counter of the kernel's. Raised before the sleep it ends the sleep at once, so none is lost: the session
//! lowers it first and looks at its inbox then.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use clearway_txn::Wake;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::socket::Socket;

/// The event of one session.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

/// The end of a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The client has sent something, or is gone.
    Client,
    /// The event was raised.
    Event,
    /// The time is over.
    Timeout,
}

impl Event {
    pub(crate) fn new() -> io::Result<Event> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Event(eventfd(0, flags)?))
    }

    /// Sleeps until there is something to read or the event is raised, and lowers it.
    pub(crate) fn wait(&self, socket: &Socket, patience: Option<Duration>) -> io::Result<Woken> {
        let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
        // What is decrypted already shows in no poll.
        if socket.has_received() == Some(true) {
            return Ok(Woken::Client);
        }
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec::try_from(left).map_err(io::Error::other));
            let mut polled = [
                PollFd::new(socket, PollFlags::IN | PollFlags::RDHUP),
                PollFd::new(&self.0, PollFlags::IN),
            ];
            match poll(&mut polled, left.transpose()?.as_ref()) {
                Ok(0) => return Ok(Woken::Timeout),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            // What the client wants comes first. A record of TLS may be there in part, or hold nothing for the session,
            // which would then wait in a read and not hear the event.
            if !polled[0].revents().is_empty() && socket.has_received() != Some(false) {
                return Ok(Woken::Client);
            }
            if !polled[1].revents().is_empty() {
                let _ = rustix::io::read(&self.0, &mut [0; 8]);
                return Ok(Woken::Event);
            }
        }
    }
}

impl Wake for Event {
    fn wake(&self) {
        // A counter that is full is raised.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
