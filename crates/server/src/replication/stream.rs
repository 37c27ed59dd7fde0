//! Sending the log to a follower.
//!
//! 1. Read what the follower has said: how far it is, that it stops, that it is there.
//! 2. Read log from where it is, no further than what is durable ([`Storage::read_timeline`]), and send it.
//!    Log behind the end of the stream's timeline is another timeline's, and is not sent. On a standby, what is durable is
//!    what was received, and what was replayed once a promotion has begun.
//! 3. If there was none, wait for the follower or for [`LOG_POLL`]. Flushes do not know of followers, so that they pay
//!    nothing for them. A commit that waits for standbys writes to [`WakeUp`], on which the sender waits too.
//! 4. If all there was has been sent, let log gather for [`SEND_PAUSE`], unless commits wait for standbys. While clients
//!    commit there is a little more log after each flush. Sent at once, each of these pieces would cost the server a read
//!    and a write, the follower a sync and an answer, and the clients the CPU time of all four.
//!
//! | it ends when | with |
//! | --- | --- |
//! | the follower sends CopyDone | CopyDone, and the connection goes on |
//! | its timeline ends, because this server was promoted or its primary was, and all of it was sent | CopyDone; when the follower has sent its own, the next timeline and where it begins, and the connection goes on |
//! | the server stops | the rest of the log with the last checkpoint, and CopyDone; when the follower has sent its own, which it does when all of that is durable, the end of the connection |
//! | the follower says nothing for `wal_sender_timeout`, although asked after half of it | the end of the connection |
//! | the log that it needs is gone | 58P01, and the connection goes on |
//!
//! A server that stops ends other connections by shutting down their sockets' read side. This one reads on to its end
//! ([`Registry::ends_by_itself`]): a socket that is closed while something in it is unread resets the connection, and
//! what was sent last is lost with it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clearway_engine::{EngineError, SqlState};
use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_storage::retention::Follower;
use clearway_storage::{Lsn, Storage};
use clearway_txn::{ProcId, Xid};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tracing::debug;

use super::message::{self, Reply};
use super::{storage_error, timed_out};
use crate::channel::Channel;
use crate::codec;
use crate::reader::ReadError;
use crate::registry::Registry;
use crate::wire::WireError;

/// The pause of a sender that has sent everything before it looks for more.
const LOG_POLL: Duration = Duration::from_millis(5);
/// The time for which log gathers for the next piece.
const SEND_PAUSE: Duration = Duration::from_millis(2);
/// Bytes of log in a message at most, as in PostgreSQL.
const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// The end of a stream.
#[derive(Debug)]
pub(super) enum Ended {
    /// In order: the connection takes commands again.
    Done,
    /// With an error, which is sent to the client; the connection goes on.
    Failed(EngineError),
    /// The server stops, and the follower has everything.
    Stopped,
    /// The client is gone, or has broken the protocol; or it does not answer.
    Broken(ReadError),
    /// It does not answer.
    Silent(EngineError),
}

/// Wakes a sender that sleeps: a commit that waits for standbys has log for it.
#[derive(Debug, Clone)]
pub(super) struct WakeUp(Arc<OwnedFd>);

impl WakeUp {
    pub(super) fn new() -> std::io::Result<WakeUp> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WakeUp(Arc::new(event)))
    }

    /// Wakes the sender.
    pub(super) fn wake(&self) {
        // It fails only if the counter is full, and then the descriptor is readable.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Forgets the wake-ups so far.
    fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

/// The parts that a stream needs beside its connection.
pub(super) struct Stream<'a> {
    pub(super) storage: &'a Storage,
    pub(super) registry: &'a Registry,
    /// The session that sends: its slot holds back the horizon for the follower.
    pub(super) proc: ProcId,
    pub(super) follower: Follower,
    /// The timeline whose log is sent.
    pub(super) timeline: u32,
    pub(super) wake_up: WakeUp,
    pub(super) timeout: Duration,
}

