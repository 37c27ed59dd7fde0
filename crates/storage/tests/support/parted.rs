//! A directory and a server whose logs part, for tests of rewinding.
//!
//! Alice's server A is followed by B, and some stories have C, which follows A too. B is promoted while A goes on; the two
//! change the same pages and others, add pages, make relations of the same number, and drop some. A transaction that ran at
//! the fork commits on A.

#![allow(dead_code, reason = "each suite uses its part")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_storage::backup::Backup;
use clearway_storage::heap::{Heap, TxnContext};
use clearway_storage::retention::RetentionLimits;
use clearway_storage::rewind::{
    Parting, Rewind, RewindDirectory, RewindSource, RewindSummary, SourceEnd, SourceRelation, SourceStart,
    status_sum,
};
use clearway_storage::{
    Lsn, PAGE_SIZE, PageId, Reader, RelId, Result, Storage, StorageError, StorageOptions,
};
use clearway_txn::{ProcId, Snapshot, Status, Xid};

use crate::chosen;
use crate::crash::crash;
use crate::recording_disk::{Frozen, Random, RecordingDisk};
use crate::standby_copy::{NUMBER, Observer, Sender, assert_same_contents, numbered_pages};

pub const DIRECTORY: &str = "/disk/data";
/// The session that copies.
const PROCESS_ID: u32 = 77;

pub fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

pub fn options() -> StorageOptions {
    StorageOptions {
        buffer_bytes: 64 * PAGE_SIZE,
        sessions_max: 16,
        checkpoint_timeout: Duration::from_secs(3600),
        // No slot holds the log here.
        log_retention: RetentionLimits {
            keep_bytes: 1 << 30,
            ..RetentionLimits::default()
        },
        ..chosen::options()
    }
}

pub fn open(disk: &RecordingDisk) -> Result<Arc<Storage>> {
    Storage::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options()).map(|(storage, _)| storage)
}

pub fn open_standby(disk: &RecordingDisk) -> Arc<Storage> {
    let (storage, _) = Storage::open_standby_on(
        Arc::new(disk.clone()),
        Path::new(DIRECTORY),
        options(),
        chosen::standby(),
    )
    .unwrap();
    storage.start_replay(Arc::new(Observer::default())).unwrap();
    storage
}

/// A server in the same process.
pub struct LocalSource {
    storage: Arc<Storage>,
    backup: Option<Backup>,
}

impl LocalSource {
    pub fn new(storage: &Arc<Storage>) -> Self {
        Self {
            storage: Arc::clone(storage),
            backup: None,
        }
    }

    fn backup(&self) -> &Backup {
        self.backup.as_ref().unwrap()
    }
}

impl RewindSource for LocalSource {
    type Error = StorageError;

    fn begin(&mut self, log_from: Lsn) -> Result<SourceStart> {
        let backup = Backup::begin_for_rewind(&self.storage, PROCESS_ID, log_from)?;
        let backup = self.backup.insert(backup);
        Ok(SourceStart {
            redo: backup.start(),
            checkpoint_end: backup.checkpoint_end(),
            next_xid: backup.next_xid(),
        })
    }

    fn relations(&mut self) -> Result<Vec<SourceRelation>> {
        let mut relations = Vec::new();
        for rel in self.backup().relations()? {
            let length = self.backup().open_relation(rel)?.unwrap().length;
            let blocks = (length / PAGE_SIZE as u64) as u32;
            relations.push(SourceRelation { rel, blocks });
        }
        Ok(relations)
    }

    fn pages(&mut self, rel: RelId, blocks: &[u32]) -> Result<Option<Vec<u8>>> {
        let Some(copy) = self.backup().open_relation(rel)? else {
            return Ok(None);
        };
        let mut bytes = vec![0; blocks.len() * PAGE_SIZE];
        for (&block, page) in blocks.iter().zip(bytes.chunks_exact_mut(PAGE_SIZE)) {
            copy.read_at(page, u64::from(block) * PAGE_SIZE as u64)?;
        }
        Ok(Some(bytes))
    }

    fn status_sums(&mut self, first: u32, count: u32) -> Result<Vec<u32>> {
        let blocks: Vec<u32> = (first..first + count).collect();
        let pages = self.pages(RelId::COMMIT_LOG, &blocks)?.unwrap();
        Ok(pages.chunks_exact(PAGE_SIZE).map(status_sum).collect())
    }

