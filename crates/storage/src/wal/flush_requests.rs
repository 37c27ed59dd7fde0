//! Flushes that a session leaves to the log writer, so that the session can be told to stop.
//!
//! Protects: that a session which waits for the log, before an answer or for room on a page, leaves at once when it is told
//! to, whatever the disk does, and that none waits for a flush which no worker makes.
//!
//! # An example
//! The disk takes five seconds for a sync. Alice's commit ends at 900 in the log. Bob, with `statement_timeout = 1s`, has
//! read her row.
//!
//! | time | Alice | Bob | log writer |
//! | --- | --- | --- | --- |
//! | 0 | leads a flush, and is in the kernel | looks a few times whether 900 is durable | asleep |
//! | 0.1 ms | | asks for 900, wakes the log writer, sleeps | |
//! | 0.2 ms | | | flushes up to 900: joins a group behind Alice's flush |
//! | 1 s | | is woken by the clock, and leaves: 57014 | |
//! | 5 s | is told that she has committed | serves another statement | ends its flush |
//!
//! Had Bob found the device free and flushed by himself, he would be in the kernel until 5 s, and a thread in the kernel's
//! sync cannot be told anything.
//!
//! # State
//! | word | meaning | written by |
//! | --- | --- | --- |
//! | `wanted` | the furthest position that was asked for | sessions |
//! | `writer` | `ABSENT`, `AWAKE` or `ASLEEP` | the log writer; from `ASLEEP` to `AWAKE` also by the one that wakes it |
//! | `sleepers` | sessions that sleep, or are about to | sessions |
//! | `calls` | counts the calls to look again; sessions sleep on it | each that makes the log durable, and each that tells a session to stop |
//!
//! # Steps of a session
//! 1. Durable far enough: done.
//! 2. Look again a few times, as often as a flusher of the variant in use does, and yield the CPU in between. If the
//!    device is at rest in several looks in a row, *ask*: raise `wanted`, and wake the log writer if it sleeps.
//! 3. Count oneself among the sleepers. Loop: read `calls`; leave if the position is durable, or if the session is told to
//!    stop; ask; sleep on `calls`, for as long as the statement may still take.
//!
//! # Rules
//! - F1: a session sleeps only after it has raised `wanted` and *then* seen the log writer awake, or woken it.
//! - F2: the log writer sleeps only after it has said so and *then* seen that everything wanted is durable.
//! - F3: a session counts itself *before* its last look at what is durable, and a flusher publishes what is durable
//!   *before* it looks whether there are sleepers.
//! - F4: a log writer that ends says `ABSENT` and then calls. A session that finds it absent flushes by itself, and
//!   cannot be told to stop. So `AWAKE` is said before the log writer's thread is started, and not when it first runs: the
//!   thread looks at `wanted` before it sleeps.
//! - F5: a session that leaves takes nothing back. The flush that it asked for is made, and no other session depended on
//!   this one.
//!
//! # Why no wake-up is lost
//! In F1 and F2, and in F3, each side writes one word, passes a fence, and reads the other's word. One of the two fences
//! comes first, so the other side finds what was written before it: the log writer finds the position or the session finds
//! it asleep; the session finds the log durable or the flusher finds the sleeper. A call that tells a session to stop adds
//! to `calls` after the flag was set: the session has read `calls` before it asks for the flag, so it finds the flag, or
//! does not sleep.
//!
//! # Why the simpler versions are wrong, or dear
//! - The session flushes by itself if the device is free: the example.
//! - The log writer is woken at once: with one client that commits and one that reads, it wakes for each commit, although
//!   the commit flushes for itself.
//! - A list of sleepers by position, as standbys have it: a latch for each sync, to spare those few a look that would have
//!   waited for the next sync.
//!
//! Costs: a log that is durable, nothing. Each sync, a fence and a load. A session that sleeps, two additions.
//!
//! Origin: the log writer as the one that flushes for others is PostgreSQL's, for commits that do not wait. There a reader
//! never waits for another's commit.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

/// There is no log writer.
const ABSENT: u32 = 0;
/// It runs.
const AWAKE: u32 = 1;
/// It sleeps, or is about to.
const ASLEEP: u32 = 2;

/// So often in a row the device is seen at rest before the log writer is asked: a commit that is on its way to the device is
/// there by then.
const LOOKS_AT_REST: u32 = 8;

/// The end of a wait for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a wait that was stopped promises nothing"]
pub enum LogWait {
    /// Everything before the position is durable.
    Durable,
    /// The session was told to stop.
    Stopped,
}

/// The log, as a session that waits needs to know it.
pub(super) trait AwaitedLog {
    /// The position before which everything is durable.
    fn durable(&self) -> u64;

    /// Number of looks of a flusher before it sleeps.
    fn polls(&self) -> u64;

    /// True if a worker flushes, or is on its way to: a hint.
    fn is_under_way(&self) -> bool;
}

/// The condition on which a session that waits is to leave.
pub(super) struct StopWhen<'a> {
    /// True if it is to stop.
    pub(super) stop: &'a dyn Fn() -> bool,
    /// After this time it is asked again.
    pub(super) time_left: &'a dyn Fn() -> Option<Duration>,
}

/// No log writer is there to flush for the session.
#[derive(Debug)]
pub(super) struct NoLogWriter;

/// Requests of sessions to the log writer, and the sessions that sleep.
#[derive(Debug)]
pub(super) struct FlushRequests<M: Machine> {
    wanted: Padded<M::U64>,
    writer: Padded<M::U32>,
    sleepers: Padded<M::U32>,
    calls: M::U32,
}

