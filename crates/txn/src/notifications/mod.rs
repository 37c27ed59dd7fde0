//! Notifications: what a committed transaction tells the sessions that listen (`NOTIFY`, `LISTEN`).
//!
//! Protects: the promise that a listener hears of each commit once, in the order of commits, and never before it can see
//! what was committed; and the server's memory.
//!
//! # An example
//! Alice and Bob each change a row and notify. Carol listens. Alice's commit record lies at 1000 in the log, Bob's at 1100.
//!
//! | time | Alice | Bob | the queue | Carol |
//! | --- | --- | --- | --- | --- |
//! | 1 | announces; the log ends at 900 | | Alice: not before 900 | |
//! | 2 | record at 1000 | announces; the log ends at 1000 | Bob: not before 1000 | |
//! | 3 | leaves the array, and is taken off the CPU | record at 1100, leaves, posts | Bob's is kept: Alice may come before | sleeps |
//! | 4 | posts at 1000 | | Alice's, then Bob's | is woken, hears of both |
//!
//! # Steps of a transaction that notifies
//! 1. *Announce*, before its commit record: take the latch, count the bytes, note the end of the log as the *floor*. A
//!    queue that is full refuses here, where the transaction can still be rolled back.
//! 2. Commit: record, leaving the array, locks. The queue's latch is not held.
//! 3. *Post*, with the position of the commit record: take the latch, put the batch among those that are *kept*, strike
//!    out the announcement, and give each kept batch below all floors to the listeners of its channels, in the order of
//!    positions. Release the latch, and wake those listeners.
//!
//! A transaction that is rolled back after step 1 strikes its announcement out and does the rest of step 3.
//!
//! # Rules
//! - N1: *a listener gets batches in the order of their commit records*, which is the order in which commits are seen (O1 of
//!   `storage/src/commit`).
//! - N2: a batch is posted when its transaction has left the array. So a listener that gets it sees the transaction in its
//!   next snapshot.
//! - N3: a session that begins to listen gets each batch that is posted afterwards, and none that was posted before. What
//!   its first snapshot after LISTEN does not show has not left the array by then, and is posted later by N2.
//! - N4: each batch that is kept is given away by the post or the withdrawal of the last announcement below it; none waits
//!   for a transaction that begins later.
//! - N5: a listener's flag is up while something is in its inbox. Both change together under the latch: a batch that is put
//!   there raises it, and the last one that is forgotten lowers it. The listener is woken when the latch is released, so it
//!   finds the flag up, unless it has dealt with the batch already.
//! - N6: bytes of batches that are announced, kept or in an inbox are counted once, and at most `bytes_max`.
//!
//! # Why N1 holds
//! Let Alice's record lie before Bob's, both with notifications. Alice announces, and then reserves her record's place; Bob
//! reserves his, and then posts. Both reservations are read-modify-writes of one word, Alice's first. Were Bob's post first
//! at the latch, Alice's announcement would follow it, and so her reservation his. So Bob's post finds either Alice's
//! announcement or her batch. In the first case her floor is not above the place of her record, since she read the end of the log before she
//! reserved, so it is below Bob's position, and Bob's batch is kept. In the second her batch was given away before his or
//! both are kept, and kept batches are given away in the order of positions.
//!
//! N4 holds because a floor below Bob's position was noted when the log's end was not beyond it. An announcement that comes after
//! Bob's post notes the log's end after Bob's record. So only finitely many transactions, all of which are committing,
//! keep his batch back, and the last of them gives it away.
//!
//! # Why the simpler versions are wrong, or dear
//! - A lock from before the commit record until the transaction has left the array, which is what PostgreSQL does: all
//!   commits that notify come one after the other, each with its own sync of the log.
//! - Each session posts when it has committed, without floors: at time 3 Carol hears of Bob before Alice.
//! - The session that takes commits out of the array posts for them: all leave under its latch, and would pay for it.
//!
//! # Memory
//! A listener that does not fetch what it is told keeps its batches in memory, each once, however many listeners it has. When
//! `bytes_max` is reached, transactions that notify fail at their commit, as PostgreSQL's do, until a listener has fetched
//! or is gone. A batch without a listener is dropped at once.
//!
//! # Costs
//! A transaction that does not notify, and a session that does not listen: nothing. One that does: the latch twice, for the
//! time of a few insertions; a listener is woken by each batch of its channels and by no other.
//!
//! # What it does not do
//! It survives no restart, and standbys hear nothing.
//!
//! Origin: the promises are PostgreSQL's. Floors, and inboxes in place of one queue that all listeners read, are ours.

