//! Steps 3, 6 and 7: the marker, and the exchange of the log and the control file (K3).
//!
//! ```text
//!   rewind.unfinished
//!     phase fetching|clearing|naming
//!     timeline 2
//!     identity 5f0c3e6a91b2d748      (none for the first timeline)
//! ```
//!
//! The marker is replaced by renaming, and durable before the next step.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::TimelineIdentity;
use crate::disk::{Disk, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::copy_manifest::BACKUP_MANIFEST;
use crate::files::data_directory::{CONTROL, LOG, RELATIONS, UNFINISHED_REWIND};
use crate::files::directory_state::{
    PROMOTE_FAILED, PROMOTE_SIGNAL, PROMOTED_FROM, STANDBY_DIVERGED, STANDBY_SIGNAL,
};
use crate::files::status_journal;
use crate::replication::retention;
use crate::replication::standby_state::acknowledged;
use crate::wal::segment_name::parse_segment_name;
use crate::wal::timeline::timeline_of_history_file;

/// Behind the name of a file that replaces another one, or gets its name, when all are there.
pub(super) const NEW: &str = ".rewound";
/// The files that speak of the directory's former role, or of log that goes.
const OF_FORMER_ROLE: [&str; 9] = [
    PROMOTE_SIGNAL,
    PROMOTE_FAILED,
    PROMOTED_FROM,
    STANDBY_SIGNAL,
    BACKUP_MANIFEST,
    status_journal::NAME,
    acknowledged::NAME,
    retention::SLOTS,
    STANDBY_DIVERGED,
];
/// A marker that is longer is none.
const MARKER_BYTES_MAX: u64 = 4_096;

/// The progress of a rewind, as the marker has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Fetching,
    Clearing,
    Naming,
}

const PHASES: [(Phase, &str); 3] = [
    (Phase::Fetching, "fetching"),
    (Phase::Clearing, "clearing"),
    (Phase::Naming, "naming"),
];

/// The content of the marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) phase: Phase,
    /// Of the server that pages were fetched from.
    pub(super) timeline: u32,
    pub(super) identity: Option<TimelineIdentity>,
}

impl Marker {
    /// The marker of the directory; `None` if there is none.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Marker>> {
        let path = dir.join(UNFINISHED_REWIND);
        let fail = |error| StorageError::io("read", &path, error);
        let file = match disk.open(&path, OpenMode::Existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(fail)?,
        };
        let length = file.length().map_err(fail)?.min(MARKER_BYTES_MAX);
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0).map_err(fail)?;
        match Self::parse(&String::from_utf8_lossy(&bytes)) {
            Some(marker) => Ok(Some(marker)),
            None => Err(StorageError::CorruptFile {
                file: path,
                offset: 0,
                problem: "it does not say how far the rewind is; take a new base backup".to_owned(),
            }),
        }
    }

    fn parse(text: &str) -> Option<Marker> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let phase = field("phase")?;
        Some(Marker {
            phase: PHASES.into_iter().find(|(_, name)| *name == phase)?.0,
            timeline: field("timeline")?.parse().ok()?,
            identity: match field("identity") {
                Some(identity) => Some(identity.parse().ok()?),
                None => None,
            },
        })
    }

    fn text(&self) -> String {
        let name = PHASES.iter().find(|(phase, _)| *phase == self.phase);
        let mut text = format!(
            "phase {}\ntimeline {}\n",
            name.map_or("", |name| name.1),
            self.timeline
        );
        if let Some(identity) = self.identity {
            let _ = writeln!(text, "identity {identity}");
        }
        text
    }

    /// Replaces the marker, durably.
    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path, fsync: bool) -> Result<()> {
        let path = dir.join(UNFINISHED_REWIND);
        write_new(disk, &path, fsync, self.text().as_bytes())?;
        name(disk, &path)?;
        sync_names(disk, dir, fsync)
    }
}

/// Writes a file that is to become `path`.
pub(super) fn write_new(disk: &dyn Disk, path: &Path, fsync: bool, bytes: &[u8]) -> Result<()> {
    let new = new_name(path);
    let fail = |error| StorageError::io("write", &new, error);
    let file = disk.open(&new, OpenMode::Truncate).map_err(fail)?;
    file.write_at(bytes, 0).map_err(fail)?;
    if fsync {
        file.sync_all(SyncPurpose::CopiedFile).map_err(fail)?;
    }
    Ok(())
}

