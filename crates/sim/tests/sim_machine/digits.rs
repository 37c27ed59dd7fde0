//! The model's answers for each built-in machine stay as they are, to the last digit, until they are changed on
//! purpose.
//!
//! Figures in `docs/` come from the simulator, and no other test would notice that a queue got a little shorter or that a
//! preemption came a little later. `digits.txt` holds, for each machine, what a mixture of everything comes to: elapsed
//! time, the sum of all clocks after each step with what was read, and a digest of the report. It is made anew by
//!
//!     CLEARWAY_WRITE_DIGITS=1 cargo test -p clearway-sim --test sim_machine digits
//!
//! and then figures that rest on the model are to be measured again.

use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_machine::{AtomicWord, Half, Machine, Padded, Work};
use clearway_sim::{
    Latency, MachineModel, PRESETS, Simulated, SimulatedU32, SimulatedU64, Simulation, charge_drawn,
    client_round_trip, clock_ns, device, random_below,
};

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sim_machine/digits.txt");

const WORDS_A_LINE: usize = 16;

/// Memory that all workers use.
struct Shared {
    words: Vec<Padded<SimulatedU64>>,
    /// Neighbours, as of an array that is scanned.
    array: Vec<SimulatedU32>,
    /// Words that workers sleep at and poll.
    gates: Vec<Padded<SimulatedU32>>,
    halves: Padded<SimulatedU64>,
}

/// One of sixteen things; what it reads.
fn step(shared: &Shared, disk: &Latency, worker: u64) -> u64 {
    let word = &shared.words[random_below(shared.words.len() as u64) as usize];
    let gate = &shared.gates[random_below(shared.gates.len() as u64) as usize];
    match random_below(16) {
        0 => return word.load(Acquire),
        1 => word.store(worker, Release),
        2 | 3 => return word.fetch_add(1, Relaxed),
        4 => {
            return word
                .compare_exchange(worker, worker + 1, Acquire, Relaxed)
                .unwrap_or(7);
        }
        5 => return word.swap(worker, Relaxed),
        6 => {
            return shared
                .array
                .iter()
                .step_by(WORDS_A_LINE)
                .map(|word| u64::from(word.load(Relaxed)))
                .sum();
        }
        7 => shared.array[random_below(shared.array.len() as u64) as usize].store(worker as u32, Relaxed),
        8 => return Simulated::futex_wait(gate, gate.load(Relaxed), Some(Duration::from_micros(30))) as u64,
        9 => {
            gate.fetch_add(1, Relaxed);
            return Simulated::futex_wake(gate, 1 + random_below(3) as u32).into();
        }
        10 => {
            let seen = gate.load(Relaxed);
            for polls in 0..200 {
                if gate.load(Relaxed) != seen {
                    return polls;
                }
                Simulated::spin_hint();
            }
        }
        11 => Simulated::sleep(Duration::from_micros(random_below(100))),
        12 => Simulated::yield_now(),
        13 => device(disk),
        14 => client_round_trip(3_000),
        _ => {
            charge_drawn(disk);
            return Simulated::futex_wake_half(&shared.halves, Half::Low, 1).into();
        }
    }
    0
}

/// A line for one machine: more workers than it has CPUs, up to 160.
fn digits(machine: &MachineModel) -> String {
    let workers = (machine.cpus() as u64 * 3 / 2).min(160);
    let mut simulation = Simulation::new(machine, workers as usize, 5);
    let shared = simulation.enter(|| {
        Rc::new(Shared {
            words: (0..6).map(|_| Padded(SimulatedU64::new(0))).collect(),
            array: (0..64 * WORDS_A_LINE).map(|_| SimulatedU32::new(0)).collect(),
            gates: (0..3).map(|_| Padded(SimulatedU32::new(0))).collect(),
            halves: Padded(SimulatedU64::new(0)),
        })
    });
    simulation.name(shared.words.as_slice(), "words");
    simulation.name(shared.array.as_slice(), "array");
    simulation.name(shared.gates.as_slice(), "gates");
    let disk = Latency::try_from(vec![(0.0, 20.0), (0.9, 60.0), (1.0, 300.0)]).unwrap();
    let clocks = Rc::new(Cell::new(0_u64));
    for worker in 0..workers {
        let (shared, disk, clocks) = (Rc::clone(&shared), disk.clone(), Rc::clone(&clocks));
        simulation.spawn(move || {
            for _ in 0..24 {
                let read = step(&shared, &disk, worker);
                Simulated::charge(Work::Nanos(random_below(20_000)));
                shared.halves.fetch_add(read & 1, Relaxed);
                clocks.set(clocks.get() + clock_ns() + read % 1_000);
            }
        });
    }
    let report = simulation.run().unwrap();
    let text = serde_json::to_string(&report).unwrap();
    // FNV-1a: whatever tells two texts apart.
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!(
        "{} ns, clocks {}, report {digest:016x}",
        report.elapsed_ns,
        clocks.get()
    )
}

/// Machines as they are built in, and two with what none of them has.
fn machines() -> Vec<(String, MachineModel)> {
    let named = |(name, _): &(&str, &str)| (name.to_string(), MachineModel::load(name).unwrap());
    let mut machines: Vec<_> = PRESETS.iter().map(named).collect();
    let mut far = MachineModel::load("e5-2630v4-2s").unwrap();
    far.coherence.far_atomic = 9.4;
    machines.push(("e5-2630v4-2s with far atomics".to_owned(), far));
    let mut crowded = MachineModel::load("laptop").unwrap();
    crowded.topology.sockets = 1;
    crowded.topology.cores_per_socket = 2;
    machines.push(("laptop with two cores".to_owned(), crowded));
    machines
}

/// Mutations: most of those of cargo-mutants that no other test of this crate notices.
#[test]
fn digits_stay() {
    let mut found = String::new();
    for (name, machine) in machines() {
        writeln!(found, "{name}: {}", digits(&machine)).unwrap();
    }
    if std::env::var_os("CLEARWAY_WRITE_DIGITS").is_some() {
        std::fs::write(DIGITS, &found).unwrap();
    }
    let wanted = std::fs::read_to_string(DIGITS).unwrap();
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        assert_eq!(
            found, wanted,
            "the model says something else; see the top of this file"
        );
    }
    assert_eq!(found.lines().count(), wanted.lines().count());
}
