//! `simulate here`: the latches of `bench latches` on this host, and the same on a simulation of it, side by side.
//!
//! A *cell* is a latch, a share of readers, a section's length and one or two threads. With two threads it is
//! also how far the CPUs are apart (a [`Placement`]), which decides more than all the rest.
//!
//! # Rules
//! 1. Nothing is fitted to a cell, nor to a latch. The inputs are costs that [`calibrate`](super::calibrate())
//!    measures with a few instructions, and the loop of the bench, measured without any latch by one thread,
//!    for each share and section.
//! 2. The simulated loop does what the native one does: it draws, reads the clock in one turn of 32, and
//!    reads or writes two words behind the latch with the section between. If the native loop without a latch
//!    takes longer than the simulated one, the difference is charged as work between the acquisitions; what a
//!    section adds is charged inside.
//! 3. A native sample counts only if the host was the same before and after it: a probe finds the CPUs
//!    equally far apart and equally fast. Samples are short, so that most are kept.
//! 4. Samples of all cells are taken in turn; a cell shows medians.
//! 5. Two threads on hardware threads of one core slow each other as two loops without a latch do, for each
//!    share and section.

mod lines;
mod native;
mod simulated;
mod table;

use std::time::Duration;

use serde::Serialize;

use super::calibrate::{Calibration, Placement};
use crate::error::{LabError, Result};
use crate::latches::catalogue::{self, BenchLatch};
use crate::result::{Provenance, json, write_files};
use crate::stats;

pub use table::here_text;

/// The cells to compare, and how.
#[derive(Debug, Clone)]
pub struct HereOptions {
    /// Numbers of threads, 1 and 2.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub sections: Vec<Duration>,
    /// Shares of readers, in percent.
    pub read_shares: Vec<f64>,
    /// Latches by their names in `bench latches`; empty: all that can be simulated.
    pub latches: Vec<String>,
    /// Number of samples of each cell that are wanted.
    pub samples: usize,
    /// Duration of a sample.
    pub duration: Duration,
    /// Time after which it stops, though there are fewer samples than wanted.
    pub time_max: Duration,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The command line, for the result.
    pub command: String,
    /// True if a progress bar is shown.
    pub progress: bool,
}

impl Default for HereOptions {
    fn default() -> Self {
        Self {
            threads: vec![1, 2],
            sections: vec![Duration::ZERO, Duration::from_nanos(50), Duration::from_micros(1)],
            read_shares: vec![0.0, 50.0, 100.0],
            latches: Vec::new(),
            samples: 7,
            duration: Duration::from_millis(3),
            time_max: Duration::from_secs(100),
            seed: 1,
            command: String::new(),
            progress: false,
        }
    }
}

/// Samples that a native figure needs at least.
const SAMPLES_MIN: usize = 3;

/// The largest difference that counts as the same.
const TOLERANCE: f64 = 0.3;

/// The kind of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Kind {
    /// An index into [`BenchLatch::all_simulated`]; none: the loop without a latch.
    pub(super) latch: Option<usize>,
    pub(super) threads: usize,
    pub(super) section: usize,
    pub(super) share: usize,
    /// An index into the calibration's placements, for two threads.
    pub(super) placement: Option<usize>,
}

