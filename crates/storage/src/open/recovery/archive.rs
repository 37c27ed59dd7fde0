//! Taking the log that a copy lacks from an archive, which is a directory that `pg_receivewal` writes.
//!
//! ```text
//!   directory   1/4 ───── 1/5 ──┐0000                          a backup's own log ends at E
//!   archive               1/5 ──┼────── 1/6 ──── 1/7.partial
//!   result      1/4 ───── 1/5 ──┼────── 1/6 ──── 1/7           the archive's from E on
//! ```
//!
//! 1. Read the directory's own log from the redo position to its end E.
//! 2. Copy the archive's history files, and choose the timeline: the highest that comes from the directory's, leaves it
//!    behind E, and whose first segment is there.
//! 3. From the segment that holds E on, copy the archive's segments, until one is missing. Each is written beside its
//!    name and made durable before it gets the name.
//!
//! The directory's own log before E stays. The simpler version, to copy each file that the directory lacks, would miss
//! the rest of the segment that holds E: a backup's last segment has its full name and its full length, and zeros where
//! the archive has log. To prefer the archive's files always would lose log where the archive is behind.
//!
//! A segment does not say which database it is of. What can be told: in the segment that holds E the archive must have
//! the same bytes before E (or end there), and every record names its position and has a checksum. If the directory's
//! own log ends at a segment's first byte, the first of these says nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{self, Disk, DiskFile, OpenMode, ReadOnlyDisk, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::control_file::Control;
use crate::page::Lsn;
use crate::wal::reader::LogReader;
use crate::wal::segment_name::{
    PARTIAL_SUFFIX, parse_segment_name, segment_name, segment_name_in, timeline_of_segment,
};
use crate::wal::timeline::{self, History, NEW_SUFFIX, SharedHistory, timeline_of_history_file};
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

/// Suffixes that `pg_receivewal` gives the names of segments that it compresses.
const COMPRESSED_SUFFIXES: [&str; 2] = [".gz", ".lz4"];

/// A segment that an archive lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    /// Its name.
    pub(super) missing: String,
    /// The next one that is there.
    pub(super) next: String,
}

/// The log of a directory, with what an archive has added.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The history of the log.
    pub(super) history: History,
    /// The directory's files may hold changes up to here.
    pub(super) needed: Lsn,
    pub(super) gap: Option<Gap>,
}

/// A place of log: the directory's own, or an archive.
struct Place<'a> {
    dir: &'a Path,
    /// Each segment's file; a whole one rather than one that is not received to its end.
    segments: BTreeMap<(u32, u64), PathBuf>,
    compressed: BTreeMap<(u32, u64), PathBuf>,
    histories: Vec<u32>,
}

/// Brings into `wal_dir` what `archive` has of the log behind its own end; up to the position `upto`, if there is one.
pub(super) fn fetch(
    disk: &Arc<dyn Disk>,
    wal_dir: &Path,
    fsync: bool,
    control: &Control,
    archive: Option<&Path>,
    upto: Option<Lsn>,
) -> Result<Fetched> {
    let own = timeline::read(&**disk, wal_dir, control.timeline)?;
    let (files, own_end) = own_log(disk, wal_dir, fsync, &own, control)?;
    // Its files were copied while they were written to: that is over where the backup ends. Those of a server that has
    // stopped were written to as long as its log.
    let backup_end = Some(control.backup_end).filter(|end| *end > Lsn(0));
    let needed = backup_end.unwrap_or(own_end).max(control.log_end);
    let Some(archive) = archive else {
        return Ok(Fetched {
            history: own,
            needed,
            gap: None,
        });
    };
    let archive = Place::list(&**disk, archive)?;
    copy_histories(&**disk, wal_dir, fsync, &archive)?;
    let directory = Place::list(&**disk, wal_dir)?;
    let history = newest_history(&**disk, &directory, &archive, own, needed.max(own_end))?;
    let mut number = own_end.0 / SEGMENT_SIZE;
    let last = upto.map_or(u64::MAX, |position| position.0 / SEGMENT_SIZE + 1);
    while number <= last {
        let Some(segment) = archive.read(&history, number)? else {
            break;
        };
        let begins = number * SEGMENT_SIZE;
        if begins < own_end.0 {
            let from = control.redo.0.max(begins);
            let mut own = vec![0; own_end.0.saturating_sub(from) as usize];
            let read = files.read(from, &mut own);
            let read = read.map_err(|error| StorageError::io("read the log in", wal_dir, error))?;
            own.truncate(read);
            let within = (from - begins) as usize;
            if !archive.agrees(&history, number, &segment, within, &own)? {
                break;
            }
        }
        write_segment(
            &**disk,
            wal_dir,
            fsync,
            &segment_name_in(&history, number),
            &segment,
        )?;
        number += 1;
    }
    let gap = (number <= last)
        .then(|| archive.next_after(&history, number))
        .flatten()
        .map(|next| Gap {
            missing: segment_name_in(&history, number),
            next,
        });
    Ok(Fetched { history, needed, gap })
}

