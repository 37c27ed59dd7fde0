//! The place of a cursor among its rows.
//!
//! ```text
//!   before the first │ row 1 │ row 2 │ … │ row n │ behind the last
//!   is_at_start        rows 1  rows 2      rows n  is_at_end, rows n
//! ```
//!
//! A query without rows may be at its start and at its end at the same time.

use clearway_storage::heap::Tid;

/// A place among rows.
#[derive(Debug)]
pub(super) struct Position {
    /// Number of rows up to this place, the row that it is on included.
    pub(super) rows: u64,
    pub(super) is_at_start: bool,
    /// The end has been met.
    pub(super) is_at_end: bool,
    /// The place of the row's version in its table, if it comes from one table alone.
    pub(super) place: Option<Tid>,
}

impl Default for Position {
    fn default() -> Position {
        Position {
            rows: 0,
            is_at_start: true,
            is_at_end: false,
            place: None,
        }
    }
}

impl Position {
    /// True if it is on a row.
    pub(super) fn is_on_row(&self) -> bool {
        !self.is_at_start && !self.is_at_end
    }

    /// One row on.
    pub(super) fn advance(&mut self, place: Option<Tid>) {
        self.rows += 1;
        self.is_at_start = false;
        self.place = place;
    }

    /// Behind the last row.
    pub(super) fn end(&mut self) {
        self.is_at_end = true;
        self.place = None;
    }

    /// Back on the row of this number, counted from 1.
    pub(super) fn go_to(&mut self, row: u64, place: Option<Tid>) {
        self.rows = row;
        self.is_at_end = false;
        self.place = place;
    }

    /// Before the first row.
    pub(super) fn rewind(&mut self) {
        *self = Position::default();
    }
}
