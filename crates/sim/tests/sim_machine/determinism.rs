//! The same seed gives the same bytes.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_latch::{LatchMode, LwLock, LwLockVariant};
use clearway_machine::{AtomicWord, Machine, Padded, Switch, Work};
use clearway_sim::{
    MachineModel, Report, Simulated, SimulatedU32, SimulatedU64, Simulation, client_round_trip, clock_ns,
    device, random_below,
};

use crate::{CLASS, machine, seed, word};

/// Everything the machine does, mixed by random numbers, without far atomics and with; returns all that came
/// out.
fn mixture(seed: u64) -> String {
    let near = machine("e5-2630v4-2s");
    let mut far = near.clone();
    far.coherence.far_atomic = 9.4;
    mixture_on(&near, seed) + &mixture_on(&far, seed)
}

fn mixture_on(machine: &MachineModel, seed: u64) -> String {
    let mut simulation = Simulation::new(machine, 128, seed);
    simulation.trace(0, 200_000);
    let latches = simulation.enter(|| {
        let latch = |number: usize| Padded(LwLock::<Simulated>::new(&CLASS, LwLockVariant::ALL[number % 2]));
        Rc::new((0..4).map(latch).collect::<Vec<_>>())
    });
    simulation.name(latches.as_slice(), "latches");
    let log = Rc::new(RefCell::new(String::new()));
    let disk = clearway_sim::Latency::try_from(vec![(0.0, 20.0), (0.9, 60.0), (1.0, 300.0)]).unwrap();
    for worker in 0..90 {
        let (latches, log, disk) = (Rc::clone(&latches), Rc::clone(&log), disk.clone());
        simulation.spawn(move || {
            for round in 0..12 {
                let mode = if random_below(3) == 0 {
                    LatchMode::Exclusive
                } else {
                    LatchMode::Shared
                };
                let latch = &latches[random_below(4) as usize];
                latch.acquire(mode);
                Simulated::charge(Work::Nanos(100 + random_below(2_000)));
                // SAFETY: acquired above, in that mode.
                unsafe { latch.release(mode) };
                // Allocations that come and go, so that the allocator's reuse of memory would show.
                let scratch = Box::new([const { Cell::new(0_u8) }; 40]);
                let counter = Box::new(SimulatedU64::new(0));
                scratch[0].set(1);
                counter.fetch_add(1, Relaxed);
                counter.add(1);
                match random_below(6) {
                    0 => device(&disk),
                    1 => Simulated::sleep(Duration::from_micros(random_below(200))),
                    2 => client_round_trip(3_000),
                    3 => Simulated::yield_now(),
                    _ => Simulated::charge(Work::Nanos(random_below(30_000))),
                }
                writeln!(log.borrow_mut(), "{worker} {round} {}", clock_ns()).unwrap();
            }
        });
    }
    let report = simulation.run().unwrap();
    let mut trace = Vec::new();
    simulation.take_trace().unwrap().write(&mut trace).unwrap();
    let log = log.borrow().clone();
    format!(
        "{log}{}\n{}",
        serde_json::to_string(&report).unwrap(),
        String::from_utf8(trace).unwrap()
    )
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = mixture(5);
    // Other things on the heap, so that the second run finds a different one.
    let _clutter: Vec<Vec<u8>> = (1..500).map(|size| vec![1; size * 7]).collect();
    assert!(first == mixture(5), "two runs differ");
    assert!(first != mixture(6), "the seed has no effect");
}

#[test]
fn two_host_threads_do_not_disturb_each_other() {
    let alone = mixture(5);
    let threads: Vec<_> = (5..7)
        .map(|seed| std::thread::spawn(move || mixture(seed)))
        .collect();
    let mut beside = threads.into_iter().map(|thread| thread.join().unwrap());
    assert!(alone == beside.next().unwrap(), "a run beside another differs");
    assert!(mixture(6) == beside.next().unwrap());
}

