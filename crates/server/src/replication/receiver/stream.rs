//! Receiving the log: one stream, from its start to its end.
//!
//! ```text
//!   server                         receiver                          sink
//!     w 0/5000000 … 128 KiB ──▶      write at 0/5000000 ──────────▶    in the segment
//!     w 0/5020000 … 3 KiB   ──▶      write at 0/5020000 ──────────▶    in the segment
//!                                    nothing more has arrived: sync ─▶ durable; replay begins
//!             ◀── r written 0/5020C00, durable 0/5020C00, replayed 0/4FFF000
//!                                    replay has moved on:
//!             ◀── r written 0/5020C00, durable 0/5020C00, replayed 0/5020C00
//! ```
//!
//! 1. Take what has arrived, or a MiB of it, into the sink.
//! 2. If that was log, sync.
//! 3. Say how far we are, if that has changed, if the server asks, or after `wal_receiver_status_interval`. After that
//!    interval also say what our sessions see (`hot_standby_feedback`).
//! 4. Wait for more. While replay is behind what is durable, look at it again soon: the server may have commits that wait
//!    for it (`synchronous_commit = remote_apply`).
//!
//! # Rules
//! - R1: "durable" is said after the sync only, of whole records only, and not after replay has failed. The server removes log, and answers commits, by it.
//! - R2: every byte goes where the sink ends. A piece that begins elsewhere is an error, and nothing of it is written.
//! - R3: what was written is synced also when the connection is lost, so that the next stream begins behind it.
//! - R4: a server that is silent for half of `wal_receiver_timeout` is asked for a sign of life, and given up after all
//!   of it. A connection whose other end vanished would look idle for ever.
//! - R5: what is no record ends the stream, and the next one begins at its start. So does a record whose rest does not come
//!   within `PART_PATIENCE`: its length may have been changed.
//!
//! A sync for each piece would limit the stream to the disk's syncs a second. One after everything that has arrived
//! gathers more the longer the sync before took, as a group commit does.

use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope, invariant};
use clearway_storage::Lsn;

use super::client::{Client, quoted_name};
use super::error::{ReceiverError, Result};
use super::status::{ReceiverPhase, ReceiverStatus};
use super::{LogSink, ReplayView};
use crate::codec;
use crate::replication::message::{self, Sent};
use crate::wire::backend::Message;

/// So much is taken before a sync, though more may have arrived.
const TAKEN_BYTES_MAX: usize = 1 << 20;
/// Longest wait for the rest of a record while nothing arrives.
const PART_PATIENCE: Duration = Duration::from_secs(1);
/// The delay before the first look at replay after a sync; each look that finds it behind doubles it,
const REPLAY_POLL: Duration = Duration::from_micros(100);
/// up to this.
const REPLAY_POLL_MAX: Duration = Duration::from_millis(10);

/// The options of a stream.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// The slot to use.
    pub slot: Option<String>,
    /// The longest interval between two reports of our progress to the server.
    pub status_interval: Duration,
    /// True if the server gets the oldest xid that our sessions see.
    pub feedback: bool,
}

/// The end of a stream that ended in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The timeline has ended, and another one goes on. The connection takes commands.
    Timeline {
        /// The next one.
        next: u32,
        /// The position at which it begins.
        begins: Lsn,
    },
    /// The server stops, and has sent everything.
    ServerStops,
}

/// A stream under way.
pub(super) struct Stream<'a> {
    pub(super) client: &'a mut Client,
    pub(super) sink: &'a mut dyn LogSink,
    pub(super) replay: &'a dyn ReplayView,
    pub(super) options: &'a StreamOptions,
    pub(super) status: &'a ReceiverStatus,
}

/// The findings of step 1.
#[derive(Debug, Default)]
struct ReceivedBatch {
    log_bytes: usize,
    /// Anything at all.
    heard: bool,
    wants_answer: bool,
    /// CopyDone.
    ended: bool,
    /// Nothing more has arrived.
    drained: bool,
}

/// The last report to the server, and the times of the next ones.
struct LastReport {
    positions: [u64; 3],
    status_due: Instant,
    feedback_due: Instant,
}

