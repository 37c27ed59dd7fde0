//! The log as its users see it: insert records, make them durable, move the redo position.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Native, Switch};
use clearway_txn::Xid;

use super::device::PreparedTimeline;
use super::flush::wake::LogWakeVariant;
use super::flush::{FlushOptions, Flushed, Flusher, LogFlushVariant};
use super::flush_requests::{AwaitedLog, LogWait, NoLogWriter, StopWhen};
use super::insert::{InsertedRecord, Insertion, InsertionOptions, LogInsertVariant, RedoMoved};
use super::link::LogLink;
use super::log_counts::LogCounts;
use super::log_sync::LogSyncVariant;
use super::log_totals::LogTotals;
use super::output::LogOutput;
use super::record::{self, RecordKind};
use super::reserve::{LogReserveVariant, Reservation};
use super::ring::Ring;
use super::{LogDevice, SEGMENT_SIZE, SegmentFiles};
use crate::page::Lsn;

/// The options of a log: its switches and sizes.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Algorithm of the log's latches.
    pub lwlock: LwLockOptions,
    /// The way in which a record gets its position.
    pub reserve: LogReserveVariant,
    /// The way in which a record gets into the ring.
    pub insert: LogInsertVariant,
    /// The way in which records become durable.
    pub flush: LogFlushVariant,
    /// The worker that wakes a group of commits.
    pub wake: LogWakeVariant,
    /// The call that makes them durable; obeyed by what makes the log's device ([`SegmentFiles::synced_by`]).
    pub sync: LogSyncVariant,
    /// Time that a flusher waits for others to join it; zero: it does not wait.
    pub commit_delay: Duration,
    /// Bytes of the ring: a power of two, at most a segment, since recovery clears that much behind the log's
    /// end.
    pub ring_size: usize,
    /// Insertion latches.
    pub insert_latches: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            lwlock: LwLockOptions::default(),
            reserve: LogReserveVariant::default(),
            insert: LogInsertVariant::default(),
            flush: LogFlushVariant::default(),
            wake: LogWakeVariant::default(),
            sync: LogSyncVariant::default(),
            commit_delay: Duration::ZERO,
            ring_size: 8 << 20,
            insert_latches: 8,
        }
    }
}

impl LogOptions {
    /// These options under every combination of the log's switches: what test suites run over. Who wakes a group has
    /// nothing to do with how records get into the log, and is varied under the flushes that it concerns alone.
    pub fn under_all_variants(self) -> impl Iterator<Item = Self> {
        let combined = self.under_all_insertions().flat_map(|options| {
            let flushes = LogFlushVariant::ALL.iter();
            flushes.map(move |&flush| Self { flush, ..options })
        });
        combined.chain(
            self.under_all_wakes()
                .filter(move |options| options.wake != self.wake),
        )
    }

    /// These options under every way to reserve a place and to insert: for a case that hardly flushes.
    pub fn under_all_insertions(self) -> impl Iterator<Item = Self> {
        LogReserveVariant::ALL.iter().flat_map(move |&reserve| {
            let inserts = LogInsertVariant::ALL.iter();
            inserts.map(move |&insert| Self {
                reserve,
                insert,
                ..self
            })
        })
    }

    /// These options under every `log_wake`, for each `log_flush` that wakes groups by it, as the switch says.
    pub fn under_all_wakes(self) -> impl Iterator<Item = Self> {
        let flushes = LogFlushVariant::ALL.iter().copied();
        let obeying = flushes.filter(|&flush| LogWakeVariant::is_obeyed_beside(flush));
        obeying.flat_map(move |flush| {
            let wakes = LogWakeVariant::ALL.iter();
            wakes.map(move |&wake| Self { flush, wake, ..self })
        })
    }
}

/// The order in which records of one kind get their places in the log.
pub trait RecordOrder {
    /// Calls `reserve`, which gives a record its place, at the record's turn. The second half of what it returns is `false`
    /// if the place is going to hold nothing, and the record comes again. `reserve` waits for nothing but a latch.
    fn enter<R>(&self, reserve: impl FnOnce() -> (R, bool)) -> R;
}

/// Records whose order follows from nothing but who comes first.
struct AsTheyCome;

impl RecordOrder for AsTheyCome {
    #[inline(always)]
    fn enter<R>(&self, reserve: impl FnOnce() -> (R, bool)) -> R {
        reserve().0
    }
}

