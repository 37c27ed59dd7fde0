//! A ledger of the changes that sessions made and of what was promised to them, to be compared with what a
//! recovered storage holds.
//!
//! A session's operations are logged in its own order, so after a crash its pages and commits are those of a
//! prefix of its operations. The prefix is at least as long as what was acknowledged (`floor`), and holds no
//! operation that had not begun.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use clearway_storage::{PAGE_SIZE, PageId, PageKind, RelId, Storage, StorageError};
use clearway_txn::{ProcId, Status, Xid};

use super::recording_disk::Random;

/// The offset of the number on each page; behind it is its complement.
const NUMBER: usize = 4096;

#[derive(Debug, Clone)]
pub enum Operation {
    /// A page was added that holds 0.
    Page(PageId),
    /// Each of these pages' numbers was raised by 1, in one atomic change.
    Add(Vec<PageId>),
    /// The transaction committed.
    Commit(Xid),
    /// The relation was dropped, or may have been.
    Drop(RelId),
}

#[derive(Debug, Clone, Default)]
pub struct Session {
    /// All operations that have begun.
    operations: Vec<Operation>,
    /// Number of operations that have been logged.
    logged: usize,
    /// Number of operations that are known to be durable.
    floor: usize,
}

/// All sessions' operations.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<Session>>>);

fn encode(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&(!number).to_le_bytes());
    bytes
}

/// The page's number; `None` if the page was added and never filled.
fn read(storage: &Storage, page: PageId) -> Result<Option<u64>, StorageError> {
    let pinned = storage.pin(page)?;
    let page = pinned.shared();
    let bytes: &[u8; PAGE_SIZE] = page.bytes();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    Ok((word(NUMBER) == !word(NUMBER + 8)).then(|| word(NUMBER)))
}

impl Ledger {
    pub fn new(sessions: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Session::default(); sessions])))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The ledger as it is now.
    pub fn snapshot(&self) -> Vec<Session> {
        self.lock().clone()
    }

    fn begin(&self, session: usize, operation: Operation) {
        self.lock()[session].operations.push(operation);
    }

    fn logged(&self, session: usize) {
        let session = &mut self.lock()[session];
        session.logged = session.operations.len();
    }
}

/// A session at work.
pub struct Worker<'a> {
    storage: &'a Storage,
    ledger: Ledger,
    session: usize,
    proc: ProcId,
    xid: Option<Xid>,
    pages: Vec<PageId>,
}

impl<'a> Worker<'a> {
    pub fn new(storage: &'a Storage, ledger: &Ledger, session: usize) -> Self {
        Self {
            storage,
            ledger: ledger.clone(),
            session,
            proc: storage.proc_array.attach().unwrap(),
            xid: None,
            pages: Vec::new(),
        }
    }

    pub fn create_rel(&mut self) -> RelId {
        let rel = self.storage.create_rel().unwrap();
        self.add_page(rel);
        rel
    }

    pub fn add_page(&mut self, rel: RelId) -> PageId {
        let pinned = self.storage.extend(rel).unwrap();
        let page = pinned.page_id();
        self.ledger.begin(self.session, Operation::Page(page));
        let mut change = self.storage.begin_change(Xid::INVALID).unwrap();
        let mut exclusive = pinned.into_exclusive();
        change.init_page(&mut exclusive, PageKind(77), 8);
        change.write(&mut exclusive, NUMBER, &encode(0));
        change.finish().unwrap();
        drop(exclusive);
        self.ledger.logged(self.session);
        self.pages.push(page);
        page
    }

    pub fn add(&mut self, mut pages: Vec<PageId>) {
        pages.sort_by_key(|page| (page.rel, page.block));
        pages.dedup();
        let xid = match self.xid {
            Some(xid) => xid,
            None => *self.xid.insert(self.storage.assign_xid(self.proc).unwrap()),
        };
        self.ledger.begin(self.session, Operation::Add(pages.clone()));
        let mut latched: Vec<_> = pages
            .iter()
            .map(|page| self.storage.pin(*page).unwrap().into_exclusive())
            .collect();
        let mut change = self.storage.begin_change(xid).unwrap();
        for page in &mut latched {
            let number = u64::from_le_bytes(page.copy()[NUMBER..NUMBER + 8].try_into().unwrap());
            change.write(page, NUMBER, &encode(number + 1));
        }
        change.finish().unwrap();
        drop(latched);
        self.ledger.logged(self.session);
    }

