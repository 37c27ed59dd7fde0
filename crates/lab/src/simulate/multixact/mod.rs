//! Sets of transactions that share a row, as PostgreSQL has them: an exhibit, which the engine does not use.
//!
//! Invariant: a set has the same members for ever, in a row as long as any of them may run; a row's word names a set whose
//! members have been written.
//!
//! Alice, Bob and Carol share a row one after the other, and Alice ends before Carol comes:
//!
//! | time | the row's word | offsets, from set 7 on | members, from 40 on |
//! | --- | --- | --- | --- |
//! | Alice has come | Alice | | |
//! | Bob has come | set 7 | 40 42 | Alice Bob |
//! | Carol has come | set 8 | 40 42 44 | Alice Bob Bob Carol |
//!
//! # Rules
//! - X1: a row's word is read and changed under its page's exclusive latch; so of two lockers one sees the other.
//! - X2: a set never changes. A locker makes a new one, of those members of the last that still run, and of itself.
//! - X3: set `s` has the members from `offsets[s]` up to `offsets[s + 1]`. Numbers and places are given out together, under
//!   the latch *MultiXactGen*, in one order.
//! - X4: a page of either file is there, in a buffer or in the file, before a number or place on it is given out.
//! - X5: a set is written, and so is its log record, before its number is in a row.
//! - X6: a member that has ended keeps no transaction out, but is in the set until the next one is made.
//!
//! # What a locker does, from step 2 on under the row's page latch
//! 1. Once a transaction: it notes in its slot which set is the next, under MultiXactGen, shared.
//! 2. It looks up the members of the row's set, unless its transaction has done so before ([`TransactionSets`]). Its first
//!    lookup in a transaction also reads all those slots, under MultiXactGen, exclusive. A lookup takes MultiXactGen, shared;
//!    the latch of the bank of the set's offset; that of the bank of its members; each of them exclusive.
//! 3. It asks of each member whether that one runs: a shared latch of the array of running transactions, and a walk along it
//!    unless the member is newer than all that have ended.
//! 4. It gets a number and places under MultiXactGen, exclusive; adds pages to the files if those come to new ones.
//! 5. It logs the set, all its members, and writes offset and members.
//! 6. It changes the row's word, and logs that.
//!
//! # Costs
//! A set of n members costs n looks at the running transactions, some of them a walk of up to one entry a session, and n words
//! written and logged. Steps 2 to 6 have the page's latch. So n transactions that share a row one after the other, and all
//! run, cost n² members.
//!
//! # Forms
//! | form | offsets | members | in PostgreSQL |
//! | --- | --- | --- | --- |
//! | `one-latch` | 8 buffers, one latch | 16 buffers, one latch | up to 16 |
//! | `banks` | 16 buffers, one bank | 32 buffers, two banks | 17 and 18, by their default settings |
//!
//! # What is left out
//! - The sort of a set's members, and the search of the transaction's sets for one with the same members before a new one is
//!   made: a transaction that locks a row once has none.
//! - The wait of a reader for the creator of the next set, whose first place is where this set ends: here a creator writes
//!   both ends of its set.
//! - The skip of a lookup of a set from before the oldest one that any transaction may see.
//! - Members that have updated the row, 32-bit numbers and what comes of their wrapping around, VACUUM, removal of old
//!   pages, standbys.
//!
//! Origin: PostgreSQL since 8.1 for several sharers and since 9.3 for four strengths; its documentation ("Multixacts and
//! Wraparound", "Row-Level Locks", `multixact_member_buffers`), `README.tuplock`, and the functions of `multixact.c` and
//! `slru.c` for the order of latches. The code is ours.

mod slru;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, Work};
use clearway_txn::{ProcId, RowLockMode, Xid};
use serde::{Deserialize, Serialize};

pub(super) use slru::PageFile;
use slru::{Slru, SlruLatches, SlruSizes};

