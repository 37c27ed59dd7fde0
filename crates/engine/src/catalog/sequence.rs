//! The numbers of a serial column.
//!
//! A sequence is a relation of one page that holds one number: up to where numbers may have been given out. It is
//! outside of transactions, as in PostgreSQL: a rollback does not give numbers back, and two sessions never wait for
//! each other.
//!
//! ```text
//! page offset 24: reserved (i64): every number ≤ reserved may be in use
//! ```
//!
//! R1: *no number is given out twice, also after a crash.* Numbers are handed out from memory only up to `reserved`;
//! raising it logs the change first. The log keeps its order, so the commit of any row that bears a number is flushed
//! after the reservation that allowed it. A crash skips at most [`BATCH`] numbers.

use std::sync::Mutex;

use clearway_storage::{PAGE_SIZE, PageId, PageKind, RelId, Storage};
use clearway_txn::Xid;

use crate::convert::storage_error;
use crate::error::{EngineError, Result, SqlState};

/// How many numbers one log record reserves.
const BATCH: i64 = 32;

/// Where on the page the number lies.
const OFFSET: usize = 24;

const _: () = assert!(OFFSET + 8 <= PAGE_SIZE);

/// A serial column's sequence.
#[derive(Debug)]
pub(crate) struct Sequence {
    rel: u32,
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// Whether the page has been read.
    loaded: bool,
    /// The number given out last.
    last: i64,
    reserved: i64,
}

impl Sequence {
    /// The sequence in this relation.
    pub(crate) fn new(rel: u32) -> Sequence {
        Sequence {
            rel,
            numbers: Mutex::default(),
        }
    }

    /// Its relation.
    pub(crate) fn rel(&self) -> u32 {
        self.rel
    }

    /// Lays out a fresh relation as a sequence that starts at 1.
    pub(crate) fn create(storage: &Storage, rel: RelId) -> Result<()> {
        let page = storage.extend(rel).map_err(storage_error)?;
        let mut change = storage.begin_change(Xid::INVALID).map_err(storage_error)?;
        let mut exclusive = page.exclusive();
        change.init_page(&mut exclusive, PageKind::SEQUENCE, 0);
        change.finish().map_err(storage_error)?;
        Ok(())
    }

    /// The next number.
    pub(crate) fn next(&self, storage: &Storage, max: i64) -> Result<i64> {
        let mut numbers = self
            .numbers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if !numbers.loaded {
            let page = storage
                .pin(PageId {
                    rel: RelId(self.rel),
                    block: 0,
                })
                .map_err(storage_error)?;
            let shared = page.shared();
            let bytes: [u8; 8] = shared.bytes()[OFFSET..OFFSET + 8]
                .try_into()
                .expect("eight bytes");
            numbers.reserved = i64::from_le_bytes(bytes);
            numbers.last = numbers.reserved;
            numbers.loaded = true;
        }
        if numbers.last >= max {
            return Err(EngineError::new(
                SqlState::from_code("2200H"),
                format!("nextval: reached maximum value of sequence ({max})"),
            ));
        }
        if numbers.last == numbers.reserved {
            let reserved = numbers.reserved.saturating_add(BATCH);
            let page = storage
                .pin(PageId {
                    rel: RelId(self.rel),
                    block: 0,
                })
                .map_err(storage_error)?;
            let mut change = storage.begin_change(Xid::INVALID).map_err(storage_error)?;
            let mut exclusive = page.exclusive();
            change.write(&mut exclusive, OFFSET, &reserved.to_le_bytes());
            change.finish().map_err(storage_error)?;
            numbers.reserved = reserved;
        }
        numbers.last += 1;
        Ok(numbers.last)
    }
}
