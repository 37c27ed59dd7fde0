//! The device that the log is written to.
//!
//! In production: segment files of 16 MiB, named by their number and the timeline that they end on (`segment_name`). A
//! segment is filled with zeros before it is used, so that writing to it never needs space and syncing it never needs
//! metadata; segments that recovery no longer needs are renamed to be future ones.
//!
//! # Segments of other timelines
//! A number may be there under several timelines: before and after a promotion, or because an archive was copied into
//! the directory. The one whose name the directory's history gives to that number is the log (R2 of `timeline`). The
//! others are *stale*: they are never read, stay as they are, and are removed when the log before them is.
//!
//! A new timeline ([`SegmentFiles::prepare_timeline`], [`SegmentFiles::adopt`]) changes the names of the segment that
//! holds the fork and of all behind it. The former files stay until the control file names the new timeline, and are
//! stale from then on:
//!
//! ```text
//!                      fork
//!   before  1/4   1/5 ───┼───   1/6 1/7          1/6 and 1/7 may hold log that the new timeline has not got
//!   made          2/5 ───┘0000                   a copy up to the fork, zeros behind it
//!   after   1/4   2/5           2/6 2/7 …        made when the log needs room; stale: 1/5 1/6 1/7
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use clearway_machine::{Native, WaitEvent, WaitScope};

use super::log_sync::{BLOCK, BlockWriter, LogSyncVariant};
use super::segment_descriptors::{OpenSegment, Segment, close_idle};
use super::segment_name::{
    FIRST_SEGMENT, PARTIAL_SUFFIX, SEGMENT_SIZE, parse_segment_name, segment_name, timeline_of_segment,
};
use crate::disk::{self, Disk, DiskDirectory, DiskFile, OpenMode, SyncPurpose};
use crate::page::Lsn;
use crate::wal::timeline::{History, NEW_SUFFIX, SharedHistory, newest_named};

/// The least and the most future segments kept when old ones are recycled. In between, as many are kept as
/// there were between the last two checkpoints, since the next one will need about the same number.
const SPARE_MIN: u64 = 4;
const SPARE_MAX: u64 = 64;

/// The device under the log. Positions are bytes from the log's beginning.
pub trait LogDevice: Send + Sync + std::fmt::Debug {
    /// Makes room so that writing up to `position` needs no space. An error leaves everything as it was.
    fn make_room(&self, position: u64) -> io::Result<()>;
    /// Writes `bytes` at `position`.
    fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes durable what was written between the two positions. One sync at a time.
    fn sync(&self, from: u64, to: u64) -> io::Result<()>;
    /// As [`sync`](Self::sync), while syncs in the other lanes may be in progress: [`SYNC_LANES`](super::SYNC_LANES) in all, one at a time
    /// in each. Lane 0 is that of `sync`.
    ///
    /// A failure to keep bytes that syncs in several lanes are to make durable is reported to each of these. A device
    /// that cannot say so, since it reports a failure once, needs a handle of its own for each lane. The default is right for
    /// all others: `sync`, which is then called by several workers at once.
    fn sync_in_lane(&self, _lane: usize, from: u64, to: u64) -> io::Result<()> {
        self.sync(from, to)
    }
    /// Reads from `position`; fewer bytes than asked for mean that there are no more.
    fn read(&self, position: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Nothing before `position` will be read again.
    fn forget_before(&self, position: u64) -> io::Result<()>;
}

/// Segment files in a directory.
#[derive(Debug)]
pub struct SegmentFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    names: Arc<dyn DiskDirectory>,
    fsync: bool,
    /// The way in which what is written becomes durable, if `fsync`.
    sync: LogSyncVariant,
    /// Under [`LogSyncVariant::Direct`]; held while a worker writes.
    block_writer: Mutex<BlockWriter>,
    /// Held while segments are made and recycled, which takes long; `segments` is not held meanwhile.
    making: Mutex<()>,
    /// Held while a segment is synced through its first file, which is lane 0's.
    syncing_first: Mutex<()>,
    /// The timelines by which segments are named.
    history: Arc<SharedHistory>,
    segments: Mutex<BTreeMap<u64, Segment>>,
    /// Files that are not the log's, by number and timeline.
    stale: Mutex<BTreeSet<(u64, u32)>>,
}

impl SegmentFiles {
    /// The segments in `dir`, which is made if it is not there, of a log that was never promoted.
    pub fn open(disk: Arc<dyn Disk>, dir: PathBuf, fsync: bool) -> io::Result<Self> {
        Self::open_on_timeline(disk, dir, fsync, SharedHistory::new(History::first()))
    }

