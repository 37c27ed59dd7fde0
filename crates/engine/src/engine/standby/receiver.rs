//! The receiver of the log, as `pg_stat_wal_receiver` shows it. It is above the engine, and installs its source here.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::engine::Engine;
use crate::replication_status::WalReceiverStatus;

/// A function that a program above the engine installs.
pub(super) struct Hook<F: ?Sized>(Mutex<Option<Arc<F>>>);

impl<F: ?Sized> Hook<F> {
    pub(super) fn set(&self, function: Arc<F>) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(function);
    }

    pub(super) fn get(&self) -> Option<Arc<F>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

impl<F: ?Sized> Default for Hook<F> {
    fn default() -> Self {
        Hook(Mutex::new(None))
    }
}

impl<F: ?Sized> fmt::Debug for Hook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "installed" } else { "none" })
    }
}

impl Engine {
    /// Sets the source of the receiver's status, which gives nothing while there is no receiver.
    pub fn set_wal_receiver(&self, status: Arc<dyn Fn() -> Option<WalReceiverStatus> + Send + Sync>) {
        self.standby.receiver.set(status);
    }

    /// The status of the receiver.
    pub(crate) fn wal_receiver(&self) -> Option<WalReceiverStatus> {
        self.standby.receiver.get().and_then(|status| status())
    }
}
