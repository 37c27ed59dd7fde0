//! Sessions that lock rows in random strengths, as the heap does it: a page's latch around each step, the strong locks on
//! the page, the shared ones in the table that is tested.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, WaitEvent};
use clearway_txn::{
    LockError, LockManager, LockMode, LockOptions, LockTag, LockWait, ProcArray, ProcArrayOptions, ProcId,
    RowLockMode, RowPlace, Xid,
};

use super::{FIRST, Random};

static PAGE: LatchClass = LatchClass::new("page", WaitEvent::UserLatch, 250);

/// A row on a page of its own.
#[derive(Debug, Default)]
struct Page {
    /// The transaction that has the row alone, and how.
    alone: Option<(Xid, RowLockMode)>,
    /// The line pointer of the newest version.
    version: u16,
}

/// Rows, and the locks on them.
pub struct Rows<M: Machine> {
    pub array: Arc<ProcArray<M>>,
    pub locks: LockManager<M>,
    pages: Vec<Latched<Page, M>>,
    /// For each row and mode the number of transactions that have it.
    holders: Vec<[M::U64; 4]>,
}

impl<M: Machine> Rows<M> {
    pub fn new(rows: u32, sessions: u32, rows_max: usize, deadlock_timeout: Duration) -> Self {
        let array = Arc::new(ProcArray::new(sessions, ProcArrayOptions::default(), FIRST));
        let lwlock = LwLockOptions::default();
        let options = LockOptions {
            rows_max,
            lwlock,
            deadlock_timeout,
            ..LockOptions::default()
        };
        Self {
            locks: LockManager::with_options(Arc::clone(&array), options),
            array,
            pages: (0..rows)
                .map(|_| Latched::new(&PAGE, lwlock, Page::default()))
                .collect(),
            holders: (0..rows).map(|_| [(); 4].map(|()| M::U64::new(0))).collect(),
        }
    }

    fn place(block: usize, version: u16) -> RowPlace {
        RowPlace {
            rel: 1,
            block: block as u32,
            slot: version,
        }
    }

    /// Locks a row; with `replaces` it gets a new version as well.
    fn lock(
        &self,
        (proc, xid): (ProcId, Xid),
        row: usize,
        mode: RowLockMode,
        replaces: bool,
    ) -> Result<(), LockError> {
        let table = self.locks.rows();
        let (mut at_front, mut queued) = (false, false);
        let result = loop {
            let waits = if mode.is_shared() {
                let page = self.pages[row].shared();
                match page.alone {
                    Some((other, held)) if other == xid && held > mode => break Ok(()),
                    Some((other, held))
                        if other != xid && held.conflicts_with(mode) && self.array.is_running(other) =>
                    {
                        let is_holder = table.holds(xid, Self::place(row, page.version));
                        Some((other, is_holder))
                    }
                    _ if table.hold(proc, xid, Self::place(row, page.version), mode, at_front) => {
                        break Ok(());
                    }
                    _ => None,
                }
            } else {
                let mut page = self.pages[row].exclusive();
                let place = Self::place(row, page.version);
                match page.alone {
                    Some((other, _)) if other != xid && self.array.is_running(other) => {
                        Some((other, table.holds(xid, place)))
                    }
                    before => match table.in_the_way(xid, place, mode) {
                        Some(found) => {
                            let has_own = before.is_some_and(|(other, _)| other == xid);
                            Some((found.xid, found.is_holder || has_own))
                        }
                        None => {
                            let own = before.filter(|(other, _)| *other == xid);
                            page.alone = Some((xid, own.map_or(mode, |(_, held)| held.max(mode))));
                            if replaces {
                                page.version = page.version % 1_000 + 1;
                                table.follow(place, Self::place(row, page.version));
                                table.forget(1, row as u32, [place.slot]);
                            }
                            break Ok(());
                        }
                    },
                }
            };
            if !queued && waits.is_none_or(|(_, is_holder)| !is_holder) {
                if let Err(error) =
                    self.locks
                        .acquire(proc, Self::queue(row), LockMode::Exclusive, LockWait::FOREVER)
                {
                    break Err(error);
                }
                queued = true;
            }
            match waits {
                None => at_front = true,
                Some((other, _)) => {
                    if let Err(error) = self.locks.wait_for_transaction(proc, other, LockWait::FOREVER) {
                        break Err(error);
                    }
                }
            }
        };
        if queued {
            self.locks.release(proc, Self::queue(row), LockMode::Exclusive);
        }
        result
    }

    fn queue(row: usize) -> LockTag {
        LockTag::Tuple {
            rel: 1,
            block: row as u32,
            slot: 0,
        }
    }

    /// A transaction that locks some rows in random modes; true if it was the victim of a deadlock.
    pub fn transaction(&self, proc: ProcId, random: &mut Random) -> bool {
        let xid = self.array.assign_xid(proc);
        let mut mine: Vec<(usize, RowLockMode)> = Vec::new();
        let mut is_victim = false;
        for _ in 0..=random.below(3) {
            let row = random.below(self.pages.len() as u64) as usize;
            let mode = RowLockMode::ALL[random.below(4) as usize];
            match self.lock((proc, xid), row, mode, random.below(2) == 0) {
                Ok(()) => {}
                Err(LockError::Deadlock { .. }) => {
                    is_victim = true;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
            if !mine.contains(&(row, mode)) {
                self.holders[row][mode as usize].fetch_add(1, SeqCst);
                mine.push((row, mode));
            }
            for other in RowLockMode::ALL {
                let own = u64::from(mine.contains(&(row, other)));
                let count = self.holders[row][other as usize].load(SeqCst);
                assert!(
                    count <= own || !other.conflicts_with(mode),
                    "{other:?} is held beside {mode:?}"
                );
            }
        }
        for (row, mode) in mine {
            self.holders[row][mode as usize].fetch_sub(1, SeqCst);
        }
        self.locks.end_transaction(proc, xid);
        is_victim
    }
}