    /// The segments in `dir`, which is made if it is not there, of a log with this history.
    pub fn open_on_timeline(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        fsync: bool,
        history: Arc<SharedHistory>,
    ) -> io::Result<Self> {
        disk::ensure_directory(&*disk, &dir, fsync)?;
        let (mut segments, mut stale) = (BTreeMap::new(), BTreeSet::new());
        for name in disk.list(&dir)? {
            let path = dir.join(&name);
            match name.to_str().and_then(parse_segment_name) {
                Some((timeline, number)) if timeline == timeline_of_segment(&history.get(), number) => {
                    segments.insert(number, Segment::closed(timeline));
                }
                Some((timeline, number)) => {
                    stale.insert((number, timeline));
                }
                // Left behind by a crash while a segment or a history file was being made.
                None if name.to_str().is_some_and(|name| name.ends_with(NEW_SUFFIX)) => {
                    disk.remove_file(&path)?;
                }
                None => {}
            }
        }
        let names = disk.open_directory(&dir)?;
        if fsync {
            // The process that named them may have been killed before it synced the directory.
            names.sync(SyncPurpose::LogNamesFound)?;
        }
        Ok(Self {
            disk,
            dir,
            names,
            fsync,
            sync: LogSyncVariant::Fdatasync,
            block_writer: Mutex::new(BlockWriter::new()),
            making: Mutex::default(),
            syncing_first: Mutex::default(),
            history,
            segments: Mutex::new(segments),
            stale: Mutex::new(stale),
        })
    }

