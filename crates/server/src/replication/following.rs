//! A standby's engine beside its receiver: following a primary until the promotion.
//!
//! | asked by | seen within |
//! | --- | --- |
//! | the file `promote.signal` in the data directory (`clearway promote`) | 100 ms |
//! | `select pg_promote()` | 100 ms |
//!
//! # Steps of a promotion
//! 0. If the storage refuses a promotion at this time, nothing is stopped: what it needs may still be received.
//! 1. Stop the receiver, and wait for its end: nothing is written to the log any more (R3 of [`run`](super::receiver::run)).
//! 2. Note which server was followed ([`PROMOTED_FROM`]), and promote the engine: it replays what was received, and goes on on a timeline of its own.
//! 3. Remove the file. One that is there when following begins is of an earlier run, and is removed too. If the promotion
//!    has failed, the file `promote.failed` says before that why, for `clearway promote`.
//!
//! After a failure of step 2 no log is received any more. The promotion is tried again when it is asked for again; the storage refuses
//! that where the directory is a primary's by then.
//!
//! The sessions stay connected all the time.
//!
//! A member of a cluster is promoted by its node alone ([`Promotions::ByOwner`]): the file and a session are refused.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clearway_engine::{Engine, EngineError, WalReceiverStatus};
use clearway_machine::invariant;
use clearway_storage::directory_log::DirectoryLog;
use clearway_storage::directory_state::{PROMOTE_FAILED, PROMOTE_SIGNAL, PROMOTED_FROM, STANDBY_DIVERGED};
use clearway_storage::log_digest::LogDigest;
use clearway_storage::standby::LogReceiver;
use clearway_storage::timeline::History;
use clearway_storage::{Lsn, Storage, StorageError};
use tracing::{error, info, warn};

use super::receiver::client::Client;
use super::receiver::run::{Receiver, ReceiverEvent, ReceiverOptions, ReceiverParts};
use super::receiver::status::{ReceiverPhase, ReceiverState, ReceiverStatus};
use super::receiver::{LogSink, NotFollowed, OwnLog, ReceiverError, ReplayView, TimelineKeeper, agree};
use crate::error::{Result, ServerError};

/// Time between two looks whether a promotion is wanted.
const LOOK: Duration = Duration::from_millis(100);

impl LogSink for LogReceiver {
    fn position(&self) -> Lsn {
        LogReceiver::position(self)
    }

    fn write(&mut self, position: Lsn, bytes: &[u8]) -> clearway_storage::Result<()> {
        LogReceiver::write(self, position, bytes)
    }

    fn sync(&mut self) -> clearway_storage::Result<Lsn> {
        LogReceiver::sync(self)
    }

    fn checked(&self) -> Lsn {
        LogReceiver::checked(self)
    }

    fn give_up_part(&mut self) -> bool {
        LogReceiver::give_up_part(self)
    }

    fn resume(&mut self) {
        LogReceiver::resume(self);
    }

    fn set_streaming(&mut self, streams: bool) {
        LogReceiver::set_streaming(self, streams);
    }
}

/// The view of a standby that its primary gets.
struct Replayed(Arc<Storage>);

impl ReplayView for Replayed {
    fn replayed(&self) -> Lsn {
        self.0.standby().map_or(Lsn(0), |standby| standby.replayed())
    }

    fn failure(&self) -> Option<String> {
        self.0.standby().and_then(|standby| standby.failure())
    }

    fn oldest_xid_seen(&self) -> u64 {
        // Also what a snapshot taken next would need: the primary must not clean up between two reports.
        let next = self.0.standby().and_then(|standby| standby.known_xmin());
        let held = self.0.proc_array.oldest_xmin();
        // And what those see that follow this standby.
        let asked_for = self.0.proc_array.oldest_standby_xmin();
        let xmins = held.into_iter().chain(next).chain(asked_for);
        xmins.min().map_or(0, |xid| xid.0)
    }
}

/// The timelines of a standby's directory.
struct Timelines(Arc<Storage>);

/// The reason why a history or a log is not followed.
fn not_followed(error: StorageError) -> NotFollowed {
    match error {
        StorageError::NotReplayedYet { .. } => NotFollowed::NotYet(error.to_string()),
        error if error.wants_room() => NotFollowed::NotYet(error.to_string()),
        error => NotFollowed::Never(error.to_string()),
    }
}

