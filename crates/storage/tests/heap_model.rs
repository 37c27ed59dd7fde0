//! The heap against a model: sessions insert, update, delete and lock rows in all strengths under old and new snapshots, end
//! either way or crash, while vacuum removes versions. Each session sees what the model says, and gets the conflicts of its
//! changes. Each story is played under every variant of `page_read` and of `page_room`.

#[path = "support/chosen.rs"]
mod chosen;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use clearway_machine::Switch;
use clearway_storage::heap::{
    ChangedColumns, DeleteOutcome, Heap, LockOutcome, Tid, TxnContext, UpdateOutcome, VersionOutcome,
};
use clearway_storage::vacuum::{VacuumStats, vacuum};
use clearway_storage::{PageReadVariant, PageRoomVariant, Reader, RelId, Storage};
use clearway_txn::{InTheWay, ProcId, RowLockMode, RowLocksVariant, Snapshot, Xid};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SESSIONS: usize = 3;
const STEPS: usize = 150;

/// A version of a row; no two have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    number: u64,
    tid: Tid,
}

/// The version of each row.
type Rows = BTreeMap<u64, Version>;
/// The rows that a transaction has changed; `None`: deleted.
type Changes = BTreeMap<u64, Option<Version>>;

fn with_changes(rows: &Rows, changes: &Changes) -> Rows {
    let mut changed = rows.clone();
    for (&row, version) in changes {
        match version {
            Some(version) => changed.insert(row, *version),
            None => changed.remove(&row),
        };
    }
    changed
}

/// A conflict of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conflict {
    None,
    SelfModified,
    Wait(Xid),
    /// A transaction that shares the row.
    Sharer,
    Deleted,
    Changed(Tid),
}

/// A session, with its transaction if it is in one.
#[derive(Debug)]
struct Session {
    proc: ProcId,
    transaction: Option<Transaction>,
}

#[derive(Debug)]
struct Transaction {
    xid: Option<Xid>,
    command: u32,
    snapshot: Snapshot,
    /// The rows that were committed when the snapshot was taken.
    committed: Rows,
    changes: Changes,
    /// The changes without those of the last command.
    changes_before: Changes,
    /// The versions that it has ended, each with the one that replaced it.
    ended: Vec<(u64, Ended)>,
}

/// The end of a version.
#[derive(Debug, Clone, Copy)]
struct Ended {
    /// The version that replaced it.
    next: Option<Version>,
    /// The key stayed.
    key_kept: bool,
}

/// The variants that a story is played under.
#[derive(Debug, Clone, Copy)]
struct Variants {
    page_read: PageReadVariant,
    page_room: PageRoomVariant,
}

impl Variants {
    fn all() -> impl Iterator<Item = Self> {
        PageReadVariant::ALL.iter().flat_map(|&page_read| {
            PageRoomVariant::ALL
                .iter()
                .map(move |&page_room| Self { page_read, page_room })
        })
    }
}

/// The database and the model of it.
struct Story<'a> {
    dir: &'a Path,
    variants: Variants,
    /// Nothing between a crash and the next start.
    open: Option<Arc<Storage>>,
    rel: RelId,
    sessions: Vec<Session>,
    random: StdRng,
    /// Bytes that each row has in addition to its two numbers.
    padding: usize,
    committed: Rows,
    /// The versions that a committed transaction has ended, each with the one that replaced it.
    ended: HashMap<u64, Ended>,
    /// The session whose running transaction has changed the row or locked it alone, and the strength.
    holders: HashMap<u64, (usize, RowLockMode)>,
    /// The sessions whose running transactions share the row.
    sharers: HashMap<u64, HashMap<usize, RowLockMode>>,
    rows_made: u64,
    versions_made: u64,
    versions_removed: u64,
}

fn open(dir: &Path, Variants { page_read, page_room }: Variants) -> (Arc<Storage>, Vec<Session>) {
    let mut options = chosen::small_database(SESSIONS as u32);
    // The model shares rows.
    options.locks.row_locks = RowLocksVariant::Shared;
    options.pool.page_read = page_read;
    options.page_room = page_room;
    let (storage, _) = Storage::open(dir, options).unwrap();
    let session = |_| Session {
        proc: storage.proc_array.attach().unwrap(),
        transaction: None,
    };
    let sessions = (0..SESSIONS).map(session).collect();
    (storage, sessions)
}