/// The write-ahead log. The module says how it works.
pub struct Wal<M: Machine = Native, D: LogDevice = SegmentFiles> {
    reservation: Reservation<M>,
    insertion: Insertion<M>,
    flusher: Flusher<M>,
    output: LogOutput<M, D>,
}

impl<M: Machine, D: LogDevice> std::fmt::Debug for Wal<M, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wal")
            .field("device", &self.output.device)
            .finish_non_exhaustive()
    }
}

impl<M: Machine, D: LogDevice> Wal<M, D> {
    /// A log that begins at `end`, with its redo position at `redo`.
    pub fn new(device: D, options: LogOptions, end: Lsn, redo: Lsn) -> Self {
        Self::continuing(device, options, end, LogLink::FIRST, redo)
    }

    /// A log that goes on at `end`, where everything before is durable and the next record gets `link`, with its redo
    /// position at `redo`.
    pub fn continuing(device: D, options: LogOptions, end: Lsn, link: LogLink, redo: Lsn) -> Self {
        assert_eq!(end.0 % 8, 0, "the log goes on between records");
        assert!(
            options.ring_size as u64 <= SEGMENT_SIZE,
            "recovery clears a segment behind the log's end, no more"
        );
        let insertion = InsertionOptions {
            lwlock: options.lwlock,
            latches: options.insert_latches,
            ring_size: options.ring_size,
        };
        let flush = FlushOptions {
            lwlock: options.lwlock,
            commit_delay: options.commit_delay,
            wake: options.wake,
        };
        Self {
            reservation: Reservation::new(options.reserve, end.0),
            insertion: Insertion::new(options.insert, &insertion, end.0, redo.0),
            flusher: Flusher::new(options.flush, &flush),
            output: LogOutput::new(device, Ring::new(options.ring_size), end.0, link),
        }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.output.device
    }

    /// Makes room on the disk for the changes under way: a segment ahead of all that sessions in the middle
    /// of a change may still insert. A caller calls this before it changes anything, so that a full disk is
    /// an error and not half a change.
    pub fn make_room(&self) -> std::io::Result<()> {
        if self.output.surely_has_room_on_disk_for(SEGMENT_SIZE) {
            return Ok(());
        }
        self.output
            .make_room_on_disk(self.reservation.end() + SEGMENT_SIZE)
    }

    /// As [`make_room`](Self::make_room), for a session that holds page latches and has called `make_room`
    /// before it took them. Half a segment is enough, so the session makes a segment only if others have
    /// logged 8 MiB in between.
    pub fn make_room_latched(&self) -> std::io::Result<()> {
        let half = SEGMENT_SIZE / 2;
        if self.output.surely_has_room_on_disk_for(half)
            || self.output.has_room_on_disk(self.reservation.end() + half)
        {
            return Ok(());
        }
        self.make_room()
    }

    /// As [`make_room`](Self::make_room), but a segment further, for a background worker: sessions then find
    /// that there is nothing to do.
    pub fn make_room_ahead(&self) -> std::io::Result<()> {
        self.output
            .make_room_on_disk(self.reservation.end() + 2 * SEGMENT_SIZE)
    }

    /// The position after the last record reserved.
    pub fn reserved(&self) -> Lsn {
        Lsn(self.reservation.end())
    }

    /// Everything before is durable.
    pub fn flushed(&self) -> Lsn {
        Lsn(self.output.durable())
    }

    /// Syncs of the device since the log was opened; group commit is measured by them.
    pub fn syncs(&self) -> u64 {
        self.output.syncs()
    }

    /// Counts of the log since it was opened.
    pub fn totals(&self) -> LogTotals {
        self.output.statistics.totals(self.output.syncs())
    }

    /// A change has logged so many whole pages.
    pub(crate) fn logged_images(&self, images: u64) {
        self.output.statistics.logged_images(images);
    }

    /// Pages last changed before this need a full image with their next change.
    pub fn redo(&self) -> Lsn {
        Lsn(self.insertion.redo())
    }

    /// The most bytes of a record, its header included.
    pub fn record_max(&self) -> usize {
        record::RECORD_MAX.min(self.output.ring.size())
    }

    /// Inserts a record built for redo position `built_for`; returns the position after it.
    pub fn insert(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        built_for: Lsn,
    ) -> Result<Lsn, RedoMoved> {
        self.insert_at_turn(kind, xid, payload, built_for, &AsTheyCome)
    }

