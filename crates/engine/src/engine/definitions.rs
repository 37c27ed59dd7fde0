//! Reading the definitions from their heap.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_storage::heap::{Heap, HeapScan, Tid, TxnContext};
use clearway_txn::Xid;

use super::Engine;
use crate::activity::{ActivitySlot, SessionInfo};
use crate::catalog::comment::CommentEntry;
use crate::catalog::role::{MembershipEntry, RoleEntry};
use crate::catalog::schema::SchemaEntry;
use crate::catalog::statistics::{self, KeptStatistics};
use crate::catalog::stored::{CatalogRow, Comment, Definition, RowKey};
use crate::catalog::types_in_force::put_in_force;
use crate::catalog::user_types::TypeEntry;
use crate::catalog::{CATALOG_REL, Catalog, CatalogState, TableEntry, TableRuntime, stored};
use crate::convert::storage_error;
use crate::transaction::Transaction;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::OnCommit;
use clearway_sql::value::user_type::UserType;

/// A row of the definitions' heap.
#[derive(Debug)]
pub(super) struct DefinitionRow {
    pub(super) tid: Tid,
    pub(super) bytes: Vec<u8>,
}

/// All rows that the snapshot of `context` sees.
pub(super) fn definition_rows(context: &TxnContext<'_>) -> Result<Vec<DefinitionRow>> {
    let mut rows = Vec::new();
    let scan = Heap::new(CATALOG_REL).scan(context).map_err(storage_error)?;
    collect(context, scan, &mut rows)?;
    Ok(rows)
}

/// Those of them that lie on these pages.
pub(super) fn definition_rows_on(
    context: &TxnContext<'_>,
    pages: &BTreeSet<u32>,
) -> Result<Vec<DefinitionRow>> {
    let mut rows = Vec::new();
    for page in pages {
        let scan = Heap::new(CATALOG_REL)
            .scan_page(context, *page)
            .map_err(storage_error)?;
        collect(context, scan, &mut rows)?;
    }
    Ok(rows)
}

fn collect(context: &TxnContext<'_>, mut scan: HeapScan, rows: &mut Vec<DefinitionRow>) -> Result<()> {
    let read = |tid, bytes: &[u8]| DefinitionRow {
        tid,
        bytes: bytes.to_vec(),
    };
    while let Some(row) = scan.next(context, read).map_err(storage_error)? {
        rows.push(row);
    }
    Ok(())
}

/// The entry of a definition that lies at `tid`.
pub(super) fn table_entry(
    catalog: &Catalog,
    definition: Definition,
    tid: Tid,
    changed_by: Xid,
    runtime: Arc<TableRuntime>,
    statistics: Option<KeptStatistics>,
) -> TableEntry {
    let sequence = definition.table.sequence.as_ref().map(|sequence| sequence.rel);
    TableEntry {
        def: definition.table,
        tid,
        changed_by,
        runtime,
        sequence: sequence.map(|rel| catalog.sequence(rel)),
        statistics,
        on_commit: OnCommit::PreserveRows,
        access: definition.access,
    }
}

/// Puts the types of a state in force, and those of the rows of tables and views in `rows`.
fn put_rows_in_force(catalog: &Catalog, state: &CatalogState, rows: &[DefinitionRow]) {
    // The columns may have types of the state.
    put_in_force(state);
    let mut known = state.clone();
    for row in rows {
        // What cannot be read is an error when it is decoded.
        if let Ok(Some(columns)) = stored::decode_columns(&row.bytes) {
            known.put(table_entry(
                catalog,
                columns,
                row.tid,
                Xid::INVALID,
                Arc::default(),
                None,
            ));
        }
    }
    put_in_force(&known);
}

/// Decodes rows of which expressions may name the types of tables' rows. Few do, so these types are put in force when a row
/// cannot be decoded without.
pub(super) struct RowDecoder<'a> {
    catalog: &'a Catalog,
    /// It has all types but those of rows.
    state: &'a CatalogState,
    /// The rows that are decoded, with all tables that expressions may name and the state has not.
    rows: &'a [DefinitionRow],
    knows_rows: Cell<bool>,
}

impl<'a> RowDecoder<'a> {
    pub(super) fn new(catalog: &'a Catalog, state: &'a CatalogState, rows: &'a [DefinitionRow]) -> Self {
        RowDecoder {
            catalog,
            state,
            rows,
            knows_rows: Cell::new(false),
        }
    }

    pub(super) fn decode(&self, bytes: &[u8]) -> Result<CatalogRow> {
        match stored::decode(bytes) {
            Err(_) if !self.knows_rows.replace(true) => {
                put_rows_in_force(self.catalog, self.state, self.rows);
                stored::decode(bytes)
            }
            decoded => decoded,
        }
    }
}

