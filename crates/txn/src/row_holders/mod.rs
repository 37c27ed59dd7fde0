//! The transactions that hold rows in a shared strength: FOR SHARE and FOR KEY SHARE.
//!
//! Invariant: while a transaction runs that has locked a row in a mode, no other transaction locks, changes or deletes
//! the row, in whatever version, in a mode that conflicts with it ([`RowLockMode`]).
//!
//! One transaction at a time can lock a row FOR UPDATE or change it: its xid stands on the page, in the version's `xmax`.
//! Any number can share it. Those are in memory, in this table: row locks end with their transaction, and all transactions
//! end with a crash. So nothing of a shared lock is written to a page or the log, and there is no file of sets of
//! transactions, whose numbers could run out.
//!
//! ```text
//! page 7 of relation 5          this table
//! slot 1: xmax = Carol, in      (5, 7, 1) → Alice KeyShare, Bob KeyShare
//!   NoKeyUpdate; next = slot 2
//! slot 2: xmin = Carol          (5, 7, 2) → Alice KeyShare, Bob KeyShare
//! ```
//!
//! Alice and Bob have locked the row FOR KEY SHARE, and Carol has updated another column of it. A transaction that
//! deletes the new version has to wait for Alice and Bob; so does one that deletes the old version, if Carol rolls back.
//!
//! # Rules
//! - H1: the caller has the latch of the version's page: shared or exclusive to hold the row, exclusive to ask who is in
//!   the way ([`in_the_way`](RowHolders::in_the_way)) and to change the page by the answer. So of two transactions whose
//!   modes conflict, the later one finds the earlier.
//! - H2: a holder counts as long as its session runs its xid. It is taken out after the transaction has left the array of
//!   running ones, so a transaction that goes past sees in its next snapshot what the holder has done.
//! - H3: a transaction that replaces a version makes its holders those of the new one
//!   ([`follow`](RowHolders::follow)), under the latches of both pages. One that holds a version with a successor holds the successors, too: the heap goes along.
//! - H4: a place is forgotten ([`forget`](RowHolders::forget)) before another version stands there.
//! - H5: of the holders that come while a transaction waits for the row, 16 pass. Later ones take a place in the row's queue
//!   first, behind the one that waits, so it gets the row when those before it have ended. To let none pass would be
//!   simpler, and would make a deadlock of a usual case: Alice shares a row, Bob waits to update it, Carol shares it too,
//!   and Alice waits for something of Carol's.
//! - H6: a transaction that has [`ROWS_MAX`] rows in the table gets the whole relation in their place: it holds each row of
//!   it, in the strongest mode that it has on one of them. So memory is bounded and no lock is lost, and others wait for
//!   rows that they would not have had to wait for. The relation is entered first and its rows are taken out then; a
//!   transaction that asks looks at rows first.
//! - H7: a transaction that goes back to a savepoint gives back what it has got since then (`savepoint`), but for relations
//!   that it holds whole.
//!
//! # Waits
//! A transaction that finds a row held waits for the end of one holder, asks again, and waits for the next. That is a
//! wait for a transaction like any other, so it is woken at the holder's end, and the search for deadlocks follows it. A
//! cycle through a holder that is not waited for yet is found when its turn has come; until then the one that is waited
//! for runs.
//!
//! Two holders that both want to change the row wait for each other, which is a deadlock: one is the victim. A holder does
//! not take a place in the row's queue for that ([`InTheWay::is_holder`]): the first one in the queue may wait for it.
//!
//! # Costs
//! A page of which no row is held: one load of a count that pages with the same hash share, and one of the number of
//! relations held whole. To hold a row: the latch of the session's list and that of a part of the table. A row held takes
//! some 90 bytes.
//!
//! Origin: ours. PostgreSQL writes the number of a set of transactions (a multixact) into `xmax`, and the sets into files.

mod entry;
mod savepoint;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent, Work, switch};

use crate::{ProcArray, ProcId, RowLockMode, Xid};
use entry::{Admission, Moment, PlaceHasher, RowEntry, RowHolder};
use savepoint::Listed;

pub use entry::RowPlace;
pub use savepoint::RowMark;