/// The comparison.
#[derive(Debug, Clone, Serialize)]
pub struct HereResult {
    /// The provenance.
    pub provenance: Provenance,
    /// This host's costs: names and nanoseconds.
    pub measured: Vec<(&'static str, f64)>,
    /// The placements of its CPUs.
    pub placements: Vec<Placement>,
    /// The bench's loop without a latch.
    pub loops: Vec<HereLoop>,
    /// Single lines under two threads.
    pub lines: Vec<HereLine>,
    /// Every cell with a native figure.
    pub cells: Vec<HereCell>,
    /// One for each number of threads and placement.
    pub summaries: Vec<Summary>,
    /// Cells that have too few samples: the CPUs were placed as they want too seldom.
    pub missing: usize,
    /// Samples thrown away because the host changed meanwhile, and all.
    pub thrown_away: (usize, usize),
}

/// The bench's loop without a latch.
#[derive(Debug, Clone, Serialize)]
pub struct HereLoop {
    /// The section's length as asked for, nanoseconds.
    pub section_ns: u64,
    /// Readers, in percent.
    pub read_share: f64,
    /// Of one thread, nanoseconds a turn.
    pub alone_ns: f64,
    /// Of that, charged between acquisitions.
    pub outside_ns: f64,
    /// Of that, charged inside.
    pub inside_ns: f64,
    /// The speed of each of two such loops on hardware threads of one core, of 1.
    pub sibling_speed: Option<f64>,
}

/// The cost of two threads' operations on one line, natively and simulated.
#[derive(Debug, Clone, Serialize)]
pub struct HereLine {
    /// The operation.
    pub what: &'static str,
    /// The distance of the threads: an index into the placements.
    pub placement: usize,
    /// Median nanoseconds of both together for one of it.
    pub native_ns: f64,
    /// The same simulated.
    pub simulated_ns: f64,
    /// Native samples.
    pub samples: usize,
}

/// One cell.
#[derive(Debug, Clone, Serialize)]
pub struct HereCell {
    /// The latch's name.
    pub latch: String,
    /// Threads.
    pub threads: usize,
    /// The distance of the threads, for two: an index into the placements.
    pub placement: Option<usize>,
    /// The section's length as asked for, nanoseconds.
    pub section_ns: u64,
    /// Readers, in percent.
    pub read_share: f64,
    /// Median acquisitions a second here.
    pub native: f64,
    /// Half the range of the samples, as a share of the median.
    pub spread: f64,
    /// Samples.
    pub samples: usize,
    /// Acquisitions a second of the simulation.
    pub simulated: f64,
    /// Simulated by native.
    pub ratio: f64,
}

/// The agreement of the cells of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Threads.
    pub threads: usize,
    /// The distance of the threads, for two.
    pub placement: Option<usize>,
    /// Number of cells.
    pub cells: usize,
    /// Number of cells within 30 %.
    pub within: usize,
    /// The ratio in the middle.
    pub median: f64,
    /// The ratio that is farthest from 1, and whose.
    pub worst: (f64, String),
}

impl HereOptions {
    /// True if what the options ask for exists. [`run_here`] checks too; a caller that calibrates first
    /// checks before that.
    pub fn check(&self) -> Result<()> {
        let refuse = |what, value: String, must| Err(LabError::BadNumber { what, value, must });
        if self.threads.is_empty() || self.threads.iter().any(|count| !(1..=2).contains(count)) {
            return refuse("--clients", format!("{:?}", self.threads), "1, 2 or 1,2 here");
        }
        if self.read_shares.is_empty()
            || self
                .read_shares
                .iter()
                .any(|share| !(0.0..=100.0).contains(share))
        {
            let shares = format!("{:?}", self.read_shares);
            return refuse("--read-share", shares, "one or more percentages from 0 to 100");
        }
        let too_long = Duration::from_micros(100);
        if self.sections.is_empty() || self.sections.iter().any(|section| *section > too_long) {
            let sections = format!("{:?}", self.sections);
            return refuse("--section", sections, "one or more times up to 100us");
        }
        if self.samples < SAMPLES_MIN {
            return refuse("--samples", self.samples.to_string(), "at least 3");
        }
        let all = BenchLatch::all_simulated();
        for name in &self.latches {
            if !all.iter().any(|latch| latch.name == *name) {
                return Err(LabError::UnknownName {
                    what: "latch that is both measured and simulated",
                    name: name.clone(),
                    available: catalogue::names(&all),
                });
            }
        }
        Ok(())
    }

