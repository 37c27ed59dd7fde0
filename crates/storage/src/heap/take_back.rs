//! Taking back what a transaction has done to rows since a savepoint.
//!
//! Invariant: afterwards each version is, for every transaction, what it was at the savepoint. A transaction has one xid,
//! and the commit log one answer for it, so the pages themselves must say what is taken back.
//!
//! | done since | taken back by |
//! | --- | --- |
//! | inserted (also: the new version of an update) | the version ends, by its own inserter: none sees it any more |
//! | deleted, replaced, locked | the version's end goes, and with it the link to a successor |
//! | the same, and it had been locked before | the end becomes that lock, in its strength |
//!
//! # Steps
//! 1. The changes are taken off the list's end ([`RowChanges`]), newest first, some thousands at a time.
//! 2. They are sorted by page. Those of one page keep their order: a row that was inserted and then deleted first loses
//!    its end, and then gets the one for good.
//! 3. Each page is latched once, and changed by one record of the log.
//!
//! # Why others see nothing wrong
//! - *In between.* A version that is not taken back yet belongs to a transaction that runs: readers do not see what it has
//!   inserted, writers wait for it. So pages may be taken back one after the other, in any order, and an error in the middle
//!   is no harm if the transaction is rolled back as a whole.
//! - *A crash, and a standby.* Each step is a change of a page like any other, replayed like any other. A crash rolls back
//!   the transaction, whatever part has been taken back.
//! - *A key that the transaction has freed.* A row that it has inserted and then deleted is free for others at once
//!   (`visibility::liveness`), since it never comes back. Behind a savepoint it may, so its end says that
//!   ([`MAY_RETURN`]), and others wait for the transaction.
//! - *A row that others wait for.* They sleep until the transaction ends, or has taken something back
//!   (`LockManager::wake_after_take_back`), and look again.
//!
//! Holders of a shared row (`clearway_txn::RowHolders`) are on no list of these: their table knows what was shared since a
//! savepoint. An update has left the holders where they were, so the version that returns has them still.
//!
//! Index entries of a version that was inserted stay, as those of a transaction that was rolled back: vacuum removes them.
//! Its space is not used again before the transaction ends. One xid cannot tell its own withdrawn versions from those that
//! the list may still name, and a place that is reused while the list names it would be taken from another row.
//!
//! Origin: ours. PostgreSQL gives each subtransaction an xid of its own, and its commit log and snapshots know which belong
//! together; what is taken back costs nothing there, and each change between savepoints costs more.

use clearway_txn::Xid;

use crate::buffer::PageExclusive;
use crate::change::AtomicChange;
use crate::error::Result;
use crate::heap::layout::{KEY_KEPT, LOCK_ONLY, Tuple};
use crate::heap::row_changes::{Done, RowChange, RowChanges};
use crate::heap::update::{End, write_end};
use crate::page::{PageId, RelId};
use crate::storage::Storage;

/// The transaction that takes something back.
#[derive(Debug, Clone, Copy)]
pub struct TakeBack<'a> {
    /// The data directory.
    pub storage: &'a Storage,
    /// The transaction.
    pub xid: Xid,
    /// Its running command.
    pub command: u32,
}

impl TakeBack<'_> {
    /// Takes back all changes behind position `down_to` of the list, but for those of relations that are `gone`. `stops` is
    /// asked between pages; `false`: it said yes, and the transaction can only be rolled back as a whole, as after an error.
    pub fn rows(
        &self,
        changes: &RowChanges,
        down_to: u64,
        gone: &dyn Fn(RelId) -> bool,
        stops: &dyn Fn() -> bool,
    ) -> Result<bool> {
        loop {
            // Step 1.
            let mut batch = changes.take(down_to)?;
            if batch.is_empty() {
                return Ok(true);
            }
            // Step 2. The sort is stable.
            batch.retain(|change| !gone(RelId(change.rel)));
            batch.reverse();
            batch.sort_by_key(|change| (change.rel, change.block));
            for of_page in batch.chunk_by(|a, b| (a.rel, a.block) == (b.rel, b.block)) {
                if stops() {
                    return Ok(false);
                }
                self.on_page(of_page)?;
            }
        }
    }

    /// Step 3.
    fn on_page(&self, newest_first: &[RowChange]) -> Result<()> {
        let Some(first) = newest_first.first() else {
            return Ok(());
        };
        let mut change = self.storage.begin_change(self.xid)?;
        let page = PageId {
            rel: RelId(first.rel),
            block: first.block,
        };
        let mut page = self.storage.pin(page)?.into_exclusive();
        for done in newest_first {
            for slot in done.slots() {
                self.version(&mut change, &mut page, slot, done.done);
            }
        }
        change.finish()?;
        Ok(())
    }

    fn version(&self, change: &mut AtomicChange<'_>, page: &mut PageExclusive<'_>, slot: u16, done: Done) {
        let tuple = Tuple::at(page.hinted(), slot);
        let xid_of =
            |of: fn(&Tuple<'_>) -> u64| tuple.as_ref().is_some_and(|tuple| Xid(of(tuple)) == self.xid);
        let is_own = match done {
            Done::Inserted => xid_of(|tuple| tuple.xmin()),
            Done::Ended | Done::EndedNoKeyUpdate | Done::EndedUpdate => xid_of(|tuple| tuple.xmax()),
        };
        assert!(
            is_own,
            "L3: {done:?} at line pointer {slot} is taken back by {}",
            self.xid
        );
        let own = |bits: u16| End {
            xmax: self.xid,
            command: self.command,
            next: None,
            bits,
        };
        let end = match done {
            Done::Inserted => own(0),
            Done::Ended => End::NONE,
            Done::EndedNoKeyUpdate => own(LOCK_ONLY | KEY_KEPT),
            Done::EndedUpdate => own(LOCK_ONLY),
        };
        write_end(change, page, slot, end);
    }
}
