//! The time of day, as records of the log and messages of replication have it.

use clearway_machine::wall_clock_us;

/// 2000-01-01 UTC in microseconds since 1970.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Now, in microseconds since 2000-01-01 UTC. It goes back when the system's clock is set back.
#[inline]
pub fn now_us() -> i64 {
    wall_clock_us() - EPOCH_2000_US
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between 2020 and 2200: the epoch is the right one, and so is the unit.
    #[test]
    fn the_epoch_is_2000_and_the_unit_microseconds() {
        const YEAR_US: i64 = 31_557_600_000_000;
        assert!((20 * YEAR_US..200 * YEAR_US).contains(&now_us()));
    }
}
