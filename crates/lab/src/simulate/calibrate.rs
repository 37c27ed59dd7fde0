//! Measuring this host's costs: what a few atomic instructions, pauses and system calls take here.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clearway_machine::{AtomicWord, Machine, Native, Padded};
use clearway_sim::{MachineModel, ModelError};

/// This machine with its costs measured.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// The description, ready to be written to a file.
    pub machine: MachineModel,
    /// Names of what was measured, with nanoseconds.
    pub measured: Vec<(&'static str, f64)>,
}

const ROUNDS: usize = 7;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median nanoseconds of one call of `step`.
fn time_of(steps: u32, mut step: impl FnMut()) -> f64 {
    median(
        (0..ROUNDS)
            .map(|_| {
                let before = Instant::now();
                for _ in 0..steps {
                    step();
                }
                before.elapsed().as_secs_f64() * 1e9 / f64::from(steps)
            })
            .collect(),
    )
}

/// Half of a round trip of a value between two threads by compare-and-swap.
fn ping_pong() -> f64 {
    const TRIPS: u64 = 20_000;
    median(
        (0..ROUNDS)
            .map(|_| {
                let word = Padded(AtomicU64::new(0));
                let started = AtomicBool::new(false);
                let turn = |mine: u64| {
                    for trip in 0..TRIPS {
                        let (from, to) = (2 * trip + mine, 2 * trip + mine + 1);
                        while word
                            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                            .is_err()
                        {
                            // CAS alone, as core-to-core matrices are made.
                        }
                    }
                };
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        started.store(true, Ordering::Release);
                        turn(1);
                    });
                    while !started.load(Ordering::Acquire) {
                        spin_loop();
                    }
                    let before = Instant::now();
                    turn(0);
                    before.elapsed().as_secs_f64() * 1e9 / (2 * TRIPS) as f64
                })
            })
            .collect(),
    )
}

/// Measures this host. Takes about a second; other load makes the figures worthless.
pub fn calibrate() -> Result<Calibration, ModelError> {
    let mut machine = MachineModel::load("this")?;
    let word = <Native as Machine>::U64::new(0);
    let futex = <Native as Machine>::U32::new(0);
    let rmw = time_of(200_000, || {
        black_box(word.fetch_add(1, Ordering::AcqRel));
    });
    let pause = time_of(200_000, spin_loop);
    let fence = time_of(200_000, || Native::fence(Ordering::SeqCst));
    let clock = time_of(100_000, || {
        black_box(Native::now());
    });
    let wake = time_of(20_000, || {
        black_box(Native::futex_wake(&futex, 1));
    });
    let yields = time_of(20_000, Native::yield_now);
    let mut measured = vec![
        ("coherence.rmw_hit", rmw),
        ("coherence.pause", pause),
        ("coherence.fence", fence),
        ("os.clock", clock),
        ("os.syscall", yields.min(wake)),
        ("os.futex", (wake - yields.min(wake)).max(0.0)),
    ];
    if machine.cpus() > 1 {
        let transfer = ping_pong();
        measured.push(("coherence.cluster", transfer));
        measured.push(("coherence.socket", transfer));
    }
    for (name, cost) in machine.costs_mut() {
        if let Some((_, nanoseconds)) = measured.iter().find(|(measured, _)| *measured == name) {
            *cost = (nanoseconds * 100.0).round() / 100.0;
        }
    }
    for (name, _) in &measured {
        machine.sources.insert(
            (*name).to_owned(),
            "measured here by clearway simulate --calibrate".to_owned(),
        );
    }
    machine.description = machine
        .description
        .replace(" (costs of cloud-16 until calibrated)", ", calibrated");
    machine.check()?;
    Ok(Calibration { machine, measured })
}
