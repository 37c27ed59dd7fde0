//! The baseline: one latch over all cached pages.
//!
//! CommitLog is that latch: shared to read a status, exclusive to set one, held for a few instructions. CommitLogIo
//! serializes reading and writing pages (R2) and is held across that, without CommitLog (R5).
//!
//! Costs: a shared or exclusive acquire of one latch for every status, read or set. Each reader writes the latch's
//! cache line twice, and a commit keeps all readers out.

use std::io;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, WaitEvent, WaitScope};

use super::page::{CachedPage, PageBytes, Place};
use super::{CACHED_PAGES, COMMIT_LOG_PAGE_SIZE, Status, StatusDevice, StatusLog};
use crate::Xid;

static COMMIT_LOG_IO: LatchClass = LatchClass::new("CommitLogIo", WaitEvent::CommitLogWrite, 390);
static COMMIT_LOG: LatchClass = LatchClass::new("CommitLog", WaitEvent::CommitLog, 400);

/// The pages under their latch.
#[derive(Debug)]
pub(super) struct Log<M: Machine, D: StatusDevice> {
    device: D,
    slots: Latched<Vec<Option<CachedPage>>, M>,
    /// Held while a page is read or written; the buffer is what is being written.
    io: Latched<PageBytes, M>,
}

impl<M: Machine, D: StatusDevice> StatusLog<M, D> for Log<M, D> {
    fn new(device: D, lwlock: LwLockOptions) -> Self {
        // Few under a checker, so that walking over them is not all it explores.
        let slots = if M::EXPLORED { 2 } else { CACHED_PAGES };
        Self {
            device,
            slots: Latched::new(&COMMIT_LOG, lwlock, (0..slots).map(|_| None).collect()),
            io: Latched::new(&COMMIT_LOG_IO, lwlock, Box::new([0; COMMIT_LOG_PAGE_SIZE])),
        }
    }

    fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn get(&self, xid: Xid) -> io::Result<Status> {
        let place = Place::of(xid);
        loop {
            if let Some(page) = cached(&self.slots.shared(), place.page) {
                return Ok(page.status(&place));
            }
            self.fetch(place.page)?;
        }
    }

    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        let place = Place::of(xid);
        self.change(place.page, |page| page.set_status(&place, status, lsn))
    }

    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        self.change(number, |page| page.merge(content))
    }

    fn flush_all(&self) -> io::Result<()> {
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

impl<M: Machine, D: StatusDevice> Log<M, D> {
    /// Changes page `number`, reading it first if need be.
    fn change(&self, number: u32, apply: impl FnOnce(&mut CachedPage)) -> io::Result<()> {
        loop {
            let mut slots = self.slots.exclusive();
            let slot = slot_of(slots.len(), number);
            if let Some(page) = slots[slot].as_mut().filter(|page| page.number == number) {
                apply(page);
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

    /// Writes the page in `slot` if it has changed. The caller holds CommitLogIo, so the slot keeps its page (R2);
    /// after an error the page is as dirty as before.
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
