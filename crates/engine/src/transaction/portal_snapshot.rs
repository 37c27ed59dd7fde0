//! The part of its statement's transaction that a portal keeps, so that the next portion of its rows is read as the
//! first was.

use std::sync::Arc;

use clearway_machine::invariant;
use clearway_storage::SessionSnapshot;

use super::{Phase, Transaction};

/// The snapshot of a portal, for the first portion of its rows and the last.
#[derive(Debug)]
pub(crate) struct PortalSnapshot {
    snapshot: SessionSnapshot,
    command: u32,
    transaction: u64,
    /// The time at which it was made, by the transaction's clock of savepoints.
    made: u64,
    _open: Arc<()>,
}

impl Transaction {
    /// The snapshot of the running statement for a portal.
    pub(crate) fn portal_snapshot(&self) -> PortalSnapshot {
        invariant!(
            P1 of session::portal,
            self.has_snapshot,
            "a portal is suspended whose statement has no snapshot"
        );
        PortalSnapshot {
            snapshot: self.snapshot.clone(),
            command: self.command,
            transaction: self.number,
            made: self.clock,
            _open: Arc::clone(&self.portals),
        }
    }

    /// True if the portal's transaction is this one, and has not taken it back.
    pub(crate) fn owns(&self, portal: &PortalSnapshot) -> bool {
        self.phase != Phase::None && portal.transaction == self.number && !self.is_portal_gone(portal.made)
    }

    /// Exchanges what the portal sees and what the transaction sees, before the portal goes on and again afterwards.
    pub(crate) fn exchange_snapshot(&mut self, portal: &mut PortalSnapshot) {
        invariant!(
            P2 of session::portal,
            self.owns(portal),
            "a portal of transaction {} goes on in {}, {:?}",
            portal.transaction,
            self.number,
            self.phase
        );
        std::mem::swap(&mut self.snapshot, &mut portal.snapshot);
        std::mem::swap(&mut self.command, &mut portal.command);
        self.has_snapshot = true;
    }
}