/// The name under which the file is written that becomes `path`.
pub(super) fn new_name(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(NEW);
    name.into()
}

/// Gives a file that was written its name.
pub(super) fn name(disk: &dyn Disk, path: &Path) -> Result<()> {
    let new = new_name(path);
    disk.rename(&new, path)
        .map_err(|error| StorageError::io("rename", &new, error))
}

pub(super) fn sync_names(disk: &dyn Disk, dir: &Path, fsync: bool) -> Result<()> {
    if !fsync {
        return Ok(());
    }
    disk.open_directory(dir)
        .and_then(|directory| directory.sync(SyncPurpose::CopiedNames))
        .map_err(|error| StorageError::io("sync directory", dir, error))
}

/// Removes a file, if it is there.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StorageError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// The names in a directory.
pub(super) fn names(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>> {
    let names = disk
        .list(dir)
        .map_err(|error| StorageError::io("list", dir, error))?;
    Ok(names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// Removes what an interrupted attempt has written under names that nothing has.
pub(super) fn remove_new(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for directory in [LOG, RELATIONS] {
        let directory = dir.join(directory);
        for found in names(disk, &directory)?.iter().filter(|name| name.ends_with(NEW)) {
            remove(disk, &directory.join(found))?;
        }
    }
    remove(disk, &new_name(&dir.join(CONTROL)))
}

/// Steps 6 and 7, from where the marker says. Everything else is durable.
pub(super) fn complete(disk: &dyn Disk, dir: &Path, fsync: bool, mut marker: Marker) -> Result<()> {
    let log = dir.join(LOG);
    if marker.phase != Phase::Naming {
        marker.phase = Phase::Clearing;
        marker.write(disk, dir, fsync)?;
        for found in names(disk, &log)?.iter().filter(|name| is_of_the_log(name)) {
            remove(disk, &log.join(found))?;
        }
        for found in OF_FORMER_ROLE {
            remove(disk, &dir.join(found))?;
        }
        sync_names(disk, &log, fsync)?;
        sync_names(disk, dir, fsync)?;
        marker.phase = Phase::Naming;
        marker.write(disk, dir, fsync)?;
    }
    for found in names(disk, &log)? {
        if let Some(final_name) = found.strip_suffix(NEW) {
            name(disk, &log.join(final_name))?;
        }
    }
    sync_names(disk, &log, fsync)?;
    let control = dir.join(CONTROL);
    match name(disk, &control) {
        // It has its name already.
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        named => named?,
    }
    sync_names(disk, dir, fsync)?;
    remove(disk, &dir.join(UNFINISHED_REWIND))?;
    sync_names(disk, dir, fsync)
}

/// True for segments and history files of the log that is replaced. Those that replace it have other names yet.
fn is_of_the_log(name: &str) -> bool {
    parse_segment_name(name).is_some() || timeline_of_history_file(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;
    use crate::page::Lsn;
    use crate::wal::timeline::History;

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Marker::read(&NativeDisk, dir.path()).unwrap(), None);
        let server = History::first().forked(2, Lsn(8), "promoted");
        for (phase, _) in PHASES {
            for server in [&server, &History::first()] {
                let marker = Marker {
                    phase,
                    ..Marker::of(server)
                };
                marker.write(&NativeDisk, dir.path(), true).unwrap();
                assert_eq!(
                    Marker::read(&NativeDisk, dir.path()).unwrap(),
                    Some(marker.clone())
                );
                assert!(marker.is_of(server));
                assert!(!marker.is_of(&History::first().forked(2, Lsn(8), "promoted")));
            }
        }
        for text in [
            "",
            "phase other\ntimeline 2\n",
            "phase naming\n",
            "phase naming\ntimeline x\n",
        ] {
            std::fs::write(dir.path().join(UNFINISHED_REWIND), text).unwrap();
            let error = Marker::read(&NativeDisk, dir.path()).unwrap_err();
            assert!(error.to_string().contains(UNFINISHED_REWIND), "{text:?}: {error}");
        }
    }
}