fn decode(row: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap());
    (number(0), number(8))
}

impl Story<'_> {
    fn storage(&self) -> &Storage {
        self.open.as_ref().unwrap()
    }

    fn heap(&self) -> Heap {
        Heap::new(self.rel.0)
    }

    fn transaction(&self, session: usize) -> &Transaction {
        self.sessions[session].transaction.as_ref().unwrap()
    }

    fn transaction_mut(&mut self, session: usize) -> &mut Transaction {
        self.sessions[session].transaction.as_mut().unwrap()
    }

    fn context(&self, session: usize, command: u32) -> TxnContext<'_> {
        let transaction = self.transaction(session);
        TxnContext {
            storage: self.storage(),
            proc: self.sessions[session].proc,
            xid: transaction.xid,
            command,
            reader: Reader::of_no_answer(&transaction.snapshot),
            changes: None,
        }
    }

    /// The session is in a transaction after this.
    fn begin(&mut self, session: usize) {
        if self.sessions[session].transaction.is_none() {
            let mut snapshot = Snapshot::default();
            let proc = self.sessions[session].proc;
            self.storage().proc_array.snapshot(proc, &mut snapshot);
            self.sessions[session].transaction = Some(Transaction {
                xid: None,
                command: 0,
                snapshot,
                committed: self.committed.clone(),
                changes: Changes::new(),
                changes_before: Changes::new(),
                ended: Vec::new(),
            });
        }
    }

    /// Takes the new snapshot of a statement under READ COMMITTED.
    fn renew_snapshot(&mut self, session: usize) {
        let Session { proc, transaction } = &mut self.sessions[session];
        let (Some(storage), Some(transaction)) = (&self.open, transaction) else {
            unreachable!("the session is in a transaction")
        };
        storage.proc_array.snapshot(*proc, &mut transaction.snapshot);
        transaction.committed = self.committed.clone();
    }

    /// Begins a command that changes rows.
    fn begin_command(&mut self, session: usize) -> u32 {
        let xid = self.transaction(session).xid;
        let xid = xid.unwrap_or_else(|| self.storage().assign_xid(self.sessions[session].proc).unwrap());
        let transaction = self.transaction_mut(session);
        transaction.xid = Some(xid);
        transaction.command += 1;
        transaction.changes_before = transaction.changes.clone();
        transaction.command
    }

    fn row(&mut self, row: u64) -> Vec<u8> {
        self.versions_made += 1;
        let mut bytes = row.to_le_bytes().to_vec();
        bytes.extend(self.versions_made.to_le_bytes());
        bytes.resize(16 + self.padding, b'p');
        bytes
    }

    fn insert(&mut self, session: usize) {
        let command = self.begin_command(session);
        self.rows_made += 1;
        let row = self.rows_made;
        let bytes = self.row(row);
        let tid = self
            .heap()
            .insert(&self.context(session, command), &bytes)
            .unwrap();
        let number = self.versions_made;
        let made = Some(Version { number, tid });
        self.transaction_mut(session).changes.insert(row, made);
        self.hold(row, session, RowLockMode::Update);
        assert_eq!(self.conflict(session, command, tid), Conflict::SelfModified);
    }

    /// The session has the row alone.
    fn hold(&mut self, row: u64, session: usize, mode: RowLockMode) {
        let held = self.holders.entry(row).or_insert((session, mode));
        assert_eq!(held.0, session, "two sessions have row {row}");
        held.1 = held.1.max(mode);
        assert_eq!(self.conflicting_sharers(row, session, mode), []);
    }

    /// The transactions of other sessions that share a row and keep this one from it.
    fn conflicting_sharers(&self, row: u64, session: usize, mode: RowLockMode) -> Vec<Xid> {
        let sharers = self.sharers.get(&row).into_iter().flatten();
        sharers
            .filter(|(other, held)| **other != session && held.conflicts_with(mode))
            .map(|(other, _)| self.transaction(*other).xid.unwrap())
            .collect()
    }

    /// A wait that the heap asks for.
    fn wait(&self, row: u64, session: usize, mode: RowLockMode, other: InTheWay) -> Conflict {
        let shares = self
            .sharers
            .get(&row)
            .is_some_and(|sharers| sharers.contains_key(&session));
        let alone = self.holders.get(&row).map(|(holder, _)| *holder);
        if alone != Some(session) {
            assert_eq!(other.is_holder, shares, "row {row}");
        }
        let is_alone = alone.is_some_and(|alone| self.transaction(alone).xid == Some(other.xid));
        if !is_alone && self.conflicting_sharers(row, session, mode).contains(&other.xid) {
            return Conflict::Sharer;
        }
        Conflict::Wait(other.xid)
    }

    /// The conflict of a change of the version at `tid`.
    fn conflict(&self, session: usize, command: u32, tid: Tid) -> Conflict {
        let context = self.context(session, command);
        match self
            .heap()
            .version(&context, tid, RowLockMode::Update, |_| ())
            .unwrap()
        {
            VersionOutcome::NoConflict(()) => Conflict::None,
            VersionOutcome::SelfModified => Conflict::SelfModified,
            VersionOutcome::Wait(other) => Conflict::Wait(other.xid),
            VersionOutcome::Deleted => Conflict::Deleted,
            VersionOutcome::Changed { latest } => Conflict::Changed(latest),
        }
    }

    /// A row that the session sees.
    fn choose(&mut self, session: usize) -> Option<(u64, Version)> {
        let transaction = self.transaction(session);
        let seen = with_changes(&transaction.committed, &transaction.changes);
        if seen.is_empty() {
            return None;
        }
        let at = self.random.random_range(0..seen.len());
        seen.iter().nth(at).map(|(&row, &version)| (row, version))
    }

    /// The conflict of a change of a version, or of a lock in this strength, in the model; the transactions that share the row left
    /// out.
    fn expected_alone(&self, session: usize, (row, version): (u64, Version), mode: RowLockMode) -> Conflict {
        let mut newest = version;
        while let Some(ended) = self.ended.get(&newest.number) {
            match ended.next {
                Some(next) if mode == RowLockMode::KeyShare && ended.key_kept => newest = next,
                Some(next) => return Conflict::Changed(next.tid),
                None => return Conflict::Deleted,
            }
        }
        match self.holders.get(&row) {
            Some((holder, held)) if *holder != session && held.conflicts_with(mode) => {
                Conflict::Wait(self.transaction(*holder).xid.unwrap())
            }
            _ => Conflict::None,
        }
    }

    fn expected(&self, session: usize, seen: (u64, Version), mode: RowLockMode) -> Conflict {
        match self.expected_alone(session, seen, mode) {
            Conflict::None if !self.conflicting_sharers(seen.0, session, mode).is_empty() => Conflict::Sharer,
            found => found,
        }
    }

    fn update(&mut self, session: usize) {
        let command = self.begin_command(session);
        let Some(seen) = self.choose(session) else {
            return;
        };
        let (row, old) = seen;
        let changed = match self.random.random_range(0..10) {
            0..6 => ChangedColumns::NotIndexed,
            6..8 => ChangedColumns::Indexed,
            _ => ChangedColumns::Key,
        };
        let mode = changed.row_lock();
        let expected = self.expected(session, seen, mode);
        let alone = self.expected_alone(session, seen, RowLockMode::Update);
        assert_eq!(self.conflict(session, command, old.tid), alone);
        let bytes = self.row(row);
        let context = self.context(session, command);
        let outcome = self.heap().update(&context, old.tid, &bytes, changed);
        let found = match outcome.unwrap() {
            UpdateOutcome::Updated { tid, hot } => {
                let hot_allowed = changed == ChangedColumns::NotIndexed;
                assert!(hot_allowed || !hot, "a row whose key changes has no new root");
                let number = self.versions_made;
                let new = Version { number, tid };
                let had = self.holders.get(&row).map(|(_, held)| *held);
                let transaction = self.transaction_mut(session);
                transaction.changes.insert(row, Some(new));
                let ended = Ended {
                    next: Some(new),
                    key_kept: had.max(Some(mode)) == Some(RowLockMode::NoKeyUpdate),
                };
                transaction.ended.push((old.number, ended));
                self.hold(row, session, mode);
                assert_eq!(self.conflict(session, command, old.tid), Conflict::SelfModified);
                assert_eq!(self.conflict(session, command + 1, tid), Conflict::None);
                Conflict::None
            }
            UpdateOutcome::SelfModified => Conflict::SelfModified,
            UpdateOutcome::Wait(other) => self.wait(row, session, mode, other),
            UpdateOutcome::Deleted => Conflict::Deleted,
            UpdateOutcome::Changed { latest } => Conflict::Changed(latest),
        };
        if found != Conflict::None {
            self.versions_made -= 1;
        }
        assert_eq!(found, expected);
    }

    fn delete(&mut self, session: usize) {
        let command = self.begin_command(session);
        let Some(seen) = self.choose(session) else {
            return;
        };
        let (row, old) = seen;
        let mode = RowLockMode::Update;
        let expected = self.expected(session, seen, mode);
        let outcome = self.heap().delete(&self.context(session, command), old.tid);
        let found = match outcome.unwrap() {
            DeleteOutcome::Deleted => {
                let transaction = self.transaction_mut(session);
                transaction.changes.insert(row, None);
                let ended = Ended {
                    next: None,
                    key_kept: false,
                };
                transaction.ended.push((old.number, ended));
                self.hold(row, session, mode);
                assert_eq!(self.conflict(session, command, old.tid), Conflict::SelfModified);
                Conflict::None
            }
            DeleteOutcome::SelfModified => Conflict::SelfModified,
            DeleteOutcome::Wait(other) => self.wait(row, session, mode, other),
            DeleteOutcome::Gone => Conflict::Deleted,
            DeleteOutcome::Changed { latest } => Conflict::Changed(latest),
        };
        assert_eq!(found, expected);
    }

    fn lock(&mut self, session: usize) {
        let command = self.begin_command(session);
        let Some(seen) = self.choose(session) else {
            return;
        };
        let (row, version) = seen;
        let mode = RowLockMode::ALL[self.random.random_range(0..4)];
        let expected = self.expected(session, seen, mode);
        // Sharers that wait for no other are the first in the queue.
        let outcome = self
            .heap()
            .lock_row(&self.context(session, command), version.tid, mode, true);
        let found = match outcome.unwrap() {
            LockOutcome::Locked if mode.is_shared() => {
                let held = self
                    .sharers
                    .entry(row)
                    .or_default()
                    .entry(session)
                    .or_insert(mode);
                *held = mode.max(*held);
                Conflict::None
            }
            LockOutcome::Locked => {
                self.hold(row, session, mode);
                assert_eq!(self.conflict(session, command, version.tid), Conflict::None);
                Conflict::None
            }
            LockOutcome::Queue => unreachable!("the session is the first in the queue"),
            LockOutcome::SelfModified => Conflict::SelfModified,
            LockOutcome::Wait(other) => self.wait(row, session, mode, other),
            LockOutcome::Deleted => Conflict::Deleted,
            LockOutcome::Changed { latest } => Conflict::Changed(latest),
        };
        assert_eq!(found, expected);
    }

    fn end(&mut self, session: usize, commits: bool) {
        let Some(transaction) = self.sessions[session].transaction.take() else {
            return;
        };
        let proc = self.sessions[session].proc;
        if let Some(xid) = transaction.xid {
            if commits {
                let synchronous = self.random.random_bool(0.5);
                self.storage().commit(proc, xid, synchronous).unwrap();
                self.committed = with_changes(&self.committed, &transaction.changes);
                self.ended.extend(transaction.ended);
            } else {
                self.storage().abort(proc, xid).unwrap();
            }
        }
        self.storage().proc_array.clear_xmin(proc);
        self.holders.retain(|_, (holder, _)| *holder != session);
        self.sharers
            .values_mut()
            .for_each(|sharers| sharers.retain(|sharer, _| *sharer != session));
        if self.sessions.iter().all(|session| session.transaction.is_none()) {
            assert_eq!(self.storage().locks.rows().held_rows(), 0);
        }
    }

    fn vacuum(&mut self) -> VacuumStats {
        let horizon = self.storage().proc_array.horizon();
        let stats = vacuum(self.storage(), self.rel, &[], horizon, &|| false).unwrap();
        assert_eq!(stats.live_rows, self.committed.len() as u64);
        self.versions_removed += stats.removed_versions;
        stats
    }

    /// The process dies, with the whole log in the kernel.
    fn crash(&mut self) {
        self.storage().wal.flush(self.storage().wal.reserved());
        self.storage().stop_threads();
        self.open = None;
        self.holders.clear();
        self.sharers.clear();
        let (storage, sessions) = open(self.dir, self.variants);
        (self.open, self.sessions) = (Some(storage), sessions);
    }

    /// The session sees its snapshot with its own changes, those of the last command only from the next one on.
    fn look(&self, session: usize) {
        let Some(transaction) = &self.sessions[session].transaction else {
            return;
        };
        let command = transaction.command;
        for (command, changes) in [
            (command, &transaction.changes_before),
            (command + 1, &transaction.changes),
        ] {
            let context = self.context(session, command);
            let (mut found, mut roots) = (Rows::new(), Vec::new());
            let mut scan = self.heap().scan(&context).unwrap();
            let read = |tid: Tid, bytes: &[u8]| (tid, decode(bytes));
            while let Some((tid, (row, number))) = scan.next(&context, read).unwrap() {
                let twice = found.insert(row, Version { number, tid });
                assert_eq!(twice, None, "row {row} is seen twice");
            }
            assert_eq!(found, with_changes(&transaction.committed, changes));
            let mut scan = self.heap().scan(&context).unwrap();
            while let Some((root, (row, _))) = scan.next_with_root(&context, read).unwrap() {
                roots.push((row, root));
            }
            assert_eq!(roots.len(), found.len());
            for (row, root) in roots {
                let fetched = self.heap().fetch(&context, root, read).unwrap();
                let Version { number, tid } = found[&row];
                assert_eq!(fetched, Some((tid, (row, number))), "from root {root:?}");
            }
        }
    }

    fn step(&mut self) {
        let session = self.random.random_range(0..SESSIONS);
        self.begin(session);
        match self.random.random_range(0..100) {
            0..22 => self.insert(session),
            22..46 => self.update(session),
            46..52 => self.delete(session),
            52..67 => self.lock(session),
            67..74 => self.renew_snapshot(session),
            74..84 => self.end(session, true),
            84..90 => self.end(session, false),
            90..95 => {
                self.vacuum();
            }
            95 => self.crash(),
            _ => {}
        }
        self.look(session);
    }
}

