//! Synchronous replication: a commit is acknowledged when standbys have it, too.
//!
//! Protects: the promise that an acknowledged commit outlives the loss of this server. What a standby does with the log
//! is its own business; here is what it has said of itself, and which sessions wait for that.
//!
//! # An example
//! `synchronous_standby_names = "FIRST 1 (berlin, paris)"`, and both stream.
//!
//! | time, µs | |
//! | --- | --- |
//! | 0 | Alice's commit record ends at 900; she makes it durable here |
//! | 100 | durable: she enters the queue of her level with 900, wakes the threads that send, and sleeps |
//! | 150 | both standbys have been sent the log up to 900 |
//! | 200 | paris reports *flushed 900*: it is not the one that counts, and no session is woken |
//! | 300 | berlin reports *flushed 900*: the replicated position moves to 900, Alice is taken out of the queue and woken |
//!
//! If berlin's connection ends at 250, paris is the first that counts from then on, and Alice is woken then.
//!
//! # Levels
//! | `synchronous_commit` | [`ReplicationLevel`] | a commit is acknowledged when the standby |
//! | --- | --- | --- |
//! | `remote_write` | `Written` | has handed it to its operating system |
//! | `on` | `Flushed` | has it on its disk |
//! | `remote_apply` | `Applied` | shows it to its readers |
//!
//! # Rules
//! - S1: a replicated position is moved under the latch only, and never backwards: what was acknowledged stays so,
//!   whichever standbys come and go.
//! - S2: a worker that enters a queue has looked at the position under the latch. A report that comes before is seen by
//!   that look; one that comes after finds the worker in the queue. So no wake-up is lost.
//! - S3: a worker is in a queue, or its place says that it is not; both change under the latch.
//! - S4: no worker is woken under the latch, which the woken one may need next. Those that are done are taken out first.
//! - S5: a commit waits here after it is durable on this server: a standby is sent durable log only.
//! - S6: it is for the session to limit a wait in time: an answer's ends with the statement's time limit, a commit's does
//!   not. A wait ends when enough standbys have the position, when no standby is named any more, or when the session is
//!   asked to stop; then a commit stays, and the session says what is not promised, and an answer does not leave.
//! - S7: a commit asks whether standbys are named after its record is in the log. So one whose record ends behind a position
//!   that is read after [`SyncReplication::set_names`] waits for those that were named: a standby that has the log up to
//!   there has all that was acknowledged without it.
//!
//! # Why the simple version is wrong
//! A waiter that looks at the position, and then enters the queue without looking again, may enter it just after the last
//! report. Then it sleeps until the next commit, which may never come.
//!
//! # Which thread wakes
//! The thread that received the report wakes those that are done, one by one: what `log_wake = leader` does, which is the
//! best of the five ways that were measured for the log.
//!
//! # What it does for the threads that send
//! A sender that has sent everything polls for more log every few milliseconds, so that a flush pays nothing for it. A
//! commit that waits here would wait as long, so it wakes the senders that sleep ([`LogSender`]). A wake-up that is lost
//! costs no more than the poll.
//!
//! # Sessions that read
//! Under `lock_release = early` a commit is seen by others before it is durable, so also before it is replicated. Under
//! `after-flush` it waits for the standbys between its flush and being seen, unless it is cancelled there.
//! [`SyncReplication::secured`] is what the rule of `lock_release` goes by instead of the durable position; see there
//! (`commit::lock_release`, *Replication*).
//!
//! # Costs
//! Off: a relaxed load of a line that is written when the setting changes. On: the latch once a commit, once a report; a
//! wake-up for each waiter.
//!
//! Origin: the settings and their meaning are PostgreSQL's; there a commit is seen when it is replicated.

mod names;
mod standbys;
mod waiters;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent, WaitScope, WorkerId};

use crate::page::Lsn;
pub use names::{StandbyChoice, StandbyNames, StandbyNamesError};
use standbys::Standby;
pub use standbys::{StandbyProgress, SyncState};
use waiters::{Places, Queue};

static SYNC_REPLICATION: LatchClass =
    LatchClass::new("SyncReplication", WaitEvent::SyncReplicationLatch, 520);

/// Number of levels.
const LEVELS: usize = 3;

/// The state that a commit must have on a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationLevel {
    /// Handed it to its operating system.
    Written = 0,
    /// Made it durable.
    Flushed = 1,
    /// Made it visible to its readers.
    Applied = 2,
}

