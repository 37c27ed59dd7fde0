//! The control file: where recovery begins, and the proof that a directory is a database.
//!
//! ```text
//!        0 ┬─────────────────────────────────────────────────────────┐
//!          │ copy of even generations, 512 bytes                      │
//!     8192 ┼─────────────────────────────────────────────────────────┤
//!          │ copy of odd generations, 512 bytes                       │
//!          └─────────────────────────────────────────────────────────┘
//!   a copy: magic, version, generation, redo, next xid, next relation, state,
//!           end of the log, system identifier, end of the backup, timeline (8 bytes each), …, CRC-32C
//! ```
//!
//! The two copies are written in turn, and the valid one of the higher generation counts. They lie 8 KiB
//! apart, so that no sector or memory page holds both: a write that damages all of its own sector leaves the
//! other copy.
//!
//! - R1: a directory without a valid copy is never taken for an empty database. The file gets its name when
//!   its first copy is on disk, and before the directory holds anything else; so the process that made `base`
//!   or `pg_wal` had made this file before.
//! - R2: magic, version and checksum lie in the same place in every version of the format, so that a
//!   directory of another version is reported as one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::Xid;

use crate::disk::{self, Disk, DiskFile, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::page::{Lsn, RelId, get_u32, get_u64};
use crate::wal::segment_name::FIRST_TIMELINE;

const COPY_SIZE: usize = 512;
/// Offsets of the copies.
const COPIES: [u64; 2] = [0, 8192];
/// Offsets of the copies in earlier versions.
const EARLIER_COPIES: [u64; 1] = [512];
const MAGIC: u64 = u64::from_le_bytes(*b"CLEARWAY");
/// The version of everything in a data directory: control file, log and pages.
pub(crate) const VERSION: u64 = 6;

/// The state in which a data directory was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Open, or not closed in order.
    Running,
    /// Shut down in order: the log ends at `redo` and one checkpoint record.
    Clean,
    /// Being made: no session has ever used it.
    Initialising,
    /// A standby's: its log is a copy of another server's, and only a promotion makes a database of its own of it.
    Standby,
}

impl State {
    fn from_word(word: u64) -> Option<State> {
        [State::Running, State::Clean, State::Initialising, State::Standby]
            .into_iter()
            .find(|state| *state as u64 == word)
    }
}

/// The content of the control file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// Recovery reads the log from here.
    pub(crate) redo: Lsn,
    /// The log holds whole records up to here at least.
    pub(crate) log_end: Lsn,
    /// All xids below were handed out before `redo`.
    pub(crate) next_xid: Xid,
    /// All relation numbers below were handed out before `redo`.
    pub(crate) next_rel: u32,
    pub(crate) state: State,
    /// The identifier of the database. Programs that copy its log compare it.
    pub(crate) system_identifier: u64,
    /// In a backup: the log must go on to here, since the copied files hold changes that were logged before. Zero
    /// in a directory that was recovered once.
    pub(crate) backup_end: Lsn,
    /// The timeline that the log is on: 1, and another one after each promotion.
    pub(crate) timeline: u32,
}

/// A control file that says this.
pub(crate) fn image(control: Control) -> Vec<u8> {
    let mut bytes = vec![0; COPIES[1] as usize];
    bytes.extend(control.encode(1));
    bytes
}

/// The content of a control file's bytes, which are to become the file `path`.
pub(crate) fn of_image(bytes: &[u8], path: &Path) -> Result<Control> {
    let copies: Vec<[u8; COPY_SIZE]> = COPIES
        .into_iter()
        .chain(EARLIER_COPIES)
        .filter_map(|offset| bytes.get(offset as usize..)?.first_chunk().copied())
        .collect();
    newest(&copies, path).map(|(_, control)| control)
}

/// The valid copy of the highest generation.
fn newest(copies: &[[u8; COPY_SIZE]], path: &Path) -> Result<(u64, Control)> {
    let mut newest: Option<(u64, Control)> = None;
    let mut other_version = None;
    for copy in copies {
        match Control::decode(copy) {
            Copy::Valid { generation, control } if newest.is_none_or(|(newer, _)| generation > newer) => {
                newest = Some((generation, control));
            }
            Copy::OtherVersion(version) => other_version = Some(version),
            Copy::Valid { .. } | Copy::Invalid => {}
        }
    }
    match (newest, other_version) {
        (Some(newest), _) => Ok(newest),
        (None, Some(found)) => Err(StorageError::OtherVersion {
            file: path.to_owned(),
            found,
            supported: VERSION,
        }),
        (None, None) => {
            let problem = "neither of its two copies is valid, so it cannot be known where recovery begins; \
                restore the directory from a backup (nothing in it was changed)";
            Err(StorageError::CorruptFile {
                file: path.to_owned(),
                offset: 0,
                problem: problem.into(),
            })
        }
    }
}