/// Plays a story of `STEPS` steps; at its end no version is left that no snapshot sees.
fn play(seed: u64, padding: usize, variants: Variants) {
    eprintln!("seed {seed}, {padding} bytes, {variants:?}");
    let dir = tempfile::tempdir().unwrap();
    let (storage, sessions) = open(dir.path(), variants);
    let rel = storage.create_rel().unwrap();
    let mut story = Story {
        dir: dir.path(),
        variants,
        open: Some(storage),
        rel,
        sessions,
        random: StdRng::seed_from_u64(seed),
        padding,
        committed: Rows::new(),
        ended: HashMap::new(),
        holders: HashMap::new(),
        sharers: HashMap::new(),
        rows_made: 0,
        versions_made: 0,
        versions_removed: 0,
    };
    for _ in 0..STEPS {
        story.step();
    }
    for session in 0..SESSIONS {
        story.end(session, false);
    }
    // Under `lock_release = early` a version stays until the commit that ended it is durable.
    let storage = story.storage();
    storage.wal.flush(storage.wal.reserved());
    story.vacuum();
    assert_eq!(story.vacuum().removed_versions, 0);
    story.begin(0);
    story.look(0);
    // Only a page without room is pruned by an update, which does not count what it removes.
    if padding == 0 {
        let left = story.versions_made - story.versions_removed;
        assert_eq!(left, story.committed.len() as u64);
    }
    story.storage().stop_threads();
}

#[test]
fn sessions_see_what_the_model_says() {
    for seed in 0..8 {
        for variants in Variants::all() {
            play(seed, 0, variants);
        }
    }
}

/// As above, with four rows on a page: new versions go to other pages, and full pages are pruned.
#[test]
fn sessions_see_what_the_model_says_on_full_pages() {
    for seed in 100..108 {
        for variants in Variants::all() {
            play(seed, 1_900, variants);
        }
    }
}
