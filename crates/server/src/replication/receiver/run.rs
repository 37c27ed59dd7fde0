//! The receiver's thread: connects, streams, and connects again when the connection is lost.
//!
//! ```text
//!   ┌─▶ connect ─▶ agree: same database, same log, same timeline or one that goes on from ours? ─▶ stream ───────┐
//!   │                    ▲                                                              the timeline has ended ──┤
//!   │                    └───────────────────────────────────────────────────────────────────────────────────────┤
//!   └── wait 100 ms, 200 ms, … 5 s ◀── an error that may go away ────────────────────────────────────────────────┘
//!       end: the stop signal, or an error that stays ([`ReceiverError::is_final`])
//! ```
//!
//! - R1: an error is reported once. Attempts that fail in the same way as the one before are logged at level debug,
//!   until log is received again.
//! - R2: the wait is short again after an attempt that has received log, and only then: a server that accepts and closes
//!   is not asked ten times a second.
//! - R4: an answer of the server that would end the receiver for good counts when two attempts in a row have got it: a
//!   byte may have been changed on the way.
//! - R5: once no record was sent at a place `DAMAGED_LOUD` times in a row, each further time is logged as an error: the
//!   link does not heal by itself, or the server's log is damaged.
//! - R3: when [`Receiver::stop`] returns, nothing writes to the sink any more. A promotion relies on it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clearway_storage::Lsn;
use rustix::event::PollFlags;
use tracing::{debug, error, info, warn};

use super::agree::{self, Agreed};
use super::client::Client;
use super::conninfo::ConnInfo;
use super::error::{ReceiverError, Result};
use super::identify::{create_slot, identify};
use super::status::{ReceiverPhase, ReceiverStatus};
use super::stream::{Stream, StreamEnd, StreamOptions};
use super::{LogSink, ReplayView, TimelineKeeper, connect};
use crate::stop::StopSignal;

/// The wait after the first attempt that failed; each one doubles it,
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// up to this.
const RETRY_LAST: Duration = Duration::from_secs(5);

/// Attempts at the same bad record that are logged at level warn; each one after that is logged as an error.
const DAMAGED_LOUD: u32 = 2;

/// The options of a receiver.
#[derive(Debug, Clone)]
pub struct ReceiverOptions {
    /// The server.
    pub conninfo: ConnInfo,
    /// A server that is silent for this long is given up.
    pub timeout: Duration,
    /// The options of its streams.
    pub stream: StreamOptions,
    /// Make the slot at the first server that answers, if it is not there.
    pub create_slot: bool,
}

/// The parts that a receiver works with.
pub struct ReceiverParts {
    /// The destination of the log.
    pub sink: Box<dyn LogSink>,
    /// The progress of replay.
    pub replay: Arc<dyn ReplayView>,
    /// The database and timeline of the log.
    pub timelines: Arc<dyn TimelineKeeper>,
    /// A connection that keeps log at the server until the first stream has begun (`base_backup`).
    pub keeps_log: Option<Client>,
    /// Gets each event (R1), beside the log of this program.
    pub observer: Box<dyn Fn(&ReceiverEvent) + Send>,
}

/// An event of a receiver.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// Log is received.
    Streaming {
        /// From which server.
        address: String,
        /// From where on.
        position: Lsn,
        /// On which timeline.
        timeline: u32,
    },
    /// No log is received; it will be tried again.
    Interrupted(ReceiverError),
    /// The server has stopped in order; it will be tried again.
    ServerStopped,
    /// The receiver has ended, for it cannot go on.
    Refused(ReceiverError),
}

impl std::fmt::Display for ReceiverEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReceiverEvent::Streaming {
                address,
                position,
                timeline,
            } => write!(
                f,
                "receiving log from {address}, from {position} on, timeline {timeline}"
            ),
            ReceiverEvent::Interrupted(error) => write!(f, "{error}; trying again until it works"),
            ReceiverEvent::ServerStopped => {
                f.write_str("the server has shut down; trying again until it is back")
            }
            ReceiverEvent::Refused(error) => write!(f, "no more log is received: {error}"),
        }
    }
}

