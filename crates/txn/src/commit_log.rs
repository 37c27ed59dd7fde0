//! The commit log: two bits a transaction, on 8 KiB pages, cached in slots under one latch (the baseline).
//!
//! A page is cached in the slot `page % SLOTS`. Consecutive pages fall into different slots, and what is asked for is
//! nearly always recent, so nothing cleverer pays here. Reads of a cached page take the latch shared; everything else,
//! the reading and writing of pages included, happens under it exclusively.
//!
//! - R1: a page is written only through [`StatusDevice::write_page`] with the newest log position of the commits on it,
//!   so that no commit is on disk here before its record is on disk there.

use std::io;

use clearway_latch::{LatchClass, Latched, LwLockAlgorithm};
use clearway_machine::{Machine, Native, WaitEvent, WaitScope};

use crate::Xid;

static COMMIT_LOG: LatchClass = LatchClass::new("CommitLog", WaitEvent::CommitLog, 400);

/// Bytes a page.
pub const COMMIT_LOG_PAGE_SIZE: usize = 8192;
/// Bytes at the start of each page that belong to the device (its checksum and log position).
pub const COMMIT_LOG_PAGE_HEADER: usize = 24;
/// Transactions a page.
pub const XIDS_PER_PAGE: u64 = ((COMMIT_LOG_PAGE_SIZE - COMMIT_LOG_PAGE_HEADER) * 4) as u64;
/// Pages cached: 4 million transactions.
const SLOTS: usize = 128;

/// How the commit log is latched; the switch `commit_log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CommitLogAlgorithm {
    /// One latch over everything.
    #[default]
    Latch,
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

#[derive(Debug)]
struct CachedPage {
    number: u32,
    bytes: Box<[u8; COMMIT_LOG_PAGE_SIZE]>,
    dirty: bool,
    lsn: u64,
}

/// The commit log.
#[derive(Debug)]
pub struct CommitLog<M: Machine = Native, D: StatusDevice = Box<dyn StatusDevice>> {
    device: D,
    slots: Latched<Vec<Option<CachedPage>>, M>,
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
    pub fn new(device: D, algorithm: LwLockAlgorithm) -> Self {
        Self {
            device,
            slots: Latched::new(&COMMIT_LOG, algorithm, (0..SLOTS).map(|_| None).collect()),
        }
    }

    /// How `xid` stands.
    pub fn get(&self, xid: Xid) -> io::Result<Status> {
        match xid {
            Xid::INVALID => return Ok(Status::Aborted),
            Xid::BOOTSTRAP => return Ok(Status::Committed),
            _ => {}
        }
        let (number, byte, shift) = place(xid);
        let slot = number as usize % SLOTS;
        {
            let slots = self.slots.shared();
            if let Some(page) = slots[slot].as_ref().filter(|page| page.number == number) {
                return Ok(Status::from_bits(page.bytes[byte] >> shift));
            }
        }
        let mut slots = self.slots.exclusive();
        let page = self.load(&mut slots[slot], number)?;
        Ok(Status::from_bits(page.bytes[byte] >> shift))
    }

    /// Records how `xid` ended; `lsn` is the end of the log record that says so (0 if there is none).
    pub fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        assert!(xid >= Xid::FIRST_NORMAL, "the status of xid {xid} is fixed");
        let (number, byte, shift) = place(xid);
        let mut slots = self.slots.exclusive();
        let page = self.load(&mut slots[number as usize % SLOTS], number)?;
        page.bytes[byte] = page.bytes[byte] & !(3 << shift) | (status as u8) << shift;
        page.dirty = true;
        page.lsn = page.lsn.max(lsn);
        Ok(())
    }

    /// Adds the statuses that an image of page `number` holds (recovery). A status never changes once it is set, so adding
    /// is an OR, in any order.
    pub fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        let mut slots = self.slots.exclusive();
        let page = self.load(&mut slots[number as usize % SLOTS], number)?;
        for (byte, image) in page.bytes[COMMIT_LOG_PAGE_HEADER..].iter_mut().zip(content) {
            *byte |= image;
        }
        page.dirty = true;
        Ok(())
    }

    /// Makes `slot` hold page `number`.
    fn load<'a>(&self, slot: &'a mut Option<CachedPage>, number: u32) -> io::Result<&'a mut CachedPage> {
        if slot.as_ref().is_none_or(|page| page.number != number) {
            if let Some(old) = slot {
                self.write_back(old)?;
            }
            let mut bytes = Box::new([0; COMMIT_LOG_PAGE_SIZE]);
            {
                let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogRead);
                self.device.read_page(number, &mut bytes)?;
            }
            *slot = Some(CachedPage {
                number,
                bytes,
                dirty: false,
                lsn: 0,
            });
        }
        slot.as_mut()
            .ok_or_else(|| io::Error::other("the page just loaded is gone"))
    }

    fn write_back(&self, page: &mut CachedPage) -> io::Result<()> {
        if page.dirty {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogWrite);
            self.device.write_page(page.number, &page.bytes, page.lsn)?;
            page.dirty = false;
            page.lsn = 0;
        }
        Ok(())
    }

    /// Writes every changed page, taking the latch for one page at a time. Changes made meanwhile may or may not be in.
    pub fn flush_all(&self) -> io::Result<()> {
        for slot in 0..SLOTS {
            if self.slots.shared()[slot].as_ref().is_some_and(|page| page.dirty)
                && let Some(page) = &mut self.slots.exclusive()[slot]
            {
                self.write_back(page)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

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
        let memory = Arc::new(Memory::default());
        let log = CommitLog::<Native, _>::new(Arc::clone(&memory), LwLockAlgorithm::Queued);
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
        let again = CommitLog::<Native, _>::new(memory, LwLockAlgorithm::Queued);
        assert_eq!(again.get(near).unwrap(), Status::Committed);
        assert_eq!(again.get(near.next()).unwrap(), Status::Aborted);
        assert_eq!(again.get(far).unwrap(), Status::Aborted);
        assert_eq!(again.get(Xid(9)).unwrap(), Status::InProgress);
        assert_eq!(again.get(Xid::BOOTSTRAP).unwrap(), Status::Committed);
    }
}
