//! How many readers may pass the workers that wait: the switch `lwlock_fairness` (R7).
//!
//! A variant is a line of the enum and its limit below it. The limit is asked for when the word refuses a newcomer or
//! workers wait, never on the uncontended path.

use clearway_machine::{Machine, switch};

use super::LwLock;
use super::state::{GRANT_UNIT, GRANTS, UNLIMITED};

switch! {
    /// Whether readers may pass workers that wait for an LwLock.
    pub enum LwLockFairnessVariant = "lwlock_fairness", best Barging, planned [] {
        /// Always.
        Barging = "barging",
        /// 64 of them; then newcomers queue.
        AfterShared = "after-n-shared",
    }
    why {
        Barging: "On two CPUs it is level in throughput with after-n-shared, which shortens a writer's wait only if \
            sections are long."
            in "docs/mechanisms/shared-fetch-add.md#what-was-measured";
        AfterShared: "Simulated on four sockets it makes 0.73 to 2.10 times the acquisitions of barging, by the share \
            of reads."
            in "docs/simulator/log.md#latches-on-four-sockets";
    }
}

/// The limit of `after-n-shared`. Under a checker 1, so that few workers reach it.
const fn after_shared<M: Machine>() -> u32 {
    if M::EXPLORED { 1 } else { 64 }
}

const _: () = assert!(after_shared::<clearway_machine::Host>() <= GRANTS / GRANT_UNIT);

impl<M: Machine> LwLock<M> {
    /// The limit of shared grants that applies to a newcomer while workers wait. A woken worker has none.
    pub(super) fn newcomer_limit(&self) -> u32 {
        match self.fairness {
            LwLockFairnessVariant::Barging => UNLIMITED,
            LwLockFairnessVariant::AfterShared => after_shared::<M>(),
        }
    }
}
