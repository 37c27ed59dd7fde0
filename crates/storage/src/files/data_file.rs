//! The data files: one file a relation under `base/`, a page at `block * 8192`.
//!
//! A file grows in steps of several pages, allocated by the file system so that a full disk is an error here
//! and not later. `lengths` keeps how many of them are in use; the pages past those are never read.
//!
//! A relation that was used keeps its length and its place here, not its descriptor: how many files are open at a time
//! is limited (`disk::open_files`).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::disk::open_files::{OpenFiles, VirtualFile};
use crate::disk::{self, Disk, DiskDirectory, DiskFile, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::lengths::Lengths;
use crate::page::{self, PAGE_SIZE, PageDamage, PageId, RelId};

/// The most pages allocated in one step.
const GROW_MAX: u32 = 128;

/// One relation's file.
#[derive(Debug)]
pub(crate) struct DataFile {
    rel: RelId,
    file: VirtualFile,
    /// Pages in use.
    blocks: AtomicU32,
    /// Pages that were read into the buffer pool, since the last reset.
    reads: AtomicU64,
    /// Pages allocated; changes under `growing`.
    growing: Mutex<u32>,
    /// The relation was dropped: the name is gone, and a worker that still has the file finds out when it opens it.
    removed: AtomicBool,
}

/// All data files of a directory.
#[derive(Debug)]
pub(crate) struct DataFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Open from the start, so that syncing the directory needs no descriptor when there are none left.
    names: Arc<dyn DiskDirectory>,
    fsync: bool,
    open_files: Arc<OpenFiles>,
    relations: RwLock<Relations>,
    /// Files were made or removed since the last sync of the directory began.
    directory_changed: AtomicBool,
    /// As `syncing` of a file.
    syncing_names: Mutex<()>,
}

/// The relations that exist. Each is in one of the two maps.
#[derive(Debug, Default)]
struct Relations {
    used: HashMap<RelId, Arc<DataFile>>,
    /// The lengths of those whose files were not needed yet.
    unused: BTreeMap<RelId, u32>,
}

impl Relations {
    fn length(&self, rel: RelId) -> Option<u32> {
        let open = self.used.get(&rel).map(|file| file.blocks());
        open.or_else(|| self.unused.get(&rel).copied())
    }
}