    pub fn commit(&mut self, synchronous: bool) {
        let Some(xid) = self.xid.take() else { return };
        let before: Vec<_> = self.ledger.lock().iter().map(|session| session.logged).collect();
        self.ledger.begin(self.session, Operation::Commit(xid));
        self.storage.commit(self.proc, xid, synchronous).unwrap();
        self.ledger.logged(self.session);
        if synchronous {
            let mut sessions = self.ledger.lock();
            // What was logged before this commit is durable with it.
            for (session, logged) in sessions.iter_mut().zip(before) {
                session.floor = session.floor.max(logged);
            }
            let session = &mut sessions[self.session];
            session.floor = session.logged;
        }
    }

    pub fn drop_rel(&mut self, rel: RelId) {
        self.commit(true);
        self.ledger.begin(self.session, Operation::Drop(rel));
        self.pages.retain(|page| page.rel != rel);
        self.storage.drop_rel(rel).unwrap();
        self.ledger.logged(self.session);
    }

    /// Does this many random operations.
    pub fn work(&mut self, random: &mut Random, steps: usize) {
        let mut rels = vec![self.create_rel(), self.create_rel()];
        for _ in 0..steps {
            let rel = rels[random.below(rels.len() as u64) as usize];
            match random.below(100) {
                0..10 => {
                    self.add_page(rel);
                }
                10..13 if rels.len() < 5 => rels.push(self.create_rel()),
                13..15 if rels.len() > 2 => {
                    rels.retain(|kept| *kept != rel);
                    self.drop_rel(rel);
                }
                15..35 => self.commit(random.one_in(2)),
                _ => {
                    let pages = (0..1 + random.below(2))
                        .map(|_| self.pages[random.below(self.pages.len() as u64) as usize])
                        .collect();
                    self.add(pages);
                }
            }
        }
        self.commit(true);
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // A transaction that is still open stays in the array, as one that a crash interrupts.
        if self.xid.is_none() {
            self.storage.proc_array.detach(self.proc);
        }
    }
}

impl Session {
    /// Number of operations that have begun.
    pub fn begun(&self) -> u64 {
        self.operations.len() as u64
    }

    /// Compares what `storage` holds with what was promised; what is wrong, if anything is.
    fn verify(&self, storage: &Storage) -> Result<(), String> {
        let dropped: BTreeSet<_> = self
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Drop(rel) => Some(*rel),
                _ => None,
            })
            .collect();
        let mut expected: BTreeMap<(RelId, u32), u64> = BTreeMap::new();
        let mut commits = 0;
        let committed: Vec<bool> = self
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Commit(xid) => {
                    Some(storage.status(*xid).map(|status| status == Status::Committed))
                }
                _ => None,
            })
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the commit log cannot be read: {error}"))?;
        let mut problem = String::new();
        for prefix in 0..=self.operations.len() {
            if prefix >= self.floor {
                match self.compare(storage, &expected, &committed, commits) {
                    Ok(()) => return Ok(()),
                    Err(difference) if problem.is_empty() => problem = difference,
                    Err(_) => {}
                }
            }
            match self.operations.get(prefix) {
                Some(Operation::Page(page)) if !dropped.contains(&page.rel) => {
                    expected.insert((page.rel, page.block), 0);
                }
                Some(Operation::Add(pages)) => {
                    for page in pages {
                        if let Some(number) = expected.get_mut(&(page.rel, page.block)) {
                            *number += 1;
                        }
                    }
                }
                Some(Operation::Commit(_)) => commits += 1,
                _ => {}
            }
        }
        Err(format!(
            "of {} operations, {} of them acknowledged, no prefix fits; after {}: {problem}",
            self.operations.len(),
            self.floor,
            self.floor
        ))
    }

    fn compare(
        &self,
        storage: &Storage,
        expected: &BTreeMap<(RelId, u32), u64>,
        committed: &[bool],
        commits: usize,
    ) -> Result<(), String> {
        for (number, committed) in committed.iter().enumerate() {
            if *committed != (number < commits) {
                return Err(format!("commit {number} of {commits} is {committed}"));
            }
        }
        for (&(rel, block), &number) in expected {
            match read(storage, PageId { rel, block }) {
                Ok(Some(found)) if found == number => {}
                Ok(found) => return Err(format!("page {block} of {rel:?} holds {found:?}, not {number}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Compares what `storage` holds with what was promised to all sessions.
pub fn verify(storage: &Storage, sessions: &[Session]) -> Result<(), String> {
    for (number, session) in sessions.iter().enumerate() {
        session
            .verify(storage)
            .map_err(|problem| format!("session {number}: {problem}"))?;
    }
    Ok(())
}

/// The sessions as of `later`, of whose work only what was acknowledged `earlier` is promised.
pub fn promised_before(later: Vec<Session>, earlier: &[Session]) -> Vec<Session> {
    let both = later.into_iter().zip(earlier);
    both.map(|(later, earlier)| Session {
        floor: earlier.floor,
        ..later
    })
    .collect()
}
