//! The tables whose foreign keys name rows of a table.
//!
//! A table's own row of the catalog has its foreign keys. The other direction is kept beside the definitions, and a table
//! that is referenced says so itself (`is_referenced`): a statement that deletes its rows need not look here if it is not.

use std::sync::Arc;

use clearway_sql::{ForeignKeyDef, TableDef};

use super::{CatalogState, TableEntry};

/// A foreign key, with the table that has it.
pub(crate) struct Reference {
    pub(crate) child: Arc<TableEntry>,
    pub(crate) key: Arc<ForeignKeyDef>,
}

impl CatalogState {
    /// The tables whose foreign keys name rows of this one, itself among them if it has such a key, by number.
    pub(crate) fn children(&self, parent: u32) -> &[u32] {
        self.references.get(&parent).map_or(&[], Vec::as_slice)
    }

    /// The foreign keys that name rows of a table, in the order of their numbers.
    pub(crate) fn references_to(&self, parent: u32) -> Vec<Reference> {
        let children = self.children(parent).iter();
        let children = children.filter_map(|child| self.table(*child));
        let mut found: Vec<Reference> = children
            .flat_map(|child| {
                let keys = child.def.foreign_keys.iter();
                let own = keys.filter(|key| key.parent == parent);
                own.map(|key| Reference {
                    child: Arc::clone(child),
                    key: Arc::clone(key),
                })
            })
            .collect();
        found.sort_by_key(|reference| reference.key.oid);
        found
    }

    /// The foreign key of this number.
    pub(crate) fn foreign_key(&self, oid: u32) -> Option<Reference> {
        let child = self.owner(oid)?;
        let key = child.def.foreign_keys.iter().find(|key| key.oid == oid)?;
        Some(Reference {
            child: Arc::clone(child),
            key: Arc::clone(key),
        })
    }

    /// Notes the references of a definition that is about to be put in the place of another; the tables that may be
    /// referenced otherwise now.
    pub(super) fn note_references(&mut self, entry: &mut TableEntry) -> Vec<u32> {
        let table = entry.def.oid;
        let before = self.by_oid.get(&table).map(|old| Arc::clone(&old.def));
        let mut parents = self.forget_references(table, before.as_deref());
        for key in &entry.def.foreign_keys {
            let mut children = self.children(key.parent).to_vec();
            if let Err(place) = children.binary_search(&table) {
                children.insert(place, table);
                self.references.insert(key.parent, children);
            }
            parents.push(key.parent);
        }
        let is_referenced = !self.children(table).is_empty();
        if entry.def.is_referenced != is_referenced {
            let mut def = (*entry.def).clone();
            def.is_referenced = is_referenced;
            entry.def = Arc::new(def);
        }
        parents.retain(|parent| *parent != table);
        parents
    }

    /// Takes the references of a definition out; the tables that they were to.
    pub(super) fn forget_references(&mut self, table: u32, def: Option<&TableDef>) -> Vec<u32> {
        let keys = def.into_iter().flat_map(|def| &def.foreign_keys);
        let parents: Vec<u32> = keys.map(|key| key.parent).collect();
        for parent in &parents {
            let mut children = self.children(*parent).to_vec();
            children.retain(|child| *child != table);
            match children.is_empty() {
                true => drop(self.references.remove(parent)),
                false => drop(self.references.insert(*parent, children)),
            }
        }
        parents
    }

    /// Lets tables say whether they are referenced.
    pub(super) fn mark_referenced(&mut self, tables: Vec<u32>) {
        for table in tables {
            let is_referenced = !self.children(table).is_empty();
            let Some(entry) = self.by_oid.get(&table) else {
                continue;
            };
            if entry.def.is_referenced == is_referenced {
                continue;
            }
            let mut def = (*entry.def).clone();
            def.is_referenced = is_referenced;
            let name = (def.schema.oid, def.name.clone());
            let entry = Arc::new(TableEntry {
                def: Arc::new(def),
                ..(**entry).clone()
            });
            self.by_name.insert(name, Arc::clone(&entry));
            self.by_oid.insert(table, entry);
        }
    }
}