    /// All cells, and the loops without a latch that they need.
    fn kinds(&self, calibration: &Calibration, latches: &[BenchLatch]) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for section in 0..self.sections.len() {
            for (share, read_share) in self.read_shares.iter().enumerate() {
                let chosen = latches.iter().enumerate().filter(|(_, latch)| {
                    (self.latches.is_empty() || self.latches.contains(&latch.name))
                        && latch.admits(*read_share)
                });
                let latches = std::iter::once(None).chain(chosen.map(|(number, _)| Some(number)));
                for latch in latches {
                    let mut add = |threads, placement| {
                        kinds.push(Kind {
                            latch,
                            threads,
                            section,
                            share,
                            placement,
                        });
                    };
                    if latch.is_none() || self.threads.contains(&1) {
                        add(1, None);
                    }
                    if self.threads.contains(&2) {
                        for (number, placement) in calibration.placements.iter().enumerate() {
                            if latch.is_some() || placement.siblings {
                                add(2, Some(number));
                            }
                        }
                    }
                }
            }
        }
        // The shortest section is where the loop itself is measured.
        kinds
    }
}

/// Measures, simulates and compares.
pub fn run_here(options: &HereOptions, calibration: &Calibration) -> Result<HereResult> {
    options.check()?;
    let mut options = options.clone();
    if !options.sections.contains(&Duration::ZERO) {
        // A section's own time is found by comparison with the loop without one.
        options.sections.insert(0, Duration::ZERO);
    }
    let options = &options;
    let latches = BenchLatch::all_simulated();
    let kinds = options.kinds(calibration, &latches);
    let sampled = Sampled {
        taken: native::sample(options, calibration, &kinds, &latches)?,
        kinds,
        options,
        calibration,
    };
    let loops = sampled.loops()?;
    let (cells, missing) = sampled.cells(&loops, &latches)?;
    let lines = if options.threads.contains(&2) {
        lines::compare(calibration, options)?
    } else {
        Vec::new()
    };
    let mut result = HereResult {
        provenance: Provenance::now(
            options.command.clone(),
            options.seed,
            options.samples,
            &(&options.sections, &options.read_shares),
        ),
        measured: calibration.measured.clone(),
        placements: calibration.placements.clone(),
        loops: loops.into_iter().map(|(_, measured)| measured).collect(),
        lines,
        cells,
        summaries: Vec::new(),
        missing,
        thrown_away: (sampled.taken.thrown_away, sampled.taken.all),
    };
    result.summarize();
    Ok(result)
}

/// The loop of a section and a read share, whose numbers come first.
type LoopOf = ((usize, usize), HereLoop);

/// All native samples.
struct Sampled<'a> {
    options: &'a HereOptions,
    calibration: &'a Calibration,
    kinds: Vec<Kind>,
    taken: native::ProbeSamples,
}