    fn log(&mut self, position: Lsn, bytes: &mut [u8]) -> Result<()> {
        let end = Lsn(position.0 + bytes.len() as u64);
        assert!(end <= self.storage.durable_log_end());
        self.backup().read_log(position, end, bytes)
    }

    fn finish(&mut self) -> Result<SourceEnd> {
        let end = self.backup().finish()?;
        Ok(SourceEnd {
            control: end.control,
            position: end.position,
            history_files: self.backup().history_files()?,
        })
    }
}

/// A transaction that writes `number` to each of these pages.
pub fn commit(storage: &Storage, proc: ProcId, pages: &[PageId], number: u64) -> Xid {
    let xid = storage.assign_xid(proc).unwrap();
    for &page in pages {
        let mut change = storage.begin_change(xid).unwrap();
        let mut page = storage.pin(page).unwrap().into_exclusive();
        change.write(&mut page, NUMBER, &number.to_le_bytes());
        change.finish().unwrap();
    }
    storage.commit(proc, xid, true).unwrap();
    xid
}

pub fn insert(storage: &Storage, proc: ProcId, xid: Xid, rel: RelId) {
    let mut snapshot = Snapshot::default();
    storage.proc_array.snapshot(proc, &mut snapshot);
    let context = TxnContext {
        storage,
        proc,
        xid: Some(xid),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    Heap::new(rel.0).insert(&context, b"Alice's row").unwrap();
}

/// Number of rows that a new snapshot sees; it leaves hints.
pub fn rows(storage: &Storage, rel: RelId) -> usize {
    let proc = storage.proc_array.attach().unwrap();
    let mut snapshot = Snapshot::default();
    storage.take_snapshot(proc, &mut snapshot);
    let context = TxnContext {
        storage,
        proc,
        xid: None,
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    let mut scan = Heap::new(rel.0).scan(&context).unwrap();
    let mut count = 0;
    while scan.next(&context, |_, _| ()).unwrap().is_some() {
        count += 1;
    }
    storage.proc_array.clear_xmin(proc);
    storage.proc_array.detach(proc);
    count
}

/// The relations before the fork.
#[derive(Debug, Clone, Copy)]
pub struct Relations {
    many_pages: RelId,
    pub dropped_here: RelId,
    dropped_there: RelId,
    /// With a row of the transaction that runs at the fork.
    rows: RelId,
}

/// Changes that a side makes by itself.
pub fn go_on(storage: &Arc<Storage>, random: &mut Random, relations: Relations, dropped: Option<RelId>) {
    let proc = storage.proc_array.attach().unwrap();
    let rel = relations.many_pages;
    let page = |random: &mut Random, bound| PageId {
        rel,
        block: random.below(bound) as u32,
    };
    for _ in 0..1 + random.below(4) {
        let pages = [page(random, 8), page(random, 200)];
        commit(storage, proc, &pages, random.next());
    }
    // Pages that are added, with a change or without.
    for with_change in [false, true, false] {
        let added = storage.extend(rel).unwrap();
        if with_change {
            let mut change = storage.begin_change(Xid::INVALID).unwrap();
            let mut added = added.into_exclusive();
            change.init_page(&mut added, clearway_storage::PageKind(77), 8);
            change.write(&mut added, NUMBER, &random.next().to_le_bytes());
            change.finish().unwrap();
        }
    }
    let made = numbered_pages(storage, 1 + random.below(4) as u32);
    commit(storage, proc, &[PageId { rel: made, block: 0 }], random.next());
    // Such pages are zeros in a file of the same number that was only allocated.
    for _ in 0..4 {
        storage.extend(made).unwrap();
    }
    if let Some(rel) = dropped {
        storage.drop_rel(rel).unwrap();
    }
    // One that rolls back.
    let aborted = storage.assign_xid(proc).unwrap();
    storage.abort(proc, aborted).unwrap();
    storage.proc_array.detach(proc);
}

/// The directory that is rewound, and the server that it is rewound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// A's directory, to B.
    FormerPrimary,
    /// B's directory, to A. The transaction that ran at the fork has ended on A.
    Promoted,
    /// As above; it still runs on A.
    PromotedAndOneRuns,
    /// C's directory, to B; both were promoted at the same position.
    BothPromoted,
    /// C's directory, to B. C was not promoted, and had received more than B.
    StandbyAhead,
    /// As above; C was promoted later.
    PromotedLater,
}

/// The end of the server whose directory is rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Killed, with its last checkpoint before the fork if it has made none since.
    Killed,
    /// Killed behind a checkpoint behind the fork.
    KilledLater,
    /// Stopped in order.
    Stopped,
    /// Killed, opened again, and stopped in order.
    Recovered,
}

