//! `log_reserve`: how a record gets its position in the log.
//!
//! Protects: the end of what is reserved. Positions count bytes, so to reserve is to add.
//!
//! # Contract
//! - Reservations are disjoint and without gaps: each begins where the one before it ends.
//! - A reservation is made only inside an insertion (R1 of [`insert`](super::insert)), which publishes what
//!   was reserved. `Reservation::reserve` is an acquire and a release, so that what one worker did before its
//!   reservation is visible to the one that reserves behind it.
//!
//! | variant | a reservation |
//! | --- | --- |
//! | `fetch-add` | one atomic add |

mod fetch_add;

use clearway_machine::{Machine, switch};

use self::fetch_add::FetchAdd;

switch! {
    /// How a log record gets its position.
    pub enum LogReserveVariant = "log_reserve", best FetchAdd, planned ["spin-latch"] {
        /// One atomic add.
        FetchAdd = "fetch-add",
    }
}

/// The end of what is reserved, under the variant chosen.
pub(super) enum Reservation<M: Machine> {
    FetchAdd(FetchAdd<M>),
}

impl<M: Machine> Reservation<M> {
    /// Nothing is reserved from `end` on.
    pub(super) fn new(variant: LogReserveVariant, end: u64) -> Self {
        match variant {
            LogReserveVariant::FetchAdd => Self::FetchAdd(FetchAdd::new(end)),
        }
    }

    /// Reserves `size` bytes, a multiple of 8; returns where they begin.
    #[inline]
    pub(super) fn reserve(&self, size: u64) -> u64 {
        match self {
            Self::FetchAdd(position) => position.reserve(size),
        }
    }

    /// The end of what is reserved. Acquire: what was done before those reservations is visible.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        match self {
            Self::FetchAdd(position) => position.end(),
        }
    }
}
