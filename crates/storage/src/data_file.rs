//! The data files: one file a relation under `base/`, a page at `block * 8192`.
//!
//! A file grows in steps of several pages, allocated by the file system so that a full disk is an error here and not
//! later. What lies past the pages in use reads as zeros, which are new pages.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use clearway_machine::{Native, WaitEvent, WaitScope};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_SIZE, PageId, RelId};
use crate::wal::Faults;

/// At most so many pages are allocated in one step.
const GROW_MAX: u32 = 128;

/// One relation's file.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    path: PathBuf,
    faults: Option<Arc<dyn Faults>>,
    /// Pages in use.
    blocks: AtomicU32,
    /// Pages allocated; changes under `growing`.
    growing: Mutex<u32>,
    /// Written since the last sync.
    unsynced: AtomicBool,
}

/// All data files of a directory.
#[derive(Debug)]
pub(crate) struct DataFiles {
    dir: PathBuf,
    fsync: bool,
    faults: Option<Arc<dyn Faults>>,
    open: RwLock<HashMap<RelId, Arc<DataFile>>>,
    /// Files were made or removed since the directory was last synced.
    directory_changed: AtomicBool,
}

impl DataFiles {
    pub(crate) fn new(dir: PathBuf, fsync: bool, faults: Option<Arc<dyn Faults>>) -> Result<Self> {
        fs::create_dir_all(&dir).map_err(|error| StorageError::io("create directory", &dir, error))?;
        Ok(Self {
            dir,
            fsync,
            faults,
            open: RwLock::default(),
            directory_changed: AtomicBool::new(true),
        })
    }

    fn path(&self, rel: RelId) -> PathBuf {
        self.dir.join(rel.0.to_string())
    }

    /// The file of `rel`. Those of the system relations are made when they are first asked for.
    pub(crate) fn file(&self, rel: RelId) -> Result<Arc<DataFile>> {
        let file = self
            .open
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(&rel)
            .cloned();
        match file {
            Some(file) => Ok(file),
            None => self.open_file(rel, rel < RelId::FIRST_NORMAL, false),
        }
    }

    /// The file of `rel`, made if it is not there (recovery).
    pub(crate) fn file_or_new(&self, rel: RelId) -> Result<Arc<DataFile>> {
        self.open_file(rel, true, false)
    }

    /// An empty file for `rel`, a number not used before; what a crash may have left under that name goes.
    pub(crate) fn create(&self, rel: RelId) -> Result<Arc<DataFile>> {
        self.open_file(rel, true, true)
    }

    #[cold]
    fn open_file(&self, rel: RelId, create: bool, truncate: bool) -> Result<Arc<DataFile>> {
        let mut open = self.open.write().unwrap_or_else(|e| e.into_inner());
        if let Some(file) = open.get(&rel) {
            return Ok(Arc::clone(file));
        }
        let path = self.path(rel);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(truncate)
            .open(&path)
            .map_err(|error| StorageError::io("open", &path, error))?;
        if create {
            self.directory_changed.store(true, Ordering::Relaxed);
        }
        let length = file
            .metadata()
            .map_err(|error| StorageError::io("stat", &path, error))?
            .len();
        let blocks = (length / PAGE_SIZE as u64) as u32;
        let file = Arc::new(DataFile {
            file,
            path,
            faults: self.faults.clone(),
            blocks: AtomicU32::new(blocks),
            growing: Mutex::new(blocks),
            unsynced: AtomicBool::new(false),
        });
        open.insert(rel, Arc::clone(&file));
        Ok(file)
    }

