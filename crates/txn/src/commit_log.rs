//! The commit log: two bits a transaction, on 8 KiB pages, cached in slots under one latch (the baseline).
//!
//! A page is cached in the slot `page % SLOTS`. Consecutive pages fall into different slots, and what is asked for is
//! nearly always recent, so choosing a victim by use would pay for nothing: the 4 million newest transactions are cached,
//! and those that are older have left hint bits on the rows they touched.
//!
//! Two latches. CommitLog is the baseline's one latch: shared to read a status, exclusive to set one, held for a few
//! instructions. CommitLogIo is for who reads or writes a page, and is held across that. So a checkpoint that writes pages
//! delays nobody who finds his page cached.
//!
//! # Rules
//! - R1: a page is written only through [`StatusDevice::write_page`] with the newest log position of the commits on it,
//!   so that no commit is on disk here before its record is on disk there.
//! - R2: pages are read, written and replaced under CommitLogIo: two writers of one page cannot overtake each other, and a
//!   page read is the newest one written.
//! - R3: a page is clean only if no status on it was set since the copy was made that was written.
//! - R4: a status never changes once it is set, other than from SubCommitted.
//!
//! The first 24 bytes of each page are the device's. Memory: 1 MiB of pages.

use std::io;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Native, WaitEvent, WaitScope, switch};

use crate::Xid;

static COMMIT_LOG_IO: LatchClass = LatchClass::new("CommitLogIo", WaitEvent::CommitLogWrite, 390);
static COMMIT_LOG: LatchClass = LatchClass::new("CommitLog", WaitEvent::CommitLog, 400);

/// Bytes a page.
pub const COMMIT_LOG_PAGE_SIZE: usize = 8192;
/// Bytes at the start of each page that belong to the device (its checksum and log position).
pub const COMMIT_LOG_PAGE_HEADER: usize = 24;
/// Transactions a page.
pub const XIDS_PER_PAGE: u64 = ((COMMIT_LOG_PAGE_SIZE - COMMIT_LOG_PAGE_HEADER) * 4) as u64;
// Where a status lies follows from this number: another one is another version of the format.
const _: () = assert!(XIDS_PER_PAGE == 32_672);
/// Pages cached: 4 million transactions.
const SLOTS: usize = 128;

switch! {
    /// What guards the commit log.
    pub enum CommitLogVariant = "commit_log", best Latch, planned ["group", "banks", "atomic"] {
        /// One latch over everything.
        Latch = "latch",
    }
}

/// How a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not ended, or lost in a crash: whoever asks has first made sure that it is not running.
    InProgress = 0,
    /// Committed.
    Committed = 1,
    /// Rolled back.
    Aborted = 2,
    /// A subtransaction whose parent decides.
    SubCommitted = 3,
}

impl Status {
    fn from_bits(bits: u8) -> Status {
        match bits & 3 {
            0 => Status::InProgress,
            1 => Status::Committed,
            2 => Status::Aborted,
            _ => Status::SubCommitted,
        }
    }
}

/// Where commit-log pages live.
pub trait StatusDevice: Send + Sync {
    /// Reads page `number`; `false` if it has never been written (`page` is then all zero).
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool>;
    /// Writes page `number`, after making the log durable up to position `lsn`.
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()>;
}

type PageBytes = Box<[u8; COMMIT_LOG_PAGE_SIZE]>;

#[derive(Debug)]
struct CachedPage {
    number: u32,
    bytes: PageBytes,
    /// Statuses set since the page was read or last written.
    changes: u64,
    /// The newest log position of these.
    lsn: u64,
}

impl CachedPage {
    fn is_dirty(&self) -> bool {
        self.changes != 0
    }
}

/// The commit log.
#[derive(Debug)]
pub struct CommitLog<M: Machine = Native, D: StatusDevice = Box<dyn StatusDevice>> {
    device: D,
    slots: Latched<Vec<Option<CachedPage>>, M>,
    /// Held by whoever reads or writes a page; the buffer is what is being written.
    io: Latched<PageBytes, M>,
}

impl<D: StatusDevice + ?Sized> StatusDevice for Box<D> {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        (**self).read_page(number, page)
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        (**self).write_page(number, page, lsn)
    }
}

/// Page number, byte on the page, shift within the byte.
fn place(xid: Xid) -> (u32, usize, u32) {
    let within = xid.0 % XIDS_PER_PAGE;
    let byte = COMMIT_LOG_PAGE_HEADER + (within / 4) as usize;
    ((xid.0 / XIDS_PER_PAGE) as u32, byte, (within % 4) as u32 * 2)
}