#[derive(Debug)]
pub(crate) struct ControlFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    fsync: bool,
    generation: u64,
    /// Its content.
    content: Control,
}

/// The finding where a copy is expected.
enum Copy {
    Valid { generation: u64, control: Control },
    OtherVersion(u64),
    Invalid,
}

impl Control {
    /// A database that holds nothing yet.
    pub(crate) const fn new(log_start: Lsn, system_identifier: u64) -> Control {
        Control {
            redo: log_start,
            log_end: log_start,
            next_xid: Xid::FIRST_NORMAL,
            next_rel: RelId::FIRST_NORMAL.0,
            state: State::Initialising,
            system_identifier,
            backup_end: Lsn(0),
            timeline: FIRST_TIMELINE,
        }
    }

    /// A copy as the file has it.
    fn encode(&self, generation: u64) -> [u8; COPY_SIZE] {
        let mut copy = [0; COPY_SIZE];
        let words = [
            MAGIC,
            VERSION,
            generation,
            self.redo.0,
            self.next_xid.0,
            u64::from(self.next_rel),
            self.state as u64,
            self.log_end.0,
            self.system_identifier,
            self.backup_end.0,
            u64::from(self.timeline),
        ];
        for (word, place) in words.iter().zip(copy.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c::crc32c(&copy[..COPY_SIZE - 4]);
        copy[COPY_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
        copy
    }

    fn decode(copy: &[u8; COPY_SIZE]) -> Copy {
        // R2.
        if get_u64(copy, 0) != MAGIC || get_u32(copy, COPY_SIZE - 4) != crc32c::crc32c(&copy[..COPY_SIZE - 4])
        {
            return Copy::Invalid;
        }
        if get_u64(copy, 8) != VERSION {
            return Copy::OtherVersion(get_u64(copy, 8));
        }
        let Some(state) = State::from_word(get_u64(copy, 48)) else {
            return Copy::Invalid;
        };
        Copy::Valid {
            generation: get_u64(copy, 16),
            control: Control {
                redo: Lsn(get_u64(copy, 24)),
                next_xid: Xid(get_u64(copy, 32)),
                next_rel: get_u64(copy, 40) as u32,
                state,
                log_end: Lsn(get_u64(copy, 56)),
                system_identifier: get_u64(copy, 64),
                backup_end: Lsn(get_u64(copy, 72)),
                timeline: get_u64(copy, 80) as u32,
            },
        }
    }
}

impl ControlFile {
    /// Makes the control file of a new database, in a directory that holds nothing else (R1).
    pub(crate) fn create(disk: &dyn Disk, path: PathBuf, fsync: bool, control: Control) -> Result<Self> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ControlFile);
        let unfinished = path.with_extension("new");
        let file = disk
            .open(&unfinished, OpenMode::Truncate)
            .map_err(|error| StorageError::io("create", &unfinished, error))?;
        let mut made = Self {
            file,
            path: unfinished.clone(),
            fsync,
            generation: 0,
            content: control,
        };
        made.write(control)?;
        disk.rename(&unfinished, &path)
            .map_err(|error| StorageError::io("rename", &unfinished, error))?;
        made.path = path;
        Ok(made)
    }

