//! The rows of the parents, and the three ways to lock one.
//!
//! Invariant: as long as a transaction has locked a row in a mode, none has it in a mode that conflicts. [`Granted`] counts,
//! beside the simulation, and stops it at once where that is not so; it counts a transaction until its commit begins.
//!
//! | way | a sharer's page latch | it writes | an exclusive locker finds the sharers |
//! | --- | --- | --- | --- |
//! | `row_locks = exclusive` | exclusive | the row's word, a log record | – : a sharer locks as it does |
//! | `row_locks = shared` | shared | an entry of `RowHolders` | there |
//! | `multixact` | exclusive | a set and its log record, the row's word, a log record | in the set that the word names |
//!
//! A locker that meets one in its way takes a place in the row's queue, a tuple lock, waits for the end of the transactions
//! that it met, and looks again: as `executor::lock_row` has it in the engine. Under `multixact` it waits for each member in its
//! way before it looks again, and no later sharer queues behind it; under `shared` it looks again after each, and 16 sharers
//! pass it.

use std::cell::Cell;
use std::rc::Rc;

use clearway_machine::{Machine, Work};
use clearway_sim::{Simulated, span};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{PageId, RelId};
use clearway_txn::{LockMode, LockTag, LockWait, RowLockMode, RowPlace, Xid};

use super::file::File;
use crate::simulate::multixact::{Member, SetId, Sets, TransactionSets};
use crate::simulate::pgbench::{Database, HEAP_CHANGE_NS, HEAP_READ_NS, Session};

pub(super) const PARENTS: RelId = RelId(24);
/// Rows of a page.
pub(super) const PARENTS_PER_PAGE: u32 = 100;
/// Payload bytes of the log record of a row lock.
const LOCK_BYTES: usize = 40;

/// The word of a row: the transaction or set that has locked it.
#[derive(Debug, Clone, Copy)]
enum RowWord {
    Free,
    One(Member),
    Set(SetId),
}

/// The transactions that have a row in each mode. Not part of what is simulated.
#[derive(Debug, Default)]
struct Granted([Cell<u32>; 4]);

impl Granted {
    fn add(&self, mode: RowLockMode) {
        for other in RowLockMode::ALL {
            let count = self.0[other as usize].get();
            assert!(
                count == 0 || !other.conflicts_with(mode),
                "{mode:?} was granted beside {count} times {other:?}"
            );
        }
        let count = &self.0[mode as usize];
        count.set(count.get() + 1);
    }

    fn remove(&self, mode: RowLockMode) {
        let count = &self.0[mode as usize];
        count.set(count.get() - 1);
    }

    fn total(&self) -> u32 {
        self.0.iter().map(Cell::get).sum()
    }
}

/// The outcome of one look at a row.
enum Look {
    Locked,
    /// Wait for these. The asker does not have the row: it locks one row, once.
    Wait(Vec<Xid>),
    /// Take a place in the row's queue first.
    Queue,
}

/// The rows that the children refer to.
pub(super) struct Parents {
    database: Rc<Database>,
    /// `None`: the switch `row_locks` decides.
    sets: Option<Sets<Simulated, File>>,
    words: Box<[Cell<RowWord>]>,
    granted: Box<[Granted]>,
    /// For each row the transactions that have it and have not ended: more than in `granted` while some commit. Not part of
    /// what is simulated.
    not_ended: Box<[Cell<u32>]>,
}

impl Parents {
    pub(super) fn new(database: Rc<Database>, sets: Option<Sets<Simulated, File>>, rows: u32) -> Self {
        Self {
            database,
            sets,
            words: (0..rows).map(|_| Cell::new(RowWord::Free)).collect(),
            granted: (0..rows).map(|_| Granted::default()).collect(),
            not_ended: (0..rows).map(|_| Cell::default()).collect(),
        }
    }

    pub(super) fn rows(&self) -> u32 {
        self.words.len() as u32
    }

