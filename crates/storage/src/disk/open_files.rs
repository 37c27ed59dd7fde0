//! A limit on the data files that are open at a time, however many relations there are.
//!
//! A [`VirtualFile`] is a file by name. It has a descriptor while it is in use and for as long afterwards as there is
//! room; [`OpenFiles`] closes those that were not used lately when another one needs their place, and a file that was
//! closed is opened again at its next use. All data files of a database share one `OpenFiles`: pages, replay, a
//! standby, and checks open their files through it.
//!
//! # Invariants
//! - F1: at most `max` descriptors are open. A descriptor has a place, taken before it is opened and given back after
//!   it is closed.
//! - F2: a descriptor is closed only when nothing is *unsynced*, that is when all that was written through it is
//!   durable. The sync comes before the close, and one that fails ends the process (D3).
//! - F3: a worker that waits for a place holds no descriptor in use.
//!
//! # Why a file is synced before it is closed
//! The simpler way is to close the file, to remember that it was written, and to open it again at the checkpoint in
//! order to sync it. The kernel tells of a failed write-back in two ways. Every descriptor that was open at the
//! failure learns of it; one that is opened later learns of it only if none has yet, and if the kernel still has the
//! inode. With no descriptor open it may drop the inode, and the error with it: the checkpoint would call durable what
//! is lost. With F2 no write is without its descriptor before it is durable. Files that have nothing to sync are closed
//! first, so this costs a sync only where more files are being *written* between two checkpoints than may be open, and
//! each such sync is one that the checkpoint need not make.
//!
//! # Steps
//! 1. A use takes the file's latch in shared mode. If the file is open, that is all: the system call follows, and the
//!    latch is held until it has returned. Two changes of a word of this file, beside a system call.
//! 2. Otherwise the worker takes a place without holding anything (F3). If all are taken, it chooses a file by a
//!    clock over all that are open, syncs it if need be, and closes it under its latch in exclusive mode, if that is
//!    free: a file in use stays open. Under that latch it looks again whether anything is unsynced, since a write may
//!    have come after the sync (F2).
//! 3. With a place, it takes its own file's latch in exclusive mode, opens the file unless another worker has, and
//!    begins again at 1.
//!
//! A worker that finds all open files in use waits: what they are used for are single system calls, and by F3 none of
//! the users waits for a place.
//!
//! The mutex of `OpenFiles` is held to choose and to count, never across a system call.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use clearway_machine::{Native, WaitEvent, WaitScope};
use rustix::io::Errno;

use crate::disk::{self, Disk, DiskFile, OpenMode, SyncPurpose};

/// The fewest files that may be open at a time.
pub(crate) const OPEN_FILES_MIN: usize = 4;

/// Open files that are looked at for one that needs no sync.
const LOOKS_FOR_CLEAN: usize = 64;

/// Files that turn out to be in use, of which this many are passed by at once.
const TRIES: usize = 8;

/// The sleep of a worker when all open files are in use.
const ALL_IN_USE: Duration = Duration::from_micros(200);

/// The files of a database that are open.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    disk: Arc<dyn Disk>,
    max: usize,
    fsync: bool,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// Places that are taken.
    taken: usize,
    /// The files that are open and not about to be closed, in the order in which they were first used.
    open: BTreeMap<u64, Arc<Shared>>,
    /// The number of the next new file.
    next: u64,
    /// The clock goes on behind this file.
    hand: u64,
}

/// A file that is open when it is used.
#[derive(Debug)]
pub(crate) struct VirtualFile {
    files: Arc<OpenFiles>,
    shared: Arc<Shared>,
}

/// State that a file's user and the clock share.
#[derive(Debug)]
struct Shared {
    number: u64,
    path: PathBuf,
    /// There while the file is open.
    descriptor: RwLock<Option<Arc<dyn DiskFile>>>,
    /// Used since the clock came by.
    used: AtomicBool,
    /// Written since the last sync.
    unsynced: AtomicBool,
    /// Held for the length of a sync: a second one does not return before what the first one makes durable is.
    syncing: Mutex<()>,
    /// Its `VirtualFile` is gone.
    gone: AtomicBool,
}

/// Result of trying to close a file.
enum Closing {
    Closed,
    StaysOpen,
}

