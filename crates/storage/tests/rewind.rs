//! A former primary's directory is rewound to the server that took over, and is what a base backup of that server would be;
//! also after power cuts and kills at any step.
//!
//! Alice's server A is followed by B. B is promoted while A goes on; both change the same pages and others, add pages, make
//! relations of the same number, and drop some. A transaction that ran at the fork commits on A, and is read there.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/rewind.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::path::Path;
use std::sync::Arc;
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
use crash::crash;
use recording_disk::{Random, RecordingDisk};
use standby_copy::{NUMBER, Observer, Sender, assert_same_contents, numbered_pages};

const DIRECTORY: &str = "/disk/data";
/// The session that copies.
const PROCESS_ID: u32 = 77;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

fn options() -> StorageOptions {
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

fn open(disk: &RecordingDisk) -> Result<Arc<Storage>> {
    Storage::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options()).map(|(storage, _)| storage)
}

fn open_standby(disk: &RecordingDisk) -> Arc<Storage> {
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
struct LocalSource {
    storage: Arc<Storage>,
    backup: Option<Backup>,
    /// Numbers of pages that were asked for.
    asked: u64,
}

impl LocalSource {
    fn new(storage: &Arc<Storage>) -> Self {
        Self {
            storage: Arc::clone(storage),
            backup: None,
            asked: 0,
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
        self.asked += blocks.len() as u64;
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
fn commit(storage: &Storage, proc: ProcId, pages: &[PageId], number: u64) -> Xid {
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

fn insert(storage: &Storage, proc: ProcId, xid: Xid, rel: RelId) {
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
fn rows(storage: &Storage, rel: RelId) -> usize {
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
struct Relations {
    many_pages: RelId,
    dropped_on_a: RelId,
    dropped_on_b: RelId,
    /// With a row of the transaction that runs at the fork.
    rows: RelId,
}

/// Changes that a side makes by itself.
fn go_on(storage: &Arc<Storage>, random: &mut Random, relations: Relations, dropped: Option<RelId>) {
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
    if let Some(rel) = dropped {
        storage.drop_rel(rel).unwrap();
    }
    // One that rolls back.
    let aborted = storage.assign_xid(proc).unwrap();
    storage.abort(proc, aborted).unwrap();
    storage.proc_array.detach(proc);
}

/// Both sides of a fork.
struct Parted {
    /// The former primary's directory, which no server has open.
    a: RecordingDisk,
    /// The server that took over.
    b: Arc<Storage>,
    relations: Relations,
    fork: Lsn,
    /// Ran at the fork, and committed on A.
    doubtful: Xid,
    random: Random,
}

/// The end of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Killed, with its last checkpoint before the fork.
    Killed,
    /// Killed behind a checkpoint behind the fork.
    KilledLater,
    /// Stopped in order.
    Stopped,
    /// Killed, opened again, and stopped in order.
    Recovered,
}

fn parted(seed: u64, end: End) -> Parted {
    let mut random = Random(seed);
    let disk = RecordingDisk::with_directory(Path::new("/disk"));
    let a = open(&disk).unwrap();
    let relations = Relations {
        many_pages: numbered_pages(&a, 200),
        dropped_on_a: numbered_pages(&a, 3),
        dropped_on_b: numbered_pages(&a, 3),
        rows: a.create_rel().unwrap(),
    };
    a.checkpoint().unwrap();
    let b_disk = disk.freeze().after_kill();
    let b = open_standby(&b_disk);
    let mut sender = Sender::new(&a, &b);
    let proc = a.proc_array.attach().unwrap();
    for _ in 0..3 {
        let block = random.below(200) as u32;
        let rel = relations.many_pages;
        commit(&a, proc, &[PageId { rel, block }], random.next());
    }
    let doubtful = a.assign_xid(proc).unwrap();
    insert(&a, proc, doubtful, relations.rows);
    sender.catch_up();
    drop(sender);
    let (timeline, fork) = b.promote("a test").unwrap();
    assert_eq!(timeline, 2);

    a.commit(proc, doubtful, true).unwrap();
    a.proc_array.detach(proc);
    assert_eq!(rows(&a, relations.rows), 1);
    go_on(&a, &mut random, relations, Some(relations.dropped_on_a));
    match end {
        End::Killed | End::Recovered => crash(a),
        End::KilledLater => {
            a.checkpoint().unwrap();
            go_on(&a, &mut random, relations, Some(relations.dropped_on_a));
            crash(a);
        }
        End::Stopped => {
            a.shutdown().unwrap();
            drop(a);
        }
    }
    if end == End::Recovered {
        let a = open(&disk).unwrap();
        go_on(&a, &mut random, relations, Some(relations.dropped_on_a));
        a.shutdown().unwrap();
        drop(a);
    }
    go_on(&b, &mut random, relations, Some(relations.dropped_on_b));
    Parted {
        a: disk,
        b,
        relations,
        fork,
        doubtful,
        random,
    }
}

impl Parted {
    fn directory(&self, disk: &RecordingDisk) -> RewindDirectory {
        Rewind::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), true).unwrap()
    }

    /// Rewinds the directory on `disk`; `None` if there was nothing to fetch any more.
    fn rewind(&self, disk: &RecordingDisk) -> Option<RewindSummary> {
        let RewindDirectory::Opened(directory) = self.directory(disk) else {
            return None;
        };
        let history = self.b.history();
        let parting = directory.parting(&history, self.b.durable_log_end()).unwrap();
        let Parting::At(fork) = parting else {
            return None;
        };
        assert_eq!(fork, self.fork);
        let mut source = LocalSource::new(&self.b);
        let plan = directory.plan(&mut source, &history, fork).unwrap();
        Some(directory.run(&mut source, &plan, |_| ()).unwrap())
    }

    /// Opens the directory on `disk` as a standby, lets it catch up, and compares.
    fn check(&self, disk: &RecordingDisk) {
        let refused = open(disk).unwrap_err();
        assert!(matches!(refused, StorageError::IsStandby { .. }), "{refused}");
        let standby = open_standby(disk);
        let mut sender = Sender::new(&self.b, &standby);
        sender.catch_up();
        drop(sender);
        assert_eq!(standby.timeline(), 2);
        // Compared before each stream.
        let end = standby.durable_log_end();
        let ours = standby.log_digest(Lsn(0), end).unwrap();
        assert_eq!(ours, self.b.log_digest(ours.start, end).unwrap());
        assert_same_contents(&standby, &self.b);
        for xid in (2..self.b.next_xid().0).map(Xid) {
            let committed = |storage: &Storage| storage.status(xid).unwrap() == Status::Committed;
            assert_eq!(committed(&standby), committed(&self.b), "{xid:?}");
        }
        assert_ne!(standby.status(self.doubtful).unwrap(), Status::Committed);
        assert_eq!(rows(&standby, self.relations.rows), 0);
        crash(standby);
        assert_eq!(disk.violations(), Vec::<String>::new());
    }

    fn close(self) {
        crash(self.b);
    }
}

const ENDS: [End; 4] = [End::Killed, End::KilledLater, End::Stopped, End::Recovered];

#[test]
fn a_rewound_directory_is_what_a_base_backup_is() {
    for (seed, end) in (variable("SEED", 7)..).zip(ENDS) {
        let mut parted = parted(seed, end);
        let before = parted.a.freeze().after_kill();
        // A dry run tells what is fetched, and changes nothing.
        let RewindDirectory::Opened(directory) = parted.directory(&before) else {
            panic!("{end:?}");
        };
        let history = parted.b.history();
        let mut source = LocalSource::new(&parted.b);
        let plan = directory.plan(&mut source, &history, parted.fork).unwrap();
        let planned = directory.look(&mut source, &plan).unwrap();
        drop((directory, source));
        open(&before).map(crash).unwrap();

        let summary = parted.rewind(&parted.a).unwrap();
        assert_eq!(summary.pages, planned.pages, "{end:?}");
        assert_eq!(summary.removed, planned.removed);
        assert!(summary.pages * 3 < summary.pages_total, "{end:?}: {summary:?}");
        assert!(summary.removed >= 1, "{summary:?}");
        let mut random = Random(seed);
        let relations = parted.relations;
        go_on(&parted.b, &mut random, relations, None);
        // It logs how many pages there are, those included that were added only.
        parted.b.checkpoint().unwrap();
        parted.check(&parted.a);
        parted.random = random;
        parted.close();
    }
}

/// The power is cut, or the process killed, before each operation of a rewind, while the server goes on. No server opens
/// what that leaves, until another rewind has ended.
#[test]
fn an_interrupted_rewind_is_started_again() {
    for (seed, end) in (variable("SEED", 7)..).zip([End::KilledLater, End::Stopped]) {
        let mut parted = parted(seed, end);
        let whole = parted.a.freeze().after_kill();
        whole.cut_before(0..100_000, None);
        parted.rewind(&whole).unwrap();
        let mut frozen: Vec<_> = whole.take_frozen().into_values().collect();
        assert!(frozen.len() > 100, "{} operations", frozen.len());
        frozen.push(whole.freeze());
        let mut random = parted.random.clone();
        let images = variable("IMAGES", 40);
        let (mut untouched, mut refused, mut complete) = (0, 0, 0);
        go_on(&parted.b, &mut random, parted.relations, None);
        parted.b.checkpoint().unwrap();
        for number in 0..images {
            // The last operations are those of the switch.
            let from_end = match number {
                0 => 1,
                number if number % 2 == 0 => 40,
                _ => frozen.len() as u64,
            };
            let state = &frozen[frozen.len() - 1 - random.below(from_end) as usize];
            let image = match random.below(3) {
                _ if number == 0 => state.after_kill(),
                0 => state.after_kill(),
                _ => state.random_image(&mut random),
            };
            match open(&image.freeze().after_kill()) {
                Ok(storage) => {
                    untouched += 1;
                    crash(storage);
                }
                Err(StorageError::NoDatabase { problem, .. }) => {
                    assert!(problem.contains("a rewind of it was not finished"), "{problem}");
                    refused += 1;
                }
                Err(StorageError::IsStandby { .. }) => complete += 1,
                Err(error) => panic!("{error}"),
            }
            parted.rewind(&image);
            parted.check(&image);
        }
        assert!(
            refused > images / 2 && complete > 0,
            "{untouched}, {refused}, {complete}"
        );
        parted.random = random;
        parted.close();
    }
}

/// Pages of one server and of another are not mixed: a rewind that was interrupted goes on with the same server only.
#[test]
fn an_interrupted_rewind_goes_on_with_the_same_server() {
    let parted = parted(variable("SEED", 7), End::Stopped);
    let disk = parted.a.freeze().after_kill();
    disk.cut_before([12], None);
    parted.rewind(&disk).unwrap();
    let interrupted = disk.take_frozen().into_values().next().unwrap().after_kill();
    let RewindDirectory::Opened(directory) = parted.directory(&interrupted) else {
        panic!("it was interrupted early");
    };
    assert!(directory.was_interrupted());
    let other = parted
        .b
        .history()
        .forked(3, parted.b.durable_log_end(), "another one");
    let error = directory.parting(&other, parted.b.durable_log_end()).unwrap_err();
    assert!(
        error.to_string().contains("an earlier rewind has fetched pages"),
        "{error}"
    );
    parted.close();
}

/// The log since the fork is kept on neither side for ever: then the error says what to do.
#[test]
fn log_that_is_gone_is_said() {
    let parted = parted(variable("SEED", 7), End::Stopped);
    let RewindDirectory::Opened(directory) = parted.directory(&parted.a) else {
        panic!("it was not interrupted");
    };
    let history = parted.b.history();
    let mut source = LocalSource::new(&parted.b);
    let error = directory.plan(&mut source, &history, Lsn(64)).unwrap_err();
    assert!(matches!(error, StorageError::NotRewindable { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("its log begins at") && said.contains("take a new base backup"),
        "{error}"
    );
    drop(directory);
    parted.close();
}