mod listener;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Native, WaitEvent};

pub use listener::{Listener, Wake};

static NOTIFY_QUEUE: LatchClass = LatchClass::new("NotifyQueue", WaitEvent::NotifyQueue, 180);

/// Bytes that a batch takes beside its texts, and each of its notifications.
const BATCH_BYTES: usize = 128;
const NOTIFICATION_BYTES: usize = 64;

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Notification {
    /// Its channel.
    pub channel: Arc<str>,
    /// The text that it brings.
    pub payload: Arc<str>,
}

/// The notifications of one transaction.
#[derive(Debug)]
pub struct NotificationBatch {
    /// The position after its commit record.
    pub position: u64,
    /// The number of the session that sends it.
    pub sender: u32,
    /// In the order in which they were made.
    pub notifications: Vec<Notification>,
}

/// The queue has no room for a transaction's notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many notifications in the NOTIFY queue")]
pub struct NotificationQueueFull;

/// Notifications between commits and listeners: the rules stand at the top of `notifications/mod.rs`.
#[derive(Debug)]
pub struct NotificationQueue<M: Machine = Native> {
    state: Latched<State<M>, M>,
    bytes_max: usize,
}

#[derive(Debug)]
struct State<M: Machine> {
    /// N6.
    bytes: usize,
    next_number: u64,
    /// The floors of the transactions that have announced and not posted.
    floors: BTreeMap<u64, u64>,
    /// Batches that are posted and not given away, by position.
    kept: BTreeMap<u64, Kept>,
    /// By number.
    inboxes: HashMap<u64, Inbox<M>>,
    channels: HashMap<Arc<str>, Vec<Hearer>>,
    /// Batches in inboxes, by position: their bytes, and how many inboxes have them.
    held: HashMap<u64, (usize, usize)>,
}

#[derive(Debug)]
struct Kept {
    batch: NotificationBatch,
    bytes: usize,
    /// The number that was next when it was posted (N3).
    posted: u64,
}

/// A listener of one channel.
#[derive(Debug, Clone, Copy)]
struct Hearer {
    listener: u64,
    /// The number that it took when it began to listen there (N3).
    since: u64,
}

#[derive(Debug)]
struct Inbox<M: Machine> {
    listener: Arc<Listener<M>>,
    batches: VecDeque<Arc<NotificationBatch>>,
}

/// A transaction that is going to commit with notifications. Dropped without [`post`](Self::post) it has not.
#[derive(Debug)]
#[must_use = "dropped, it withdraws the notifications"]
pub struct Announcement<'q, M: Machine = Native> {
    queue: &'q NotificationQueue<M>,
    number: u64,
    bytes: usize,
    sender: u32,
    notifications: Vec<Notification>,
}

impl<M: Machine> NotificationQueue<M> {
    /// An empty queue that holds this many bytes.
    pub fn new(lwlock: impl Into<LwLockOptions>, bytes_max: usize) -> Self {
        let state = State {
            bytes: 0,
            next_number: 1,
            floors: BTreeMap::new(),
            kept: BTreeMap::new(),
            inboxes: HashMap::new(),
            channels: HashMap::new(),
            held: HashMap::new(),
        };
        Self {
            state: Latched::new(&NOTIFY_QUEUE, lwlock, state),
            bytes_max,
        }
    }

    /// The part of its room that is taken, 0 to 1.
    pub fn usage(&self) -> f64 {
        self.state.shared().bytes as f64 / self.bytes_max as f64
    }