impl ReplicationLevel {
    /// All of them, in the order of their numbers.
    pub const ALL: [ReplicationLevel; LEVELS] = [
        ReplicationLevel::Written,
        ReplicationLevel::Flushed,
        ReplicationLevel::Applied,
    ];
}

/// The outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a wait that was stopped promises nothing"]
pub enum ReplicationWait {
    /// Enough standbys have the position, or none is asked for.
    Replicated,
    /// The worker was asked to stop.
    Stopped,
}

/// A connected standby: what [`SyncReplication::join`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandbyId(u64);

/// A thread that sends the log to a standby, for those that have something for it.
pub struct LogSender<M: Machine = Native> {
    /// 1: it has sent all that it found, and sleeps.
    sleeps: M::U32,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<M: Machine> LogSender<M> {
    /// One that `wake` wakes.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            sleeps: M::U32::new(0),
            wake: Box::new(wake),
        }
    }

    /// The thread is going to sleep, unless it finds log after this call.
    pub fn going_to_sleep(&self) {
        self.sleeps.store(1, Relaxed);
        // Pairs with the fence in `senders_asleep`: either this thread finds the log, or the waiter finds it asleep.
        M::fence(SeqCst);
    }

    /// The thread runs.
    pub fn awake(&self) {
        self.sleeps.store(0, Relaxed);
    }

    fn wake(&self) {
        // The first of several waiters wakes it.
        if self.sleeps.swap(0, AcqRel) == 1 {
            (self.wake)();
        }
    }
}

impl<M: Machine> fmt::Debug for LogSender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSender")
            .field("sleeps", &self.sleeps)
            .finish_non_exhaustive()
    }
}

/// Switches that are written seldom, so that each commit may read them.
#[derive(Debug)]
struct Switches<M: Machine> {
    /// 1: standbys are named.
    configured: M::U32,
    /// 1 and 2: a session has asked for the level `Applied`; 2: `applied_floor` is known.
    applied_wanted: M::U32,
    /// The position up to which commits may not have been applied when `applied_wanted` was set.
    applied_floor: M::U64,
}

#[derive(Debug)]
struct Connected<M: Machine> {
    standby: Standby,
    sender: Arc<LogSender<M>>,
}

#[derive(Debug)]
struct State<M: Machine> {
    names: Option<StandbyNames>,
    next_number: u64,
    connected: BTreeMap<u64, Connected<M>>,
    queues: [Queue; LEVELS],
}

impl<M: Machine> State<M> {
    fn standbys(&self) -> impl Iterator<Item = (u64, &Standby)> {
        self.connected
            .iter()
            .map(|(number, connected)| (*number, &connected.standby))
    }

    fn priority(&self, name: &str) -> u32 {
        self.names.as_ref().map_or(0, |names| names.priority(name))
    }
}

/// The standbys of a database and the sessions that wait for them. See the module.
#[derive(Debug)]
pub struct SyncReplication<M: Machine = Native> {
    switches: Padded<Switches<M>>,
    /// By level, how far the log is replicated (S1).
    replicated: Padded<[M::U64; LEVELS]>,
    state: Padded<Latched<State<M>, M>>,
    places: Places<M>,
}

impl<M: Machine> Default for SyncReplication<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> SyncReplication<M> {
    /// With no standby named, for a log that begins.
    pub fn new() -> Self {
        Self::starting_at(Lsn(0))
    }

    /// With no standby named, for a log that ends at `end`. What is before counts as replicated: no session has seen it
    /// yet, and none waits for it.
    ///
    /// From zero on it would not do. The recent commits keep 40 bits of a position, and read them relative to what is
    /// secured: one that is 4 TiB ahead or more is taken for one behind, and its readers would not wait.
    pub fn starting_at(end: Lsn) -> Self {
        let state = State {
            names: None,
            next_number: 0,
            connected: BTreeMap::new(),
            queues: Default::default(),
        };
        Self {
            switches: Padded(Switches {
                configured: M::U32::new(0),
                applied_wanted: M::U32::new(0),
                applied_floor: M::U64::new(0),
            }),
            replicated: Padded(ReplicationLevel::ALL.map(|_| M::U64::new(end.0))),
            state: Padded(Latched::new(&SYNC_REPLICATION, LwLockOptions::default(), state)),
            places: Places::new(),
        }
    }