    #[inline]
    fn insert_at_turn(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        built_for: Lsn,
        order: &impl RecordOrder,
    ) -> Result<Lsn, RedoMoved> {
        let size = record::size(payload.len());
        assert!(size <= self.record_max(), "a log record of {size} bytes");
        let record = BuiltRecord {
            log: self,
            kind,
            xid,
            payload,
            payload_crc: crc32c::crc32c(payload),
            size: size as u64,
            order,
        };
        let end = self.insertion.insert(&self.reservation, built_for.0, &record)?;
        LogCounts::add_record(size as u64);
        Ok(Lsn(end))
    }

    /// Inserts a record that does not depend on the redo position.
    pub fn insert_any(&self, kind: RecordKind, xid: Xid, payload: &[u8]) -> Lsn {
        self.insert_in_order(kind, xid, payload, &AsTheyCome)
    }

    /// As [`insert_any`](Self::insert_any), for a record that has its place among those of `order`.
    #[inline]
    pub fn insert_in_order(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        order: &impl RecordOrder,
    ) -> Lsn {
        let mut redo = self.redo();
        loop {
            match self.insert_at_turn(kind, xid, payload, redo, order) {
                Ok(end) => return end,
                Err(RedoMoved(now)) => redo = now,
            }
        }
    }

    /// Makes everything before `upto` durable.
    pub fn flush(&self, upto: Lsn) {
        let log = Flushed {
            reservation: &self.reservation,
            insertion: &self.insertion,
            output: &self.output,
        };
        self.flusher.flush(&log, upto.0);
    }

    /// As [`flush`](Self::flush), for a worker that can be told to stop: the log writer flushes for it, and it returns when
    /// everything before `upto` is durable, or when `stop` says so. `stop` is asked again after the time that `time_left`
    /// gives, which is asked before each sleep, and after each [`interrupt_waits`](Self::interrupt_waits). Without a log
    /// writer the worker flushes by itself.
    #[inline]
    pub fn wait_flushed(
        &self,
        upto: Lsn,
        stop: impl Fn() -> bool,
        time_left: impl Fn() -> Option<Duration>,
    ) -> LogWait {
        if self.flushed() >= upto {
            return LogWait::Durable;
        }
        let until = StopWhen {
            stop: &stop,
            time_left: &time_left,
        };
        self.wait_flushed_slow(upto, &until)
    }

    #[cold]
    fn wait_flushed_slow(&self, upto: Lsn, until: &StopWhen<'_>) -> LogWait {
        match self.output.requests.wait(self, upto.0, until) {
            Ok(wait) => wait,
            Err(NoLogWriter) => {
                self.flush(upto);
                LogWait::Durable
            }
        }
    }

    /// Makes all workers in [`wait_flushed`](Self::wait_flushed) ask whether they are to stop. What they are to find was
    /// written before.
    pub fn interrupt_waits(&self) {
        self.output.requests.call();
    }

    /// A log writer is about to begin: workers leave their flushes to it from now on, however late its thread runs.
    /// [`begin_log_writer`](Self::begin_log_writer) follows, and dropping what that returns also ends this.
    pub fn expect_log_writer(&self) {
        self.output.requests.writer_begins();
    }

    /// True if a worker that waits now leaves its flush to a log writer.
    #[cfg(test)]
    pub(crate) fn has_log_writer(&self) -> bool {
        self.output.requests.has_writer()
    }

    /// The calling thread is the log writer from now on, until what this returns is dropped. There is one at a time.
    #[must_use = "the log writer ends when it is dropped"]
    pub fn begin_log_writer(&self) -> LogWriter<'_, M, D> {
        self.output.requests.writer_begins();
        LogWriter { log: self }
    }

    /// Up to where workers have asked for a flush, in [`wait_flushed`](Self::wait_flushed) or by
    /// [`flush_soon`](Self::flush_soon).
    pub fn wanted(&self) -> Lsn {
        Lsn(self.output.requests.wanted())
    }

    /// Asks the log writer to make everything before `upto` durable, and does not wait. If there is none, the position is
    /// durable with the next flush.
    pub fn flush_soon(&self, upto: Lsn) {
        self.output.requests.ask_soon(self, upto.0);
    }

    /// Wakes the log writer, if it sleeps. What it is to find was written before.
    pub fn wake_log_writer(&self) {
        // Pairs with the fence in `writer_sleeps`.
        M::fence(SeqCst);
        self.output.requests.wake_writer();
    }

    /// Goes on at `end`, a multiple of 8, with a record that gets `link`: what lies before has got to the device in another
    /// way, and is durable. For a standby, whose log is received; one worker calls this, and none inserts.
    pub fn continue_at(&self, end: Lsn, link: LogLink) {
        let from = self.reservation.end();
        if from < end.0 {
            self.reservation.reserve(end.0 - from);
            self.insertion.continue_at(end.0);
            self.output.continue_at(from, end.0, link);
        }
    }

    /// Moves the redo position to the end of what is reserved: the start of a checkpoint. What was done before those
    /// reservations is visible to the caller. Every record inserted behind it was built for it; records before it may
    /// still be on their way into the ring.
    pub fn move_redo(&self) -> Lsn {
        Lsn(self.insertion.move_redo(&self.reservation))
    }
}