    /// Removes the file of `rel`, if there is one.
    pub(crate) fn remove(&self, rel: RelId) -> Result<()> {
        self.open.write().unwrap_or_else(|e| e.into_inner()).remove(&rel);
        self.directory_changed.store(true, Ordering::Relaxed);
        let path = self.path(rel);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StorageError::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// The numbers of all relations that have a file.
    pub(crate) fn list(&self) -> Result<Vec<RelId>> {
        let fail = |error| StorageError::io("list", &self.dir, error);
        let mut rels = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            rels.extend(name.to_str().and_then(|name| name.parse().ok()).map(RelId));
        }
        rels.sort();
        Ok(rels)
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let files: Vec<_> = self
            .open
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .values()
            .cloned()
            .collect();
        for file in files {
            if file.unsynced.swap(false, Ordering::AcqRel) && self.fsync {
                let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileSync);
                if let Err(error) = file.file.sync_all() {
                    // After a failed sync the kernel may have dropped the pages: trying again would lie.
                    eprintln!(
                        "clearway: could not sync {}: {error}; stopping",
                        file.path.display()
                    );
                    std::process::abort();
                }
            }
        }
        if self.directory_changed.swap(false, Ordering::Relaxed) && self.fsync {
            sync_directory(&self.dir)?;
        }
        Ok(())
    }
}

/// Makes the names in `dir` durable.
pub(crate) fn sync_directory(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| StorageError::io("sync directory", dir, error))
}

impl DataFile {
    /// Pages in use.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.load(Ordering::Acquire)
    }

    /// Adds one page, of zeros, and returns its number.
    pub(crate) fn extend(&self) -> Result<u32> {
        let mut allocated = self.growing.lock().unwrap_or_else(|e| e.into_inner());
        let block = self.blocks.load(Ordering::Relaxed);
        if block == *allocated {
            self.allocate(&mut allocated, (block / 8).clamp(1, GROW_MAX))?;
        }
        self.blocks.store(block + 1, Ordering::Release);
        Ok(block)
    }

    /// Makes the file have at least `blocks` pages (recovery, and the commit log).
    pub(crate) fn extend_to(&self, blocks: u32) -> Result<()> {
        let mut allocated = self.growing.lock().unwrap_or_else(|e| e.into_inner());
        if blocks > *allocated {
            let more = blocks - *allocated;
            self.allocate(&mut allocated, more)?;
        }
        self.blocks.fetch_max(blocks, Ordering::Release);
        Ok(())
    }

    fn allocate(&self, allocated: &mut u32, more: u32) -> Result<()> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileExtend);
        let (offset, length) = (
            u64::from(*allocated) * PAGE_SIZE as u64,
            u64::from(more) * PAGE_SIZE as u64,
        );
        let allocated_now = match &self.faults {
            Some(faults) => faults.before_allocation(&self.path, length),
            None => Ok(()),
        };
        allocated_now
            .and_then(|()| self.take_space(offset, length))
            .map_err(|error| StorageError::io("extend", &self.path, error))?;
        self.unsynced.store(true, Ordering::Release);
        *allocated += more;
        Ok(())
    }

    fn take_space(&self, offset: u64, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, length) {
            // This file system cannot: zeros take the space as well.
            Err(Errno::OPNOTSUPP) => self.file.write_all_at(&vec![0; length as usize], offset),
            result => result.map_err(io::Error::from),
        }
    }

    /// Reads a page and checks it.
    pub(crate) fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<()> {
        let offset = u64::from(page.block) * PAGE_SIZE as u64;
        {
            let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileRead);
            self.file
                .read_exact_at(bytes, offset)
                .map_err(|error| StorageError::io("read a page of", &self.path, error))?;
        }
        page::verify(bytes).map_err(|(found, expected)| StorageError::CorruptPage {
            file: self.path.clone(),
            block: page.block,
            offset,
            found,
            expected,
        })
    }

    /// Seals a page and writes it.
    pub(crate) fn write(&self, block: u32, bytes: &mut [u8]) -> Result<()> {
        page::seal(bytes);
        let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileWrite);
        self.file
            .write_all_at(bytes, u64::from(block) * PAGE_SIZE as u64)
            .map_err(|error| StorageError::io("write a page of", &self.path, error))?;
        self.unsynced.store(true, Ordering::Release);
        Ok(())
    }
}