    /// Names the standbys that commits wait for from now on. Commits that wait go by them at once; `None` releases all.
    ///
    /// Commits that were seen before standbys were named count as replicated for those that read them.
    pub fn set_names(&self, names: Option<StandbyNames>) {
        let mut done = Vec::new();
        let mut state = self.state.exclusive();
        state.names = names;
        let State { names, connected, .. } = &mut *state;
        for connected in connected.values_mut() {
            let name = &connected.standby.name;
            connected.standby.priority = names.as_ref().map_or(0, |names| names.priority(name));
        }
        let is_configured = state.names.is_some();
        self.switches.configured.store(u32::from(is_configured), Relaxed);
        // S7. Pairs with the fence in `wait_within`: either the commit finds the names, or the caller finds its record.
        M::fence(SeqCst);
        if is_configured {
            self.advance(&mut state, &mut done);
        } else {
            for queue in &mut state.queues {
                self.places.take_done(queue, Lsn(u64::MAX), &mut done);
            }
        }
        drop(state);
        self.signal_all(&done);
    }

    /// True if standbys are named, so that commits wait for them.
    #[inline]
    pub fn is_configured(&self) -> bool {
        // Relaxed: the look that decides if a commit waits is in `wait_within`, behind its fence (S7). The others may go by
        // either setting while it changes.
        self.switches.configured.load(Relaxed) != 0
    }

    /// The position up to which the log is replicated at `level`.
    #[inline]
    pub fn replicated(&self, level: ReplicationLevel) -> Lsn {
        // Acquire: pairs with the Release in `advance`.
        Lsn(self.replicated[level as usize].load(Acquire))
    }

    /// Up to where commits are as safe as sessions can ask for; `None` if no standby is named, so that being durable is
    /// enough. A commit beyond it is to be found in the recent commits.
    #[inline]
    pub fn secured(&self) -> Option<Lsn> {
        if !self.is_configured() {
            return None;
        }
        let flushed = self.replicated(ReplicationLevel::Flushed);
        // A standby that only archives never applies anything: that level counts once a session has asked for it.
        // Acquire: pairs with the Release in `want_applied`.
        if self.switches.applied_wanted.load(Acquire) == 0 {
            Some(flushed)
        } else {
            Some(flushed.min(self.replicated(ReplicationLevel::Applied)))
        }
    }

    /// A session asks for the level `Applied`. For the first one, commits up to `newest` may be missing among the recent
    /// ones although they are not applied, so sessions of that level wait for all of them.
    #[inline]
    pub fn want_applied(&self, newest: impl FnOnce() -> Lsn) {
        // Acquire: pairs with the Release in `want_applied_first`; the floor is visible.
        if self.switches.applied_wanted.load(Acquire) != 2 {
            self.want_applied_first(newest);
        }
    }

    #[cold]
    fn want_applied_first(&self, newest: impl FnOnce() -> Lsn) {
        // One session at a time, and the others wait until the floor is known.
        let _state = self.state.exclusive();
        if self.switches.applied_wanted.load(Relaxed) == 2 {
            return;
        }
        // In this order: what is given up as flushed, but not applied, was so before the floor is read.
        // Release: pairs with the Acquire in `secured`.
        self.switches.applied_wanted.store(1, Release);
        M::fence(SeqCst);
        self.switches.applied_floor.store(newest().0, Relaxed);
        // Release: pairs with the Acquire in `want_applied`.
        self.switches.applied_wanted.store(2, Release);
    }

    /// The position that a session of the level `Applied`, after [`want_applied`](Self::want_applied), waits for if it
    /// has read rows: commits up to here may be missing among the recent ones although they are not applied.
    #[inline]
    pub fn applied_floor(&self) -> Lsn {
        // Relaxed: the session has called `want_applied`.
        Lsn(self.switches.applied_floor.load(Relaxed))
    }

    /// Returns when the log up to `position` is replicated at `level`, or when `stop` says so: it is asked each time that
    /// the worker is [interrupted](Self::interrupt).
    #[inline]
    pub fn wait(&self, position: Lsn, level: ReplicationLevel, stop: impl Fn() -> bool) -> ReplicationWait {
        self.wait_within(position, level, stop, || None)
    }

    /// As [`wait`](Self::wait); `stop` is asked again after the time that `time_left` gives, too, which is asked before
    /// each sleep.
    #[inline]
    pub fn wait_within(
        &self,
        position: Lsn,
        level: ReplicationLevel,
        stop: impl Fn() -> bool,
        time_left: impl Fn() -> Option<Duration>,
    ) -> ReplicationWait {
        // S7. Pairs with the fence in `set_names`.
        M::fence(SeqCst);
        if !self.is_configured() || self.replicated(level) >= position {
            return ReplicationWait::Replicated;
        }
        self.wait_slow(position, level, &stop, &time_left)
    }

