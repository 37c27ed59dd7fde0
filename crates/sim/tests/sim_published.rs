//! Published figures of single operations and of contended lines, against the simulation: the "micro" part of
//! docs/simulator.md. `cargo test --release -p clearway-sim --test sim_published -- --nocapture` prints the
//! table.
//!
//! | part | what goes in | what it checks |
//! | --- | --- | --- |
//! | one operation | the price of one transfer by distance | that the model charges it to the right accesses |
//! | one far atomic | how long it occupies the home, from one row | that this is what a line's throughput hangs on |
//! | one contended line | nothing of what is compared | queueing, failed compare-and-swaps, how long each core has the line |
//!
//! The numbers that were chosen with this table in sight are `coherence.departure`, how long an owner has a
//! line that others wait for, and `coherence.far_atomic` of graviton-2, which is the row among the inputs. A
//! departure of 1/3, because a transfer is three messages, is every machine's (from 0.27 to 0.34 the same
//! rows are held; at 0.25 Graviton's compare-and-swap loops change sides, all four) but that of the clients
//! with one ring: there a request that waits is answered as soon as the locked instruction is over (0.01 to
//! 0.05 give the same rows). That was chosen by Skylake's compare-and-swap loops; those of Ice Lake are the
//! check. Rows beyond 25 % stay in the table and say what is known of them. Mutation: let a hit of the owner
//! count that does not end before the line leaves (drop `leaves_before_done` in `coherence`) → fails: the
//! rows of Skylake and Ice Lake are 44 to 72 % off. The same for loads (drop the look at departures in
//! `issue_load`) → fails: the compare-and-swap loops of two threads are 26 and 37 % off.
//!
//! # Sources
//! - SOSP'13: David, Guerraoui, Trigonakis, "Everything you always wanted to know about synchronization",
//!   table 2.
//! - matrix: the repository nviennot/core-to-core-latency, half of a CAS round trip, medians.
//! - hierarchy: travisdowns/concurrency-hierarchy-bench, results/{skl,icl,g2-16}/combined.csv: threads on
//!   cores of their own, each increments one counter for 10 ms; medians of 15 trials, divided by the threads.
//!   The add is relaxed and no code uses its result; the compare-and-swap is sequentially consistent. Its
//!   fourth machine, g1-16, makes its atomics of load-exclusive and store-exclusive, which are not modelled.
//! - folly: the results at the end of folly/synchronization/test/SmallLocksBenchmark.cpp (2 × E5-2680 v4).
//!   All 56 hardware threads run; thread `t` changes what it shares with the others of the same `t % groups`,
//!   and then works about 600 ns: one word (`atomic_fetch_xor`, `atomic_cas`) or five on lines of their own,
//!   one after the other (`atomics_fetch_add`). The figure is time per iteration divided by the threads of a
//!   group. x86 has no instruction for a `fetch_xor` whose result is used: compilers make it a load and a
//!   loop of `lock cmpxchg`, the same as `atomic_cas` is. So the source has measured one program twice, up to
//!   2.1 times apart, and what is held is 25 % around what lies between its two figures.

use std::alloc::System;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, Padded, Work};
use clearway_sim::{
    LineAllocator, MachineModel, Simulated, SimulatedU64, Simulation, clock_ns, random_below,
};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

const TOLERANCE: f64 = 0.25;

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Load,
    Store,
    Cas,
    FetchAdd,
    Swap,
}
use Operation::{Cas, FetchAdd, Load, Store, Swap};

/// Nanoseconds of one instruction by `reader` on a line that `owner` has just modified; both are places in
/// the order in which workers are put on CPUs.
fn one_operation(machine: &str, owner: usize, reader: usize, operation: Operation) -> f64 {
    const TURNS: u64 = 200;
    let model = MachineModel::load(machine).unwrap();
    let workers = owner.max(reader) + 1;
    let mut simulation = Simulation::new(&model, workers, 1);
    let word = simulation.enter(|| Rc::new(Padded(SimulatedU64::new(0))));
    let spent = Rc::new(Cell::new(0_u64));
    for worker in 0..workers {
        let (word, spent) = (Rc::clone(&word), Rc::clone(&spent));
        simulation.spawn(move || {
            // All stay, so that none moves to another CPU.
            let start = clock_ns();
            let until = |at: u64| Simulated::charge(Work::Nanos((start + at).saturating_sub(clock_ns())));
            for turn in 0..TURNS {
                if worker == owner {
                    until(10_000 * turn + 1_000);
                    word.fetch_add(1, AcqRel);
                } else if worker == reader {
                    until(10_000 * turn + 6_000);
                    Simulated::fence(SeqCst);
                    let before = clock_ns();
                    match operation {
                        Load => drop(word.load(Relaxed)),
                        // With what makes it visible, as the published figure has it.
                        Store => word.store(1, SeqCst),
                        Cas => drop(word.compare_exchange(0, 1, AcqRel, Relaxed)),
                        FetchAdd => drop(word.fetch_add(1, AcqRel)),
                        Swap => drop(word.swap(1, AcqRel)),
                    }
                    spent.set(spent.get() + clock_ns() - before);
                }
            }
            until(10_000 * TURNS);
            Simulated::now();
        });
    }
    simulation.run().unwrap();
    spent.get() as f64 / TURNS as f64
}

