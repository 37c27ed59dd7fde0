//! The entries that `array`, `list`, `offsets` and `radix` share: xids in ascending order, a flag beside each.
//!
//! ```text
//!   position   0   1   2   3   4   5   6   7
//!   xid            100 101 102 103 104
//!   running        1   0   0   1   1
//!                  tail                head
//! ```
//!
//! The *range* is [`tail`, `head`); outside of it no flag is set. An end clears a flag and leaves the entry, so the
//! range grows while the transaction at `tail` stays open. Compaction moves the running entries to the front.
//!
//! # Rules
//! - E1: only replay changes anything here, other than the hints of `offsets`.
//! - E2: what takes an entry away, or moves one, is done under the latch in exclusive mode. Readers hold it in shared
//!   mode, so what they find is of one moment.
//! - E3: an entry is appended without the latch: its xid and its flag are stored first, and then published by a
//!   Release. A reader that does not find it yet has an xmax before it.
//! - E4: `newest_ended` changes under the latch in exclusive mode.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, LwLock, LwLockExclusive, LwLockShared};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent};

use super::KnownXidsOptions;
use crate::Xid;

static KNOWN_XIDS: LatchClass = LatchClass::new("KnownXids", WaitEvent::KnownXids, 315);

/// Flags in a word, a byte each.
pub(super) const FLAGS: usize = 8;

/// The bit of an entry's flag in its word.
const fn flag(position: usize) -> u64 {
    1 << (position % FLAGS * 8)
}

/// Fields that readers need before they go to the entries.
#[derive(Debug)]
struct Bounds<M: Machine> {
    tail: M::U32,
    head: M::U32,
    newest_ended: M::U64,
}

/// The entries.
#[derive(Debug)]
pub(super) struct Entries<M: Machine> {
    latch: Padded<LwLock<M>>,
    bounds: Padded<Bounds<M>>,
    /// Entries whose flag is set; replay alone looks at it.
    running: M::U32,
    xids: Box<[M::U64]>,
    flags: Box<[M::U64]>,
}

impl<M: Machine> Entries<M> {
    pub(super) fn new(options: &KnownXidsOptions) -> Self {
        let capacity = options.capacity as usize;
        Self {
            latch: Padded(LwLock::new(&KNOWN_XIDS, options.lwlock)),
            bounds: Padded(Bounds {
                tail: M::U32::new(0),
                head: M::U32::new(0),
                newest_ended: M::U64::new(0),
            }),
            running: M::U32::new(0),
            xids: (0..capacity).map(|_| M::U64::new(0)).collect(),
            flags: (0..capacity.div_ceil(FLAGS)).map(|_| M::U64::new(0)).collect(),
        }
    }

