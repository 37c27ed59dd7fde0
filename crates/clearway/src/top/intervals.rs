//! Intervals of a connection. They join: the look that ends one begins the next, so no transaction is between two.

use std::time::{Duration, Instant};

use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;

use super::figures::{Figures, WaitCounts};
use super::sample::{self, Sample};

/// Looks at what sessions wait for, an interval.
const MOMENTS: u32 = 10;

/// The intervals of a connection.
pub(super) struct Intervals {
    client: Client,
    length: Duration,
    /// The look that began the interval, and the time at which it was due.
    before: Sample,
    began: Instant,
}

impl Intervals {
    /// Begins the first interval with a look.
    pub(super) fn begin(mut client: Client, length: Duration) -> Result<Intervals, ReceiverError> {
        let before = sample::look(&mut client)?;
        Ok(Intervals {
            client,
            length,
            before,
            began: Instant::now(),
        })
    }

    /// The sessions of the first look, with no interval behind it.
    pub(super) fn first(&self) -> Figures {
        Figures::between(&self.before, &self.before, &WaitCounts::default())
    }

    /// The figures of the interval, as soon as it has ended; the next one begins. `pause` waits until its moment, and may
    /// use the connection meanwhile: it says how many transactions it has made.
    pub(super) fn next<E: From<ReceiverError>>(
        &mut self,
        mut pause: impl FnMut(&mut Client, Instant) -> Result<usize, E>,
    ) -> Result<Figures, E> {
        let mut waits = WaitCounts::default();
        for moment in 1..=MOMENTS {
            let until = self.began + self.length * moment / MOMENTS;
            waits.own_transactions += pause(&mut self.client, until)?;
            waits.add(sample::waits(&mut self.client)?);
        }
        let after = sample::look(&mut self.client)?;
        let figures = Figures::between(&self.before, &after, &waits);
        self.before = after;
        self.began = next_start(self.began, self.length, Instant::now());
        Ok(figures)
    }
}

/// The time at which an interval began that follows the one of `began`: its end, or `now` if a whole interval has passed
/// since, as on a server that answers slowly.
fn next_start(began: Instant, length: Duration, now: Instant) -> Instant {
    let due = began + length;
    if now > due + length { now } else { due }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_keep_to_their_times_unless_they_are_late_by_one() {
        let (began, length) = (Instant::now(), Duration::from_secs(1));
        let start = |late_ms| next_start(began, length, began + length + Duration::from_millis(late_ms));
        assert_eq!(start(30), began + length);
        assert_eq!(start(1_000), began + length);
        assert_eq!(start(1_001), began + length + Duration::from_millis(1_001));
    }
}
