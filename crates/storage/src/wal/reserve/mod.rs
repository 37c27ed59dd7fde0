//! `log_reserve`: how a record gets its position in the log.
//!
//! Protects: the end of what is reserved. Positions count bytes, so to reserve is to add.
//!
//! # Contract
//! - Reservations are disjoint and without gaps: each begins where the one before it ends.
//! - Reservations belong to an era, which is one bit. `begin_era` ends one: what is reserved before it in the order of
//!   reservations is of the old era, what is reserved behind it of the new. `log_insert = ring` moves the redo
//!   position by it; `latches` has no use for it.
//! - A reservation is made only inside an insertion (R1 of [`insert`](super::insert)), which publishes what
//!   was reserved. `Reservation::reserve` is an acquire and a release, so that what one worker did before its
//!   reservation is visible to the one that reserves behind it.
//!
//! | variant | a reservation | wins |
//! | --- | --- | --- |
//! | `spin-latch` | an add under a latch that others poll | nowhere; it is what databases ship |
//! | `fetch-add` | one atomic add | wherever two workers insert at once, and when one loses its CPU |

mod fetch_add;
mod spin_latch;

use clearway_machine::{Machine, variants};

/// A reservation: its start, and its era, 0 or 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserved {
    pub(super) start: u64,
    pub(super) era: u64,
}

impl Reserved {
    /// Bit 0 of a variant's word is the era, the rest the position, a multiple of 8.
    const ERA: u64 = 1;

    #[inline]
    fn from_word(word: u64) -> Self {
        Self {
            start: word & !Self::ERA,
            era: word & Self::ERA,
        }
    }
}

/// The state of one variant, and its way to reserve.
trait Reserve {
    /// Nothing is reserved from `end` on.
    fn new(end: u64) -> Self;

    /// Reserves `size` bytes, a multiple of 8.
    fn reserve(&self, size: u64) -> Reserved;

    /// Begins the other era at the end of what is reserved; returns both. One worker at a time calls this.
    fn begin_era(&self) -> Reserved;

    /// The end of what is reserved. Acquire: what was done before those reservations is visible.
    fn end(&self) -> u64;
}

variants! {
    /// The way in which a log record gets its position.
    pub enum LogReserveVariant = "log_reserve", best FetchAdd, planned [] {
        /// An add under a spin latch.
        SpinLatch = "spin-latch": spin_latch::Reservation<M>,
        /// One atomic add.
        FetchAdd = "fetch-add": fetch_add::Reservation<M>,
    }
    why {
        FetchAdd: "No holder that loses its CPU stops the others. Simulated on two and four sockets the two are level."
            in "docs/commit-path-predictions.md#into-the-log-log-insert";
    }

    /// The end of what is reserved, under the variant chosen.
    pub(super) enum Reservation[M: Machine], called by dispatch;
}

impl<M: Machine> Reservation<M> {
    /// Nothing is reserved from `end` on.
    pub(super) fn new(variant: LogReserveVariant, end: u64) -> Self {
        dispatch!(new variant => Reserve::new(end))
    }

    /// Reserves `size` bytes, a multiple of 8.
    #[inline]
    pub(super) fn reserve(&self, size: u64) -> Reserved {
        dispatch!(self, reservation => reservation.reserve(size))
    }

    /// Begins the other era at the end of what is reserved; returns both. One worker at a time calls this.
    /// Acquire and Release, as a reservation.
    pub(super) fn begin_era(&self) -> Reserved {
        dispatch!(self, reservation => reservation.begin_era())
    }

    /// The end of what is reserved. Acquire: what was done before those reservations is visible.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        dispatch!(self, reservation => reservation.end())
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::{Native, Switch};

    use super::*;

    /// Reservations follow one another, and each tells of its era, however many there were before.
    #[test]
    fn each_era_is_another_than_the_one_before() {
        for &variant in LogReserveVariant::ALL {
            let reservation = Reservation::<Native>::new(variant, 64);
            for round in 0..4_u64 {
                let (start, era) = (64 + 48 * round, round % 2);
                for at in [start, start + 24] {
                    let reserved = reservation.reserve(24);
                    assert_eq!((reserved.start, reserved.era), (at, era), "{variant:?}");
                }
                assert_eq!(reservation.end(), start + 48);
                let begun = reservation.begin_era();
                assert_eq!((begun.start, begun.era), (start + 48, 1 - era), "{variant:?}");
            }
        }
    }
}