static HELD_ROWS: LatchClass = LatchClass::new("HeldRows", WaitEvent::LockManager, 260);
static ROW_HOLDERS: LatchClass = LatchClass::new("RowHolders", WaitEvent::LockManager, 262);
static RELATION_HOLDERS: LatchClass = LatchClass::new("RelationHolders", WaitEvent::LockManager, 264);

/// Parts of the table.
const PARTS: usize = 64;
/// Counts of held rows by a hash of the page: a power of two.
const COUNTS: usize = 4_096;
const _: () = assert!(COUNTS.is_power_of_two());
/// Places of a session's list, and of a part of the table, that stay allocated between transactions.
const CAPACITY_KEPT: usize = 256;

/// Looking at a holder of a row in a simulation, ns. ESTIMATED.
const HOLDER_NS: u64 = 1;

/// Rows that one transaction has in the table at most (H6).
pub const ROWS_MAX: usize = 16_384;

switch! {
    /// The number of transactions that can lock a row together.
    pub enum RowLocksVariant = "row_locks", best Shared, planned [] {
        /// One: FOR SHARE and FOR KEY SHARE lock as FOR UPDATE does, and so does each UPDATE.
        Exclusive = "exclusive",
        /// Any number, as the strengths allow.
        Shared = "shared",
    }
    why {
        Shared: "Simulated with 128 sessions on four sockets that insert under one parent, it makes 44 times the transactions \
            of exclusive, under which they wait for each other."
            in "docs/mechanisms/row-locks.md#sets-in-files-simulated";
    }
}

type Part = HashMap<RowPlace, RowEntry, BuildHasherDefault<PlaceHasher>>;
type Relations = HashMap<u32, entry::RowHolders, BuildHasherDefault<PlaceHasher>>;

/// The holds of a session's transaction.
#[derive(Debug, Default)]
struct HeldRows {
    /// Invalid: it holds nothing. A transaction that follows a version for it finds that it has ended.
    xid: Xid,
    /// Places in the table. One may have been forgotten since, or be listed twice.
    places: Vec<Listed>,
    /// Those of them at which it has got a stronger mode since its first savepoint.
    stronger: Vec<Listed>,
    /// Raised by each savepoint.
    now: Moment,
    /// Relations that it holds whole.
    relations: Vec<(u32, RowLockMode)>,
}

impl HeldRows {
    /// The mode in which it holds each row of a relation.
    fn mode_of(&self, rel: u32) -> Option<RowLockMode> {
        let mut relations = self.relations.iter();
        relations.find(|(held, _)| *held == rel).map(|(_, mode)| *mode)
    }
}

/// One session.
#[derive(Debug)]
struct SessionRows<M: Machine> {
    /// 1 if its transaction has held a row. Only the session writes it.
    has_held: M::U32,
    held: Latched<HeldRows, M>,
}

/// A transaction that keeps another one from a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InTheWay {
    /// The transaction to wait for.
    pub xid: Xid,
    /// The asker holds the row itself, in a weaker mode: it waits without a place in the row's queue.
    pub is_holder: bool,
}

/// The transactions that share rows.
#[derive(Debug)]
pub struct RowHolders<M: Machine = Native> {
    variant: RowLocksVariant,
    array: Arc<ProcArray<M>>,
    parts: Vec<Padded<Latched<Part, M>>>,
    /// Number of holders in the table, by a hash of the page.
    counts: Box<[M::U32]>,
    relations: Latched<Relations, M>,
    /// Number of holders in `relations`.
    relation_count: M::U32,
    /// Number of times that a transaction got a relation in the place of its rows.
    escalations: M::U64,
    sessions: Vec<Padded<SessionRows<M>>>,
    rows_max: usize,
}

