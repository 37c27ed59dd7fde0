//! Measuring this host's costs: what a few atomic instructions, pauses and system calls take here.
//!
//! # Placements
//! The CPUs of a virtual machine need not stay where they are. Between one millisecond and the next its host
//! may run two of them as hardware threads of one core, on two cores that share a cache, or far from each
//! other; the cost of a cache line then differs tenfold. So a [`probe()`] measures how far two CPUs are apart
//! at this moment, and many probes show which distances there are. On a physical machine, different pairs of
//! CPUs show them. Each distance is a [`Placement`] with a machine of its own; the description that is
//! printed is that of the most frequent one.

mod line_tenure;
mod placement;
mod probe;
mod system;

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clearway_machine::{AtomicWord, Machine, Native, Padded};
use clearway_sim::{MachineModel, ModelError};

use crate::error::LabError;
use crate::host_use::{BUSY_SHARE, HostUse};
use crate::latches::section::Section;
use crate::simulate::cost::set_costs;
use crate::stats::median;

use line_tenure::{SPACINGS, spaced_increments};
pub use placement::Placement;
use placement::placements;
use probe::SAME_PLACE;
pub(super) use probe::{Probe, pair, probe, within};
use system::{switching, time_of, wake_ups};

/// This machine with its costs measured.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// The description, ready to be written to a file; two CPUs are apart as they most often were.
    pub machine: MachineModel,
    /// Names of what was measured, with nanoseconds.
    pub measured: Vec<(&'static str, f64)>,
    /// The placements of pairs of CPUs, most frequent first. Empty on a host of one CPU.
    pub placements: Vec<Placement>,
    /// The part of the CPUs that other programs used meanwhile, 0 to 1; `None` where the kernel does not show it.
    pub others_share: Option<f64>,
    /// The CPUs that this process may use.
    pub(super) cpus: Vec<usize>,
    /// The usual value of [`Probe::alone`].
    pub(super) alone: f64,
}

const PROBES: usize = 300;

/// Probes that show which placements there are; fewer do not.
const PROBES_MIN: usize = 60;

/// Time for all probes. They take two seconds on a quiet host; on a busy one the two threads of a probe wait for each
/// other's turns, and what few probes find is the scheduler's.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Nanoseconds. No transfer of a line between two CPUs takes longer. Where one seems to, the host of a
/// virtual machine runs both CPUs in turn on one of its own, and the other measurements of that moment are
/// useless too.
const FARTHEST: f64 = 1_000.0;

/// Measures this host. Takes two or three seconds; other load makes the figures worthless, and
/// [`others_share`](Calibration::others_share) says how much there was.
///
/// # Errors
/// [`LabError::HostTooBusy`], after half a minute at most: too few measurements were undisturbed.
pub fn calibrate() -> Result<Calibration, LabError> {
    calibrate_within(TIME_MAX)
}

/// The same with another time for the probes.
fn calibrate_within(time_max: Duration) -> Result<Calibration, LabError> {
    let machine = MachineModel::load("this")?;
    let cpus = Native::cpus_allowed().map_err(ModelError::Host)?;
    let before = HostUse::now();
    let others_share = || HostUse::now()?.share_since(before.as_ref()?);
    let one = OneCpu::measure();
    let pairs = (cpus.len() > 1 && machine.cpus() > 1).then(|| Pairs::measure(&cpus, time_max));
    if let Some(pairs) = &pairs
        && pairs.looks.len() < PROBES_MIN
    {
        return Err(LabError::HostTooBusy {
            undisturbed: pairs.looks.len(),
            wanted: PROBES,
            others_share: others_share(),
        });
    }
    let mut measured = one.costs().to_vec();
    measured.extend(pairs.iter().flat_map(|pairs| pairs.costs(&one, cpus[0])));
    let mut calibration = Calibration {
        machine,
        measured,
        placements: pairs
            .as_ref()
            .map_or(Vec::new(), |pairs| placements(&pairs.looks)),
        others_share: others_share(),
        cpus,
        alone: pairs.as_ref().map_or(0.0, |pairs| median(&pairs.speeds)),
    };
    calibration.enter_costs();
    if let Some(pairs) = &pairs {
        calibration.fit_placements(pairs.spacings);
    }
    calibration.take_most_frequent_placement();
    calibration.machine.check()?;
    Ok(calibration)
}

