//! `bench latches`: our latches beside the locks a Rust program would use otherwise.
//!
//! A *point* is a number of threads, the length of the critical section, a share of readers, and a latch. Until the
//! point ends, each of its threads takes the latch, touches two words of shared data, works for the length of the
//! section and releases the latch. A *cell* is the median over the rounds. Within a round the latches of one point are
//! measured side by side, in an order that turns from round to round (see [`schedule`]).
//!
//! # Rules
//! 1. What a reader sees is checked: a writer changes two words, and a reader that finds them different ends the bench.
//! 2. One acquisition in 32 is timed; to time all would measure the clock (`timing`).
//! 3. The section is arithmetic, not pauses, so that a hardware thread's sibling feels it; its length is
//!    calibrated once.
//! 4. Throughput is counted over the time that really passed, from the first thread's start to the last one's
//!    end. On few CPUs most threads wait for a CPU at any moment. Now and then the holder of the latch is one
//!    of them: that is part of what is measured.

pub(crate) mod catalogue;
mod native;
mod own;
mod plot;
pub(crate) mod point;
mod result;
pub(crate) mod section;
pub(crate) mod simulated;
pub mod table;
pub(crate) mod timing;

use std::time::Duration;

use clearway_latch::SpinPolicy;

pub use own::{OwnLatch, OwnLatchKind, add_latch};
pub use result::{LatchBenchResult, LatchCell, LatchParameters};
pub use timing::ModeWait;

use crate::error::{LabError, Result};
use crate::progress::progress_bar;
use crate::result::Provenance;
use crate::schedule;
use crate::stats;
use catalogue::{BenchLatch, classes};
use section::Section;

/// The question of a latch bench.
#[derive(Debug, Clone)]
pub struct LatchBenchOptions {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub sections: Vec<Duration>,
    /// Shares of readers, in percent.
    pub read_shares: Vec<f64>,
    /// Latches by name; empty: all.
    pub latches: Vec<String>,
    /// The spin policy of a thread before it sleeps on a latch of ours.
    pub spin: SpinPolicy,
    /// Measured time per point.
    pub duration: Duration,
    /// Measurements of each point.
    pub rounds: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The command line, for the result.
    pub command: String,
    /// True if a progress bar is shown.
    pub progress: bool,
}

impl LatchBenchOptions {
    /// Name and text of each latch that can be measured.
    pub fn list() -> Vec<(String, String)> {
        BenchLatch::all()
            .into_iter()
            .map(|latch| (latch.name, latch.text))
            .collect()
    }

    fn check(&self) -> Result<()> {
        let refuse = |what, value: String, must| Err(LabError::BadNumber { what, value, must });
        if self.threads.is_empty() || self.threads.iter().any(|count| !(1..=512).contains(count)) {
            let threads = format!("{:?}", self.threads);
            return refuse("--threads", threads, "one or more numbers from 1 to 512");
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
        if self.sections.is_empty()
            || self
                .sections
                .iter()
                .any(|section| *section > Duration::from_millis(10))
        {
            let sections = format!("{:?}", self.sections);
            return refuse("--section", sections, "one or more times up to 10ms");
        }
        if self.rounds == 0 {
            return refuse("--rounds", "0".to_owned(), "at least 1");
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&self.duration) {
            return refuse("--duration", format!("{:?}", self.duration), "1ms to 60s");
        }
        Ok(())
    }

    /// The latches that are asked for and have a point: a mutex is measured without readers only.
    fn chosen(&self) -> Result<Vec<BenchLatch>> {
        let admitted = |latch: &BenchLatch| self.read_shares.iter().any(|share| latch.admits(*share));
        let mut all = BenchLatch::all();
        if self.latches.is_empty() {
            all.retain(admitted);
            return Ok(all);
        }
        let find = |name: &String| {
            let found = all.iter().find(|latch| latch.name == *name);
            found.cloned().ok_or_else(|| LabError::UnknownName {
                what: "latch",
                name: name.clone(),
                available: catalogue::names(&all),
            })
        };
        let chosen: Vec<BenchLatch> = self.latches.iter().map(find).collect::<Result<_>>()?;
        if let Some(mutex) = chosen.iter().find(|latch| !admitted(latch)) {
            return Err(LabError::BadNumber {
                what: "--read-share",
                value: format!("{:?} for {}", self.read_shares, mutex.name),
                must: "0 for a mutex, which has no readers",
            });
        }
        Ok(chosen)
    }

    /// The parameters as the result tells them.
    fn parameters(&self, chosen: &[BenchLatch]) -> LatchParameters {
        let sections = self.sections.iter();
        LatchParameters {
            threads: self.threads.clone(),
            sections_ns: sections.map(|section| section.as_nanos() as u64).collect(),
            read_shares: self.read_shares.clone(),
            latches: chosen.iter().map(|latch| latch.name.clone()).collect(),
            spin: format!("{:?}", self.spin),
            duration_s: self.duration.as_secs_f64(),
            rounds: self.rounds,
        }
    }

    /// The time it will take, about; an error if what is asked for cannot be measured.
    pub fn estimated_time(&self) -> Result<Duration> {
        let points = self.chosen()?.iter().fold(0, |points, latch| {
            points
                + self
                    .read_shares
                    .iter()
                    .filter(|share| latch.admits(**share))
                    .count()
        });
        let cells = self.threads.len() * self.sections.len() * points;
        Ok(self.duration * (cells * self.rounds) as u32)
    }
}

/// One measurement on two CPUs, for the comparison with the simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Of the thread, or the two.
    pub(crate) threads: usize,
    pub(crate) section: Section,
    /// In percent.
    pub(crate) read_share: f64,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) cpus: [usize; 2],
}

