//! Rows: a multi-version heap.
//!
//! An update writes a new version of the row and marks the old one; a delete marks it. A reader's snapshot
//! decides which version it sees. A chain of versions on one page whose indexed columns are equal is a HOT
//! chain (heap-only tuples): index entries lead to its first line pointer, the *root*, and never to the
//! others.
//!
//! ```text
//! index ──► slot 3 (root) ──redirect──► slot 7 ──next──► slot 9
//! ```
//!
//! # Rules
//! - R1: an index entry leads to a root: a line pointer that is Normal and not heap-only, a Redirect, or Dead.
//! - R2: `next` is followed within a HOT chain only if the next version's xmin is this one's xmax; otherwise
//!   the slot has been used again.
//! - R3: a root becomes Unused, and with that a place for another row, only after no index leads to it (vacuum).
//! - R4: a version is removed only when no snapshot, present or future, can see it: its deleter committed
//!   below the horizon, or its inserter rolled back. Under `lock_release = early` the deleter's commit is durable, too:
//!   until then a reader must meet the version, to note what the row's absence depends on.
//! - R5: a worker asks whether a transaction *runs* before it asks how the transaction ended.
//! - R6: two heap pages are latched in the order of their numbers.
//!
//! | file | holds |
//! | --- | --- |
//! | `layout` | line pointers and tuple headers |
//! | `visibility` | which version is seen; hint bits |
//! | `insert`, `update` | changing rows |
//! | `lock`, `row_lock` | locking rows; the strength of a lock on its page |
//! | `page_run` | rows placed on one page together |
//! | `scan` | fetching one row, scanning all |
//! | `unpinned` | fetching one row without a pin or a latch |
//! | `prune` | removing dead versions on one page |
//! | `compaction` | moving the tuples that stay together |
//! | `replace` | a new version in a dead one's place |
//! | `kept_versions` | which versions a crash may leave as the newest |
//! | `row_changes`, `take_back` | what a transaction has changed since a savepoint, and how it goes back to that |
//! | `pieces` | byte strings longer than a page |
//! | `check` | whether a page keeps these rules |

mod chain;
pub(crate) mod check;
pub(crate) mod compaction;
mod header;
mod insert;
mod kept_versions;
pub(crate) mod layout;
mod left_behind;
mod lock;
mod once_durable;
mod page_run;
mod pieces;
pub(crate) mod prune;
pub(crate) mod replace;
pub(crate) mod row_changes;
mod row_lock;
mod scan;
mod take_back;
mod unpinned;
mod update;
pub(crate) mod visibility;

use clearway_txn::{ProcId, Xid};

pub use header::VersionHeader;
pub use lock::LockOutcome;
pub use pieces::{PieceWriter, Pieces, PiecesOwner};
pub use row_changes::{Overflow, RowChanges};
pub use scan::{HeapScan, Rival, VersionOutcome};
pub use take_back::TakeBack;
pub use update::{ChangedColumns, DeleteOutcome, UpdateOutcome};
pub use visibility::Liveness;

use crate::commit::Reader;
use crate::error::Result;
use crate::page::{PAGE_HEADER, PAGE_SIZE, PageId, RelId};
use crate::storage::Storage;

/// The place of a row version: page and line pointer (from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Tid {
    /// The page.
    pub block: u32,
    /// The line pointer on it.
    pub slot: u16,
}

/// The session and the transaction that read and change rows.
#[derive(Debug, Clone, Copy)]
pub struct TxnContext<'a> {
    /// The data directory.
    pub storage: &'a Storage,
    /// The session.
    pub proc: ProcId,
    /// The transaction's xid, once it has one; a transaction that changes rows has one.
    pub xid: Option<Xid>,
    /// The number of the running command. It sees the changes of the transaction's earlier commands, and not
    /// its own.
    pub command: u32,
    /// Its snapshot, and the notes of what its answers depend on.
    pub reader: Reader<'a>,
    /// The list of the rows that it changes, if it has a savepoint.
    pub changes: Option<&'a RowChanges>,
}

impl TxnContext<'_> {
    fn writing_xid(&self) -> Xid {
        self.xid.expect("a transaction that changes rows has an xid")
    }

    /// Makes room for notes of `count` changes of rows, before a page is latched for them (L1 of `row_changes`).
    #[inline]
    fn prepare_notes(&self, count: usize) -> Result<()> {
        match self.changes {
            None => Ok(()),
            Some(changes) => changes.prepare(count),
        }
    }

    /// Notes that a row was stored.
    #[inline]
    fn note_inserted(&self, page: PageId, slot: u16) {
        if let Some(changes) = self.changes {
            changes.note(page.rel.0, page.block, slot, row_changes::Done::Inserted);
        }
    }
}

/// The rows of a table.
#[derive(Debug, Clone, Copy)]
pub struct Heap {
    rel: RelId,
}

/// The longest row, in bytes, without its header.
pub const ROW_MAX: usize = PAGE_SIZE - PAGE_HEADER - layout::LINE_POINTER - layout::TUPLE_HEADER - 8;

impl Heap {
    /// The heap in relation `rel`.
    pub fn new(rel: u32) -> Self {
        Self { rel: RelId(rel) }
    }
}