impl DataFiles {
    /// The files in `dir` of the relations with these lengths. At most `open_files_max` of them are open at a time.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        fsync: bool,
        open_files_max: usize,
        lengths: &Lengths,
    ) -> Result<Self> {
        disk::ensure_directory(&*disk, &dir, fsync)
            .map_err(|error| StorageError::io("create directory", &dir, error))?;
        let names = disk
            .open_directory(&dir)
            .map_err(|error| StorageError::io("open directory", &dir, error))?;
        Ok(Self {
            open_files: OpenFiles::new(Arc::clone(&disk), open_files_max, fsync),
            disk,
            dir,
            names,
            fsync,
            relations: RwLock::new(Relations {
                used: HashMap::new(),
                unused: lengths.clone(),
            }),
            directory_changed: AtomicBool::new(true),
            syncing_names: Mutex::default(),
        })
    }

    pub(crate) fn path(&self, rel: RelId) -> PathBuf {
        self.dir.join(rel.0.to_string())
    }

    fn relations(&self) -> RwLockReadGuard<'_, Relations> {
        self.relations.read().unwrap_or_else(|e| e.into_inner())
    }

    fn relations_to_change(&self) -> RwLockWriteGuard<'_, Relations> {
        self.relations.write().unwrap_or_else(|e| e.into_inner())
    }

    /// The file of `rel`, which exists.
    pub(crate) fn file(&self, rel: RelId) -> Result<Arc<DataFile>> {
        let file = self.relations().used.get(&rel).cloned();
        match file {
            Some(file) => Ok(file),
            None => self.open_file(rel),
        }
    }

    /// Number of pages of `rel`. The file is looked at under the lock: a reference of the caller's own would be counted
    /// up and down beside the length that all sessions read.
    pub(crate) fn blocks(&self, rel: RelId) -> Result<u32> {
        let known = self.relations().used.get(&rel).map(|file| file.blocks());
        match known {
            Some(blocks) => Ok(blocks),
            None => Ok(self.open_file(rel)?.blocks()),
        }
    }

    #[cold]
    fn open_file(&self, rel: RelId) -> Result<Arc<DataFile>> {
        let mut relations = self.relations_to_change();
        if let Some(file) = relations.used.get(&rel) {
            return Ok(Arc::clone(file));
        }
        let path = self.path(rel);
        let Some(&blocks) = relations.unused.get(&rel) else {
            return Err(StorageError::NoSuchRelation { rel: rel.0 });
        };
        let file = self
            .open_files
            .existing(path.clone(), must_be_synced_when_found(rel));
        let length = file.with(|file| file.length()).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                return StorageError::MissingFile {
                    file: path,
                    rel: rel.0,
                    blocks,
                };
            }
            StorageError::io("open", &path, error)
        })?;
        let allocated = (length / PAGE_SIZE as u64) as u32;
        let file = Arc::new(DataFile::new(rel, file, blocks, allocated));
        relations.unused.remove(&rel);
        relations.used.insert(rel, Arc::clone(&file));
        Ok(file)
    }

    /// An empty file for `rel`, a number not used before; a file that a crash may have left under that name
    /// is emptied.
    pub(crate) fn create(&self, rel: RelId) -> Result<()> {
        let path = self.path(rel);
        let file = self
            .open_files
            .create(path.clone(), must_be_synced_when_found(rel))
            .map_err(|error| StorageError::io("create", &path, error))?;
        self.directory_changed.store(true, Ordering::Release);
        let file = Arc::new(DataFile::new(rel, file, 0, 0));
        self.relations_to_change().used.insert(rel, file);
        Ok(())
    }

    /// As [`create`](Self::create), in replay: the checkpoint may have known the relation already.
    pub(crate) fn create_again(&self, rel: RelId) -> Result<()> {
        let known = self.relations().length(rel).is_some();
        if known { Ok(()) } else { self.create(rel) }
    }

    /// The file of `rel`; `None` if the relation was dropped after what is being replayed (`lengths`, R3).
    pub(crate) fn file_for_replay(&self, rel: RelId) -> Result<Option<Arc<DataFile>>> {
        match self.file(rel) {
            Ok(file) => Ok(Some(file)),
            Err(StorageError::NoSuchRelation { .. } | StorageError::MissingFile { .. })
                if rel >= RelId::FIRST_NORMAL =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The file of `rel`, opened anew to be copied; `None` if there is none.
    pub(crate) fn open_for_copy(&self, rel: RelId) -> Result<Option<Arc<dyn DiskFile>>> {
        let path = self.path(rel);
        match self.disk.open(&path, OpenMode::Existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file
                .map(Some)
                .map_err(|error| StorageError::io("open", &path, error)),
        }
    }

    /// The number of pages of each relation.
    pub(crate) fn lengths(&self) -> Lengths {
        let relations = self.relations();
        let mut lengths = relations.unused.clone();
        lengths.extend(relations.used.iter().map(|(&rel, file)| (rel, file.blocks())));
        lengths
    }

    /// Pages of a relation that were read into the buffer pool since the file was made, found at a start, or reset.
    pub(crate) fn reads(&self, rel: RelId) -> u64 {
        let relations = self.relations();
        let file = relations.used.get(&rel);
        // Relaxed: a count, by which nothing is found.
        file.map_or(0, |file| file.reads.load(Ordering::Relaxed))
    }

    /// Counts the reads of a relation anew; `None`: of each.
    pub(crate) fn reset_reads(&self, rel: Option<RelId>) {
        for (of, file) in &self.relations().used {
            if rel.is_none_or(|rel| rel == *of) {
                file.reads.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Reads a page of `file`, one that is in use, into the buffer pool, and checks it.
    pub(crate) fn read_counted(&self, file: &DataFile, page: PageId, bytes: &mut [u8]) -> Result<()> {
        // Beside the read itself this costs nothing, also where several workers add.
        file.reads.fetch_add(1, Ordering::Relaxed);
        self.read(file, page, bytes)
    }

    /// Reads a page of `file`, one that is in use, and checks it.
    pub(crate) fn read(&self, file: &DataFile, page: PageId, bytes: &mut [u8]) -> Result<()> {
        let problem = match file.read(page, bytes)? {
            PageRead::Good => return Ok(()),
            PageRead::Damaged(PageDamage::Zeros) => "zeros in the place of a page that was written".into(),
            PageRead::PastEnd => format!(
                "the file ends before it, but the relation has {} pages",
                file.blocks()
            ),
            PageRead::Damaged(PageDamage::Checksum { found, expected }) => {
                let sums = format!("checksum {found:08x}, expected {expected:08x}");
                match self.owner(page, bytes) {
                    Some(owner) => format!(
                        "{sums}: the page is that of block {} of relation {}",
                        owner.block, owner.rel.0
                    ),
                    None => sums,
                }
            }
        };
        Err(StorageError::CorruptPage {
            file: file.file.path().to_owned(),
            block: page.block,
            offset: offset_of(page.block),
            problem,
        })
    }

    /// The page that the checksum would be right for, if there is one.
    fn owner(&self, found_at: PageId, bytes: &[u8]) -> Option<PageId> {
        let lengths = self.lengths();
        let others = lengths.keys().copied().filter(|&rel| rel != found_at.rel);
        std::iter::once(found_at.rel).chain(others).find_map(|rel| {
            let block = page::block_of(rel, bytes);
            let exists = lengths.get(&rel).is_some_and(|&blocks| block < blocks);
            exists.then_some(PageId { rel, block })
        })
    }

    /// Removes the file of `rel`, if there is one.
    pub(crate) fn remove(&self, rel: RelId) -> Result<()> {
        {
            let mut relations = self.relations_to_change();
            if let Some(file) = relations.used.remove(&rel) {
                file.removed.store(true, Ordering::Release);
            }
            relations.unused.remove(&rel);
        }
        let path = self.path(rel);
        match self.disk.remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(|error| StorageError::io("remove", &path, error))?,
        }
        self.directory_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// The numbers of all relations that have a file.
    pub(crate) fn list(&self) -> Result<Vec<RelId>> {
        let fail = |error| StorageError::io("list", &self.dir, error);
        let mut rels = Vec::new();
        for name in self.disk.list(&self.dir).map_err(fail)? {
            rels.extend(name.to_str().and_then(|name| name.parse().ok()).map(RelId));
        }
        rels.sort();
        Ok(rels)
    }

    /// The names of files that belong to no relation.
    pub(crate) fn foreign_names(&self) -> Result<Vec<String>> {
        let names = self
            .disk
            .list(&self.dir)
            .map_err(|error| StorageError::io("list", &self.dir, error))?;
        let relations = self.relations();
        let is_relation = |name: &str| {
            let number = name.parse().ok().map(RelId);
            number.is_some_and(|rel| rel.0.to_string() == name && relations.length(rel).is_some())
        };
        let mut foreign: Vec<String> = names
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| !is_relation(name))
            .collect();
        foreign.sort();
        Ok(foreign)
    }

    /// Makes everything written so far durable, also what another worker is syncing.
    pub(crate) fn sync_all(&self) -> Result<()> {
        if !self.fsync {
            return Ok(());
        }
        let files: Vec<_> = self.relations().used.values().cloned().collect();
        for file in files {
            file.sync()?;
        }
        // The directory has been open since the start, so only the sync itself can fail. That ends the
        // process, so it does not matter that `directory_changed` is already cleared.
        let _syncing = self.syncing_names.lock().unwrap_or_else(|e| e.into_inner());
        if self.directory_changed.swap(false, Ordering::AcqRel)
            && let Err(error) = self.names.sync(SyncPurpose::DataFileNames)
        {
            disk::sync_failed(&self.dir, &error);
        }
        Ok(())
    }
}

impl DataFile {
    fn new(rel: RelId, file: VirtualFile, blocks: u32, allocated: u32) -> DataFile {
        DataFile {
            rel,
            file,
            blocks: AtomicU32::new(blocks),
            reads: AtomicU64::new(0),
            growing: Mutex::new(allocated),
            removed: AtomicBool::new(false),
        }
    }

    /// The error of an operation on the file.
    fn failed(&self, operation: &'static str, error: io::Error) -> StorageError {
        if error.kind() == io::ErrorKind::NotFound && self.removed.load(Ordering::Acquire) {
            return StorageError::NoSuchRelation { rel: self.rel.0 };
        }
        StorageError::io(operation, self.file.path(), error)
    }

    /// Makes durable what was written so far, whatever `fsync` says of the other files.
    pub(crate) fn sync(&self) -> Result<()> {
        match self.file.sync() {
            // Nothing of a relation that was dropped needs to last.
            Err(_) if self.removed.load(Ordering::Acquire) => Ok(()),
            synced => synced.map_err(|error| self.failed("open", error)),
        }
    }

    /// Pages in use.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.load(Ordering::Acquire)
    }

    /// Adds one page: `enter` makes it readable, then the length counts it. The file does not have the page's
    /// content yet.
    pub(crate) fn extend(&self, enter: impl FnOnce(PageId)) -> Result<()> {
        let mut allocated = self.growing.lock().unwrap_or_else(|e| e.into_inner());
        let block = self.blocks.load(Ordering::Relaxed);
        self.make_room(&mut allocated, block)?;
        enter(PageId { rel: self.rel, block });
        // Release: a checkpoint that counts the page finds it dirty.
        self.blocks.store(block + 1, Ordering::Release);
        Ok(())
    }

    /// Adds the page with the next number, by writing it.
    pub(crate) fn append(&self, page: PageId, bytes: &mut [u8]) -> Result<()> {
        let mut allocated = self.growing.lock().unwrap_or_else(|e| e.into_inner());
        assert_eq!(
            page.block,
            self.blocks.load(Ordering::Relaxed),
            "not the next page of {}",
            self.file.path().display()
        );
        self.make_room(&mut allocated, page.block)?;
        self.write(page, bytes)?;
        self.blocks.store(page.block + 1, Ordering::Release);
        Ok(())
    }

    /// Makes the file system allocate page `block` and some behind it, unless they are allocated already.
    fn make_room(&self, allocated: &mut u32, block: u32) -> Result<()> {
        if block < *allocated {
            return Ok(());
        }
        let missing = block - *allocated;
        self.allocate(allocated, missing + (block / 8).clamp(1, GROW_MAX))
    }

    fn allocate(&self, allocated: &mut u32, more: u32) -> Result<()> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileExtend);
        let (offset, length) = (
            u64::from(*allocated) * PAGE_SIZE as u64,
            u64::from(more) * PAGE_SIZE as u64,
        );
        self.file
            .change(|file| file.allocate(offset, length))
            .map_err(|error| self.failed("extend", error))?;
        *allocated += more;
        Ok(())
    }

    /// Reads a page.
    fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<PageRead> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileRead);
        match self
            .file
            .with(|file| file.read_exact_at(bytes, offset_of(page.block)))
        {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(PageRead::PastEnd),
            Err(error) => return Err(self.failed("read a page of", error)),
        }
        Ok(match page::verify(page, bytes) {
            Ok(()) => PageRead::Good,
            Err(damage) => PageRead::Damaged(damage),
        })
    }

    /// Seals a page and writes it.
    pub(crate) fn write(&self, page: PageId, bytes: &mut [u8]) -> Result<()> {
        debug_assert_eq!(page.rel, self.rel, "a page of another relation");
        page::seal(page, bytes);
        let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileWrite);
        self.file
            .change(|file| file.write_at(bytes, offset_of(page.block)))
            .map_err(|error| self.failed("write a page of", error))
    }
}

