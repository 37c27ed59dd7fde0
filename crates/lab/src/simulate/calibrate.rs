//! Measuring this host's costs: what a few atomic instructions, pauses and system calls take here.
//!
//! # Placements
//! The CPUs of a virtual machine need not stay where they are: between one millisecond and the next its host may run two of
//! them as hardware threads of one core, on two cores that share a cache, or far from each other, and what a cache line costs
//! then differs tenfold. So a [`probe`] measures how far two CPUs are apart at this moment, and many probes show which
//! distances there are. On a machine of one's own, different pairs of CPUs show them. Each distance is a [`Placement`] with
//! a machine of its own; the description that is printed is that of the most frequent.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clearway_machine::{AtomicWord, Machine, Native, Padded};
use clearway_sim::{MachineModel, ModelError, Simulated, Simulation, charge_picoseconds, clock_ns};
use serde::Serialize;

use crate::error::LabError;
use crate::latches::section::Section;
use crate::stats::median;

/// This machine with its costs measured.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// The description, ready to be written to a file; two CPUs are apart as they most often were.
    pub machine: MachineModel,
    /// Names of what was measured, with nanoseconds.
    pub measured: Vec<(&'static str, f64)>,
    /// How far two CPUs are apart, most frequent first. Empty on a host of one CPU.
    pub placements: Vec<Placement>,
    /// The CPUs that this process may use.
    pub(super) cpus: Vec<usize>,
    /// What [`Probe::alone`] usually is.
    pub(super) alone: f64,
}

/// One distance between two CPUs of this host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Placement {
    /// Moving a line from one to the other: half of a compare-and-swap round trip, median.
    pub transfer_ns: f64,
    /// Whether they slow each other's arithmetic, as hardware threads of one core do.
    pub siblings: bool,
    /// The speed of one while the other polls with pauses, of 1.
    pub speed_beside_pauses: f64,
    /// What an increment costs while both increment one line, the time of both together: median.
    pub contended_ns: f64,
    /// The same with a little arithmetic between two increments, and with more.
    pub spaced_ns: [f64; 2],
    /// The part of a transfer after which a line has left its owner: the one with which a simulation comes nearest to `spaced_ns`.
    pub departure: f64,
    /// The most read-modify-writes of an owner whose line was asked for: the number with which a simulation comes to
    /// `contended_ns`, 0 for no limit.
    pub owner_rmws: f64,
    /// Its part of all probes.
    pub share: f64,
}

impl Placement {
    /// In words.
    pub fn name(&self) -> String {
        let what = if self.siblings {
            "one core, two hardware threads"
        } else {
            "two cores"
        };
        format!("{what}, {:.0} ns apart", self.transfer_ns)
    }

    pub(super) fn covers(&self, probe: &Probe) -> bool {
        within(probe.transfer, self.transfer_ns, SAME_PLACE)
    }
}

/// Transfers that differ by less than this factor are of one placement.
const SAME_PLACE: f64 = 1.25;

/// A placement must have this part of all probes: others are moments in which the host did something else.
const SHARE_MIN: f64 = 0.06;

const PROBES: usize = 300;

/// Nanoseconds. A line takes no longer between any two CPUs: where it seems to, the host of a virtual machine runs both CPUs
/// on one of its own by turns, and what else is measured then is of no use either.
const FARTHEST: f64 = 1_000.0;

/// Between two increments of a thread, to see how long a line stays: such that two of a turn fit in where CPUs share a cache, and
/// where they do not.
const SPACINGS: [Duration; 2] = [Duration::from_nanos(14), Duration::from_nanos(45)];

pub(super) fn within(value: f64, of: f64, factor: f64) -> bool {
    (of / factor..=of * factor).contains(&value)
}

/// Median nanoseconds of one call of `step`, over rounds with rests between them: a host that others use is slow for some
/// milliseconds at a time.
fn time_of(steps: u32, mut step: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 25;
    let steps = steps / ROUNDS;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            for _ in 0..steps / 4 {
                step();
            }
            let before = Instant::now();
            for _ in 0..steps {
                step();
            }
            before.elapsed().as_secs_f64() * 1e9 / f64::from(steps)
        })
        .collect();
    median(&rounds)
}