impl<M: Machine> RowHolders<M> {
    /// An empty table for the sessions of `array`.
    pub(crate) fn new(
        array: Arc<ProcArray<M>>,
        variant: RowLocksVariant,
        lwlock: LwLockOptions,
        rows_max: usize,
    ) -> Self {
        let session = || SessionRows {
            has_held: M::U32::new(0),
            held: Latched::new(&HELD_ROWS, lwlock, HeldRows::default()),
        };
        let few = |many| if M::EXPLORED { 2 } else { many };
        Self {
            variant,
            parts: (0..few(PARTS))
                .map(|_| Padded(Latched::new(&ROW_HOLDERS, lwlock, Part::default())))
                .collect(),
            counts: (0..few(COUNTS)).map(|_| M::U32::new(0)).collect(),
            relations: Latched::new(&RELATION_HOLDERS, lwlock, Relations::default()),
            relation_count: M::U32::new(0),
            escalations: M::U64::new(0),
            sessions: (0..array.capacity()).map(|_| Padded(session())).collect(),
            array,
            rows_max,
        }
    }

    /// True if transactions share rows: the switch `row_locks`.
    #[inline]
    pub fn are_shared(&self) -> bool {
        self.variant == RowLocksVariant::Shared
    }

    /// Number of times that a transaction got a relation in the place of its rows (H6).
    pub fn escalations(&self) -> u64 {
        self.escalations.load(Relaxed)
    }

    /// Number of holders of single rows.
    pub fn held_rows(&self) -> u64 {
        self.counts
            .iter()
            .map(|count| u64::from(count.load(Relaxed)))
            .sum()
    }

    #[inline]
    fn count(&self, place: RowPlace) -> &M::U32 {
        // Not a remainder: that is a division.
        &self.counts[place.page_hash() as usize & (self.counts.len() - 1)]
    }

    fn part(&self, place: RowPlace) -> &Latched<Part, M> {
        // By other bits than the map inside, which uses the lowest and the highest.
        let number = (place.page_hash() >> 20) as usize + usize::from(place.slot);
        &self.parts[number % self.parts.len()]
    }

    fn list(&self, proc: ProcId) -> &SessionRows<M> {
        &self.sessions[proc.0 as usize]
    }

    /// True if a row of the page may be held; its exact answer is that of [`in_the_way`](Self::in_the_way).
    #[inline]
    fn may_be_held(&self, place: RowPlace) -> bool {
        // Acquire, both and in this order: a holder that has gone from the rows is seen among the relations (H6); one that
        // has gone altogether has ended, and so has what it did (H2).
        self.count(place).load(Acquire) != 0 || self.relation_count.load(Acquire) != 0
    }

    /// A transaction that keeps `xid` from having the version at `place` in `mode`. The caller has the page exclusively (H1).
    #[inline]
    pub fn in_the_way(&self, xid: Xid, place: RowPlace, mode: RowLockMode) -> Option<InTheWay> {
        if !self.may_be_held(place) {
            return None;
        }
        let (other, is_holder) = self.look(xid, place, mode);
        other.map(|xid| InTheWay { xid, is_holder })
    }

    /// True if `xid` holds the version at `place`, in whatever mode.
    pub fn holds(&self, xid: Xid, place: RowPlace) -> bool {
        self.may_be_held(place) && self.look(xid, place, RowLockMode::KeyShare).1
    }

    /// Another transaction that holds the row in a mode that conflicts with `mode`, and whether `xid` holds it.
    #[cold]
    fn look(&self, xid: Xid, place: RowPlace, mode: RowLockMode) -> (Option<Xid>, bool) {
        let mut found = (None, false);
        if let Some(entry) = self.part(place).exclusive().get_mut(&place) {
            self.look_among(&entry.holders, xid, mode, &mut found);
            if found.0.is_some() {
                entry.note_waiter(mode);
            }
        }
        // Behind the rows: H6.
        if self.relation_count.load(Acquire) != 0
            && let Some(holders) = self.relations.shared().get(&place.rel)
        {
            self.look_among(holders, xid, mode, &mut found);
        }
        found
    }

    fn look_among(
        &self,
        holders: &[RowHolder],
        xid: Xid,
        mode: RowLockMode,
        (other, is_holder): &mut (Option<Xid>, bool),
    ) {
        M::charge(Work::Nanos(HOLDER_NS * holders.len() as u64));
        for holder in holders {
            if holder.xid == xid {
                *is_holder = true;
            } else if other.is_none() && holder.mode().conflicts_with(mode) && self.runs(holder) {
                *other = Some(holder.xid);
            }
        }
    }