impl<M: Machine, D: StatusDevice> CommitLog<M, D> {
    /// A commit log over `device`, with nothing cached.
    pub fn new(device: D, lwlock: impl Into<LwLockOptions>) -> Self {
        let lwlock = lwlock.into();
        // Few under a checker, so that walking over them is not all it explores.
        let slots = if M::EXPLORED { 2 } else { SLOTS };
        Self {
            device,
            slots: Latched::new(&COMMIT_LOG, lwlock, (0..slots).map(|_| None).collect()),
            io: Latched::new(&COMMIT_LOG_IO, lwlock, Box::new([0; COMMIT_LOG_PAGE_SIZE])),
        }
    }

    /// The device underneath.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// How `xid` stands.
    #[inline]
    pub fn get(&self, xid: Xid) -> io::Result<Status> {
        match xid {
            Xid::INVALID => return Ok(Status::Aborted),
            Xid::BOOTSTRAP => return Ok(Status::Committed),
            _ => {}
        }
        let (number, byte, shift) = place(xid);
        loop {
            if let Some(page) = cached(&self.slots.shared(), number) {
                return Ok(Status::from_bits(page.bytes[byte] >> shift));
            }
            self.fetch(number)?;
        }
    }

    /// Records how `xid` ended; `lsn` is the end of the log record that says so (0 if there is none).
    pub fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        assert!(xid >= Xid::FIRST_NORMAL, "the status of xid {xid} is fixed");
        let (number, byte, shift) = place(xid);
        self.change(number, |page| {
            let before = Status::from_bits(page.bytes[byte] >> shift);
            debug_assert!(
                before == status || matches!(before, Status::InProgress | Status::SubCommitted),
                "R4: xid {xid} goes from {before:?} to {status:?}"
            );
            page.bytes[byte] = page.bytes[byte] & !(3 << shift) | (status as u8) << shift;
            page.lsn = page.lsn.max(lsn);
        })
    }

    /// Adds the statuses that an image of page `number` holds (recovery). By R4 adding is an OR, in any order.
    pub fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        self.change(number, |page| {
            for (byte, image) in page.bytes[COMMIT_LOG_PAGE_HEADER..].iter_mut().zip(content) {
                *byte |= image;
            }
        })
    }

    /// Changes page `number`, reading it first if need be.
    fn change(&self, number: u32, apply: impl FnOnce(&mut CachedPage)) -> io::Result<()> {
        loop {
            let mut slots = self.slots.exclusive();
            let slot = slot_of(slots.len(), number);
            if let Some(page) = slots[slot].as_mut().filter(|page| page.number == number) {
                apply(page);
                page.changes += 1;
                return Ok(());
            }
            drop(slots);
            self.fetch(number)?;
        }
    }

    /// Makes its slot hold page `number`, at least for a moment.
    #[cold]
    fn fetch(&self, number: u32) -> io::Result<()> {
        let mut buffer = self.io.exclusive();
        if cached(&self.slots.shared(), number).is_some() {
            return Ok(());
        }
        let mut bytes = Box::new([0; COMMIT_LOG_PAGE_SIZE]);
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogRead);
            self.device.read_page(number, &mut bytes)?;
        }
        loop {
            let mut slots = self.slots.exclusive();
            let slot = slot_of(slots.len(), number);
            if !slots[slot].as_ref().is_some_and(CachedPage::is_dirty) {
                slots[slot] = Some(CachedPage {
                    number,
                    bytes,
                    changes: 0,
                    lsn: 0,
                });
                return Ok(());
            }
            drop(slots);
            self.write_back(slot, &mut buffer)?;
        }
    }

    /// Writes the page in `slot` if it has changed. The caller holds CommitLogIo, so the slot keeps its page (R2); after an
    /// error the page is as dirty as before.
    fn write_back(&self, slot: usize, buffer: &mut PageBytes) -> io::Result<()> {
        let (number, changes, lsn) = {
            let slots = self.slots.shared();
            let Some(page) = slots[slot].as_ref().filter(|page| page.is_dirty()) else {
                return Ok(());
            };
            buffer.copy_from_slice(&page.bytes[..]);
            (page.number, page.changes, page.lsn)
        };
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogWrite);
            // R1.
            self.device.write_page(number, buffer, lsn)?;
        }
        let mut slots = self.slots.exclusive();
        if let Some(page) = &mut slots[slot] {
            assert_eq!(
                page.number, number,
                "R2: a slot changed its page under CommitLogIo"
            );
            // R3.
            page.changes -= changes;
            if !page.is_dirty() {
                page.lsn = 0;
            }
        }
        Ok(())
    }

    /// Writes every page that has changed by now. Changes made meanwhile may or may not be in. Whoever finds his page
    /// cached waits for none of this.
    pub fn flush_all(&self) -> io::Result<()> {
        let slots = self.slots.shared().len();
        for slot in 0..slots {
            if self.slots.shared()[slot]
                .as_ref()
                .is_some_and(CachedPage::is_dirty)
            {
                self.write_back(slot, &mut self.io.exclusive())?;
            }
        }
        Ok(())
    }
}