/// A receiver's thread; it is stopped when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    stop: StopSignal,
    status: Arc<ReceiverStatus>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts a receiver.
    pub fn spawn(options: ReceiverOptions, parts: ReceiverParts) -> io::Result<Receiver> {
        let stop = StopSignal::new()?;
        let status = Arc::new(ReceiverStatus::default());
        {
            let mut state = status.lock();
            let position = parts.sink.position();
            (state.written, state.flushed) = (position, position);
            state.slot.clone_from(&options.stream.slot);
            state.host.clone_from(&options.conninfo.host_text);
            state.port = options.conninfo.port;
            state.conninfo = options.conninfo.to_string();
        }
        let run = Run {
            options,
            parts,
            stop: stop.clone(),
            status: Arc::clone(&status),
            damaged: (Lsn(0), 0),
            doubted: None,
            told: None,
            told_of_stream: false,
        };
        let thread = std::thread::Builder::new()
            .name("clearway receiver".to_owned())
            .spawn(move || run.run())?;
        Ok(Receiver {
            stop,
            status,
            thread: Some(thread),
        })
    }

    /// Its phase and progress.
    pub fn status(&self) -> &Arc<ReceiverStatus> {
        &self.status
    }

    /// Stops it, wherever it is, and waits for its end (R3).
    pub fn stop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// True if its thread may still write to the sink (R3).
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_some()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Run {
    options: ReceiverOptions,
    parts: ReceiverParts,
    stop: StopSignal,
    status: Arc<ReceiverStatus>,
    /// Attempts in a row that got no record at this position.
    damaged: (Lsn, u32),
    /// The last error, if one more attempt is to tell whether it stays (R4).
    doubted: Option<String>,
    /// The kind of the last error, if it was reported and no log has been received since (R1).
    told: Option<(std::mem::Discriminant<ReceiverError>, String)>,
    /// After that error it was told that a stream has begun: once is enough while none brings any log.
    told_of_stream: bool,
}

impl Run {
    fn run(mut self) {
        let mut patience = RETRY_FIRST;
        loop {
            let before = self.received();
            let outcome = self.attempt();
            let outcome = outcome.map_err(|error| self.note_damage(error));
            if self.received() > before {
                // R2.
                patience = RETRY_FIRST;
                self.told = None;
                self.doubted = None;
            }
            match outcome {
                Ok(()) => {
                    self.status.set_phase(ReceiverPhase::Waiting);
                    info!("the server has shut down");
                    (self.parts.observer)(&ReceiverEvent::ServerStopped);
                }
                Err(ReceiverError::Stopped) => return self.status.set_phase(ReceiverPhase::Stopped),
                Err(error) if error.is_final() && !self.is_doubted(&error) => {
                    let phase = match error {
                        ReceiverError::Diverged { .. } | ReceiverError::Unlinked { .. } => {
                            ReceiverPhase::Diverged
                        }
                        ReceiverError::ReplayFailed { .. } => ReceiverPhase::ReplayFailed,
                        _ => ReceiverPhase::Refused,
                    };
                    self.status.failed(phase, error.to_string());
                    warn!("no more log is received: {error}");
                    return (self.parts.observer)(&ReceiverEvent::Refused(error));
                }
                Err(error) => {
                    self.status.failed(ReceiverPhase::Waiting, error.to_string());
                    if matches!(error, ReceiverError::Damaged { attempt, .. } if attempt > DAMAGED_LOUD) {
                        error!("{error}");
                        (self.parts.observer)(&ReceiverEvent::Interrupted(error));
                    } else if error.is_final() || self.told.as_ref() == Some(&error.kind()) {
                        debug!("{error}");
                    } else {
                        self.told = Some(error.kind());
                        self.told_of_stream = false;
                        warn!("{error}");
                        (self.parts.observer)(&ReceiverEvent::Interrupted(error));
                    }
                }
            }
            let deadline = Instant::now() + patience;
            if connect::wait::<std::os::fd::OwnedFd>(None, PollFlags::IN, deadline, &self.stop).is_err()
                || self.stop.is_stopped()
            {
                return self.status.set_phase(ReceiverPhase::Stopped);
            }
            patience = (patience * 2).min(RETRY_LAST);
        }
    }

