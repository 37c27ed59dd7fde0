//! Comments on objects.
//!
//! A comment is a row of the catalog heap of its own, with the address of its object: a table of many columns with long
//! comments would not fit one row. It goes when its object goes ([`addresses_of`] tells the addresses that belong to a
//! table), in the same transaction.

use clearway_sql::ObjectAddress;
use clearway_storage::heap::Tid;

use super::{CatalogState, TableEntry};

/// A comment with the place of its row.
#[derive(Debug, Clone)]
pub(crate) struct CommentEntry {
    pub(crate) on: ObjectAddress,
    pub(crate) text: String,
    pub(crate) tid: Tid,
}

/// The addresses of a table, its columns, indexes and constraints.
pub(crate) fn addresses_of(entry: &TableEntry) -> Vec<ObjectAddress> {
    let relation = ObjectAddress::relation;
    let mut addresses = vec![relation(entry.def.oid)];
    addresses.extend((1..=entry.def.attribute_count()).map(|number| ObjectAddress {
        column: number as i32,
        ..relation(entry.def.oid)
    }));
    for index in entry.def.all_indexes() {
        addresses.extend(addresses_of_index(index.oid));
    }
    let checks = entry.def.checks.iter();
    addresses.extend(checks.map(|check| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid)));
    let keys = entry.def.foreign_keys.iter();
    addresses.extend(keys.map(|key| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, key.oid)));
    addresses
}

/// The addresses of an index, and of the constraint that it enforces.
pub(crate) fn addresses_of_index(oid: u32) -> [ObjectAddress; 2] {
    [
        ObjectAddress::relation(oid),
        ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, oid),
    ]
}

impl CatalogState {
    /// The comment on an object.
    pub(crate) fn comment(&self, on: &ObjectAddress) -> Option<&CommentEntry> {
        self.comments.get(on)
    }

    /// All comments, by their objects.
    pub(crate) fn comments(&self) -> Vec<&CommentEntry> {
        let mut comments: Vec<_> = self.comments.values().collect();
        comments.sort_by_key(|comment| comment.on);
        comments
    }

    /// Adds or replaces a comment.
    pub(crate) fn put_comment(&mut self, comment: CommentEntry) {
        self.comments.insert(comment.on, comment);
    }

    /// Takes a comment out.
    pub(crate) fn remove_comment(&mut self, on: &ObjectAddress) {
        self.comments.remove(on);
    }
}