impl Stream<'_> {
    /// Sends until the end.
    pub(super) fn run(self, channel: &mut Channel) -> Ended {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let mut heard = Instant::now();
        let mut asked = false;
        // CopyDone was sent: nothing may follow it before the follower's own.
        let mut done = false;
        loop {
            let stopping = self.registry.is_stopping();
            // Everything that was logged before this answer is durable.
            let last_logged = stopping && self.storage.is_shut_down();
            match self.hear(channel, done) {
                Ok(Heard::Nothing) => {}
                Ok(Heard::Something) => (heard, asked) = (Instant::now(), false),
                Ok(Heard::CopyDone) => {
                    if !done {
                        codec::copy_done(&mut channel.out.bytes);
                    }
                    return if stopping { Ended::Stopped } else { Ended::Done };
                }
                Err(error) => return Ended::Broken(error),
            }
            let end = self.storage.durable_log_end();
            let read = self
                .storage
                .read_timeline(&self.follower, self.timeline, &mut buffer);
            let (count, is_last) = match read {
                _ if done => (0, false),
                Ok(read) => read,
                Err(error) => return Ended::Failed(storage_error(error)),
            };
            let position = self.follower.position();
            if count > 0 {
                let after = Lsn(position.0 + count as u64);
                message::log(
                    &mut channel.out.bytes,
                    position.0,
                    end.0.max(after.0),
                    &buffer[..count],
                );
                self.follower.advance(after, after >= end);
            } else {
                self.follower.advance(position, true);
            }
            if heard.elapsed() >= self.timeout {
                return Ended::Silent(timed_out());
            }
            if is_last || (last_logged && count == 0 && !done) {
                codec::copy_done(&mut channel.out.bytes);
                done = true;
            }
            if !asked && !done && heard.elapsed() >= self.timeout / 2 {
                message::keepalive(&mut channel.out.bytes, position.0, true);
                asked = true;
            }
            if let Err(error) = channel.out.flush_within(&channel.socket, self.timeout) {
                return match error.kind() {
                    std::io::ErrorKind::TimedOut => Ended::Silent(timed_out()),
                    _ => Ended::Broken(ReadError::Io(error)),
                };
            }
            if count == 0 {
                channel.presence.waiting();
                self.sleep(channel, done);
            } else if count < MESSAGE_BYTES_MAX && !stopping && !self.storage.sync_replication.is_configured()
            {
                channel.presence.waiting();
                let _wait = WaitScope::<Native>::enter(WaitEvent::WalSenderMain);
                std::thread::sleep(SEND_PAUSE);
            }
        }
    }

    /// Waits until the follower says something or a commit wakes this sender, and no longer than [`LOG_POLL`].
    /// `done`: CopyDone was sent, and what the log has beyond is not.
    fn sleep(&self, channel: &Channel, done: bool) {
        self.follower.going_to_sleep();
        // Again: what was made durable before the call above has woken no sender.
        let is_idle = done || self.storage.durable_log_end() <= self.follower.position();
        if is_idle && channel.socket.has_received() != Some(true) {
            let _wait = WaitScope::<Native>::enter(WaitEvent::WalSenderMain);
            let patience = Timespec::try_from(LOG_POLL).expect("milliseconds");
            let mut polled = [
                PollFd::new(&*channel.socket, PollFlags::IN),
                PollFd::new(&*self.wake_up.0, PollFlags::IN),
            ];
            let _ = poll(&mut polled, Some(&patience));
            if polled[1].revents().contains(PollFlags::IN) {
                self.wake_up.clear();
            }
        }
        self.follower.awake();
    }

    /// Holds back the horizon as the follower's `hot_standby_feedback` asks, until it says something else or the stream
    /// ends. What vacuum has removed by then stays removed: the follower learns of that from the log.
    fn hold(&self, xmin: Option<Xid>) {
        let array = &self.storage.proc_array;
        let holds = if self.storage.is_standby() {
            // Its own receiver passes it on.
            array.hold_for_cascaded(self.proc, xmin)
        } else {
            array.hold_for_standby(self.proc, xmin)
        };
        if holds {
            self.follower.holds_back(xmin);
        } else {
            let next = array.next_xid();
            debug!(?xmin, %next, "a follower asks for versions that no snapshot can need; ignored");
        }
    }

    /// Reads what has arrived; `done`: no answers are given any more.
    fn hear(&self, channel: &mut Channel, done: bool) -> Result<Heard, ReadError> {
        let mut heard = Heard::Nothing;
        while channel.reader.has_buffered() || is_readable(channel) {
            let frame = channel.reader.next(&channel.socket, &channel.presence)?;
            match frame.kind {
                b'd' => match message::decode(channel.reader.body(&frame)).map_err(ReadError::Wire)? {
                    Reply::Status {
                        written,
                        flushed,
                        replayed,
                        wants_answer,
                    } => {
                        let (written, flushed, replayed) = (Lsn(written), Lsn(flushed), Lsn(replayed));
                        self.follower.replied(written, flushed, replayed, message::now());
                        if wants_answer && !done {
                            let sent = self.follower.position();
                            message::keepalive(&mut channel.out.bytes, sent.0, false);
                        }
                    }
                    Reply::Feedback(xmin) => self.hold(xmin),
                },
                b'c' => return Ok(Heard::CopyDone),
                b'X' => return Err(ReadError::Closed),
                other => return Err(ReadError::Wire(WireError::UnknownKind(other))),
            }
            heard = Heard::Something;
            if channel.out.is_full() {
                break;
            }
        }
        Ok(heard)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        // The connection may go on without a standby behind it.
        self.storage.proc_array.hold_for_standby(self.proc, None);
    }
}

enum Heard {
    Nothing,
    Something,
    CopyDone,
}

/// True if the follower has said something, or is gone.
fn is_readable(channel: &Channel) -> bool {
    channel.socket.has_received().unwrap_or_else(|| {
        let mut polled = [PollFd::new(&*channel.socket, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).unwrap_or(0) > 0
    })
}

/// A timeline that a follower cannot have.
pub(super) fn not_in_history(timeline: u32) -> EngineError {
    EngineError::new(
        SqlState::from_code("XX000"),
        format!("requested timeline {timeline} is not in this server's history"),
    )
}

/// A position behind the end of its timeline.
pub(super) fn behind_fork(position: Lsn, timeline: u32, end: Lsn) -> EngineError {
    EngineError::new(
        SqlState::from_code("XX000"),
        format!(
            "requested starting point {} on timeline {timeline} is not in this server's history",
            position
        ),
    )
    .with_detail(format!(
        "This server's history left timeline {timeline} at {}.",
        end
    ))
}

/// A position that a follower cannot begin at.
pub(super) fn ahead(position: Lsn, flushed: Lsn) -> EngineError {
    EngineError::new(
        SqlState::from_code("XX000"),
        format!(
            "requested starting point {} is ahead of the WAL flush position of this server {}",
            position, flushed
        ),
    )
}