impl<M: Machine> FlushRequests<M> {
    /// No session has asked, and there is no log writer.
    pub(super) fn new() -> Self {
        Self {
            wanted: Padded(M::U64::new(0)),
            writer: Padded(M::U32::new(ABSENT)),
            sleepers: Padded(M::U32::new(0)),
            calls: M::U32::new(0),
        }
    }

    /// The log has just been published as durable up to a further position.
    #[inline]
    pub(super) fn log_is_durable(&self) {
        // F3: pairs with the fence in `ask`.
        M::fence(SeqCst);
        if self.sleepers.load(Relaxed) != 0 {
            self.call();
        }
    }

    /// Makes all sessions that sleep look again. What they are to find was written before.
    #[cold]
    pub(super) fn call(&self) {
        // Release: pairs with the Acquire in `sleep`.
        self.calls.fetch_add(1, Release);
        M::futex_wake(&self.calls, u32::MAX);
    }

    /// The furthest position that a session has asked for.
    pub(super) fn wanted(&self) -> u64 {
        // Acquire: pairs with the Release in `raise_wanted`; the log is reserved up to there.
        self.wanted.load(Acquire)
    }

    /// Steps 2 and 3.
    pub(super) fn wait(
        &self,
        log: &impl AwaitedLog,
        upto: u64,
        until: &StopWhen<'_>,
    ) -> Result<LogWait, NoLogWriter> {
        let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
        let mut at_rest = 0;
        for _ in 0..log.polls() {
            M::yield_now();
            if log.durable() >= upto {
                return Ok(LogWait::Durable);
            }
            if (until.stop)() {
                return Ok(LogWait::Stopped);
            }
            at_rest = if log.is_under_way() { 0 } else { at_rest + 1 };
            if at_rest == LOOKS_AT_REST {
                self.ask(upto)?;
            }
        }
        self.sleep(log, upto, until)
    }

    /// Step 3.
    fn sleep(&self, log: &impl AwaitedLog, upto: u64, until: &StopWhen<'_>) -> Result<LogWait, NoLogWriter> {
        let _counted = Sleeper::<M>::count(&self.sleepers);
        loop {
            // Acquire: pairs with the Release in `call`.
            let seen = self.calls.load(Acquire);
            // F1 and F3: `ask` passes the fence, so all that follows is looked at behind it.
            self.ask(upto)?;
            if log.durable() >= upto {
                return Ok(LogWait::Durable);
            }
            if (until.stop)() {
                return Ok(LogWait::Stopped);
            }
            M::futex_wait(&self.calls, seen, (until.time_left)());
        }
    }

    /// Asks the log writer to make the log durable up to `upto`.
    fn ask(&self, upto: u64) -> Result<(), NoLogWriter> {
        self.raise_wanted(upto);
        // F1: pairs with the fence in `writer_sleeps`. F3: with that in `log_is_durable`.
        M::fence(SeqCst);
        // Acquire: pairs with the Release in `drop` of the log writer.
        match self.writer.load(Acquire) {
            ABSENT => Err(NoLogWriter),
            ASLEEP => {
                self.wake_writer();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Asks for the log to be durable up to `upto`, and does not wait. Without a log writer the position is durable with the
    /// next flush.
    pub(super) fn ask_soon(&self, log: &impl AwaitedLog, upto: u64) {
        if log.durable() < upto && self.wanted.load(Relaxed) < upto {
            // No session depends on it, so none has to flush in the log writer's place.
            let _ = self.ask(upto);
        }
    }

    fn raise_wanted(&self, upto: u64) {
        let mut wanted = self.wanted.load(Relaxed);
        while wanted < upto {
            // Release: pairs with the Acquire in `wanted`.
            match self.wanted.compare_exchange_weak(wanted, upto, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => wanted = found,
            }
        }
    }

    /// Wakes the log writer, if it sleeps. What it is to find was written before, and a fence passed.
    pub(super) fn wake_writer(&self) {
        if self
            .writer
            .compare_exchange(ASLEEP, AWAKE, Relaxed, Relaxed)
            .is_ok()
        {
            M::futex_wake(&self.writer, 1);
        }
    }

    /// The log writer begins.
    pub(super) fn writer_begins(&self) {
        self.writer.store(AWAKE, Relaxed);
    }

    /// True if a session that asks now finds a log writer.
    #[cfg(test)]
    pub(super) fn has_writer(&self) -> bool {
        self.writer.load(Acquire) != ABSENT
    }

    /// F2: the log writer sleeps for `limit`, unless something is wanted that is not durable, or `stop` says so.
    pub(super) fn writer_sleeps(
        &self,
        limit: Option<Duration>,
        durable: impl Fn() -> u64,
        stop: impl Fn() -> bool,
    ) {
        self.writer.store(ASLEEP, Relaxed);
        // Pairs with the fences in `ask` and in `Wal::wake_log_writer`.
        M::fence(SeqCst);
        if self.wanted() <= durable() && !stop() {
            M::futex_wait(&self.writer, ASLEEP, limit);
        }
        self.writer.store(AWAKE, Relaxed);
    }

    /// F4: the log writer ends.
    pub(super) fn writer_ends(&self) {
        // Release: pairs with the Acquire in `ask`.
        self.writer.store(ABSENT, Release);
        self.call();
    }
}

/// A session that is counted among those that sleep, until it is dropped.
struct Sleeper<'a, M: Machine>(&'a M::U32);

impl<'a, M: Machine> Sleeper<'a, M> {
    fn count(sleepers: &'a M::U32) -> Self {
        // Relaxed: the fence in `ask` follows.
        sleepers.fetch_add(1, Relaxed);
        Self(sleepers)
    }
}

impl<M: Machine> Drop for Sleeper<'_, M> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
