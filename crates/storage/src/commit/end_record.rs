//! The payload of the records of commits and rollbacks beside the xid: the time of the transaction's end.
//!
//! `i64`, little-endian, microseconds since 2000-01-01 UTC. A standby tells by it how far it is behind, and replay to a
//! point in time stops by it.
//!
//! The time is read before the record gets its place, and clocks are set back: neighbouring records may have their times in
//! the other order. The order of commits is that of the records.
//!
//! Costs: a read of the clock without a system call, and 8 bytes of log.

/// The payload for a transaction that ends at `time_us`.
#[inline]
pub(super) fn encode(time_us: i64) -> [u8; 8] {
    time_us.to_le_bytes()
}

/// The time in the payload of a `Commit` or `Abort` record; `None` if it is malformed.
pub fn time_us(payload: &[u8]) -> Option<i64> {
    payload.try_into().ok().map(i64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_encoding() {
        for time in [0, 1, -1, 825_000_000_000_000, i64::MIN, i64::MAX] {
            assert_eq!(time_us(&encode(time)), Some(time));
        }
        for payload in [&[][..], &[0; 7], &[0; 9]] {
            assert_eq!(time_us(payload), None);
        }
    }
}
