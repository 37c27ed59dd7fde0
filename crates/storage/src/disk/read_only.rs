//! The operating system's files, with every change kept in memory: a directory can be recovered and read, and
//! nothing in it changes.
//!
//! `clearway check` opens a data directory on this disk. After a crash it replays the log as the server
//! would, onto pages that are gone when it ends. Each block that recovery writes takes 8 KiB of memory.
//!
//! - Files are opened for reading only, so a directory on a file system that is mounted read-only will do.
//! - What was changed stays when a file is closed; only the descriptor of the file below goes, so that no more files are
//!   open than their user has open.
//! - A name that was made, changed or removed is so in `names`; all other names are those of the file system.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskDirectory, DiskFile, LockHeld, NativeDisk, OpenMode, SyncPurpose};

/// Bytes that are copied into memory at a time.
const BLOCK: usize = 8192;

/// Files that are read where they lie and written in memory.
#[derive(Debug, Default)]
pub struct ReadOnlyDisk {
    names: Mutex<HashMap<PathBuf, Name>>,
}

/// The present state of a name.
#[derive(Debug, Clone)]
enum Name {
    File(Arc<CopiedFile>),
    Directory,
    Removed,
}

#[derive(Debug)]
struct CopiedFile {
    /// The path of the file below; none if it was made here.
    below: Option<PathBuf>,
    state: Mutex<Copied>,
}

/// A file while somebody has it open.
#[derive(Debug)]
struct OpenCopy {
    copied: Arc<CopiedFile>,
    /// The file below.
    below: Option<File>,
}

/// The changes of a file.
#[derive(Debug)]
struct Copied {
    length: u64,
    /// The file below counts up to here; behind it are zeros.
    below_length: u64,
    /// The blocks written, by number; `None` is a block of zeros.
    blocks: HashMap<u64, Option<Box<[u8; BLOCK]>>>,
}

#[derive(Debug)]
struct CopiedDirectory;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display()))
}

impl ReadOnlyDisk {
    fn file(&self, names: &mut HashMap<PathBuf, Name>, path: &Path) -> io::Result<Arc<CopiedFile>> {
        match names.get(path) {
            Some(Name::File(file)) => Ok(Arc::clone(file)),
            Some(Name::Removed) => Err(not_found(path)),
            Some(Name::Directory) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            None => {
                let length = fs::metadata(path)?.len();
                let file = Arc::new(CopiedFile::new(Some(path.to_owned()), length));
                names.insert(path.to_owned(), Name::File(Arc::clone(&file)));
                Ok(file)
            }
        }
    }
}

impl Disk for ReadOnlyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut names = lock(&self.names);
        let file = match self.file(&mut names, path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && matches!(mode, OpenMode::Create | OpenMode::Truncate) =>
            {
                let made = Arc::new(CopiedFile::new(None, 0));
                names.insert(path.to_owned(), Name::File(Arc::clone(&made)));
                made
            }
            file => file?,
        };
        drop(names);
        let below = file.below.as_ref().map(File::open).transpose()?;
        let file = OpenCopy { copied: file, below };
        if mode == OpenMode::Truncate {
            file.set_length(0)?;
        }
        Ok(Arc::new(file))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        self.list(path)?;
        Ok(Arc::new(CopiedDirectory))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        if self.list(path).is_ok() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        lock(&self.names).insert(path.to_owned(), Name::Directory);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let names = lock(&self.names);
        let mut found: BTreeSet<OsString> = match fs::read_dir(path) {
            Ok(entries) => entries
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect::<io::Result<_>>()?,
            Err(_) if matches!(names.get(path), Some(Name::Directory)) => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        for (changed, name) in names.iter() {
            if let (Some(parent), Some(last)) = (changed.parent(), changed.file_name())
                && parent == path
            {
                match name {
                    Name::Removed => found.remove(last),
                    Name::File(_) | Name::Directory => found.insert(last.to_owned()),
                };
            }
        }
        Ok(found.into_iter().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = lock(&self.names);
        let file = self.file(&mut names, from)?;
        names.insert(to.to_owned(), Name::File(file));
        names.insert(from.to_owned(), Name::Removed);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut names = lock(&self.names);
        self.file(&mut names, path)?;
        names.insert(path.to_owned(), Name::Removed);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        // The same lock as a server's: what it writes meanwhile would be read half.
        NativeDisk.lock(path)
    }
}

impl CopiedFile {
    fn new(below: Option<PathBuf>, length: u64) -> Self {
        Self {
            below,
            state: Mutex::new(Copied {
                length,
                below_length: length,
                blocks: HashMap::new(),
            }),
        }
    }
}

