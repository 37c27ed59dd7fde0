//! The progress of a standby: of receiving, of replay, and waiting for either.
//!
//! Positions only grow, but that a part of a record can be taken back (`take_back`). A thread that waits registers
//! under the mutex and looks again before it sleeps; one that moves a position stores it first and then takes the
//! mutex, if a thread is registered. One of the two comes first: either the position is found, or the sleeper is.
//! Both sides pass a fence between their store and their load.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, fence};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};

use super::{Standby, lock};
use crate::error::StorageError;
use crate::page::Lsn;
use crate::wal::link::LogLink;

/// The progress of a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Log before this is durable here.
    pub received: Lsn,
    /// Log before this has been replayed, and is seen.
    pub replayed: Lsn,
}

/// Set beside a link of 32 bits.
const LINK_IS_KNOWN: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Tracker {
    received: AtomicU64,
    replayed: AtomicU64,
    /// The end of the last whole record that was received: what replay comes to. Not behind `received`.
    whole: AtomicU64,
    /// The link of the record that begins there, and [`LINK_IS_KNOWN`].
    link: AtomicU64,
    /// Of the last commit or abort replayed, in microseconds since 2000; `i64::MIN`: none.
    commit_time_us: AtomicI64,
    stopping: AtomicBool,
    /// Replay is to end when it has come to the end of what was received.
    ending: AtomicBool,
    has_failed: AtomicBool,
    /// A server sends log.
    is_fed: AtomicBool,
    waiters: AtomicU32,
    /// The step that replay could not do for want of room on the disk, while it waits for that.
    wants_room: Mutex<Option<StorageError>>,
    changed: Condvar,
    failure: Mutex<Option<String>>,
}

impl Tracker {
    /// All log before `end` is there and was replayed; the next record gets `link`, if it is known.
    pub(crate) fn new(end: Lsn, link: Option<LogLink>) -> Self {
        Self {
            received: AtomicU64::new(end.0),
            replayed: AtomicU64::new(end.0),
            whole: AtomicU64::new(end.0),
            link: AtomicU64::new(link_word(link)),
            commit_time_us: AtomicI64::new(i64::MIN),
            stopping: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            is_fed: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            wants_room: Mutex::default(),
            changed: Condvar::new(),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn get(&self) -> Progress {
        // Acquire: pairs with the Releases below. Replayed first, so that it is not ahead of received.
        let replayed = Lsn(self.replayed.load(Acquire));
        Progress {
            received: Lsn(self.received.load(Acquire)),
            replayed,
        }
    }

    pub(crate) fn received_up_to(&self, position: Lsn) {
        self.received.store(position.0, Release);
        self.notify();
    }

    /// Behind [`received_up_to`](Self::received_up_to) the same or more. The next record gets `link`. Only the one receiver
    /// calls this.
    pub(crate) fn whole_up_to(&self, position: Lsn, link: Option<LogLink>) {
        self.link.store(link_word(link), Release);
        self.whole.store(position.0, Release);
        self.notify();
    }

    pub(crate) fn whole(&self) -> Lsn {
        Lsn(self.whole.load(Acquire))
    }

    /// The link of the record that begins at [`whole`](Self::whole), if it is known; for the receiver, which moves both.
    pub(crate) fn link(&self) -> Option<LogLink> {
        let word = self.link.load(Acquire);
        (word & LINK_IS_KNOWN != 0).then_some(LogLink(word as u32))
    }

    /// Stores only; [`notify`](Self::notify) wakes.
    pub(crate) fn replayed_up_to(&self, position: Lsn) {
        self.replayed.store(position.0, Release);
    }

    pub(crate) fn committed_at(&self, time_us: i64) {
        self.commit_time_us.store(time_us, Relaxed);
    }

    /// Wakes those that wait for something to move.
    pub(crate) fn notify(&self) {
        fence(SeqCst);
        if self.waiters.load(Relaxed) > 0 {
            drop(lock(&self.failure));
            self.changed.notify_all();
        }
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Release);
        self.notify();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Acquire)
    }

