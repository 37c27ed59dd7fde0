//! News for a transaction from others, in one word that its session reads without a latch.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

const DOOMED: u32 = 1;
const SAFE: u32 = 2;
const UNSAFE: u32 = 4;

/// The word. It is written under the latch of the graph.
#[derive(Debug)]
pub(super) struct SharedState<M: Machine> {
    word: M::U32,
}

impl<M: Machine> SharedState<M> {
    pub(super) fn new() -> Self {
        Self { word: M::U32::new(0) }
    }

    fn set(&self, bit: u32) {
        // Relaxed: the graph's latch has one writer at a time.
        let word = self.word.load(Relaxed);
        // Release: pairs with the Acquire of `has`, for a reader that goes on without marks.
        self.word.store(word | bit, Release);
    }

    fn has(&self, bit: u32) -> bool {
        self.word.load(Acquire) & bit != 0
    }

    /// It has to give up.
    pub(super) fn set_doomed(&self) {
        self.set(DOOMED);
    }

    /// Its snapshot is safe (G5).
    pub(super) fn set_safe(&self) {
        self.set(SAFE);
    }

    /// Its snapshot will not be safe.
    pub(super) fn set_unsafe(&self) {
        self.set(UNSAFE);
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.has(DOOMED)
    }

    pub(super) fn is_safe(&self) -> bool {
        self.has(SAFE)
    }

    pub(super) fn is_unsafe(&self) -> bool {
        self.has(UNSAFE)
    }
}
