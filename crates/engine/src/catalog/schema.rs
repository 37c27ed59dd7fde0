//! Schemas: names that relations have their names in.
//!
//! A table's definition has its schema's number; the name stands in the schema's own row, so a schema is renamed by
//! changing that row. `public` is there although no row tells of it; a row with its number says that it has another name,
//! or that it was dropped.
//!
//! | schema | number | its relations |
//! | --- | --- | --- |
//! | `pg_catalog`, `information_schema` | fixed | the system's |
//! | `pg_toast` | fixed | the long values of tables, under the names that PostgreSQL gives them |
//! | `public` | fixed | of users |
//! | others | as a relation's, from the number that a relation would have had | of users |
//! | `pg_temp_…` | a session's number, above those of relations | temporary, and of one session |

use std::sync::Arc;

use clearway_storage::heap::Tid;

use super::access::{self, Access, AclItem, Kind, PUBLIC, USAGE};
use super::role::DATABASE_OWNER;
use super::system::shape::Schema;
use super::{CatalogState, TableEntry, system};
use clearway_sql::{PG_TEMP, SchemaRef, SearchPath, TableDef};

/// A schema of users.
#[derive(Debug, Clone)]
pub(crate) struct SchemaEntry {
    pub(crate) schema: SchemaRef,
    /// The place of its row, if it has one.
    pub(crate) tid: Option<Tid>,
    /// A row of `public` may say that there is no such schema.
    pub(crate) is_dropped: bool,
    /// Its owner, and who may do what with it.
    pub(crate) access: Arc<Access>,
}

impl SchemaEntry {
    /// The schema of a session's temporary tables, which no row tells of.
    pub(crate) fn temporary(schema: SchemaRef) -> SchemaEntry {
        SchemaEntry {
            schema,
            tid: None,
            is_dropped: false,
            access: Arc::default(),
        }
    }

    /// `public` as it is where no row tells otherwise.
    pub(crate) fn public() -> SchemaEntry {
        SchemaEntry {
            schema: SchemaRef::public(),
            tid: None,
            is_dropped: false,
            access: Arc::new(access_of_public()),
        }
    }
}

/// The access to a schema of this number whose row does not say it.
pub(crate) fn first_access(oid: u32) -> Access {
    match oid {
        SchemaRef::PUBLIC_OID => access_of_public(),
        _ => Access::default(),
    }
}

/// The owner of the `public` that each database begins with is the database's, and all may use it.
fn access_of_public() -> Access {
    let all = AclItem(PUBLIC, DATABASE_OWNER, USAGE, 0);
    let mut acl = access::default_acl(Kind::Schema, DATABASE_OWNER);
    acl.push(all);
    Access {
        acl: Some(acl),
        ..Access::of(DATABASE_OWNER)
    }
}

impl CatalogState {
    /// The schema of this name; `pg_temp` is that of the session's temporary tables.
    pub(crate) fn schema_named(&self, name: &str) -> Option<SchemaRef> {
        let system = Schema::SYSTEM.into_iter().find(|schema| schema.name() == name);
        if let Some(system) = system {
            return Some(system.reference());
        }
        let entries = self.schemas.iter().filter(|entry| !entry.is_dropped);
        let mut found = entries.filter(|entry| *entry.schema.name == *name);
        match found.next() {
            Some(entry) => Some(entry.schema.clone()),
            None if name == PG_TEMP => self.temporary_schema(),
            None => None,
        }
    }

    /// The entry of the schema of users with this number.
    pub(crate) fn schema_entry(&self, oid: u32) -> Option<&SchemaEntry> {
        self.schemas.iter().find(|entry| entry.schema.oid == oid)
    }

    /// The schemas of users.
    pub(crate) fn schema_entries(&self) -> impl Iterator<Item = &SchemaEntry> {
        self.schemas.iter().filter(|entry| !entry.is_dropped)
    }

