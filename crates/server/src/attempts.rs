//! Failed logins by address: each is answered later than the one before.
//!
//! A wrong password is answered after 50 ms, the next one of that address after 100 ms, and so on up to 5 s; a login that
//! succeeds forgets them, and so do 5 minutes. Each guess has a connection and a thread of its own, so guessing costs the
//! one who guesses connections, and those are limited. Addresses are counted, not users: a user whose password is guessed
//! from elsewhere logs in as quickly as ever.
//!
//! The table has 4,096 addresses at most. A new one takes the place of the one that failed longest ago: who has that many
//! addresses is slowed down at each of them for the first time, by 50 ms.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
const ADDRESSES_MAX: usize = 4_096;

/// The failures of the addresses that had any.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Attempts {
    /// Counts a failure; the time after which it is to be answered.
    pub(crate) fn failed(&self, address: Option<IpAddr>) -> Duration {
        self.failed_at(address, Instant::now())
    }

    fn failed_at(&self, address: Option<IpAddr>, now: Instant) -> Duration {
        let Some(address) = address else { return FIRST };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ADDRESSES_MAX && !known.contains_key(&address) {
            known.retain(|_, (_, at)| now.saturating_duration_since(*at) < FORGOTTEN_AFTER);
            let oldest = known
                .iter()
                .min_by_key(|(_, (_, at))| *at)
                .map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| known.len() >= ADDRESSES_MAX) {
                known.remove(&oldest);
            }
        }
        let (count, at) = known.entry(address).or_insert((0, now));
        if now.saturating_duration_since(*at) >= FORGOTTEN_AFTER {
            *count = 0;
        }
        (*count, *at) = (count.saturating_add(1), now);
        FIRST.saturating_mul(1 << (*count - 1).min(10)).min(LONGEST)
    }

    /// Forgets the failures of an address.
    pub(crate) fn succeeded(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_an_address_is_answered_later_until_a_login_succeeds() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let address = Some(IpAddr::from([127, 0, 0, 1]));
        let milliseconds = |at| attempts.failed_at(address, at).as_millis();
        assert_eq!(
            [milliseconds(now), milliseconds(now), milliseconds(now)],
            [50, 100, 200]
        );
        let longest = (0..40).map(|_| milliseconds(now)).max();
        assert_eq!(longest, Some(5_000));
        assert_eq!(attempts.failed_at(Some(IpAddr::from([127, 0, 0, 2])), now), FIRST);
        assert_eq!(milliseconds(now + FORGOTTEN_AFTER), 50);
        attempts.succeeded(address);
        assert_eq!(milliseconds(now), 50);
    }

    #[test]
    fn the_table_does_not_grow() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..2 * ADDRESSES_MAX as u32 {
            attempts.failed_at(
                Some(IpAddr::from(number.to_be_bytes())),
                now + Duration::from_millis(u64::from(number)),
            );
        }
        assert_eq!(attempts.0.lock().unwrap().len(), ADDRESSES_MAX);
    }
}