    /// The sets, under `multixact`.
    pub(super) fn sets(&self) -> Option<&Sets<Simulated, File>> {
        self.sets.as_ref()
    }

    /// The transactions that have a row and have not ended.
    pub(super) fn sharers(&self, row: u32) -> u32 {
        self.not_ended[row as usize].get()
    }

    /// True if no transaction has a row.
    pub(super) fn all_are_free(&self) -> bool {
        let mut granted = self.granted.iter();
        granted.all(|granted| granted.total() == 0) && self.not_ended.iter().all(|count| count.get() == 0)
    }

    fn place(row: u32) -> RowPlace {
        RowPlace {
            rel: PARENTS.0,
            block: row / PARENTS_PER_PAGE,
            slot: (row % PARENTS_PER_PAGE) as u16 + 1,
        }
    }

    fn page_of(row: u32) -> PageId {
        PageId {
            rel: PARENTS,
            block: Self::place(row).block,
        }
    }

    /// The mode that a locker gets where it asks for `mode`.
    fn granted_mode(&self, mode: RowLockMode) -> RowLockMode {
        if self.sets.is_some() || self.database.locks.rows().are_shared() {
            mode
        } else {
            RowLockMode::Update
        }
    }

    /// Locks a row for the transaction `xid` of a session; returns the number of times that it waited.
    pub(super) fn lock(
        &self,
        session: &Session,
        own: &mut TransactionSets,
        xid: Xid,
        row: u32,
        mode: RowLockMode,
    ) -> u32 {
        let _span = span("lock parent");
        let mode = self.granted_mode(mode);
        let locks = &self.database.locks;
        let place = Self::place(row);
        let tag = LockTag::Tuple {
            rel: place.rel,
            block: place.block,
            slot: place.slot,
        };
        let (mut is_queued, mut waits) = (false, 0);
        let mut queue = || {
            if !is_queued {
                is_queued = true;
                let got = locks.acquire(session.proc, tag, LockMode::Exclusive, LockWait::FOREVER);
                got.expect("a session that waits for a row has no other");
            }
        };
        loop {
            let look = match &self.sets {
                Some(sets) => self.look_by_sets(sets, session, own, xid, row, mode),
                None if mode.is_shared() => self.look_as_sharer(session, xid, row, mode, waits > 0),
                None => self.look_alone(session, xid, row, mode),
            };
            match look {
                Look::Locked => break,
                Look::Queue => queue(),
                Look::Wait(others) => {
                    queue();
                    for other in others {
                        let ended = locks.wait_for_transaction(session.proc, other, LockWait::FOREVER);
                        ended.expect("a session that waits for a row has no other");
                    }
                }
            }
            waits += 1;
        }
        self.granted[row as usize].add(mode);
        self.not_ended[row as usize].update(|count| count + 1);
        if is_queued {
            locks.release(session.proc, tag, LockMode::Exclusive);
        }
        waits
    }

    /// A transaction that has a row is about to end: others may get it from now on.
    pub(super) fn before_end(&self, row: u32, mode: RowLockMode) {
        self.granted[row as usize].remove(self.granted_mode(mode));
    }

    /// A transaction that had a row has ended.
    pub(super) fn ended(&self, row: u32) {
        self.not_ended[row as usize].update(|count| count - 1);
    }

    /// True if a transaction runs; one below the session's snapshot has ended, which needs no look at the others.
    fn runs(&self, session: &Session, xid: Xid) -> bool {
        let procs = &self.database.procs;
        procs.xmin_of(session.proc).is_none_or(|xmin| xid >= xmin) && procs.is_running(xid)
    }

    /// The locker on the page that runs and is in the way. Only without sets.
    fn one_in_the_way(&self, session: &Session, row: u32, mode: RowLockMode) -> Option<Xid> {
        match self.words[row as usize].get() {
            RowWord::Free => None,
            RowWord::One(member) => {
                (member.mode.conflicts_with(mode) && self.runs(session, member.xid)).then_some(member.xid)
            }
            RowWord::Set(_) => unreachable!("sets are of `multixact`"),
        }
    }