    /// The schema of this number.
    pub(crate) fn schema_of_number(&self, oid: u32) -> Option<SchemaRef> {
        let system = Schema::SYSTEM.into_iter().find(|schema| schema.oid() == oid);
        match system {
            Some(system) => Some(system.reference()),
            None => self
                .schema_entry(oid)
                .filter(|entry| !entry.is_dropped)
                .map(|entry| entry.schema.clone()),
        }
    }

    /// All schemas, by number.
    pub(crate) fn schemas(&self) -> Vec<SchemaRef> {
        let users = self.schemas.iter().filter(|entry| !entry.is_dropped);
        let mut all: Vec<SchemaRef> = users.map(|entry| entry.schema.clone()).collect();
        all.extend(Schema::SYSTEM.into_iter().map(Schema::reference));
        all.sort_by_key(|schema| schema.oid);
        all
    }

    /// Adds or replaces a schema; its tables have its name from now on.
    pub(crate) fn put_schema(&mut self, entry: SchemaEntry) {
        let schema = entry.schema.clone();
        self.schemas.retain(|known| known.schema.oid != schema.oid);
        self.schemas.push(entry);
        for table in self.tables_in(schema.oid) {
            if table.def.schema != schema {
                self.put((*table).clone());
            }
        }
        self.rename_schema_of_types(&schema);
    }

    /// Takes a schema out, which has no tables; `public` is as it was at first then.
    pub(crate) fn remove_schema(&mut self, oid: u32) {
        self.schemas.retain(|known| known.schema.oid != oid);
        if oid == SchemaRef::PUBLIC_OID {
            self.schemas.push(SchemaEntry::public());
        }
    }

    /// The tables and views of a schema, by number.
    pub(crate) fn tables_in(&self, schema: u32) -> Vec<Arc<TableEntry>> {
        let mut tables: Vec<_> = self.by_oid.values().cloned().collect();
        tables.retain(|entry| entry.def.schema.oid == schema);
        tables.sort_by_key(|entry| entry.def.oid);
        tables
    }

    /// The table of a schema, or the sequence to be read like one.
    pub(crate) fn table_in(&self, schema: &SchemaRef, name: &str) -> Option<Arc<TableDef>> {
        let system = Schema::SYSTEM
            .into_iter()
            .find(|system| system.oid() == schema.oid);
        if let Some(system) = system {
            return system::lookup(system, name);
        }
        let entry = self.by_name.get(&(schema.oid, name.to_owned()))?;
        Some(Arc::clone(&entry.def))
    }

    /// The schemas that a name without one is looked for in, in their order.
    pub(crate) fn searched<'a>(
        &'a self,
        path: &'a SearchPath,
        user: &'a str,
    ) -> impl Iterator<Item = SchemaRef> + 'a {
        path.searched(user).filter_map(|name| self.schema_named(name))
    }

    /// The schemas that the path names, in its order.
    pub(crate) fn on_path<'a>(
        &'a self,
        path: &'a SearchPath,
        user: &'a str,
    ) -> impl Iterator<Item = SchemaRef> + 'a {
        path.names(user).filter_map(|name| self.schema_named(name))
    }

    /// The schema of the session's temporary tables, if it has any.
    pub(crate) fn temporary_schema(&self) -> Option<SchemaRef> {
        let mut schemas = self.schemas.iter();
        let found = schemas.find(|entry| entry.schema.is_temporary());
        found.map(|entry| entry.schema.clone())
    }

    /// The session's temporary tables.
    pub(crate) fn temporary_tables(&self) -> Vec<Arc<TableEntry>> {
        let tables = self.temporary.iter();
        tables.filter_map(|oid| self.table(*oid).cloned()).collect()
    }

    /// Takes out the session's temporary tables, and their schema.
    pub(crate) fn remove_temporary(&mut self) {
        for oid in self.temporary.clone() {
            self.remove(oid);
        }
        self.schemas.retain(|entry| !entry.schema.is_temporary());
    }
}
