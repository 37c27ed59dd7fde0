//! Building and running a simulation.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use clearway_machine::{WaitEvent, WorkerId, Workers};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::Simulated;
use crate::costs::Costs;
use crate::kernel::{Failure, Kernel, NO_WORKER, NOTHING_CUTTABLE, Pending, State, Worker};
use crate::lines::NO_CPU;
use crate::model::MachineModel;
use crate::report::Report;
use crate::simulated::{Inside, at, enter, peek};
use crate::trace::Trace;
use crate::tree::{self, NEVER};

/// Bytes of a worker's stack, with a guard page below.
const STACK_SIZE: usize = 256 << 10;

type Body = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// Stacks of finished workers, for the next simulation.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Slot tables are `'static` for the machine's sake; a finished simulation's is used again by the next.
static TABLES: Mutex<Vec<&'static Workers<Simulated>>> = Mutex::new(Vec::new());

/// The failure of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// No worker can run, but some have not ended.
    #[error(
        "nothing can happen any more at {at_ns} ns: a wake-up was lost or workers wait for each other\n{waiting}"
    )]
    Deadlock {
        /// The time of the deadlock.
        at_ns: u64,
        /// Each worker and what it waits for, a line each.
        waiting: String,
    },
    /// The step budget is spent.
    #[error("{steps} steps are spent at {at_ns} ns: a livelock, or the budget is too small\n{waiting}")]
    StepBudget {
        /// The steps that were made.
        steps: u64,
        /// The time of the last step.
        at_ns: u64,
        /// Each worker and its state, a line each.
        waiting: String,
    },
    /// Code announced polls by `spin_hint_of` and did something else.
    #[error("worker {worker} promised to poll a word and did something else before it changed")]
    BrokenPromise {
        /// The worker that broke it.
        worker: u32,
    },
    /// The accounts do not add up: a fault of the simulator.
    #[error("simulated time is not conserved: {0}")]
    Account(String),
}

/// A simulated machine with workers on it. It belongs to the host thread that makes it.
///
/// ```
/// use std::rc::Rc;
/// use std::sync::atomic::Ordering::Relaxed;
/// use clearway_machine::{AtomicWord, Machine, Work};
/// use clearway_sim::{MachineModel, Simulated, Simulation};
///
/// let machine = MachineModel::load("haswell-ex-4s").unwrap();
/// let mut simulation = Simulation::new(&machine, 100, 1);
/// let counter = simulation.enter(|| Rc::new(<Simulated as Machine>::U64::new(0)));
/// for _ in 0..100 {
///     let counter = Rc::clone(&counter);
///     simulation.spawn(move || {
///         for _ in 0..10 {
///             counter.fetch_add(1, Relaxed);
///             Simulated::charge(Work::Nanos(500));
///         }
///     });
/// }
/// let report = simulation.run().unwrap();
/// assert_eq!(simulation.enter(|| counter.load(Relaxed)), 1_000);
/// assert!(report.elapsed_ns > 10 * 500);
/// ```
pub struct Simulation {
    kernel: Box<Kernel>,
    slots: &'static Workers<Simulated>,
    bodies: Vec<Option<Body>>,
    unfinished: usize,
    /// True if a run has failed: the contents of the workers' stacks are then leaked.
    failed: bool,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("cpus", &self.kernel.costs.cpus)
            .field("workers", &self.bodies.len())
            .finish_non_exhaustive()
    }
}

/// Restores the simulation that this thread was inside of before.
struct Entered(Inside);

impl Drop for Entered {
    fn drop(&mut self) {
        enter(self.0);
    }
}

impl Simulation {
    /// A machine with room for `workers_max` workers. The same description, seed and program give the same
    /// run.
    pub fn new(model: &MachineModel, workers_max: usize, seed: u64) -> Self {
        let costs = Costs::new(model);
        let capacity = workers_max.next_power_of_two();
        let pooled = {
            let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
            let found = tables.iter().position(|table| table.capacity() == capacity);
            found.map(|found| tables.swap_remove(found))
        };
        let before = crate::alloc::set_inside(true);
        let slots = pooled.unwrap_or_else(|| Box::leak(Box::new(Workers::new(capacity))));
        let kernel = Box::new(Kernel::new(costs, seed, slots));
        crate::alloc::set_inside(before);
        Self {
            kernel,
            slots,
            bodies: Vec::new(),
            unfinished: 0,
            failed: false,
        }
    }