/// Changes the word as the benchmarks' instructions do.
fn change(word: &SimulatedU64, operation: Operation) {
    if operation == FetchAdd {
        word.add(1);
        return;
    }
    let mut seen = word.load(Relaxed);
    while let Err(found) = word.compare_exchange(seen, seen + 1, SeqCst, Relaxed) {
        seen = found;
    }
}

/// The hierarchy benchmark: nanoseconds of the whole machine per increment.
fn counting(model: &MachineModel, threads: usize, operation: Operation) -> f64 {
    let mut simulation = Simulation::new(model, threads, 1);
    let word = simulation.enter(|| Rc::new(Padded(SimulatedU64::new(0))));
    let done = Rc::new(Cell::new(0_u64));
    for _ in 0..threads {
        let (word, done) = (Rc::clone(&word), Rc::clone(&done));
        simulation.spawn(move || {
            Simulated::charge(Work::Nanos(random_below(1_000)));
            while clock_ns() < 1_000_000 {
                for _ in 0..10 {
                    change(&word, operation);
                }
                done.set(done.get() + 10);
            }
        });
    }
    let report = simulation.run().unwrap();
    report.elapsed_ns as f64 / done.get() as f64
}

/// One machine of the hierarchy benchmark: its transfer by the matrix, its own one-thread figure of an atomic
/// add.
fn client(cores: usize, transfer: f64, rmw: f64) -> MachineModel {
    let mut model = MachineModel::load("laptop").unwrap();
    model.topology.sockets = 1;
    model.topology.cores_per_socket = cores;
    model.topology.cores_per_cluster = None;
    model.topology.threads_per_core = 1;
    model.coherence.cluster = transfer;
    model.coherence.socket = transfer;
    model.coherence.rmw_hit = rmw;
    model
}

/// The folly benchmark's `atomic_cas`, and `atomic_fetch_xor`.
fn sharing(groups: usize) -> f64 {
    folly(groups, 1, Cas)
}

/// The folly benchmark's `atomics_fetch_add`.
fn adding(groups: usize) -> f64 {
    folly(groups, 5, FetchAdd)
}

/// The folly benchmark: time per iteration divided by the threads of a group.
fn folly(groups: usize, lines: usize, operation: Operation) -> f64 {
    const TURNS: u64 = 1_000;
    // Measured with both hardware threads of each core busy, so not to be slowed once more.
    const WORK: u64 = 597;
    let mut model = MachineModel::load("e5-2630v4-2s").unwrap();
    model.topology.cores_per_socket = 14;
    model.os.smt_speed = 1.0;
    let threads = model.cpus();
    let mut simulation = Simulation::new(&model, threads, 1);
    let all: Vec<_> = simulation.enter(|| {
        let words = || (0..lines).map(|_| Padded(SimulatedU64::new(0)));
        (0..groups)
            .map(|_| Rc::new(words().collect::<Vec<_>>()))
            .collect()
    });
    for thread in 0..threads {
        let words = Rc::clone(&all[thread % groups]);
        simulation.spawn(move || {
            for _ in 0..TURNS {
                for word in words.iter() {
                    change(word, operation);
                }
                Simulated::charge(Work::Nanos(WORK * 9 / 10 + random_below(WORK / 5 + 1)));
            }
        });
    }
    let report = simulation.run().unwrap();
    report.elapsed_ns as f64 * groups as f64 / (TURNS * threads as u64) as f64
}

struct Table {
    wrong: Vec<String>,
    held: usize,
}

impl Table {
    /// A row that must be within 25 %.
    fn row(&mut self, what: &str, published: f64, simulated: f64) {
        self.held += 1;
        if self.print(what, published, simulated, "").abs() > TOLERANCE {
            self.wrong.push(what.to_owned());
        }
    }