    pub(crate) fn end(&self) {
        self.ending.store(true, Release);
        self.notify();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Acquire)
    }

    pub(crate) fn fail(&self, problem: String) {
        let mut failure = lock(&self.failure);
        failure.get_or_insert(problem);
        self.has_failed.store(true, Release);
        drop(failure);
        self.changed.notify_all();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Acquire)
    }

    pub(crate) fn set_fed(&self, is_fed: bool) {
        // Relaxed: chooses the name of a wait, and nothing is read that it would publish.
        self.is_fed.store(is_fed, Relaxed);
    }

    pub(crate) fn is_fed(&self) -> bool {
        self.is_fed.load(Relaxed)
    }

    pub(crate) fn wants_room(&self) -> MutexGuard<'_, Option<StorageError>> {
        lock(&self.wants_room)
    }

    /// Waits until `is_over` or, at the latest, for `timeout` or until replay has failed; whether it is over.
    pub(crate) fn wait(&self, timeout: Duration, event: WaitEvent, is_over: impl Fn() -> bool) -> bool {
        self.wait_unless(timeout, event, is_over, || self.has_failed())
    }

    /// Waits, after replay has failed, until `is_over` or, at the latest, for `timeout`.
    pub(crate) fn wait_failed(&self, timeout: Duration, is_over: impl Fn() -> bool) {
        self.wait_unless(timeout, WaitEvent::RecoveryFailed, is_over, || false);
    }

    fn wait_unless(
        &self,
        timeout: Duration,
        event: WaitEvent,
        is_over: impl Fn() -> bool,
        gives_up: impl Fn() -> bool,
    ) -> bool {
        if is_over() {
            return true;
        }
        let _wait = WaitScope::<Native>::enter(event);
        let deadline = Instant::now() + timeout;
        self.waiters.fetch_add(1, Relaxed);
        fence(SeqCst);
        let mut failure = lock(&self.failure);
        let over = loop {
            if is_over() {
                break true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || gives_up() {
                break false;
            }
            let waited = self.changed.wait_timeout(failure, left);
            failure = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        };
        drop(failure);
        self.waiters.fetch_sub(1, Relaxed);
        over
    }
}

fn link_word(link: Option<LogLink>) -> u64 {
    link.map_or(0, |link| LINK_IS_KNOWN | u64::from(link.0))
}

impl Standby {
    /// Its progress.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Log before this is durable here.
    pub fn received(&self) -> Lsn {
        self.progress.get().received
    }

    /// Up to where the log may be sent to followers: what is durable here; once recovery is ending, what was replayed, which
    /// grows to the fork. What is behind that may be overwritten from then on.
    pub(crate) fn sendable(&self) -> Lsn {
        let progress = self.progress.get();
        if self.is_ending() {
            progress.replayed
        } else {
            progress.received
        }
    }

    /// True if a promotion has begun, also if it has ended or failed.
    pub(crate) fn is_ending(&self) -> bool {
        self.progress.is_ending()
    }

    /// Log before this has been replayed, and is seen.
    pub fn replayed(&self) -> Lsn {
        self.progress.get().replayed
    }

    /// The time of the last transaction's end that was replayed, in microseconds since 2000 by the primary's clock.
    pub fn replayed_commit_time_us(&self) -> Option<i64> {
        Some(self.progress.commit_time_us.load(Relaxed)).filter(|time| *time != i64::MIN)
    }

    /// Waits until log up to `position` has been replayed; whether it has within `timeout`.
    pub fn wait_replayed(&self, position: Lsn, timeout: Duration) -> bool {
        let is_over = |progress: Progress| progress.replayed >= position;
        self.wait_until(is_over, WaitEvent::RecoveryApply, timeout)
    }

    /// Waits until its progress is as `is_over` says, for `timeout` at most or until replay has failed; whether it is.
    pub fn wait_until(
        &self,
        is_over: impl Fn(Progress) -> bool,
        event: WaitEvent,
        timeout: Duration,
    ) -> bool {
        self.progress.wait(timeout, event, || is_over(self.progress()))
    }

    /// Waits until it is further than `than`, for `timeout` at most; how far it is.
    pub fn wait_progress(&self, than: Progress, timeout: Duration) -> Progress {
        let is_over = || self.progress() != than;
        self.progress.wait(timeout, WaitEvent::RecoveryApply, is_over);
        self.progress()
    }

    /// The reason why replay has ended for good, if it has: the standby answers reads, and follows no more.
    pub fn failure(&self) -> Option<String> {
        if !self.progress.has_failed() {
            return None;
        }
        lock(&self.progress.failure).clone()
    }

    pub(crate) fn fail(&self, error: &StorageError) {
        tracing::error!(%error, "replay has ended");
        self.progress.fail(error.to_string());
    }

    /// The step of replay that has no room on the disk, while it waits for that.
    pub fn waits_for_room(&self) -> Option<String> {
        self.progress.wants_room().as_ref().map(ToString::to_string)
    }
}