    fn entered(&mut self) -> Entered {
        Entered(enter(Inside {
            kernel: &raw mut *self.kernel,
            slots: Some(self.slots),
        }))
    }

    /// Fails a run that takes more steps than this; a step is an access or another event.
    pub fn set_step_budget(&mut self, steps: u64) {
        self.kernel.step_budget = steps;
    }

    /// Runs `inside` so that structures of [`Simulated`] can be built, looked at and dropped; it takes no
    /// simulated time.
    pub fn enter<R>(&mut self, inside: impl FnOnce() -> R) -> R {
        let _entered = self.entered();
        inside()
    }

    /// Names the memory of `value` in reports. Later names win over earlier ones.
    pub fn name<T: ?Sized>(&mut self, value: &T, name: &str) {
        let address = std::ptr::from_ref(value).cast::<()>().addr();
        self.kernel.lines.name(address, size_of_val(value), name);
    }

    /// Records the events from `from_ns` to `to_ns`.
    pub fn trace(&mut self, from_ns: u64, to_ns: u64) {
        let cpus = self.kernel.costs.cpus;
        self.kernel.trace = Some(Trace::new(from_ns * 1_000, to_ns * 1_000, cpus));
    }

    /// Takes the trace that was recorded.
    pub fn take_trace(&mut self) -> Option<Trace> {
        let mut trace = self.kernel.trace.take()?;
        // Those that have not left their CPU.
        for (cpu, state) in self.kernel.cpus.iter().enumerate() {
            if let Some(worker) = self.kernel.workers.get(state.running as usize) {
                trace.ran(
                    cpu,
                    state.running,
                    worker.is_client,
                    worker.dispatched_at,
                    state.clock,
                );
            }
        }
        Some(trace)
    }

    /// Adds a worker that starts at the present simulated instant.
    ///
    /// # Panics
    /// If there are as many workers as [`new`](Self::new) was given.
    pub fn spawn(&mut self, body: impl FnOnce() + 'static) {
        let number = self.kernel.workers.len() as u32;
        let slot = peek(|| self.slots.claim()).expect("more workers than the simulation has room for");
        let stack = STACKS
            .with(|stacks| stacks.borrow_mut().pop())
            .unwrap_or_else(|| DefaultStack::new(STACK_SIZE).expect("no memory for a worker's stack"));
        let kernel: *mut Kernel = &raw mut *self.kernel;
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the kernel outlives its workers' coroutines, and no other code uses it while one of
            // them runs.
            unsafe { at(kernel).workers[number as usize].yielder = yielder };
            body();
        });
        self.bodies.push(Some(coroutine));
        self.unfinished += 1;
        self.kernel.workers.push(Worker {
            state: State::Ready,
            slot: slot.0,
            yielder: std::ptr::null(),
            cpu: 0,
            other_cpu: 0,
            is_client: false,
            virtual_runtime: 0,
            other_virtual_runtime: 0,
            dispatched_at: 0,
            on_cpu: 0,
            switched: 0,
            open: Vec::new(),
            owed: NOTHING_CUTTABLE,
            sleeps: 0,
            asleep_since: 0,
            asleep: 0,
            timed_out: false,
            label: None,
            pending: Pending::default(),
        });
        self.kernel.place_new(number);
    }

    /// Runs until every worker's body has returned.
    pub fn run(&mut self) -> Result<Report, SimulationError> {
        let _entered = self.entered();
        let result = self.run_inside();
        self.failed |= result.is_err();
        result
    }

    fn run_inside(&mut self) -> Result<Report, SimulationError> {
        let kernel: *mut Kernel = &raw mut *self.kernel;
        // SAFETY: the box outlives this call. The kernel is used through this pointer alone while workers
        // run, one at a time, and no reference into it is alive across `resume`.
        unsafe {
            while self.unfinished > 0 {
                let first = at(kernel).tree.first();
                if first == NEVER {
                    return Err(SimulationError::Deadlock {
                        at_ns: at(kernel).now / 1_000,
                        waiting: at(kernel).unfinished_workers(),
                    });
                }
                let (instant, leaf) = tree::parts(first);
                at(kernel).now = instant;
                if leaf == at(kernel).costs.cpus {
                    let Reverse((_, _, timer)) = at(kernel).timers.pop().expect("the calendar knows a timer");
                    at(kernel).timers_changed();
                    at(kernel).fire(timer);
                    at(kernel).events += 1;
                } else {
                    let worker = at(kernel).cpus[leaf].running;
                    debug_assert_ne!(worker, NO_WORKER, "K3: a CPU without a worker is in the calendar");
                    at(kernel).current = leaf as u16;
                    if at(kernel).carry_on(worker) {
                        at(kernel).tree.look_past(leaf);
                        let body = self.bodies[worker as usize]
                            .as_mut()
                            .expect("a worker that is done runs");
                        if let CoroutineResult::Return(()) = body.resume(()) {
                            self.finish(worker);
                        }
                    }
                    at(kernel).current = NO_CPU;
                }
                if let Some(Failure::BrokenPromise { worker }) = at(kernel).failure {
                    return Err(SimulationError::BrokenPromise { worker });
                }
                if at(kernel).events > at(kernel).step_budget {
                    return Err(SimulationError::StepBudget {
                        steps: at(kernel).step_budget,
                        at_ns: at(kernel).now / 1_000,
                        waiting: at(kernel).unfinished_workers(),
                    });
                }
            }
        }
        self.kernel.check_accounts().map_err(SimulationError::Account)?;
        Ok(Report::of(&self.kernel))
    }

    /// The worker's body has returned, at its CPU's clock.
    fn finish(&mut self, worker: u32) {
        let cpu = usize::from(self.kernel.current);
        // Its pending access has been performed.
        self.kernel.now = self.kernel.now.max(self.kernel.cpus[cpu].clock);
        self.kernel.leave_cpu(cpu, State::Done);
        self.kernel.pick_next(cpu);
        self.unfinished -= 1;
        let body = self.bodies[worker as usize].take().expect("it has just returned");
        STACKS.with(|stacks| stacks.borrow_mut().push(body.into_stack()));
        let slot = WorkerId(self.kernel.workers[worker as usize].slot);
        // SAFETY: the worker's own slot, and the worker has ended.
        peek(|| unsafe { self.slots.release(slot) });
    }

    /// The present simulated instant, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.kernel.now / 1_000
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let entered = self.entered();
        for body in self.bodies.iter_mut().flatten() {
            if body.started() && !body.done() {
                // A worker that has not ended is dropped, not unwound: its destructors would release latches
                // and wait for workers that will never run again. SAFETY: nothing on the stack is used again;
                // what it owns is leaked. References into it are at most on stacks that are dropped here too.
                unsafe { body.force_reset() };
            }
        }
        self.bodies.clear();
        crate::alloc::drain_freed(|_, _| ());
        drop(entered);
        if !self.failed && self.unfinished == 0 {
            // Each worker has released its slot.
            self.slots.forget_hints();
            TABLES
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.slots);
        }
    }
}