impl OpenFiles {
    /// Room for `max` open files of `disk`, or for [`OPEN_FILES_MIN`] if that is more. Without `fsync` nothing is synced
    /// before it is closed.
    pub(crate) fn new(disk: Arc<dyn Disk>, max: usize, fsync: bool) -> Arc<OpenFiles> {
        Arc::new(OpenFiles {
            disk,
            max: max.max(OPEN_FILES_MIN),
            fsync,
            places: Mutex::default(),
        })
    }

    /// Number of files that are open at this instant, those included that are being opened or closed.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.places().taken
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place (F1), closing another file if there is none.
    fn take_place(&self) {
        let mut tries = 0;
        loop {
            let victim = {
                let mut places = self.places();
                if places.taken < self.max {
                    places.taken += 1;
                    return;
                }
                places.choose()
            };
            match victim.map(|victim| self.close(victim)) {
                // The place of the file that was closed is this worker's now.
                Some(Closing::Closed) => return,
                Some(Closing::StaysOpen) if tries < TRIES => tries += 1,
                Some(Closing::StaysOpen) | None => std::thread::sleep(ALL_IN_USE),
            }
        }
    }

    /// Closes a file that was chosen, unless it is in use (step 2).
    fn close(&self, victim: Arc<Shared>) -> Closing {
        if self.fsync && victim.unsynced.load(Ordering::Acquire) {
            victim.sync(SyncPurpose::DataFileClosed);
        }
        let closed = match victim.descriptor.try_write() {
            // A write sets `unsynced` while it holds the latch in shared mode, so it is seen here.
            Ok(mut descriptor) if !(self.fsync && victim.unsynced.load(Ordering::Acquire)) => {
                descriptor.take()
            }
            _ => None,
        };
        match closed {
            Some(descriptor) => {
                drop(descriptor);
                Closing::Closed
            }
            None => {
                let mut places = self.places();
                if !victim.gone.load(Ordering::Relaxed) {
                    places.open.insert(victim.number, victim);
                }
                Closing::StaysOpen
            }
        }
    }

    fn give_place_back(&self) {
        self.places().taken -= 1;
    }

