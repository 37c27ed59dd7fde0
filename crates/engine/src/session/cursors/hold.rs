//! WITH HOLD: before its transaction commits, a cursor's rows are made and kept.
//!
//! That is before anything of the commit is done, so an error in the query rolls the transaction back.

use clearway_sql::error::Result;

use super::{Cursor, CursorRows};
use crate::session::Session;

impl Session {
    /// Makes the rows of the cursors that outlive the transaction.
    #[cold]
    pub(in crate::session) fn hold_cursors(&mut self) -> Result<()> {
        let is_to_hold = |cursor: &Cursor| cursor.hold && matches!(cursor.rows, CursorRows::Open { .. });
        let cursors = self.cursors.by_name.iter();
        let names: Vec<String> = cursors
            .filter(|(_, cursor)| is_to_hold(cursor))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let mut cursor = self.cursors.take(&name)?;
            self.walk(&mut cursor, |execution, walk, _| walk.keep_rest(execution), None)?;
            if let CursorRows::Open { kept: Some(kept), .. } =
                std::mem::replace(&mut cursor.rows, CursorRows::Ended)
            {
                cursor.rows = CursorRows::Held(kept);
                cursor.is_held = true;
            }
            self.cursors.by_name.insert(name, cursor);
        }
        Ok(())
    }
}