    /// FOR KEY SHARE under `row_locks = shared`: `Heap::share_row`.
    fn look_as_sharer(
        &self,
        session: &Session,
        xid: Xid,
        row: u32,
        mode: RowLockMode,
        at_front: bool,
    ) -> Look {
        let page = self.database.pool.pin(Self::page_of(row));
        let _page = page.expect("every page is resident").into_shared();
        Simulated::charge(Work::Nanos(HEAP_READ_NS));
        if let Some(other) = self.one_in_the_way(session, row, mode) {
            return Look::Wait(vec![other]);
        }
        let rows = self.database.locks.rows();
        match rows.hold(session.proc, xid, Self::place(row), mode, at_front) {
            true => Look::Locked,
            false => Look::Queue,
        }
    }

    /// FOR UPDATE, and all locks under `row_locks = exclusive`: `Heap::lock_row_alone`.
    fn look_alone(&self, session: &Session, xid: Xid, row: u32, mode: RowLockMode) -> Look {
        let page = self.database.pool.pin(Self::page_of(row));
        let mut page = page.expect("every page is resident").into_exclusive();
        Simulated::charge(Work::Nanos(HEAP_READ_NS));
        if let Some(other) = self.one_in_the_way(session, row, mode) {
            return Look::Wait(vec![other]);
        }
        let rows = self.database.locks.rows();
        if let Some(other) = rows.in_the_way(xid, Self::place(row), mode) {
            return Look::Wait(vec![other.xid]);
        }
        self.words[row as usize].set(RowWord::One(Member { xid, mode }));
        page.change_and_log(
            |_| Simulated::charge(Work::Nanos(HEAP_CHANGE_NS)),
            || self.log(xid, LOCK_BYTES),
        );
        Look::Locked
    }

    /// All locks under `multixact`: steps 1 to 6.
    fn look_by_sets(
        &self,
        sets: &Sets<Simulated, File>,
        session: &Session,
        own: &mut TransactionSets,
        xid: Xid,
        row: u32,
        mode: RowLockMode,
    ) -> Look {
        sets.announce(session.proc, own);
        let page = self.database.pool.pin(Self::page_of(row));
        let mut page = page.expect("every page is resident").into_exclusive();
        Simulated::charge(Work::Nanos(HEAP_READ_NS));
        let word = &self.words[row as usize];
        let mut live = match word.get() {
            RowWord::Free => Vec::new(),
            RowWord::One(member) => vec![member],
            RowWord::Set(id) => sets.members(own, id).to_vec(),
        };
        live.retain(|member| self.runs(session, member.xid));
        let in_the_way: Vec<Xid> = live
            .iter()
            .filter(|member| member.mode.conflicts_with(mode))
            .map(|member| member.xid)
            .collect();
        if !in_the_way.is_empty() {
            return Look::Wait(in_the_way);
        }
        assert!(
            live.len() >= self.granted[row as usize].total() as usize,
            "X2: {live:?} lacks some of {:?}",
            self.granted[row as usize]
        );
        assert!(
            live.len() < self.database.procs.capacity() as usize,
            "X2: {live:?} has such as have ended"
        );
        let locker = Member { xid, mode };
        live.push(locker);
        word.set(match live.len() {
            1 => RowWord::One(locker),
            _ => RowWord::Set(sets.create(own, &live, |bytes| {
                self.log(xid, bytes);
            })),
        });
        page.change_and_log(
            |_| Simulated::charge(Work::Nanos(HEAP_CHANGE_NS)),
            || self.log(xid, LOCK_BYTES),
        );
        Look::Locked
    }

    /// Enters a record of so many bytes into the log.
    fn log(&self, xid: Xid, bytes: usize) -> clearway_storage::Lsn {
        self.database
            .log
            .insert_any(RecordKind::CHANGE, xid, &vec![0; bytes])
    }
}