    /// Opens a file into a place that was taken.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let opened = self.disk.open(path, mode);
        let Err(error) = &opened else { return opened };
        if !is_out_of_descriptors(error) {
            return opened;
        }
        // Others have taken what the process, or the whole system, may open. One file less makes room for this one; one
        // that needs a sync is not closed for it.
        let victim = self.places().choose_clean();
        match victim.map(|victim| self.close(victim)) {
            Some(Closing::Closed) => {
                self.give_place_back();
                self.disk.open(path, mode)
            }
            Some(Closing::StaysOpen) | None => opened,
        }
    }

    /// A file that is opened at its first use.
    pub(crate) fn existing(self: &Arc<Self>, path: PathBuf, unsynced: bool) -> VirtualFile {
        let number = {
            let mut places = self.places();
            places.next += 1;
            places.next
        };
        VirtualFile {
            files: Arc::clone(self),
            shared: Arc::new(Shared {
                number,
                path,
                descriptor: RwLock::new(None),
                used: AtomicBool::new(true),
                unsynced: AtomicBool::new(unsynced),
                syncing: Mutex::new(()),
                gone: AtomicBool::new(false),
            }),
        }
    }

    /// A file that is made, or emptied if it is there.
    pub(crate) fn create(self: &Arc<Self>, path: PathBuf, unsynced: bool) -> io::Result<VirtualFile> {
        let file = self.existing(path, unsynced);
        file.open(OpenMode::Truncate)?;
        Ok(file)
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl Places {
    /// Takes the next file that was not used since the clock came by out of those that are open; one with nothing to
    /// sync if the first few that the clock finds have one.
    fn choose(&mut self) -> Option<Arc<Shared>> {
        let mut unsynced = None;
        let mut chosen = None;
        for (looks, file) in self.behind_hand().enumerate() {
            if unsynced.is_some() && looks >= LOOKS_FOR_CLEAN {
                break;
            }
            if file.used.swap(false, Ordering::Relaxed) {
                continue;
            }
            if !file.unsynced.load(Ordering::Relaxed) {
                chosen = Some(file.number);
                break;
            }
            unsynced.get_or_insert(file.number);
        }
        let number = chosen.or(unsynced)?;
        self.hand = number;
        self.open.remove(&number)
    }

    /// As [`choose`](Self::choose), but only a file with nothing to sync.
    fn choose_clean(&mut self) -> Option<Arc<Shared>> {
        let file = self
            .behind_hand()
            .find(|file| !file.unsynced.load(Ordering::Relaxed))?;
        let number = file.number;
        self.hand = number;
        self.open.remove(&number)
    }

    /// The open files from behind the clock's hand on, twice round: at the second time none is marked as used, except
    /// by a use in between.
    fn behind_hand(&self) -> impl Iterator<Item = &Arc<Shared>> {
        let behind = || self.open.range(self.hand + 1..);
        let before = || self.open.range(..=self.hand);
        let files = behind().chain(before()).chain(behind()).chain(before());
        files.map(|(_, file)| file)
    }
}

impl Shared {
    /// Makes durable what was written so far; an error ends the process (D3). A file that is closed has nothing to sync
    /// (F2), unless it was marked when it was made.
    fn sync(&self, purpose: SyncPurpose) {
        let _one_at_a_time = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptor = self.descriptor.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*descriptor
            && self.unsynced.swap(false, Ordering::AcqRel)
        {
            let _wait = WaitScope::<Native>::enter(WaitEvent::DataFileSync);
            if let Err(error) = file.sync_all(purpose) {
                // Trying again would lie: the kernel may have dropped the pages, and they are clean in the pool.
                disk::sync_failed(&self.path, &error);
            }
        }
    }
}

impl VirtualFile {
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs `operation` on the open file.
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&dyn DiskFile) -> io::Result<R>) -> io::Result<R> {
        loop {
            let descriptor = self
                .shared
                .descriptor
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(file) = &*descriptor {
                // Looked at first: a store by every reader would move the word between them.
                if !self.shared.used.load(Ordering::Relaxed) {
                    self.shared.used.store(true, Ordering::Relaxed);
                }
                return operation(&**file);
            }
            drop(descriptor);
            self.open(OpenMode::Existing)?;
        }
    }

    /// As [`with`](Self::with), for an operation that changes the file: it is to be synced from then on, also after an
    /// error, since part of the change may have been made.
    pub(crate) fn change(&self, operation: impl FnOnce(&dyn DiskFile) -> io::Result<()>) -> io::Result<()> {
        self.with(|file| {
            let changed = operation(file);
            // Release: a sync that clears the mark comes after the write. Still under the latch, so that the file is
            // not closed in between (F2).
            self.shared.unsynced.store(true, Ordering::Release);
            changed
        })
    }

    /// Makes durable what was written so far.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.shared.unsynced.load(Ordering::Acquire) {
            // A file that was marked when it was made may not be open yet.
            self.with(|_| Ok(()))?;
        }
        self.shared.sync(SyncPurpose::DataFile);
        Ok(())
    }

    #[cold]
    fn open(&self, mode: OpenMode) -> io::Result<()> {
        self.files.take_place();
        let mut descriptor = self
            .shared
            .descriptor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if descriptor.is_some() {
            self.files.give_place_back();
            return Ok(());
        }
        match self.files.open(&self.shared.path, mode) {
            Ok(file) => {
                *descriptor = Some(file);
                self.shared.used.store(true, Ordering::Relaxed);
                let mut places = self.files.places();
                places.open.insert(self.shared.number, Arc::clone(&self.shared));
                Ok(())
            }
            Err(error) => {
                self.files.give_place_back();
                Err(error)
            }
        }
    }
}

impl Drop for VirtualFile {
    fn drop(&mut self) {
        let mut descriptor = self
            .shared
            .descriptor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let closed = descriptor.take();
        let is_open = closed.is_some();
        drop(closed);
        let mut places = self.files.places();
        // A worker that has chosen the file finds this, and does not enter it again.
        self.shared.gone.store(true, Ordering::Relaxed);
        places.open.remove(&self.shared.number);
        places.taken -= usize::from(is_open);
    }
}

#[cfg(test)]
#[path = "open_files_tests.rs"]
mod tests;