    /// The end of the log that was received and checked.
    fn received(&self) -> Lsn {
        self.parts.sink.position().min(self.parts.sink.checked())
    }

    /// Counts the attempts that have failed at the same record (R5).
    fn note_damage(&mut self, mut error: ReceiverError) -> ReceiverError {
        if let ReceiverError::Damaged {
            position, attempt, ..
        } = &mut error
        {
            let (last, count) = self.damaged;
            self.damaged = (*position, if last == *position { count + 1 } else { 1 });
            *attempt = self.damaged.1;
        }
        error
    }

    /// R4.
    fn is_doubted(&mut self, error: &ReceiverError) -> bool {
        let said = error.is_hearsay().then(|| error.to_string());
        let is_new = said.is_some() && self.doubted != said;
        self.doubted = said;
        is_new
    }

    /// Connects and streams until the connection is lost, or the server stops.
    fn attempt(&mut self) -> Result<()> {
        if let Some(problem) = self.parts.replay.failure() {
            return Err(ReceiverError::ReplayFailed { problem });
        }
        self.status.set_phase(ReceiverPhase::Starting);
        let mut client = Client::connect(&self.options.conninfo, self.options.timeout, &self.stop)?;
        loop {
            self.agree(&mut client)?;
            let timeline = self.parts.timelines.timeline();
            let position = self.parts.sink.position();
            match self.stream(&mut client, timeline) {
                Ok(StreamEnd::ServerStops) => return Ok(()),
                Ok(StreamEnd::Timeline { next, begins }) => {
                    info!("timeline {timeline} has ended; timeline {next} begins at {begins}");
                    if next <= timeline {
                        return Err(client.broken(format!("timeline {timeline} is followed by {next}")));
                    }
                    // If more was received than up to there, `agree` finds out whether that may be given up.
                    // If nothing was, and there is no newer timeline, the next stream would end at once as well.
                    let stays = self.parts.sink.position() == position;
                    if stays && identify(&mut client)?.timeline <= timeline {
                        return Err(
                            client.broken(format!("timeline {timeline} has ended, and it is its newest"))
                        );
                    }
                }
                // What is asked for is gone, or the slot has been given up.
                Err(ReceiverError::Server { address, report })
                    if report.sqlstate == "58P01" || report.sqlstate == "55000" =>
                {
                    return Err(ReceiverError::LogRemoved {
                        address,
                        position: self.parts.sink.position(),
                        report,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes sure that the server's log goes on from ours, and that there is the slot.
    fn agree(&mut self, client: &mut Client) -> Result<()> {
        let timelines = Arc::clone(&self.parts.timelines);
        let position = self.parts.sink.position();
        let Agreed { system, history } = agree::check(client, &*timelines, position)?;
        if system.timeline > timelines.timeline() {
            let followed = timelines.follow(system.timeline, &history.unwrap_or_default(), position);
            followed.map_err(|problem| agree::not_followed(client.address(), problem))?;
            self.parts.sink.resume();
        }
        if let Some(slot) = self
            .options
            .stream
            .slot
            .as_ref()
            .filter(|_| self.options.create_slot)
        {
            if create_slot(client, slot)? {
                info!(slot, "made the replication slot");
            }
            // One that is dropped later is missed.
            self.options.create_slot = false;
        }
        Ok(())
    }

    fn stream(&mut self, client: &mut Client, timeline: u32) -> Result<StreamEnd> {
        let address = client.address().to_owned();
        let (keeps_log, observer) = (&mut self.parts.keeps_log, &self.parts.observer);
        let is_first = self.status.lock().receive_start == Lsn(0);
        let recovers = is_first || (self.told.is_some() && !self.told_of_stream);
        self.told_of_stream |= recovers;
        let stream = Stream {
            client,
            sink: &mut *self.parts.sink,
            replay: &*self.parts.replay,
            options: &self.options.stream,
            status: &self.status,
        };
        stream.run(timeline, |position| {
            // The stream keeps the log from here on.
            keeps_log.take();
            info!("receiving log from {address}, from {position} on, timeline {timeline}");
            if recovers {
                observer(&ReceiverEvent::Streaming {
                    address,
                    position,
                    timeline,
                });
            }
        })
    }
}
