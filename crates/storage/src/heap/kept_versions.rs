//! Versions that a crash may leave as a row's newest one, for `lock_release = early`.
//!
//! A HOT chain whose later versions were made by commits that are not durable yet:
//!
//! ```text
//! root ──► A ──► B ──► C ──► D ──► E (ours)      made by a durable commit: A, B      not yet durable: C, D
//! ```
//!
//! A crash takes commits from the end of the log, so it leaves B, C or D as the row, and never A. The UPDATE that has
//! replaced D would have replaced B or C instead. The executor asks for these two, to see whether it would have counted
//! them as well.

use crate::error::Result;
use crate::heap::chain::{chain, chain_start};
use crate::heap::{Heap, Tid, TxnContext};

use clearway_txn::Xid;

impl Heap {
    /// Collects in `rows` the bytes of the versions before `target` that a crash may leave as the newest of the row
    /// that index entries lead to by `root`. `target` is the version that the transaction of `ctx` has replaced or
    /// deleted.
    ///
    /// `false`: there may be other outcomes. The row itself is not durable, or the transaction has changed it before,
    /// or `target` is not in the chain of `root`.
    pub fn survivors(
        &self,
        ctx: &TxnContext<'_>,
        root: Tid,
        target: Tid,
        rows: &mut Vec<Vec<u8>>,
    ) -> Result<bool> {
        if root.block != target.block {
            return Ok(false);
        }
        let page = self.shared_page(ctx, root.block)?;
        let hinted = page.hinted();
        let Some(start) = chain_start(hinted, root.slot) else {
            return Ok(false);
        };
        let is_own = |xid: Xid| ctx.xid == Some(xid);
        let is_durable = |xid: Xid| ctx.storage.position_if_early(xid).is_none();
        let mut oldest_is_known = false;
        for (slot, tuple) in chain(hinted, start) {
            let (xmin, xmax) = (Xid(tuple.xmin()), Xid(tuple.xmax()));
            let is_target = slot == target.slot;
            if is_own(xmin) || (is_own(xmax) && !is_target) {
                return Ok(false);
            }
            // `chain` follows a version only to the successor that its xmax made, and the target, a later one, counts
            // as committed: so has this one's xmax.
            if !oldest_is_known && (is_target || !is_durable(xmax)) {
                if !is_durable(xmin) {
                    return Ok(false);
                }
                oldest_is_known = true;
            }
            if is_target {
                return Ok(true);
            }
            if oldest_is_known {
                rows.push(tuple.row().to_vec());
            }
        }
        Ok(false)
    }
}