/// A history file as text.
fn history_text(timeline: u32, history: &[u8]) -> std::result::Result<&str, NotFollowed> {
    std::str::from_utf8(history)
        .map_err(|_| NotFollowed::Never(format!("the history of timeline {timeline} is no text")))
}

impl OwnLog for Timelines {
    fn system_identifier(&self) -> u64 {
        self.0.system_identifier()
    }

    fn timeline(&self) -> u32 {
        self.0.timeline()
    }

    fn common_end(
        &self,
        timeline: u32,
        history: Option<&[u8]>,
        log_end: Lsn,
    ) -> std::result::Result<Lsn, NotFollowed> {
        let history = history
            .map(|history| history_text(timeline, history))
            .transpose()?;
        self.0
            .common_log_end(timeline, history, log_end)
            .map_err(not_followed)
    }

    fn digest(&self, start: Lsn, end: Lsn) -> clearway_storage::Result<LogDigest> {
        self.0.log_digest(start, end)
    }
}

impl TimelineKeeper for Timelines {
    fn follow(&self, timeline: u32, history: &[u8], _log_end: Lsn) -> std::result::Result<(), NotFollowed> {
        let history = history_text(timeline, history)?;
        self.0.follow_timeline(history, timeline).map_err(not_followed)
    }
}

/// The log of a directory that is to become a standby's, and is not open: a former primary's.
pub struct FormerPrimary(DirectoryLog);

impl FormerPrimary {
    /// The log of the database in `directory`.
    pub fn open(directory: &Path) -> clearway_storage::Result<FormerPrimary> {
        DirectoryLog::open(directory).map(FormerPrimary)
    }

    /// True if it can go on as a standby of the server: that server's log goes on from all of its own. Changes nothing.
    pub fn can_follow(&self, client: &mut Client) -> super::receiver::Result<()> {
        let end = self.0.end();
        let agreed = agree::check(client, self, end)?;
        // What a server of its own has logged, and the other one has not, it never will have.
        if agreed.system.timeline == self.timeline() && agreed.system.flushed < end {
            let flushed = agreed.system.flushed;
            return Err(ReceiverError::Diverged {
                address: client.address().to_owned(),
                problem: format!(
                    "this directory is not a standby's, and has log of its own up to {end}; the server has log up to \
                     {flushed} only; make a new base backup: \"clearway standby\" with the name of an empty directory \
                     (and keep this one if you need what was committed here behind {flushed})"
                ),
            });
        }
        Ok(())
    }
}

impl OwnLog for FormerPrimary {
    fn system_identifier(&self) -> u64 {
        self.0.system_identifier()
    }

    fn timeline(&self) -> u32 {
        self.0.history().current()
    }

    fn common_end(
        &self,
        timeline: u32,
        history: Option<&[u8]>,
        _log_end: Lsn,
    ) -> std::result::Result<Lsn, NotFollowed> {
        let server = match history {
            None => History::first(),
            Some(history) => {
                History::parse(history_text(timeline, history)?, timeline).map_err(|problem| {
                    NotFollowed::Never(format!("the history of timeline {timeline}: {problem}"))
                })?
            }
        };
        self.0.common_end(&server).map_err(not_followed)
    }

    fn digest(&self, start: Lsn, end: Lsn) -> clearway_storage::Result<LogDigest> {
        self.0.digest(start, end)
    }
}

/// An event of a standby, for those who watch it.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowingEvent<'a> {
    /// Something about the receiver.
    Receiver(&'a ReceiverEvent),
    /// It is a primary now, on this timeline, which begins here.
    Promoted(u32, Lsn),
    /// The promotion has failed.
    NotPromoted(&'a EngineError),
    /// Replay has ended, and this is why: sessions read what there is.
    ReplayFailed(&'a str),
}

impl std::fmt::Display for FollowingEvent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FollowingEvent::Receiver(event) => event.fmt(f),
            FollowingEvent::Promoted(timeline, begins) => {
                write!(
                    f,
                    "promoted: timeline {timeline} begins at {begins}; writes are accepted"
                )
            }
            FollowingEvent::NotPromoted(error) => write!(f, "not promoted: {error}"),
            FollowingEvent::ReplayFailed(problem) => write!(f, "replay has ended: {problem}"),
        }
    }
}