    /// One program that was published twice, under two names: it must be within 25 % of what lies between.
    fn row_of_two(&mut self, what: [&str; 2], published: [f64; 2], simulated: f64) {
        self.held += 1;
        let errors = [0, 1].map(|one| self.print(what[one], published[one], simulated, "[3]"));
        let between = errors[0].signum() != errors[1].signum();
        if !between && errors[0].abs().min(errors[1].abs()) > TOLERANCE {
            self.wrong.push(what.concat());
        }
    }

    /// A row that is known to be off, and why.
    fn off(&mut self, what: &str, published: f64, simulated: f64, why: &str) {
        if self.print(what, published, simulated, why).abs() <= TOLERANCE {
            self.wrong.push(format!(
                "{what} (agrees now: hold it, and mend docs/simulator.md)"
            ));
        }
    }

    fn print(&self, what: &str, published: f64, simulated: f64, why: &str) -> f64 {
        let error = simulated / published - 1.0;
        println!(
            "{what:58} {published:8.1} ns {simulated:8.1} ns {:+6.0}%  {why}",
            error * 100.0
        );
        error
    }
}

/// One operation on the eight sockets of a Westmere-EX.
fn westmere(reader: usize, operation: Operation) -> f64 {
    one_operation("westmere-ex-8s", 0, reader, operation)
}

/// Nanoseconds of cycles of the Westmere-EX.
fn cycles(cycles: f64) -> f64 {
    cycles / 2.13
}

fn graviton(threads: usize, operation: Operation) -> f64 {
    let model = MachineModel::load("graviton-2").unwrap();
    counting(&model, threads, operation)
}

fn ice_lake(threads: usize, operation: Operation) -> f64 {
    counting(&client(4, 16.3, 6.1), threads, operation)
}

fn folly_name(operation: &str, threads: usize) -> String {
    format!("2 x E5-2680 v4 (folly): {operation}, {threads} threads a line")
}

/// Rows of the matrices and of one increment: the model is given them.
fn single_operations_that_are_inputs(table: &mut Table) {
    // Workers go to cores of alternating sockets first, then to second hardware threads: on two sockets of
    // ten cores workers 0 and 2 share a socket, 0 and 1 do not, 0 and 20 share a core.
    println!("-- one operation, inputs: the model must charge what it was given");
    let e5 = |reader, operation| one_operation("e5-2630v4-2s", 0, reader, operation);
    table.row("E5 v4 (matrix): CAS, same core", 8.0, e5(20, Cas));
    table.row("E5 v4 (matrix): CAS, same socket", 45.0, e5(2, Cas));
    table.row("E5 v4 (matrix): CAS, other socket", 123.0, e5(1, Cas));
    let arm = |reader, operation| one_operation("arm-2s", 0, reader, operation);
    table.row("Kunpeng 920 (matrix): CAS, same die", 36.0, arm(2, Cas));
    table.row("Kunpeng 920 (matrix): CAS, other die", 80.0, arm(64, Cas));
    let epyc = one_operation("cloud-16", 0, 1, Cas);
    table.row("EPYC 7763 (matrix): CAS, same CCX", 27.0, epyc);
    table.row(
        "Westmere-EX (SOSP'13): CAS, same socket",
        cycles(120.0),
        westmere(8, Cas),
    );
    table.row(
        "Westmere-EX (SOSP'13): CAS, one hop",
        cycles(324.0),
        westmere(1, Cas),
    );
    table.row(
        "Westmere-EX (SOSP'13): CAS, two hops",
        cycles(430.0),
        westmere(3, Cas),
    );

    table.row(
        "Graviton 2 (hierarchy): fetch_add, 16 threads",
        9.4,
        graviton(16, FetchAdd),
    );

    // No matrix of this machine is published; what an increment of two threads takes is one transfer.
    table.row(
        "Ice Lake (hierarchy): fetch_add, 2 threads",
        16.4,
        ice_lake(2, FetchAdd),
    );
}

