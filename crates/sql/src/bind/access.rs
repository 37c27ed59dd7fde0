//! The privileges that a statement needs, noted while it is bound.
//!
//! 1. FROM needs SELECT on what it names. If columns of a table are read, SELECT on each of them is enough; if none is, on
//!    any.
//! 2. INSERT and UPDATE need their privilege on the columns that get a value; columns that an expression reads need SELECT,
//!    those of the changed table too.
//! 3. What stands in the query of a view is the view's owner's to be allowed, unless the view is one with
//!    `security_invoker`.
//! 4. A column is noted for the table that it comes from unchanged. What hands it on (a query in FROM) was noted itself,
//!    so noting it twice changes nothing.

use std::sync::Arc;

use crate::bind::Binder;
use crate::bind::changed_view::{Change, ChangedRelation};
use crate::catalog::TableDef;
use crate::plan::TableAccess;
use crate::view::ViewDef;

impl Binder<'_> {
    /// The note of a table, in the view whose query is being bound.
    pub(super) fn access(&mut self, table: &Arc<TableDef>) -> &mut TableAccess {
        let view = self.as_view;
        let is_it = |known: &TableAccess| known.table.oid == table.oid && known.view == view;
        let place = self.accesses.iter().position(is_it);
        let place = place.unwrap_or_else(|| {
            self.accesses.push(TableAccess {
                table: Arc::clone(table),
                view,
                is_read: false,
                inserts: false,
                updates: false,
                deletes: false,
                whole: false,
                selected: Vec::new(),
                inserted: Vec::new(),
                updated: Vec::new(),
            });
            self.accesses.len() - 1
        });
        &mut self.accesses[place]
    }

    /// Notes that FROM names a table.
    pub(super) fn note_read(&mut self, table: &Arc<TableDef>) {
        self.access(table).is_read = true;
    }

    /// Notes that a column is read (rule 4).
    pub(super) fn note_selected(&mut self, origin: (u32, i16)) {
        let (table @ 1.., column @ 1..) = origin else {
            return;
        };
        let view = self.as_view;
        let mut known = self.accesses.iter_mut();
        let found = known.find(|known| known.table.oid == table && known.view == view);
        if let Some(access) = found {
            add(&mut access.selected, column.cast_unsigned());
        }
    }

    /// Notes that a statement changes rows of a table or a view.
    pub(super) fn note_change(&mut self, table: &Arc<TableDef>, change: Change) {
        let access = self.access(table);
        match change {
            Change::Insert => access.inserts = true,
            Change::Update => access.updates = true,
            Change::Delete => access.deletes = true,
        }
    }

    /// Notes that a column of the changed relation, and so of the table below it, gets a value.
    pub(super) fn note_target(
        &mut self,
        relation: &ChangedRelation,
        name: &str,
        column: u16,
        change: Change,
    ) {
        let note = |binder: &mut Self, table: &Arc<TableDef>, number: u16| {
            let access = binder.access(table);
            match change {
                Change::Insert => add(&mut access.inserted, number),
                _ => add(&mut access.updated, number),
            }
        };
        match relation.view() {
            None => note(self, &relation.table, relation.table.attribute_number(column)),
            Some(view) => {
                let Some(number) = view.column_number(name) else {
                    return;
                };
                let view = Arc::clone(view);
                note(self, &view, number + 1);
            }
        }
    }

    /// Notes that an INSERT that names no columns gives the first ones a value.
    pub(super) fn note_implied_targets(
        &mut self,
        names: &[sqlparser::ast::ObjectName],
        relation: &ChangedRelation,
        width: usize,
    ) {
        let table = Arc::clone(relation.view().unwrap_or(&relation.table));
        let width = if names.is_empty() {
            width.min(table.columns.len())
        } else {
            0
        };
        for column in 0..width as u16 {
            let number = table.attribute_number(column);
            add(&mut self.access(&table).inserted, number);
        }
    }

    /// The view whose owner is to be allowed what stands in the query of `view` (rule 3).
    pub(super) fn in_view(&self, table: u32, view: &ViewDef) -> Option<u32> {
        match view.invoker {
            Some(true) => self.as_view,
            _ => Some(table),
        }
    }
}

fn add(columns: &mut Vec<u16>, column: u16) {
    if !columns.contains(&column) {
        columns.push(column);
    }
}
