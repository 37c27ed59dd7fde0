//! One version by its place, for those who ask for it: its header and its bytes, whatever became of it.

use clearway_txn::Xid;

use crate::error::Result;
use crate::heap::layout::Tuple;
use crate::heap::{Heap, Tid};
use crate::page::PageId;
use crate::storage::Storage;

/// The transactions and commands that a version's header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionHeader {
    /// The transaction that made it.
    pub xmin: Xid,
    /// The transaction that replaced, deleted or locked it, whatever became of that transaction; invalid without one.
    pub xmax: Xid,
    /// The command that made it.
    pub cmin: u32,
    /// The command that replaced or deleted it; 0 without one.
    pub cmax: u32,
}

impl Heap {
    /// The bytes of the version at exactly `tid`, whatever became of it; `None` if there is none.
    pub fn row_at<R>(&self, storage: &Storage, tid: Tid, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let page = PageId {
            rel: self.rel,
            block: tid.block,
        };
        let page = storage.pin(page)?.into_shared();
        Ok(Tuple::at(page.hinted(), tid.slot).map(|tuple| read(tuple.row())))
    }

    /// The header of the version at exactly `tid`; `None` if there is none.
    pub fn header(&self, storage: &Storage, tid: Tid) -> Result<Option<VersionHeader>> {
        let page = PageId {
            rel: self.rel,
            block: tid.block,
        };
        let page = storage.pin(page)?.into_shared();
        Ok(Tuple::at(page.hinted(), tid.slot).map(|tuple| VersionHeader {
            xmin: Xid(tuple.xmin()),
            xmax: Xid(tuple.xmax()),
            cmin: tuple.cmin(),
            cmax: tuple.cmax(),
        }))
    }
}