    /// Step 1: the session `sender` is going to log its commit. `log_end` gives the end of the log.
    pub fn announce(
        &self,
        sender: u32,
        notifications: Vec<Notification>,
        log_end: impl FnOnce() -> u64,
    ) -> Result<Announcement<'_, M>, NotificationQueueFull> {
        let texts = notifications
            .iter()
            .map(|told| told.channel.len() + told.payload.len());
        let bytes = BATCH_BYTES + texts.map(|text| text + NOTIFICATION_BYTES).sum::<usize>();
        let mut state = self.state.exclusive();
        if state.bytes + bytes > self.bytes_max {
            return Err(NotificationQueueFull);
        }
        state.bytes += bytes;
        let number = state.take_number();
        // Under the latch, so that a floor is as late as can be: it keeps fewer batches back.
        state.floors.insert(number, log_end());
        Ok(Announcement {
            queue: self,
            number,
            bytes,
            sender,
            notifications,
        })
    }

    /// Strikes an announcement out, with the batch that it has become, and gives away what nothing keeps back any more.
    fn settle(&self, number: u64, bytes: usize, batch: Option<NotificationBatch>) {
        let mut told = Vec::new();
        {
            let mut state = self.state.exclusive();
            state.floors.remove(&number);
            match batch {
                Some(batch) => {
                    let posted = state.next_number;
                    state.kept.insert(batch.position, Kept { batch, bytes, posted });
                }
                None => state.bytes -= bytes,
            }
            state.give_away(&mut told);
        }
        // N5.
        for listener in told {
            listener.wake();
        }
    }
}

impl<M: Machine> State<M> {
    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// N1: gives the kept batches below all floors away, in their order. Adds the listeners that are to be woken.
    fn give_away(&mut self, told: &mut Vec<Arc<Listener<M>>>) {
        let floor = self.floors.values().min().copied().unwrap_or(u64::MAX);
        while let Some(first) = self.kept.first_entry()
            && *first.key() <= floor
        {
            let Kept { batch, bytes, posted } = first.remove();
            let mut hearers: Vec<u64> = Vec::new();
            for notification in &batch.notifications {
                let of_channel = self.channels.get(&notification.channel).into_iter().flatten();
                hearers.extend(
                    of_channel
                        .filter(|hearer| hearer.since < posted)
                        .map(|hearer| hearer.listener),
                );
            }
            hearers.sort_unstable();
            hearers.dedup();
            if hearers.is_empty() {
                self.bytes -= bytes;
                continue;
            }
            self.held.insert(batch.position, (bytes, hearers.len()));
            let batch = Arc::new(batch);
            for number in hearers {
                let Some(inbox) = self.inboxes.get_mut(&number) else {
                    unreachable!("a listener of a channel has an inbox");
                };
                inbox.batches.push_back(Arc::clone(&batch));
                inbox.listener.raise();
                if told.iter().all(|known| !Arc::ptr_eq(known, &inbox.listener)) {
                    told.push(Arc::clone(&inbox.listener));
                }
            }
        }
    }

    /// An inbox has given up the batch of this position (N6).
    fn release(&mut self, position: u64) {
        let Some((bytes, inboxes)) = self.held.get_mut(&position) else {
            unreachable!("N6: a batch in an inbox is counted");
        };
        *inboxes -= 1;
        if *inboxes == 0 {
            self.bytes -= *bytes;
            self.held.remove(&position);
        }
    }
}

impl<M: Machine> Announcement<'_, M> {
    /// Step 3: the transaction has committed, its record ends at `position`, and it has left the array.
    pub fn post(mut self, position: u64) {
        let batch = NotificationBatch {
            position,
            sender: self.sender,
            notifications: std::mem::take(&mut self.notifications),
        };
        self.queue.settle(self.number, self.bytes, Some(batch));
        std::mem::forget(self);
    }
}

impl<M: Machine> Drop for Announcement<'_, M> {
    fn drop(&mut self) {
        self.queue.settle(self.number, self.bytes, None);
    }
}

#[cfg(all(test, not(feature = "loom"), not(feature = "shuttle")))]
mod tests;
