//! The choices an LwLock is built with. Each is a switch of the engine, and all combinations go through the same tests.

use core::num::NonZeroU8;

/// How a worker that cannot have the latch gets to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LwLockAlgorithm {
    /// Queue, attempt again, dequeue: the baseline.
    Queued,
    /// As `Queued`, but who dequeues looks for itself on the list from its head: the baseline of its time.
    QueuedScan,
    /// One CAS proves the latch held and locks the list; spins first.
    #[default]
    SingleCas,
}

/// How a reader comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedPath {
    /// Compare and swap, again if another came first.
    #[default]
    Cas,
    /// One addition, taken back if an exclusive came first.
    FetchAdd,
}

/// Whether readers may pass waiting workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fairness {
    /// Always.
    #[default]
    Barging,
    /// So many times; then newcomers queue.
    AfterShared(NonZeroU8),
}

impl Fairness {
    /// `AfterShared` with the count that the switch `lwlock_fairness` uses, 64.
    pub const AFTER_SHARED: Self = Fairness::AfterShared(NonZeroU8::new(64).unwrap());
}

/// All choices together. A [`LwLockAlgorithm`] alone stands for it with the defaults of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LwLockOptions {
    /// The switch `lwlock`.
    pub algorithm: LwLockAlgorithm,
    /// The switch `lwlock_shared`.
    pub shared_path: SharedPath,
    /// The switch `lwlock_fairness`.
    pub fairness: Fairness,
}

impl LwLockOptions {
    /// Every combination, for tests that run under each.
    pub const ALL: [Self; 12] = {
        let mut all = [Self {
            algorithm: LwLockAlgorithm::Queued,
            shared_path: SharedPath::Cas,
            fairness: Fairness::Barging,
        }; 12];
        let mut number = 0;
        while number < all.len() {
            match number % 3 {
                0 => {}
                1 => all[number].algorithm = LwLockAlgorithm::QueuedScan,
                _ => all[number].algorithm = LwLockAlgorithm::SingleCas,
            }
            if (number / 3) & 1 != 0 {
                all[number].shared_path = SharedPath::FetchAdd;
            }
            if (number / 3) & 2 != 0 {
                all[number].fairness = Fairness::AFTER_SHARED;
            }
            number += 1;
        }
        all
    };
}

impl From<LwLockAlgorithm> for LwLockOptions {
    fn from(algorithm: LwLockAlgorithm) -> Self {
        Self {
            algorithm,
            ..Self::default()
        }
    }
}
