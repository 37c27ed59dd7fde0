//! The way of the log's bytes from the ring to the device: what is written, what is durable, and the room on the disk.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Padded};

use super::flush_requests::FlushRequests;
use super::link::LogLink;
use super::log_totals::LogStatistics;
use super::reserved_bound::ReservedBound;
use super::ring::Ring;
use super::{LogDevice, SEGMENT_SIZE};

/// The device with the ring before it.
pub(super) struct LogOutput<M: Machine, D: LogDevice> {
    /// The latches of its list of segments are written with each write and sync, so they are not beside the ring's
    /// pointers, which each insertion reads.
    pub(super) device: Padded<D>,
    pub(super) ring: Ring<M>,
    written: Padded<Written<M>>,
    durable: Padded<M::U64>,
    /// Up to where the disk has room for the log.
    room_on_disk: M::U64,
    pub(super) reserved_bound: ReservedBound<M>,
    /// Syncs so far.
    syncs: Padded<M::U64>,
    pub(super) statistics: Padded<LogStatistics>,
    /// Those that wait for `durable` to move.
    pub(super) requests: FlushRequests<M>,
}

/// The end of what is on the device, which is that of a record.
struct Written<M: Machine> {
    position: M::U64,
    /// The link of the record that begins there; read and changed by the worker that writes.
    link: M::U32,
}

// What is written with each sync shares no line with what each insertion reads.
const _: () = {
    use std::mem::offset_of;
    type Output = LogOutput<clearway_machine::Native, super::SegmentFiles>;
    let read = [
        offset_of!(Output, ring) / 128,
        offset_of!(Output, room_on_disk) / 128,
    ];
    let (device, syncs) = (offset_of!(Output, device), offset_of!(Output, syncs));
    let device_end = device + size_of::<Padded<super::SegmentFiles>>();
    let mut index = 0;
    while index < read.len() {
        assert!(read[index] < device / 128 || read[index] >= device_end / 128);
        assert!(read[index] != syncs / 128);
        index += 1;
    }
};

impl<M: Machine, D: LogDevice> LogOutput<M, D> {
    /// Everything before `end` is durable, and the record that begins there gets `link`.
    pub(super) fn new(device: D, ring: Ring<M>, end: u64, link: LogLink) -> Self {
        Self {
            device: Padded(device),
            ring,
            written: Padded(Written {
                position: M::U64::new(end),
                link: M::U32::new(link.0),
            }),
            durable: Padded(M::U64::new(end)),
            room_on_disk: M::U64::new(0),
            reserved_bound: ReservedBound::new(end),
            syncs: Padded(M::U64::new(0)),
            statistics: Padded::default(),
            requests: FlushRequests::new(),
        }
    }