/// Arithmetic that keeps a core's multiplier busy all the time, so that two hardware threads of one core take turns.
/// Nanoseconds of a round, the best of three.
fn arithmetic() -> f64 {
    const ROUNDS: u32 = 600;
    let run = || {
        let before = Instant::now();
        let mut values = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
        for _ in 0..ROUNDS {
            for value in &mut values {
                *value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
        }
        black_box(values);
        before.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    run().min(run()).min(run())
}

/// How two CPUs stand at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// Half of a round trip of a line, by compare-and-swap alone, as core-to-core matrices are made.
    pub(super) transfer: f64,
    /// A round of arithmetic on the first with the other at rest, at the same, and polling with pauses.
    pub(super) alone: f64,
    together: f64,
    beside_pauses: f64,
    /// An increment of a line that the other increments too.
    contended: f64,
}

/// Takes about half a millisecond.
pub(super) fn probe(cpus: [usize; 2]) -> Probe {
    const TRIPS: u64 = 400;
    // Long enough that the two run side by side for nearly all of it.
    const INCREMENTS: u32 = 20_000;
    let word = Padded(AtomicU64::new(0));
    let phase = Padded(AtomicU32::new(0));
    let meet = |number: u32| {
        phase.fetch_add(1, Ordering::AcqRel);
        // One step more has been taken by who polled for the other in the fourth meeting.
        let all = 2 * number + u32::from(number == 4);
        while phase.load(Ordering::Acquire) < all {
            spin_loop();
        }
    };
    let turn = |mine: u64| {
        for trip in 0..TRIPS {
            let (from, to) = (2 * trip + mine, 2 * trip + mine + 1);
            while word
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {}
        }
    };
    let increment = || increments(&word, INCREMENTS, Section::NONE);
    let stay = |cpu| {
        // Refused, the probe shows threads on CPUs that nobody chose, which is what there is then.
        let _ = Native::stay_on(cpu);
    };
    let mut found = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            stay(cpus[0]);
            meet(1);
            let before = Instant::now();
            turn(0);
            let transfer = before.elapsed().as_secs_f64() * 1e9 / (2 * TRIPS) as f64;
            meet(2);
            let together = arithmetic();
            meet(3);
            let beside_pauses = arithmetic();
            phase.fetch_add(1, Ordering::AcqRel);
            meet(4);
            Probe {
                transfer,
                alone: 0.0,
                together,
                beside_pauses,
                contended: increment(),
            }
        });
        let second = scope.spawn(|| {
            stay(cpus[1]);
            meet(1);
            turn(1);
            meet(2);
            arithmetic();
            arithmetic();
            meet(3);
            while phase.load(Ordering::Relaxed) < 7 {
                spin_loop();
            }
            meet(4);
            increment()
        });
        let mut found = first
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let others = second
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        found.contended = f64::midpoint(found.contended, others);
        found
    });
    found.alone = std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            stay(cpus[0]);
            arithmetic()
        });
        alone
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    found
}

/// Nanoseconds of two threads together for one of the increments that each makes of `word`, with `between` after each.
fn increments(word: &AtomicU64, count: u32, between: Section) -> f64 {
    let before = Instant::now();
    for _ in 0..count {
        word.fetch_add(1, Ordering::AcqRel);
        between.work();
    }
    before.elapsed().as_secs_f64() * 1e9 / f64::from(2 * count)
}

/// The same with `between`, which shows how long an owner goes on using a line that was asked for: if it were gone at once each
/// increment would wait for it.
fn spaced_increments(cpus: [usize; 2], between: Section) -> f64 {
    const INCREMENTS: u32 = 6_000;
    let word = Padded(AtomicU64::new(0));
    let ready = Padded(AtomicU32::new(0));
    let (word, ready) = (&word, &ready);
    std::thread::scope(|scope| {
        let threads = cpus.map(|cpu| {
            scope.spawn(move || {
                let _ = Native::stay_on(cpu);
                ready.fetch_add(1, Ordering::AcqRel);
                while ready.load(Ordering::Acquire) < 2 {
                    spin_loop();
                }
                increments(word, INCREMENTS, between)
            })
        });
        let [first, second] = threads.map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        f64::midpoint(first, second)
    })
}

/// The pairs of CPUs to probe: the first with each other one.
pub(super) fn pair(cpus: &[usize], turn: usize) -> [usize; 2] {
    [cpus[0], cpus[1 + turn % (cpus.len() - 1)]]
}