    #[inline]
    pub(super) fn shared(&self) -> LwLockShared<'_, M> {
        self.latch.shared()
    }

    #[inline]
    pub(super) fn exclusive(&self) -> LwLockExclusive<'_, M> {
        self.latch.exclusive()
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.xids.len()
    }

    /// Number of running entries; for replay.
    #[inline]
    pub(super) fn running(&self) -> u32 {
        self.running.load(Relaxed)
    }

    #[inline]
    pub(super) fn tail(&self) -> usize {
        self.bounds.tail.load(Relaxed) as usize
    }

    #[inline]
    pub(super) fn set_tail(&self, tail: usize) {
        self.bounds.tail.store(tail as u32, Relaxed);
    }

    /// The end of the range. Acquire: pairs with the Release in `publish`; E3.
    #[inline]
    pub(super) fn head(&self) -> usize {
        self.bounds.head.load(Acquire) as usize
    }

    /// Entries from the oldest running one to the newest; for replay.
    #[inline]
    pub(super) fn range(&self) -> usize {
        self.bounds.head.load(Relaxed) as usize - self.tail()
    }

    /// The newest xid that has ended. The caller holds the latch; E4.
    #[inline]
    pub(super) fn newest_ended(&self) -> Xid {
        Xid(self.bounds.newest_ended.load(Relaxed))
    }

    pub(super) fn set_newest_ended(&self, xid: Xid) {
        self.bounds.newest_ended.store(xid.0, Relaxed);
    }

    #[inline]
    pub(super) fn xid(&self, position: usize) -> Xid {
        Xid(self.xids[position].load(Relaxed))
    }

    /// The flags of the entries from `word * FLAGS` on.
    #[inline]
    pub(super) fn flags(&self, word: usize) -> u64 {
        // Acquire: pairs with the Release in `append`, for a reader that looks at a word beyond the published end.
        self.flags[word].load(Acquire)
    }

    #[inline]
    pub(super) fn is_running(&self, position: usize) -> bool {
        self.flags(position / FLAGS) & flag(position) != 0
    }

    /// The first running entry of [`from`, `head`), or `head`.
    pub(super) fn next_running(&self, from: usize, head: usize) -> usize {
        let mut position = from;
        while position < head {
            let flags = self.flags(position / FLAGS) >> (position % FLAGS * 8);
            if flags != 0 {
                return (position + flags.trailing_zeros() as usize / 8).min(head);
            }
            position += FLAGS - position % FLAGS;
        }
        head
    }

    /// Enters `xid` behind the others and returns its position; readers find it once it is published. There is room.
    #[inline]
    pub(super) fn append(&self, xid: u64) -> usize {
        let position = self.bounds.head.load(Relaxed) as usize;
        self.xids[position].store(xid, Relaxed);
        let flags = &self.flags[position / FLAGS];
        // Release: pairs with the Acquire in `flags`.
        flags.store(flags.load(Relaxed) | flag(position), Release);
        self.running.store(self.running() + 1, Relaxed);
        position
    }

    /// Shows readers the entries before `head`.
    #[inline]
    pub(super) fn publish(&self, head: usize) {
        // Release: pairs with the Acquire in `head`; E3.
        self.bounds.head.store(head as u32, Release);
    }

    /// The position of the running entry of `xid`; for replay.
    #[inline]
    pub(super) fn find(&self, xid: Xid) -> Option<usize> {
        let (mut from, mut to) = (self.tail(), self.bounds.head.load(Relaxed) as usize);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.xid(middle).cmp(&xid) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return self.is_running(middle).then_some(middle),
            }
        }
        None
    }

    /// Takes the running entry at `position` away. The caller holds the latch exclusively.
    #[inline]
    pub(super) fn clear(&self, position: usize) {
        let flags = &self.flags[position / FLAGS];
        flags.store(flags.load(Relaxed) & !flag(position), Relaxed);
        self.running.store(self.running() - 1, Relaxed);
        let xid = self.xid(position);
        if xid > self.newest_ended() {
            self.set_newest_ended(xid);
        }
    }

    /// Begins again at position 0, if nothing runs; otherwise moves `tail` to the first running entry. The caller holds
    /// the latch exclusively.
    #[inline]
    pub(super) fn trim(&self) {
        if self.running() == 0 {
            self.set_tail(0);
            self.publish(0);
        } else if !self.is_running(self.tail()) {
            self.set_tail(self.next_running(self.tail(), self.bounds.head.load(Relaxed) as usize));
        }
    }

    /// Moves the running entries to the front. The caller holds the latch exclusively.
    pub(super) fn compact(&self) {
        let words = self.tail() / FLAGS..(self.tail() + self.range()).div_ceil(FLAGS);
        let mut kept = 0;
        for word in words {
            let mut flags = self.flags(word);
            if flags == 0 {
                continue;
            }
            self.flags[word].store(0, Relaxed);
            while flags != 0 {
                let position = word * FLAGS + flags.trailing_zeros() as usize / 8;
                self.xids[kept].store(self.xid(position).0, Relaxed);
                kept += 1;
                flags &= flags - 1;
            }
        }
        debug_assert_eq!(
            kept,
            self.running() as usize,
            "a flag is set outside of the range"
        );
        for (number, word) in (0..kept).step_by(FLAGS).enumerate() {
            let flags = (word..kept.min(word + FLAGS)).map(flag).sum();
            self.flags[number].store(flags, Relaxed);
        }
        self.set_tail(0);
        self.publish(kept);
    }

    /// Positions of the running entries before `xid`, without those in `prepared`; for replay.
    pub(super) fn preceding(&self, xid: Xid, prepared: &[Xid]) -> Vec<usize> {
        let head = self.bounds.head.load(Relaxed) as usize;
        let mut found = Vec::new();
        let mut position = self.next_running(self.tail(), head);
        while position < head && self.xid(position) < xid {
            if !prepared.contains(&self.xid(position)) {
                found.push(position);
            }
            position = self.next_running(position + 1, head);
        }
        found
    }
}