/// Nanoseconds of what one CPU does by itself.
struct OneCpu {
    store: f64,
    rmw: f64,
    pause: f64,
    fence: f64,
    clock: f64,
    wake: f64,
    syscall: f64,
}

impl OneCpu {
    fn measure() -> Self {
        let word = Padded(<Native as Machine>::U64::new(0));
        let futex = <Native as Machine>::U32::new(0);
        let store = time_of(200_000, || word.store(black_box(1), Ordering::Release));
        let rmw = time_of(200_000, || {
            black_box(word.fetch_add(1, Ordering::AcqRel));
        });
        let pause = time_of(50_000, spin_loop);
        let fence = time_of(50_000, || {
            // A load between, or the compiler makes one fence of many.
            Native::fence(Ordering::SeqCst);
            black_box(word.load(Ordering::Relaxed));
        });
        let clock = time_of(50_000, || {
            black_box(Native::now());
        });
        let wake = time_of(20_000, || {
            black_box(Native::futex_wake(&futex, 1));
        });
        let yields = time_of(20_000, Native::yield_now);
        Self {
            store,
            rmw,
            pause,
            fence,
            clock,
            wake,
            syscall: yields.min(wake),
        }
    }

    /// By their names in a machine's description.
    fn costs(&self) -> [(&'static str, f64); 7] {
        [
            ("coherence.store_hit", self.store),
            ("coherence.rmw_hit", self.rmw),
            ("coherence.pause", self.pause),
            ("coherence.fence", self.fence),
            ("os.clock", self.clock),
            ("os.syscall", self.syscall),
            ("os.futex", self.wake - self.syscall),
        ]
    }
}

/// Measurements of pairs of CPUs, one after the other.
struct Pairs {
    /// The real lengths of [`SPACINGS`].
    spacings: [f64; 2],
    /// Probes during which the CPUs stayed where they were, with the increments at each spacing.
    looks: Vec<(Probe, [f64; 2])>,
    /// Nanoseconds of wake-ups: those that the waker spends, and those until the sleeper runs.
    woken: Vec<(f64, f64)>,
    /// [`Probe::alone`] of every probe.
    speeds: Vec<f64>,
}

impl Pairs {
    /// Probes until there are enough, or for `time_max`.
    fn measure(cpus: &[usize], time_max: Duration) -> Self {
        let began = Instant::now();
        let word = Padded(<Native as Machine>::U64::new(0));
        let between = SPACINGS.map(Section::calibrate);
        let increment = || {
            black_box(word.fetch_add(1, Ordering::AcqRel));
        };
        let without = time_of(50_000, increment);
        // So few steps do not take just what was asked for.
        let spacings = between.map(|between| {
            let with = time_of(50_000, || {
                increment();
                between.work();
            });
            with - without
        });
        let (mut looks, mut woken, mut speeds) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..3 * PROBES {
            if looks.len() == PROBES || began.elapsed() > time_max {
                break;
            }
            let pair = pair(cpus, turn);
            std::thread::sleep(Duration::from_millis(2));
            let before = probe(pair);
            speeds.push(before.alone);
            let spaced = between.map(|between| spaced_increments(pair, between));
            let wake_ups = wake_ups(pair);
            let stayed = within(probe(pair).transfer, before.transfer, SAME_PLACE);
            if stayed && before.transfer < FARTHEST {
                looks.push((before, spaced));
                woken.extend(wake_ups);
            }
        }
        Self {
            spacings,
            looks,
            woken,
            speeds,
        }
    }

