//! The end of a process, as far as its database is concerned.

use std::sync::Arc;

use clearway_storage::Storage;

/// Drops `storage` without a shutdown: what is only in memory is lost.
pub fn crash(storage: Arc<Storage>) {
    storage.stop_threads();
    drop(storage);
}