/// The directory's own log and its end.
fn own_log(
    disk: &Arc<dyn Disk>,
    wal_dir: &Path,
    fsync: bool,
    history: &History,
    control: &Control,
) -> Result<(SegmentFiles, Lsn)> {
    let fail = |error| StorageError::io("read the log in", wal_dir, error);
    let shared = SharedHistory::new(history.clone());
    let files = SegmentFiles::open_on_timeline(Arc::clone(disk), wal_dir.to_owned(), fsync, shared);
    let files = files.map_err(fail)?;
    let mut reader = LogReader::new(&files, control.redo);
    while reader.next_record().map_err(fail)?.is_some() {}
    let end = reader.position();
    Ok((files, end))
}

fn copy_histories(disk: &dyn Disk, wal_dir: &Path, fsync: bool, archive: &Place<'_>) -> Result<()> {
    for &number in &archive.histories {
        if timeline::read_text(disk, wal_dir, number)?.is_none()
            && let Some(text) = timeline::read_text(&ReadOnlyDisk::default(), archive.dir, number)?
        {
            timeline::write(disk, wal_dir, fsync, number, &text)?;
        }
    }
    Ok(())
}

/// The history to follow, of those that leave `own` at `needed` or behind it.
fn newest_history(
    disk: &dyn Disk,
    directory: &Place<'_>,
    archive: &Place<'_>,
    own: History,
    needed: Lsn,
) -> Result<History> {
    let mut candidates = directory.histories.clone();
    candidates.sort_unstable_by(|one, other| other.cmp(one));
    for number in candidates {
        if number <= own.current() {
            break;
        }
        let history = timeline::read(disk, directory.dir, number)?;
        let leaves_in_time = history.end_of(own.current()).is_some_and(|end| end >= needed);
        let begins = history.ended().last().map_or(0, |last| last.end.0) / SEGMENT_SIZE;
        let first = (timeline_of_segment(&history, begins), begins);
        let is_there = directory.has(first) || archive.has(first);
        if history.continues(&own) && leaves_in_time && is_there {
            return Ok(history);
        }
    }
    Ok(own)
}

