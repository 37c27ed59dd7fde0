//! Forms of the engine's mechanisms that a database had when a published figure was measured. The engine's own code runs in
//! them, with other sizes than the engine has.
//!
//! | form | the engine's | PostgreSQL's |
//! | --- | --- | --- |
//! | `map_partitions` of `buffer_map = partitioned` | 128 | 16 until 9.4, 128 since |
//! | `commit_log_banks` of `commit_log = group` | 16 | without groups until 10, then 1 until 16 |
//!
//! Other old forms are variants of switches: `lwlock = queued-scan` (9.5 to 15), `buffer_clock = latched` (until 9.4),
//! `commit_log = latch` (until 10), `snapshot = scan` (until 13).
//!
//! Forms that are missing: the LwLock until 9.4, whose word was under a spin lock; the array of transactions until 13, which a
//! snapshot walked through an array of numbers; a commit log of fewer than 128 buffers (until 9.5).

use clearway_engine::Mechanisms;
use clearway_storage::{BufferMapVariant, BufferPoolOptions};
use clearway_txn::{CommitLogOptions, CommitLogVariant};
use serde::{Deserialize, Serialize};

/// The largest number of latches of either form. A commit log has as many pages.
const LATCHES_MAX: u32 = 128;

/// Old sizes, of those mechanisms that a variant has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OfItsTime {
    /// Partitions of `buffer_map = partitioned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_partitions: Option<u32>,
    /// Banks of `commit_log = banks` and `group`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_log_banks: Option<u32>,
}

impl OfItsTime {
    /// True if the variant has today's sizes.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says what is wrong with it beside these mechanisms.
    pub(super) fn check(&self, mechanisms: &Mechanisms) -> Result<(), String> {
        for (name, number) in [
            ("map_partitions", self.map_partitions),
            ("commit_log_banks", self.commit_log_banks),
        ] {
            if number.is_some_and(|number| !number.is_power_of_two() || number > LATCHES_MAX) {
                return Err(format!(
                    "{name} must be a power of two, and {LATCHES_MAX} at most"
                ));
            }
        }
        if self.beside(mechanisms) == *self {
            return Ok(());
        }
        Err(
            "map_partitions is for buffer_map = partitioned, commit_log_banks for commit_log = banks or group"
                .to_owned(),
        )
    }

    /// The sizes that have a part beside these mechanisms.
    pub(super) fn beside(&self, mechanisms: &Mechanisms) -> Self {
        let is_partitioned = mechanisms.buffer_map == BufferMapVariant::Partitioned;
        let has_banks = matches!(
            mechanisms.commit_log,
            CommitLogVariant::Banks | CommitLogVariant::Group
        );
        Self {
            map_partitions: self.map_partitions.filter(|_| is_partitioned),
            commit_log_banks: self.commit_log_banks.filter(|_| has_banks),
        }
    }

    pub(super) fn buffer_pool_options(&self, mechanisms: &Mechanisms) -> BufferPoolOptions {
        let mut options = mechanisms.buffer_pool_options();
        options.map_partitions = self.map_partitions.unwrap_or(options.map_partitions);
        options
    }

    pub(super) fn commit_log_options(&self, mechanisms: &Mechanisms) -> CommitLogOptions {
        let mut options = mechanisms.commit_log_options();
        options.banks = self.commit_log_banks.unwrap_or(options.banks);
        options
    }
}