/// The standby has diverged, or its log goes on: tells the engine, and notes it for the next start, at which the server may
/// not be there to be asked.
fn note_divergence(engine: &Weak<Engine>, note: &Path, event: &ReceiverEvent) {
    let Some(engine) = engine.upgrade() else { return };
    match event {
        ReceiverEvent::Refused(error @ (ReceiverError::Diverged { .. } | ReceiverError::Unlinked { .. })) => {
            let problem = error.to_string();
            if let Err(error) = std::fs::write(note, &problem) {
                warn!("could not write {}: {error}", note.display());
            }
            engine.set_diverged(Some(problem));
        }
        ReceiverEvent::Streaming { .. } => {
            let _ = std::fs::remove_file(note);
            engine.set_diverged(None);
        }
        _ => {}
    }
}

/// The source of the requests for a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotions {
    /// `clearway promote` and `pg_promote()`.
    Asked,
    /// Only the owner of the [`Following`], by [`Following::promote`].
    ByOwner,
}

/// The threads that keep a standby up to date; they end when this is dropped.
#[derive(Debug)]
pub struct Following {
    engine: Arc<Engine>,
    status: Arc<ReceiverStatus>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    /// Has `engine`, a standby, receive the log of the server that `options` names. `keeps_log` is the connection that its
    /// base backup came through, if there was one. `observer` gets each event.
    pub fn start(
        engine: Arc<Engine>,
        options: ReceiverOptions,
        keeps_log: Option<Client>,
        promotions: Promotions,
        observer: impl Fn(&FollowingEvent<'_>) + Send + Sync + 'static,
    ) -> Result<Following> {
        let storage = Arc::clone(engine.storage());
        let signal = storage.dir().join(PROMOTE_SIGNAL);
        let _ = std::fs::remove_file(&signal);
        let _ = std::fs::remove_file(storage.dir().join(PROMOTE_FAILED));
        let observer = Arc::new(observer);
        let sink = storage
            .receive_log()
            .map_err(|error| ServerError::io("receiving log", std::io::Error::other(error)))?;
        let told = Arc::clone(&observer);
        let diverged = storage.dir().join(STANDBY_DIVERGED);
        // Until the server says otherwise, which may not be there to be asked.
        engine.set_diverged(std::fs::read_to_string(&diverged).ok());
        let followed = Arc::downgrade(&engine);
        let parts = ReceiverParts {
            sink: Box::new(sink),
            replay: Arc::new(Replayed(Arc::clone(&storage))),
            timelines: Arc::new(Timelines(storage)),
            keeps_log,
            observer: Box::new(move |event| {
                note_divergence(&followed, &diverged, event);
                told(&FollowingEvent::Receiver(event));
            }),
        };
        let receiver = Receiver::spawn(options, parts)
            .map_err(|error| ServerError::io("starting the receiver", error))?;
        let status = Arc::clone(receiver.status());
        engine.set_wal_receiver(Arc::new(move || shown(&status)));
        let wanted = Arc::new(AtomicBool::new(false));
        if promotions == Promotions::Asked {
            let asked = Arc::clone(&wanted);
            engine.set_promotion(Arc::new(move || asked.store(true, Ordering::Release)));
        }
        let status = Arc::clone(receiver.status());
        let followed = Arc::clone(&engine);
        let stopping = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            signal,
            engine,
            receiver,
            wanted,
            promotions,
            stopping: Arc::clone(&stopping),
            observer,
        };
        let thread = thread::Builder::new()
            .name("clearway standby".to_owned())
            .spawn(move || watch.run())
            .map_err(|error| ServerError::io("starting the standby's thread", error))?;
        Ok(Following {
            engine: followed,
            status,
            stopping,
            thread: Some(thread),
        })
    }

    /// True while log is received.
    pub fn streams(&self) -> bool {
        self.status.get().phase == ReceiverPhase::Streaming
    }

    /// True once no log is received any more, and none will be: the receiver has ended.
    pub fn has_ended(&self) -> bool {
        match self.status.get().phase {
            ReceiverPhase::Starting | ReceiverPhase::Streaming | ReceiverPhase::Waiting => false,
            ReceiverPhase::Stopped
            | ReceiverPhase::Refused
            | ReceiverPhase::Diverged
            | ReceiverPhase::ReplayFailed => true,
        }
    }

    /// Ends receiving, and makes a primary of the standby: [`Engine::promote`], whose result this is.
    pub fn promote(mut self, reason: &str) -> std::result::Result<(u32, Lsn), EngineError> {
        self.engine.check_promotion()?;
        self.stop();
        self.engine.promote(reason)
    }

