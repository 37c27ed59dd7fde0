//! The changes of a stretch of log, each in the lists of the workers that make it (G1 and G2 of `gathered`).
//!
//! # A meeting
//! A change over pages of several workers has a meeting. `missing` counts the workers that have not come to it yet.
//!
//! | `state` | |
//! | --- | --- |
//! | `OPEN` | the change is not made, and no worker sleeps until it is |
//! | `SLEEPERS` | the change is not made, and a worker sleeps, or is about to |
//! | `OVER` | it is made, or the stretch was given up: no worker waits any more |
//!
//! 1. Each worker takes itself off `missing`. The one that takes the last off makes the change and writes `OVER`; if that
//!    replaces `SLEEPERS`, it wakes all that sleep on the word.
//! 2. Each other worker looks at `state` up to [`POLLS`] times, then makes `OPEN` `SLEEPERS`, and sleeps while the word
//!    holds that.
//!
//! No wake-up is lost: `SLEEPERS` and `OVER` are written by read-modify-writes of one word, so either the maker finds
//! `SLEEPERS`, or the sleeper does not get to write it; and the futex compares the word before it sleeps.
//!
//! A worker polls first, because the others are often no more than a few changes behind, of 1 µs or so each, while going to
//! sleep and being woken takes 5 µs and more. It does not poll for longer than that: the worker that it waits for may want
//! this CPU, or be a whole list behind.

use std::ops::Range;
use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope};

use crate::error::Result;
use crate::page::{Lsn, PageId};

/// Looks at a word before sleeping on it; about as long as a sleep and a wake-up take.
const POLLS: u32 = 200;

const OPEN: u32 = 0;
const SLEEPERS: u32 = 1;
const OVER: u32 = 2;

/// Pages that replay changes.
pub trait ReplayedPages: Send + Sync + 'static {
    /// Makes the change that a record has as its payload, with all of its pages latched (S5). The record ends at `end`.
    fn change(&self, payload: &[u8], end: Lsn) -> Result<()>;
}

/// A change in a worker's list.
#[derive(Debug)]
struct Listed {
    /// Its payload in the stretch's bytes.
    payload: Range<usize>,
    end: Lsn,
    /// The number of its meeting (G2).
    meeting: Option<usize>,
}

/// A meeting of the workers of a change over several pages, which wait there for each other.
#[derive(Debug)]
struct Meeting<M: Machine> {
    missing: M::U32,
    state: M::U32,
}

/// The changes of a stretch of log.
#[derive(Debug)]
pub struct Stretch<M: Machine> {
    bytes: Vec<u8>,
    lists: Vec<Vec<Listed>>,
    meetings: Vec<Meeting<M>>,
    /// 1 once it was given up.
    has_failed: M::U32,
}

/// Polls `word` until `is_over` holds of it, for a bounded time. Returns what it held last.
pub(super) fn poll<M: Machine>(word: &M::U32, is_over: impl Fn(u32) -> bool) -> u32 {
    // To a checker each poll is a step of its own, and one serves as well as many.
    let mut polls = if M::EXPLORED { 1 } else { POLLS };
    loop {
        // Acquire: pairs with the Release of the worker that the caller waits for.
        let value = word.load(Ordering::Acquire);
        if polls == 0 || is_over(value) {
            return value;
        }
        polls -= 1;
        M::spin_hint_of(polls);
    }
}

impl<M: Machine> Meeting<M> {
    fn of(workers: usize) -> Self {
        Self {
            missing: M::U32::new(workers as u32),
            state: M::U32::new(OPEN),
        }
    }

    /// The caller has come; `true` if it was the last.
    fn come(&self) -> bool {
        // AcqRel: the last to come sees the changes that the others made before.
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn wait(&self) {
        if poll::<M>(&self.state, |state| state == OVER) == OVER {
            return;
        }
        let _wait = WaitScope::<M>::enter(WaitEvent::ReplayMeeting);
        let orders = (Ordering::Acquire, Ordering::Acquire);
        while self.state.compare_exchange(OPEN, SLEEPERS, orders.0, orders.1) != Err(OVER) {
            M::futex_wait(&self.state, SLEEPERS, None);
        }
    }

    fn end(&self) {
        // Release: pairs with the Acquire of those that wait, which see the change.
        if self.state.swap(OVER, Ordering::Release) == SLEEPERS {
            M::futex_wake(&self.state, u32::MAX);
        }
    }
}

impl<M: Machine> Stretch<M> {
    /// Nothing yet, for `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            bytes: Vec::new(),
            lists: (0..workers).map(|_| Vec::new()).collect(),
            meetings: Vec::new(),
            has_failed: M::U32::new(0),
        }
    }

    /// True if no change is listed.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of its changes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lists a change of these pages for their workers.
    pub fn list(&mut self, payload: &[u8], pages: impl Iterator<Item = PageId>, end: Lsn) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let payload = from..self.bytes.len();
        let count = self.lists.len();
        let mut workers: Vec<usize> = pages.map(|page| worker_of(page, count)).collect();
        workers.sort_unstable();
        workers.dedup();
        let meeting = (workers.len() > 1).then(|| {
            self.meetings.push(Meeting::of(workers.len()));
            self.meetings.len() - 1
        });
        for worker in workers {
            self.lists[worker].push(Listed {
                payload: payload.clone(),
                end,
                meeting,
            });
        }
    }

    /// No worker waits for another one any more, nor begins another change.
    pub(super) fn give_up(&self) {
        // Release: pairs with the Acquire in `work`. A worker that leaves a meeting for this sees it before its next change.
        self.has_failed.store(1, Ordering::Release);
        for meeting in &self.meetings {
            meeting.end();
        }
    }

    /// Makes the changes of one worker's list.
    pub(super) fn work(&self, pages: &impl ReplayedPages, worker: usize) -> Result<()> {
        for listed in &self.lists[worker] {
            if self.has_failed.load(Ordering::Acquire) != 0 {
                break;
            }
            let changed = self.make(pages, listed);
            if changed.is_err() {
                // Those that wait at a meeting leave it.
                self.give_up();
                return changed;
            }
        }
        Ok(())
    }

    fn make(&self, pages: &impl ReplayedPages, listed: &Listed) -> Result<()> {
        let meeting = listed.meeting.map(|number| &self.meetings[number]);
        if let Some(meeting) = meeting
            && !meeting.come()
        {
            meeting.wait();
            return Ok(());
        }
        pages.change(&self.bytes[listed.payload.clone()], listed.end)?;
        if let Some(meeting) = meeting {
            meeting.end();
        }
        Ok(())
    }
}

/// G1. Fibonacci hashing: neighbouring pages are spread evenly over the workers.
fn worker_of(page: PageId, workers: usize) -> usize {
    let mixed = (u64::from(page.rel.0) << 32 | u64::from(page.block)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (((mixed >> 32) * workers as u64) >> 32) as usize
}