impl<'a> Place<'a> {
    fn list(disk: &dyn Disk, dir: &'a Path) -> Result<Place<'a>> {
        let names = disk
            .list(dir)
            .map_err(|error| StorageError::io("list", dir, error))?;
        let mut place = Place {
            dir,
            segments: BTreeMap::new(),
            compressed: BTreeMap::new(),
            histories: Vec::new(),
        };
        for name in names.iter().filter_map(|name| name.to_str()) {
            let path = dir.join(name);
            let unpacked = COMPRESSED_SUFFIXES
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix));
            if let Some(number) = timeline_of_history_file(name) {
                place.histories.push(number);
            } else if let Some(segment) = parse_segment_name(name) {
                place.segments.insert(segment, path);
            } else if let Some(segment) = name.strip_suffix(PARTIAL_SUFFIX).and_then(parse_segment_name) {
                place.segments.entry(segment).or_insert(path);
            } else if let Some(segment) = unpacked
                .map(|name| name.strip_suffix(PARTIAL_SUFFIX).unwrap_or(name))
                .and_then(parse_segment_name)
            {
                place.compressed.insert(segment, path);
            }
        }
        Ok(place)
    }

    fn has(&self, segment: (u32, u64)) -> bool {
        self.segments.contains_key(&segment) || self.compressed.contains_key(&segment)
    }

    /// The content of segment `number`, with zeros where the file ends before the segment does; `None` if there is none.
    fn read(&self, history: &History, number: u64) -> Result<Option<Vec<u8>>> {
        let segment = (timeline_of_segment(history, number), number);
        let Some(path) = self.segments.get(&segment) else {
            return match self.compressed.get(&segment) {
                Some(file) => Err(StorageError::CompressedSegment { file: file.clone() }),
                None => Ok(None),
            };
        };
        let fail = |error| StorageError::io("read", path, error);
        // Not the directory's disk, which opens files to write them too: an archive may be another user's. A new one for
        // each file, since it keeps what it has opened.
        let file = ReadOnlyDisk::default()
            .open(path, OpenMode::Existing)
            .map_err(fail)?;
        let mut bytes = vec![0; SEGMENT_SIZE as usize];
        file.read_at(&mut bytes, 0).map_err(fail)?;
        Ok(Some(bytes))
    }

    /// True if `segment` goes on where `own`, the directory's own log from the offset `from` on, ends. `false` if it
    /// ends before. An error if it is another log.
    fn agrees(
        &self,
        history: &History,
        number: u64,
        segment: &[u8],
        from: usize,
        own: &[u8],
    ) -> Result<bool> {
        let theirs = &segment[from..from + own.len()];
        let Some(differs) = theirs.iter().zip(own).position(|(theirs, own)| theirs != own) else {
            return Ok(true);
        };
        let offset = from + differs;
        if segment[offset..].iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let name = segment_name(timeline_of_segment(history, number), number);
        let file = self.segments.get(&(timeline_of_segment(history, number), number));
        Err(StorageError::ForeignArchive {
            file: file.cloned().unwrap_or_else(|| self.dir.join(name)),
            offset: offset as u64,
            position: Lsn(number * SEGMENT_SIZE + offset as u64),
        })
    }

    /// The name of the first segment behind `number` that is there.
    fn next_after(&self, history: &History, number: u64) -> Option<String> {
        self.segments
            .keys()
            .chain(self.compressed.keys())
            .filter(|(timeline, later)| *later > number && *timeline == timeline_of_segment(history, *later))
            .min_by_key(|(_, later)| *later)
            .map(|(timeline, later)| segment_name(*timeline, *later))
    }
}

/// Makes a segment with this content.
fn write_segment(disk: &dyn Disk, wal_dir: &Path, fsync: bool, name: &str, content: &[u8]) -> Result<()> {
    let (path, unfinished) = (wal_dir.join(name), wal_dir.join(name.to_owned() + NEW_SUFFIX));
    let written: io::Result<Arc<dyn DiskFile>> = (|| {
        let file = disk.open(&unfinished, OpenMode::Truncate)?;
        file.write_at(content, 0)?;
        Ok(file)
    })();
    let file = written.map_err(|error| StorageError::io("write", &unfinished, error))?;
    if fsync && let Err(error) = file.sync_all(SyncPurpose::LogSegment) {
        disk::sync_failed(&unfinished, &error);
    }
    // The names are made durable when the log is opened, before anything is written.
    disk.rename(&unfinished, &path)
        .map_err(|error| StorageError::io("rename", &unfinished, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive whose newest segment is not whole and whose first is compressed.
    #[test]
    fn an_archives_files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "000000010000000000000003.gz",
            "000000010000000000000004",
            "000000010000000000000004.partial",
            "000000020000000000000005.partial",
            "00000002.history",
            "000000010000000000000006.backup",
            "archive_status",
        ] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let place = Place::list(&disk::NativeDisk, dir.path()).unwrap();
        assert_eq!(place.histories, [2]);
        let found: Vec<_> = place.segments.keys().copied().collect();
        assert_eq!(found, [(1, 4), (2, 5)]);
        assert!(place.segments[&(1, 4)].ends_with("000000010000000000000004"));
        assert!(place.has((1, 3)) && !place.has((1, 6)));
        let history = History::first();
        let compressed = place.read(&history, 3).unwrap_err();
        assert!(
            matches!(compressed, StorageError::CompressedSegment { .. }),
            "{compressed}"
        );
        assert_eq!(place.read(&history, 6).unwrap(), None);
        assert_eq!(
            place.read(&history, 4).unwrap().map(|bytes| bytes.len()),
            Some(16 << 20)
        );
        // Of this history, segment 5 on timeline 2 is none.
        assert_eq!(
            place.next_after(&history, 3).as_deref(),
            Some("000000010000000000000004")
        );
        assert_eq!(place.next_after(&history, 4), None);
    }
}
