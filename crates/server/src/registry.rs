//! The connected clients, and finding those that have vanished.
//!
//! A session's thread learns that its client is gone when it reads or writes. While a statement waits for a
//! lock it does neither, and all other sessions may wait for a lock that a vanished client's transaction
//! holds. So one watcher thread looks at all connections every [`WATCH_EVERY`]: for those that have been at
//! work since its last look, one `poll` for all of them tells whether their client has hung up, and if so
//! their statement is cancelled.
//!
//! Each connection counts its changes between waiting and working ([`Presence`]): even means waiting for the client.
//! An odd count that has not moved since the last look is work that has lasted that long. So the hot path pays two
//! plain stores a message batch, and reads no clock.
//!
//! # Clients that have not logged in
//!
//! They take connections, and need no right for it. So a connection beyond the limit is not refused while there are such
//! clients: one of them makes room for it, the oldest of the address that has most of them. A flood from one address
//! takes its room from itself; a client from another one, or over the Unix-domain socket, logs in meanwhile.
//!
//! The connection that makes room ends on its own thread, which takes a moment. While as many as [`ENDING_MAX`] do, no more
//! connections are taken: those that come wait in the listener's queue, in the order in which they came, and are not refused.
//!
//! The watcher also adapts the scheduling of sessions, if it was asked to ([`session_scheduling`](crate::session_scheduling)).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clearway_engine::Engine;
use clearway_machine::{Native, ThreadId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{debug, warn};

use crate::session_scheduling::{Adaptation, ChosenPolicy, Scheduling, SessionThread};
use crate::socket::Socket;

/// The log tells at most this often that clients without a login make room.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The most connections that have made room and have not ended yet.
const ENDING_MAX: usize = 64;

/// The time that one of them has to end. If none does, a connection that needs room is refused.
const ENDING_PATIENCE: Duration = Duration::from_secs(3);

/// Interval between two looks of the watcher.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// The watcher's view of a connection.
#[derive(Debug)]
pub(crate) struct Presence {
    socket: Arc<Socket>,
    /// Even: waiting for the client; odd: at work. Written by the connection's thread alone.
    changes: AtomicU64,
    session: OnceLock<(Arc<Engine>, u32, u32)>,
    /// The connection's thread, once it has begun. Set under the registry's mutex.
    thread: OnceLock<ThreadId>,
    /// A stop leaves its reads alone ([`Registry::ends_by_itself`]). Under the registry's mutex.
    ends_by_itself: AtomicBool,
}

impl Presence {
    pub(crate) fn new(socket: Arc<Socket>) -> Presence {
        Presence {
            socket,
            changes: AtomicU64::new(1),
            session: OnceLock::new(),
            thread: OnceLock::new(),
            ends_by_itself: AtomicBool::new(false),
        }
    }

    /// The thread is about to wait for the client. Relaxed: the watcher acts on what stays, not on order.
    #[inline]
    pub(crate) fn waiting(&self) {
        self.changes
            .store((self.changes.load(Ordering::Relaxed) | 1) + 1, Ordering::Relaxed);
    }

    /// The thread has something to do.
    #[inline]
    pub(crate) fn working(&self) {
        self.changes
            .store(self.changes.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    }

    /// Names the session whose statement is cancelled when the client vanishes.
    pub(crate) fn has_session(&self, engine: Arc<Engine>, process_id: u32, secret: u32) {
        let _ = self.session.set((engine, process_id, secret));
    }

    /// The session is to end: its next read, also one that it waits in, finds the end of the stream.
    pub(crate) fn end_connection(&self) {
        self.socket.stop_reading();
    }

    fn session_thread(&self, number: u64) -> Option<SessionThread> {
        Some(SessionThread {
            number,
            thread: *self.thread.get()?,
            // Two changes a message.
            messages: self.changes.load(Ordering::Relaxed) / 2,
        })
    }

    fn cancel(&self) {
        if let Some((engine, process_id, secret)) = self.session.get() {
            engine.cancel(*process_id, *secret);
        }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    /// Signalled when a connection ends, and when the watcher must end.
    changed: Condvar,
    /// Signalled when a connection ends that has made room, and when the server stops.
    ended: Condvar,
    stopping: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    connections: HashMap<u64, Arc<Presence>>,
    /// Those of them that have not logged in, oldest first, with the address that they come from.
    without_login: BTreeMap<u64, Option<IpAddr>>,
    /// Those that have made room, and are about to end.
    given_up: HashSet<u64>,
    told: Option<Instant>,
    next_number: u64,
    watcher_ends: bool,
    policy: ChosenPolicy,
}

/// A place in the registry, given back when dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<Registry>,
    number: u64,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Enters a connection, unless the server is stopping, or `limit` are there of which none can make room. Waits while too
    /// many that have made room are still ending.
    pub(crate) fn enter(self: &Arc<Self>, presence: Arc<Presence>, limit: usize) -> Option<Registration> {
        self.enter_within(presence, limit, ENDING_PATIENCE)
    }

    fn enter_within(
        self: &Arc<Self>,
        presence: Arc<Presence>,
        limit: usize,
        patience: Duration,
    ) -> Option<Registration> {
        let waits = |state: &mut State| {
            state.given_up.len() >= ENDING_MAX && !state.has_free(limit) && !self.is_stopping()
        };
        let (mut state, waited) = self
            .ended
            .wait_timeout_while(self.lock(), patience, waits)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.is_stopping() || waited.timed_out() || !state.has_room(limit) {
            return None;
        }
        state.next_number += 1;
        let number = state.next_number;
        state.without_login.insert(number, presence.socket.address());
        state.connections.insert(number, presence);
        Some(Registration {
            registry: Arc::clone(self),
            number,
        })
    }

    /// The calling thread serves the connection: it has the policy of sessions from now on.
    pub(crate) fn has_thread(&self, presence: &Presence) {
        let state = self.lock();
        let _ = presence.thread.set(Native::this_thread());
        state.policy.take();
    }

    /// Number of connections.
    pub(crate) fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// True if [`stop_all`](Self::stop_all) has been called.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Has every connection's next read report the end, also those that wait in one; except for those that
    /// [end by themselves](Self::ends_by_itself).
    pub(crate) fn stop_all(&self) {
        let state = self.lock();
        // Under the mutex, so that no connection enters unseen.
        self.stopping.store(true, Ordering::Relaxed);
        for presence in state.connections.values() {
            if !presence.ends_by_itself.load(Ordering::Relaxed) {
                presence.socket.stop_reading();
            }
        }
        self.ended.notify_all();
    }

    /// Has a stop leave the reads of this connection alone while the answer is kept, for a session that looks at
    /// [`is_stopping`](Self::is_stopping) itself. `None` if the server is stopping already.
    pub(crate) fn ends_by_itself<'a>(&'a self, presence: &'a Presence) -> Option<EndsByItself<'a>> {
        let _state = self.lock();
        if self.is_stopping() {
            return None;
        }
        presence.ends_by_itself.store(true, Ordering::Relaxed);
        Some(EndsByItself {
            registry: self,
            presence,
        })
    }

    /// Waits until all connections have ended; after `patience`, cuts them off, and waits as long again.
    pub(crate) fn wait_until_empty(&self, patience: Duration) {
        for cut_off in [false, true] {
            let mut state = self.lock();
            if cut_off {
                for presence in state.connections.values() {
                    presence.cancel();
                    presence.socket.stop();
                }
            }
            let deadline = Instant::now() + patience;
            while !state.connections.is_empty() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self
                    .changed
                    .wait_timeout(state, left)
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
                    .0;
            }
        }
    }

    /// Starts the watcher; it ends when what this returns is dropped.
    pub(crate) fn watch(registry: Arc<Registry>, scheduling: Scheduling) -> io::Result<Watcher> {
        let watched = Arc::clone(&registry);
        let adaptation = Adaptation::of(scheduling);
        registry.lock().policy = ChosenPolicy::of(scheduling);
        let thread = std::thread::Builder::new()
            .name("clearway watcher".to_owned())
            .stack_size(256 << 10)
            .spawn(move || watched.watch_loop(adaptation))?;
        Ok(Watcher {
            registry,
            thread: Some(thread),
        })
    }

    fn watch_loop(&self, mut adaptation: Option<Adaptation>) {
        let mut last_seen: HashMap<u64, u64> = HashMap::new();
        let mut state = self.lock();
        while !state.watcher_ends {
            let mut suspects = Vec::new();
            let mut seen = HashMap::with_capacity(state.connections.len());
            for (number, presence) in &state.connections {
                let changes = presence.changes.load(Ordering::Relaxed);
                if changes % 2 == 1 {
                    seen.insert(*number, changes);
                    if last_seen.get(number) == Some(&changes) {
                        suspects.push(Arc::clone(presence));
                    }
                }
            }
            last_seen = seen;
            if let Some(adaptation) = &mut adaptation {
                let threads = state
                    .connections
                    .iter()
                    .filter_map(|(number, presence)| presence.session_thread(*number));
                let threads: Vec<_> = threads.collect();
                adaptation.look(&threads, &mut state.policy);
            }
            drop(state);
            cancel_vanished(&suspects);
            state = self.lock();
            if !state.watcher_ends {
                state = self
                    .changed
                    .wait_timeout(state, WATCH_EVERY)
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
                    .0;
            }
        }
    }
}

/// Cancels the statements of those whose client has hung up.
fn cancel_vanished(suspects: &[Arc<Presence>]) {
    if suspects.is_empty() {
        return;
    }
    let hung_up = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut polled: Vec<PollFd<'_>> = suspects
        .iter()
        .map(|presence| PollFd::new(&*presence.socket, PollFlags::RDHUP))
        .collect();
    if poll(
        &mut polled,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )
    .unwrap_or(0)
        == 0
    {
        return;
    }
    for (presence, polled) in suspects.iter().zip(&polled) {
        if polled.revents().intersects(hung_up) {
            debug!("a client has vanished: cancelling its statement");
            // Again at every look until the thread has noticed: a cancel that falls between two statements of
            // one batch is lost, and a second cancel does no harm.
            presence.cancel();
        }
    }
}

impl State {
    /// True if a connection more fits as it is.
    fn has_free(&self, limit: usize) -> bool {
        self.connections.len() - self.given_up.len() < limit
    }

    /// True if a connection more fits; one without a login makes room for it.
    fn has_room(&mut self, limit: usize) -> bool {
        if self.has_free(limit) {
            return true;
        }
        let mut of_address: HashMap<Option<IpAddr>, (usize, u64)> = HashMap::new();
        for (number, address) in &self.without_login {
            of_address.entry(*address).or_insert((0, *number)).0 += 1;
        }
        let most = of_address
            .iter()
            .max_by_key(|(_, (count, oldest))| (*count, Reverse(*oldest)));
        let Some((address, (count, oldest))) = most else {
            return false;
        };
        let now = Instant::now();
        if self.told.is_none_or(|told| now - told > TOLD_EVERY) {
            self.told = Some(now);
            warn!(
                ?address,
                "no connection is free: the oldest of {count} that have not logged in makes room"
            );
        }
        let oldest = *oldest;
        self.without_login.remove(&oldest);
        self.given_up.insert(oldest);
        if let Some(presence) = self.connections.get(&oldest) {
            presence.socket.stop();
        }
        true
    }
}

impl Registration {
    /// The client has logged in: its connection stays.
    pub(crate) fn has_logged_in(&self) {
        self.registry.lock().without_login.remove(&self.number);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.connections.remove(&self.number);
        state.without_login.remove(&self.number);
        let made_room = state.given_up.remove(&self.number);
        drop(state);
        if made_room {
            self.registry.ended.notify_all();
        }
        if self.registry.is_stopping() {
            self.registry.changed.notify_all();
        }
    }
}

/// A stop leaves this connection's reads alone; ends when dropped.
#[derive(Debug)]
pub(crate) struct EndsByItself<'a> {
    registry: &'a Registry,
    presence: &'a Presence,
}

