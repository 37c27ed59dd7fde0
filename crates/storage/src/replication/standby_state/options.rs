//! The options of a standby.

use std::time::Duration;

use clearway_machine::switch;
use clearway_txn::{KnownXidsCompactionVariant, KnownXidsVariant};

switch! {
    /// The worker of a standby that changes the pages.
    pub enum ReplayVariant = "replay", best Serial, planned [] {
        /// The one that reads the log.
        Serial = "serial",
        /// Several, each of them its own pages; commits are seen in the order of the log.
        Parallel = "parallel",
    }
    why {
        Serial: "On two CPUs two workers are 1.02 to 1.12 times as fast, and take 1.27 times the CPU time."
            in "docs/replication.md#replay";
    }
}

/// The options of a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandbyOptions {
    /// The switch `known_xids`.
    pub known_xids: KnownXidsVariant,
    /// The switch `known_xids_compaction`.
    pub known_xids_compaction: KnownXidsCompactionVariant,
    /// The switch `replay`.
    pub replay: ReplayVariant,
    /// Workers that change pages under `replay = parallel`, beside the one that reads the log.
    pub replay_workers: u32,
    /// The time that replay may lag because sessions are in its way, before it cancels them; `None`: it waits for them.
    pub streaming_delay_max: Option<Duration>,
    /// A commit is replayed when it is at least this old, by this server's clock. Zero: at once.
    pub apply_delay: Duration,
}

impl Default for StandbyOptions {
    fn default() -> Self {
        Self {
            known_xids: KnownXidsVariant::default(),
            known_xids_compaction: KnownXidsCompactionVariant::default(),
            replay: ReplayVariant::default(),
            replay_workers: 2,
            streaming_delay_max: Some(Duration::from_secs(30)),
            apply_delay: Duration::ZERO,
        }
    }
}