/// Result of reading a page.
enum PageRead {
    Good,
    Damaged(PageDamage),
    /// The file is too short.
    PastEnd,
}

/// True if a file may have been written by an earlier process and not be synced, in a way that matters.
///
/// Replay writes again what a process wrote between its last checkpoint and a kill: the first record of each of these
/// pages holds the whole page, and is applied whatever the file holds. A commit-log page is not written again if it
/// holds the replayed statuses already, and a killed process may have written them without a sync.
fn must_be_synced_when_found(rel: RelId) -> bool {
    rel == RelId::COMMIT_LOG
}

fn offset_of(block: u32) -> u64 {
    u64::from(block) * PAGE_SIZE as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;
    use crate::disk::{Faults, FaultyDisk, NativeDisk, Operation};

    /// A disk on which the first sync of a data file takes a while; another worker comes at its beginning.
    #[derive(Debug)]
    struct SlowSync {
        first: AtomicBool,
        begun: Barrier,
        ended: AtomicBool,
    }

    impl Faults for SlowSync {
        fn before(&self, operation: Operation, _: &Path) -> io::Result<()> {
            let is_sync = matches!(
                operation,
                Operation::Sync(SyncPurpose::DataFile | SyncPurpose::DataFileNames)
            );
            if is_sync && self.first.swap(false, Ordering::AcqRel) {
                self.begun.wait();
                std::thread::sleep(Duration::from_millis(30));
                self.ended.store(true, Ordering::Release);
            }
            Ok(())
        }
    }

    /// Alice syncs, and Bob comes meanwhile, with what she has found unsynced to be made durable for him too. He must not
    /// go on before her sync has ended: he would recycle the log that a power cut then needs.
    #[test]
    fn a_sync_waits_for_one_under_way() {
        for of_names in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let slow = Arc::new(SlowSync {
                first: AtomicBool::new(false),
                begun: Barrier::new(2),
                ended: AtomicBool::new(false),
            });
            let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), slow.clone()));
            let files = DataFiles::new(disk, dir.path().to_owned(), true, 10, &Lengths::new()).unwrap();
            files.create(RelId(16)).unwrap();
            let page = PageId {
                rel: RelId(16),
                block: 0,
            };
            if !of_names {
                files.sync_all().unwrap();
                let file = files.file(RelId(16)).unwrap();
                file.append(page, &mut [0; PAGE_SIZE]).unwrap();
            }
            slow.first.store(true, Ordering::Release);
            std::thread::scope(|scope| {
                scope.spawn(|| files.sync_all().unwrap());
                slow.begun.wait();
                files.sync_all().unwrap();
                assert!(
                    slow.ended.load(Ordering::Acquire),
                    "the other worker's sync goes on, of names: {of_names}"
                );
            });
        }
    }

    /// A page is written, and a sync comes in the middle of the write. The next one makes the page durable.
    #[test]
    fn a_page_counts_as_unsynced_after_its_write() {
        /// Calls a sync of all files before a write of a page.
        #[derive(Debug, Default)]
        struct SyncBeforeWrite {
            files: Mutex<Option<Arc<DataFiles>>>,
            syncs: AtomicU32,
        }
        impl Faults for SyncBeforeWrite {
            fn before(&self, operation: Operation, _: &Path) -> io::Result<()> {
                match operation {
                    Operation::Sync(SyncPurpose::DataFile) => {
                        self.syncs.fetch_add(1, Ordering::Relaxed);
                    }
                    Operation::Write => {
                        let files = self.files.lock().unwrap().take();
                        files.map_or(Ok(()), |files| files.sync_all().map_err(io::Error::other))?;
                    }
                    _ => {}
                }
                Ok(())
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let faults = Arc::new(SyncBeforeWrite::default());
        let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults.clone()));
        let files = DataFiles::new(disk, dir.path().to_owned(), true, 10, &Lengths::new()).unwrap();
        files.create(RelId(16)).unwrap();
        let file = files.file(RelId(16)).unwrap();
        file.extend(|_| ()).unwrap();
        files.sync_all().unwrap();
        let files = Arc::new(files);
        *faults.files.lock().unwrap() = Some(Arc::clone(&files));
        let page = PageId {
            rel: RelId(16),
            block: 0,
        };
        file.write(page, &mut [0; PAGE_SIZE]).unwrap();
        let synced = faults.syncs.load(Ordering::Relaxed);
        files.sync_all().unwrap();
        assert_eq!(faults.syncs.load(Ordering::Relaxed), synced + 1);
    }

    /// `lengths`, step 1. Otherwise a checkpoint between the two would log a length that includes a page
    /// which it does not write.
    #[test]
    fn a_page_is_entered_before_the_length_counts_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(NativeDisk);
        let files = DataFiles::new(disk, dir.path().to_owned(), false, 10, &Lengths::new()).unwrap();
        files.create(RelId(16)).unwrap();
        let file = files.file(RelId(16)).unwrap();
        for block in 0..20 {
            let mut entered = None;
            file.extend(|page| entered = Some((page.block, file.blocks())))
                .unwrap();
            assert_eq!(entered, Some((block, block)));
            assert_eq!(file.blocks(), block + 1);
        }
    }

    /// A page in use has its place on the disk: a full disk is an error of `extend`, not of a write of the page. That
    /// holds for files that were opened, and for one that has lost its end, as well.
    #[test]
    fn pages_have_a_place_before_they_are_used() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(NativeDisk);
        let rel = RelId(16);
        let path = dir.path().join("16");
        std::fs::write(&path, b"").unwrap();
        for (kept, blocks) in [
            (0, 0),
            (offset_of(40), 40),
            (offset_of(30), 40),
            (offset_of(30) + 100, 40),
        ] {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(kept).unwrap();
            let lengths = Lengths::from([(rel, blocks)]);
            let files = DataFiles::new(disk.clone(), dir.path().to_owned(), false, 10, &lengths).unwrap();
            let file = files.file(rel).unwrap();
            for _ in 0..40 {
                file.extend(|_| ()).unwrap();
                let (needed, length) = (offset_of(file.blocks()), path.metadata().unwrap().len());
                // Ahead of their use, but not by many.
                assert!(
                    (needed..needed * 2 + 8 * PAGE_SIZE as u64).contains(&length),
                    "{length}, {needed}"
                );
            }
        }
    }
}
