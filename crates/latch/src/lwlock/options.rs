//! The switches of an LwLock and their variants. All combinations go through the same tests.

use clearway_machine::{Switch, switch};

pub use super::fairness::LwLockFairnessVariant;

switch! {
    /// The latch under everything: how a refused worker waits.
    pub enum LwLockVariant = "lwlock", best SingleCas, planned [] {
        /// Queue, try again, dequeue.
        Queued = "queued",
        /// Poll; then one CAS that proves the latch held and locks the queue.
        SingleCas = "single-cas",
        /// As queued, but a worker that dequeues looks for itself from the head of the list: PostgreSQL until
        /// 2022.
        QueuedScan = "queued-scan",
        /// As single-cas, but few polls at any time, and short sleeps where the queue is locked.
        BriefPolls = "brief-polls",
        /// As brief-polls, and the workers of one NUMA node after the other have their turn, for 1,024 grants. On a machine with
        /// one node: single-cas.
        Cohort = "cohort",
    }
    why {
        SingleCas: "Simulated on four sockets with 434 clients it makes 1.06 times the transactions of queued in \
            simple-update, and as many with one."
            in "docs/log.md#macro-the-published-collapse";
        BriefPolls: "Simulated on four sockets it makes up to 4.3 times the acquisitions of single-cas where all workers \
            want one latch, and under the preset clearway 0.97 to 1.04 times the transactions of simple-update."
            in "docs/mechanisms/lwlock.md#variants";
        Cohort: "Simulated on two and four sockets it makes up to 6.5 times the acquisitions of single-cas where all workers \
            want one latch; on one socket it is single-cas."
            in "docs/mechanisms/lwlock.md#variants";
    }
}

switch! {
    /// The way in which a reader acquires an LwLock.
    pub enum LwLockSharedVariant = "lwlock_shared", best Cas, planned [] {
        /// Compare and swap, again if the word has changed.
        Cas = "cas",
        /// One addition, undone if an exclusive came first.
        FetchAdd = "fetch-add",
    }
    why {
        Cas: "On two CPUs it is level with fetch-add within the noise."
            in "docs/mechanisms/shared-fetch-add.md#numbers-that-matter";
        FetchAdd: "Simulated on four sockets with 288 clients it makes 1.25 times the acquisitions of cas with 90 % \
            reads, but 0.63 with readers alone."
            in "docs/log.md#latches-on-four-sockets";
    }
}

/// One variant of each switch. A [`LwLockVariant`] converts into it, with the defaults of the other switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LwLockOptions {
    /// The switch `lwlock`.
    pub algorithm: LwLockVariant,
    /// The switch `lwlock_shared`.
    pub shared_path: LwLockSharedVariant,
    /// The switch `lwlock_fairness`.
    pub fairness: LwLockFairnessVariant,
}

impl LwLockOptions {
    /// The variants of the preset `clearway`, which are the default.
    pub const BEST: Self = Self {
        algorithm: LwLockVariant::BEST,
        shared_path: LwLockSharedVariant::BEST,
        fairness: LwLockFairnessVariant::BEST,
    };

    /// Every combination, for tests that run under each.
    pub fn all() -> impl Iterator<Item = Self> {
        LwLockFairnessVariant::ALL.iter().flat_map(|&fairness| {
            LwLockSharedVariant::ALL.iter().flat_map(move |&shared_path| {
                LwLockVariant::ALL.iter().map(move |&algorithm| Self {
                    algorithm,
                    shared_path,
                    fairness,
                })
            })
        })
    }
}

impl From<LwLockVariant> for LwLockOptions {
    fn from(algorithm: LwLockVariant) -> Self {
        Self {
            algorithm,
            ..Self::default()
        }
    }
}