static GEN: LatchClass = LatchClass::new("MultiXactGen", WaitEvent::User30, 270);
const OFFSETS: SlruLatches = SlruLatches {
    transfer: &OFFSET_TRANSFER,
    bank: &OFFSET_BANK,
};
static OFFSET_TRANSFER: LatchClass = LatchClass::new("MultiXactOffsetIO", WaitEvent::User31, 272);
static OFFSET_BANK: LatchClass = LatchClass::new("MultiXactOffset", WaitEvent::User31, 274);
const MEMBERS: SlruLatches = SlruLatches {
    transfer: &MEMBER_TRANSFER,
    bank: &MEMBER_BANK,
};
static MEMBER_TRANSFER: LatchClass = LatchClass::new("MultiXactMemberIO", WaitEvent::User32, 276);
static MEMBER_BANK: LatchClass = LatchClass::new("MultiXactMember", WaitEvent::User32, 278);

/// Copying a member, ns. ESTIMATED.
pub(super) const MEMBER_NS: u64 = 1;
/// Entries of a page of 8 KiB: 4 bytes each, and 4 members in 20 bytes.
const OFFSETS_PER_PAGE: u64 = 2_048;
const MEMBERS_PER_PAGE: u64 = 1_636;
/// Payload bytes of the log record of a set: a head, and 8 bytes a member. Of that of a new page.
const SET_RECORD_BYTES: usize = 12;
const MEMBER_RECORD_BYTES: usize = 8;
const PAGE_RECORD_BYTES: usize = 8;
/// Sets that a transaction keeps.
const SETS_KEPT: usize = 256;

/// The buffers of the two files, and their latches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MultixactForm {
    /// Few buffers of each file under one latch.
    OneLatch,
    /// Banks of 16 buffers with a latch each.
    Banks,
}

impl MultixactForm {
    /// Both.
    pub const ALL: [MultixactForm; 2] = [MultixactForm::OneLatch, MultixactForm::Banks];

    /// Banks and buffers of the file of offsets, and of that of members.
    fn buffers(self) -> [(usize, usize); 2] {
        match self {
            MultixactForm::OneLatch => [(1, 8), (1, 16)],
            MultixactForm::Banks => [(1, 16), (2, 16)],
        }
    }
}

/// The number of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetId(u64);

/// A transaction that has locked a row, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) xid: Xid,
    pub(super) mode: RowLockMode,
}

impl Member {
    fn packed(self) -> u64 {
        self.xid.0 << 2 | self.mode as u64
    }

    fn unpacked(word: u64) -> Self {
        Self {
            xid: Xid(word >> 2),
            mode: RowLockMode::ALL[(word & 3) as usize],
        }
    }
}

/// The next number and place, and how many pages the files have.
#[derive(Debug)]
struct Next {
    set: u64,
    place: u64,
    offset_pages: u64,
    member_pages: u64,
}

/// A transaction's knowledge of sets; forgotten at its end.
#[derive(Debug, Default)]
pub(super) struct TransactionSets {
    is_announced: bool,
    has_looked: bool,
    known: BTreeMap<SetId, Rc<[Member]>>,
}

impl TransactionSets {
    fn keep(&mut self, id: SetId, members: Rc<[Member]>) {
        if self.known.len() == SETS_KEPT {
            self.known.pop_first();
        }
        self.known.insert(id, members);
    }
}

/// All sets.
#[derive(Debug)]
pub(super) struct Sets<M: Machine, F> {
    next: Padded<Latched<Next, M>>,
    /// For each session the next set when its transaction first locked a row; 0: it has locked none.
    oldest_of: Box<[M::U64]>,
    offsets: Slru<M, F>,
    members: Slru<M, F>,
}

impl<M: Machine, F: PageFile> Sets<M, F> {
    /// No sets. `file` makes the file of offsets and that of members.
    pub(super) fn new(
        form: MultixactForm,
        sessions: usize,
        lwlock: LwLockOptions,
        file: impl Fn() -> F,
    ) -> Self {
        let sizes = |(banks, buffers_per_bank), entries_per_page| SlruSizes {
            banks,
            buffers_per_bank,
            entries_per_page,
        };
        let [offsets, members] = form.buffers();
        let next = Next {
            set: 1,
            place: 0,
            offset_pages: 0,
            member_pages: 0,
        };
        Self {
            next: Padded(Latched::new(&GEN, lwlock, next)),
            oldest_of: (0..sessions).map(|_| M::U64::new(0)).collect(),
            offsets: Slru::new(sizes(offsets, OFFSETS_PER_PAGE), OFFSETS, lwlock, file()),
            members: Slru::new(sizes(members, MEMBERS_PER_PAGE), MEMBERS, lwlock, file()),
        }
    }

