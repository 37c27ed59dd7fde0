//! The configuration in force.

use crate::config::Config;

/// The configuration in force, and what of the file waits for a restart.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub(crate) config: Config,
    pub(crate) pending_restart: Vec<String>,
    /// The time at which it was read, as a timestamptz value.
    pub(crate) read_at_us: i64,
}
