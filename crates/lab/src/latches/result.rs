//! The result of a latch bench, in the form in which it is written to `latches.json`.

use serde::Serialize;

use super::catalogue::BenchLatch;
use super::timing::ModeWait;
use crate::result::Provenance;
use crate::stats;

/// Goes up when a field changes its meaning or goes away.
pub(super) const FORMAT: u32 = 1;

/// A whole latch bench.
#[derive(Debug, Clone, Serialize)]
pub struct LatchBenchResult {
    /// The format's number.
    pub format: u32,
    /// The provenance.
    pub provenance: Provenance,
    /// The parameters that were asked for.
    pub parameters: LatchParameters,
    /// One per section × read share × threads × latch; a mutex only where there are no readers.
    pub cells: Vec<LatchCell>,
}

/// The parameters that were asked for.
#[derive(Debug, Clone, Serialize)]
pub struct LatchParameters {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section, nanoseconds.
    pub sections_ns: Vec<u64>,
    /// Shares of readers, in percent.
    pub read_shares: Vec<f64>,
    /// Latches by name.
    pub latches: Vec<String>,
    /// The spin policy of a thread before it slept on a latch of ours.
    pub spin: String,
    /// Measured seconds per point.
    pub duration_s: f64,
    /// Rounds.
    pub rounds: usize,
}

/// One section × read share × threads × latch.
#[derive(Debug, Clone, Serialize)]
pub struct LatchCell {
    /// The latch's name.
    pub latch: String,
    /// Its size without data.
    pub bytes: usize,
    /// Number of threads.
    pub threads: usize,
    /// The critical section's length, nanoseconds.
    pub section_ns: u64,
    /// Readers, in percent.
    pub read_share: f64,
    /// Median operations a second, all threads together.
    pub operations: f64,
    /// Half the range over the rounds, as a share of the median.
    pub spread: f64,
    /// Operations a second of each round.
    pub operations_rounds: Vec<f64>,
    /// Median of the ratios to parking_lot's lock of the same kind in the same round, where that was measured too.
    pub ratio: Option<f64>,
    /// Half the range of these ratios, as a share of their median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_spread: Option<f64>,
    /// The slowest thread's acquisitions as a share of the fastest's, 0 to 1: the median of the rounds.
    pub slowest_to_fastest: f64,
    /// CPUs that the threads kept busy: the median of the rounds.
    pub cpus: f64,
    /// Waits of readers, if there were any.
    pub read: Option<ModeWait>,
    /// Waits of writers, if there were any.
    pub write: Option<ModeWait>,
}

impl LatchBenchResult {
    /// The cell of this section, read share, number of threads and latch.
    pub fn cell(&self, section_ns: u64, read_share: f64, threads: usize, latch: &str) -> Option<&LatchCell> {
        self.cells.iter().find(|cell| {
            cell.section_ns == section_ns
                && cell.read_share == read_share
                && cell.threads == threads
                && cell.latch == latch
        })
    }

    /// Fills in every cell's ratio to the reference.
    pub(super) fn compare(&mut self) {
        let latches = BenchLatch::all();
        let ratios: Vec<Option<(f64, f64)>> = self
            .cells
            .iter()
            .map(|cell| {
                let reference = latches.iter().find(|latch| latch.name == cell.latch)?.reference();
                let base = self.cell(cell.section_ns, cell.read_share, cell.threads, reference)?;
                let (base, rounds) = (&base.operations_rounds, &cell.operations_rounds);
                stats::paired_ratio(base, rounds).zip(stats::paired_spread(base, rounds))
            })
            .collect();
        for (cell, ratio) in self.cells.iter_mut().zip(ratios) {
            (cell.ratio, cell.ratio_spread) = ratio.unzip();
        }
    }
}
