//! Making a standby's directory of a copy that another server sends (`backup` is the sending end).
//!
//! ```text
//!   backup.unfinished                         step 1: an interrupted copy is known by it
//!   base/16 base/17 … pg_wal/0000…05          step 2: as the files arrive, each synced
//!   control.new ─▶ control                    step 3: from here on it is a standby's directory
//!   (backup.unfinished is removed)            step 4
//! ```
//!
//! 1. Only a missing or empty directory is taken, or one that has the marker and no control file: what is in that one
//!    was made by a copy, and is removed. The directory is locked to the end.
//! 2. The files are written as they arrive. The control file is kept in memory.
//! 3. When the whole copy has arrived, all files and names are durable. Then the control file is written under another
//!    name, in the state "standby", and renamed.
//! 4. The marker goes. A crash before that leaves both, and the control file is what counts.
//!
//! - R1: there is no control file until everything else is durable. So a crash or a power cut leaves a directory that
//!   `data_directory` knows as unfinished, and never half a database that recovery would take for a whole one.
//! - R2: names come from another machine. Those that a copy can have are listed here, and every other one is an error:
//!   one with `..` in it, an absolute one, a link, the marker's own.
//! - R3: the state is "standby" from the first moment on. A directory in the state "running" would be opened by a server
//!   after a crash between this and the standby's first start, and its log would leave that of its primary unnoticed.
//! - R4: the length and the checksum of each file are those of the server's list, before there is a control file: pages
//!   have no checksums, and a byte that changes on the way would be served.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, NativeDisk, NativeDiskWithModes, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::control_file::{self, Control, State};
use crate::files::copy_manifest::{CopyManifest, FileSum};
use crate::files::data_directory::{self, Content, LOG, RELATIONS, UNFINISHED_CONTROL, UNFINISHED_COPY};

/// The directories that a copy can have. Those of tablespaces and of an archive's state stay empty: PostgreSQL's programs
/// want them.
const DIRECTORIES: [&str; 4] = [RELATIONS, LOG, "pg_wal/archive_status", "pg_tblspc"];
/// A control file that is longer is none.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// A copy that is being received.
#[derive(Debug)]
pub struct ReceivedCopy {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    fsync: bool,
    /// The control file's content, once it has arrived.
    control: Option<Vec<u8>>,
    /// The files that have arrived.
    found: BTreeMap<String, FileSum>,
    _lock: crate::disk::LockHeld,
}

/// A file of a copy, which is written from its beginning to its end.
#[derive(Debug)]
pub struct ReceivedFile<'a> {
    copy: &'a mut ReceivedCopy,
    name: String,
    path: PathBuf,
    /// None: the control file.
    file: Option<Arc<dyn DiskFile>>,
    written: u64,
    crc: u32,
}

/// True if a copy is to be made in `dir`: it is missing or empty, or a copy in it was not finished. If there is a
/// database, it is not; anything else is an error.
pub fn copy_is_wanted(dir: &Path) -> Result<bool> {
    let names = match NativeDisk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        names => names.map_err(|error| StorageError::io("list", dir, error))?,
    };
    let content = data_directory::examine(dir, names)?;
    Ok(matches!(content, Content::Nothing | Content::UnfinishedCopy))
}

impl ReceivedCopy {
    /// Step 1.
    pub fn begin(dir: &Path, fsync: bool) -> Result<ReceivedCopy> {
        Self::begin_on(Arc::new(NativeDiskWithModes::of(dir, false)), dir, fsync)
    }

    /// As [`begin`](Self::begin), on another disk than the operating system's.
    pub fn begin_on(disk: Arc<dyn Disk>, dir: &Path, fsync: bool) -> Result<ReceivedCopy> {
        let (lock, content) = data_directory::enter_for_copy(&*disk, dir, fsync)?;
        let copy = ReceivedCopy {
            disk,
            dir: dir.to_owned(),
            fsync,
            control: None,
            found: BTreeMap::new(),
            _lock: lock,
        };
        if content == Content::UnfinishedCopy {
            copy.remove_remains()?;
        }
        let marker = dir.join(UNFINISHED_COPY);
        copy.disk
            .open(&marker, OpenMode::Create)
            .map_err(|error| StorageError::io("create", &marker, error))?;
        copy.sync_names(dir)?;
        Ok(copy)
    }

    fn invalid(&self, problem: String) -> StorageError {
        StorageError::InvalidCopy {
            dir: self.dir.clone(),
            problem,
        }
    }

