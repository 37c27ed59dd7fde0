//! State that replay keeps from one stretch of log to the next.

use std::collections::BTreeSet;

use clearway_txn::Xid;

use super::ChangedDefinitions;
use crate::page::Lsn;
use crate::wal::link::LogLink;

/// State that replay keeps from one stretch of log to the next.
#[derive(Debug, Default)]
pub(crate) struct ReplayState {
    /// Transactions that have changed definitions, or may have, and have not ended.
    pub(crate) definers: BTreeSet<Xid>,
    /// Those of them that may have changed definitions before the log that was replayed here.
    pub(crate) suspected: BTreeSet<Xid>,
    pub(crate) changed: ChangedDefinitions,
    /// The newest xid met.
    pub(crate) newest: Xid,
    /// The link of the record that comes next, once one was replayed.
    pub(crate) link: Option<LogLink>,
}

impl ReplayState {
    /// Before the redo position `newest` was the newest xid that may have been handed out.
    pub(crate) fn after(newest: Xid) -> Self {
        Self {
            newest,
            changed: ChangedDefinitions {
                is_incomplete: true,
                ..ChangedDefinitions::default()
            },
            ..Self::default()
        }
    }
}

/// A checkpoint of the primary that was replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplayedCheckpoint {
    pub(crate) redo: Lsn,
    /// The end of its record.
    pub(crate) end: Lsn,
    pub(crate) next_xid: Xid,
    pub(crate) next_rel: u32,
}
