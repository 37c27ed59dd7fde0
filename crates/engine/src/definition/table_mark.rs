//! CLUSTER ON, REPLICA IDENTITY and SET STATISTICS: notes in a definition, on which no row depends.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::TableMark;
use clearway_sql::{IndexDef, IndexedValue, ReplicaIdentity, TableDef};

use crate::catalog::TableEntry;
use crate::definition::DefinitionChange;
use crate::definition::alter::column_named;
use crate::output::Notice;

/// The largest statistics target.
const TARGET_MAX: i64 = 10_000;

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn mark(&mut self, entry: &TableEntry, mark: &TableMark) -> Result<()> {
        let mut table = (*entry.def).clone();
        match mark {
            TableMark::WithoutOids => return Ok(()),
            TableMark::Cluster(None) => mark_alone(&mut table, None, |index| &mut index.marks.clustered)?,
            TableMark::Cluster(Some(name)) => {
                let index = self.marked_index(&table, name)?;
                require_orders_all(&table, &index)?;
                mark_alone(&mut table, Some(index.oid), |index| &mut index.marks.clustered)?;
            }
            TableMark::ReplicaIdentity(identity) => {
                table.replica_identity = *identity;
                mark_alone(&mut table, None, |index| &mut index.marks.replica_identity)?;
            }
            TableMark::ReplicaIdentityIndex(name) => {
                let index = self.marked_index(&table, name)?;
                require_identifies(&table, &index)?;
                table.replica_identity = ReplicaIdentity::Index;
                mark_alone(&mut table, Some(index.oid), |index| {
                    &mut index.marks.replica_identity
                })?;
            }
            TableMark::Statistics { column, target } => {
                if clearway_sql::require_no_system_name(column).is_err() {
                    return Err(refused(format!("cannot alter system column \"{column}\"")));
                }
                let place = column_named(&table, column)?;
                table.columns[usize::from(place)].statistics_target = self.statistics_target(*target)?;
            }
            TableMark::IndexStatistics {
                index,
                column,
                target,
            } => self.set_index_statistics(&mut table, index, *column, *target)?,
        }
        self.redefine(entry, table)
    }

    /// The index of this name of a table: 42704 if there is none, 42809 if it is another relation.
    fn marked_index(&mut self, table: &TableDef, name: &str) -> Result<Arc<IndexDef>> {
        if let Some(index) = table.all_indexes().find(|index| index.name == name) {
            return Ok(Arc::clone(index));
        }
        Err(match self.state()?.is_taken(table.schema.oid, name) {
            true => EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not an index for table \"{}\"", table.name),
            ),
            false => EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("index \"{name}\" for table \"{}\" does not exist", table.name),
            ),
        })
    }

    /// The target of a number: `None` for −1. A number beyond the largest target is that, with a warning.
    fn statistics_target(&mut self, target: i64) -> Result<Option<u16>> {
        if target < -1 {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("statistics target {target} is too low"),
            ));
        }
        if target > TARGET_MAX {
            self.outcome.notices.push(Notice::warning(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("lowering statistics target to {TARGET_MAX}"),
            ));
        }
        Ok(u16::try_from(target.min(TARGET_MAX)).ok())
    }

    fn set_index_statistics(
        &mut self,
        table: &mut TableDef,
        name: &str,
        column: i64,
        target: i64,
    ) -> Result<()> {
        let target = self.statistics_target(target)?;
        let index = self.marked_index(table, name)?;
        let place = usize::try_from(column - 1).unwrap_or(usize::MAX);
        let named = |column: u16| table.columns[usize::from(column)].name.as_str();
        match index.keys.get(place).map(|key| &key.value) {
            Some(IndexedValue::Expression(_)) => {}
            Some(IndexedValue::Column(column)) => {
                return Err(refused(format!(
                    "cannot alter statistics on non-expression column \"{}\" of index \"{name}\"",
                    named(*column)
                ))
                .with_hint("Alter statistics on table column instead."));
            }
            None => {
                return Err(match index.included.get(place.saturating_sub(index.keys.len())) {
                    Some(column) => refused(format!(
                        "cannot alter statistics on included column \"{}\" of index \"{name}\"",
                        named(*column)
                    )),
                    None => EngineError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column number {column} of relation \"{name}\" does not exist"),
                    ),
                });
            }
        }
        let place = place as u16;
        table.map_indexes(|other| {
            let mut other = (**other).clone();
            if other.oid == index.oid {
                let targets = &mut other.marks.statistics_targets;
                targets.retain(|(part, _)| *part != place);
                targets.extend(target.map(|target| (place, target)));
            }
            Ok::<_, EngineError>(Arc::new(other))
        })
    }
}

/// Sets a mark that one index of a table has at most: that of this number, or none.
fn mark_alone(
    table: &mut TableDef,
    marked: Option<u32>,
    mark: impl Fn(&mut IndexDef) -> &mut bool,
) -> Result<()> {
    table.map_indexes(|index| {
        let mut index = (**index).clone();
        let is_marked = marked == Some(index.oid);
        *mark(&mut index) = is_marked;
        Ok::<_, EngineError>(Arc::new(index))
    })
}

fn refused(message: String) -> EngineError {
    EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn is_finished(table: &TableDef, index: &IndexDef) -> bool {
    table.indexes.iter().any(|finished| finished.oid == index.oid)
}

/// 0A000 unless an index is of all rows.
fn require_orders_all(table: &TableDef, index: &IndexDef) -> Result<()> {
    let name = &index.name;
    if index.predicate.is_some() {
        return Err(refused(format!("cannot cluster on partial index \"{name}\"")));
    }
    match is_finished(table, index) {
        true => Ok(()),
        false => Err(refused(format!("cannot cluster on invalid index \"{name}\""))),
    }
}

/// An error unless each row has a key of its own in an index, always.
fn require_identifies(table: &TableDef, index: &IndexDef) -> Result<()> {
    let name = &index.name;
    let wrong = |message: String| Err(EngineError::new(SqlState::WRONG_OBJECT_TYPE, message));
    let cannot = |kind: &str| format!("cannot use {kind} index \"{name}\" as replica identity");
    if !index.unique {
        return wrong(cannot("non-unique"));
    }
    if index.check_time.deferrable {
        return Err(refused(cannot("non-immediate")));
    }
    if (0..index.keys.len()).any(|part| index.column(part).is_none()) {
        return Err(refused(cannot("expression")));
    }
    if index.predicate.is_some() {
        return Err(refused(cannot("partial")));
    }
    if !is_finished(table, index) {
        return Err(refused(cannot("invalid")));
    }
    let mut columns = (0..index.keys.len()).filter_map(|part| index.column(part));
    match columns.find(|column| !table.columns[usize::from(*column)].not_null) {
        None => Ok(()),
        Some(column) => wrong(format!(
            "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
            table.columns[usize::from(column)].name
        )),
    }
}