    /// Removes the files of an unfinished copy, and nothing that no copy makes. The directories stay.
    fn remove_remains(&self) -> Result<()> {
        let list = |path: &Path| {
            let names = self.disk.list(path);
            names.map_err(|error| StorageError::io("list", path, error))
        };
        let top: Vec<_> = list(&self.dir)?;
        for name in &top {
            let known = [UNFINISHED_COPY, UNFINISHED_CONTROL, "lost+found"]
                .iter()
                .chain(&DIRECTORIES)
                .any(|known| name == known);
            if !known {
                return Err(self.invalid(format!(
                    "beside a copy that was not finished there is \"{}\", which is not of that copy; remove it, or the \
                     directory",
                    name.display()
                )));
            }
        }
        for directory in DIRECTORIES {
            let path = self.dir.join(directory);
            let names = match self.disk.list(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                names => names.map_err(|error| StorageError::io("list", &path, error))?,
            };
            for name in names {
                let path = path.join(&name);
                let is_directory = DIRECTORIES.iter().any(|known| self.dir.join(known) == path);
                if !is_directory {
                    self.remove(&path)?;
                }
            }
        }
        if top.iter().any(|name| name == UNFINISHED_CONTROL) {
            self.remove(&self.dir.join(UNFINISHED_CONTROL))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.disk
            .remove_file(path)
            .map_err(|error| StorageError::io("remove", path, error))
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        if !self.fsync {
            return Ok(());
        }
        self.disk
            .open_directory(path)
            .and_then(|directory| directory.sync(SyncPurpose::CopiedNames))
            .map_err(|error| StorageError::io("sync directory", path, error))
    }

    /// The name as text without a final slash, if it is relative and nothing in it leads elsewhere (R2).
    fn name<'a>(&self, path: &'a Path) -> Result<&'a str> {
        let inside = path
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        match path.to_str() {
            Some(name) if inside && !name.is_empty() => Ok(name.trim_end_matches('/')),
            _ => Err(self.invalid(format!(
                "the server sends a file that would leave the directory: \"{}\"",
                path.display()
            ))),
        }
    }

    /// Makes a directory of the copy.
    pub fn create_directory(&mut self, path: &Path) -> Result<()> {
        let name = self.name(path)?;
        if !DIRECTORIES.contains(&name) {
            return Err(self.unexpected(name));
        }
        let path = self.dir.join(name);
        match self.disk.create_directory(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(StorageError::io("create directory", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn unexpected(&self, name: &str) -> StorageError {
        self.invalid(format!(
            "the server sends \"{name}\", which no copy of a database has; are both programs of the same version?"
        ))
    }

    /// Begins a file of the copy. It counts once [`ReceivedFile::finish`] was called.
    pub fn create_file(&mut self, path: &Path) -> Result<ReceivedFile<'_>> {
        let name = self.name(path)?;
        let owned_name = name.to_owned();
        if name == data_directory::CONTROL {
            self.control = Some(Vec::new());
            return Ok(ReceivedFile {
                path: self.dir.join(name),
                name: owned_name,
                file: None,
                written: 0,
                crc: 0,
                copy: self,
            });
        }
        let directory = name.rsplit_once('/').map(|(directory, _)| directory);
        let known = directory.is_some_and(|directory| [RELATIONS, LOG].contains(&directory));
        if !known || DIRECTORIES.contains(&name) {
            return Err(self.unexpected(name));
        }
        let path = self.dir.join(name);
        let file = self
            .disk
            .open(&path, OpenMode::Truncate)
            .map_err(|error| StorageError::io("create", &path, error))?;
        Ok(ReceivedFile {
            copy: self,
            name: owned_name,
            path,
            file: Some(file),
            written: 0,
            crc: 0,
        })
    }

    /// Checks the files that have arrived against the server's list of them, which arrives last (R4).
    pub fn verify(&self, manifest: &[u8]) -> Result<()> {
        CopyManifest::parse(manifest)
            .and_then(|manifest| manifest.compare(&self.found))
            .map_err(|problem| {
                self.invalid(format!("what arrived is not what the server has sent: {problem}"))
            })
    }

    /// Steps 3 and 4: the copy has arrived as a whole, and is to be of this database.
    pub fn finish(self, system_identifier: u64) -> Result<()> {
        let path = self.dir.join(data_directory::CONTROL);
        let Some(control) = &self.control else {
            return Err(self.invalid("the server has sent no control file".to_owned()));
        };
        let control = control_file::of_image(control, &path)?;
        if control.system_identifier != system_identifier {
            return Err(self.invalid(format!(
                "the server says that its database is {system_identifier}, and sends a copy of {}",
                control.system_identifier
            )));
        }
        data_directory::check_parts(&*self.disk, &self.dir)?;
        for directory in DIRECTORIES {
            let path = self.dir.join(directory);
            match self.disk.list(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StorageError::io("list", &path, error)),
                Ok(_) => self.sync_names(&path)?,
            }
        }
        self.sync_names(&self.dir)?;
        // R1, R3.
        let unfinished = self.dir.join(UNFINISHED_CONTROL);
        let control = Control {
            state: State::Standby,
            ..control
        };
        self.disk
            .open(&unfinished, OpenMode::Truncate)
            .and_then(|file| {
                file.write_at(&control_file::image(control), 0)?;
                match self.fsync {
                    true => file.sync_all(SyncPurpose::CopiedFile),
                    false => Ok(()),
                }
            })
            .map_err(|error| StorageError::io("write", &unfinished, error))?;
        self.disk
            .rename(&unfinished, &path)
            .map_err(|error| StorageError::io("rename", &unfinished, error))?;
        self.sync_names(&self.dir)?;
        self.remove(&self.dir.join(UNFINISHED_COPY))
    }
}

impl ReceivedFile<'_> {
    /// Adds to the end of the file.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match (&self.file, &mut self.copy.control) {
            (Some(file), _) => file
                .write_at(bytes, self.written)
                .map_err(|error| StorageError::io("write", &self.path, error))?,
            (None, Some(control)) if control.len() + bytes.len() <= CONTROL_BYTES_MAX => {
                control.extend_from_slice(bytes)
            }
            (None, _) => {
                let problem = format!("the control file is longer than {CONTROL_BYTES_MAX} bytes");
                return Err(self.copy.invalid(problem));
            }
        }
        self.written += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(())
    }

    /// The file is whole: makes it durable.
    pub fn finish(self) -> Result<()> {
        let sum = FileSum {
            length: self.written,
            crc: Some(self.crc),
        };
        self.copy.found.insert(self.name, sum);
        match &self.file {
            Some(file) if self.copy.fsync => file
                .sync_all(SyncPurpose::CopiedFile)
                .map_err(|error| StorageError::io("sync", &self.path, error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::disk::{Faults, FaultyDisk, Operation};
    use crate::wal::segment_name::{FIRST_TIMELINE, segment_name};
    use crate::{Storage, StorageOptions};

    /// The files of a closed database, control file last, and its number.
    fn original(path: &Path) -> (Vec<(String, Vec<u8>)>, u64) {
        let (storage, _) = Storage::open(path, StorageOptions::default()).unwrap();
        storage.shutdown().unwrap();
        let number = storage.system_identifier();
        drop(storage);
        let mut files = Vec::new();
        for directory in [RELATIONS, LOG] {
            for entry in fs::read_dir(path.join(directory)).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{directory}/{}", entry.file_name().display());
                files.push((name, fs::read(entry.path()).unwrap()));
            }
        }
        files.push(("control".to_owned(), fs::read(path.join("control")).unwrap()));
        (files, number)
    }

    fn receive(mut copy: ReceivedCopy, files: &[(String, Vec<u8>)], number: u64) -> Result<()> {
        for directory in DIRECTORIES {
            copy.create_directory(&Path::new(directory).join(""))?;
        }
        for (name, content) in files {
            let mut file = copy.create_file(Path::new(name))?;
            for piece in content.chunks(1 << 20) {
                file.write(piece)?;
            }
            file.finish()?;
        }
        copy.finish(number)
    }

    #[test]
    fn a_copy_becomes_a_standbys_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (files, number) = original(&directory.path().join("primary"));
        let data = directory.path().join("a/standby");
        assert!(copy_is_wanted(&data).unwrap());
        let copy = ReceivedCopy::begin(&data, true).unwrap();
        // It is locked, and not a database.
        let error = Storage::open(&data, StorageOptions::default()).unwrap_err();
        assert!(matches!(error, StorageError::DirectoryInUse { .. }), "{error}");
        receive(copy, &files, number).unwrap();
        assert!(!data.join(UNFINISHED_COPY).exists() && !copy_is_wanted(&data).unwrap());
        let state = crate::files::directory_state::directory_state(&data).unwrap();
        assert_eq!((state.standby, state.system_identifier), (true, number));
        // Written by no server, read by a check.
        let error = Storage::open(&data, StorageOptions::default()).unwrap_err();
        assert!(matches!(error, StorageError::IsStandby { .. }), "{error}");
        assert!(error.to_string().contains("clearway promote"), "{error}");
        // A process that another test has forked holds the lock of the open above until it executes its program.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let opened = loop {
            match Storage::open_read_only(&data, StorageOptions::default()) {
                Err(StorageError::DirectoryInUse { .. }) if std::time::Instant::now() < deadline => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                opened => break opened.unwrap(),
            }
        };
        drop(opened);
        let error = ReceivedCopy::begin(&data, true).unwrap_err();
        assert!(error.to_string().contains("there is a database in it"), "{error}");
    }

    /// The disk fails at each operation in turn; then the copy is made again in the same directory.
    #[test]
    fn a_copy_that_fails_anywhere_is_no_database_and_is_made_again() {
        #[derive(Debug, Default)]
        struct FailsOnce(AtomicU64);

        impl Faults for FailsOnce {
            fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
                let changes = matches!(operation, Operation::Write | Operation::Sync(_) | Operation::Name);
                if changes && self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                Ok(())
            }
        }

        let directory = tempfile::tempdir().unwrap();
        let (mut files, number) = original(&directory.path().join("primary"));
        // One segment's first MiB is enough.
        files.retain(|(name, _)| !name.starts_with(LOG) || name.ends_with(&segment_name(FIRST_TIMELINE, 1)));
        files
            .iter_mut()
            .for_each(|(_, content)| content.truncate(1 << 20));
        let mut failures = 0;
        for number_of_operation in 1.. {
            let data = directory
                .path()
                .join(format!("standby{}", number_of_operation % 2));
            let faults = Arc::new(FailsOnce(AtomicU64::new(number_of_operation)));
            let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults));
            let outcome =
                ReceivedCopy::begin_on(disk, &data, true).and_then(|copy| receive(copy, &files, number));
            let Err(error) = outcome else { break };
            assert_eq!(error.sqlstate(), "53100", "{error}");
            failures += 1;
            if data.join("control").exists() {
                // Only the removal of the marker is missing.
                assert!(data.join(UNFINISHED_COPY).exists());
                fs::remove_dir_all(&data).unwrap();
                continue;
            }
            if data.exists() && data.join(UNFINISHED_COPY).exists() {
                let error = Storage::open(&data, StorageOptions::default()).unwrap_err();
                assert!(error.to_string().contains("was not finished"), "{error}");
            }
            receive(ReceivedCopy::begin(&data, true).unwrap(), &files, number).unwrap();
            assert!(
                crate::files::directory_state::directory_state(&data)
                    .unwrap()
                    .standby
            );
            fs::remove_dir_all(&data).unwrap();
        }
        assert!(failures > 20, "{failures}");
    }

    #[test]
    fn names_that_no_copy_has_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut copy = ReceivedCopy::begin(&directory.path().join("data"), false).unwrap();
        for name in [
            "../evil",
            "base/../../evil",
            "/etc/passwd",
            "base",
            "base/a/b",
            "pg_wal/archive_status",
            "./base/1",
            "backup.unfinished",
            "slots",
            "",
            "base/./1/..",
        ] {
            let error = copy.create_file(Path::new(name)).unwrap_err();
            assert!(
                matches!(error, StorageError::InvalidCopy { .. }),
                "{name}: {error}"
            );
        }
        for name in ["..", "/base", "other", "base/../base", "control"] {
            let error = copy.create_directory(Path::new(name)).unwrap_err();
            assert!(
                matches!(error, StorageError::InvalidCopy { .. }),
                "{name}: {error}"
            );
        }
        let mut control = copy.create_file(Path::new("control")).unwrap();
        control.write(&[1; CONTROL_BYTES_MAX]).unwrap();
        assert!(
            control
                .write(&[1])
                .unwrap_err()
                .to_string()
                .contains("longer than")
        );
    }

    #[test]
    fn what_is_no_copy_is_not_finished_and_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (files, number) = original(&directory.path().join("primary"));
        let data = directory.path().join("data");
        let begin = || ReceivedCopy::begin(&data, false).unwrap();
        let error = receive(begin(), &files[..files.len() - 1], number).unwrap_err();
        assert!(error.to_string().contains("no control file"), "{error}");
        let error = receive(begin(), &files, number + 1).unwrap_err();
        assert!(error.to_string().contains("sends a copy of"), "{error}");
        let error = receive(begin(), &files[files.len() - 1..], number).unwrap_err();
        assert!(error.to_string().contains("is missing"), "{error}");
        fs::write(data.join("mine"), b"").unwrap();
        let error = ReceivedCopy::begin(&data, false).unwrap_err();
        assert!(error.to_string().contains("\"mine\""), "{error}");
        assert!(data.join("mine").exists());
        fs::remove_file(data.join("mine")).unwrap();
        receive(begin(), &files, number).unwrap();
        let foreign = directory.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("hosts"), b"").unwrap();
        assert!(copy_is_wanted(&foreign).is_err() && ReceivedCopy::begin(&foreign, false).is_err());
    }
}