    /// Names the events that workers wait for at the latches.
    pub(super) fn name_waits() {
        for (event, name) in [
            (WaitEvent::User30, GEN.name),
            (WaitEvent::User31, OFFSET_BANK.name),
            (WaitEvent::User32, MEMBER_BANK.name),
        ] {
            event
                .name_as(name)
                .expect("the laboratory names no other event so");
        }
    }

    /// The memory of the latches, for reports.
    pub(super) fn latch_memory(&self) -> &impl std::fmt::Debug {
        &self.next
    }

    /// Step 1.
    pub(super) fn announce(&self, proc: ProcId, own: &mut TransactionSets) {
        if !own.is_announced {
            own.is_announced = true;
            let next = self.next.shared();
            // Relaxed: read under the latch, exclusive.
            self.oldest_of[proc.0 as usize].store(next.set, Relaxed);
        }
    }

    /// Step 2: the members of a set, also those that have ended.
    pub(super) fn members(&self, own: &mut TransactionSets, id: SetId) -> Rc<[Member]> {
        if let Some(members) = own.known.get(&id) {
            return Rc::clone(members);
        }
        if !own.has_looked {
            own.has_looked = true;
            let next = self.next.exclusive();
            let oldest = self.oldest_of.iter().map(|oldest| oldest.load(Relaxed));
            let oldest = oldest.filter(|oldest| *oldest != 0).min();
            debug_assert!(oldest.is_none_or(|oldest| oldest <= next.set), "X3");
        }
        assert!(id.0 < self.next.shared().set, "X5: set {} is in a row", id.0);
        let ends = self.offsets.read(id.0, 2);
        let (first, end) = (ends[0], ends[1]);
        assert!(first < end, "X5: set {} has no members", id.0);
        let words = self.members.read(first, (end - first) as usize);
        let members: Rc<[Member]> = words.into_iter().map(Member::unpacked).collect();
        own.keep(id, Rc::clone(&members));
        members
    }

    /// Steps 4 and 5: a new set. `log` enters a record of so many bytes into the log.
    pub(super) fn create(&self, own: &mut TransactionSets, members: &[Member], log: impl Fn(usize)) -> SetId {
        debug_assert!(members.len() > 1, "one transaction is no set");
        let (id, first) = {
            let mut next = self.next.exclusive();
            let (set, first) = (next.set, next.place);
            next.set += 1;
            next.place += members.len() as u64;
            // X4; the set's end is on the page of the next one's number.
            while next.offset_pages <= self.offsets.page_of(next.set) {
                self.offsets.begin_page(next.offset_pages);
                log(PAGE_RECORD_BYTES);
                next.offset_pages += 1;
            }
            while next.member_pages <= self.members.page_of(next.place - 1) {
                self.members.begin_page(next.member_pages);
                log(PAGE_RECORD_BYTES);
                next.member_pages += 1;
            }
            (SetId(set), first)
        };
        log(SET_RECORD_BYTES + MEMBER_RECORD_BYTES * members.len());
        self.offsets.write(id.0, &[first, first + members.len() as u64]);
        let words: Vec<u64> = members.iter().map(|member| member.packed()).collect();
        self.members.write(first, &words);
        M::charge(Work::Nanos(MEMBER_NS * words.len() as u64));
        own.keep(id, members.into());
        id
    }

    /// A transaction has ended.
    pub(super) fn end(&self, proc: ProcId, own: &mut TransactionSets) {
        if own.is_announced {
            // Relaxed: a walk that misses it keeps older sets than it must.
            self.oldest_of[proc.0 as usize].store(0, Relaxed);
        }
        *own = TransactionSets::default();
    }
}