    /// Opens the control file of a database.
    pub(crate) fn open(disk: &dyn Disk, path: PathBuf, fsync: bool) -> Result<(Self, Control)> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ControlFile);
        let fail = |action, error| StorageError::io(action, &path, error);
        let file = disk
            .open(&path, OpenMode::Existing)
            .map_err(|error| fail("open", error))?;
        let mut copies = Vec::new();
        for offset in COPIES.into_iter().chain(EARLIER_COPIES) {
            let mut copy = [0; COPY_SIZE];
            file.read_at(&mut copy, offset)
                .map_err(|error| fail("read", error))?;
            copies.push(copy);
        }
        let (generation, control) = newest(&copies, &path)?;
        if fsync {
            // The process that wrote this copy may have been killed before it synced it. The next copy
            // overwrites the other one, which until then is the only one on disk.
            file.sync_all(SyncPurpose::ControlFileFound)
                .map_err(|error| fail("sync", error))?;
        }
        let opened = Self {
            file,
            path,
            fsync,
            generation,
            content: control,
        };
        Ok((opened, control))
    }

    /// Writes the next copy and makes it durable.
    pub(crate) fn write(&mut self, control: Control) -> Result<()> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ControlFile);
        let generation = self.generation + 1;
        let offset = COPIES[(generation % 2) as usize];
        let written = self.file.write_at(&control.encode(generation), offset);
        // After an error this copy may be torn. The generation stays, so the next attempt overwrites it and
        // not the other.
        written.map_err(|error| StorageError::io("write", &self.path, error))?;
        if self.fsync
            && let Err(error) = self.file.sync_all(SyncPurpose::ControlFile)
        {
            // The next copy would overwrite the last good one.
            disk::sync_failed(&self.path, &error);
        }
        self.generation = generation;
        self.content = control;
        Ok(())
    }

    /// Its content.
    pub(crate) fn content(&self) -> Control {
        self.content
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::disk::{Faults, FaultyDisk, NativeDisk, Operation};

    fn control(redo: u64) -> Control {
        Control {
            redo: Lsn(redo),
            log_end: Lsn(redo + 8),
            next_xid: Xid(5),
            next_rel: 20,
            state: State::Running,
            system_identifier: 7,
            backup_end: Lsn(0),
            timeline: FIRST_TIMELINE,
        }
    }

    /// The position in the opened file, or the error.
    fn opened(path: &Path) -> Result<u64> {
        let (_, control) = ControlFile::open(&NativeDisk, path.to_owned(), true)?;
        Ok(control.redo.0)
    }

    /// If the 4 KiB around one copy are damaged in any way, the other copy counts.
    #[test]
    fn a_damaged_copy_leaves_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let mut file = ControlFile::create(&NativeDisk, path.clone(), true, control(100)).unwrap();
        file.write(control(200)).unwrap();
        assert_eq!(opened(&path).unwrap(), 200);
        // Generation 2 lies in the first copy.
        file.file.write_at(&[0xFF; 4096], 0).unwrap();
        assert_eq!(opened(&path).unwrap(), 100);
        file.file.write_at(&[0xFF; 4096], 8192).unwrap();
        let error = opened(&path).unwrap_err();
        assert!(matches!(error, StorageError::CorruptFile { .. }), "{error}");
    }

    /// A crash in the middle of a write leaves the front of the new copy before the rest of the old one.
    #[test]
    fn a_copy_that_was_half_written_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let mut file = ControlFile::create(&NativeDisk, path.clone(), true, control(100)).unwrap();
        file.write(control(200)).unwrap();
        file.file.write_at(&control(300).encode(4)[..32], 0).unwrap();
        assert_eq!(opened(&path).unwrap(), 100);
    }

    #[test]
    fn an_empty_control_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        std::fs::write(&path, b"").unwrap();
        let error = opened(&path).unwrap_err();
        assert!(matches!(error, StorageError::CorruptFile { .. }), "{error}");
    }

    /// Version 1 had its copies at 0 and 512, and began with the odd generation.
    #[test]
    fn another_version_is_named() {
        for offset in [0_usize, 512] {
            let mut copy = control(100).encode(1);
            copy[8..16].copy_from_slice(&1_u64.to_le_bytes());
            let sum = crc32c::crc32c(&copy[..COPY_SIZE - 4]);
            copy[COPY_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("control");
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(&copy);
            std::fs::write(&path, bytes).unwrap();
            let error = opened(&path).unwrap_err();
            assert!(
                matches!(
                    error,
                    StorageError::OtherVersion {
                        found: 1,
                        supported: VERSION,
                        ..
                    }
                ),
                "{error}"
            );
        }
    }

    /// Writes fail while the flag is set.
    #[derive(Debug, Default)]
    struct Failing(AtomicBool);

    impl Faults for Failing {
        fn before(&self, operation: Operation, _path: &Path) -> std::io::Result<()> {
            match operation {
                Operation::Write if self.0.load(Ordering::Relaxed) => Err(std::io::Error::other("refused")),
                _ => Ok(()),
            }
        }
    }

    /// Writing a copy fails once. The one after that must not overwrite the newest one.
    #[test]
    fn a_write_that_fails_does_not_move_on_to_the_other_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let failing = Arc::new(Failing::default());
        let disk = FaultyDisk::new(Arc::new(NativeDisk), failing.clone());
        let mut file = ControlFile::create(&disk, path.clone(), true, control(100)).unwrap();
        file.write(control(200)).unwrap();
        failing.0.store(true, Ordering::Relaxed);
        file.write(control(300)).unwrap_err();
        failing.0.store(false, Ordering::Relaxed);
        file.write(control(300)).unwrap();
        assert_eq!(opened(&path).unwrap(), 300);
        // The copy of 300 is lost: what counts now is the one before it.
        file.file
            .write_at(&[0xFF; COPY_SIZE], COPIES[(file.generation % 2) as usize])
            .unwrap();
        assert_eq!(opened(&path).unwrap(), 200);
    }
}
