//! Banks: the cached pages are dealt out to banks, each under a latch of its own: 16, or as many as the options say.
//!
//! # Invariant
//! A page belongs to one bank, by its number. So each status is under one latch, as with the baseline, and R1 to R5
//! hold within each bank for the same reasons. No worker holds the latches of two banks.
//!
//! # Steps
//! As the baseline (`bank`), in bank `page % 16`. A flush goes over the banks in turn.
//!
//! # Linearization and orderings
//! A status is set, and read, under its bank's latch, which orders the two. Between statuses in two banks there is no
//! order but the caller's: a reader has first found that the transaction does not run, and the array's latch orders
//! that.
//!
//! # Cost
//! The baseline's acquire, and a mask to find the bank. 16 times two latches, each on cache lines of its own, and a
//! buffer a bank for writing: 130 KiB more than the baseline. Two pages do not meet on one latch unless their numbers
//! are equal modulo 16, and a page that is read or written holds up misses in its own bank only. The newest 32,672
//! transactions share a page, so commits of one moment still meet on one latch: banks help readers of older pages, and
//! the commits beside them.
//!
//! Origin: Dilip Kumar's banks for PostgreSQL 17's SLRUs, after proposals by Andrey Borodin and Yura Sokolov.

use std::io;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Padded};

use super::bank::Bank;
use super::page::{CachedPage, Place};
use super::{CACHED_PAGES, Status, StatusDevice, StatusLog};
use crate::Xid;

/// Number of banks, unless the options say another one. Under a checker as few as it takes to have several.
pub(super) const BANKS: usize = if cfg!(any(feature = "loom", feature = "shuttle")) {
    2
} else {
    16
};

/// The pages in their banks, a power of two of them.
#[derive(Debug)]
pub(super) struct Log<M: Machine, D: StatusDevice> {
    device: D,
    banks: Box<[Padded<Bank<M>>]>,
}

impl<M: Machine, D: StatusDevice> Log<M, D> {
    /// The number of a page's bank.
    #[inline]
    pub(super) fn number_of(&self, page: u32) -> usize {
        page as usize & (self.banks.len() - 1)
    }

    #[inline]
    pub(super) fn bank(&self, page: u32) -> &Bank<M> {
        &self.banks[self.number_of(page)]
    }

    /// Changes page `number`, reading it first if need be.
    fn change(&self, number: u32, apply: impl FnOnce(&mut CachedPage)) -> io::Result<()> {
        self.bank(number).change(&self.device, number, apply)
    }
}

impl<M: Machine, D: StatusDevice> StatusLog<M, D> for Log<M, D> {
    fn new(device: D, banks: usize, lwlock: LwLockOptions) -> Self {
        let slots = if M::EXPLORED { 1 } else { CACHED_PAGES / banks };
        let bank = |_| Padded(Bank::new(banks, slots, lwlock));
        Self {
            device,
            banks: (0..banks).map(bank).collect(),
        }
    }

    fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn get(&self, xid: Xid) -> io::Result<Status> {
        let place = Place::of(xid);
        self.bank(place.page).get(&self.device, &place)
    }

    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        let place = Place::of(xid);
        self.change(place.page, |page| page.set_status(&place, status, lsn))
    }

    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        self.change(number, |page| page.merge(content))
    }

    fn flush_all(&self) -> io::Result<()> {
        self.banks.iter().try_for_each(|bank| bank.flush(&self.device))
    }
}
