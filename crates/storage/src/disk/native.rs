//! The operating system's files.
//!
//! A file is made for its owner alone, or, with group access, to be read by the owner's group as well. The modes are
//! given when a file is made, and the process's umask can only take from them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::disk::{Disk, DiskDirectory, DiskFile, LockHeld, OpenMode, SyncPurpose};

/// Zeros are written in pieces of this many bytes.
const ZEROS: usize = 1 << 20;

/// The mode of a data directory that its owner alone may enter.
pub const OWNER_DIRECTORY_MODE: u32 = 0o700;
/// The mode of a data directory that the owner's group may read.
pub const GROUP_DIRECTORY_MODE: u32 = 0o750;

/// The operating system's file system, with files for their owner alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeDisk;

/// The operating system's file system.
#[derive(Debug, Clone, Copy)]
pub struct NativeDiskWithModes {
    /// The owner's group may read what is made.
    pub group_access: bool,
}

#[derive(Debug)]
struct NativeFile(File);

#[derive(Debug)]
struct NativeDirectory(File);

/// A directory under an exclusive `flock`, which belongs to the open file. Closing the file would not always end the
/// lock: a child process between its fork and its exec has the file open as well.
#[derive(Debug)]
struct LockedDirectory(File);

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        if let Err(error) = rustix::fs::flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "the data directory could not be unlocked");
        }
    }
}

impl Disk for NativeDiskWithModes {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let custom = match mode {
            OpenMode::Direct => OFlags::DIRECT.bits() as i32,
            _ => 0,
        };
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(custom)
            .create(matches!(mode, OpenMode::Create | OpenMode::Truncate))
            .truncate(mode == OpenMode::Truncate)
            .mode(self.file_mode())
            .open(path)?;
        Ok(Arc::new(NativeFile(file)))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        Ok(Arc::new(NativeDirectory(File::open(path)?)))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(self.directory_mode()).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        let directory = File::open(path)?;
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(LockedDirectory(directory)))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn restrict(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(self.directory_mode()))
    }
}

impl NativeDiskWithModes {
    /// The disk for the database in `path`. The group may read a directory of mode 0750, and what is made in it; one that
    /// is missing or empty becomes so if `group_access` is wanted.
    pub fn of(path: &Path, group_access: bool) -> NativeDiskWithModes {
        let is_new = || fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
        let mode = fs::metadata(path).map(|found| found.mode() & 0o777);
        let is_readable = mode.is_ok_and(|mode| mode == GROUP_DIRECTORY_MODE);
        NativeDiskWithModes {
            group_access: is_readable || group_access && is_new(),
        }
    }

    /// The mode of a directory that is made.
    pub fn directory_mode(self) -> u32 {
        match self.group_access {
            false => OWNER_DIRECTORY_MODE,
            true => GROUP_DIRECTORY_MODE,
        }
    }

    fn file_mode(self) -> u32 {
        // No file is a program.
        self.directory_mode() & 0o666
    }
}

/// For the owner alone.
const PRIVATE: NativeDiskWithModes = NativeDiskWithModes { group_access: false };

impl Disk for NativeDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        PRIVATE.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        PRIVATE.open_directory(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        PRIVATE.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        PRIVATE.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        PRIVATE.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        PRIVATE.remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        PRIVATE.lock(path)
    }

    fn restrict(&self, path: &Path) -> io::Result<()> {
        PRIVATE.restrict(path)
    }
}

impl NativeFile {
    fn write_zeros(&self, offset: u64, length: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS.min(length as usize)];
        let mut done = 0;
        while done < length {
            let take = (length - done).min(zeros.len() as u64);
            self.write_at(&zeros[..take as usize], offset + done)?;
            done += take;
        }
        Ok(())
    }
}

impl DiskFile for NativeFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.0.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn write_durably_at(&self, bytes: &[u8], offset: u64, purpose: SyncPurpose) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = [IoSlice::new(&bytes[done..])];
            match rustix::io::pwritev2(&self.0, &rest, offset + done as u64, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                // A file system without such writes, or a filter that keeps the call from the process.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    self.write_at(&bytes[done..], offset + done as u64)?;
                    return self.sync_data(purpose);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), offset, length) {
            // This file system cannot allocate space: written zeros take the space as well.
            Err(Errno::OPNOTSUPP) => self.write_zeros(offset, length),
            result => result.map_err(io::Error::from),
        }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync_data(&self, _purpose: SyncPurpose) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self, _purpose: SyncPurpose) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl DiskDirectory for NativeDirectory {
    fn sync(&self, _purpose: SyncPurpose) -> io::Result<()> {
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutation: take out `drop` of `LockedDirectory`.
    #[test]
    fn a_directory_is_free_although_a_child_process_has_it_open() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path()).unwrap();
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let inherited = file.try_clone().unwrap();
        let locked = LockedDirectory(file);
        assert!(NativeDisk.lock(directory.path()).unwrap().is_none());
        drop(locked);
        assert!(NativeDisk.lock(directory.path()).unwrap().is_some());
        drop(inherited);
    }

    #[test]
    fn a_durable_write_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = new_file(directory.path());
        file.write_at(&[7; 20], 0).unwrap();
        file.write_durably_at(b"durable", 5, SyncPurpose::LogFlush)
            .unwrap();
        let mut bytes = [0; 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[4..13], b"\x07durable\x07");
    }

    fn new_file(directory: &Path) -> NativeFile {
        let path = directory.join("file");
        NativeFile(
            File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
                .unwrap(),
        )
    }

    #[test]
    fn a_file_has_the_length_that_it_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let file = new_file(directory.path());
        file.write_at(b"Alice and Bob", 10).unwrap();
        assert_eq!(file.length().unwrap(), 23);
        file.set_length(15).unwrap();
        assert_eq!(file.length().unwrap(), 15);
        let mut bytes = [7; 20];
        assert_eq!(file.read_at(&mut bytes, 8).unwrap(), 7);
        assert_eq!(bytes[..8], *b"\0\0Alice\x07");
    }

    #[test]
    fn an_error_of_a_read_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = NativeFile(File::open(directory.path()).unwrap());
        file.read_at(&mut [0; 8], 0).unwrap_err();
    }

    /// If the file system cannot allocate, the bytes that were asked for become zeros, in their place.
    #[test]
    fn zeros_take_the_place_of_space() {
        let directory = tempfile::tempdir().unwrap();
        let file = new_file(directory.path());
        let (offset, length) = (5, 2 * ZEROS as u64 + 3);
        file.write_at(&vec![1; 3 * ZEROS], 0).unwrap();
        file.write_zeros(offset, length).unwrap();
        let mut bytes = vec![7; 3 * ZEROS];
        file.read_at(&mut bytes, 0).unwrap();
        let zeros = |at: usize| (offset..offset + length).contains(&(at as u64));
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, &byte)| byte == u8::from(!zeros(at)))
        );
        file.write_zeros(0, 0).unwrap();
    }

    /// Nothing but a power cut shows that a sync was left out. Of what cannot be synced, a sync fails.
    #[test]
    fn a_sync_reaches_the_operating_system() {
        let file = NativeDisk
            .open(Path::new("/dev/null"), OpenMode::Existing)
            .unwrap();
        file.sync_data(SyncPurpose::LogFlush).unwrap_err();
        file.sync_all(SyncPurpose::LogFlush).unwrap_err();
        let directory = NativeDisk.open_directory(Path::new("/proc")).unwrap();
        directory.sync(SyncPurpose::DataFileNames).unwrap_err();
    }
}