impl OpenCopy {
    /// Block `number` as it is now, whole, with zeros behind the end of what is there.
    fn block(&self, state: &Copied, number: u64) -> io::Result<Box<[u8; BLOCK]>> {
        if let Some(block) = state.blocks.get(&number) {
            return Ok(block.clone().unwrap_or_else(|| Box::new([0; BLOCK])));
        }
        let mut block = Box::new([0; BLOCK]);
        let start = number * BLOCK as u64;
        let wanted = state.below_length.saturating_sub(start).min(BLOCK as u64) as usize;
        if let Some(below) = &self.below {
            let mut filled = 0;
            while filled < wanted {
                match below.read_at(&mut block[filled..wanted], start + filled as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(block)
    }
}

/// The parts of `[offset, offset + length)` block by block: number of the block, offset in it, range of the whole.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < length).then(|| {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let take = (length - done).min(BLOCK - within);
            let range = done..done + take;
            done += take;
            (at / BLOCK as u64, within, range)
        })
    })
}

impl DiskFile for OpenCopy {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = lock(&self.copied.state);
        let there = state.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        for (number, within, range) in parts(offset, there) {
            let block = self.block(&state, number)?;
            let length = range.len();
            bytes[range].copy_from_slice(&block[within..within + length]);
        }
        Ok(there)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.copied.state);
        for (number, within, range) in parts(offset, bytes.len()) {
            let part = &bytes[range];
            if part.len() == BLOCK && part.iter().all(|byte| *byte == 0) {
                state.blocks.insert(number, None);
                continue;
            }
            let mut block = self.block(&state, number)?;
            block[within..within + part.len()].copy_from_slice(part);
            state.blocks.insert(number, Some(block));
        }
        state.length = state.length.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = lock(&self.copied.state);
        state.length = state.length.max(offset + length);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = lock(&self.copied.state);
        if length < state.length {
            // What is cut off must read as zeros when the file grows again.
            let last = length / BLOCK as u64;
            let within = (length % BLOCK as u64) as usize;
            if within > 0 {
                let mut block = self.block(&state, last)?;
                block[within..].fill(0);
                state.blocks.insert(last, Some(block));
            }
            let kept = last + u64::from(within > 0);
            state.blocks.retain(|number, _| *number < kept);
            state.below_length = state.below_length.min(length);
        }
        state.length = length;
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(lock(&self.copied.state).length)
    }

    fn sync_data(&self, _purpose: SyncPurpose) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self, _purpose: SyncPurpose) -> io::Result<()> {
        Ok(())
    }
}

impl DiskDirectory for CopiedDirectory {
    fn sync(&self, _purpose: SyncPurpose) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(file: &dyn DiskFile) -> Vec<u8> {
        let mut bytes = vec![0; file.length().unwrap() as usize + 10];
        let read = file.read_at(&mut bytes, 0).unwrap();
        bytes.truncate(read);
        bytes
    }

    /// Random writes, cuts and growth, beside the same done to bytes in memory; the file below stays as it was.
    #[test]
    fn a_file_reads_as_it_was_written_and_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let before: Vec<u8> = (0..30_000_u32).map(|number| (number % 251) as u8).collect();
        fs::write(&path, &before).unwrap();
        let file = ReadOnlyDisk::default().open(&path, OpenMode::Existing).unwrap();
        let mut model = before.clone();
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..400 {
            match random(4) {
                0 => {
                    let length = match random(3) {
                        0 => random(8) * BLOCK as u64,
                        _ => random(60_000),
                    };
                    file.set_length(length).unwrap();
                    model.resize(length as usize, 0);
                }
                1 => {
                    let (offset, length) = (random(50_000), random(20_000));
                    file.allocate(offset, length).unwrap();
                    let end = (offset + length) as usize;
                    model.resize(model.len().max(end), 0);
                }
                kind => {
                    let (offset, length) = (random(50_000) as usize, random(20_000) as usize);
                    let byte = if kind == 2 { 0 } else { random(256) as u8 };
                    file.write_at(&vec![byte; length], offset as u64).unwrap();
                    let end = if length == 0 { 0 } else { offset + length };
                    model.resize(model.len().max(end), 0);
                    if length == 0 {
                        continue;
                    }
                    model[offset..offset + length].fill(byte);
                }
            }
            assert_eq!(content(&*file), model);
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn an_error_of_a_read_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = OpenCopy {
            copied: Arc::new(CopiedFile::new(Some(dir.path().to_owned()), 100)),
            below: Some(File::open(dir.path()).unwrap()),
        };
        file.read_at(&mut [0; 8], 0).unwrap_err();
    }

    #[test]
    fn names_change_in_memory_only() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let at = |name: &str| dir.path().join(name);
        let disk = ReadOnlyDisk::default();
        disk.open(&at("c"), OpenMode::Create).unwrap();
        disk.rename(&at("a"), &at("d")).unwrap();
        disk.remove_file(&at("b")).unwrap();
        disk.create_directory(&at("e")).unwrap();
        assert_eq!(disk.list(dir.path()).unwrap(), ["c", "d", "e"]);
        assert_eq!(disk.list(&at("e")).unwrap(), Vec::<OsString>::new());
        assert_eq!(content(&*disk.open(&at("d"), OpenMode::Existing).unwrap()), b"a");
        let error = disk.open(&at("a"), OpenMode::Existing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(disk.list(&at("f")).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert_eq!(fs::read(at("b")).unwrap(), b"b");
    }
}