#[inline]
fn slot_of(slots: usize, number: u32) -> usize {
    debug_assert!(slots.is_power_of_two());
    number as usize & (slots - 1)
}

#[inline]
fn cached(slots: &[Option<CachedPage>], number: u32) -> Option<&CachedPage> {
    slots[slot_of(slots.len(), number)]
        .as_ref()
        .filter(|page| page.number == number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use clearway_latch::LwLockVariant;
    use clearway_machine::Watchdog;

    use super::*;

    /// Written pages, with the log position each was written at.
    #[derive(Default)]
    struct Memory(Mutex<HashMap<u32, (Vec<u8>, u64)>>);

    impl StatusDevice for Arc<Memory> {
        fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
            let found = self
                .0
                .lock()
                .unwrap()
                .get(&number)
                .map(|(bytes, _)| page.copy_from_slice(bytes));
            Ok(found.is_some())
        }
        fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
            self.0.lock().unwrap().insert(number, (page.to_vec(), lsn));
            Ok(())
        }
    }

    #[test]
    fn statuses_survive_eviction_and_flush() {
        let _watchdog = Watchdog::over_test();
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), LwLockVariant::Queued);
        // The second xid evicts the first one's page from their common slot.
        let near = Xid(7);
        let far = Xid(7 + XIDS_PER_PAGE * SLOTS as u64);
        log.set(near, Status::Committed, 500).unwrap();
        log.set(near.next(), Status::Aborted, 400).unwrap();
        log.set(far, Status::Aborted, 600).unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].1,
            500,
            "R1: the newest position of the page"
        );
        assert_eq!(log.get(near).unwrap(), Status::Committed);
        assert_eq!(log.get(far).unwrap(), Status::Aborted);
        log.flush_all().unwrap();
        let again = CommitLog::<Native, _>::new(memory, LwLockVariant::Queued);
        assert_eq!(again.get(near).unwrap(), Status::Committed);
        assert_eq!(again.get(near.next()).unwrap(), Status::Aborted);
        assert_eq!(again.get(far).unwrap(), Status::Aborted);
        assert_eq!(again.get(Xid(9)).unwrap(), Status::InProgress);
        assert_eq!(again.get(Xid::BOOTSTRAP).unwrap(), Status::Committed);
    }

    /// Where a status lies is part of the format; and none lies where another does.
    #[test]
    fn each_status_has_two_bits_of_its_own() {
        let _watchdog = Watchdog::over_test();
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), LwLockVariant::Queued);
        let xids = || (3..3_000).chain(XIDS_PER_PAGE - 50..XIDS_PER_PAGE + 50);
        let status = |xid: u64| Status::from_bits((xid % 3) as u8);
        for xid in xids().filter(|xid| status(*xid) != Status::InProgress) {
            log.set(Xid(xid), status(xid), 0).unwrap();
        }
        for xid in xids() {
            assert_eq!(log.get(Xid(xid)).unwrap(), status(xid), "{xid}");
            let committed = crate::ended(&log, Xid(xid)).unwrap() == crate::Fate::Committed;
            assert_eq!(committed, status(xid) == Status::Committed, "{xid}");
        }
        assert_eq!(log.get(Xid::INVALID).unwrap(), Status::Aborted);
        log.flush_all().unwrap();
        let written = memory.0.lock().unwrap();
        let byte = |page: u32, byte: usize| written[&page].0[COMMIT_LOG_PAGE_HEADER + byte];
        assert_eq!(
            byte(0, 1),
            0b01_00_10_01,
            "4, 5, 6, 7: committed, aborted, running, committed"
        );
        assert_eq!(byte(0, 2), 0b10_01_00_10, "8 to 11");
        let first = XIDS_PER_PAGE;
        let wanted = (0..4).map(|at| ((first + at) % 3) as u8 * (1 << (2 * at))).sum();
        assert_eq!(byte(1, 0), wanted, "the second page");
        assert!(
            written[&0].0[..COMMIT_LOG_PAGE_HEADER]
                .iter()
                .all(|byte| *byte == 0)
        );
    }

    #[test]
    fn an_image_adds_to_what_is_known() {
        let _watchdog = Watchdog::over_test();
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), LwLockVariant::Queued);
        log.set(Xid(4), Status::Committed, 0).unwrap();
        log.set(Xid(5), Status::Aborted, 0).unwrap();
        // Of an earlier and a later moment.
        log.merge_page(0, &[0, 0b00_00_00_01]).unwrap();
        log.merge_page(0, &[0, 0b01_00_10_01]).unwrap();
        for (xid, status) in [
            (4, Status::Committed),
            (5, Status::Aborted),
            (6, Status::InProgress),
            (7, Status::Committed),
        ] {
            assert_eq!(log.get(Xid(xid)).unwrap(), status, "{xid}");
        }
        log.flush_all().unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].0[COMMIT_LOG_PAGE_HEADER + 1],
            0b01_00_10_01
        );
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "R4")]
    fn an_aborted_transaction_does_not_commit() {
        let _watchdog = Watchdog::over_test();
        let log = CommitLog::<Native, _>::new(Arc::new(Memory::default()), LwLockVariant::Queued);
        log.set(Xid(7), Status::Aborted, 0).unwrap();
        let _ = log.set(Xid(7), Status::Committed, 0);
    }

    /// A device whose writes can be made to fail, and which says what is set while a page is being written.
    struct Hooked<F: Fn(u32) -> io::Result<()> + Send + Sync>(Arc<Memory>, F);

    impl<F: Fn(u32) -> io::Result<()> + Send + Sync> StatusDevice for Hooked<F> {
        fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
            self.0.read_page(number, page)
        }
        fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
            (self.1)(number)?;
            self.0.write_page(number, page, lsn)
        }
    }

    #[test]
    fn a_status_set_during_a_write_stays_dirty() {
        let _watchdog = Watchdog::over_test();
        use std::sync::OnceLock;
        use std::sync::atomic::{AtomicU32, Ordering};
        type Log = CommitLog<Native, Box<dyn StatusDevice>>;
        let memory = Arc::new(Memory::default());
        let itself = Arc::new(OnceLock::<Arc<Log>>::new());
        let writes = Arc::new(AtomicU32::new(0));
        let (inner, counted) = (Arc::clone(&itself), Arc::clone(&writes));
        let hook = move |_| {
            // Bob commits while Alice's page is on its way: he finds it cached and is not held up.
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                inner.get().unwrap().set(Xid(8), Status::Committed, 200)?;
            }
            Ok(())
        };
        let device: Box<dyn StatusDevice> = Box::new(Hooked(Arc::clone(&memory), hook));
        let log = Arc::new(Log::new(device, LwLockVariant::SingleCas));
        assert!(itself.set(Arc::clone(&log)).is_ok());
        log.set(Xid(7), Status::Committed, 100).unwrap();
        log.flush_all().unwrap();
        assert_eq!(memory.0.lock().unwrap()[&0].1, 100);
        log.flush_all().unwrap();
        assert_eq!(
            memory.0.lock().unwrap()[&0].1,
            200,
            "R3: written again, with Bob's position"
        );
        log.flush_all().unwrap();
        assert_eq!(writes.load(Ordering::Relaxed), 2, "clean now");
        let device: Box<dyn StatusDevice> = Box::new(Arc::clone(&memory));
        let again = Log::new(device, LwLockVariant::SingleCas);
        assert_eq!(
            again.get(Xid(8)).unwrap(),
            Status::Committed,
            "through the box as well"
        );
    }

    #[test]
    fn a_failed_write_loses_nothing() {
        let _watchdog = Watchdog::over_test();
        use std::sync::atomic::{AtomicBool, Ordering};
        let memory = Arc::new(Memory::default());
        let broken = Arc::new(AtomicBool::new(true));
        let switch = Arc::clone(&broken);
        let hook = move |_| match switch.load(Ordering::Relaxed) {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        };
        let log = CommitLog::<Native, _>::new(Hooked(Arc::clone(&memory), hook), LwLockVariant::SingleCas);
        let far = Xid(7 + XIDS_PER_PAGE * SLOTS as u64);
        log.set(Xid(7), Status::Committed, 100).unwrap();
        assert!(
            log.flush_all().is_err() && log.get(far).is_err(),
            "the victim cannot be written"
        );
        assert_eq!(log.get(Xid(7)).unwrap(), Status::Committed);
        broken.store(false, Ordering::Relaxed);
        assert_eq!(log.get(far).unwrap(), Status::InProgress);
        assert_eq!(log.get(Xid(7)).unwrap(), Status::Committed);
        assert_eq!(memory.0.lock().unwrap()[&0].1, 100);
    }
}