impl Sample {
    /// Nanoseconds of all threads together for one acquisition of this latch; without one, for a turn of the loop
    /// without a latch.
    pub(crate) fn measure(&self, latch: Option<&BenchLatch>) -> Result<f64> {
        let point = point::Point {
            threads: self.threads,
            section: self.section,
            read_share: self.read_share / 100.0,
            duration: self.duration,
            seed: self.seed,
            cpus: Some(self.cpus),
        };
        let measured = match latch {
            None => point::measure_without_latch(&point),
            Some(latch) => latch.measure(&point),
        };
        let measured = measured.map_err(|torn| LabError::Torn {
            latch: latch.map_or_else(String::new, |latch| latch.name.clone()),
            what: torn.to_string(),
        })?;
        Ok(1e9 / measured.rate())
    }
}

/// Measures every point, in the order of the schedule.
pub fn run_latch_bench(options: &LatchBenchOptions) -> Result<LatchBenchResult> {
    options.check()?;
    let chosen = options.chosen()?;
    for class in classes() {
        class.set_spin_policy(options.spin);
    }
    let parameters = options.parameters(&chosen);
    let provenance = Provenance::now(options.command.clone(), options.seed, options.rounds, &parameters);
    let grid = Grid::new(options, &chosen);
    let measured = grid.measure()?;
    let mut result = LatchBenchResult {
        format: result::FORMAT,
        cells: grid.cells(&parameters, &measured),
        provenance,
        parameters,
    };
    result.compare();
    Ok(result)
}

/// The points of a bench, each a cell: every section with every share of readers, number of threads and latch.
struct Grid<'a> {
    options: &'a LatchBenchOptions,
    latches: &'a [BenchLatch],
    sections: Vec<Section>,
    /// Numbers of a section and a read share: what the schedule calls a workload. Its "clients" are threads, its variants
    /// latches.
    kinds: Vec<(usize, usize)>,
}

impl<'a> Grid<'a> {
    fn new(options: &'a LatchBenchOptions, latches: &'a [BenchLatch]) -> Self {
        let sections = options.sections.iter();
        let kinds = (0..options.sections.len())
            .flat_map(|section| (0..options.read_shares.len()).map(move |share| (section, share)));
        Self {
            options,
            latches,
            sections: sections.map(|length| Section::calibrate(*length)).collect(),
            kinds: kinds.collect(),
        }
    }

    /// The number of a cell.
    fn place(&self, kind: usize, threads: usize, latch: usize) -> usize {
        (kind * self.options.threads.len() + threads) * self.latches.len() + latch
    }

    /// Measurements of each cell, one a round, by [`Self::place`].
    fn measure(&self) -> Result<Vec<Vec<point::Measured>>> {
        let (kinds, threads, latches) = (self.kinds.len(), self.options.threads.len(), self.latches.len());
        let steps = schedule::interleaved(self.options.rounds, kinds, threads, latches);
        let bar = progress_bar(
            self.options.progress,
            steps.len() as u64,
            "{pos}/{len} points  {left}",
        );
        let mut measured: Vec<Vec<point::Measured>> = Vec::new();
        measured.resize_with(kinds * threads * latches, Vec::new);
        for step in steps {
            let latch = &self.latches[step.variant];
            let (_, share) = self.kinds[step.workload];
            if latch.admits(self.options.read_shares[share]) {
                let point = self.point(&step);
                bar.set_message(format!("{} × {}", latch.name, point.threads));
                let found = latch.measure(&point).map_err(|torn| LabError::Torn {
                    latch: latch.name.clone(),
                    what: torn.to_string(),
                })?;
                measured[self.place(step.workload, step.clients, step.variant)].push(found);
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(measured)
    }

    /// The point of a step of the schedule.
    fn point(&self, step: &schedule::Step) -> point::Point {
        let (section, share) = self.kinds[step.workload];
        point::Point {
            threads: self.options.threads[step.clients],
            section: self.sections[section],
            read_share: self.options.read_shares[share] / 100.0,
            duration: self.options.duration,
            // The latches of a step draw the same numbers.
            seed: self.options.seed
                ^ (step.round as u64) << 32
                ^ (step.workload as u64) << 16
                ^ step.clients as u64,
            cpus: None,
        }
    }

    /// The cells that were measured.
    fn cells(&self, parameters: &LatchParameters, measured: &[Vec<point::Measured>]) -> Vec<LatchCell> {
        let mut cells = Vec::new();
        for (kind, &(section, share)) in self.kinds.iter().enumerate() {
            for (number, &threads) in self.options.threads.iter().enumerate() {
                for (number_of_latch, latch) in self.latches.iter().enumerate() {
                    let rounds = &measured[self.place(kind, number, number_of_latch)];
                    if rounds.is_empty() {
                        continue;
                    }
                    let rates: Vec<f64> = rounds.iter().map(point::Measured::rate).collect();
                    let cpus: Vec<f64> = rounds.iter().map(point::Measured::cpus).collect();
                    let shares: Vec<f64> = rounds.iter().map(|round| round.slowest_to_fastest).collect();
                    cells.push(LatchCell {
                        latch: latch.name.clone(),
                        bytes: latch.bytes(),
                        threads,
                        section_ns: parameters.sections_ns[section],
                        read_share: self.options.read_shares[share],
                        operations: stats::median(&rates),
                        spread: stats::spread(&rates),
                        operations_rounds: rates,
                        ratio: None,
                        ratio_spread: None,
                        slowest_to_fastest: stats::median(&shares),
                        cpus: stats::median(&cpus),
                        read: ModeWait::merged(rounds.iter().map(|round| &round.read)),
                        write: ModeWait::merged(rounds.iter().map(|round| &round.write)),
                    });
                }
            }
        }
        cells
    }
}
