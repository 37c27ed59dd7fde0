//! Simulated accesses that one host core makes in a second: `cargo run --release -p clearway-sim --example speed`.

use std::alloc::System;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use clearway_machine::{AtomicWord, Machine, Padded, Work};
use clearway_sim::{LineAllocator, MachineModel, Simulated, SimulatedU64, Simulation};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

fn measure(what: &str, workers: usize, body: impl Fn(usize, &[Padded<SimulatedU64>]) + Copy + 'static) {
    let mut rates = Vec::new();
    for _ in 0..5 {
        let model = MachineModel::load("haswell-ex-4s").expect("a preset");
        let mut simulation = Simulation::new(&model, workers, 1);
        let words = simulation.enter(|| {
            let words = (0..workers).map(|_| Padded(SimulatedU64::new(0)));
            Rc::new(words.collect::<Vec<_>>())
        });
        for worker in 0..workers {
            let words = Rc::clone(&words);
            simulation.spawn(move || body(worker, &words));
        }
        let before = Instant::now();
        let report = simulation.run().expect("the program ends");
        rates.push(report.events as f64 / before.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    println!("{what:60} {:7.1} million events/s (median of 5)", rates[2]);
}

fn main() {
    measure("one worker, own line (never suspended)", 1, |me, words| {
        for _ in 0..4_000_000 {
            words[me].fetch_add(1, Relaxed);
        }
    });
    measure(
        "144 workers, own lines, work between (a switch each)",
        144,
        |me, words| {
            for _ in 0..20_000 {
                words[me].fetch_add(1, Relaxed);
                Simulated::charge(Work::Nanos(50));
            }
        },
    );
    measure("144 workers, one line", 144, |_, words| {
        for _ in 0..20_000 {
            words[0].fetch_add(1, Relaxed);
        }
    });
    measure("144 workers, 16 lines, half reads", 144, |me, words| {
        for round in 0..20_000 {
            let word = &words[(me * 7 + round) % 16];
            if round % 2 == 0 {
                word.load(Relaxed);
            } else {
                word.fetch_add(1, Relaxed);
            }
        }
    });
}