/// Both sides of a fork.
pub struct Parted {
    /// The directory, which no server has open.
    pub directory: RecordingDisk,
    /// The server.
    pub server: Arc<Storage>,
    pub relations: Relations,
    pub fork: Lsn,
    /// Ran at the fork, and committed on A, or does so later.
    doubtful: Xid,
    /// Its session, if it still runs.
    running: Option<ProcId>,
    pub random: Random,
}

/// A server of the story, and its disk.
type Server = (RecordingDisk, Arc<Storage>);

fn follow(image: &Frozen, a: &Arc<Storage>) -> (Server, Sender) {
    let disk = image.after_kill();
    let storage = open_standby(&disk);
    let sender = Sender::new(a, &storage);
    ((disk, storage), sender)
}

/// Promotes it. A session reads when the timeline has begun, before the checkpoint writes a page: one that was changed before
/// the fork has a hint of how its transaction has ended then. `found` rows are seen.
fn promote((disk, storage): &Server, relations: Relations, found: usize) -> Lsn {
    let reader = Arc::clone(storage);
    let was_read = AtomicBool::new(false);
    let read = move |_| {
        if reader.timeline() == 2 && !was_read.swap(true, Ordering::Relaxed) {
            assert_eq!(rows(&reader, relations.rows), found);
        }
    };
    disk.cut_before(0..1_000, Some(Arc::new(read)));
    let (timeline, fork) = storage.promote("a test").unwrap();
    disk.cut_before([], None);
    disk.take_frozen();
    assert_eq!(timeline, 2);
    fork
}

/// The server goes on by itself, and ends.
fn go_on_to((disk, storage): Server, end: End, random: &mut Random, relations: Relations) -> RecordingDisk {
    let dropped = Some(relations.dropped_here);
    go_on(&storage, random, relations, dropped);
    match end {
        End::Killed | End::Recovered => crash(storage),
        End::KilledLater => {
            storage.checkpoint().unwrap();
            go_on(&storage, random, relations, dropped);
            crash(storage);
        }
        End::Stopped => {
            storage.shutdown().unwrap();
            drop(storage);
        }
    }
    if end == End::Recovered {
        let storage = open(&disk).unwrap();
        go_on(&storage, random, relations, dropped);
        storage.shutdown().unwrap();
        drop(storage);
    }
    disk
}

/// The story up to the rewind.
pub fn parted(seed: u64, sides: Sides, end: End) -> Parted {
    let mut random = Random(seed);
    let disk = RecordingDisk::with_directory(Path::new("/disk"));
    let a = open(&disk).unwrap();
    let relations = Relations {
        many_pages: numbered_pages(&a, 200),
        dropped_here: numbered_pages(&a, 3),
        dropped_there: numbered_pages(&a, 3),
        rows: a.create_rel().unwrap(),
    };
    a.checkpoint().unwrap();
    let image = disk.freeze();
    let (b, mut to_b) = follow(&image, &a);
    let has_c = matches!(
        sides,
        Sides::BothPromoted | Sides::StandbyAhead | Sides::PromotedLater
    );
    let mut c = has_c.then(|| follow(&image, &a));
    let proc = a.proc_array.attach().unwrap();
    for _ in 0..3 {
        let block = random.below(200) as u32;
        let rel = relations.many_pages;
        commit(&a, proc, &[PageId { rel, block }], random.next());
    }
    let doubtful = a.assign_xid(proc).unwrap();
    insert(&a, proc, doubtful, relations.rows);
    if sides == Sides::StandbyAhead {
        // A restartpoint at C, made when it has replayed more, is named after this one.
        a.checkpoint().unwrap();
    }
    to_b.catch_up();
    drop(to_b);
    if let Some((_, to_c)) = &mut c {
        to_c.catch_up();
    }
    let fork = promote(&b, relations, 0);
    let runs = sides == Sides::PromotedAndOneRuns;
    if !runs {
        a.commit(proc, doubtful, true).unwrap();
        a.proc_array.detach(proc);
    }
    let (directory, server) = match sides {
        Sides::FormerPrimary => {
            assert_eq!(rows(&a, relations.rows), 1);
            let directory = go_on_to((disk, a), end, &mut random, relations);
            (directory, b.1)
        }
        Sides::Promoted | Sides::PromotedAndOneRuns => {
            assert_eq!(rows(&b.1, relations.rows), 0);
            let directory = go_on_to(b, end, &mut random, relations);
            (directory, a)
        }
        Sides::BothPromoted | Sides::StandbyAhead | Sides::PromotedLater => {
            let (c, mut to_c) = c.expect("it follows A");
            if sides != Sides::BothPromoted {
                go_on(&a, &mut random, relations, Some(relations.dropped_here));
                to_c.catch_up();
                assert_eq!(rows(&c.1, relations.rows), 1);
            }
            drop(to_c);
            crash(a);
            (of_c(c, sides, end, &mut random, relations), b.1)
        }
    };
    go_on(&server, &mut random, relations, Some(relations.dropped_there));
    Parted {
        directory,
        server,
        relations,
        fork,
        doubtful,
        running: runs.then_some(proc),
        random,
    }
}