/// Rows of one operation that the model is not given.
fn single_operations(table: &mut Table) {
    println!("-- one operation, not inputs");
    for (what, reader, load, store, atomic) in [
        ("same socket", 8, 109.0, 115.0, 120.0),
        ("one hop", 1, 289.0, 320.0, 324.0),
    ] {
        let name = |operation: &str| format!("Westmere-EX (SOSP'13): {operation}, {what}");
        table.row(&name("load"), cycles(load), westmere(reader, Load));
        table.row(&name("store"), cycles(store), westmere(reader, Store));
        // The paper finds CAS, fetch_add and swap alike.
        table.row(&name("fetch_add"), cycles(atomic), westmere(reader, FetchAdd));
        table.row(&name("swap"), cycles(atomic), westmere(reader, Swap));
    }
}

/// Rows of threads that change one line, of which the model is given nothing.
fn one_contended_line(table: &mut Table) {
    println!("-- one contended line, nothing of it an input");
    let skylake = client(4, 20.0, 7.0);
    for (threads, add) in [(2, 22.0), (3, 23.3), (4, 24.1)] {
        let what = format!("Skylake i7-6700HQ (hierarchy): fetch_add, {threads} threads");
        table.row(&what, add, counting(&skylake, threads, FetchAdd));
    }
    for (threads, cas) in [(2, 54.2), (3, 75.5), (4, 86.9)] {
        let what = format!("Skylake i7-6700HQ (hierarchy): CAS loop, {threads} threads");
        table.row(&what, cas, counting(&skylake, threads, Cas));
    }
    for (threads, add) in [(3, 16.4), (4, 17.4)] {
        let what = format!("Ice Lake (hierarchy): fetch_add, {threads} threads");
        table.row(&what, add, ice_lake(threads, FetchAdd));
    }
    for (threads, cas) in [(2, 51.6), (3, 57.1), (4, 66.7)] {
        let what = format!("Ice Lake (hierarchy): CAS loop, {threads} threads");
        table.row(&what, cas, ice_lake(threads, Cas));
    }

    for (threads, published) in [(2, 8.5), (4, 8.7), (8, 9.4)] {
        let what = format!("Graviton 2 (hierarchy): fetch_add, {threads} threads");
        table.row(&what, published, graviton(threads, FetchAdd));
    }
    for (threads, published) in [(2, 26.1), (4, 29.1)] {
        let what = format!("Graviton 2 (hierarchy): CAS loop, {threads} threads");
        table.row(&what, published, graviton(threads, Cas));
    }
    for (threads, published) in [(8, 40.4), (16, 40.0)] {
        let what = format!("Graviton 2 (hierarchy): CAS loop, {threads} threads");
        table.off(&what, published, graviton(threads, Cas), "[1]");
    }

    for (groups, threads, xor, cas) in [
        (28, 2, 330.5, 331.3),
        (14, 4, 182.7, 196.8),
        (7, 8, 165.0, 263.8),
        (3, 18, 133.9, 282.3),
        (1, 56, 69.3, 87.0),
    ] {
        let names = [folly_name("fetch_xor", threads), folly_name("CAS loop", threads)];
        table.row_of_two([&names[0], &names[1]], [xor, cas], sharing(groups));
    }
}

/// Rows of threads that change five lines one after the other, of which the model is given nothing.
fn five_contended_lines(table: &mut Table) {
    println!("-- five contended lines one after the other, nothing of it an input");
    table.off(&folly_name("fetch_add", 2), 498.8, adding(28), "[2]");
    table.off(&folly_name("fetch_add", 4), 330.0, adding(14), "[2]");
    table.row(&folly_name("fetch_add", 8), 186.3, adding(7));
    table.off(&folly_name("fetch_add", 18), 132.9, adding(3), "[4]");
    table.row(&folly_name("fetch_add", 56), 59.5, adding(1));
}

#[test]
fn published_figures() {
    println!("{:58} {:>11} {:>11} {:>7}", "", "published", "simulated", "error");
    let mut table = Table {
        wrong: Vec::new(),
        held: 0,
    };

    single_operations_that_are_inputs(&mut table);
    single_operations(&mut table);
    one_contended_line(&mut table);
    five_contended_lines(&mut table);
    println!(
        "\n{} rows held to 25 %.\n\
         [1] here two increments fit in between a line's arrival and its departure, with 2 ns to spare, whatever the\n\
         \x20   number of threads; with one the figure is 47, and the real one lies between\n\
         [2] where the threads ran is not published; dealt at random, these two come to +22 and -8 %\n\
         [3] one program, published twice: held is 25 % around what lies between, which counts as one row\n\
         [4] not known; not that there are two sockets: a D-2191, which is one, has the same in the same source",
        table.held
    );
    assert!(
        table.wrong.is_empty(),
        "not as the table says: {:#?}",
        table.wrong
    );
}
