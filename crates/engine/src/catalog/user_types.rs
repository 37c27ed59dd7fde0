//! The types that users have defined, and those of tables' rows.
//!
//! A type is a row of the catalog heap with its number, its schema and its definition. The type of a table's rows has no
//! row: it follows from the table's definition, and its number from the table's
//! ([`clearway_sql::value::user_type`]).

use std::sync::Arc;

use clearway_sql::function::USER_OID;
use clearway_sql::value::user_type::{
    CompositeType, Field, ROW_TYPE_OFFSET, UserType, UserTypeKind, array_name,
};
use clearway_sql::value::{DataType, TypeOid};
use clearway_sql::{SchemaRef, TableDef};
use clearway_storage::heap::Tid;

use super::{CatalogState, system};

/// A type with the place of its row.
#[derive(Debug, Clone)]
pub(crate) struct TypeEntry {
    pub(crate) def: Arc<UserType>,
    pub(crate) tid: Tid,
}

impl CatalogState {
    /// The type of this number that has a row.
    pub(crate) fn type_entry(&self, oid: u32) -> Option<&TypeEntry> {
        self.types.get(&oid)
    }

    /// The type of this number, or that of the rows of a table.
    pub(crate) fn user_type(&self, oid: TypeOid) -> Option<Arc<UserType>> {
        match self.types.get(&oid.get()) {
            Some(entry) => Some(Arc::clone(&entry.def)),
            None => self.row_type(oid),
        }
    }

    /// All types that have rows, by number.
    pub(crate) fn user_types(&self) -> Vec<Arc<UserType>> {
        let mut all: Vec<_> = self.types.values().map(|entry| Arc::clone(&entry.def)).collect();
        all.sort_by_key(|found| found.oid);
        all
    }

    /// The types of a schema that have rows, by number.
    pub(crate) fn types_in(&self, schema: u32) -> Vec<Arc<UserType>> {
        let mut all = self.user_types();
        all.retain(|found| found.schema_oid == schema);
        all
    }

    /// The type of this name in a schema, an array type included.
    pub(crate) fn type_in(&self, schema: u32, name: &str) -> Option<DataType> {
        if let Some(found) = self.own_type_in(schema, name) {
            return Some(found);
        }
        // A name with underscores is that of an array, unless something has it for itself.
        let mut element = name;
        while let Some(rest) = element.strip_prefix('_') {
            element = rest;
            if let Some(found) = self.own_type_in(schema, element)
                && self.array_name_in(schema, element) == name
            {
                return found.array_type();
            }
        }
        None
    }

    /// The name of the array type of the type of this name: with one underscore more, and with more of them while a type of
    /// the schema, or the array type of one with fewer underscores, has that name.
    pub(crate) fn array_name_in(&self, schema: u32, name: &str) -> String {
        let base = name.trim_start_matches('_');
        let own = name.len() - base.len();
        let with = |underscores: usize| format!("{}{base}", "_".repeat(underscores));
        let is_type = |underscores: usize| self.own_type_in(schema, &with(underscores)).is_some();
        let mut taken = Vec::new();
        for underscores in (0..=own).filter(|underscores| *underscores == own || is_type(*underscores)) {
            let mut free = underscores + 1;
            while taken.contains(&free) || is_type(free) {
                free += 1;
            }
            taken.push(free);
        }
        array_name(&with(taken.last().map_or(own, |last| last - 1)))
    }

    fn own_type_in(&self, schema: u32, name: &str) -> Option<DataType> {
        let key = (schema, name.to_owned());
        if let Some(oid) = self.type_names.get(&key) {
            return Some(self.types.get(oid)?.def.data_type());
        }
        let table = &self.by_name.get(&key)?.def;
        let oid = TypeOid::new(row_type_of(table)?)?;
        Some(DataType::Composite(oid))
    }

    /// Adds or replaces a type.
    pub(crate) fn put_type(&mut self, mut entry: TypeEntry) {
        // The schema's own row has its name.
        if let Some(known) = self.schema_entry(entry.def.schema_oid)
            && known.schema.name != entry.def.schema
        {
            let mut def = (*entry.def).clone();
            def.schema = Arc::clone(&known.schema.name);
            entry.def = Arc::new(def);
        }
        let oid = entry.def.oid.get();
        self.remove_type(oid);
        let key = (entry.def.schema_oid, entry.def.name.clone());
        self.type_names.insert(key, oid);
        self.types.insert(oid, entry);
    }

    /// Takes a type out.
    pub(crate) fn remove_type(&mut self, oid: u32) {
        if let Some(old) = self.types.remove(&oid) {
            self.type_names
                .remove(&(old.def.schema_oid, old.def.name.clone()));
        }
    }

    /// The types of a schema have its name from now on.
    pub(super) fn rename_schema_of_types(&mut self, schema: &SchemaRef) {
        for found in self.types_in(schema.oid) {
            if found.schema != schema.name
                && let Some(entry) = self.types.get(&found.oid.get()).cloned()
            {
                self.put_type(entry);
            }
        }
    }

    /// The types of the rows of all tables and views that users have made.
    pub(crate) fn row_types(&self) -> Vec<Arc<UserType>> {
        let tables = self.tables().into_iter().chain(self.views());
        let numbers = tables.filter_map(|entry| TypeOid::new(entry.def.oid + ROW_TYPE_OFFSET));
        numbers.filter_map(|oid| self.row_type(oid)).collect()
    }

    /// The type of a table's rows.
    fn row_type(&self, oid: TypeOid) -> Option<Arc<UserType>> {
        let table = oid.get().checked_sub(ROW_TYPE_OFFSET)?;
        let table = match self.by_oid.get(&table) {
            Some(entry) => Arc::clone(&entry.def),
            None => Arc::clone(&system::by_oid(table)?.definition),
        };
        let owner = self
            .by_oid
            .get(&table.oid)
            .map_or(USER_OID, |entry| entry.access.owner);
        let columns = table.columns.iter();
        Some(Arc::new(UserType {
            owner,
            oid,
            schema_oid: table.schema.oid,
            schema: Arc::clone(&table.schema.name),
            name: table.name.clone(),
            kind: UserTypeKind::Composite(CompositeType {
                fields: columns
                    .map(|column| Field {
                        name: column.name.clone(),
                        data_type: column.data_type,
                        typmod: column.typmod,
                    })
                    .collect(),
                table: Some(table.oid),
            }),
        }))
    }
}

/// The number of the type of a relation's rows; `None` for a sequence, which has none.
pub(crate) fn row_type_of(table: &TableDef) -> Option<u32> {
    match table.sequence {
        Some(_) => None,
        None => Some(table.oid + ROW_TYPE_OFFSET),
    }
}
