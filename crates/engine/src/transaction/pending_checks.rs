//! The constraints that a transaction has yet to check, and what is to follow from keys that have gone.
//!
//! # Two logs
//!
//! A statement notes an event for each row that it stores, deletes or gives another key where a foreign key is concerned,
//! and for each that it stores under a key of a deferrable unique constraint that another row may have ([`Event`]). Events of
//! constraints that are checked at the statement's end go into the *immediate* log, which is empty between statements; those
//! of deferred constraints into the *deferred* log, which is looked through at the commit. Both go to a temporary file beyond
//! `work_mem`.
//!
//! # Rules
//!
//! - F1: the deferred log only grows, up to the transaction's end or until it is cut back. SET CONSTRAINTS … IMMEDIATE fires
//!   events and notes that it has (`fired`), since a rollback to a savepoint may take back what made them pass.
//! - F2: what a mark tells ([`Mark`]) is enough to take back all that was noted since.
//! - F3: a mode of SET CONSTRAINTS holds from the statement on, and the last one that names a constraint counts.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::Value;
use clearway_sql::{CheckTime, ForeignKeyDef, IndexDef};
use clearway_storage::heap::Tid;

use crate::spill::SpillOptions;
use crate::spill::log::{LogCursor, RecordLog};
use crate::spill::record::{read_row, write_row};

/// Something that has happened to a row, as one constraint sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The number of the constraint: a foreign key's own, or that of the index of a unique key.
    pub(crate) constraint: u32,
    pub(crate) change: RowChange,
}

/// The change of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowChange {
    /// A row of the referencing table was stored at this place, with these values in the key's columns.
    Stored(Tid, Vec<Value>),
    /// A row of the referenced table is gone, which had these.
    Deleted(Vec<Value>),
    /// A row of the referenced table had the first, and has the second now.
    Rekeyed(Vec<Value>, Vec<Value>),
    /// A row was stored at this place under a key that another row may have.
    KeyInDoubt(Tid),
}

impl Event {
    fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let kind = match &self.change {
            RowChange::Stored(..) => 0,
            RowChange::Deleted(_) => 1,
            RowChange::Rekeyed(..) => 2,
            RowChange::KeyInDoubt(_) => 3,
        };
        out.push(kind);
        out.extend_from_slice(&self.constraint.to_ne_bytes());
        match &self.change {
            RowChange::Stored(tid, values) => {
                write_place(*tid, out);
                write_row(values, out);
            }
            RowChange::Deleted(values) => write_row(values, out),
            RowChange::Rekeyed(before, after) => {
                write_row(before, out);
                write_row(after, out);
            }
            RowChange::KeyInDoubt(tid) => write_place(*tid, out),
        }
    }

    fn read(record: &[u8]) -> Result<Event> {
        let damaged = || EngineError::internal("an event of a constraint is damaged");
        let (kind, rest) = record.split_first().ok_or_else(damaged)?;
        let (constraint, mut rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let constraint = u32::from_ne_bytes(*constraint);
        let mut values = Vec::new();
        let change = match kind {
            0 => {
                let tid = read_place(&mut rest).ok_or_else(damaged)?;
                read_row(&mut rest, &mut values)?;
                RowChange::Stored(tid, values)
            }
            1 => {
                read_row(&mut rest, &mut values)?;
                RowChange::Deleted(values)
            }
            3 => RowChange::KeyInDoubt(read_place(&mut rest).ok_or_else(damaged)?),
            _ => {
                read_row(&mut rest, &mut values)?;
                let mut after = Vec::new();
                read_row(&mut rest, &mut after)?;
                RowChange::Rekeyed(values, after)
            }
        };
        Ok(Event { constraint, change })
    }
}

fn write_place(tid: Tid, out: &mut Vec<u8>) {
    out.extend_from_slice(&tid.block.to_ne_bytes());
    out.extend_from_slice(&tid.slot.to_ne_bytes());
}

fn read_place(rest: &mut &[u8]) -> Option<Tid> {
    let (block, after) = rest.split_first_chunk::<4>()?;
    let (slot, after) = after.split_first_chunk::<2>()?;
    *rest = after;
    Some(Tid {
        block: u32::from_ne_bytes(*block),
        slot: u16::from_ne_bytes(*slot),
    })
}

/// Some constraints, by number, or all.
type Constraints = Option<Vec<u32>>;

fn among(constraints: &Constraints, constraint: u32) -> bool {
    constraints
        .as_ref()
        .is_none_or(|constraints| constraints.contains(&constraint))
}

