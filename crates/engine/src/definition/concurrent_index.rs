//! The steps of CREATE INDEX, REINDEX and DROP INDEX CONCURRENTLY, each in a transaction of its own. Their order, the waits
//! between them, and why that is right: `session::concurrent_index`.
//!
//! A step takes the definition as it finds it. Between two steps the table is locked by none of ours, so the index may have
//! gone meanwhile, or become whole because another statement wrote the table or the index anew.

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_txn::Xid;

use crate::catalog::comment::addresses_of_index;
use crate::catalog::{Catalog, CatalogState, FIRST_OID, TableEntry};
use crate::definition::{DefinitionChange, Outcome, ReadableBy, check, index_validation, kept_index};
use crate::executor::Execution;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::CreateIndex;
use clearway_sql::{IndexDef, IndexMarks, IndexStage, ObjectAddress, TableDef, UnfinishedIndex};

/// One step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'s> {
    /// The definition of CREATE INDEX, in stage building.
    Define(&'s CreateIndex),
    /// A definition like that of the index of this number, in stage building.
    DefineAnew(u32),
    /// From building to written, with the rows that there are.
    Build(u32),
    /// The entries that rows lack; the definition stays.
    Complete(u32),
    /// From written to read, for snapshots that see this transaction.
    Finish(u32, Xid),
    /// The tree of the index of the second number becomes that of the first, and the other way round.
    Exchange(u32, u32, Xid),
    /// One step further out: from read to written, from written or building to dead, from dead to gone, which is nothing.
    Withdraw(u32),
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is done.
    Yes,
    /// There is an index of this number now.
    Defined(u32),
    /// The rows have their entries, for snapshots that see this transaction.
    Completed(Xid),
    /// There is nothing left to do: the index is whole already, or gone, or IF NOT EXISTS has found another.
    Nothing,
}

