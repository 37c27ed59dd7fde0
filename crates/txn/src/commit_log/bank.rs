//! A bank: some of the cached pages under one latch, with the latch for reading and writing them.
//!
//! The latch's class is CommitLog: shared to read a status, exclusive to set one, held for a few instructions.
//! CommitLogIo serializes reading and writing the bank's pages (R2) and is held across that, without CommitLog (R5).
//!
//! A page has one bank and one slot in it: page `p` of `n` banks is in bank `p % n`, slot `p / n % slots`.

use std::io;

use clearway_latch::{LatchClass, Latched, LatchedExclusive, LwLockOptions};
use clearway_machine::{Machine, WaitEvent, WaitScope};

use super::page::{CachedPage, PageBytes, Place};
use super::{COMMIT_LOG_PAGE_SIZE, Status, StatusDevice};

pub(super) static COMMIT_LOG_IO: LatchClass = LatchClass::new("CommitLogIo", WaitEvent::CommitLogWrite, 390);
static COMMIT_LOG: LatchClass = LatchClass::new("CommitLog", WaitEvent::CommitLog, 400);

/// A bank, one of a power of two.
#[derive(Debug)]
pub(super) struct Bank<M: Machine> {
    /// Binary logarithm of the number of banks.
    banks_log2: u32,
    slots: Latched<Vec<Option<CachedPage>>, M>,
    /// Held while a page is read or written; the buffer is what is being written.
    io: Latched<PageBytes, M>,
}

impl<M: Machine> Bank<M> {
    /// One of `banks` empty banks, with `slots` slots each; both are powers of two.
    pub(super) fn new(banks: usize, slots: usize, lwlock: LwLockOptions) -> Self {
        debug_assert!(banks.is_power_of_two() && slots.is_power_of_two());
        Self {
            banks_log2: banks.trailing_zeros(),
            slots: Latched::new(&COMMIT_LOG, lwlock, (0..slots).map(|_| None).collect()),
            io: Latched::new(&COMMIT_LOG_IO, lwlock, Box::new([0; COMMIT_LOG_PAGE_SIZE])),
        }
    }

    #[inline]
    pub(super) fn get(&self, device: &impl StatusDevice, place: &Place) -> io::Result<Status> {
        loop {
            if let Some(page) = self.cached(&self.slots.shared(), place.page) {
                return Ok(page.status(place));
            }
            self.fetch(device, place.page)?;
        }
    }

    /// Changes page `number`, reading it first if need be.
    pub(super) fn change(
        &self,
        device: &impl StatusDevice,
        number: u32,
        apply: impl FnOnce(&mut CachedPage),
    ) -> io::Result<()> {
        loop {
            if let Some(page) = self.exclusive().page(number) {
                apply(page);
                return Ok(());
            }
            self.fetch(device, number)?;
        }
    }

    /// The pages, under the exclusive latch.
    #[inline]
    pub(super) fn exclusive(&self) -> ExclusiveBank<'_, M> {
        ExclusiveBank {
            banks_log2: self.banks_log2,
            slots: self.slots.exclusive(),
        }
    }

    /// As [`exclusive`](Self::exclusive), if that needs no waiting.
    #[inline]
    pub(super) fn try_exclusive(&self) -> Option<ExclusiveBank<'_, M>> {
        let slots = self.slots.try_exclusive()?;
        Some(ExclusiveBank {
            banks_log2: self.banks_log2,
            slots,
        })
    }

    #[inline]
    fn cached<'a>(&self, slots: &'a [Option<CachedPage>], number: u32) -> Option<&'a CachedPage> {
        slots[slot_of(self.banks_log2, slots.len(), number)]
            .as_ref()
            .filter(|page| page.number == number)
    }

    /// Writes every page that has changed by now.
    pub(super) fn flush(&self, device: &impl StatusDevice) -> io::Result<()> {
        let slots = self.slots.shared().len();
        for slot in 0..slots {
            if self.slots.shared()[slot]
                .as_ref()
                .is_some_and(CachedPage::is_dirty)
            {
                self.write_back(device, slot, &mut self.io.exclusive())?;
            }
        }
        Ok(())
    }

    /// Makes its slot hold page `number`, at least for a moment.
    #[cold]
    fn fetch(&self, device: &impl StatusDevice, number: u32) -> io::Result<()> {
        let mut buffer = self.io.exclusive();
        if self.cached(&self.slots.shared(), number).is_some() {
            return Ok(());
        }
        let mut bytes = Box::new([0; COMMIT_LOG_PAGE_SIZE]);
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitLogRead);
            device.read_page(number, &mut bytes)?;
        }
        loop {
            let mut slots = self.slots.exclusive();
            let slot = slot_of(self.banks_log2, slots.len(), number);
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
            self.write_back(device, slot, &mut buffer)?;
        }
    }

    /// Writes the page in `slot` if it has changed. The caller holds CommitLogIo, so the slot keeps its page (R2);
    /// after an error the page is as dirty as before.
    fn write_back(&self, device: &impl StatusDevice, slot: usize, buffer: &mut PageBytes) -> io::Result<()> {
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
            device.write_page(number, buffer, lsn)?;
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

/// A bank under its exclusive latch.
pub(super) struct ExclusiveBank<'a, M: Machine> {
    banks_log2: u32,
    slots: LatchedExclusive<'a, Vec<Option<CachedPage>>, M>,
}

impl<M: Machine> ExclusiveBank<'_, M> {
    /// Page `number`, if it is cached.
    #[inline]
    pub(super) fn page(&mut self, number: u32) -> Option<&mut CachedPage> {
        let slot = slot_of(self.banks_log2, self.slots.len(), number);
        self.slots[slot].as_mut().filter(|page| page.number == number)
    }
}

#[inline]
fn slot_of(banks_log2: u32, slots: usize, number: u32) -> usize {
    debug_assert!(slots.is_power_of_two());
    (number as usize >> banks_log2) & (slots - 1)
}