    /// The same segments, with writes that become durable in this way. An error if the file system has no such writes.
    pub fn synced_by(mut self, sync: LogSyncVariant) -> io::Result<Self> {
        self.sync = sync;
        if self.fsync && sync == LogSyncVariant::Direct {
            self.try_direct_write().map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
                    no_direct_writes(&self.dir, &error)
                }
                _ => error,
            })?;
        }
        Ok(self)
    }

    fn try_direct_write(&self) -> io::Result<()> {
        // Left behind, it goes with the next start.
        let path = self.dir.join(format!("direct{NEW_SUFFIX}"));
        let tried = (|| {
            self.disk
                .open(&path, OpenMode::Truncate)?
                .allocate(0, BLOCK as u64)?;
            let file = self.disk.open(&path, OpenMode::Direct)?;
            let write = |blocks: &[u8], at: u64| file.write_at(blocks, at);
            BlockWriter::new().write(0, &[0; BLOCK], |_, _| Ok(()), write)
        })();
        let removed = self.disk.remove_file(&path);
        tried.and(removed)
    }

    /// The directory of the segments.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// The log's history.
    pub(crate) fn history(&self) -> &SharedHistory {
        &self.history
    }

    /// The position from which on all segments are there up to the one that holds `position`.
    pub(crate) fn whole_from(&self, position: u64) -> u64 {
        let segments = self.lock();
        let mut number = position / SEGMENT_SIZE;
        while number > 0 && segments.contains_key(&(number - 1)) {
            number -= 1;
        }
        number * SEGMENT_SIZE
    }

    fn path(&self, timeline: u32, number: u64) -> PathBuf {
        self.dir.join(segment_name(timeline, number))
    }

    /// The path of the log at `position`, whether it is there or not.
    pub(crate) fn path_of(&self, position: u64) -> PathBuf {
        let number = position / SEGMENT_SIZE;
        self.path(self.timeline_of(number), number)
    }

    fn timeline_of(&self, number: u64) -> u32 {
        timeline_of_segment(&self.history.get(), number)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Segment>> {
        self.segments
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lock_stale(&self) -> MutexGuard<'_, BTreeSet<(u64, u32)>> {
        self.stale.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lock_making(&self) -> MutexGuard<'_, ()> {
        self.making
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn open_existing(&self, timeline: u32, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.path(timeline, number), OpenMode::Existing)
    }

    /// The open file of a segment; `None` if there is no such segment.
    fn segment(&self, number: u64) -> io::Result<Option<Arc<OpenSegment>>> {
        let mut segments = self.lock();
        let Some(segment) = segments.get_mut(&number) else {
            return Ok(None);
        };
        let timeline = segment.timeline;
        let (opened, is_new) = segment.opened(|| {
            let file = self.open_existing(timeline, number);
            file.map_err(|error| segment_cannot_be_opened(&self.path(timeline, number), &error))
        })?;
        if is_new {
            close_idle(&mut segments, number, self.fsync);
        }
        Ok(Some(opened))
    }

    /// A file of the segment for syncs in `lane` alone; `None` if it cannot be opened. Opened when a lane first comes
    /// to the segment: what has failed by then and was reported to no sync is reported to the first one through it too.
    fn own_file_of_lane(&self, number: u64, lane: usize) -> Option<Arc<dyn DiskFile>> {
        let mut segments = self.lock();
        let segment = segments.get_mut(&number)?;
        let timeline = segment.timeline;
        segment.of_lane(lane, || self.open_existing(timeline, number))
    }

    /// A segment's file for direct writes.
    fn direct_file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut segments = self.lock();
        let segment = segments.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
        let path = self.path(segment.timeline, number);
        let opened = segment.direct(|| self.disk.open(&path, OpenMode::Direct));
        opened.map_err(|error| segment_cannot_be_opened(&path, &error))
    }

    /// Writes a part of one segment, the one that holds `position`.
    fn write_in(&self, segment: &OpenSegment, position: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = position % SEGMENT_SIZE;
        if !self.fsync || self.sync == LogSyncVariant::Fdatasync {
            let _wait = WaitScope::<Native>::enter(WaitEvent::WalWrite);
            return segment.write_at(bytes, offset);
        }
        let _wait = WaitScope::<Native>::enter(WaitEvent::WalSync);
        if self.sync == LogSyncVariant::Dsync {
            self.write_durably(segment, &*segment.file, bytes, offset);
            return Ok(());
        }
        let file = self.direct_file(position / SEGMENT_SIZE)?;
        let mut writer = self
            .block_writer
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let read = |into: &mut [u8], at: u64| segment.file.read_exact_at(into, at % SEGMENT_SIZE);
        let write = |blocks: &[u8], at: u64| {
            self.write_durably(segment, &*file, blocks, at % SEGMENT_SIZE);
            Ok(())
        };
        writer.write(position, bytes, read, write)
    }

    /// Writes through one of a segment's descriptors. It is a sync as well, so one that fails ends the process (D3).
    fn write_durably(&self, segment: &OpenSegment, file: &dyn DiskFile, bytes: &[u8], offset: u64) {
        if let Err(error) = segment.write_durably_through(file, bytes, offset) {
            disk::sync_failed(&self.dir, &error);
        }
    }

    /// Makes segment `number` on `timeline`: the first `length` bytes of `content`, and zeros.
    fn make_segment(
        &self,
        timeline: u32,
        number: u64,
        content: Option<(&dyn DiskFile, u64)>,
    ) -> io::Result<Segment> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::WalSegmentInit);
        let unfinished = self.dir.join(segment_name(timeline, number) + NEW_SUFFIX);
        let made = (|| {
            let file = self.disk.open(&unfinished, OpenMode::Truncate)?;
            file.allocate(0, SEGMENT_SIZE)?;
            let mut piece = vec![0; 1 << 20];
            for megabyte in 0..SEGMENT_SIZE >> 20 {
                let at = megabyte << 20;
                piece.fill(0);
                if let Some((source, length)) = content {
                    let wanted = (length.saturating_sub(at) as usize).min(piece.len());
                    source.read_exact_at(&mut piece[..wanted], at)?;
                }
                file.write_at(&piece, at)?;
            }
            if self.fsync {
                file.sync_all(SyncPurpose::LogSegment)?;
            }
            self.disk.rename(&unfinished, &self.path(timeline, number))?;
            self.sync_names(SyncPurpose::LogSegmentName);
            Ok(Segment::open(timeline, file))
        })();
        if made.is_err() {
            // A full disk: give back what was taken. Should that fail too, the next start removes it.
            let _ = self.disk.remove_file(&unfinished);
        }
        made
    }

    fn sync_names(&self, purpose: SyncPurpose) {
        if self.fsync
            && let Err(error) = self.names.sync(purpose)
        {
            disk::sync_failed(&self.dir, &error);
        }
    }

    /// Makes durable what was written between the two positions.
    pub fn sync_range(&self, from: u64, to: u64, purpose: SyncPurpose) -> io::Result<()> {
        self.sync_range_in_lane(0, from, to, purpose)
    }

    fn sync_range_in_lane(&self, lane: usize, from: u64, to: u64, purpose: SyncPurpose) -> io::Result<()> {
        // What this process has logged is durable already, under the other variants.
        let is_durable = self.sync != LogSyncVariant::Fdatasync && purpose == SyncPurpose::LogFlush;
        if !self.fsync || from == to || is_durable {
            return Ok(());
        }
        let _wait = WaitScope::<Native>::enter(WaitEvent::WalSync);
        for number in from / SEGMENT_SIZE..=(to - 1) / SEGMENT_SIZE {
            let Some(opened) = self.segment(number)? else {
                continue;
            };
            if let Some(file) = self.own_file_of_lane(number, lane) {
                opened.sync_through(&*file, purpose)?;
                continue;
            }
            // A lane that could not open a file takes its turn at the first one.
            let _alone = self
                .syncing_first
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            opened.sync_through(&*opened.file, purpose)?;
        }
        Ok(())
    }

    /// Calls `part(segment, offset in it, range of the whole)` for each segment that `[position, position +
    /// length)` touches.
    fn each_part(
        &self,
        position: u64,
        length: usize,
        mut part: impl FnMut(&OpenSegment, u64, std::ops::Range<usize>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let at = position + done as u64;
            let Some(opened) = self.segment(at / SEGMENT_SIZE)? else {
                // Writers get here only if more was inserted than `make_room` foresaw; `write` deals with it.
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("log segment {} is missing", self.path_of(at).display()),
                ));
            };
            let within = at % SEGMENT_SIZE;
            let take = (length - done).min((SEGMENT_SIZE - within) as usize);
            if !part(&opened, within, done..done + take)? {
                break;
            }
            done += take;
        }
        Ok(())
    }
}

