//! The descriptors of the log's segments: a limited number of them, however much log is kept.
//!
//! A segment that is written, synced or read has a descriptor, one more for each lane that syncs it, and one for direct
//! writes.
//! The oldest segments lose their descriptors as soon as there are more than [`DESCRIPTORS_MAX`], if no worker uses them and
//! nothing that was written through them waits for a sync (F2 of `disk::open_files`, for the same reason). So log that
//! a slot or a standby keeps costs no descriptors, and neither do segments that wait for their turn.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::SYNC_LANES;
use crate::disk::{DiskFile, SyncPurpose};

/// Descriptors that the log's segments keep when they are not in use.
pub(crate) const DESCRIPTORS_MAX: usize = 24;

/// A segment's open file.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) file: Arc<dyn DiskFile>,
    /// Written since the last sync through any of the segment's descriptors. Changed only by those who hold the `Arc`.
    unsynced: AtomicBool,
}

impl OpenSegment {
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = self.file.write_at(bytes, offset);
        // Also after an error: some of it may have been written.
        self.unsynced.store(true, Ordering::Release);
        written
    }

    /// Writes through `file`, one of the segment's descriptors; durable when it returns.
    pub(super) fn write_durably_through(
        &self,
        file: &dyn DiskFile,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        file.write_durably_at(bytes, offset, SyncPurpose::LogFlush)
    }

    /// Syncs through `file`, one of the segment's descriptors.
    pub(super) fn sync_through(&self, file: &dyn DiskFile, purpose: SyncPurpose) -> io::Result<()> {
        // Before the sync: a write that comes after this mark was cleared sets it again.
        self.unsynced.store(false, Ordering::Release);
        let synced = file.sync_data(purpose);
        if synced.is_err() {
            self.unsynced.store(true, Ordering::Release);
        }
        synced
    }
}

/// The descriptors of a segment: the first for everything, and one for the syncs of each further lane that has been
/// used.
///
/// Linux reports that written pages could not be kept to the next sync of each *opened* file, once. Two syncs through
/// one file would share one report: one of them fails, and the other, for the same bytes, succeeds.
#[derive(Debug)]
pub(super) struct Segment {
    /// The timeline in its name.
    pub(super) timeline: u32,
    first: Option<Arc<OpenSegment>>,
    lanes: [Option<Arc<dyn DiskFile>>; SYNC_LANES - 1],
    /// For writes past the system's cache.
    direct: Option<Arc<dyn DiskFile>>,
}

impl Segment {
    /// A segment that is opened when it is used.
    pub(super) fn closed(timeline: u32) -> Segment {
        Segment {
            timeline,
            first: None,
            lanes: std::array::from_fn(|_| None),
            direct: None,
        }
    }

    /// A segment whose file is open, and durable.
    pub(super) fn open(timeline: u32, file: Arc<dyn DiskFile>) -> Segment {
        let mut segment = Segment::closed(timeline);
        segment.put(file);
        segment
    }

    /// The same descriptors, after the file has got a name on `timeline`.
    pub(super) fn renamed(self, timeline: u32) -> Segment {
        Segment { timeline, ..self }
    }

    fn put(&mut self, file: Arc<dyn DiskFile>) -> Arc<OpenSegment> {
        let opened = Arc::new(OpenSegment {
            file,
            unsynced: AtomicBool::new(false),
        });
        self.first = Some(Arc::clone(&opened));
        opened
    }

    /// The open file; `open` opens it if it is closed, and then the second is true.
    pub(super) fn opened(
        &mut self,
        open: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
    ) -> io::Result<(Arc<OpenSegment>, bool)> {
        match &self.first {
            Some(opened) => Ok((Arc::clone(opened), false)),
            None => Ok((self.put(open()?), true)),
        }
    }

    /// The descriptor for syncs of `lane` alone; none for lane 0, or if it cannot be opened.
    pub(super) fn of_lane(
        &mut self,
        lane: usize,
        open: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
    ) -> Option<Arc<dyn DiskFile>> {
        let opened = self.lanes.get_mut(lane.checked_sub(1)?)?;
        if opened.is_none() {
            *opened = open().ok();
        }
        opened.clone()
    }

    /// The descriptor for direct writes.
    pub(super) fn direct(
        &mut self,
        open: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
    ) -> io::Result<Arc<dyn DiskFile>> {
        match &self.direct {
            Some(opened) => Ok(Arc::clone(opened)),
            None => Ok(Arc::clone(self.direct.insert(open()?))),
        }
    }

    pub(super) fn descriptors(&self) -> usize {
        let further = self.lanes.iter().flatten().count() + usize::from(self.direct.is_some());
        usize::from(self.first.is_some()) + further
    }

    /// True if no descriptor is in use and none has anything to sync.
    fn is_idle(&self, fsync: bool) -> bool {
        // Every user, of a lane's descriptor too, holds the first one; it gets it under the mutex that the caller holds.
        self.first.as_ref().is_some_and(|opened| {
            Arc::strong_count(opened) == 1 && !(fsync && opened.unsynced.load(Ordering::Acquire))
        })
    }
}

/// Closes idle segments but `kept`, the oldest first, until no more than [`DESCRIPTORS_MAX`] descriptors are open.
pub(super) fn close_idle(segments: &mut BTreeMap<u64, Segment>, kept: u64, fsync: bool) {
    let mut open: usize = segments.values().map(Segment::descriptors).sum();
    for (_, segment) in segments.iter_mut().filter(|(number, _)| **number != kept) {
        if open <= DESCRIPTORS_MAX {
            return;
        }
        if segment.is_idle(fsync) {
            open -= segment.descriptors();
            *segment = Segment::closed(segment.timeline);
        }
    }
}