/// The deferred events up to a position that have been fired.
#[derive(Debug)]
struct Fired {
    before: u64,
    constraints: Constraints,
}

/// A mode that SET CONSTRAINTS has set.
#[derive(Debug)]
struct Mode {
    constraints: Constraints,
    deferred: bool,
}

/// A moment to which all that was noted afterwards can be taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    deferred: u64,
    fired: usize,
    modes: usize,
}

/// The foreign keys that name rows of a table, with the catalog's version and the table.
type KeysOfParent = (u64, u32, Arc<[Arc<ForeignKeyDef>]>);

/// The events of a transaction's constraints.
#[derive(Debug, Default)]
pub(crate) struct PendingChecks {
    immediate: RecordLog,
    deferred: RecordLog,
    fired: Vec<Fired>,
    modes: Vec<Mode>,
    /// The foreign keys that name rows of the table whose rows changed last, in this version of the catalog.
    parent: Option<KeysOfParent>,
    record: Vec<u8>,
}

impl PendingChecks {
    /// This moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            deferred: self.deferred.end(),
            fired: self.fired.len(),
            modes: self.modes.len(),
        }
    }

    /// Takes back what was noted since (F2); the statement that was running has failed.
    pub(crate) fn cut_back(&mut self, mark: Mark) {
        self.immediate.cut_back(0);
        self.deferred.cut_back(mark.deferred);
        self.fired.truncate(mark.fired);
        self.modes.truncate(mark.modes);
    }

    /// True if no event waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.immediate.is_empty() && self.deferred.is_empty()
    }

    /// True if events wait for the commit.
    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// True if the check of a constraint waits for the commit (F3).
    fn is_deferred(&self, constraint: u32, time: CheckTime) -> bool {
        let mut last = self.modes.iter().rev();
        let set = last.find(|mode| among(&mode.constraints, constraint));
        time.deferrable && set.map_or(time.initially_deferred, |mode| mode.deferred)
    }

    /// Notes that a row was stored under a key of a deferrable unique constraint that another row may have.
    pub(crate) fn push_doubt(&mut self, index: &IndexDef, tid: Tid, options: &SpillOptions) -> Result<()> {
        let event = Event {
            constraint: index.oid,
            change: RowChange::KeyInDoubt(tid),
        };
        self.add(&event, self.is_deferred(index.oid, index.check_time), options)
    }

    /// Notes an event of a foreign key.
    pub(crate) fn push(
        &mut self,
        key: &ForeignKeyDef,
        change: RowChange,
        options: &SpillOptions,
    ) -> Result<()> {
        let can_wait = match &change {
            RowChange::Stored(..) | RowChange::KeyInDoubt(_) => true,
            RowChange::Deleted(_) => key.on_delete.is_deferrable(),
            RowChange::Rekeyed(..) => key.on_update.is_deferrable(),
        };
        let event = Event {
            constraint: key.oid,
            change,
        };
        let deferred = can_wait && self.is_deferred(key.oid, key.check_time);
        self.add(&event, deferred, options)
    }

    fn add(&mut self, event: &Event, deferred: bool, options: &SpillOptions) -> Result<()> {
        event.write(&mut self.record);
        let log = match deferred {
            true => &mut self.deferred,
            false => &mut self.immediate,
        };
        log.push(&self.record, options)
    }

    /// The next event of the statement; the log is empty behind the last.
    pub(crate) fn next_immediate(&mut self, cursor: &mut LogCursor) -> Result<Option<Event>> {
        match self.immediate.next(cursor)? {
            Some(record) => Event::read(record).map(Some),
            None => {
                self.immediate.cut_back(0);
                *cursor = LogCursor::default();
                Ok(None)
            }
        }
    }

    /// The next deferred event of these constraints that has not been fired.
    pub(crate) fn next_deferred(
        &mut self,
        cursor: &mut LogCursor,
        constraints: &Constraints,
    ) -> Result<Option<Event>> {
        loop {
            let position = cursor.position();
            let Some(record) = self.deferred.next(cursor)? else {
                return Ok(None);
            };
            let event = Event::read(record)?;
            let was_fired =
                |fired: &Fired| position < fired.before && among(&fired.constraints, event.constraint);
            if among(constraints, event.constraint) && !self.fired.iter().any(was_fired) {
                return Ok(Some(event));
            }
        }
    }

    /// True if a deferred event waits of a row of a table, by its own constraints and by foreign keys that name its rows.
    pub(crate) fn wait_of(&mut self, own: &[u32], to: &[u32]) -> Result<bool> {
        let mut cursor = LogCursor::default();
        while let Some(event) = self.next_deferred(&mut cursor, &None)? {
            let keys = match event.change {
                RowChange::Stored(..) | RowChange::KeyInDoubt(_) => own,
                RowChange::Deleted(_) | RowChange::Rekeyed(..) => to,
            };
            if keys.contains(&event.constraint) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The events of these constraints up to here have been fired (F1).
    pub(crate) fn note_fired(&mut self, constraints: Constraints) {
        let before = self.deferred.end();
        self.fired.push(Fired { before, constraints });
    }

    /// SET CONSTRAINTS
    pub(crate) fn set_mode(&mut self, constraints: Constraints, deferred: bool) {
        self.modes.push(Mode {
            constraints,
            deferred,
        });
    }

    /// The foreign keys that name rows of a table, kept for the next row of the same table.
    pub(crate) fn keys_to(
        &mut self,
        table: u32,
        version: u64,
        find: impl FnOnce() -> Vec<Arc<ForeignKeyDef>>,
    ) -> Arc<[Arc<ForeignKeyDef>]> {
        match &self.parent {
            Some((known, of, keys)) if (*known, *of) == (version, table) => Arc::clone(keys),
            _ => {
                let keys: Arc<[_]> = find().into();
                self.parent = Some((version, table, Arc::clone(&keys)));
                keys
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::ReferentialAction;

    fn key(oid: u32) -> ForeignKeyDef {
        ForeignKeyDef {
            oid,
            name: format!("key_{oid}"),
            columns: vec![1],
            parent: 1,
            parent_columns: vec![1],
            index: 2,
            is_full: false,
            on_delete: ReferentialAction::NoAction,
            on_delete_columns: Vec::new(),
            on_update: ReferentialAction::Cascade,
            check_time: CheckTime {
                deferrable: true,
                initially_deferred: oid == 7,
            },
            validated: true,
        }
    }

    fn deferred(references: &mut PendingChecks, keys: &Constraints) -> Vec<Event> {
        let mut cursor = LogCursor::default();
        let mut found = Vec::new();
        while let Some(event) = references.next_deferred(&mut cursor, keys).unwrap() {
            found.push(event);
        }
        found
    }

    /// F1 to F3: what a savepoint's rollback takes back is neither fired nor forgotten.
    #[test]
    fn events_come_back_when_what_fired_them_is_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let options = SpillOptions::new(directory.path().into(), 1 << 20);
        let mut references = PendingChecks::default();
        let stored = |number: i32| {
            let tid = Tid {
                block: 70_000,
                slot: number as u16,
            };
            RowChange::Stored(tid, vec![Value::Int4(number), Value::Null])
        };
        references.push(&key(7), stored(1), &options).unwrap();
        let before = references.mark();
        references.push(&key(7), stored(2), &options).unwrap();
        references.push(&key(8), stored(3), &options).unwrap();
        // Of a key that is not deferred.
        let mut cursor = LogCursor::default();
        let event = references.next_immediate(&mut cursor).unwrap();
        assert_eq!(
            event,
            Some(Event {
                constraint: 8,
                change: stored(3)
            })
        );
        assert_eq!(references.next_immediate(&mut cursor).unwrap(), None);
        assert_eq!(deferred(&mut references, &Some(vec![8])), Vec::new());
        assert_eq!(deferred(&mut references, &None).len(), 2);
        references.set_mode(None, true);
        references.push(&key(8), stored(4), &options).unwrap();
        // An action is not deferred.
        let moved = RowChange::Rekeyed(vec![Value::Int4(1)], vec![Value::Int4(2)]);
        references.push(&key(8), moved.clone(), &options).unwrap();
        let event = references.next_immediate(&mut LogCursor::default()).unwrap();
        assert_eq!(
            event,
            Some(Event {
                constraint: 8,
                change: moved
            })
        );
        references.note_fired(Some(vec![7]));
        let left = deferred(&mut references, &None);
        assert_eq!(
            left,
            vec![Event {
                constraint: 8,
                change: stored(4)
            }]
        );
        references.note_fired(None);
        assert_eq!(deferred(&mut references, &None), Vec::new());
        references.cut_back(before);
        let left = deferred(&mut references, &None);
        assert_eq!(
            left,
            vec![Event {
                constraint: 7,
                change: stored(1)
            }]
        );
        references
            .push(&key(8), RowChange::Deleted(vec![Value::Int4(5)]), &options)
            .unwrap();
        assert_eq!(
            deferred(&mut references, &None).len(),
            1,
            "the mode is taken back"
        );
    }
}