impl LogDevice for SegmentFiles {
    fn make_room(&self, position: u64) -> io::Result<()> {
        let last = position / SEGMENT_SIZE;
        let _making = self.lock_making();
        // Not just after the newest: a crash may have left holes between recycled segments.
        let first = self.lock().keys().next().copied();
        let first = first.unwrap_or(FIRST_SEGMENT.min(last));
        for number in first..=last {
            let is_there = self.lock().contains_key(&number);
            if !is_there {
                let made = self.make_segment(self.timeline_of(number), number, None)?;
                let mut segments = self.lock();
                segments.insert(number, made);
                close_idle(&mut segments, number, self.fsync);
            }
        }
        Ok(())
    }

    fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let write = || {
            self.each_part(position, bytes.len(), |segment, _, range| {
                self.write_in(segment, position + range.start as u64, &bytes[range])?;
                Ok(true)
            })
        };
        match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_room(position + bytes.len() as u64)?;
                write()
            }
            written => written,
        }
    }

    fn sync(&self, from: u64, to: u64) -> io::Result<()> {
        self.sync_in_lane(0, from, to)
    }

    fn sync_in_lane(&self, lane: usize, from: u64, to: u64) -> io::Result<()> {
        self.sync_range_in_lane(lane, from, to, SyncPurpose::LogFlush)
    }

    fn read(&self, position: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::WalRead);
        let mut total = 0;
        let length = bytes.len();
        let result = self.each_part(position, length, |segment, offset, range| {
            total = range.start + segment.file.read_at(&mut bytes[range.clone()], offset)?;
            Ok(total == range.end)
        });
        match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(total),
        }
    }

    fn forget_before(&self, position: u64) -> io::Result<()> {
        let keep = position / SEGMENT_SIZE;
        let _making = self.lock_making();
        self.remove_stale(keep)?;
        let past: Vec<u64> = self.lock().range(..keep).map(|(number, _)| *number).collect();
        let Some(&oldest) = past.first() else {
            return Ok(());
        };
        let spare = (keep - oldest).clamp(SPARE_MIN, SPARE_MAX);
        let newest = self.lock().keys().next_back().copied();
        let mut next = newest.map_or(keep, |newest| newest + 1).max(keep);
        let mut renamed = Vec::new();
        let mut recycle = |number| {
            let Some(old_timeline) = self.lock().get(&number).map(|segment| segment.timeline) else {
                return Ok(());
            };
            let old = self.path(old_timeline, number);
            let renames = next <= keep + spare;
            let timeline = self.timeline_of(next);
            if renames {
                self.disk.rename(&old, &self.path(timeline, next))?;
            } else {
                self.disk.remove_file(&old)?;
            }
            let segment = self.lock().remove(&number);
            if renames && let Some(segment) = segment {
                renamed.push((next, segment.renamed(timeline)));
                next += 1;
            }
            Ok(())
        };
        let recycled = past.into_iter().try_for_each(&mut recycle);
        // Also if not all could be renamed. Nothing is written to a segment before its new name is durable:
        // after a power cut the log would be looked for under that name.
        self.sync_names(SyncPurpose::RecycledNames);
        self.lock().extend(renamed);
        recycled
    }
}