impl Sampled<'_> {
    fn section_ns(&self, section: usize) -> u64 {
        self.options.sections[section].as_nanos() as u64
    }

    /// The samples of a kind and their median, if they are enough.
    fn native(&self, kind: &Kind) -> Option<(f64, &[f64])> {
        let place = self.kinds.iter().position(|known| known == kind)?;
        let samples = &self.taken.samples[place];
        (samples.len() >= SAMPLES_MIN).then(|| (stats::median(samples), samples.as_slice()))
    }

    /// Nanoseconds of the loop without a latch: of one thread, or of two that stand as `placement` says.
    fn loop_ns(&self, section: usize, share: usize, placement: Option<usize>) -> Option<f64> {
        let measured = self.native(&Kind {
            latch: None,
            threads: if placement.is_some() { 2 } else { 1 },
            section,
            share,
            placement,
        });
        measured.map(|(ns, _)| ns)
    }

    /// The loops without a latch that have samples, and what the simulated ones are charged for it (rules 2 and 5).
    fn loops(&self) -> Result<Vec<LoopOf>> {
        let (options, calibration) = (self.options, self.calibration);
        let siblings = calibration
            .placements
            .iter()
            .position(|placement| placement.siblings);
        let empty = options.sections.iter().position(Duration::is_zero).unwrap_or(0);
        let mut loops = Vec::new();
        for section in 0..options.sections.len() {
            for (share, read_share) in options.read_shares.iter().enumerate() {
                let alone = self.loop_ns(section, share, None);
                let bare = self.loop_ns(empty, share, None);
                let (Some(alone), Some(bare)) = (alone, bare) else {
                    continue;
                };
                let accesses = simulated::bare_loop(&calibration.machine, *read_share, options)?;
                let sibling_speed = siblings
                    .and_then(|placement| self.loop_ns(section, share, Some(placement)))
                    // Each of the two takes twice what both together take for a turn.
                    .map(|together| (alone / (2.0 * together)).clamp(0.3, 1.0));
                let measured = HereLoop {
                    section_ns: self.section_ns(section),
                    read_share: *read_share,
                    alone_ns: alone,
                    outside_ns: (bare - accesses).max(0.0),
                    inside_ns: (alone - bare).max(0.0),
                    sibling_speed,
                };
                loops.push(((section, share), measured));
            }
        }
        Ok(loops)
    }

    /// The cells that have samples, each beside its simulation; and how many have too few.
    fn cells(&self, loops: &[LoopOf], latches: &[BenchLatch]) -> Result<(Vec<HereCell>, usize)> {
        let (mut cells, mut missing) = (Vec::new(), 0);
        for kind in &self.kinds {
            let Some(latch) = kind.latch.map(|number| &latches[number]) else {
                continue;
            };
            let of_kind = |(of, _): &&LoopOf| *of == (kind.section, kind.share);
            let (Some((native_ns, samples)), Some((_, around))) =
                (self.native(kind), loops.iter().find(of_kind))
            else {
                missing += 1;
                continue;
            };
            let cost = simulated::LoopCost {
                outside_ns: around.outside_ns,
                inside_ns: around.inside_ns,
                sibling_speed: around.sibling_speed,
            };
            let read_share = self.options.read_shares[kind.share];
            let simulated_ns =
                simulated::acquisition(self.calibration, kind, latch, read_share, cost, self.options)?;
            cells.push(HereCell {
                latch: latch.name.clone(),
                threads: kind.threads,
                placement: kind.placement,
                section_ns: self.section_ns(kind.section),
                read_share,
                native: 1e9 / native_ns,
                spread: stats::spread(samples),
                samples: samples.len(),
                simulated: 1e9 / simulated_ns,
                ratio: native_ns / simulated_ns,
            });
        }
        Ok((cells, missing))
    }
}

impl HereResult {
    fn summarize(&mut self) {
        let mut keys: Vec<(usize, Option<usize>)> = self
            .cells
            .iter()
            .map(|cell| (cell.threads, cell.placement))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for (threads, placement) in keys {
            let cells = || {
                self.cells
                    .iter()
                    .filter(|cell| (cell.threads, cell.placement) == (threads, placement))
            };
            let ratios: Vec<f64> = cells().map(|cell| cell.ratio).collect();
            let distance = |ratio: f64| ratio.ln().abs();
            let worst = cells().max_by(|one, other| distance(one.ratio).total_cmp(&distance(other.ratio)));
            self.summaries.push(Summary {
                threads,
                placement,
                cells: ratios.len(),
                within: ratios.iter().filter(|ratio| agrees(**ratio)).count(),
                median: stats::median(&ratios),
                worst: worst.map_or((1.0, String::new()), |cell| {
                    let section = crate::latches::table::section(cell.section_ns);
                    let name = format!("{}, {section}, {} % reads", cell.latch, cell.read_share);
                    (cell.ratio, name)
                }),
            });
        }
    }

    /// Writes `here.json` into `directory`, which is created if need be.
    pub fn write(&self, directory: &std::path::Path) -> Result<()> {
        write_files(directory, &[("here.json", json(self))])
    }
}

/// Within 30 %.
fn agrees(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= TOLERANCE
}
