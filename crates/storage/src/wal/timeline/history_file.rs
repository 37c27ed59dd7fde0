//! The history files in the log's directory, beside its segments.
//!
//! A file is written beside its name, made durable, and then renamed, so there is never a part of one. Timeline 1 has
//! none.

use std::io;
use std::path::{Path, PathBuf};

use super::{FIRST_TIMELINE, History};
use crate::disk::{self, Disk, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};

/// No history file is longer: PostgreSQL's programs take no more than this either.
const BYTES_MAX: u64 = 1 << 20;
/// Behind the name of a file in the log's directory that is not whole yet. The next start removes such files.
pub(crate) const NEW_SUFFIX: &str = ".new";

/// The name of the history file of `timeline`.
pub fn history_file_name(timeline: u32) -> String {
    format!("{timeline:08X}.history")
}

/// Whose history file has this name; `None` if it is not that of one.
pub fn timeline_of_history_file(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".history")?;
    let timeline = u32::from_str_radix(digits, 16).ok()?;
    (history_file_name(timeline) == name).then_some(timeline)
}

/// The highest timeline of which the directory has a history file, or `least`.
pub(crate) fn newest_named<'a>(names: impl Iterator<Item = &'a str>, least: u32) -> u32 {
    names.filter_map(timeline_of_history_file).fold(least, u32::max)
}

/// The content of the history file of `timeline` in `wal_dir`; `None` if there is none.
pub(crate) fn read_text(disk: &dyn Disk, wal_dir: &Path, timeline: u32) -> Result<Option<String>> {
    let path = wal_dir.join(history_file_name(timeline));
    let fail = |error| StorageError::io("read", &path, error);
    let file = match disk.open(&path, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(fail)?,
    };
    let length = file.length().map_err(fail)?;
    if length > BYTES_MAX {
        return Err(StorageError::CorruptFile {
            file: path.clone(),
            offset: BYTES_MAX,
            problem: format!("a history file of {length} bytes cannot be right"),
        });
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).map_err(fail)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The history of `timeline`, whose log is in `wal_dir`.
pub(crate) fn read(disk: &dyn Disk, wal_dir: &Path, timeline: u32) -> Result<History> {
    if timeline == FIRST_TIMELINE {
        return Ok(History::first());
    }
    let path = || wal_dir.join(history_file_name(timeline));
    let Some(text) = read_text(disk, wal_dir, timeline)? else {
        return Err(StorageError::NoHistoryFile {
            file: path(),
            timeline,
        });
    };
    History::parse(&text, timeline).map_err(|problem| malformed(path(), problem))
}

pub(super) fn malformed(file: PathBuf, problem: super::HistoryProblem) -> StorageError {
    StorageError::MalformedHistory {
        file,
        line: problem.line,
        problem: problem.problem,
    }
}

/// Writes `text`, the history of `timeline`, durably.
pub(crate) fn write(disk: &dyn Disk, wal_dir: &Path, fsync: bool, timeline: u32, text: &str) -> Result<()> {
    let path = wal_dir.join(history_file_name(timeline));
    let unfinished = wal_dir.join(history_file_name(timeline) + NEW_SUFFIX);
    let fail = |error| StorageError::io("write", &path, error);
    let file = disk.open(&unfinished, OpenMode::Truncate).map_err(fail)?;
    file.write_at(text.as_bytes(), 0).map_err(fail)?;
    let synced = |synced: io::Result<()>| synced.unwrap_or_else(|error| disk::sync_failed(&path, &error));
    if fsync {
        synced(file.sync_all(SyncPurpose::TimelineHistory));
    }
    // Opened first: after the rename nothing may fail but the sync itself.
    let names = disk.open_directory(wal_dir).map_err(fail)?;
    disk.rename(&unfinished, &path).map_err(fail)?;
    if fsync {
        synced(names.sync(SyncPurpose::TimelineHistory));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;
    use crate::page::Lsn;

    #[test]
    fn names_are_those_of_postgresql() {
        assert_eq!(history_file_name(0x1A), "0000001A.history");
        assert_eq!(timeline_of_history_file("0000001A.history"), Some(0x1A));
        for name in [
            "0000001a.history",
            "1A.history",
            "+000001A.history",
            "0000001A.history.new",
            "000000010000000000000001",
            "",
        ] {
            assert_eq!(timeline_of_history_file(name), None, "{name}");
        }
    }

    #[test]
    fn a_written_history_is_found_again_and_a_missing_or_broken_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::first().forked(2, Lsn(0x500_0028), "promoted");
        let missing = read(&NativeDisk, dir.path(), 2).unwrap_err();
        assert!(missing.to_string().contains("00000002.history"), "{missing}");
        assert_eq!(missing.sqlstate(), "58P01");
        write(&NativeDisk, dir.path(), true, 2, &history.to_text()).unwrap();
        assert_eq!(read(&NativeDisk, dir.path(), 2).unwrap(), history);
        assert_eq!(read(&NativeDisk, dir.path(), 1).unwrap(), History::first());
        let names = NativeDisk.list(dir.path()).unwrap();
        assert_eq!(names, ["00000002.history"], "nothing else stays");
        std::fs::write(dir.path().join("00000002.history"), "1\t5000028\n").unwrap();
        let broken = read(&NativeDisk, dir.path(), 2).unwrap_err().to_string();
        assert!(
            broken.contains("00000002.history") && broken.contains("line 1"),
            "{broken}"
        );
    }
}
