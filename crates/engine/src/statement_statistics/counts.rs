//! The counts of a statement's calls.

use std::time::Duration;

use clearway_storage::PageCounts;
use clearway_storage::wal::LogCounts;

use crate::spill::BlockCounts;

/// The work of a statement, of a thread or of many calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatementWork {
    /// Rows in its tag.
    pub(crate) rows: u64,
    pub(crate) pages: PageCounts,
    /// Blocks of temporary files.
    pub(crate) blocks: BlockCounts,
    pub(crate) log: LogCounts,
}

impl StatementWork {
    /// That of the calling thread since it began, with so many rows.
    #[inline]
    pub(crate) fn of_thread(rows: u64) -> StatementWork {
        StatementWork {
            rows,
            pages: PageCounts::of_thread(),
            blocks: BlockCounts::of_thread(),
            log: LogCounts::of_thread(),
        }
    }

    /// That since an earlier reading on the same thread.
    #[inline]
    pub(crate) fn since(&self, before: &StatementWork) -> StatementWork {
        StatementWork {
            rows: self.rows.wrapping_sub(before.rows),
            pages: self.pages.since(before.pages),
            blocks: self.blocks.since(before.blocks),
            log: self.log.since(before.log),
        }
    }

    #[inline]
    fn add(&mut self, more: &StatementWork) {
        self.rows += more.rows;
        self.pages.hit += more.pages.hit;
        self.pages.read += more.pages.read;
        self.pages.dirtied += more.pages.dirtied;
        self.pages.written += more.pages.written;
        self.blocks.read += more.blocks.read;
        self.blocks.written += more.blocks.written;
        self.log.records += more.log.records;
        self.log.images += more.log.images;
        self.log.bytes += more.log.bytes;
    }
}

/// Times and work of the calls of a statement. Times are in milliseconds.
///
/// The deviation is kept as a mean and a sum of squares of distances from it, which lose no digits where times are large and
/// alike: Welford, 1962; two such sums are one by the rule of Chan, Golub and LeVeque, 1979.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StatementCounts {
    pub(crate) calls: u64,
    /// The time of all calls.
    pub(crate) total_ms: f64,
    /// The least time of a call,
    pub(crate) min_ms: f64,
    /// and the most.
    pub(crate) max_ms: f64,
    mean_ms: f64,
    squares: f64,
    pub(crate) work: StatementWork,
}

impl StatementCounts {
    /// A call has taken so much.
    #[inline]
    pub(crate) fn add_call(&mut self, elapsed: Duration, work: &StatementWork) {
        let ms = elapsed.as_nanos() as f64 / 1e6;
        self.calls += 1;
        if self.calls == 1 || ms < self.min_ms {
            self.min_ms = ms;
        }
        if ms > self.max_ms {
            self.max_ms = ms;
        }
        let distance = ms - self.mean_ms;
        self.mean_ms += distance / self.calls as f64;
        self.squares += distance * (ms - self.mean_ms);
        self.total_ms += ms;
        self.work.add(work);
    }

    /// A call that was counted has gone on, and has taken so much more.
    pub(crate) fn add_to_call(&mut self, elapsed: Duration, work: &StatementWork) {
        self.total_ms += elapsed.as_nanos() as f64 / 1e6;
        self.work.add(work);
    }

    /// Adds the calls of another one.
    pub(crate) fn merge(&mut self, other: &StatementCounts) {
        self.total_ms += other.total_ms;
        self.work.add(&other.work);
        if other.calls == 0 {
            return;
        }
        self.min_ms = match self.calls {
            0 => other.min_ms,
            _ => self.min_ms.min(other.min_ms),
        };
        self.max_ms = self.max_ms.max(other.max_ms);
        let (own, others) = (self.calls as f64, other.calls as f64);
        let distance = other.mean_ms - self.mean_ms;
        self.squares += other.squares + distance * distance * own * others / (own + others);
        self.mean_ms += distance * others / (own + others);
        self.calls += other.calls;
    }

    /// The time of a call on average.
    pub(crate) fn mean_ms(&self) -> f64 {
        match self.calls {
            0 => 0.0,
            calls => self.total_ms / calls as f64,
        }
    }

    /// The deviation of the times of all calls.
    pub(crate) fn deviation_ms(&self) -> f64 {
        match self.calls {
            0 | 1 => 0.0,
            calls => (self.squares / calls as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(times_ms: &[u64]) -> StatementCounts {
        let mut counts = StatementCounts::default();
        for ms in times_ms {
            counts.add_call(Duration::from_millis(*ms), &StatementWork::default());
        }
        counts
    }

    #[test]
    fn times_have_the_mean_and_the_deviation_of_all_calls() {
        let times = [2, 4, 4, 4, 5, 5, 7, 9];
        let whole = counts(&times);
        for split in 0..=times.len() {
            let mut sum = counts(&times[..split]);
            sum.merge(&counts(&times[split..]));
            assert_eq!(
                (sum.calls, sum.min_ms, sum.max_ms, sum.total_ms),
                (8, 2.0, 9.0, 40.0)
            );
            assert!((sum.deviation_ms() - 2.0).abs() < 1e-9, "{split}");
            assert!((sum.mean_ms() - whole.mean_ms()).abs() < 1e-9);
        }
        let one = counts(&[3]);
        assert_eq!((one.min_ms, one.mean_ms(), one.deviation_ms()), (3.0, 3.0, 0.0));
        assert_eq!(StatementCounts::default().mean_ms(), 0.0);
    }

    #[test]
    fn a_call_that_goes_on_is_one_call() {
        let mut counts = counts(&[3]);
        let work = StatementWork {
            rows: 5,
            ..StatementWork::default()
        };
        counts.add_to_call(Duration::from_millis(4), &work);
        assert_eq!((counts.calls, counts.total_ms, counts.work.rows), (1, 7.0, 5));
    }
}
