//! The tables that a statement works on.

use clearway_txn::{LockMode, Xid};

use crate::catalog::TableEntry;

/// A table that a statement locks before it runs.
#[derive(Debug, Clone)]
pub(crate) struct TableUse {
    pub(crate) oid: u32,
    pub(crate) mode: LockMode,
    /// The transaction that changed its definition last.
    pub(crate) changed_by: Xid,
    pub(crate) name: String,
}

impl TableUse {
    /// `entry`: its definition; the catalog itself has none.
    pub(crate) fn new(oid: u32, mode: LockMode, entry: Option<&TableEntry>) -> TableUse {
        TableUse {
            oid,
            mode,
            changed_by: entry.map_or(Xid::INVALID, |entry| entry.changed_by),
            name: entry.map_or_else(String::new, |entry| entry.def.name.clone()),
        }
    }
}
