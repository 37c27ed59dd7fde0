//! The simulated machine itself: memory, time, scheduling, determinism, errors. A file a subject.

use std::alloc::System;
use std::rc::Rc;

use clearway_latch::LatchClass;
use clearway_machine::{AtomicWord, Padded, WaitEvent};
use clearway_sim::{LineAllocator, MachineModel, SimulatedU32};

mod coherence;
mod cpu_times;
mod determinism;
mod digits;
mod errors;
mod far_atomics;
mod hardware_threads;
mod memory_order;
mod scheduling;
mod stores;
mod ticks;
mod trace;

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

static CLASS: LatchClass = LatchClass::new("Test", WaitEvent::UserLatch, 0);

fn machine(name: &str) -> MachineModel {
    MachineModel::load(name).unwrap()
}

fn seed() -> u64 {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    println!("SEED={seed}");
    seed
}

fn word(value: u32) -> Rc<Padded<SimulatedU32>> {
    Rc::new(Padded(SimulatedU32::new(value)))
}
