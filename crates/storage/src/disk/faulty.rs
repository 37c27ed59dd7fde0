//! A disk that fails on demand, for tests of full disks, vanished disks and missing descriptors.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskDirectory, DiskFile, LockHeld, OpenMode, SyncPurpose};

/// An operation on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a file, making it, or opening a directory.
    Open,
    /// Making a directory, listing one, renaming or removing a file.
    Name,
    /// Reading from a file, its content or its length.
    Read,
    /// Writing to a file or changing its length.
    Write,
    /// Taking this many bytes of disk space.
    Allocate(u64),
    /// Making something durable.
    Sync(SyncPurpose),
}

/// The choice of the operations that fail.
pub trait Faults: Send + Sync + Debug {
    /// Called before each operation on `path`; an error stands for the file system's.
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()>;
}

/// Another disk, with errors on demand.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    disk: Arc<dyn Disk>,
    faults: Arc<dyn Faults>,
}

#[derive(Debug)]
struct Faulty<T: ?Sized> {
    path: PathBuf,
    faults: Arc<dyn Faults>,
    inner: Arc<T>,
}

impl FaultyDisk {
    /// A disk that does what `disk` does, except where `faults` has an error.
    pub fn new(disk: Arc<dyn Disk>, faults: Arc<dyn Faults>) -> Self {
        Self { disk, faults }
    }

    fn wrap<T: ?Sized>(&self, path: &Path, inner: Arc<T>) -> Arc<Faulty<T>> {
        Arc::new(Faulty {
            path: path.to_owned(),
            faults: Arc::clone(&self.faults),
            inner,
        })
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.faults.before(Operation::Open, path)?;
        Ok(self.wrap(path, self.disk.open(path, mode)?))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        self.faults.before(Operation::Open, path)?;
        Ok(self.wrap(path, self.disk.open_directory(path)?))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.faults.before(Operation::Name, path)?;
        self.disk.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.faults.before(Operation::Name, path)?;
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.before(Operation::Name, from)?;
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.faults.before(Operation::Name, path)?;
        self.disk.remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        self.faults.before(Operation::Open, path)?;
        self.disk.lock(path)
    }

    fn restrict(&self, path: &Path) -> io::Result<()> {
        self.disk.restrict(path)
    }
}

impl<T: ?Sized> Faulty<T> {
    fn before(&self, operation: Operation) -> io::Result<()> {
        self.faults.before(operation, &self.path)
    }
}

impl DiskFile for Faulty<dyn DiskFile> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.before(Operation::Read)?;
        self.inner.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.before(Operation::Write)?;
        self.inner.write_at(bytes, offset)
    }

    fn write_durably_at(&self, bytes: &[u8], offset: u64, purpose: SyncPurpose) -> io::Result<()> {
        self.before(Operation::Write)?;
        self.before(Operation::Sync(purpose))?;
        self.inner.write_durably_at(bytes, offset, purpose)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.before(Operation::Allocate(length))?;
        self.inner.allocate(offset, length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.before(Operation::Write)?;
        self.inner.set_length(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.before(Operation::Read)?;
        self.inner.length()
    }

    fn sync_data(&self, purpose: SyncPurpose) -> io::Result<()> {
        self.before(Operation::Sync(purpose))?;
        self.inner.sync_data(purpose)
    }

    fn sync_all(&self, purpose: SyncPurpose) -> io::Result<()> {
        self.before(Operation::Sync(purpose))?;
        self.inner.sync_all(purpose)
    }
}

impl DiskDirectory for Faulty<dyn DiskDirectory> {
    fn sync(&self, purpose: SyncPurpose) -> io::Result<()> {
        self.before(Operation::Sync(purpose))?;
        self.inner.sync(purpose)
    }
}
