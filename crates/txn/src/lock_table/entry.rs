//! One lock, and the part of the table that it lives in: the sessions that hold it, in which modes, and the sessions
//! that queue.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::LockTag;
use crate::{LockMode, ProcId};

/// Relations whose entries a partition keeps while no session locks them.
pub(super) const IDLE_ENTRIES_MAX: usize = 64;
/// Entries without a tag that a partition keeps for their memory.
const SPARE_ENTRIES_MAX: usize = 32;

/// The modes in which one session holds one lock.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) proc: ProcId,
    /// A set of modes.
    pub(crate) modes: u8,
}

/// One session in a lock's queue.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) proc: ProcId,
    pub(crate) mode: LockMode,
    /// The modes in which it holds the same lock already.
    pub(super) held: u8,
}

/// One lock: its holders and its queue.
#[derive(Debug, Default)]
pub(crate) struct LockEntry {
    pub(crate) holders: Vec<Holder>,
    pub(crate) queue: VecDeque<Waiter>,
    /// Number of sessions that hold each mode.
    counts: [u32; LockMode::ALL.len()],
    /// The modes whose count is not zero.
    granted: u8,
}

impl LockEntry {
    /// True if no other session holds a mode that excludes `mode`. One AND, unless modes do meet.
    #[inline]
    pub(super) fn admits(&self, proc: ProcId, mode: LockMode) -> bool {
        self.granted & mode.conflicts() == 0
            || self
                .holders
                .iter()
                .all(|other| other.proc == proc || other.modes & mode.conflicts() == 0)
    }

    /// R1. A session that holds the lock already, in another mode, passes the queue: it would wait for itself.
    #[inline]
    pub(super) fn grantable(&self, proc: ProcId, mode: LockMode, held: u8) -> bool {
        self.admits(proc, mode)
            && (held != 0 || self.queue.iter().all(|waiter| !waiter.mode.conflicts_with(mode)))
    }

    #[inline]
    pub(super) fn grant(&mut self, proc: ProcId, mode: LockMode, held: u8) {
        debug_assert_eq!(held & mode.bit(), 0, "a mode is granted twice");
        self.counts[mode as usize] += 1;
        self.granted |= mode.bit();
        if held == 0 {
            self.holders.push(Holder {
                proc,
                modes: mode.bit(),
            });
        } else if let Some(holder) = self.holders.iter_mut().find(|holder| holder.proc == proc) {
            holder.modes |= mode.bit();
        } else {
            unreachable!("R4: what is on the session's list is in the table");
        }
    }

    /// Takes `modes` away from `proc`.
    pub(super) fn revoke(&mut self, proc: ProcId, modes: u8) {
        // From the end: short transactions are among the last that came.
        let Some(position) = self.holders.iter().rposition(|holder| holder.proc == proc) else {
            unreachable!("R4: what is on the session's list is in the table");
        };
        let holder = &mut self.holders[position];
        debug_assert_eq!(
            holder.modes & modes,
            modes,
            "a mode is given back that is not held"
        );
        holder.modes &= !modes;
        if holder.modes == 0 {
            self.holders.swap_remove(position);
        }
        for mode in LockMode::ALL {
            if modes & mode.bit() != 0 {
                self.counts[mode as usize] -= 1;
                if self.counts[mode as usize] == 0 {
                    self.granted &= !mode.bit();
                }
            }
        }
    }

    /// R5: a holder that wants more queues before the first session that waits for what it holds.
    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        let before = self
            .queue
            .iter()
            .position(|other| other.mode.conflicts() & waiter.held != 0);
        self.queue.insert(before.unwrap_or(self.queue.len()), waiter);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}

/// Hashes tags: numbers we chose ourselves, so speed is all that matters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TagHasher(u64);

impl TagHasher {
    #[inline]
    fn add(&mut self, value: u64) {
        // The two halves of a product with an odd constant, folded: every bit of the value reaches every bit of the
        // hash.
        let product = u128::from(self.0 ^ value) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
}

type TagMap = HashMap<LockTag, LockEntry, BuildHasherDefault<TagHasher>>;

/// One part of the table.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    pub(crate) entries: TagMap,
    /// Entries not in use, kept for their memory.
    spare: Vec<LockEntry>,
}

impl Partition {
    #[inline]
    pub(super) fn entry(&mut self, tag: LockTag) -> &mut LockEntry {
        let spare = &mut self.spare;
        self.entries
            .entry(tag)
            .or_insert_with(|| spare.pop().unwrap_or_default())
    }

    /// Takes an idle entry out. A few relations stay: the next statement locks the same ones again.
    pub(super) fn drop_if_idle(&mut self, tag: LockTag) {
        if matches!(tag, LockTag::Relation(_)) && self.entries.len() <= IDLE_ENTRIES_MAX {
            return;
        }
        if let Entry::Occupied(entry) = self.entries.entry(tag)
            && entry.get().is_idle()
        {
            let entry = entry.remove();
            debug_assert_eq!(entry.granted, 0, "an idle lock counts a holder");
            if self.spare.len() < SPARE_ENTRIES_MAX {
                self.spare.push(entry);
            }
        }
    }
}