/// The distances among the probes, each of which has its [`spaced_increments`] beside it: again and again the one around which
/// most of the rest lie.
fn placements(probes: &[(Probe, [f64; 2])]) -> Vec<Placement> {
    let mut left = probes.to_vec();
    let mut found = Vec::new();
    loop {
        let near = |center: f64| {
            left.iter()
                .filter(move |(probe, _)| within(probe.transfer, center, SAME_PLACE))
        };
        let densest = left.iter().max_by_key(|(probe, _)| near(probe.transfer).count());
        let Some(center) = densest.map(|(probe, _)| probe.transfer) else {
            break;
        };
        let of = |what: fn(&Probe) -> f64| {
            median(&near(center).map(|(probe, _)| what(probe)).collect::<Vec<f64>>())
        };
        let share = near(center).count() as f64 / probes.len() as f64;
        if share < SHARE_MIN {
            break;
        }
        found.push(Placement {
            transfer_ns: of(|probe| probe.transfer),
            siblings: of(|probe| probe.together / probe.alone) > 1.4,
            speed_beside_pauses: of(|probe| probe.alone / probe.beside_pauses).min(1.0),
            contended_ns: of(|probe| probe.contended),
            spaced_ns: [0, 1].map(|which| {
                median(
                    &near(center)
                        .map(|(_, spaced)| spaced[which])
                        .collect::<Vec<f64>>(),
                )
            }),
            departure: 0.0,
            owner_rmws: 0.0,
            share,
        });
        left.retain(|(probe, _)| !within(probe.transfer, center, SAME_PLACE * SAME_PLACE));
    }
    found
}

