//! The rest of transactions that are kept no more one by one: G7 of [`super`].

use std::collections::VecDeque;

use super::serial_id::{NEVER, SerialId};
use super::target::Target;

/// The rest of the summarised transactions, all together (G7).
#[derive(Debug)]
pub(super) struct OldCommitted {
    pub(super) newest_finish: u64,
    pub(super) earliest_prepared: u64,
    pub(super) earliest_out: u64,
    /// The newest id among them.
    pub(super) newest: SerialId,
    /// Their marks, in the order in which they may go.
    pub(super) targets: VecDeque<(u64, Target)>,
    /// Transactions whose marks are being handed over.
    pub(super) under_way: usize,
}

impl OldCommitted {
    pub(super) fn none() -> Self {
        Self {
            newest_finish: 0,
            earliest_prepared: NEVER,
            earliest_out: NEVER,
            newest: SerialId(0),
            targets: VecDeque::new(),
            under_way: 0,
        }
    }
}

/// A conflict with a summarised transaction, which finished at this time or before.
#[derive(Debug, Clone, Copy)]
pub(super) struct OldFinish(pub(super) u64);