impl<M: Machine, D: LogDevice> AwaitedLog for Wal<M, D> {
    fn durable(&self) -> u64 {
        self.output.durable()
    }

    fn polls(&self) -> u64 {
        self.flusher.polls()
    }

    fn is_under_way(&self) -> bool {
        self.flusher.is_under_way()
    }
}

/// The log writer: flushes for workers that are not to wait in the kernel.
#[derive(Debug)]
pub struct LogWriter<'a, M: Machine = Native, D: LogDevice = SegmentFiles> {
    log: &'a Wal<M, D>,
}

impl<M: Machine, D: LogDevice> LogWriter<'_, M, D> {
    /// Sleeps, at most for `limit`. Does not sleep, or wakes, if a worker asks for a flush, or if `stop` says so after
    /// [`Wal::wake_log_writer`].
    pub fn sleep(&self, limit: Option<Duration>, stop: impl Fn() -> bool) {
        let durable = || self.log.output.durable();
        self.log.output.requests.writer_sleeps(limit, durable, stop);
    }
}

impl<M: Machine, D: LogDevice> Drop for LogWriter<'_, M, D> {
    fn drop(&mut self) {
        self.log.output.requests.writer_ends();
    }
}

impl<M: Machine> Wal<M> {
    /// [`SegmentFiles::adopt`], while no worker logs anything or makes room.
    pub(crate) fn adopt(&self, prepared: PreparedTimeline<'_>) {
        self.output.device.adopt(prepared);
        self.output.forget_room_on_disk();
    }
}

/// A record whose checksum is computed, and the log it goes into.
struct BuiltRecord<'a, M: Machine, D: LogDevice, O> {
    log: &'a Wal<M, D>,
    kind: RecordKind,
    xid: Xid,
    payload: &'a [u8],
    payload_crc: u32,
    size: u64,
    order: &'a O,
}

impl<M: Machine, D: LogDevice, O: RecordOrder> InsertedRecord for BuiltRecord<'_, M, D, O> {
    #[inline]
    fn size(&self) -> u64 {
        self.size
    }

    #[inline]
    fn reserve_in_order<R>(&self, reserve: impl FnOnce() -> (R, bool)) -> R {
        self.order.enter(reserve)
    }

    #[inline]
    fn lacks_room(&self, end: u64) -> bool {
        self.log.output.lacks_room(end)
    }

    #[cold]
    fn wait_for_room(&self, end: u64) {
        self.log.output.statistics.found_full();
        self.log.flush(Lsn(end - self.log.output.ring.size() as u64));
    }

    #[inline]
    fn copy_to(&self, start: u64) {
        self.copy_as(self.kind, start);
    }

    #[cold]
    fn withdraw_to(&self, start: u64) {
        self.copy_as(RecordKind::NOTHING, start);
    }
}

impl<M: Machine, D: LogDevice, O> BuiltRecord<'_, M, D, O> {
    /// Copies the record as one of `kind` to `start`, where its insertion has made room for it.
    #[inline]
    fn copy_as(&self, kind: RecordKind, start: u64) {
        let output = &self.log.output;
        output.reserved_bound.note(start, start + self.size);
        // It is at most `start`, which nothing passes before the copy.
        let durable = output.durable_at_least();
        let header = record::header(
            kind,
            self.xid,
            start,
            durable,
            self.payload.len(),
            self.payload_crc,
        );
        // SAFETY: the insertion has reserved these bytes and publishes them after this call (R1), and
        // `lacks_room` was false or `wait_for_room` has returned (R3).
        unsafe {
            output.ring.copy_in(start, &header);
            output.ring.copy_in(start + record::HEADER as u64, self.payload);
        }
    }
}
