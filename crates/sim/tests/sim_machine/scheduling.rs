//! CPUs and sleeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, FutexOutcome, Machine, Work};
use clearway_sim::{
    Activity, Simulated, Simulation, WorkerTimes, clock_ns, other_program_work, worker_times,
};

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

/// Two workers on one CPU sleep for 5 ms and then work for 10 ms each. Mutation, seen caught: leave out what a worker has run
/// since it got its CPU.
#[test]
fn a_worker_knows_where_its_time_went() {
    let mut model = machine("e5-2630v4-2s");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = 1;
    model.topology.threads_per_core = 1;
    let mut simulation = Simulation::new(&model, 2, seed());
    let times = Rc::new(RefCell::new(Vec::<WorkerTimes>::new()));
    for _ in 0..2 {
        let times = Rc::clone(&times);
        simulation.spawn(move || {
            Simulated::sleep(Duration::from_millis(5));
            for _ in 0..100 {
                Simulated::charge(Work::Nanos(100_000));
                Simulated::now();
            }
            times.borrow_mut().push(worker_times());
        });
    }
    simulation.run().unwrap();
    for times in times.borrow().iter() {
        assert!((10_000_000..10_100_000).contains(&times.on_cpu_ns), "{times:?}");
        assert!((5_000_000..5_200_000).contains(&times.asleep_ns), "{times:?}");
    }
    let last = times.borrow()[1];
    let without_cpu = last.clock_ns - last.on_cpu_ns - last.asleep_ns;
    assert!((9_800_000..10_300_000).contains(&without_cpu), "{last:?}");
}

/// Yields of two workers that only yield, until a third on their CPU, which has run for longer than they have, is
/// through with 300 µs of work.
fn yields_beside_work(yield_goes_last: bool) -> u64 {
    let mut model = machine("laptop");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = 1;
    model.topology.threads_per_core = 1;
    model.topology.cores_per_cluster = None;
    model.os.yield_goes_last = yield_goes_last;
    let mut simulation = Simulation::new(&model, 3, seed());
    let done = simulation.enter(|| word(0));
    let (done2, yields) = (Rc::clone(&done), Rc::new(Cell::new(0)));
    simulation.spawn(move || {
        Simulated::charge(Work::Nanos(1_000_000));
        for _ in 0..30 {
            Simulated::charge(Work::Nanos(10_000));
            Simulated::yield_now();
        }
        done2.store(1, Relaxed);
    });
    for _ in 0..2 {
        let (done, yields) = (Rc::clone(&done), Rc::clone(&yields));
        simulation.spawn(move || {
            while done.load(Relaxed) == 0 {
                Simulated::yield_now();
                yields.set(yields.get() + 1);
            }
        });
    }
    simulation.run().unwrap();
    yields.get()
}

#[test]
fn a_yield_goes_last_where_the_kernel_says_so() {
    let (by_runtime, last) = (yields_beside_work(false), yields_beside_work(true));
    // Each of the 30 rounds lets both yield once, and the first of each comes before the work.
    assert!((55..=65).contains(&last), "{last}");
    // By virtual runtime the two take turns until they have run for as long as the third.
    assert!(by_runtime > 3 * last, "{by_runtime}, {last}");
}

/// Milliseconds in which a worker sleeps for a millisecond fifty times, on a CPU that another program wants all the time.
fn sleeps_beside_a_loop(wakeup_preemption: bool) -> u64 {
    let mut model = machine("laptop");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = 1;
    model.topology.threads_per_core = 1;
    model.topology.cores_per_cluster = None;
    model.os.wakeup_preemption = wakeup_preemption;
    let mut simulation = Simulation::new(&model, 2, seed());
    let ended = Rc::new(Cell::new(false));
    let has_ended = Rc::clone(&ended);
    simulation.spawn(move || {
        for _ in 0..50 {
            Simulated::sleep(Duration::from_millis(1));
        }
        ended.set(true);
    });
    simulation.spawn(move || {
        while !has_ended.get() {
            other_program_work(1_000_000);
        }
    });
    let report = simulation.run().unwrap();
    assert!(report.account.share(Activity::OtherPrograms) > 0.8, "{report:?}");
    report.elapsed_ns / 1_000_000
}

/// The slice of two threads is 12 ms.
#[test]
fn without_preemption_at_wake_ups_a_slice_is_waited_out() {
    let (with, without) = (sleeps_beside_a_loop(true), sleeps_beside_a_loop(false));
    assert!((50..100).contains(&with), "{with} ms");
    assert!((550..650).contains(&without), "{without} ms");
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
