//! A bench that is run for longer until it has measured enough.
//!
//! A machine that does other work, or a device that stalls, may leave a short round without a single commit.

use clearway_lab::result::{BenchResult, Cell};
use clearway_lab::{BenchOptions, run_bench};

/// Runs that may be needed, each four times as long as the one before.
const RUNS_MAX: u32 = 4;

/// The result of the first run in which each cell has `enough`.
///
/// # Panics
/// If the longest run has a cell that has not.
pub fn measured(mut options: BenchOptions, enough: impl Fn(&Cell) -> bool) -> BenchResult {
    let mut result = run_bench(&options).unwrap();
    for _ in 1..RUNS_MAX {
        if result.cells.iter().all(&enough) {
            break;
        }
        options.duration *= 4;
        result = run_bench(&options).unwrap();
    }
    assert!(result.cells.iter().all(enough), "{:?}", result.cells);
    result
}