/// The number of the index of this name, if it may be dropped, and nothing depends on it.
pub(crate) fn require_droppable(
    execution: &mut Execution<'_>,
    catalog: &Catalog,
    table: &TableDef,
    name: &str,
) -> Result<u32> {
    let mut outcome = Outcome::default();
    let mut change = DefinitionChange {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    let entry = change.execution.entry(table)?;
    let index = change.droppable(&entry, name)?;
    change.drop_with(&[ObjectAddress::relation(index.oid)], false)?;
    Ok(index.oid)
}

/// Runs one step on a table, which is locked, as the catalog is unless the step is [`Step::Complete`].
pub(crate) fn run_step(
    execution: &mut Execution<'_>,
    catalog: &Catalog,
    table: u32,
    step: Step<'_>,
) -> Result<(Done, Outcome)> {
    let mut outcome = Outcome::default();
    let entry = execution.txn.catalog_state().table(table).cloned();
    let mut change = DefinitionChange {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    let done = match (entry, step) {
        (None, Step::Withdraw(_)) => Done::Nothing,
        (None, _) => return Err(gone()),
        (Some(entry), Step::Define(create)) => change.define(&entry, create)?,
        (Some(entry), Step::DefineAnew(index)) => change.define_anew(&entry, index)?,
        (Some(entry), Step::Build(index)) => change.build_beside_writers(&entry, index)?,
        (Some(entry), Step::Complete(index)) => change.complete(&entry, index)?,
        (Some(entry), Step::Finish(index, seen)) => change.finish(&entry, index, seen)?,
        (Some(entry), Step::Exchange(old, new, seen)) => change.exchange(&entry, (old, new), seen)?,
        (Some(entry), Step::Withdraw(index)) => change.withdraw(&entry, index)?,
    };
    Ok((done, outcome))
}

impl DefinitionChange<'_, '_, '_> {
    fn define(&mut self, entry: &TableEntry, create: &CreateIndex) -> Result<Done> {
        let state = self.state()?;
        let spec = &create.index;
        if !self.may_make(&state, entry.def.schema.oid, &spec.name, create.if_not_exists)? {
            return Ok(Done::Nothing);
        }
        self.tell_access_method(create);
        let rel = self.create_tree(&entry.def.schema)?;
        let index = kept_index::made(spec, rel, &entry.def)?;
        self.put_building(state, entry, index)
    }

    fn define_anew(&mut self, entry: &TableEntry, oid: u32) -> Result<Done> {
        let state = self.state()?;
        let old = entry.def.all_indexes().find(|index| index.oid == oid);
        let old = Arc::clone(old.ok_or_else(gone)?);
        let name = free_name(&state, &entry.def, &old.name, "ccnew");
        let rel = self.create_tree(&entry.def.schema)?;
        let index = IndexDef {
            oid: FIRST_OID + rel,
            name,
            rel,
            primary: false,
            constraint: false,
            // One index of a table is clustered on, or its replica identity: the old one.
            marks: IndexMarks {
                statistics_targets: old.marks.statistics_targets.clone(),
                ..IndexMarks::default()
            },
            ..(*old).clone()
        };
        self.put_building(state, entry, index)
    }

    fn put_building(&mut self, mut state: CatalogState, entry: &TableEntry, index: IndexDef) -> Result<Done> {
        let oid = index.oid;
        let mut table = (*entry.def).clone();
        table.unfinished.push(UnfinishedIndex {
            index: Arc::new(index),
            stage: IndexStage::Building,
        });
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(Done::Defined(oid))
    }

    /// Into a tree of its own: what a failure leaves of that goes with the transaction.
    fn build_beside_writers(&mut self, entry: &TableEntry, oid: u32) -> Result<Done> {
        let Some(at) = unfinished(&entry.def, oid)? else {
            return Ok(Done::Nothing);
        };
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let empty = Arc::clone(&table.unfinished[at].index);
        let index = IndexDef {
            rel: self.create_tree(&table.schema)?,
            ..(*empty).clone()
        };
        self.fill_index(&table, &index)?;
        self.execution.txn.note_dropped(RelId(empty.rel));
        table.unfinished[at] = UnfinishedIndex {
            index: Arc::new(index),
            stage: IndexStage::Written,
        };
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(Done::Yes)
    }

    fn complete(&mut self, entry: &TableEntry, oid: u32) -> Result<Done> {
        let Some(at) = unfinished(&entry.def, oid)? else {
            return Ok(Done::Nothing);
        };
        let index = &entry.def.unfinished[at].index;
        let spill = self.execution.spill.with_bytes(self.execution.maintenance_bytes);
        index_validation::complete(self.execution, &spill, &entry.def, index).map(Done::Completed)
    }

    fn finish(&mut self, entry: &TableEntry, oid: u32, seen: Xid) -> Result<Done> {
        let Some(at) = unfinished(&entry.def, oid)? else {
            return Ok(Done::Nothing);
        };
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let finished = table.unfinished.remove(at);
        table.indexes.push(finished.index);
        self.replace(&mut state, entry, table, ReadableBy::SnapshotsThatSee(seen))?;
        self.keep(state, &entry.def.schema);
        Ok(Done::Yes)
    }

    fn exchange(&mut self, entry: &TableEntry, (old, new): (u32, u32), seen: Xid) -> Result<Done> {
        let Some(at) = unfinished(&entry.def, new)? else {
            return Ok(Done::Nothing);
        };
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let whole = Arc::clone(&table.unfinished[at].index);
        let before = table.all_indexes().find(|index| index.oid == old);
        let before = Arc::clone(before.ok_or_else(gone)?);
        let renewed = Arc::new(IndexDef {
            rel: whole.rel,
            ..(*before).clone()
        });
        table.unfinished[at].index = Arc::new(IndexDef {
            rel: before.rel,
            name: free_name(&state, &entry.def, &before.name, "ccold"),
            ..(*whole).clone()
        });
        match table.indexes.iter().position(|index| index.oid == old) {
            Some(place) => table.indexes[place] = renewed,
            // It was left unfinished by another statement, and is whole now.
            None => {
                table.unfinished.retain(|other| other.index.oid != old);
                table.indexes.push(renewed);
            }
        }
        self.replace(&mut state, entry, table, ReadableBy::SnapshotsThatSee(seen))?;
        self.keep(state, &entry.def.schema);
        Ok(Done::Yes)
    }

    fn withdraw(&mut self, entry: &TableEntry, oid: u32) -> Result<Done> {
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let mut done = Done::Yes;
        if let Some(place) = table.indexes.iter().position(|index| index.oid == oid) {
            let mut index = (*table.indexes.remove(place)).clone();
            // It is none that the table is clustered on, nor its replica identity, if it stays behind.
            index.marks = IndexMarks::default();
            table.unfinished.push(UnfinishedIndex {
                index: Arc::new(index),
                stage: IndexStage::Written,
            });
        } else {
            let place = table.unfinished.iter().position(|other| other.index.oid == oid);
            let Some(place) = place else {
                return Ok(Done::Nothing);
            };
            match table.unfinished[place].stage {
                IndexStage::Building | IndexStage::Written => {
                    table.unfinished[place].stage = IndexStage::Dead;
                    // No reader is left, and from here on no writer enters keys.
                    self.execution.txn.coarsen_marks(entry.def.oid, &[oid]);
                }
                IndexStage::Dead => {
                    let gone = table.unfinished.remove(place).index;
                    self.remove_comments(&mut state, &addresses_of_index(gone.oid))?;
                    self.execution.txn.note_dropped(RelId(gone.rel));
                    done = Done::Nothing;
                }
            }
        }
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(done)
    }
}

/// The place of an index that is in the making; `None` if it is whole.
fn unfinished(table: &TableDef, oid: u32) -> Result<Option<usize>> {
    let is_it = |other: &UnfinishedIndex| other.index.oid == oid && other.stage != IndexStage::Dead;
    match table.unfinished.iter().position(is_it) {
        Some(place) => Ok(Some(place)),
        None if table.indexes.iter().any(|index| index.oid == oid) => Ok(None),
        None => Err(gone()),
    }
}

/// `name_label`, with a number behind it if a relation has it.
fn free_name(state: &CatalogState, table: &TableDef, name: &str, label: &str) -> String {
    let numbered = (1..).map(|number| check::made_name(name, None, &format!("{label}{number}")));
    let wanted = check::made_name(name, None, label);
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    let free = names.find(|name| !state.is_taken(table.schema.oid, name));
    free.unwrap_or(wanted)
}

/// The table or the index was dropped between two steps.
fn gone() -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        "the index was dropped by another session while it was built",
    )
}
