//! The log of a directory that no server has open, for a question that comes before it is opened: can it follow that
//! server? Nothing in the directory is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, LockHeld, ReadOnlyDisk};
use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, ControlFile};
use crate::files::data_directory::{self, Content, IfMissing};
use crate::open::recovery::{LogToScan, Purpose, ScannedLog};
use crate::page::Lsn;
use crate::wal::SegmentFiles;
use crate::wal::log_digest::{self, LogDigest};
use crate::wal::timeline::{self, History, SharedHistory};

/// The log of a directory, which is locked while this is there.
#[derive(Debug)]
pub struct DirectoryLog {
    dir: PathBuf,
    control: Control,
    device: SegmentFiles,
    begins: Lsn,
    scanned: ScannedLog,
    _lock: LockHeld,
}

impl DirectoryLog {
    /// The log of the database in `dir`; an error if there is none, or a server has it open.
    pub fn open(dir: &Path) -> Result<DirectoryLog> {
        let disk = Arc::new(ReadOnlyDisk::default());
        let (lock, content) = data_directory::enter(&*disk, dir, IfMissing::Refuse, false)?;
        debug_assert_eq!(content, Content::Database, "all else is refused");
        Self::of_entered(disk, dir, lock, false, |_| Purpose::Standby)
    }

    /// The log of the database in `dir`, which is locked. With `fsync`, the control file and the log from its redo position on are
    /// durable then; the log before it is, since the checkpoint is complete.
    pub(crate) fn of_entered(
        disk: Arc<dyn Disk>,
        dir: &Path,
        lock: LockHeld,
        fsync: bool,
        purpose: impl FnOnce(&Control) -> Purpose,
    ) -> Result<DirectoryLog> {
        let (control_file, control) = ControlFile::open(&*disk, dir.join(data_directory::CONTROL), fsync)?;
        data_directory::check_parts(&*disk, dir)?;
        let wal_dir = dir.join(data_directory::LOG);
        let history = SharedHistory::new(timeline::read(&*disk, &wal_dir, control.timeline)?);
        let device = SegmentFiles::open_on_timeline(disk, wal_dir.clone(), fsync, history)
            .map_err(|error| StorageError::io("open", &wal_dir, error))?;
        let scanned = LogToScan {
            device: &device,
            wal_dir: &wal_dir,
            control,
            control_path: control_file.path(),
            purpose: purpose(&control),
            target: None,
        }
        .scan()?;
        Ok(DirectoryLog {
            dir: dir.to_owned(),
            begins: Lsn(device.whole_from(scanned.redo.0)),
            scanned,
            control,
            device,
            _lock: lock,
        })
    }

    /// The identifier of the database.
    pub fn system_identifier(&self) -> u64 {
        self.control.system_identifier
    }

    /// Its history.
    pub fn history(&self) -> Arc<History> {
        self.device.history().get()
    }

    /// The end of its last whole record.
    pub fn end(&self) -> Lsn {
        self.scanned.end
    }

    /// The position from which on it is there.
    pub(crate) fn begins(&self) -> Lsn {
        self.begins
    }

    pub(crate) fn control(&self) -> Control {
        self.control
    }

    /// The first pass over it.
    pub(crate) fn scanned(&self) -> &ScannedLog {
        &self.scanned
    }

    pub(crate) fn device(&self) -> &SegmentFiles {
        &self.device
    }

    /// As [`Storage::log_digest`](crate::Storage::log_digest).
    pub fn digest(&self, start: Lsn, end: Lsn) -> Result<LogDigest> {
        let start = start.max(self.begins);
        let wal_dir = self.dir.join(data_directory::LOG);
        log_digest::digest(&self.device, &wal_dir, start, end.min(self.end()), || Ok(()))
    }

    /// Up to where the log of a server with the history `server` can be that of this directory; an error if that log does
    /// not go on from the whole of this one.
    pub fn common_end(&self, server: &History) -> Result<Lsn> {
        let own = self.history();
        own.end_in(server, &self.dir, self.end())?;
        match server.end_of(own.current()) {
            Some(fork) if self.end() > fork => Err(StorageError::Diverged {
                dir: self.dir.clone(),
                own_timeline: own.current(),
                own_end: self.end(),
                timeline: server.current(),
                fork,
            }),
            _ => Ok(self.end()),
        }
    }
}