/// One burst of wake-ups: what each cost the waker, and how long after the call began the woken one was back, nanoseconds.
///
/// Short, and right after both CPUs were busy: threads that do nothing but sleep and wake each other for tens of milliseconds
/// are taken by the host of a virtual machine to need one CPU between them, and then a call lasts until the woken one sleeps
/// again (up to 58 microseconds instead of 10).
fn wake_ups(cpus: [usize; 2]) -> Vec<(f64, f64)> {
    const TURNS: u32 = 12;
    /// Between falling asleep and being woken: who waits for a latch sleeps no longer. After 1 microsecond the CPU is
    /// often not idle yet, after 300 it takes half as long again to come back as after 4.
    const ASLEEP: Duration = Duration::from_micros(4);
    let word = Padded(<Native as Machine>::U32::new(0));
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64;
    let (asleep, woken_at) = (Padded(AtomicU32::new(0)), Padded(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = Native::stay_on(cpus[1]);
            for turn in 0..TURNS {
                asleep.store(turn + 1, Ordering::Release);
                while word.load(Ordering::Acquire) == turn {
                    Native::futex_wait(&word, turn, None);
                }
                woken_at.store(now(), Ordering::Release);
            }
        });
        let waker = scope.spawn(|| {
            let _ = Native::stay_on(cpus[0]);
            let turn = |turn| {
                while asleep.load(Ordering::Acquire) <= turn {
                    spin_loop();
                }
                let rest = Instant::now();
                while rest.elapsed() < ASLEEP {
                    spin_loop();
                }
                woken_at.store(0, Ordering::Relaxed);
                let before = now();
                word.store(turn + 1, Ordering::Release);
                Native::futex_wake(&word, 1);
                let waker = now() - before;
                let woken = loop {
                    match woken_at.load(Ordering::Acquire) {
                        0 => spin_loop(),
                        at => break at,
                    }
                };
                (waker as f64, woken.saturating_sub(before) as f64)
            };
            (0..TURNS).map(turn).collect()
        });
        waker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Two threads on one CPU that give it away to each other: nanoseconds of a turn.
fn switching(cpu: usize) -> f64 {
    const TURNS: u32 = 3_000;
    let times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let _ = Native::stay_on(cpu);
                    Native::sleep(Duration::from_millis(2));
                    let before = Instant::now();
                    for _ in 0..TURNS {
                        Native::yield_now();
                    }
                    before.elapsed().as_secs_f64() * 1e9 / f64::from(2 * TURNS)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    median(&times)
}

/// Measures this host. Takes two or three seconds; other load makes the figures worthless.
pub fn calibrate() -> Result<Calibration, ModelError> {
    let mut machine = MachineModel::load("this")?;
    let cpus = Native::cpus_allowed().map_err(ModelError::Host)?;
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
    let syscall = yields.min(wake);
    let futex_part = wake - syscall;
    let mut measured = vec![
        ("coherence.store_hit", store),
        ("coherence.rmw_hit", rmw),
        ("coherence.pause", pause),
        ("coherence.fence", fence),
        ("os.clock", clock),
        ("os.syscall", syscall),
        ("os.futex", futex_part),
    ];
    let mut found = Vec::new();
    let (mut alone, mut spacings) = (0.0, [0.0; 2]);
    if cpus.len() > 1 && machine.cpus() > 1 {
        let between = SPACINGS.map(Section::calibrate);
        let increment = || {
            black_box(word.fetch_add(1, Ordering::AcqRel));
        };
        let without = time_of(50_000, increment);
        // So few steps do not take just what was asked for.
        spacings = between.map(|between| {
            let with = time_of(50_000, || {
                increment();
                between.work();
            });
            with - without
        });
        let (mut looks, mut woken) = (Vec::new(), Vec::new());
        for turn in 0..3 * PROBES {
            if looks.len() == PROBES {
                break;
            }
            let pair = pair(&cpus, turn);
            std::thread::sleep(Duration::from_millis(2));
            let before = probe(pair);
            let spaced = between.map(|between| spaced_increments(pair, between));
            let wake_ups = wake_ups(pair);
            let stayed = within(probe(pair).transfer, before.transfer, SAME_PLACE);
            if stayed && before.transfer < FARTHEST {
                looks.push((before, spaced));
                woken.extend(wake_ups);
            }
        }
        found = placements(&looks);
        alone = median(&looks.iter().map(|(probe, _)| probe.alone).collect::<Vec<_>>());
        let switch = (switching(cpus[0]) - syscall).max(0.0);
        measured.push(("os.switch", switch));
        if !woken.is_empty() {
            let (wakers, latencies): (Vec<f64>, Vec<f64>) = woken.into_iter().unzip();
            let (waker, latency) = (median(&wakers), median(&latencies));
            measured.push(("os.wake", (waker - wake).max(0.0)));
            measured.push(("os.idle_exit", (latency - wake - switch).max(0.0)));
        }
    }
    for (name, cost) in machine.costs_mut() {
        if let Some((_, nanoseconds)) = measured.iter().find(|(measured, _)| *measured == name) {
            *cost = rounded(*nanoseconds);
        }
    }
    for (name, _) in &measured {
        machine.sources.insert((*name).to_owned(), MEASURED.to_owned());
    }
    machine.description = machine
        .description
        .replace(" (costs of cloud-16 until calibrated)", ", calibrated");
    let mut calibration = Calibration {
        machine,
        measured,
        placements: found,
        cpus,
        alone,
    };
    for number in 0..calibration.placements.len() {
        let mut placement = calibration.placements[number];
        placement.departure = calibration.departure(&placement, spacings);
        placement.owner_rmws = calibration.owner_rmws(&placement);
        calibration.placements[number] = placement;
    }
    if let Some(most) = calibration.placements.first().copied() {
        let (all, topology) = (calibration.machine_of_pair(&most), &calibration.machine.topology);
        let mut machine = all.clone();
        if topology.sockets * topology.cores_per_socket * topology.threads_per_core > 2 {
            // More CPUs than the pair: the system knows how they lie.
            machine.topology = topology.clone();
        }
        let seen: Vec<String> = calibration
            .placements
            .iter()
            .map(|placement| format!("{} {:.0} %", placement.name(), placement.share * 100.0))
            .collect();
        machine.sources.insert(
            "placements".to_owned(),
            format!("{MEASURED}: {}", seen.join("; ")),
        );
        calibration.machine = machine;
    }
    calibration.machine.check()?;
    Ok(calibration)
}

const MEASURED: &str = "measured here by clearway simulate --calibrate";

fn rounded(nanoseconds: f64) -> f64 {
    (nanoseconds * 100.0).round() / 100.0
}

impl Calibration {
    /// `coherence.rmw_hit=5`: another cost than was measured, to see what comes of it.
    pub fn set(&mut self, setting: &str) -> Result<(), LabError> {
        Self::set_cost(&mut self.machine, setting)
    }

    /// Whether [`Self::set`] will take it, before anything has been measured.
    pub fn check_setting(setting: &str) -> Result<(), LabError> {
        Self::set_cost(&mut MachineModel::load("this")?, setting)
    }

    fn set_cost(machine: &mut MachineModel, setting: &str) -> Result<(), LabError> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let parsed = value.parse::<f64>().ok();
        let mut costs = machine.costs_mut();
        let Some((name, cost)) = costs.iter_mut().find(|(known, _)| *known == name) else {
            return Err(LabError::UnknownName {
                what: "cost",
                name: name.to_owned(),
                available: costs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            });
        };
        **cost = parsed.ok_or_else(|| LabError::BadNumber {
            what: "a cost",
            value: setting.to_owned(),
            must: "NAME=NUMBER",
        })?;
        let name = *name;
        machine.sources.insert(name.to_owned(), "set by hand".to_owned());
        Ok(machine.check()?)
    }

    /// How long a line stays with its owner cannot be measured by itself; how many increments with a little between them it is
    /// good for can. Of the parts from a fiftieth to the whole, the first with which the simulated increments are nearest to the
    /// measured ones.
    fn departure(&self, placement: &Placement, spacings_ns: [f64; 2]) -> f64 {
        let parts = (1..=50).map(|part| f64::from(part) / 50.0);
        nearest(parts, |departure| {
            let machine = self.machine_of_pair(&Placement {
                departure,
                ..*placement
            });
            let spaced = spacings_ns.iter().zip(placement.spaced_ns);
            spaced
                .map(|(spacing, measured)| off(contended_increment(&machine, *spacing), measured))
                .sum()
        })
    }

    /// Increments without anything between them are fewer on some CPUs than would end before the line leaves: nearby, two
    /// instead of five. Of all numbers, the first with which they come out as measured.
    fn owner_rmws(&self, placement: &Placement) -> f64 {
        let fifths = (5..30).map(|fifths| f64::from(fifths) / 5.0);
        let limits = std::iter::once(0.0).chain(fifths).chain((6..=40).map(f64::from));
        nearest(limits, |owner_rmws| {
            let machine = self.machine_of_pair(&Placement {
                owner_rmws,
                ..*placement
            });
            off(contended_increment(&machine, 0.0), placement.contended_ns)
        })
    }

    /// A machine of two CPUs that stand as `placement` says, with the other costs of this host.
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

/// How far two costs are apart: the logarithm of their ratio, without its sign.
fn off(simulated: f64, measured: f64) -> f64 {
    (simulated / measured).ln().abs()
}

/// The candidate with the least error; of equals the first.
fn nearest(candidates: impl Iterator<Item = f64>, error: impl Fn(f64) -> f64) -> f64 {
    candidates
        .map(|candidate| (error(candidate), candidate))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map_or(0.0, |(_, candidate)| candidate)
}

/// Nanoseconds of two simulated CPUs together for an increment of one line.
fn contended_increment(machine: &MachineModel, spacing_ns: f64) -> f64 {
    const INCREMENTS: u64 = 4_000;
    let mut simulation = Simulation::new(machine, 2, 1);
    let word = simulation.enter(|| Rc::new(Padded(<Simulated as Machine>::U64::new(0))));
    // From where the workers have been switched in.
    let spent = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let (word, spent) = (Rc::clone(&word), Rc::clone(&spent));
        simulation.spawn(move || {
            let began = clock_ns();
            for _ in 0..INCREMENTS {
                word.fetch_add(1, Ordering::AcqRel);
                charge_picoseconds((spacing_ns * 1e3) as u64);
            }
            spent.set(spent.get() + clock_ns() - began);
        });
    }
    match simulation.run() {
        Ok(_) => spent.get() as f64 / (4 * INCREMENTS) as f64,
        // Two loops that end cannot hang.
        Err(error) => unreachable!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(transfer: f64, together: f64) -> Probe {
        Probe {
            transfer,
            alone: 10.0,
            together,
            beside_pauses: 10.0,
            contended: 5.0,
        }
    }

    #[test]
    fn distances_are_told_apart_and_accidents_left_out() {
        let mut probes = Vec::new();
        for turn in 0..40 {
            probes.push((at(100.0 + f64::from(turn), 10.0), [30.0, 60.0]));
            probes.push((at(25.0 + f64::from(turn % 4), 10.0), [15.0, 30.0]));
            if turn % 4 == 0 {
                probes.push((at(10.0, 19.0), [9.0, 18.0]));
            }
        }
        probes.push((at(52.0, 10.0), [20.0, 20.0]));
        probes.push((at(4_000.0, 10.0), [900.0, 900.0]));
        let found = placements(&probes);
        let seen: Vec<(f64, bool)> = found
            .iter()
            .map(|placement| (placement.transfer_ns, placement.siblings))
            .collect();
        assert_eq!(seen.len(), 3, "{found:?}");
        assert!(
            seen.contains(&(10.0, true)) && seen.contains(&(26.5, false)),
            "{found:?}"
        );
        let spaced: Vec<[f64; 2]> = found.iter().map(|placement| placement.spaced_ns).collect();
        assert!(
            spaced.contains(&[30.0, 60.0]) && spaced.contains(&[9.0, 18.0]),
            "{found:?}"
        );
    }
}