impl Kernel {
    /// The workers that have not ended and their states, in the order of their numbers. For errors.
    fn unfinished_workers(&self) -> String {
        let mut lines = String::new();
        let unfinished = self
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| worker.state != State::Done);
        for (count, (number, worker)) in unfinished.enumerate() {
            if count == 40 {
                lines.push_str("  …\n");
                break;
            }
            let event = self.event_of(number as u32);
            let event = if event == WaitEvent::Running {
                String::new()
            } else {
                format!(", waiting for {}:{}", event.class().name(), event.name())
            };
            let state = match worker.state {
                State::Running => format!("running on CPU {}", worker.cpu),
                State::Ready => format!("ready on CPU {}", worker.cpu),
                State::Futex(_) => format!("asleep on a futex since {} ns", worker.asleep_since / 1_000),
                State::Timer => format!("asleep since {} ns", worker.asleep_since / 1_000),
                State::Done => unreachable!("filtered out"),
            };
            lines.push_str(&format!("  worker {number}: {state}{event}\n"));
        }
        lines
    }

    /// Two independent counts of the CPUs' time must agree (K2): by activity, and by worker.
    fn check_accounts(&self) -> Result<(), String> {
        use crate::account::{Account, Activity};
        let mut all = Account::default();
        for (number, cpu) in self.cpus.iter().enumerate() {
            if cpu.account.total() != cpu.clock {
                return Err(format!(
                    "CPU {number} accounts for {} of {} ps",
                    cpu.account.total(),
                    cpu.clock
                ));
            }
            all.merge(&cpu.account);
        }
        let by_workers: u64 = self.workers.iter().map(|worker| worker.on_cpu).sum();
        let by_activity = all.total() - all.picoseconds(Activity::Idle) - all.picoseconds(Activity::Switch);
        if by_workers != by_activity {
            return Err(format!(
                "workers were on CPUs for {by_workers} ps, but activities took {by_activity} ps"
            ));
        }
        Ok(())
    }
}
