//! Recent commits: the log position of each commit that is seen and may not be durable yet, by xid.
//!
//! Protects: rule L4 of [`lock_release`](super::lock_release). A reader that counts `xid` as committed learns here
//! whether it is durable, and if not, up to where the log has to be.
//!
//! # State
//! A ring of slots, one for each xid modulo their number. A slot is one word:
//!
//! | bits | hold |
//! | --- | --- |
//! | 0 to 39 | the position after the commit record, in words of 8 bytes, modulo 2^40 |
//! | 40 to 63 | whose it is: the rest of the xid, modulo 2^24 − 1; all ones: of several commits |
//!
//! A position is read relative to what is durable: up to 2^39 words (4 TiB) ahead of it is ahead, and anything else is
//! behind, that is durable. The log's ring, which holds what is not durable, is far smaller than that.
//!
//! # Rules
//! - C1: a slot never loses a commit that is not durable. A commit that finds its slot in use by such a one does not
//!   wait: it leaves the later of the two positions there, as that of several commits, and all xids of the slot depend
//!   on it. To wait for a later position than needed is sound.
//! - C2: the newest position (`NewestCommit`) is noted before the slot is written. So a position beyond it is none of
//!   these commits, but an entry 4 TiB old, and durable.
//!
//! # Why not two words
//! With the xid in one word and the position in another, two commits whose xids share the slot can store them
//! interleaved: the xid of one beside the position of the other.
//!
//! # Orderings
//! The slot is written before the transaction leaves the array. A reader that counts it as committed has looked at the
//! array after that, or at a hint bit which such a reader has set with Release; so it does not read an older word. It
//! may read a newer one, of several commits, whose position another commit has put there just now. The slot is
//! therefore written with Release and read with Acquire: the newest position that the reader loads next covers that
//! commit, too. Last it loads what is durable, which only grows: a later value makes fewer waits, never a missed one.
//!
//! Costs: 8 bytes a slot; a compare-exchange a commit; a load for each row version looked up.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use clearway_machine::{AtomicWord, Machine, Native};
use clearway_txn::Xid;

use crate::page::Lsn;

/// Bits of the position in a slot.
const POSITION_BITS: u32 = 40;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
/// A position this far ahead of what is durable, in words, or further counts as behind.
const AHEAD_WORDS: u64 = 1 << (POSITION_BITS - 1);
/// The owner of a slot whose position is that of several commits.
const SEVERAL: u64 = (1 << (64 - POSITION_BITS)) - 1;
/// Bytes of a word of the log, to which records are aligned.
const WORD: u64 = 8;

/// The ring of slots.
#[derive(Debug)]
pub struct RecentCommits<M: Machine = Native> {
    slots: Box<[M::U64]>,
    /// Bits of the xid that are the slot's number.
    number_bits: u32,
}