/// Runs this test binary again for one test that prints a mixture, perhaps without address randomisation.
fn child(fixed_layout: bool) -> Option<Vec<u8>> {
    let this = std::env::current_exe().unwrap();
    let mut command = if fixed_layout {
        let mut command = std::process::Command::new("setarch");
        command.arg("-R").arg(this);
        command
    } else {
        std::process::Command::new(this)
    };
    let output = command
        .args([
            "--ignored",
            "--exact",
            "determinism::prints_a_mixture",
            "--nocapture",
            "--test-threads=1",
        ])
        // The length of the environment moves the stack.
        .env(
            "CLEARWAY_PADDING",
            "x".repeat(if fixed_layout { 1 } else { 2_000 }),
        )
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[test]
#[ignore = "run by the_layout_of_memory_does_not_matter"]
fn prints_a_mixture() {
    println!("{}", mixture(5));
}

/// Without the time that the test harness prints.
fn content(output: &[u8]) -> String {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let lines = text.lines().filter(|line| !line.contains("finished in"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_layout_of_memory_does_not_matter() {
    let random = child(false).expect("the test binary runs itself");
    assert!(random.len() > 100_000, "the child printed {} bytes", random.len());
    assert!(
        content(&random) == content(&child(false).unwrap()),
        "two random layouts differ"
    );
    match child(true) {
        Some(fixed) => assert!(content(&random) == content(&fixed), "a fixed layout differs"),
        None => println!("setarch -R is not permitted here; only random layouts were compared"),
    }
}

/// Workers that poll a word that another increments now and then; with or without promises.
fn spinners(
    name: &str,
    increment: fn(&SimulatedU32),
    promise: bool,
    workers: u64,
) -> (Vec<(u64, u32)>, Report) {
    let mut simulation = Simulation::new(&machine(name), 64, seed());
    let flag = simulation.enter(|| word(0));
    let log = Rc::new(RefCell::new(Vec::new()));
    for worker in 0..workers {
        let (flag, log) = (Rc::clone(&flag), Rc::clone(&log));
        simulation.spawn(move || {
            let mut polls = 0;
            for target in 1..20 {
                Simulated::charge(Work::Nanos(worker * 37));
                let mut left = 1_000_u32;
                while flag.load(Relaxed) < target {
                    polls += 1;
                    left -= 1;
                    if left == 0 {
                        // Something else after a fixed number of polls.
                        Simulated::charge(Work::Nanos(777));
                        left = 1_000;
                    } else {
                        Simulated::spin_hint_of(if promise { left - 1 } else { 0 });
                    }
                }
            }
            log.borrow_mut().push((clock_ns(), polls));
        });
    }
    simulation.spawn(move || {
        for value in 1..20 {
            Simulated::charge(Work::Nanos(9_000 + 100 * value));
            increment(&flag);
        }
    });
    let report = simulation.run().unwrap();
    let log = log.borrow().clone();
    (log, report)
}

#[test]
fn skipping_polls_changes_nothing() {
    type Write = fn(&SimulatedU32);
    let store: Write = |word| {
        let before = word.load(Relaxed);
        word.store(before + 1, Relaxed);
    };
    // Its read-modify-write waits for the store before it. Mutation: settle once more between such an access
    // and what it does to the word (after `suspend` in `access`) → fails: spinners see the new version of the
    // line with the old value in it.
    let store_and_add: Write = |word| {
        let before = word.load(Relaxed);
        word.store(before, Relaxed);
        word.fetch_add(1, Relaxed);
    };
    let writers: [(&str, Write); 5] = [
        ("e5-2630v4-2s", store),
        ("e5-2630v4-2s", store_and_add),
        ("graviton-2", store),
        ("graviton-2", |word| _ = word.fetch_add(1, Relaxed)),
        ("graviton-2", |word| word.add(1)),
    ];
    for (number, (name, write)) in writers.into_iter().enumerate() {
        for workers in [1, 2, 3, 5, 9, 12, 19, 25, 30] {
            let (stepped, _) = spinners(name, write, false, workers);
            let (skipped, _) = spinners(name, write, true, workers);
            assert_eq!(
                stepped, skipped,
                "{workers} spinners, writer {number}: when they ended and how often they polled"
            );
        }
    }
    let (stepped, slow) = spinners("e5-2630v4-2s", store, false, 30);
    let (skipped, fast) = spinners("e5-2630v4-2s", store, true, 30);
    assert_eq!(
        stepped, skipped,
        "when the spinners ended and how often they polled"
    );
    assert_eq!(slow.account, fast.account);
    assert_eq!(slow.elapsed_ns, fast.elapsed_ns);
    assert!(
        fast.events * 10 < slow.events,
        "{} events against {}",
        fast.events,
        slow.events
    );
}
