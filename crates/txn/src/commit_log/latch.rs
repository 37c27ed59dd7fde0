//! The baseline: one latch over all cached pages.
//!
//! All pages are in one bank (`bank`), whose latch CommitLog is shared to read a status and exclusive to set one.
//!
//! Costs: a shared or exclusive acquire of one latch for every status, read or set. Each reader writes the latch's
//! cache line twice, and a commit keeps all readers out.

use std::io;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Padded};

use super::bank::Bank;
use super::page::{CachedPage, Place};
use super::{CACHED_PAGES, Status, StatusDevice, StatusLog};
use crate::Xid;

/// The pages under their latch.
#[derive(Debug)]
pub(super) struct Log<M: Machine, D: StatusDevice> {
    device: D,
    /// On lines of its own: readers write its latch, and all read the fields beside it in the owner.
    pages: Padded<Bank<M>>,
}

impl<M: Machine, D: StatusDevice> StatusLog<M, D> for Log<M, D> {
    fn new(device: D, _banks: usize, lwlock: LwLockOptions) -> Self {
        // Few under a checker, so that walking over them is not all it explores.
        let slots = if M::EXPLORED { 2 } else { CACHED_PAGES };
        Self {
            device,
            pages: Padded(Bank::new(1, slots, lwlock)),
        }
    }

    fn device(&self) -> &D {
        &self.device
    }

    #[inline]
    fn get(&self, xid: Xid) -> io::Result<Status> {
        self.pages.get(&self.device, &Place::of(xid))
    }

    fn set(&self, xid: Xid, status: Status, lsn: u64) -> io::Result<()> {
        let place = Place::of(xid);
        let apply = |page: &mut CachedPage| page.set_status(&place, status, lsn);
        self.pages.change(&self.device, place.page, apply)
    }

    fn merge_page(&self, number: u32, content: &[u8]) -> io::Result<()> {
        self.pages
            .change(&self.device, number, |page| page.merge(content))
    }

    fn flush_all(&self) -> io::Result<()> {
        self.pages.flush(&self.device)
    }
}