impl<M: Machine> RecentCommits<M> {
    /// With this many slots, a power of two, all empty.
    pub(super) fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots");
        Self {
            slots: (0..slots).map(|_| M::U64::new(0)).collect(),
            number_bits: slots.trailing_zeros(),
        }
    }

    fn slot(&self, xid: Xid) -> &M::U64 {
        &self.slots[xid.0 as usize & (self.slots.len() - 1)]
    }

    /// Whose slot it is while `xid` alone is in it.
    fn owner(&self, xid: Xid) -> u64 {
        (xid.0 >> self.number_bits) % SEVERAL
    }

    /// The commit of `xid`, whose record ends at `end`, is going to be seen. `newest`, which is at least `end` (C2), is
    /// asked for after the slot is read.
    #[inline]
    pub(super) fn enter(&self, xid: Xid, end: Lsn, durable: Lsn, newest: impl Fn() -> Lsn) {
        debug_assert!(end <= newest(), "the newest position is noted first");
        let slot = self.slot(xid);
        let mut word = slot.load(Acquire);
        loop {
            // In this order: a position that another commit has put there just now is covered by the newest one, and
            // not taken for an old entry's.
            let next = match ahead(word, durable, newest()) {
                None => encode(self.owner(xid), end),
                // C1.
                Some(other) => encode(SEVERAL, other.max(end)),
            };
            // Release: pairs with the Acquire in `position`, and here.
            match slot.compare_exchange_weak(word, next, AcqRel, Acquire) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// The position that has to be durable for the commit of `xid` to be; `None` if it is durable, or if it was durable
    /// before it was seen. `durable` and `newest` are asked for after the slot is read.
    #[inline]
    pub(super) fn position(
        &self,
        xid: Xid,
        durable: impl FnOnce() -> Lsn,
        newest: impl FnOnce() -> Lsn,
    ) -> Option<Lsn> {
        // Acquire: pairs with the Release in `enter`; the newest position that is read next covers it (C2).
        let word = self.slot(xid).load(Acquire);
        let owner = word >> POSITION_BITS;
        if owner != SEVERAL && owner != self.owner(xid) {
            return None;
        }
        ahead(word, durable(), newest())
    }
}

fn encode(owner: u64, end: Lsn) -> u64 {
    owner << POSITION_BITS | (end.0 / WORD) & POSITION_MASK
}

/// The position in `word`, if it is ahead of what is durable.
fn ahead(word: u64, durable: Lsn, newest: Lsn) -> Option<Lsn> {
    let base = durable.0 / WORD;
    let words = word.wrapping_sub(base) & POSITION_MASK;
    if words == 0 || words >= AHEAD_WORDS {
        return None;
    }
    let position = Lsn((base + words) * WORD);
    // C2.
    (position <= newest).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of `slots`, with the positions that its caller would pass.
    struct Ring {
        recent: RecentCommits,
        durable: Lsn,
        newest: Lsn,
    }

    impl Ring {
        fn new(slots: usize, durable: u64) -> Self {
            Self {
                recent: RecentCommits::new(slots),
                durable: Lsn(durable),
                newest: Lsn(durable),
            }
        }

        fn enter(&mut self, xid: u64, end: u64) {
            self.newest = self.newest.max(Lsn(end));
            self.recent
                .enter(Xid(xid), Lsn(end), self.durable, || self.newest);
        }

        fn position(&self, xid: u64) -> Option<u64> {
            let found = self.recent.position(Xid(xid), || self.durable, || self.newest);
            found.map(|position| position.0)
        }
    }

    #[test]
    fn a_commit_is_found_until_it_is_durable() {
        let mut ring = Ring::new(8, 800);
        ring.enter(100, 1000);
        assert_eq!(ring.position(100), Some(1000));
        assert_eq!(ring.position(101), None, "another slot");
        assert_eq!(ring.position(108), None, "another commit of the slot");
        ring.durable = Lsn(992);
        assert_eq!(ring.position(100), Some(1000));
        ring.durable = Lsn(1000);
        assert_eq!(ring.position(100), None);
    }

    /// The secured position never begins at zero, for this reason.
    #[test]
    fn a_commit_is_found_within_4_tib_of_what_is_durable() {
        let mut ring = Ring::new(8, 0);
        ring.enter(100, 5 << 40);
        assert_eq!(ring.position(100), None, "taken for one behind");
        ring.durable = Lsn(2 << 40);
        assert_eq!(ring.position(100), Some(5 << 40));
    }

    #[test]
    fn two_commits_of_one_slot_depend_on_the_later() {
        let mut ring = Ring::new(8, 800);
        ring.enter(100, 1000);
        ring.enter(108, 960);
        for xid in [100, 108, 116] {
            assert_eq!(ring.position(xid), Some(1000), "{xid}");
        }
        ring.enter(116, 1200);
        assert_eq!(ring.position(100), Some(1200));
        ring.durable = Lsn(1200);
        assert_eq!(ring.position(100), None);
        ring.enter(124, 1280);
        assert_eq!(ring.position(100), None, "the slot is one commit's again");
        assert_eq!(ring.position(124), Some(1280));
    }

    #[test]
    fn a_durable_commit_gives_its_slot_up() {
        let mut ring = Ring::new(1, 64);
        ring.enter(5, 128);
        ring.durable = Lsn(128);
        ring.enter(6, 256);
        assert_eq!(ring.position(5), None);
        assert_eq!(ring.position(6), Some(256));
    }

    #[test]
    fn positions_are_told_apart_far_into_the_log() {
        let turn = (POSITION_MASK + 1) * WORD;
        let mut ring = Ring::new(4, 3 * turn - 16);
        assert_eq!(ring.position(0), None, "an empty slot");
        ring.enter(0, 3 * turn + 32);
        assert_eq!(ring.position(0), Some(3 * turn + 32));
        ring.durable = Lsn(3 * turn + 32);
        assert_eq!(ring.position(0), None);
        // So much later that the entry looks as if it were ahead: nothing is known to be that far.
        ring.durable = Lsn(4 * turn);
        ring.newest = ring.durable;
        assert_eq!(ring.position(0), None);
        ring.enter(4, 4 * turn + 8);
        assert_eq!(ring.position(4), Some(4 * turn + 8));
    }

    #[test]
    fn no_xid_is_owner_of_a_slot_of_several() {
        let recent = RecentCommits::<Native>::new(2);
        for rest in [0, 1, SEVERAL - 1, SEVERAL, SEVERAL + 1, u64::MAX >> 1] {
            assert_ne!(recent.owner(Xid(rest << 1)), SEVERAL, "{rest}");
        }
    }
}