impl Drop for EndsByItself<'_> {
    fn drop(&mut self) {
        let _state = self.registry.lock();
        self.presence.ends_by_itself.store(false, Ordering::Relaxed);
        if self.registry.is_stopping() {
            // What the stop has left out.
            self.presence.socket.stop_reading();
        }
    }
}

/// The watcher's thread; ends when dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    registry: Arc<Registry>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.registry.lock().watcher_ends = true;
        self.registry.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;

    use super::*;

    const LIMIT: usize = 2;

    fn presence() -> Arc<Presence> {
        let (stream, _) = UnixStream::pair().unwrap();
        Arc::new(Presence::new(Arc::new(Socket::from_unix(stream))))
    }

    /// A registry in which as many have made room as may be ending, oldest first, with those that they made room for.
    fn flooded() -> (Arc<Registry>, Vec<Registration>) {
        let registry = Arc::new(Registry::default());
        let entered = (0..LIMIT + ENDING_MAX).map(|_| registry.enter(presence(), LIMIT).unwrap());
        let entered = entered.collect();
        (registry, entered)
    }

    /// One that comes behind them enters when one of them has ended, and when the server stops it is refused.
    #[test]
    fn a_flood_waits_for_those_that_make_room() {
        for (stops, enters) in [(false, true), (true, false)] {
            let (registry, mut entered) = flooded();
            let (tell, told) = channel();
            let newcomer = thread::spawn({
                let registry = Arc::clone(&registry);
                move || {
                    let place = registry.enter_within(presence(), LIMIT, Duration::MAX);
                    tell.send(place.is_some()).unwrap();
                    place
                }
            });
            assert_eq!(
                told.recv_timeout(Duration::from_millis(100)),
                Err(RecvTimeoutError::Timeout)
            );
            if stops {
                registry.stop_all();
            } else {
                drop(entered.remove(0));
            }
            assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(enters));
            drop((newcomer.join().unwrap(), entered));
            assert_eq!(registry.len(), 0);
        }
    }

    /// If none of them ends, it is refused.
    #[test]
    fn patience_with_those_that_make_room_ends() {
        let (registry, entered) = flooded();
        let refused = registry.enter_within(presence(), LIMIT, Duration::from_millis(10));
        assert!(refused.is_none());
        assert_eq!(registry.len(), entered.len());
    }
}
