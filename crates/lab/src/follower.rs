//! A follower of a bench's database: the standby's receiver in this process, without the standby behind it.
//!
//! It asks a server on loopback over the bench's engine for the log, confirms it as durable and replayed, and keeps none
//! of it. So what a bench loses beside it is what feeding a standby costs the primary: reading the log, a socket, and
//! on a machine of few CPUs also the receiving. What a standby does with the log it does on a machine of its own.
//!
//! A follower that cannot keep up would cost less than one that does, so [`Follower::caught_up`] ends each point: a log
//! that has not all arrived in time is an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clearway_engine::Engine;
use clearway_server::replication::receiver::run::{Receiver, ReceiverOptions, ReceiverParts};
use clearway_server::replication::receiver::status::ReceiverPhase;
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::replication::receiver::{LogSink, NotFollowed, OwnLog, ReplayView, TimelineKeeper};
use clearway_server::{Server, ServerError, ServerOptions, StopSignal};
use clearway_storage::log_digest::LogDigest;
use clearway_storage::{Lsn, Storage};

use crate::error::{LabError, Result};

/// Time limit for the follower's start, and for catching up when the load has ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server over an engine, of which a follower may be asked.
pub(crate) struct Source {
    storage: Arc<Storage>,
    port: u16,
    stop: StopSignal,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Source {
    pub(crate) fn serve(engine: &Arc<Engine>) -> Result<Source> {
        let options = ServerOptions {
            listen: Some("127.0.0.1:0".to_owned()),
            socket_dir: None,
            ..ServerOptions::default()
        };
        let server = Server::bind(Arc::clone(engine), options)?;
        let address = server.local_addr();
        let port = address.map(|address| address.port()).unwrap_or_default();
        let stop = StopSignal::new().map_err(|error| begin("stop signal", error))?;
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("clearway source".to_owned())
            .spawn(move || server.run(&stopped))
            .map_err(|error| begin("thread of the server", error))?;
        Ok(Source {
            storage: Arc::clone(engine.storage()),
            port,
            stop,
            thread: Some(thread),
        })
    }

    /// Begins to follow where the log ends, and returns when log is received.
    pub(crate) fn follow(&self) -> Result<Follower> {
        let conninfo = format!("host=127.0.0.1 port={} application_name=follower", self.port);
        let options = ReceiverOptions {
            conninfo: conninfo.parse().map_err(|error| begin("address", error))?,
            timeout: PATIENCE,
            stream: StreamOptions {
                slot: None,
                status_interval: Duration::from_secs(10),
                feedback: false,
            },
            create_slot: false,
        };
        let kept = Arc::new(Kept {
            received: AtomicU64::new(self.storage.durable_log_end().0),
            system_identifier: self.storage.system_identifier(),
            timeline: self.storage.timeline(),
        });
        let parts = ReceiverParts {
            sink: Box::new(Sink(Arc::clone(&kept))),
            replay: Arc::clone(&kept) as Arc<dyn ReplayView>,
            timelines: Arc::clone(&kept) as Arc<dyn TimelineKeeper>,
            keeps_log: None,
            observer: Box::new(|_| {}),
        };
        let receiver =
            Receiver::spawn(options, parts).map_err(|error| begin("thread of the receiver", error))?;
        let follower = Follower {
            storage: Arc::clone(&self.storage),
            receiver,
            kept,
        };
        follower.wait("receives no log", |follower| {
            follower.receiver.status().get().phase == ReceiverPhase::Streaming
        })?;
        Ok(follower)
    }

    /// Stops the server, which closes the engine.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => Ok(ended?),
            Some(Err(_)) => Err(LabError::Follower("the server has panicked".to_owned())),
            None => Ok(()),
        }
    }
}

fn begin(what: &str, error: impl std::fmt::Display) -> LabError {
    LabError::Follower(format!("making the {what}: {error}"))
}

/// A follower that receives; it ends when dropped.
pub(crate) struct Follower {
    storage: Arc<Storage>,
    receiver: Receiver,
    kept: Arc<Kept>,
}

impl Follower {
    /// Waits until all log that is durable now has arrived.
    pub(crate) fn caught_up(&self) -> Result<()> {
        let end = self.storage.durable_log_end();
        self.wait("has not caught up", |follower| follower.kept.replayed() >= end)
    }

    fn wait(&self, what: &str, holds: impl Fn(&Follower) -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            if Instant::now() > deadline {
                let state = self.receiver.status().get();
                return Err(LabError::Follower(format!(
                    "it {what} after {} s: {}, received up to {}{}",
                    PATIENCE.as_secs(),
                    state.phase.name(),
                    self.kept.replayed(),
                    state.error.map(|error| format!(", {error}")).unwrap_or_default()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// The end of the log that a follower has received.
struct Kept {
    received: AtomicU64,
    system_identifier: u64,
    timeline: u32,
}

/// A sink that keeps no bytes.
struct Sink(Arc<Kept>);

impl LogSink for Sink {
    fn position(&self) -> Lsn {
        self.0.replayed()
    }

    fn write(&mut self, position: Lsn, bytes: &[u8]) -> clearway_storage::Result<()> {
        let end = position.0 + bytes.len() as u64;
        self.0.received.store(end, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&mut self) -> clearway_storage::Result<Lsn> {
        Ok(self.position())
    }
}

impl ReplayView for Kept {
    fn replayed(&self) -> Lsn {
        Lsn(self.received.load(Ordering::Relaxed))
    }

    fn oldest_xid_seen(&self) -> u64 {
        0
    }
}

impl OwnLog for Kept {
    fn system_identifier(&self) -> u64 {
        self.system_identifier
    }

    fn timeline(&self) -> u32 {
        self.timeline
    }

    fn common_end(&self, _: u32, _: Option<&[u8]>, log_end: Lsn) -> Result<Lsn, NotFollowed> {
        Ok(log_end)
    }

    /// Of nothing, since nothing is kept.
    fn digest(&self, _start: Lsn, end: Lsn) -> clearway_storage::Result<LogDigest> {
        Ok(LogDigest {
            start: end,
            end,
            digits: String::new(),
        })
    }
}

impl TimelineKeeper for Kept {
    fn follow(&self, timeline: u32, _history: &[u8], _log_end: Lsn) -> Result<(), NotFollowed> {
        Err(NotFollowed::Never(format!(
            "the bench's database went on to timeline {timeline}"
        )))
    }
}
