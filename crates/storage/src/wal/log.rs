//! Inserting records and making them durable.
//!
//! Log bytes stand in a ring buffer from where they are inserted until they have been written to the device.
//!
//! ```text
//!   durable ≤ written ≤ … records being copied … ≤ reserved ≤ written + ring size
//! ```
//!
//! # Insert
//! 1. Take one of 8 insertion latches: the one used last; had to sleep → the next one next time.
//! 2. Check that the redo position is still the one the record was built for (else the record may lack page images).
//! 3. Reserve space: one fetch_add.
//! 4. If the ring is full up to there: advertise the position in the latch's `inserting_at`, then write the log out.
//! 5. Copy the record; release the latch.
//!
//! # Flush (the baseline)
//! Loop: durable far enough → done; wait for insertions before the target; `acquire_or_wait` the write latch: without it →
//! loop, since whoever had it may have done our work; with it → look again, optionally sleep `commit_delay`, take along
//! what has been inserted meanwhile (a look at the insertion latches that waits for none), write and sync, publish.
//!
//! # Invariants
//! - R1: space is reserved only while an insertion latch is held, and the latch is kept until the bytes are in the ring. So
//!   when each latch has been seen free, or advertising a position ≥ p, all bytes before min(p, what was reserved when the
//!   look began) are in the ring.
//! - R2: whoever holds an insertion latch waits for the write latch only after advertising; whoever holds the write latch
//!   never waits for an insertion latch. So the two never wait for each other.
//! - R3: bytes leave the ring (are overwritten) only below `written`.
//! - R4: the redo position moves only under *all* insertion latches. So a record inserted before it moved lies before it.
//!   Whoever takes them all inserts nothing and advertises the end of all time in each as soon as he has it: an inserter
//!   that keeps him from the next one may be waiting, in a flush, for those that he has already.
//!
//! A failed write or sync of the log ends the process: what the kernel has kept of it cannot be known.
//!
//! Origin: PostgreSQL's xlog.c (Heikki Linnakangas, 2013).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::{LatchClass, LwLock, LwLockExclusive, LwLockOptions};
use clearway_machine::{AtomicWord, DataCell, Machine, Native, Padded, WaitEvent, WaitScope, Work};
use clearway_txn::Xid;

use crate::page::Lsn;
use crate::wal::record::{self, RecordKind};
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

static WAL_INSERT: LatchClass = LatchClass::new("WALInsert", WaitEvent::WalInsert, 500);
static WAL_WRITE: LatchClass = LatchClass::new("WALWrite", WaitEvent::WalWriteLatch, 510);

/// Insertion latches.
const INSERT_LATCHES: usize = 8;
/// Bytes a word of the ring.
const WORD: usize = 8;
/// Bytes of the ring buffer natively; at most a segment, since recovery clears so much behind the log's end.
const RING_SIZE: usize = 8 << 20;

/// The redo position has moved since the record was built; build it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoMoved(pub Lsn);

#[derive(Debug)]
struct InsertLatch<M: Machine> {
    latch: LwLock<M>,
    /// 0 = unknown; else everything this latch's holder inserts lies at or after it.
    inserting_at: M::U64,
}

/// The write-ahead log.
pub struct Wal<M: Machine = Native, D: LogDevice = SegmentFiles> {
    device: D,
    /// By words of 8 bytes, since records are aligned to them.
    ring: Box<[M::Data<[u8; WORD]>]>,
    reserved: Padded<M::U64>,
    written: Padded<M::U64>,
    durable: Padded<M::U64>,
    redo: Padded<M::U64>,
    allocated: M::U64,
    insert_latches: Box<[Padded<InsertLatch<M>>]>,
    write_latch: Padded<LwLock<M>>,
    /// The insertion latch to try, by worker slot; a hint.
    preferred: Box<[M::U32]>,
    commit_delay: Duration,
    /// Syncs so far.
    syncs: M::U64,
}

// SAFETY: the ring's bytes are written by the one worker that reserved them (R1) and read by the holder of the write latch
// after the insertion latches have shown them complete; the latches order the two.
unsafe impl<M: Machine, D: LogDevice> Sync for Wal<M, D> {}
// SAFETY: nothing in the log belongs to a thread.
unsafe impl<M: Machine, D: LogDevice> Send for Wal<M, D> {}

