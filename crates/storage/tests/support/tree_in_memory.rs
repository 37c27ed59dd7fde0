//! The pages and the log of a tree, in memory: the shipped pool with room for all pages, and a log of which
//! only positions are kept.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use clearway_machine::Shuttle;
use clearway_storage::btree::{BTree, RootHints, TreeShape, TreeStorage};
use clearway_storage::wal::RedoMoved;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{
    AtomicChange, BufferPool, BufferPoolOptions, ChangeLog, Findings, Lsn, PAGE_SIZE, PageDevice, PageId,
    PinnedPage, RacyPage, RelId, Result, StorageError,
};
use clearway_txn::Xid;
use shuttle::sync::Mutex;

/// The tree's relation.
pub const REL: RelId = RelId(20);

/// More than any test's tree has pages.
const FRAMES: usize = 96;

/// The relation's file, which grows and is neither read nor written. Plain words, which are no steps of the machine.
pub struct GrowingFile {
    blocks: AtomicU32,
    growing: Mutex<()>,
    /// Number of pages that there is room for before one is refused; below zero, once that has happened.
    room: AtomicI64,
}

impl PageDevice for GrowingFile {
    fn check_exists(&self, page: PageId) -> Result<()> {
        if page.block < self.blocks.load(Relaxed) {
            return Ok(());
        }
        Err(StorageError::NoSuchPage {
            rel: page.rel.0,
            block: page.block,
        })
    }

    fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()> {
        let _growing = self.growing.lock().unwrap();
        if self.room.fetch_sub(1, Relaxed) == 0 {
            return Err(StorageError::DiskFull {
                action: "extend",
                file: PathBuf::from("memory"),
            });
        }
        let block = self.blocks.load(Relaxed);
        enter(PageId { rel, block });
        self.blocks.store(block + 1, Relaxed);
        Ok(())
    }

    fn read(&self, page: PageId, _bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        unreachable!("page {} is in memory", page.block);
    }

    fn write(&self, page: PageId, _bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        unreachable!("page {} needs no other frame", page.block);
    }

    fn newest_early_commit(&self) -> Lsn {
        Lsn(0)
    }

    fn flush_log(&self, _upto: Lsn) {}
}

/// A log of which only positions are kept. Other suites explore the log of production.
#[derive(Debug, Default)]
pub struct Positions(AtomicU64);

impl ChangeLog for Positions {
    fn reserved(&self) -> Lsn {
        Lsn(self.0.load(Relaxed))
    }

    fn redo(&self) -> Lsn {
        Lsn(0)
    }

    fn insert(
        &self,
        _kind: RecordKind,
        _xid: Xid,
        payload: &[u8],
        _built_for: Lsn,
    ) -> std::result::Result<Lsn, RedoMoved> {
        shuttle::thread::yield_now();
        let length = payload.len() as u64;
        Ok(Lsn(self.0.fetch_add(length, Relaxed) + length))
    }
}

/// A tree's pages and their log.
pub struct InMemory {
    pool: BufferPool<Shuttle, std::sync::Arc<GrowingFile>>,
    file: std::sync::Arc<GrowingFile>,
    log: Positions,
    root_hints: RootHints<Shuttle>,
}

impl InMemory {
    pub fn new(options: BufferPoolOptions) -> Self {
        let file = std::sync::Arc::new(GrowingFile {
            blocks: AtomicU32::new(0),
            growing: Mutex::new(()),
            room: AtomicI64::new(i64::MAX),
        });
        Self {
            pool: BufferPool::with_frames(FRAMES, options, std::sync::Arc::clone(&file)),
            file,
            log: Positions::default(),
            root_hints: RootHints::default(),
        }
    }

    /// The disk is full for one page, after this many more.
    pub fn fill_disk_after(&self, pages: u32) {
        self.file.room.store(pages.into(), Relaxed);
    }

    /// True if a page was refused.
    pub fn was_full(&self) -> bool {
        self.file.room.load(Relaxed) < 0
    }

    /// The tree's own check, which must find nothing.
    pub fn check(&self, tree: BTree) -> TreeShape {
        let mut findings = Findings::new(REL, PathBuf::from("memory"));
        let blocks = self.file.blocks.load(Relaxed);
        let shape = tree
            .check_structure::<StorageError>(self, blocks, &mut findings, &mut |_| Ok(()))
            .unwrap();
        assert_eq!(findings.list(), []);
        shape
    }
}

impl TreeStorage for InMemory {
    type Machine = Shuttle;
    type Log = Positions;

    fn pin(&self, page: PageId) -> Result<PinnedPage<'_, Shuttle>> {
        self.pool.pin(page)
    }

    fn extend(&self, rel: RelId) -> Result<PinnedPage<'_, Shuttle>> {
        self.pool.extend(rel)
    }

    fn make_log_room(&self) -> Result<()> {
        Ok(())
    }

    fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_, Shuttle, Positions>> {
        Ok(AtomicChange::new(&self.log, xid))
    }

    fn root_hints(&self) -> &RootHints<Shuttle> {
        &self.root_hints
    }

    fn reads_optimistically(&self) -> bool {
        self.pool.reads_optimistically()
    }

    fn reads_unpinned(&self) -> bool {
        self.pool.reads_unpinned()
    }

    fn read_page<R>(&self, page: PageId, read: impl FnMut(RacyPage<'_>) -> Option<R>) -> Result<Option<R>> {
        self.pool.read(page, read)
    }
}
