//! One page of the commit log: where a status lies, and a page in memory.

use super::Status;
use crate::Xid;

/// Bytes a page.
pub const COMMIT_LOG_PAGE_SIZE: usize = 8192;
/// Bytes at the start of each page that belong to the device (its checksum and log position).
pub const COMMIT_LOG_PAGE_HEADER: usize = 24;
/// Transactions a page.
pub const XIDS_PER_PAGE: u64 = ((COMMIT_LOG_PAGE_SIZE - COMMIT_LOG_PAGE_HEADER) * 4) as u64;
// Where a status lies follows from this number: another one is another version of the format.
const _: () = assert!(XIDS_PER_PAGE == 32_672);

pub(super) type PageBytes = Box<[u8; COMMIT_LOG_PAGE_SIZE]>;

/// The place of a transaction's status.
pub(super) struct Place {
    /// The page's number.
    pub(super) page: u32,
    byte: usize,
    shift: u32,
}

impl Place {
    #[inline]
    pub(super) fn of(xid: Xid) -> Place {
        let within = xid.0 % XIDS_PER_PAGE;
        Place {
            page: (xid.0 / XIDS_PER_PAGE) as u32,
            byte: COMMIT_LOG_PAGE_HEADER + (within / 4) as usize,
            shift: (within % 4) as u32 * 2,
        }
    }
}

/// A page in memory.
#[derive(Debug)]
pub(super) struct CachedPage {
    pub(super) number: u32,
    pub(super) bytes: PageBytes,
    /// Statuses set since the page was read or last written.
    pub(super) changes: u64,
    /// The newest log position of these.
    pub(super) lsn: u64,
}

impl CachedPage {
    pub(super) fn is_dirty(&self) -> bool {
        self.changes != 0
    }

    #[inline]
    pub(super) fn status(&self, place: &Place) -> Status {
        Status::from_bits(self.bytes[place.byte] >> place.shift)
    }

    pub(super) fn set_status(&mut self, place: &Place, status: Status, lsn: u64) {
        let before = self.status(place);
        debug_assert!(
            before == status || matches!(before, Status::InProgress | Status::SubCommitted),
            "R4: a status on page {} goes from {before:?} to {status:?}",
            place.page
        );
        let byte = &mut self.bytes[place.byte];
        *byte = *byte & !(3 << place.shift) | (status as u8) << place.shift;
        self.lsn = self.lsn.max(lsn);
        self.changes += 1;
    }

    /// Adds statuses from an image's content.
    pub(super) fn merge(&mut self, content: &[u8]) {
        for (byte, image) in self.bytes[COMMIT_LOG_PAGE_HEADER..].iter_mut().zip(content) {
            *byte |= image;
        }
        self.changes += 1;
    }
}
