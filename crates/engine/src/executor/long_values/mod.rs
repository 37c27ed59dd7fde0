//! Values beyond a page: a row whose values are long together is stored with some of them compressed, or stored apart.
//!
//! Promise: a statement sees and writes values of any length up to 1 GB as it does short ones, and a row is there
//! with all its values or not at all, whatever happens to the server. A table without long values pays nothing.
//!
//! # The forms of a value
//!
//! | form | in the row | elsewhere |
//! | --- | --- | --- |
//! | plain | its bytes | |
//! | compressed | blocks of LZ4 | |
//! | apart | a pointer of 27 bytes | its bytes, or blocks, in *pieces* |
//!
//! Forms are bytes of a row ([`clearway_sql::value::long`]). Pieces are rows of a heap that belongs to the table
//! ([`TableDef::long_rel`]), made together with its first column of varying width ([`clearway_storage::heap`], `pieces`).
//! Its file is empty until the first long value comes.
//!
//! # Steps
//! 1. A row of at most [`ROW_TARGET`] bytes is stored as it is: one comparison.
//! 2. A longer one is shortened ([`store`]), the longest value first, as the columns' storage says: compressed; then
//!    apart. Its pieces are written before the row.
//! 3. A row that is read has its pointers in hand ([`Value::Stored`]), and what reads it *restores* the values that it needs
//!    ([`load`]): a scan restores those that its condition reads, and the others when the condition is true, but for those
//!    that are *late*: what is only handed on by joins, a sort or windows, or only grouped by, is restored behind them
//!    (`planner/late.rs` of `clearway-sql`). No page is latched meanwhile.
//! 4. An UPDATE leaves the stored forms of columns that it does not assign: a pointer is copied, and no piece is
//!    written.
//! 5. When a row is deleted, or replaced by one without its pointer, the pieces are deleted by the same transaction
//!    ([`replaced`]). Vacuum frees them together with the table's rows.
//!
//! # Rules
//! - V1: a pointer stands in the versions of one row only, and those with it are consecutive. So the transaction that
//!   ends the last of them deletes the pieces, and no other row misses them.
//! - V2: the pieces of a row that was not stored in the end (it has changed meanwhile, or its key was taken) are withdrawn.
//! - V3: nothing is latched and no page pinned while pieces are read or written.
//! - V4: no expression and no client meets a [`Value::Stored`]. Operators, sorts, groups and windows have them in the columns
//!   that the plan calls late, and in no others; the snapshot under which the row was read holds the pieces until they are
//!   restored.
//!
//! # Memory
//! A value on its way to the disk is compressed and written block by block from where it is; on its way back it is
//! restored into the buffer that becomes the value. From its table's row it is taken into the output row, not copied
//! (`select/project.rs`), and from there it leaves for the client in pieces ([`clearway_sql::value::sent`]): a SELECT or COPY
//! of a table has one copy of it, while the client reads too. All of a row is restored before its message begins, so a
//! piece that is missing or cannot be read is an error in the row's place, and never half a row.
//!
//! Joins, sorts, groups and windows keep the pointers of late columns, and the operators find these in the row again when the
//! next one is asked for: a value that goes out with several partners is read for each of them. GROUP BY, DISTINCT and the set
//! operators tell long values from others by their digests. A copy more is in what these keep: a value that a join compares,
//! the bytes of a sort's key, an argument of an aggregate or of a window function, a row of UNION, INTERSECT or EXCEPT, and a
//! row of DISTINCT beyond `work_mem`. INSERT takes a long value out of the row of its SELECT, and RETURNING out of the row that
//! was stored; a value that a parameter or the statement's text holds has a copy in the row. At the statement's end the session
//! has none of them.
//!
//! # What it does not do
//! Parts of a value (`substr`, `length`) restore the whole. Values in indexes are whole: a key has 2,600 bytes at most.

mod load;
mod replaced;
mod store;

pub(crate) use load::{restore, restore_all_but, restore_columns, restored, whole_row};
pub(crate) use replaced::{assigned, delete_of, delete_replaced, encode_new};
pub(crate) use store::{Written, encode, encode_changed, withdraw};

use clearway_sql::value::long::Pointer;
use clearway_storage::heap::{Heap, Pieces, PiecesOwner, Tid};
use clearway_txn::Xid;

/// Rows are shortened to so many bytes, if they can be: four fit on a page.
pub(crate) const ROW_TARGET: usize = 2_000;

/// The heap of pieces.
fn heap_of(rel: u32) -> Heap {
    Heap::new(rel)
}

/// Number of rows that a pointer leads to.
pub(crate) fn piece_count(pointer: &Pointer) -> u64 {
    pieces_of(pointer).row_count()
}

/// The pieces that a pointer leads to.
fn pieces_of(pointer: &Pointer) -> Pieces {
    Pieces {
        owner: PiecesOwner {
            writer: Xid(pointer.writer),
            number: pointer.number,
        },
        length: pointer.stored_length,
        first: Tid {
            block: pointer.page,
            slot: pointer.slot,
        },
    }
}