impl Stream<'_> {
    /// Begins a stream where the sink ends, and says so to `begun`; then receives to the end of the stream.
    pub(super) fn run(mut self, timeline: u32, begun: impl FnOnce(Lsn)) -> Result<StreamEnd> {
        let start = self.sink.position();
        let slot = self.options.slot.as_ref();
        let slot = slot.map_or_else(String::new, |name| format!("SLOT {} ", quoted_name(name)));
        let command = format!("START_REPLICATION {slot}PHYSICAL {start} TIMELINE {timeline}");
        self.client.begin_stream(&command, true)?;
        {
            let mut state = self.status.lock();
            state.phase = ReceiverPhase::Streaming;
            state.receive_start = start;
            (state.written, state.flushed) = (start, start);
            state.timeline = timeline;
            state.error = None;
        }
        begun(start);
        self.sink.set_streaming(true);
        let outcome = self.receive();
        self.sink.set_streaming(false);
        outcome
    }

    fn receive(&mut self) -> Result<StreamEnd> {
        let now = Instant::now();
        let mut told = LastReport {
            positions: [0; 3],
            status_due: now,
            feedback_due: now,
        };
        let mut flushed = self.sink.position().min(self.sink.checked());
        let (mut heard, mut asked, mut log_arrived) = (now, false, now);
        let mut replay_poll = REPLAY_POLL;
        loop {
            let mut taken = ReceivedBatch::default();
            let outcome = self.take(&mut taken);
            if taken.log_bytes > 0 {
                // R3: whatever the outcome.
                flushed = self.sink.sync()?.min(self.sink.checked());
                self.status.lock().flushed = flushed;
                log_arrived = Instant::now();
                replay_poll = REPLAY_POLL;
            }
            outcome?;
            self.refuse_failed_replay()?;
            let now = Instant::now();
            let has_part = self.sink.position() > flushed;
            if has_part && taken.drained && now - log_arrived >= PART_PATIENCE && self.sink.give_up_part() {
                return Err(ReceiverError::Unfinished {
                    address: self.client.address().to_owned(),
                    position: flushed,
                    patience: PART_PATIENCE,
                });
            }
            if taken.heard {
                (heard, asked) = (now, false);
            }
            let silence = now - heard;
            if silence >= self.client.timeout() {
                return Err(ReceiverError::Silent {
                    address: self.client.address().to_owned(),
                    patience: self.client.timeout(),
                });
            }
            let asks = !asked && silence >= self.client.timeout() / 2;
            asked |= asks;
            self.tell(&mut told, flushed, taken.wants_answer || taken.ended, asks)?;
            if taken.ended {
                return self.end();
            }
            if !taken.drained {
                continue;
            }
            // R4, and the next report.
            let patience = if asked {
                self.client.timeout()
            } else {
                self.client.timeout() / 2
            };
            let mut deadline = (heard + patience).min(told.status_due);
            if has_part {
                deadline = deadline.min((log_arrived + PART_PATIENCE).max(now + REPLAY_POLL_MAX));
            }
            if self.replay.replayed() < flushed {
                deadline = deadline.min(now + replay_poll);
                replay_poll = (replay_poll * 2).min(REPLAY_POLL_MAX);
            }
            let _wait = WaitScope::<Native>::enter(WaitEvent::WalReceiverMain);
            self.client.wait_readable(deadline)?;
        }
    }

    /// Step 1.
    fn take(&mut self, taken: &mut ReceivedBatch) -> Result<()> {
        loop {
            while let Some(frame) = self.client.next_buffered()? {
                taken.heard = true;
                let body = match self.client.decode(&frame)? {
                    Message::CopyData(body) => body,
                    Message::CopyDone => {
                        taken.ended = true;
                        return Ok(());
                    }
                    Message::Error(report) => return Err(self.client.refused(report)),
                    other => return Err(self.client.unexpected(&other, "in a stream of log")),
                };
                let sent = message::decode_sent(body)
                    .map_err(|error| ReceiverError::wire(self.client.address(), &error))?;
                match sent {
                    Sent::Log {
                        position,
                        end,
                        time,
                        data,
                    } => {
                        let expected = self.sink.position();
                        if position != expected.0 {
                            // R2.
                            return Err(self.client.broken(format!(
                                "it sends log at {} where {expected} is next",
                                Lsn(position)
                            )));
                        }
                        taken.log_bytes += data.len();
                        self.sink
                            .write(expected, data)
                            .map_err(|error| self.client.not_written(error))?;
                        let next = self.sink.position();
                        invariant!(
                            R2,
                            next.0 == expected.0 + data.len() as u64,
                            "{} bytes were written at {expected}, and the log ends at {next}",
                            data.len()
                        );
                        self.note(end, time);
                    }
                    Sent::Keepalive {
                        end,
                        time,
                        wants_answer,
                    } => {
                        taken.wants_answer |= wants_answer;
                        self.note(end, time);
                    }
                }
                if taken.log_bytes >= TAKEN_BYTES_MAX {
                    return Ok(());
                }
            }
            if !self.client.fill_now()? {
                taken.drained = true;
                return Ok(());
            }
        }
    }

    /// R1: there is no use in log that cannot be replayed, and commits must not be answered by it.
    fn refuse_failed_replay(&self) -> Result<()> {
        match self.replay.failure() {
            Some(problem) => Err(ReceiverError::ReplayFailed { problem }),
            None => Ok(()),
        }
    }

    /// A message has arrived.
    fn note(&self, end: u64, time: i64) {
        let mut state = self.status.lock();
        state.last_send_time = Some(time);
        state.last_receipt_time = Some(message::now());
        if state.latest_end.0 < end {
            state.latest_end = Lsn(end);
            state.latest_end_time = Some(time);
        }
        state.written = self.sink.position();
    }

    /// Step 3.
    fn tell(&mut self, told: &mut LastReport, flushed: Lsn, answers: bool, asks: bool) -> Result<()> {
        let now = Instant::now();
        let replayed = self.replay.replayed();
        invariant!(
            R1,
            flushed <= self.sink.position(),
            "log up to {flushed} is told to be durable, and it ends at {}",
            self.sink.position()
        );
        let positions = [self.sink.position().0, flushed.0, replayed.0];
        if answers || asks || positions != told.positions || now >= told.status_due {
            message::status(self.client.out(), positions, asks);
            told.positions = positions;
            told.status_due = now + self.options.status_interval;
        }
        if self.options.feedback && now >= told.feedback_due {
            message::feedback(self.client.out(), self.replay.oldest_xid_seen());
            told.feedback_due = now + self.options.status_interval;
        }
        self.client.flush()
    }

    /// The server has ended the stream: ends our side, and learns why.
    fn end(&mut self) -> Result<StreamEnd> {
        codec::copy_done(self.client.out());
        // A server that stops may have closed the connection already.
        let results = match self.client.flush().and_then(|()| self.client.rest_of_command()) {
            Err(ReceiverError::Closed { .. } | ReceiverError::Lost { .. }) => {
                return Ok(StreamEnd::ServerStops);
            }
            results => results?,
        };
        let next = results.iter().find_map(|result| {
            Some(StreamEnd::Timeline {
                next: result.text("next_tli")?.parse().ok()?,
                begins: result.text("next_tli_startpos")?.parse().ok()?,
            })
        });
        Ok(next.unwrap_or(StreamEnd::ServerStops))
    }
}