    /// The costs of switches and wake-ups, by their names in a machine's description; `cpu` does the switching.
    fn costs(&self, one: &OneCpu, cpu: usize) -> Vec<(&'static str, f64)> {
        let switch = (switching(cpu) - one.syscall).max(0.0);
        let mut costs = vec![("os.switch", switch)];
        if !self.woken.is_empty() {
            let (wakers, latencies): (Vec<f64>, Vec<f64>) = self.woken.iter().copied().unzip();
            let (waker, latency) = (median(&wakers), median(&latencies));
            costs.push(("os.wake", (waker - one.wake).max(0.0)));
            costs.push(("os.idle_exit", (latency - one.wake - switch).max(0.0)));
        }
        costs
    }
}

const MEASURED: &str = "measured here by clearway simulate --calibrate";

fn rounded(nanoseconds: f64) -> f64 {
    (nanoseconds * 100.0).round() / 100.0
}

impl Calibration {
    /// Puts what was measured into the machine's description.
    fn enter_costs(&mut self) {
        let machine = &mut self.machine;
        for (name, cost) in machine.costs_mut() {
            if let Some((_, nanoseconds)) = self.measured.iter().find(|(measured, _)| *measured == name) {
                *cost = rounded(*nanoseconds);
            }
        }
        let beside = match self.others_share {
            Some(share) if share > BUSY_SHARE => {
                format!(", while other programs used {:.0} % of the CPUs", share * 100.0)
            }
            _ => String::new(),
        };
        for (name, _) in &self.measured {
            machine
                .sources
                .insert((*name).to_owned(), format!("{MEASURED}{beside}"));
        }
        machine.description = machine
            .description
            .replace(" (costs of cloud-16 until calibrated)", ", calibrated");
    }

    /// Fits what cannot be measured by itself to each placement.
    fn fit_placements(&mut self, spacings: [f64; 2]) {
        for number in 0..self.placements.len() {
            let mut placement = self.placements[number];
            placement.departure = self.departure(&placement, spacings);
            placement.owner_rmws = self.owner_rmws(&placement);
            self.placements[number] = placement;
        }
    }

    /// Makes the description that of the most frequent placement.
    fn take_most_frequent_placement(&mut self) {
        let Some(most) = self.placements.first().copied() else {
            return;
        };
        let (mut machine, topology) = (self.machine_of_pair(&most), &self.machine.topology);
        if topology.sockets * topology.cores_per_socket * topology.threads_per_core > 2 {
            // More CPUs than the pair: the system knows how they lie.
            machine.topology = topology.clone();
        }
        let seen: Vec<String> = self
            .placements
            .iter()
            .map(|placement| format!("{} {:.0} %", placement.name(), placement.share * 100.0))
            .collect();
        machine.sources.insert(
            "placements".to_owned(),
            format!("{MEASURED}: {}", seen.join("; ")),
        );
        self.machine = machine;
    }

    /// Other costs than were measured, to see what comes of them: see [`set_costs`].
    pub fn set<S: AsRef<str>>(&mut self, settings: impl IntoIterator<Item = S>) -> Result<(), LabError> {
        set_costs(&mut self.machine, settings)
    }

    /// True if [`Self::set`] will take them, before anything has been measured.
    pub fn check_settings<S: AsRef<str>>(settings: impl IntoIterator<Item = S>) -> Result<(), LabError> {
        set_costs(&mut MachineModel::load("this")?, settings)
    }

    /// A machine of two CPUs placed as `placement` says, with the other costs of this host.
    pub fn machine_of_pair(&self, placement: &Placement) -> MachineModel {
        let mut machine = self.machine.clone();
        let topology = &mut machine.topology;
        topology.sockets = 1;
        topology.cores_per_cluster = None;
        topology.hops = None;
        (topology.cores_per_socket, topology.threads_per_core) =
            if placement.siblings { (1, 2) } else { (2, 1) };
        let transfer = rounded(placement.transfer_ns);
        let names: &[&str] = if placement.siblings {
            machine.coherence.smt = transfer;
            machine.os.smt_speed_pausing = Some(rounded(placement.speed_beside_pauses));
            &["coherence.smt", "os.smt_speed_pausing"]
        } else {
            machine.coherence.cluster = transfer;
            machine.coherence.socket = transfer;
            machine.coherence.departure = placement.departure;
            machine.coherence.owner_rmws = placement.owner_rmws;
            &[
                "coherence.cluster",
                "coherence.socket",
                "coherence.departure",
                "coherence.owner_rmws",
            ]
        };
        for name in names {
            machine.sources.insert((*name).to_owned(), MEASURED.to_owned());
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host on which no probe ends in time is said to be busy, in the place of figures.
    #[test]
    fn a_host_without_undisturbed_probes_is_not_calibrated() {
        if Native::cpus_allowed().unwrap().len() < 2 {
            return;
        }
        let error = calibrate_within(Duration::ZERO).unwrap_err();
        assert!(
            matches!(error, LabError::HostTooBusy { undisturbed: 0, .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("too busy to be calibrated: 0 of 300"),
            "{error}"
        );
    }
}
