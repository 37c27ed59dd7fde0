//! Samples of the native bench, each taken while the host did not change.

use std::time::{Duration, Instant};

use clearway_latch::SpinPolicy;

use super::{HereOptions, Kind};
use crate::error::Result;
use crate::latches::Sample;
use crate::latches::catalogue::{BenchLatch, classes};
use crate::latches::section::Section;
use crate::progress::progress_bar;
use crate::simulate::calibrate::{Calibration, Probe, pair, probe, within};

/// A CPU is as fast as during the calibration if it is by this factor.
const SAME_SPEED: f64 = 1.08;

/// Samples of the loop without a latch for each of another cell: it goes into every cell.
const LOOPS: usize = 4;

fn weight(kind: &Kind) -> usize {
    if kind.latch.is_none() { LOOPS } else { 1 }
}

/// The samples that were taken.
pub(super) struct ProbeSamples {
    /// Nanoseconds an acquisition, for each kind.
    pub(super) samples: Vec<Vec<f64>>,
    pub(super) thrown_away: usize,
    pub(super) all: usize,
}

/// The result of a probe of two CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedPair {
    pub(super) cpus: [usize; 2],
    pub(super) placement: Option<usize>,
    /// As fast as during the calibration.
    pub(super) usual: bool,
}

/// Probes how far apart these CPUs are now, and how fast.
pub(super) fn probe_pair(calibration: &Calibration, cpus: [usize; 2]) -> ProbedPair {
    if cpus[0] == cpus[1] {
        // A host of one CPU.
        return ProbedPair {
            cpus,
            placement: None,
            usual: true,
        };
    }
    let found: Probe = probe(cpus);
    ProbedPair {
        cpus,
        placement: calibration
            .placements
            .iter()
            .position(|placement| placement.covers(&found)),
        usual: within(found.alone, calibration.alone, SAME_SPEED),
    }
}

/// The pair of CPUs for a turn.
pub(super) fn cpus(calibration: &Calibration, turn: usize) -> [usize; 2] {
    match calibration.cpus.as_slice() {
        [only] => [*only, *only],
        many => pair(many, turn),
    }
}

/// Takes samples until there are as many as wanted of each kind, or the time is over.
pub(super) fn sample(
    options: &HereOptions,
    calibration: &Calibration,
    kinds: &[Kind],
    latches: &[BenchLatch],
) -> Result<ProbeSamples> {
    for class in classes() {
        class.set_spin_policy(SpinPolicy::Adaptive);
    }
    let sections: Vec<Section> = options
        .sections
        .iter()
        .map(|length| Section::calibrate(*length))
        .collect();
    let mut taken = ProbeSamples {
        samples: vec![Vec::new(); kinds.len()],
        thrown_away: 0,
        all: 0,
    };
    let wanted = kinds.iter().map(weight).sum::<usize>() * options.samples;
    let bar = progress_bar(options.progress, wanted as u64, "{pos}/{len} samples  {elapsed}");
    let began = Instant::now();
    let mut turn = 0;
    let mut before = probe_pair(calibration, cpus(calibration, 0));
    while began.elapsed() < options.time_max {
        turn += 1;
        let rounds = |place: usize| taken.samples[place].len() / weight(&kinds[place]);
        let admitted =
            |kind: &Kind| before.usual && (kind.placement.is_none() || kind.placement == before.placement);
        // The one with the fewest samples, so that all go on side by side.
        let next = kinds
            .iter()
            .enumerate()
            .filter(|(place, kind)| admitted(kind) && rounds(*place) < options.samples)
            .min_by_key(|(place, _)| (rounds(*place), (place + turn) % kinds.len()));
        let Some((place, kind)) = next else {
            if taken
                .samples
                .iter()
                .all(|samples| samples.len() >= options.samples)
            {
                break;
            }
            // Perhaps the CPUs are placed otherwise in a moment, or another pair does.
            std::thread::sleep(Duration::from_millis(1));
            before = probe_pair(calibration, cpus(calibration, turn));
            continue;
        };
        let sample = Sample {
            threads: kind.threads,
            section: sections[kind.section],
            read_share: options.read_shares[kind.share],
            duration: options.duration,
            seed: options.seed ^ (turn as u64) << 8,
            cpus: before.cpus,
        };
        let nanoseconds = sample.measure(kind.latch.map(|number| &latches[number]))?;
        let after = probe_pair(calibration, before.cpus);
        let still = kind.placement.is_none() || after.placement == before.placement;
        taken.all += 1;
        if still && after.usual {
            taken.samples[place].push(nanoseconds);
            bar.inc(1);
        } else {
            taken.thrown_away += 1;
        }
        before = if calibration.cpus.len() > 2 {
            probe_pair(calibration, cpus(calibration, turn))
        } else {
            after
        };
    }
    bar.finish_and_clear();
    Ok(taken)
}