    /// Everything before is durable. Acquire: pairs with the Release in `sync`.
    #[inline]
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Acquire)
    }

    /// A position that was durable at some time: it says less than [`durable`](Self::durable), and orders nothing.
    #[inline]
    pub(super) fn durable_at_least(&self) -> u64 {
        self.durable.load(Relaxed)
    }

    /// Everything before has been written to the device. Acquire: pairs with the Release in `write`.
    pub(super) fn written(&self) -> u64 {
        self.written.position.load(Acquire)
    }

    /// Syncs of the device so far.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    /// True if the ring has no room yet for a record that ends at `end`. Acquire: pairs with the Release in
    /// `write`, so that the bytes to be overwritten have been read.
    #[inline]
    pub(super) fn lacks_room(&self, end: u64) -> bool {
        end > self.written() + self.ring.size() as u64
    }

    /// Writes the log up to `end` to the device, and to the end of the record that `end` lies in: what is written ends with a
    /// record, so that the links can go on there. A worker that waits for room in the ring asks for a position that is none's
    /// end.
    ///
    /// # Safety
    /// One worker at a time calls this, and each record that begins before `end` is whole in the ring and visible to it (R1).
    pub(super) unsafe fn write(&self, end: u64) {
        // Relaxed, here and for the link: the worker that wrote last has let this one write since.
        let start = self.written.position.load(Relaxed);
        if start < end {
            let link = LogLink(self.written.link.load(Relaxed));
            // SAFETY: whole, as the caller says; this worker alone reads them, and they are not written out yet (R3). The
            // last write ended with a record.
            let linked = unsafe { self.ring.enter_links(start, end, link) };
            let end = linked.end;
            self.written.link.store(linked.next.0, Relaxed);
            // SAFETY: complete, as the caller says; not overwritten before `written` moves past it (R3).
            let written = unsafe {
                self.ring
                    .read(start, end, |at, bytes| self.device.write(at, bytes))
            };
            if let Err(error) = written {
                fail("write", error);
            }
            self.statistics.wrote(linked.count, end - start);
            // Release: pairs with the Acquire in `lacks_room`; from here on these places may be overwritten.
            self.written.position.store(end, Release);
        }
    }

    /// Makes everything before `end`, which is written, durable. One worker at a time calls this; another may
    /// write meanwhile.
    pub(super) fn sync(&self, end: u64) {
        self.sync_in_lane(0, end);
    }

    /// As [`sync`](Self::sync), but there may be a sync in progress in each other lane; one worker at a time in `lane`.
    pub(super) fn sync_in_lane(&self, lane: usize, end: u64) {
        let mut durable = self.durable.load(Relaxed);
        if durable < end {
            // From `durable` on, although a sync in another lane may have begun there: it may end later than this one.
            if let Err(error) = self.device.sync_in_lane(lane, durable, end) {
                fail("sync", error);
            }
            self.syncs.fetch_add(1, Relaxed);
            while durable < end {
                // Release: pairs with the Acquire in `durable`.
                match self.durable.compare_exchange_weak(durable, end, Release, Relaxed) {
                    Ok(_) => break,
                    // A sync in another lane has ended before.
                    Err(found) => durable = found,
                }
            }
            self.requests.log_is_durable();
        }
    }

    /// Everything before `end` is durable, and was written to the device past the ring; the record that begins there gets
    /// `link`.
    pub(super) fn continue_at(&self, from: u64, end: u64, link: LogLink) {
        self.reserved_bound.note(from, end);
        self.written.link.store(link.0, Relaxed);
        // Release: as in `write` and `sync`.
        self.written.position.store(end, Release);
        self.durable.store(end, Release);
        self.requests.log_is_durable();
    }

    /// True if the disk is sure to have room for `more` bytes of log behind what is reserved. `false` means only that
    /// the reservation has to be asked.
    #[inline]
    pub(super) fn surely_has_room_on_disk_for(&self, more: u64) -> bool {
        self.has_room_on_disk(self.reserved_bound.upper_bound(self.ring.size() as u64) + more)
    }

    /// True if the disk has room for the log up to `end`.
    pub(super) fn has_room_on_disk(&self, end: u64) -> bool {
        end <= self.room_on_disk.load(Acquire)
    }

    /// The device may have less room than it had: it is asked again.
    pub(super) fn forget_room_on_disk(&self) {
        self.room_on_disk.store(0, Release);
    }

    /// Makes sure that the disk has room for the log up to `end`.
    pub(super) fn make_room_on_disk(&self, end: u64) -> std::io::Result<()> {
        if !self.has_room_on_disk(end) {
            self.device.make_room(end)?;
            // Two workers may store in the wrong order: then the device is asked once more than needed.
            self.room_on_disk
                .store((end / SEGMENT_SIZE + 1) * SEGMENT_SIZE, Release);
        }
        Ok(())
    }
}

/// The log's device failed: what it has kept cannot be known, so nothing may go on from here.
fn fail(action: &str, error: std::io::Error) -> ! {
    clearway_machine::fatal(format_args!(
        "could not {action} the log: {error}; stopping, so that no commit is acknowledged that may be lost"
    ))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use clearway_machine::Native;
    use clearway_txn::Xid;

    use super::*;
    use crate::wal::record::{self, RecordKind};

    const RING: usize = 1 << 10;

    /// Keeps what is written.
    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<u8>>);

    impl LogDevice for Kept {
        fn make_room(&self, _position: u64) -> io::Result<()> {
            Ok(())
        }
        fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
            let mut kept = self.0.lock().unwrap();
            assert_eq!(position, kept.len() as u64);
            kept.extend_from_slice(bytes);
            Ok(())
        }
        fn sync(&self, _from: u64, _to: u64) -> io::Result<()> {
            Ok(())
        }
        fn read(&self, _position: u64, _bytes: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn forget_before(&self, _position: u64) -> io::Result<()> {
            Ok(())
        }
    }

    /// A worker that waits for room in the ring asks for what lies one ring size before the end of its own record, which is in
    /// the middle of some other record. The links go on all the same.
    ///
    /// Mutation that it should catch (`crates/storage/mutations/wal.toml`): the log is written up to there.
    #[test]
    fn links_go_on_behind_a_write_that_was_asked_for_a_part_of_a_record() {
        let mut records = Vec::new();
        for size in [40, 8, 100, 64, 24] {
            let payload = vec![size as u8; size];
            let (at, crc) = (records.len() as u64, crc32c::crc32c(&payload));
            let header = record::header(RecordKind::NOTHING, Xid::INVALID, at, at, size, crc);
            records.extend([&header[..], &payload].concat());
            records.resize(records.len().next_multiple_of(8), 0);
        }
        let mut linked = records.clone();
        record::enter_links(&mut linked, LogLink::FIRST);
        let end = records.len() as u64;
        for asked in 1..end {
            let ring = Ring::new(RING);
            // SAFETY: no other thread has the ring.
            unsafe { ring.copy_in(0, &records) };
            let output = LogOutput::<Native, _>::new(Kept::default(), ring, 0, LogLink::FIRST);
            // SAFETY: one thread writes, and all records are whole.
            unsafe { output.write(asked) };
            assert!((asked..=end).contains(&output.written()));
            // SAFETY: as above.
            unsafe { output.write(end) };
            assert_eq!(*output.device.0.0.lock().unwrap(), linked, "first up to {asked}");
        }
    }
}