    /// H2.
    fn runs(&self, holder: &RowHolder) -> bool {
        self.array.xid_of(holder.proc) == Some(holder.xid)
    }

    /// Makes the transaction `xid` of `proc` a holder of the version at `place`, in a shared mode; `false` if it has to take a
    /// place in the row's queue first (H5). `at_front`: it has done so. The caller has the page (H1), and no transaction has
    /// the row on the page in a mode that conflicts.
    #[must_use = "the row may not be held"]
    pub fn hold(&self, proc: ProcId, xid: Xid, place: RowPlace, mode: RowLockMode, at_front: bool) -> bool {
        let session = self.list(proc);
        // Relaxed: read by the session itself.
        session.has_held.store(1, Relaxed);
        let mut list = session.held.exclusive();
        debug_assert!(
            list.xid == xid || !list.xid.is_valid(),
            "the last transaction has ended"
        );
        list.xid = xid;
        let holder = RowHolder::new(proc, xid, mode, list.now);
        match list.mode_of(place.rel) {
            Some(held) if held >= mode => true,
            Some(_) => {
                self.hold_relation(&mut list, holder, place.rel);
                true
            }
            None => self.add(&mut list, holder, place, at_front),
        }
    }

    /// Enters a holder under the latch of its session's list.
    fn add(&self, list: &mut HeldRows, holder: RowHolder, place: RowPlace, at_front: bool) -> bool {
        {
            let mut part = self.part(place).exclusive();
            let entry = part.entry(place).or_default();
            M::charge(Work::Nanos(HOLDER_NS * entry.holders.len() as u64));
            match entry.admit(holder, at_front) {
                Admission::Held => return true,
                Admission::Stronger => {
                    list.note_stronger(place);
                    return true;
                }
                Admission::Queue => return false,
                Admission::Added => {
                    // Relaxed: the page's latch publishes it (H1).
                    self.count(place).fetch_add(1, Relaxed);
                }
            }
        }
        list.places.push(Listed { place, at: list.now });
        if list.places.len() >= self.rows_max {
            self.escalate(list, holder, place.rel);
        }
        true
    }

    /// H6: all rows of a relation in the place of those on the list.
    #[cold]
    fn escalate(&self, list: &mut HeldRows, holder: RowHolder, rel: u32) {
        let mut whole = holder;
        for listed in list.places.iter().filter(|listed| listed.place.rel == rel) {
            let part = self.part(listed.place).shared();
            let held = part.get(&listed.place).map_or(&[][..], |entry| &entry.holders);
            for own in held.iter().filter(|other| other.xid == holder.xid) {
                whole.add(own);
            }
        }
        self.hold_relation(list, whole, rel);
        self.escalations.fetch_add(1, Relaxed);
        list.stronger.retain(|listed| listed.place.rel != rel);
        list.places.retain(|listed| {
            if listed.place.rel == rel {
                self.remove(listed.place, holder.xid);
            }
            listed.place.rel != rel
        });
    }

    /// Makes a transaction a holder of each row of a relation, or its hold stronger.
    fn hold_relation(&self, list: &mut HeldRows, holder: RowHolder, rel: u32) {
        let mut relations = self.relations.exclusive();
        let holders = relations.entry(rel).or_default();
        if let Some(held) = holders.iter_mut().find(|held| held.xid == holder.xid) {
            held.add(&holder);
        } else {
            holders.push(holder);
            // Relaxed: published by the Release in `remove`, and for rows that are locked later by the latches of their
            // pages.
            self.relation_count.fetch_add(1, Relaxed);
        }
        drop(relations);
        match list.relations.iter_mut().find(|(held, _)| *held == rel) {
            Some((_, mode)) => *mode = holder.mode().max(*mode),
            None => list.relations.push((rel, holder.mode())),
        }
    }

    /// Takes a transaction off a row, if it is there.
    fn remove(&self, place: RowPlace, xid: Xid) {
        self.keep(place, |holder| holder.xid != xid);
    }

