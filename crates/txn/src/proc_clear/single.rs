//! The baseline: each transaction takes the array's latch exclusively and leaves by itself, with the commits in front of it and
//! behind it that are ready (`commit_order`).
//!
//! Cost: one exclusive acquire a transaction. When many end at once they queue, and each hand-over of the latch is a
//! wake-up.

use std::marker::PhantomData;

use clearway_machine::Machine;

use super::Leaving;
use crate::ProcId;

/// Nothing is kept.
#[derive(Debug)]
pub(crate) struct Clearing<M>(PhantomData<M>);

impl<M: Machine> super::Clear<M> for Clearing<M> {
    fn new(_capacity: u32) -> Self {
        Self(PhantomData)
    }

    #[inline]
    fn clear(&self, array: Leaving<'_, M>, proc: ProcId, durable: u64) {
        array.exclusive().end(proc, durable);
    }
}