impl<M: Machine, D: LogDevice> std::fmt::Debug for Wal<M, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wal")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl<M: Machine, D: LogDevice> Wal<M, D> {
    /// A log that goes on at `end`, where everything before is durable.
    pub fn new(
        device: D,
        lwlock: impl Into<LwLockOptions>,
        end: Lsn,
        redo: Lsn,
        commit_delay: Duration,
    ) -> Self {
        Self::with_sizes(device, lwlock, end, redo, commit_delay, RING_SIZE, INSERT_LATCHES)
    }

    /// As [`new`](Self::new) with the ring and the number of latches chosen, for checkers that need them small.
    pub fn with_sizes(
        device: D,
        lwlock: impl Into<LwLockOptions>,
        end: Lsn,
        redo: Lsn,
        commit_delay: Duration,
        ring_size: usize,
        latches: usize,
    ) -> Self {
        let lwlock = lwlock.into();
        assert_eq!(end.0 % 8, 0, "the log goes on between records");
        assert!(
            ring_size.is_power_of_two(),
            "positions are mapped to the ring by a mask"
        );
        assert!(
            ring_size as u64 <= SEGMENT_SIZE,
            "recovery clears a segment behind the log's end, no more"
        );
        let insert_latch = || InsertLatch {
            latch: LwLock::new(&WAL_INSERT, lwlock),
            inserting_at: M::U64::new(0),
        };
        Self {
            device,
            ring: (0..ring_size / WORD).map(|_| M::Data::new([0; WORD])).collect(),
            reserved: Padded(M::U64::new(end.0)),
            written: Padded(M::U64::new(end.0)),
            durable: Padded(M::U64::new(end.0)),
            redo: Padded(M::U64::new(redo.0)),
            allocated: M::U64::new(0),
            insert_latches: (0..latches).map(|_| Padded(insert_latch())).collect(),
            write_latch: Padded(LwLock::new(&WAL_WRITE, lwlock)),
            preferred: (0..M::workers().capacity())
                .map(|worker| M::U32::new((worker % latches) as u32))
                .collect(),
            commit_delay,
            syncs: M::U64::new(0),
        }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Makes sure that there is disk space for what is being changed now. Called before anything is changed, so that a full
    /// disk is an error and not half a change.
    pub fn ensure_space(&self) -> std::io::Result<()> {
        // A segment ahead of all that sessions in the middle of a change may still insert.
        self.allocate_to(self.reserved.load(Relaxed) + SEGMENT_SIZE)
    }

    /// As [`ensure_space`](Self::ensure_space), for a session that holds page latches and has called that before it took
    /// them. It is content with half a segment, so that it makes one only if others have logged 8 MiB in between.
    pub fn ensure_space_latched(&self) -> std::io::Result<()> {
        if self.reserved.load(Relaxed) + SEGMENT_SIZE / 2 > self.allocated.load(Acquire) {
            self.ensure_space()?;
        }
        Ok(())
    }

    /// As [`ensure_space`](Self::ensure_space), but a segment further, for a background worker: sessions then find that
    /// there is nothing to do.
    pub fn ensure_space_ahead(&self) -> std::io::Result<()> {
        self.allocate_to(self.reserved.load(Relaxed) + 2 * SEGMENT_SIZE)
    }

    fn allocate_to(&self, wanted: u64) -> std::io::Result<()> {
        if wanted > self.allocated.load(Acquire) {
            self.device.allocate(wanted)?;
            // Two workers may store in the wrong order: then somebody asks the device again, no more.
            self.allocated
                .store((wanted / SEGMENT_SIZE + 1) * SEGMENT_SIZE, Release);
        }
        Ok(())
    }

    /// The position after the last record reserved.
    pub fn reserved(&self) -> Lsn {
        Lsn(self.reserved.load(Acquire))
    }

    /// Everything before is durable.
    pub fn flushed(&self) -> Lsn {
        // Acquire: pairs with the Release in `write_out`.
        Lsn(self.durable.load(Acquire))
    }

    /// How often the device has been synced since the log was opened: what group commit is measured by.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    /// Pages last changed before this need a full image with their next change.
    pub fn redo(&self) -> Lsn {
        Lsn(self.redo.load(Acquire))
    }

    /// Inserts a record built for redo position `built_for`; returns the position after it.
    pub fn insert(
        &self,
        kind: RecordKind,
        xid: Xid,
        payload: &[u8],
        built_for: Lsn,
    ) -> Result<Lsn, RedoMoved> {
        let size = record::size(payload.len());
        assert!(
            size <= record::RECORD_MAX.min(self.ring_size()),
            "a log record of {size} bytes"
        );
        let payload_crc = crc32c::crc32c(payload);
        let (chosen, guard) = self.acquire_insert_latch();
        let redo = self.redo();
        if redo != built_for {
            drop(guard);
            return Err(RedoMoved(redo));
        }
        // R1.
        let start = self.reserved.fetch_add(size as u64, AcqRel);
        let end = start + size as u64;
        let ring = self.ring_size() as u64;
        if end > self.written.load(Acquire) + ring {
            // R2.
            guard.update_var(&chosen.inserting_at, start);
            self.flush(Lsn(end - ring));
        }
        // Relaxed: an older value says less, and is still true. It is at most `start`, which nothing passes before the copy.
        let durable = self.durable.load(Relaxed);
        self.copy_in(
            start,
            &record::header(kind, xid, start, durable, payload.len(), payload_crc),
        );
        self.copy_in(start + record::HEADER as u64, payload);
        guard.release_clear_var(&chosen.inserting_at, 0);
        Ok(Lsn(end))
    }

    /// Inserts a record that does not depend on the redo position.
    pub fn insert_any(&self, kind: RecordKind, xid: Xid, payload: &[u8]) -> Lsn {
        let mut redo = self.redo();
        loop {
            match self.insert(kind, xid, payload, redo) {
                Ok(end) => return end,
                Err(RedoMoved(now)) => redo = now,
            }
        }
    }

    fn acquire_insert_latch(&self) -> (&InsertLatch<M>, LwLockExclusive<'_, M>) {
        let preferred = &self.preferred[M::worker().0 as usize];
        let number = preferred.load(Relaxed) as usize;
        let chosen = &self.insert_latches[number];
        if let Some(guard) = chosen.latch.try_exclusive() {
            return (chosen, guard);
        }
        preferred.store(((number + 1) % self.insert_latches.len()) as u32, Relaxed);
        (chosen, chosen.latch.exclusive())
    }

    fn ring_size(&self) -> usize {
        self.ring.len() * WORD
    }

    /// Whether the ring can be addressed as one piece: natively a cell is its content and nothing else.
    const CONTIGUOUS: bool = !M::EXPLORED && size_of::<M::Data<[u8; WORD]>>() == WORD;

    /// The ring's byte `offset`.
    fn ring_byte(&self, offset: usize) -> *mut u8 {
        debug_assert!(Self::CONTIGUOUS && offset < self.ring_size());
        // SAFETY: the offset lies in the ring, whose cells stand one behind the other and allow writes through `&self`.
        unsafe { self.ring.as_ptr().cast::<u8>().cast_mut().add(offset) }
    }

    /// Copies `bytes` to `position`, a multiple of 8, and zeros up to the next one.
    fn copy_in(&self, position: u64, bytes: &[u8]) {
        // What a simulation does not see for itself: a store a word, and a line of the ring fetched every eight of them.
        M::charge(Work::Nanos(bytes.len() as u64 / 2));
        if Self::CONTIGUOUS {
            let start = position as usize & (self.ring_size() - 1);
            let (front, back) = bytes.split_at(bytes.len().min(self.ring_size() - start));
            let end = (start + bytes.len()) & (self.ring_size() - 1);
            // SAFETY: R1: the bytes at [position, position + length) of the log, rounded up to 8, are ours until the latch
            // is released, and R3 keeps their places in the ring from being anybody else's.
            unsafe {
                self.ring_byte(start)
                    .copy_from_nonoverlapping(front.as_ptr(), front.len());
                self.ring_byte(0)
                    .copy_from_nonoverlapping(back.as_ptr(), back.len());
                if !end.is_multiple_of(WORD) {
                    self.ring_byte(end).write_bytes(0, WORD - end % WORD);
                }
            }
            return;
        }
        let mask = self.ring.len() - 1;
        let start = position as usize / WORD;
        for (index, part) in bytes.chunks(WORD).enumerate() {
            let mut word = [0; WORD];
            word[..part.len()].copy_from_slice(part);
            // SAFETY: as above.
            self.ring[(start + index) & mask].with_mut(|place| unsafe { *place = word });
        }
    }

    /// Waits until everything before `target` is in the ring; returns how far that is known (≥ `target`).
    fn wait_insertions(&self, target: u64) -> u64 {
        let mut finished = self.reserved.load(Acquire);
        assert!(
            target <= finished,
            "position {target} is flushed before it is reserved ({finished})"
        );
        for insert in &self.insert_latches {
            let mut at = 0;
            // Err: still inserting, but at `at` or later.
            while let Err(now) = insert.latch.wait_for_var(&insert.inserting_at, at) {
                at = now;
                if at >= target {
                    finished = finished.min(at);
                    break;
                }
            }
        }
        finished
    }

    /// How far everything is in the ring, if that can be told without waiting (R2).
    fn insertions_finished(&self) -> Option<u64> {
        let mut finished = self.reserved.load(Acquire);
        for insert in &self.insert_latches {
            if insert.latch.is_held_exclusive() {
                match insert.inserting_at.load(Acquire) {
                    0 => return None,
                    at => finished = finished.min(at),
                }
            }
        }
        // Pairs with the Release by which each latch seen free was let go: its holder's bytes are visible.
        M::fence(Acquire);
        Some(finished)
    }

    /// Makes everything before `target` durable.
    pub fn flush(&self, target: Lsn) {
        while self.durable.load(Acquire) < target.0 {
            let mut finished = self.wait_insertions(target.0);
            let Some(_write) = self.write_latch.acquire_or_wait() else {
                continue;
            };
            if self.durable.load(Acquire) >= target.0 {
                return;
            }
            if !self.commit_delay.is_zero() {
                let _wait = WaitScope::<M>::enter(WaitEvent::CommitDelay);
                M::sleep(self.commit_delay);
            }
            if let Some(now) = self.insertions_finished() {
                finished = finished.max(now);
            }
            self.write_out(finished);
        }
    }

    /// Writes and syncs up to `end`; the write latch is held.
    fn write_out(&self, end: u64) {
        let start = self.written.load(Relaxed);
        if start < end {
            self.write_ring(start, end);
            // R3: from here on these places may be overwritten.
            self.written.store(end, Release);
        }
        let durable = self.durable.load(Relaxed);
        if durable < end {
            if let Err(error) = self.device.sync(durable, end) {
                fail("sync", error);
            }
            self.syncs.store(self.syncs.load(Relaxed) + 1, Relaxed);
            // Release: pairs with the Acquire in `flushed`.
            self.durable.store(end, Release);
        }
    }

    fn write_ring(&self, start: u64, end: u64) {
        let ring = self.ring_size() as u64;
        let mut at = start;
        while at < end {
            let offset = (at % ring) as usize;
            let take = (end - at).min(ring - offset as u64) as usize;
            let written = if Self::CONTIGUOUS {
                // SAFETY: the write latch is held and `wait_insertions` has shown these bytes complete (R1); nobody writes
                // them before `written` moves past them (R3).
                let bytes = unsafe { std::slice::from_raw_parts(self.ring_byte(offset), take) };
                self.device.write(at, bytes)
            } else {
                self.device.write(at, &self.copy_out(offset, take))
            };
            if let Err(error) = written {
                fail("write", error);
            }
            at += take as u64;
        }
    }

    /// Copies bytes out of the ring; offset and length are multiples of 8.
    fn copy_out(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        for place in &self.ring[offset / WORD..(offset + length) / WORD] {
            // SAFETY: as in `write_ring`.
            bytes.extend_from_slice(&place.with(|word| unsafe { *word }));
        }
        bytes
    }

    /// Moves the redo position to the end of what is reserved: the start of a checkpoint. Nothing is being inserted at
    /// that instant (R4).
    pub fn move_redo(&self) -> Lsn {
        let all = self.insert_latches.iter().map(|insert| {
            let guard = insert.latch.exclusive();
            // R4.
            guard.update_var(&insert.inserting_at, u64::MAX);
            (guard, &insert.inserting_at)
        });
        let all: Vec<_> = all.collect();
        let redo = self.reserved.load(Acquire);
        self.redo.store(redo, Release);
        for (guard, inserting_at) in all {
            guard.release_clear_var(inserting_at, 0);
        }
        Lsn(redo)
    }
}

/// The log's device failed: what it has kept cannot be known, so nothing may go on from here.
fn fail(action: &str, error: std::io::Error) -> ! {
    clearway_machine::fatal(format_args!(
        "could not {action} the log: {error}; stopping, so that no commit is acknowledged that may be lost"
    ))
}
