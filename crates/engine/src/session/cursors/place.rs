//! WHERE CURRENT OF: the row of a table that a cursor is on.
//!
//! A cursor that locks rows tells it of each table that it locks once. Another one tells it of its only table, if each of
//! its rows is one of that table's in the table's own order: without groups, DISTINCT, windows or a sort.

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{RowsStatement, SelectPlan, Source, Statement};
use clearway_storage::heap::Tid;

use super::{Cursor, CursorRows, Cursors, Described, no_cursor};
use crate::session::portal::PortalRows;

impl Cursors {
    /// The place of the row that a cursor is on in the table of this number and name; `None` if it has none there (the
    /// other side of an outer join).
    pub(in crate::session) fn place(&self, name: &str, table: (u32, &str)) -> Result<Option<Tid>> {
        let cursor = self.by_name.get(name).ok_or_else(|| no_cursor(name))?;
        if cursor.is_held {
            return Err(wrong_state(format!(
                "cursor \"{name}\" is held from a previous transaction"
            )));
        }
        let plan = match &cursor.described {
            Described::Plan(cached) => Some(&cached.plan.statement),
            Described::Prepared(_) => match &cursor.rows {
                CursorRows::Open { portal, .. } => Some(&portal.cached.plan.statement),
                _ => None,
            },
        };
        let Some(Statement::Rows(RowsStatement::Select(plan))) = plan else {
            return Err(wrong_state(format!("cursor \"{name}\" is not a SELECT query")));
        };
        place_in(name, cursor, plan, table)
    }
}

fn place_in(
    name: &str,
    cursor: &Cursor,
    plan: &SelectPlan,
    (oid, table): (u32, &str),
) -> Result<Option<Tid>> {
    let locked = plan.locked.as_deref().map(|locked| {
        let of_table = locked.tables.iter();
        let of_table: Vec<_> = of_table.filter(|locked| locked.scan.table.oid == oid).collect();
        (locked, of_table)
    });
    let reads_table = matches!(plan.source.unmeasured(), Source::Table(scan) if scan.table.oid == oid);
    let has = match &locked {
        Some((_, tables)) => tables.len(),
        None => usize::from(reads_table),
    };
    let locks = plan.lock.is_some() || locked.is_some();
    let is_plain = plan.aggregate.is_none()
        && plan.windows.is_none()
        && !plan.distinct
        && plan.distinct_on == 0
        && plan.sort.is_empty();
    let quoted = format!("cursor \"{name}\"");
    match has {
        0 if locks => {
            return Err(wrong_state(format!(
                "{quoted} does not have a FOR UPDATE/SHARE reference to table \"{table}\""
            )));
        }
        1 if locks || is_plain => {}
        0 | 1 => {
            return Err(wrong_state(format!(
                "{quoted} is not a simply updatable scan of table \"{table}\""
            )));
        }
        _ => {
            return Err(wrong_state(format!(
                "{quoted} has multiple FOR UPDATE/SHARE references to table \"{table}\""
            )));
        }
    }
    if !cursor.position.is_on_row() {
        return Err(wrong_state(format!("{quoted} is not positioned on a row")));
    }
    if let Some((locked, tables)) = locked
        && let CursorRows::Open { portal, .. } = &cursor.rows
        && let PortalRows::Select { select, .. } = &portal.rows
    {
        return Ok(select.locked_place(locked, tables[0]));
    }
    Ok(cursor.position.place)
}

fn wrong_state(message: String) -> EngineError {
    EngineError::new(SqlState::INVALID_CURSOR_STATE, message)
}
