//! CPU time by name.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{Activity, MachineModel, Report, Simulated, Simulation, clock_ns, cpu_time_so_far};

use crate::{machine, seed, word};

/// One socket with this many cores of one thread.
fn small_machine(cores: usize) -> MachineModel {
    let mut model = machine("e5-2630v4-2s");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = cores;
    model.topology.threads_per_core = 1;
    model
}

fn timed<R>(name: &'static str, body: impl FnOnce() -> R) -> R {
    Simulated::begin_cpu_time(name);
    let result = body();
    Simulated::end_cpu_time(name);
    result
}

fn total_ns(report: &Report, name: &str) -> u64 {
    let times = report.cpu_times.iter().filter(|time| time.name == name);
    times.map(|time| time.total_ns).sum()
}

/// Three workers on two CPUs compute, sleep, poll, wake each other and are preempted, all of it under one name: together
/// that is all time of the CPUs that was not idle, but for the first switch to each.
///
/// Mutations that it should catch (`crates/sim/mutations/cpu_times.toml`): the switches back are left out; a worker's time
/// before its last switch is.
#[test]
fn what_is_not_idle_is_accounted_for() {
    let model = small_machine(2);
    let mut simulation = Simulation::new(&model, 3, seed());
    let (gate, counter) = simulation.enter(|| (word(0), word(0)));
    for worker in 0..3 {
        let (gate, counter) = (Rc::clone(&gate), Rc::clone(&counter));
        simulation.spawn(move || {
            timed("all", || {
                for round in 0..40 {
                    timed("work", || Simulated::charge(Work::Nanos(300_000)));
                    counter.fetch_add(1, Relaxed);
                    match (worker + round) % 3 {
                        0 => drop(Simulated::futex_wait(&gate, 0, Some(Duration::from_micros(200)))),
                        1 => drop(Simulated::futex_wake(&gate, 1)),
                        _ => (0..50).for_each(|_| Simulated::spin_hint()),
                    }
                }
                // What was charged last has been spent.
                Simulated::now();
            });
        });
    }
    let report = simulation.run().unwrap();
    let first_switches = 3 * (model.os.switch * 1e3) as u64;
    let account = report.account;
    let busy = account.total() - account.picoseconds(Activity::Idle) - first_switches;
    assert_eq!(total_ns(&report, "all"), busy / 1_000, "{report:?}");
    // 3 times 40 times 300 µs; a switch in between counts as well.
    let work = account.picoseconds(Activity::Work) / 1_000;
    assert_eq!(work, 36_000_000);
    let in_work = total_ns(&report, "work");
    assert!((work..work + work / 50).contains(&in_work), "{in_work}");
}

/// A worker sleeps for 5 ms until another wakes it. Mutation that it should catch: time counts by the clock.
#[test]
fn calls_that_sleep_and_wake_count_and_time_asleep_does_not() {
    let model = small_machine(2);
    let mut simulation = Simulation::new(&model, 2, seed());
    let gate = simulation.enter(|| word(0));
    let gate2 = Rc::clone(&gate);
    simulation.spawn(move || {
        timed("sleep", || Simulated::futex_wait(&gate, 0, None));
    });
    simulation.spawn(move || {
        Simulated::sleep(Duration::from_millis(5));
        timed("wake", || Simulated::futex_wake(&gate2, 1));
        timed("wake none", || Simulated::futex_wake(&gate2, 1));
    });
    let report = simulation.run().unwrap();
    let [sleep, wake, none] = ["sleep", "wake", "wake none"].map(|name| total_ns(&report, name) as f64);
    let os = &model.os;
    let call = os.syscall + os.futex;
    assert!((none - call).abs() <= 1.0, "{none}, not {call}");
    assert!((wake - none - os.wake).abs() <= 1.0, "{wake}");
    let switched = call + os.switch;
    // Beside that it fetches the word.
    assert!((switched..switched + 500.0).contains(&sleep), "{sleep}");
}

/// Mutation that it should catch: what has not ended is left out until it has.
#[test]
fn what_has_not_ended_counts_so_far() {
    let mut simulation = Simulation::new(&small_machine(2), 2, seed());
    let seen = Rc::new(Cell::new(0));
    let seen2 = Rc::clone(&seen);
    simulation.spawn(|| {
        for _ in 0..2 {
            timed("long", || {
                for _ in 0..100 {
                    Simulated::charge(Work::Nanos(1_000));
                    Simulated::now();
                }
            });
        }
    });
    simulation.spawn(move || {
        while clock_ns() < 150_000 {
            Simulated::charge(Work::Nanos(100));
            Simulated::now();
        }
        seen2.set(cpu_time_so_far("long"));
    });
    let report = simulation.run().unwrap();
    assert!((140_000..150_000).contains(&seen.get()), "{}", seen.get());
    assert!(total_ns(&report, "long") > 200_000);
    assert_eq!(report.cpu_times[0].count, 2);
}
