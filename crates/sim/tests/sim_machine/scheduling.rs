//! CPUs and sleeps.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, FutexOutcome, Machine, Work};
use clearway_sim::{Activity, Simulated, Simulation, clock_ns};

use crate::{machine, seed, word};

#[test]
fn more_workers_than_cpus_share_them() {
    let mut model = machine("e5-2630v4-2s");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = 2;
    model.topology.threads_per_core = 1;
    let mut simulation = Simulation::new(&model, 6, seed());
    let ends = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..6 {
        let ends = Rc::clone(&ends);
        simulation.spawn(move || {
            for _ in 0..10 {
                Simulated::charge(Work::Nanos(10_000_000));
                // An event, so that the charge has been spent.
                Simulated::now();
            }
            ends.borrow_mut().push(clock_ns() / 1_000_000);
        });
    }
    let report = simulation.run().unwrap();
    // 600 ms of work on 2 CPUs, in slices, so all end near the end.
    assert!(
        (300..310).contains(&(report.elapsed_ns / 1_000_000)),
        "{report:?}"
    );
    assert!(ends.borrow().iter().all(|end| *end > 250), "{:?}", ends.borrow());
    assert!(report.account.share(Activity::Work) > 0.98);
    let work_ms = report.account.picoseconds(Activity::Work) / 1_000_000_000;
    assert_eq!(work_ms, 600, "what a preemption cuts off is spent later");
}

#[test]
fn futexes_time_out_and_wake() {
    let mut simulation = Simulation::new(&machine("laptop"), 3, seed());
    let (never, posted) = simulation.enter(|| (word(0), word(0)));
    let posted2 = Rc::clone(&posted);
    simulation.spawn(move || {
        let outcome = Simulated::futex_wait(&never, 0, Some(Duration::from_millis(2)));
        assert_eq!(outcome, FutexOutcome::TimedOut);
        assert!((2_000_000..2_200_000).contains(&clock_ns()), "{}", clock_ns());
        assert_eq!(Simulated::futex_wait(&never, 1, None), FutexOutcome::Changed);
    });
    simulation.spawn(move || {
        while posted.load(Relaxed) == 0 {
            Simulated::futex_wait(&posted, 0, None);
        }
        assert!(clock_ns() > 1_000_000);
    });
    simulation.spawn(move || {
        Simulated::sleep(Duration::from_millis(1));
        posted2.store(1, Relaxed);
        assert_eq!(Simulated::futex_wake(&posted2, 10), 1);
    });
    simulation.run().unwrap();
}