    /// Ends receiving, and waits for the end.
    pub fn stop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Watch<F> {
    signal: PathBuf,
    engine: Arc<Engine>,
    receiver: Receiver,
    wanted: Arc<AtomicBool>,
    promotions: Promotions,
    stopping: Arc<AtomicBool>,
    observer: Arc<F>,
}

impl<F: Fn(&FollowingEvent<'_>)> Watch<F> {
    fn run(mut self) {
        let mut told_of_failure = false;
        while !self.stopping.load(Ordering::Acquire) {
            let by_command = self.signal.exists();
            if by_command && self.promotions == Promotions::ByOwner {
                self.refuse_command();
            } else if by_command || self.wanted.load(Ordering::Acquire) {
                let is_promoted = self.promote(if by_command {
                    "clearway promote"
                } else {
                    "pg_promote()"
                });
                if is_promoted {
                    return;
                }
                continue;
            }
            let failure = self
                .engine
                .storage()
                .standby()
                .and_then(|standby| standby.failure());
            if let Some(problem) = failure.filter(|_| !told_of_failure) {
                told_of_failure = true;
                (self.observer)(&FollowingEvent::ReplayFailed(&problem));
            }
            thread::sleep(LOOK);
        }
        self.receiver.stop();
    }

    /// Notes which server was followed, so that the same command starts a primary from now on.
    fn note_primary(&self) -> std::io::Result<()> {
        let conninfo = self.receiver.status().get().conninfo;
        let mut note = std::fs::File::create(self.signal.with_file_name(PROMOTED_FROM))?;
        writeln!(note, "{conninfo}")?;
        note.sync_all()
    }

    /// Tells `clearway promote` that it is not the one to ask.
    fn refuse_command(&self) {
        let problem = "it is a member of a cluster, which is asked by \"clearway cluster switchover\"";
        let _ = std::fs::write(self.signal.with_file_name(PROMOTE_FAILED), problem);
        let _ = std::fs::remove_file(&self.signal);
    }

    /// True if it is promoted.
    fn promote(&mut self, reason: &str) -> bool {
        // A request that comes later is another one.
        self.wanted.store(false, Ordering::Release);
        // 0.
        let allowed = self.engine.check_promotion();
        let promoted = allowed.and_then(|()| {
            // 1.
            self.receiver.stop();
            // 2.
            if let Err(problem) = self.note_primary() {
                // The promotion goes on: without the note the next "clearway standby" asks what the directory is to be.
                warn!("could not write {PROMOTED_FROM}: {problem}");
            }
            invariant!(
                R3 of receiver::run,
                !self.receiver.is_running(),
                "the log is still received, and the standby is to be promoted"
            );
            self.engine.promote(reason)
        });
        match &promoted {
            Ok((timeline, begins)) => {
                info!(timeline, %begins, "promoted");
                (self.observer)(&FollowingEvent::Promoted(*timeline, *begins));
            }
            Err(problem) => {
                error!("not promoted: {problem}");
                (self.observer)(&FollowingEvent::NotPromoted(problem));
                // On a full disk it cannot be written: then only this server's output tells.
                let _ = std::fs::write(self.signal.with_file_name(PROMOTE_FAILED), problem.to_string());
            }
        }
        // 3. After a failure too: what failed once is not tried again by itself.
        let _ = std::fs::remove_file(&self.signal);
        promoted.is_ok()
    }
}

/// A row of `pg_stat_wal_receiver`; none while there is no receiver.
fn shown(status: &ReceiverStatus) -> Option<WalReceiverStatus> {
    let ReceiverState {
        phase,
        receive_start,
        written,
        flushed,
        timeline,
        last_send_time,
        last_receipt_time,
        latest_end,
        latest_end_time,
        slot,
        host,
        port,
        conninfo,
        ..
    } = status.get();
    if phase == ReceiverPhase::Stopped {
        return None;
    }
    Some(WalReceiverStatus {
        process_id: std::process::id(),
        status: phase.name().to_owned(),
        receive_start,
        receive_start_timeline: timeline,
        written,
        flushed,
        received_timeline: timeline,
        last_message_sent: last_send_time,
        last_message_received: last_receipt_time,
        latest_end: (latest_end > Lsn(0)).then_some(latest_end),
        latest_end_time,
        slot_name: slot,
        sender_host: Some(host),
        sender_port: Some(port),
        conninfo,
    })
}
