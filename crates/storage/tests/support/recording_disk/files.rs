//! The operations that the storage crate asks of a disk.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_storage::disk::{Disk, DiskDirectory, DiskFile, LockHeld, OpenMode, SyncPurpose};

use super::RecordingDisk;
use super::content::{BLOCK, Change, ZEROS};
use super::frozen::{Directory, Entry, NameChange, not_found, split};

#[derive(Debug)]
struct RecordedFile {
    disk: RecordingDisk,
    path: PathBuf,
    inode: usize,
}

#[derive(Debug)]
struct RecordedDirectory {
    disk: RecordingDisk,
    path: PathBuf,
}

struct Locked {
    disk: RecordingDisk,
    path: PathBuf,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

impl Disk for RecordingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.operation();
        let inode = match state.disk.entry(path)? {
            Some(Entry::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Entry::File(inode)) => {
                if mode == OpenMode::Truncate {
                    state.disk.change_file(inode, Change::Length(0));
                }
                inode
            }
            None if matches!(mode, OpenMode::Existing | OpenMode::Direct) => return Err(not_found(path)),
            None => {
                let inode = state.disk.inodes.len();
                state.disk.inodes.push(Arc::default());
                let (parent, name) = split(path)?;
                let link = NameChange::Link(name, Entry::File(inode));
                state.disk.directory(&parent)?.change(link);
                inode
            }
        };
        Ok(Arc::new(RecordedFile {
            disk: self.clone(),
            path: path.to_owned(),
            inode,
        }))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        self.state().disk.directory(path)?;
        Ok(Arc::new(RecordedDirectory {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        if path.parent().is_none() || state.disk.entry(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = split(path)?;
        let link = NameChange::Link(name, Entry::Directory);
        state.disk.directory(&parent)?.change(link);
        state
            .disk
            .directories
            .insert(path.to_owned(), Directory::default());
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.state().disk.directory(path)?.now.keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        state.disk.entry(from)?.ok_or_else(|| not_found(from))?;
        let ((parent, from), (other, to)) = (split(from)?, split(to)?);
        assert_eq!(parent, other, "files are renamed within their directory");
        state
            .disk
            .directory(&parent)?
            .change(NameChange::Rename(from, to));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation();
        state.disk.entry(path)?.ok_or_else(|| not_found(path))?;
        let (parent, name) = split(path)?;
        state.disk.directory(&parent)?.change(NameChange::Unlink(name));
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        let locked = self.state().locked.insert(path.to_owned());
        Ok(locked.then(|| {
            Box::new(Locked {
                disk: self.clone(),
                path: path.to_owned(),
            }) as LockHeld
        }))
    }
}

impl DiskFile for RecordedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.disk.state().disk.inodes[self.inode].now.read(offset, bytes))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        if bytes.len() == clearway_storage::PAGE_SIZE {
            state.check_page(&self.path, offset, bytes);
        }
        let zeros = bytes.chunks(BLOCK).all(|part| part == &ZEROS[..part.len()]);
        let change = if zeros {
            Change::Zeros(offset, bytes.len() as u64)
        } else {
            Change::Write(offset, bytes.into())
        };
        state.disk.change_file(self.inode, change);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        state
            .disk
            .change_file(self.inode, Change::Allocate(offset + length));
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation();
        state.disk.change_file(self.inode, Change::Length(length));
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().disk.inodes[self.inode].now.length)
    }

    fn sync_data(&self, purpose: SyncPurpose) -> io::Result<()> {
        self.sync_all(purpose)
    }

    fn sync_all(&self, purpose: SyncPurpose) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.sync(purpose) {
            let inode = Arc::make_mut(&mut state.disk.inodes[self.inode]);
            for change in std::mem::take(&mut inode.unsynced) {
                change.apply(&mut inode.durable);
            }
        }
        Ok(())
    }
}

impl DiskDirectory for RecordedDirectory {
    fn sync(&self, purpose: SyncPurpose) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.sync(purpose) {
            let directory = state.disk.directory(&self.path)?;
            directory.durable = directory.now.clone();
            directory.unsynced.clear();
        }
        Ok(())
    }
}