    /// Keeps some of a row's holders.
    fn keep(&self, place: RowPlace, is_kept: impl Fn(&mut RowHolder) -> bool) {
        let mut part = self.part(place).exclusive();
        let Some(entry) = part.get_mut(&place) else {
            return;
        };
        let before = entry.holders.len();
        M::charge(Work::Nanos(HOLDER_NS * before as u64));
        entry.holders.retain(is_kept);
        let removed = before - entry.holders.len();
        if entry.holders.is_empty() {
            part.remove(&place);
            if part.is_empty() && part.capacity() > CAPACITY_KEPT {
                part.shrink_to(CAPACITY_KEPT);
            }
        }
        drop(part);
        if removed != 0 {
            // Release: pairs with the Acquire in `may_be_held`.
            self.count(place).fetch_sub(removed as u32, Release);
        }
    }

    /// H3: the version at `to` replaces the one at `from`. The caller has both pages exclusively.
    #[inline]
    pub fn follow(&self, from: RowPlace, to: RowPlace) {
        // Relations need no following. Acquire: as in `may_be_held`.
        if self.count(from).load(Acquire) != 0 {
            self.follow_holders(from, to);
        }
    }

    #[cold]
    fn follow_holders(&self, from: RowPlace, to: RowPlace) {
        let holders = match self.part(from).shared().get(&from) {
            Some(entry) => entry.holders.clone(),
            None => return,
        };
        for holder in holders {
            let mut list = self.list(holder.proc).held.exclusive();
            // One that has ended meanwhile has taken its list along, or holds all rows by now.
            if list.xid == holder.xid && list.mode_of(to.rel).is_none() {
                // Looked at again: it may have gone back to a savepoint (K3).
                let held = self.holder(from, holder.xid);
                held.map(|holder| self.add(&mut list, holder, to, true));
            }
        }
    }

    /// A transaction as a holder of a row.
    fn holder(&self, place: RowPlace, xid: Xid) -> Option<RowHolder> {
        let part = self.part(place).shared();
        let mut holders = part.get(&place)?.holders.iter();
        holders.find(|holder| holder.xid == xid).copied()
    }

    /// H4: other versions will stand at places of a page, which the caller has exclusively.
    #[inline]
    pub fn forget(&self, rel: u32, block: u32, slots: impl IntoIterator<Item = u16>) {
        let page = RowPlace { rel, block, slot: 0 };
        // Acquire: as in `may_be_held`.
        if self.count(page).load(Acquire) != 0 {
            for slot in slots {
                self.forget_place(RowPlace { slot, ..page });
            }
        }
    }

    #[cold]
    fn forget_place(&self, place: RowPlace) {
        if let Some(entry) = self.part(place).exclusive().remove(&place) {
            self.count(place).fetch_sub(entry.holders.len() as u32, Release);
        }
    }

    /// The transaction of `proc` has ended, and left the array (H2): it holds nothing any more. One load if it held nothing.
    #[inline]
    pub(crate) fn release(&self, proc: ProcId) {
        // Relaxed: written by the session itself.
        if self.list(proc).has_held.load(Relaxed) != 0 {
            self.release_list(proc);
        }
    }

    #[cold]
    fn release_list(&self, proc: ProcId) {
        let session = self.list(proc);
        session.has_held.store(0, Relaxed);
        // A transaction that follows a version for it from here on finds that it has ended.
        let HeldRows {
            xid,
            mut places,
            relations,
            ..
        } = std::mem::take(&mut *session.held.exclusive());
        for listed in &places {
            self.remove(listed.place, xid);
        }
        for (rel, _) in &relations {
            let mut table = self.relations.exclusive();
            if let Some(holders) = table.get_mut(rel) {
                holders.retain(|holder| holder.xid != xid);
                if holders.is_empty() {
                    table.remove(rel);
                }
            }
            drop(table);
            // Release: pairs with the Acquire in `may_be_held`.
            self.relation_count.fetch_sub(1, Release);
        }
        if places.capacity() <= CAPACITY_KEPT {
            places.clear();
            session.held.exclusive().places = places;
        }
    }
}

#[cfg(all(test, not(feature = "loom"), not(feature = "shuttle")))]
mod tests;