    #[cold]
    fn wait_slow(
        &self,
        position: Lsn,
        level: ReplicationLevel,
        stop: &dyn Fn() -> bool,
        time_left: &dyn Fn() -> Option<Duration>,
    ) -> ReplicationWait {
        let me = M::worker();
        let asleep = {
            let mut state = self.state.exclusive();
            // S2: again, under the latch.
            if state.names.is_none() || self.replicated(level) >= position {
                return ReplicationWait::Replicated;
            }
            self.places.enter(&mut state.queues[level as usize], position, me);
            senders_asleep(&state)
        };
        for sender in asleep {
            sender.wake();
        }
        let _wait = WaitScope::<M>::enter(WaitEvent::SyncReplication);
        loop {
            // Before the questions: a signal that comes after them ends the sleep.
            let seen = self.places.signals(me);
            if self.places.is_done(me) {
                return ReplicationWait::Replicated;
            }
            if stop() {
                let mut state = self.state.exclusive();
                let queue = &mut state.queues[level as usize];
                return match self.places.leave(queue, position, me) {
                    true => ReplicationWait::Stopped,
                    false => ReplicationWait::Replicated,
                };
            }
            self.places.sleep(me, seen, time_left());
        }
    }

    /// Makes `worker`, if it waits here, ask whether it is to stop.
    pub fn interrupt(&self, worker: WorkerId) {
        self.places.signal(worker);
    }

    /// A standby that calls itself `name` is sent the log by `sender`.
    pub fn join(&self, name: &str, sender: Arc<LogSender<M>>) -> StandbyId {
        let mut state = self.state.exclusive();
        state.next_number += 1;
        let number = state.next_number;
        let standby = Standby {
            name: name.to_owned(),
            priority: state.priority(name),
            progress: StandbyProgress::default(),
        };
        state.connected.insert(number, Connected { standby, sender });
        StandbyId(number)
    }

    /// A standby says how far it is: wakes those that waited for just that.
    pub fn report(&self, id: StandbyId, progress: StandbyProgress) {
        let mut done = Vec::new();
        let mut state = self.state.exclusive();
        if let Some(connected) = state.connected.get_mut(&id.0) {
            connected.standby.progress = progress;
            self.advance(&mut state, &mut done);
        }
        drop(state);
        self.signal_all(&done);
    }

    /// A standby's connection has ended. Another one may count in its place.
    pub fn leave(&self, id: StandbyId) {
        let mut done = Vec::new();
        let mut state = self.state.exclusive();
        state.connected.remove(&id.0);
        self.advance(&mut state, &mut done);
        drop(state);
        self.signal_all(&done);
    }

    /// The state of a standby for commits, and its place on the list (0: none).
    pub fn standing(&self, id: StandbyId) -> (SyncState, u32) {
        let state = self.state.shared();
        match (&state.names, state.connected.get(&id.0)) {
            (Some(names), Some(connected)) => {
                let priority = connected.standby.priority;
                let standing = standbys::state_of(names, state.standbys(), id.0, priority);
                (standing, priority)
            }
            _ => (SyncState::Async, 0),
        }
    }

    /// Moves the replicated positions to where the standbys are, and takes those out of the queues that are done.
    fn advance(&self, state: &mut State<M>, done: &mut Vec<WorkerId>) {
        let positions = state
            .names
            .as_ref()
            .and_then(|names| standbys::replicated(names, state.standbys()));
        let Some(positions) = positions else { return };
        for level in ReplicationLevel::ALL {
            let (word, position) = (&self.replicated[level as usize], positions[level as usize]);
            // S1. Relaxed: it is written under the latch.
            if position.0 > word.load(Relaxed) {
                // Release: pairs with the Acquire in `replicated`.
                word.store(position.0, Release);
                self.places
                    .take_done(&mut state.queues[level as usize], position, done);
            }
        }
    }

    /// S4: called without the latch.
    fn signal_all(&self, done: &[WorkerId]) {
        for worker in done {
            self.places.signal(*worker);
        }
    }
}

/// The senders that have to be woken for log that is durable by now.
fn senders_asleep<M: Machine>(state: &State<M>) -> Vec<Arc<LogSender<M>>> {
    // Pairs with the fence in `going_to_sleep`.
    M::fence(SeqCst);
    state
        .connected
        .values()
        .filter(|connected| connected.sender.sleeps.load(Relaxed) == 1)
        .map(|connected| Arc::clone(&connected.sender))
        .collect()
}

#[cfg(test)]
mod tests;
