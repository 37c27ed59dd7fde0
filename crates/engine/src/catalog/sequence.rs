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
//! # Rules
//! - R1: *no number that a client was shown, or that is in a committed row, is given out again, also after a crash.*
//!   Numbers are handed out from memory only up to `reserved`; raising it logs the change first. A crash skips at most
//!   [`BATCH`] numbers.
//!   `setval` is the exception: it says which numbers are given out again.
//! - R2: the log keeps its order, so the commit of any row that bears a number is flushed after the reservation that
//!   allowed it.
//! - R3: *a number can be shown without a commit*: by RETURNING or a SELECT in a block, by an error that names the row,
//!   and before a rollback. Nothing flushes the reservation then. So a session gets the position behind the
//!   reservation together with the number, as an [`Unsecured`]: its own, or that of the session that has made the
//!   reservation. It answers with rows when the log is secured up to there.
//!
//! # An example
//! 272 numbers are given out, and the log is durable up to the reservation of 96.
//!
//! | time | Alice | Bob | the log |
//! | --- | --- | --- | --- |
//! | 1 | begins; her INSERT takes 273 | | reserved: 304 |
//! | 2 | | begins; his INSERT … RETURNING takes 274, and waits for the reservation of 304 | durable |
//! | 3 | | is shown 274 | |
//! | 4 | the server is killed: no commit, and both rows are gone | | |
//! | 5 | after the start the next number is 305 | | |
//!
//! Without the wait the next number after the start would be 97, and 274 would come again.
//!
//! # What this does not do A session that does not wait for the disk (`synchronous_commit = off`) is shown numbers that
//! a crash may take, as a crash may take its acknowledged commits. Under `lock_release = after-flush` rows of such a
//! session's commits are shown to others before they are durable, with their numbers.
//!
//! Costs: a comparison a number. An answer waits once, if a number under a reservation that is not durable was handed out.
//! The tag of an INSERT of given rows or of a COPY shows no number and waits for none; that of INSERT … SELECT counts as an
//! answer with rows (`transaction::answer`).

use std::sync::Mutex;

use clearway_machine::invariant;
use clearway_storage::{Lsn, PAGE_SIZE, PageId, PageKind, RelId, Storage, Unsecured, page};
use clearway_txn::Xid;

use crate::convert::storage_error;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Numbers that one log record reserves.
const BATCH: i64 = 32;

/// The place of the number on the page.
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
    /// True if the page has been read.
    loaded: bool,
    /// The number given out last.
    last: i64,
    reserved: i64,
    /// The position behind the record of `reserved`.
    reserved_at: Lsn,
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

    /// The number given out last; 0 if there is none.
    pub(crate) fn last(&self, storage: &Storage) -> Result<i64> {
        let mut numbers = self
            .numbers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        self.load(storage, &mut numbers)?;
        Ok(numbers.last)
    }

    /// Reads the page, once.
    fn load(&self, storage: &Storage, numbers: &mut Numbers) -> Result<()> {
        if numbers.loaded {
            return Ok(());
        }
        let page = storage.pin(self.page()).map_err(storage_error)?;
        let shared = page.shared();
        let bytes: [u8; 8] = shared.bytes()[OFFSET..OFFSET + 8]
            .try_into()
            .expect("eight bytes");
        numbers.reserved = i64::from_le_bytes(bytes);
        numbers.last = numbers.reserved;
        numbers.reserved_at = page::lsn(shared.bytes());
        numbers.loaded = true;
        Ok(())
    }

    fn page(&self) -> PageId {
        PageId {
            rel: RelId(self.rel),
            block: 0,
        }
    }

    /// Makes this the number given out last, so that the next one follows it. It is logged at once, and stays when the
    /// transaction is rolled back, as in PostgreSQL; the position behind the record comes with it.
    pub(crate) fn set_last(&self, storage: &Storage, last: i64) -> Result<Unsecured<()>> {
        let mut numbers = self
            .numbers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        self.load(storage, &mut numbers)?;
        self.reserve(storage, &mut numbers, last)?;
        numbers.last = last;
        Ok(Unsecured::new((), numbers.reserved_at))
    }

    /// Logs that numbers up to `reserved` may be in use.
    fn reserve(&self, storage: &Storage, numbers: &mut Numbers, reserved: i64) -> Result<()> {
        let page = storage.pin(self.page()).map_err(storage_error)?;
        let mut change = storage.begin_change(Xid::INVALID).map_err(storage_error)?;
        let mut exclusive = page.exclusive();
        change.write(&mut exclusive, OFFSET, &reserved.to_le_bytes());
        numbers.reserved_at = change.finish().map_err(storage_error)?;
        numbers.reserved = reserved;
        Ok(())
    }

    /// The next number.
    pub(crate) fn next(&self, storage: &Storage, max: i64) -> Result<Unsecured<i64>> {
        let mut numbers = self
            .numbers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        self.load(storage, &mut numbers)?;
        if numbers.last >= max {
            return Err(EngineError::new(
                SqlState::from_code("2200H"),
                format!("nextval: reached maximum value of sequence ({max})"),
            ));
        }
        if numbers.last == numbers.reserved {
            let reserved = numbers.reserved.saturating_add(BATCH);
            self.reserve(storage, &mut numbers, reserved)?;
        }
        numbers.last += 1;
        invariant!(
            R1,
            numbers.last <= numbers.reserved,
            "number {} of sequence {} is given out, and {} is reserved",
            numbers.last,
            self.rel,
            numbers.reserved
        );
        Ok(Unsecured::new(numbers.last, numbers.reserved_at))
    }
}