fn no_direct_writes(dir: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "log_sync = direct: the file system of {} cannot write past its cache ({error}); use dsync or fdatasync",
        dir.display()
    ))
}

/// Not `NotFound`, which stands for a segment that was never made: a file that was there is missing.
fn segment_cannot_be_opened(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "log segment {} cannot be opened: {error}",
        path.display()
    ))
}

/// The segments of a new timeline, on disk and not used yet. No segment is made or recycled while it lives.
pub(crate) struct PreparedTimeline<'a> {
    history: Arc<History>,
    made: Vec<(u64, Segment)>,
    /// Segments that the new timeline does not have.
    left: Vec<u64>,
    _making: MutexGuard<'a, ()>,
}

impl SegmentFiles {
    /// Makes the segments that `history`, which continues this log's, needs under another name: copies up to `log_end`,
    /// with zeros behind. The log itself stays as it is. The caller makes sure that nothing is written to it.
    pub(crate) fn prepare_timeline(
        &self,
        history: Arc<History>,
        log_end: Lsn,
    ) -> io::Result<PreparedTimeline<'_>> {
        let making = self.lock_making();
        self.remove_unfinished_timeline(&history)?;
        let renamed: Vec<u64> = self
            .lock()
            .iter()
            .filter(|(number, segment)| segment.timeline != timeline_of_segment(&history, **number))
            .map(|(number, _)| *number)
            .collect();
        let (mut made, mut left) = (Vec::new(), Vec::new());
        for number in renamed {
            let length = log_end.0.saturating_sub(number * SEGMENT_SIZE).min(SEGMENT_SIZE);
            if length > 0
                && let Some(opened) = self.segment(number)?
            {
                let timeline = timeline_of_segment(&history, number);
                made.push((
                    number,
                    self.make_segment(timeline, number, Some((&*opened.file, length)))?,
                ));
            } else {
                left.push(number);
            }
        }
        Ok(PreparedTimeline {
            history,
            made,
            left,
            _making: making,
        })
    }

    /// Removes what an attempt that did not reach the control file has left of the new timeline: it may hold anything.
    fn remove_unfinished_timeline(&self, history: &History) -> io::Result<()> {
        let mut stale = self.lock_stale();
        let unfinished: Vec<(u64, u32)> = stale
            .iter()
            .filter(|(number, timeline)| *timeline == timeline_of_segment(history, *number))
            .copied()
            .collect();
        for (number, timeline) in unfinished {
            self.remove_if_there(timeline, number)?;
            stale.remove(&(number, timeline));
        }
        // Durable before anything is made of the new timeline: a segment that is there again after a power cut would be
        // taken for the log's.
        self.sync_names(SyncPurpose::LogSegmentName);
        Ok(())
    }

    /// Goes on with the segments of the new timeline, which the control file names by now.
    pub(crate) fn adopt(&self, prepared: PreparedTimeline<'_>) {
        let mut segments = self.lock();
        let mut stale = self.lock_stale();
        for (number, made) in prepared.made {
            if let Some(former) = segments.insert(number, made) {
                stale.insert((number, former.timeline));
            }
        }
        for number in prepared.left {
            if let Some(former) = segments.remove(&number) {
                stale.insert((number, former.timeline));
            }
        }
        self.history.set(prepared.history);
    }

    /// Removes the stale files before segment `keep`.
    fn remove_stale(&self, keep: u64) -> io::Result<()> {
        let mut stale = self.lock_stale();
        while let Some(&(number, timeline)) = stale.first()
            && number < keep
        {
            self.remove_if_there(timeline, number)?;
            stale.pop_first();
        }
        Ok(())
    }

    fn remove_if_there(&self, timeline: u32, number: u64) -> io::Result<()> {
        match self.disk.remove_file(&self.path(timeline, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The highest timeline of which the directory has a history file or a segment, or `least`.
    pub(crate) fn newest_timeline(&self, least: u32) -> io::Result<u32> {
        let names = self.disk.list(&self.dir)?;
        let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
        let of_segments = names
            .iter()
            .filter_map(|name| parse_segment_name(name.strip_suffix(PARTIAL_SUFFIX).unwrap_or(name)))
            .map(|(timeline, _)| timeline)
            .fold(least, u32::max);
        Ok(newest_named(names.into_iter(), of_segments))
    }
}

#[cfg(test)]
mod tests;