/// The end of C, whose directory is rewound.
fn of_c(c: Server, sides: Sides, end: End, random: &mut Random, relations: Relations) -> RecordingDisk {
    if sides != Sides::StandbyAhead {
        promote(&c, relations, usize::from(sides == Sides::PromotedLater));
        return go_on_to(c, end, random, relations);
    }
    match end {
        End::Killed => crash(c.1),
        End::Stopped => c.1.shutdown().unwrap(),
        End::KilledLater | End::Recovered => panic!("a standby does not go on by itself"),
    }
    c.0
}

impl Parted {
    pub fn opened(&self, disk: &RecordingDisk) -> RewindDirectory {
        Rewind::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), true).unwrap()
    }

    /// Rewinds the directory on `disk`; `None` if there was nothing to fetch any more.
    pub fn rewind(&self, disk: &RecordingDisk) -> Option<RewindSummary> {
        let RewindDirectory::Opened(directory) = self.opened(disk) else {
            return None;
        };
        let history = self.server.history();
        let parting = directory
            .parting(&history, self.server.durable_log_end())
            .unwrap();
        let Parting::At(fork) = parting else {
            return None;
        };
        assert_eq!(fork, self.fork);
        let mut source = LocalSource::new(&self.server);
        let plan = directory.plan(&mut source, &history, fork).unwrap();
        Some(directory.run(&mut source, &plan, |_| ()).unwrap())
    }

    /// The transaction that ran at the fork ends, if it still runs.
    pub fn commit_doubtful(&mut self) {
        if let Some(proc) = self.running.take() {
            self.server.commit(proc, self.doubtful, true).unwrap();
            self.server.proc_array.detach(proc);
        }
    }

    /// Opens the directory on `disk` as a standby, lets it catch up, and compares.
    pub fn check(&self, disk: &RecordingDisk) {
        let refused = open(disk).unwrap_err();
        assert!(matches!(refused, StorageError::IsStandby { .. }), "{refused}");
        let standby = open_standby(disk);
        let mut sender = Sender::new(&self.server, &standby);
        sender.catch_up();
        drop(sender);
        assert_eq!(standby.timeline(), self.server.timeline());
        // Compared before each stream.
        let end = standby.durable_log_end();
        let ours = standby.log_digest(Lsn(0), end).unwrap();
        assert_eq!(ours, self.server.log_digest(ours.start, end).unwrap());
        let committed = |storage: &Storage, xid| storage.status(xid).unwrap() == Status::Committed;
        for xid in (2..self.server.next_xid().0).map(Xid) {
            assert_eq!(committed(&standby, xid), committed(&self.server, xid), "{xid:?}");
        }
        let is_there = committed(&self.server, self.doubtful);
        for storage in [&standby, &self.server] {
            assert_eq!(rows(storage, self.relations.rows), usize::from(is_there));
        }
        // Both have the hints of this.
        assert_same_contents(&standby, &self.server);
        let refused = Backup::begin_for_rewind(&standby, PROCESS_ID, self.fork).unwrap_err();
        assert!(matches!(refused, StorageError::Standby { .. }), "{refused}");
        crash(standby);
        assert_eq!(disk.violations(), Vec::<String>::new());
    }

    pub fn close(self) {
        crash(self.server);
    }
}
