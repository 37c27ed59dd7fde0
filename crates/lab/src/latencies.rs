//! Latencies of transactions: all of a workload, and each kind by itself where it has several.

use hdrhistogram::Histogram;

use crate::result::KindCell;
use crate::stats;
use crate::workload::Workload;
use crate::workload::client::Ended;

/// The longest latency told apart, one minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// A histogram of latencies in nanoseconds, to two digits.
pub(crate) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
        .expect("the bounds are in order and two digits are allowed")
}

fn add(to: &mut Histogram<u64>, other: &Histogram<u64>) {
    to.add(other).expect("all histograms have the same bounds");
}

/// A percentile in microseconds.
pub(crate) fn percentile_us(latency: &Histogram<u64>, quantile: f64) -> f64 {
    latency.value_at_quantile(quantile) as f64 / 1e3
}

/// Latencies of the transactions of one workload, of one client or of several, of one round or of several.
#[derive(Debug)]
pub(crate) struct Latencies {
    pub(crate) all: Histogram<u64>,
    kinds: Vec<KindLatency>,
}

#[derive(Debug)]
struct KindLatency {
    latency: Histogram<u64>,
    /// Committed since the last call of [`Latencies::end_round`].
    committed: u64,
    /// Committed a minute, of each round.
    per_minute: Vec<f64>,
}

impl Latencies {
    pub(crate) fn of(workload: Workload) -> Latencies {
        let kinds = workload.kinds().iter().map(|_| KindLatency {
            latency: latency_histogram(),
            committed: 0,
            per_minute: Vec::new(),
        });
        Latencies {
            all: latency_histogram(),
            kinds: kinds.collect(),
        }
    }

    pub(crate) fn record(&mut self, ended: Ended, nanoseconds: u64) {
        self.all.saturating_record(nanoseconds);
        if let Some(kind) = ended.kind.and_then(|kind| self.kinds.get_mut(kind)) {
            kind.latency.saturating_record(nanoseconds);
            kind.committed += u64::from(ended.committed);
        }
    }

    /// Adds those of another client or round.
    pub(crate) fn add(&mut self, other: &Latencies) {
        add(&mut self.all, &other.all);
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            add(&mut kind.latency, &other.latency);
            kind.committed += other.committed;
            kind.per_minute.extend(&other.per_minute);
        }
    }

    /// Ends a round that was measured for this long.
    pub(crate) fn end_round(&mut self, seconds: f64) {
        for kind in &mut self.kinds {
            let committed = std::mem::take(&mut kind.committed);
            kind.per_minute.push(committed as f64 * 60.0 / seconds);
        }
    }

    /// The cells of the kinds.
    pub(crate) fn kind_cells(&self, workload: Workload) -> Vec<KindCell> {
        let named = workload.kinds().iter().zip(&self.kinds);
        named
            .map(|(name, kind)| KindCell {
                kind: (*name).to_owned(),
                per_minute: stats::median(&kind.per_minute),
                p50_us: percentile_us(&kind.latency, 0.5),
                p99_us: percentile_us(&kind.latency, 0.99),
                transactions: kind.latency.len(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_and_only_commits_are_counted_by_the_minute() {
        let ended = |kind, committed| Ended {
            kind: Some(kind),
            committed,
        };
        let mut whole = Latencies::of(Workload::Tpcc);
        for orders in [2, 4, 3] {
            let mut round = Latencies::of(Workload::Tpcc);
            for _ in 0..orders {
                round.record(ended(0, true), 1_000_000);
            }
            round.record(ended(0, false), 1_000_000);
            round.record(ended(1, true), 50_000);
            round.end_round(2.0);
            whole.add(&round);
        }
        let cells = whole.kind_cells(Workload::Tpcc);
        assert_eq!(
            (&*cells[0].kind, cells[0].per_minute, cells[0].transactions),
            ("new-order", 90.0, 12)
        );
        assert_eq!((cells[1].per_minute, cells[1].transactions), (30.0, 3));
        assert!((990.0..1_020.0).contains(&cells[0].p50_us) && (49.0..52.0).contains(&cells[1].p99_us));
        assert_eq!(cells[2].transactions, 0);
        assert_eq!(whole.all.len(), 15);
        assert!(
            Latencies::of(Workload::TpcbLike)
                .kind_cells(Workload::TpcbLike)
                .is_empty()
        );
    }
}