/// Decodes types, in an order in which each finds those that it names, and puts them into the state; they are in force
/// then, for the rows that name them. `tables`: rows with the tables beside them, whose rows' types they may name.
pub(super) fn decoded_types(
    catalog: &Catalog,
    state: &mut CatalogState,
    rows: Vec<DefinitionRow>,
    tables: &[DefinitionRow],
) -> Result<Vec<(Arc<UserType>, DefinitionRow)>> {
    put_in_force(state);
    let mut knows_rows = false;
    let mut decoded = Vec::with_capacity(rows.len());
    let mut left = rows;
    while !left.is_empty() {
        let (mut later, mut refused) = (Vec::new(), None);
        let count = left.len();
        for row in left {
            match stored::decode(&row.bytes) {
                Ok(CatalogRow::Type(def)) => {
                    state.put_type(TypeEntry {
                        def: Arc::clone(&def),
                        tid: row.tid,
                    });
                    decoded.push((def, row));
                }
                Ok(_) => {
                    return Err(EngineError::internal(
                        "a row of another kind is read with the types",
                    ));
                }
                Err(error) => {
                    refused = Some(error);
                    later.push(row);
                }
            }
        }
        if let Some(error) = refused.filter(|_| later.len() == count) {
            if knows_rows {
                return Err(error);
            }
            knows_rows = true;
        }
        match knows_rows {
            true => put_rows_in_force(catalog, state, tables),
            false => put_in_force(state),
        }
        left = later;
    }
    Ok(decoded)
}

/// The entry of a comment that lies at `tid`.
pub(super) fn comment_entry(comment: Comment, tid: Tid) -> CommentEntry {
    CommentEntry {
        on: comment.on,
        text: comment.text,
        tid,
    }
}

/// The statistics that a definition names; none if they cannot be read, since a table serves without them.
pub(super) fn kept_statistics(context: &TxnContext<'_>, definition: &Definition) -> Option<KeptStatistics> {
    let table = &definition.table;
    match statistics::read(context, definition.statistics?, table) {
        Ok(kept) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, table = table.name, "its statistics cannot be read; ANALYZE makes new ones");
            None
        }
    }
}

impl Engine {
    /// Reads all committed definitions, and publishes them; their rows.
    pub(super) fn load_catalog(&self) -> Result<Vec<(RowKey, DefinitionRow)>> {
        let slot = Arc::new(ActivitySlot::new(0, 0, &SessionInfo::default()));
        let proc = self.attach()?;
        let result = self.read_definitions(self.transaction(&slot, proc));
        self.storage.proc_array.detach(proc);
        result
    }

    fn read_definitions(&self, mut txn: Transaction) -> Result<Vec<(RowKey, DefinitionRow)>> {
        txn.take_snapshot();
        let mut state = self.catalog.changed_copy(&self.catalog.state());
        let mut found = definition_rows(&txn.context())?;
        let mut rows = Vec::new();
        let mut types = Vec::new();
        for row in found.extract_if(.., |row| stored::is_type(&row.bytes)) {
            types.push(row);
        }
        for (def, row) in decoded_types(&self.catalog, &mut state, types, &found)? {
            rows.push((RowKey::Type(def.oid.get()), row));
        }
        let decoder = RowDecoder::new(&self.catalog, &state, &found);
        let decoded = found.iter().map(|row| decoder.decode(&row.bytes));
        let decoded: Vec<CatalogRow> = decoded.collect::<Result<_>>()?;
        for (row, decoded) in found.into_iter().zip(decoded) {
            let key = decoded.key();
            match decoded {
                CatalogRow::Type(_) => return Err(EngineError::internal("a type is read with the tables")),
                CatalogRow::Table(definition) => {
                    let kept = kept_statistics(&txn.context(), &definition);
                    let runtime: Arc<TableRuntime> = Arc::default();
                    if let Some(kept) = &kept {
                        let rows = kept.of_table.rows as i64;
                        runtime.live_rows.store(rows, Ordering::Relaxed);
                    }
                    state.put(table_entry(
                        &self.catalog,
                        definition,
                        row.tid,
                        Xid::INVALID,
                        runtime,
                        kept,
                    ));
                }
                CatalogRow::Comment(comment) => state.put_comment(comment_entry(comment, row.tid)),
                CatalogRow::Database(access) => state.put_database(Arc::new(access), Some(row.tid)),
                CatalogRow::Defaults(key, acl) => state.put_default_acl(key, acl, Some(row.tid)),
                CatalogRow::Role(role) => state.put_role(RoleEntry {
                    role,
                    tid: Some(row.tid),
                }),
                CatalogRow::Member(membership) => state.put_membership(MembershipEntry {
                    membership,
                    tid: Some(row.tid),
                }),
                CatalogRow::Schema(entry) => state.put_schema(SchemaEntry {
                    tid: Some(row.tid),
                    ..entry
                }),
            }
            rows.push((key, row));
        }
        self.catalog.publish(Arc::new(state));
        txn.rollback();
        Ok(rows)
    }
}
