//! [`Simulated`]: the machine that runs inside a simulation.
//!
//! Its atomics are words of their real size and alignment. Inside a worker each access goes through the
//! kernel; outside (while structures are set up, or after the run) it is plain memory that costs nothing.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;
use std::sync::atomic::{AtomicPtr as PlainPtr, AtomicU32 as PlainU32, AtomicU64 as PlainU64};
use std::time::Duration;

use clearway_machine::{
    AtomicPointer, AtomicWord, CpuCounts, CpuHint, DataCell, FutexOutcome, Half, Machine, WaitEvent, Work,
    WorkerId, Workers,
};

use crate::account::Activity;
use crate::alloc;
use crate::kernel::{Access, Kernel, PublishedEvents, State, Timer};
use crate::lines::NO_CPU;

/// The simulated machine: see the crate's documentation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

thread_local! {
    /// The simulation that this host thread is inside of.
    static KERNEL: Cell<*mut Kernel> = const { Cell::new(std::ptr::null_mut()) };
    /// The slots of its workers.
    static SLOTS: Cell<Option<&'static Workers<Simulated>>> = const { Cell::new(None) };
}

/// A simulation that a host thread may be inside of.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    /// Its kernel; null: the thread is inside of none.
    pub(crate) kernel: *mut Kernel,
    /// The slots of its workers.
    pub(crate) slots: Option<&'static Workers<Simulated>>,
}

/// Makes `simulation` the one that this thread is inside of; returns the one before.
pub(crate) fn enter(simulation: Inside) -> Inside {
    alloc::set_inside(!simulation.kernel.is_null());
    Inside {
        kernel: KERNEL.replace(simulation.kernel),
        slots: SLOTS.replace(simulation.slots),
    }
}

impl PublishedEvents for Workers<Simulated> {
    fn event_of(&self, slot: u32) -> WaitEvent {
        peek(|| self.slot(WorkerId(slot)).wait_event())
    }
}

/// Runs `look` with accesses that cost nothing and happen outside simulated time.
pub(crate) fn peek<R>(look: impl FnOnce() -> R) -> R {
    let kernel = KERNEL.replace(std::ptr::null_mut());
    let result = look();
    KERNEL.set(kernel);
    result
}

/// The kernel behind the pointer.
///
/// # Safety
/// The pointer was [`enter`]ed on this thread. No other reference into the kernel is used again while the
/// result is in use, and the result is not kept across a switch of stacks.
#[inline(always)]
pub(crate) unsafe fn at<'a>(kernel: *mut Kernel) -> &'a mut Kernel {
    // SAFETY: the caller's promise; the kernel stays in its box for as long as it is entered.
    unsafe { &mut *kernel }
}

/// The kernel, if one of its workers runs now.
#[inline(always)]
pub(crate) fn inside_worker() -> Option<*mut Kernel> {
    let kernel = KERNEL.get();
    // SAFETY: the pointer is set for as long as the simulation is entered, and only this thread uses it.
    (!kernel.is_null() && unsafe { at(kernel).current } != NO_CPU).then_some(kernel)
}

/// The kernel, if this thread is inside a simulation.
pub(crate) fn inside() -> Option<*mut Kernel> {
    let kernel = KERNEL.get();
    (!kernel.is_null()).then_some(kernel)
}

/// Suspends the calling worker until its CPU is the earliest of all.
pub(crate) fn suspend(kernel: *mut Kernel) {
    // SAFETY: a worker that runs is on a CPU, and its yielder lives on its own stack, which is the one in
    // use. No reference into the kernel is alive across the switch.
    unsafe {
        let worker = at(kernel).cpu().running as usize;
        let yielder = at(kernel).workers[worker].yielder;
        (*yielder).suspend(());
    }
}

/// Waits until the worker may do something that others can notice (K1).
#[inline(always)]
pub(crate) fn settle(kernel: *mut Kernel) {
    // SAFETY: as in `suspend`; each reference ends before the next call.
    unsafe {
        if !at(kernel).is_settled() {
            settle_slowly(kernel);
        }
        if at(kernel).breaks_promise() {
            at(kernel).note_broken_promise();
        }
        at(kernel).begin_event();
    }
}

#[inline(never)]
fn settle_slowly(kernel: *mut Kernel) {
    // SAFETY: as in `suspend`.
    unsafe {
        loop {
            let cpu = usize::from(at(kernel).current);
            let key = crate::tree::key(at(kernel).cpus[cpu].clock, cpu);
            // A spent budget ends the run where the loop looks at it.
            if key > at(kernel).tree.horizon() || at(kernel).events > at(kernel).step_budget {
                at(kernel).enter_calendar();
                suspend(kernel);
            } else if at(kernel).cpus[cpu].interrupted > 0 {
                at(kernel).take_interrupts();
            } else if at(kernel).cpus[cpu].resched {
                let worker = at(kernel).cpus[cpu].running as usize;
                let yielder = at(kernel).workers[worker].yielder;
                at(kernel).preempt();
                (*yielder).suspend(());
            } else {
                return;
            }
        }
    }
}

/// Advances an access of the running worker to the instant at which it takes effect. The caller then changes
/// the word, before anything else can happen.
#[inline(always)]
fn access(address: usize, kind: Access) {
    if let Some(kernel) = inside_worker() {
        // SAFETY: as in `settle`.
        unsafe {
            if !at(kernel).begin_access(address, kind) {
                at(kernel).enter_calendar();
                suspend(kernel);
            }
        }
    }
}

/// A load, by `read` after the access.
#[inline(always)]
fn load_access(address: usize, read: impl FnOnce() -> u64) -> u64 {
    let Some(kernel) = inside_worker() else {
        return read();
    };
    // SAFETY: as in `settle`.
    if let Some(seen) = unsafe { at(kernel).free_poll(address) } {
        return seen;
    }
    access(address, Access::Load);
    let value = read();
    // SAFETY: as in `settle`.
    unsafe { at(kernel).cpu().polled_value = value };
    value
}

/// Records the word's value after a read-modify-write: a failed one is followed by polls of it.
#[inline(always)]
fn note_modified(value: u64) {
    if let Some(kernel) = inside_worker() {
        // SAFETY: as in `settle`.
        unsafe { at(kernel).cpu().polled_value = value };
    }
}

#[inline(always)]
fn store_kind(order: Ordering) -> Access {
    if order == Ordering::SeqCst {
        Access::StoreFenced
    } else {
        Access::Store
    }
}

/// A far atomic is one without acquire order.
#[inline(always)]
fn modify_kind(order: Ordering) -> Access {
    match order {
        Ordering::Relaxed | Ordering::Release => Access::ModifyFar,
        _ => Access::Modify,
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $plain:ty, $value:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($plain);

        impl $name {
            #[inline(always)]
            fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }

            /// Only one worker of a simulation runs at a time on the host, so reading and writing apart is
            /// one step.
            #[inline(always)]
            fn modify(&self, kind: Access, change: impl FnOnce($value) -> $value) -> $value {
                access(self.address(), kind);
                let before = self.0.load(Ordering::Relaxed);
                let after = change(before);
                self.0.store(after, Ordering::Relaxed);
                note_modified(u64::from(after));
                before
            }

            /// Adds without order and without a result: the `stadd` of Arm, which does not hold up its CPU if
            /// it is far. Elsewhere as a `fetch_add`.
            pub fn add(&self, value: $value) {
                self.modify(Access::Post, |before| before.wrapping_add(value));
            }
        }

        // SAFETY: the workers of a simulation run on one thread of the host, one at a time, and no other worker runs
        // between the load and the store of `modify`.
        unsafe impl AtomicWord<$value> for $name {
            fn new(value: $value) -> Self {
                Self(<$plain>::new(value))
            }
            #[inline]
            fn load(&self, _order: Ordering) -> $value {
                load_access(self.address(), || u64::from(self.0.load(Ordering::Relaxed))) as $value
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                access(self.address(), store_kind(order));
                self.0.store(value, Ordering::Relaxed);
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.modify(modify_kind(order), |_| value)
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                _failure: Ordering,
            ) -> Result<$value, $value> {
                let kind = modify_kind(success);
                let before = self.modify(kind, |before| if before == current { new } else { before });
                if before == current { Ok(before) } else { Err(before) }
            }
            #[inline]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.modify(modify_kind(order), |before| before.wrapping_add(value))
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.modify(modify_kind(order), |before| before.wrapping_sub(value))
            }
            #[inline]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.modify(modify_kind(order), |before| before | value)
            }
            #[inline]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.modify(modify_kind(order), |before| before & value)
            }
        }
    };
}

word! {
    /// A 32-bit atomic of [`Simulated`].
    SimulatedU32, PlainU32, u32
}
word! {
    /// A 64-bit atomic of [`Simulated`].
    SimulatedU64, PlainU64, u64
}

/// An atomic pointer of [`Simulated`].
#[derive(Debug)]
#[repr(transparent)]
pub struct SimulatedPtr<T>(PlainPtr<T>);

impl<T> SimulatedPtr<T> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

// SAFETY: as for the words.
unsafe impl<T: 'static> AtomicPointer<T> for SimulatedPtr<T> {
    fn new(pointer: *mut T) -> Self {
        Self(PlainPtr::new(pointer))
    }
    fn load(&self, _order: Ordering) -> *mut T {
        // A free poll cannot carry a pointer: a worker that polls one is stepped through.
        access(self.address(), Access::Load);
        forget_polled();
        self.0.load(Ordering::Relaxed)
    }
    fn store(&self, pointer: *mut T, order: Ordering) {
        access(self.address(), store_kind(order));
        self.0.store(pointer, Ordering::Relaxed);
    }
    fn swap(&self, pointer: *mut T, order: Ordering) -> *mut T {
        access(self.address(), modify_kind(order));
        forget_polled();
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(pointer, Ordering::Relaxed);
        before
    }
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        _failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        access(self.address(), modify_kind(success));
        forget_polled();
        let before = self.0.load(Ordering::Relaxed);
        if before != current {
            return Err(before);
        }
        self.0.store(new, Ordering::Relaxed);
        Ok(before)
    }
}

/// A latch-guarded cell of [`Simulated`]. An access reads or writes the content's first line. The program
/// charges the rest of the holder's work.
#[derive(Debug)]
#[repr(transparent)]
pub struct SimulatedData<T>(UnsafeCell<T>);

// SAFETY: the cell's own pointer, which is the same as long as the cell stays where it is.
unsafe impl<T> DataCell<T> for SimulatedData<T> {
    fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get().addr(), Access::Load);
        forget_polled();
        read(self.0.get())
    }
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get().addr(), Access::Store);
        write(self.0.get())
    }
}

/// The last access is none that can be polled for free.
fn forget_polled() {
    if let Some(kernel) = inside_worker() {
        // SAFETY: as in `settle`.
        unsafe { at(kernel).forget_polled() };
    }
}

fn to_picoseconds(duration: Duration) -> u64 {
    duration.as_nanos().min(1 << 43) as u64 * 1_000
}

/// Charges work to the running worker's CPU.
pub(crate) fn charge(kernel: *mut Kernel, which: usize, picoseconds: u64) {
    // SAFETY: as in `settle`.
    unsafe {
        if at(kernel).breaks_promise() {
            at(kernel).note_broken_promise();
        }
        let cpu = usize::from(at(kernel).current);
        let duration = at(kernel).slowed(cpu, picoseconds);
        at(kernel).advance_cuttable(which, duration);
    }
}

/// A system call's fixed part, and being the earliest afterwards.
fn system_call(kernel: *mut Kernel, picoseconds: u64) {
    settle(kernel);
    // SAFETY: as in `settle`.
    unsafe {
        let cpu = usize::from(at(kernel).current);
        at(kernel).advance(cpu, Activity::Syscall, picoseconds);
    }
    settle(kernel);
}

/// Puts the running worker to sleep and another on its CPU; returns when it has been woken and runs again.
fn sleep_in(kernel: *mut Kernel, state: State, timeout: Option<u64>) {
    // SAFETY: as in `suspend`; the yielder is fetched before the worker leaves its CPU.
    unsafe {
        let cpu = usize::from(at(kernel).current);
        let number = at(kernel).cpus[cpu].running;
        let worker = &mut at(kernel).workers[number as usize];
        worker.timed_out = false;
        let (sleep, yielder) = (worker.sleeps, worker.yielder);
        if let Some(end) = timeout {
            at(kernel).set_timer(
                end,
                Timer::Wake {
                    worker: number,
                    sleep,
                },
            );
        }
        at(kernel).leave_cpu(cpu, state);
        at(kernel).pick_next(cpu);
        (*yielder).suspend(());
    }
}

/// Sleeps until `duration` picoseconds from now, without the timers' slack, as a device does.
pub(crate) fn wait_for_device(kernel: *mut Kernel, duration: u64) {
    // SAFETY: as in `settle`.
    unsafe {
        system_call(kernel, at(kernel).costs.syscall);
        let end = at(kernel).cpu().clock + duration;
        sleep_in(kernel, State::Timer, Some(end));
    }
}

/// A round trip to the worker's client, which works for `picoseconds`: see [`crate::client_round_trip`].
pub(crate) fn client(kernel: *mut Kernel, picoseconds: u64) {
    // SAFETY: as in `settle`.
    unsafe {
        switch_role(kernel);
        charge(kernel, 1, picoseconds);
        switch_role(kernel);
    }

    unsafe fn switch_role(kernel: *mut Kernel) {
        // SAFETY: as in `settle` and `sleep_in`.
        unsafe {
            system_call(kernel, at(kernel).costs.syscall + at(kernel).costs.wake);
            let cpu = usize::from(at(kernel).current);
            let number = at(kernel).cpus[cpu].running;
            at(kernel).leave_cpu(cpu, State::Timer);
            let worker = &mut at(kernel).workers[number as usize];
            std::mem::swap(&mut worker.cpu, &mut worker.other_cpu);
            std::mem::swap(&mut worker.virtual_runtime, &mut worker.other_virtual_runtime);
            worker.is_client = !worker.is_client;
            let yielder = worker.yielder;
            at(kernel).wake(number);
            if at(kernel).cpus[cpu].running == crate::kernel::NO_WORKER {
                at(kernel).pick_next(cpu);
            }
            (*yielder).suspend(());
        }
    }
}

/// Sleeps on `address` while `look`, which reads the word there, returns `expected`.
fn wait(
    address: usize,
    look: impl FnOnce() -> u32,
    expected: u32,
    timeout: Option<Duration>,
) -> FutexOutcome {
    let Some(kernel) = inside_worker() else {
        return FutexOutcome::Changed;
    };
    // SAFETY: as in `settle`.
    unsafe {
        system_call(kernel, at(kernel).costs.syscall + at(kernel).costs.futex);
        access(address, Access::Load);
        // The bucket is locked: no worker wakes between this look and the sleep. The load advanced the clock,
        // but no other CPU acts before the worker has left.
        if look() != expected {
            return FutexOutcome::Changed;
        }
        let cpu = usize::from(at(kernel).current);
        let number = at(kernel).cpus[cpu].running;
        at(kernel).futexes.add(address, number);
        let slack = at(kernel).costs.timer_slack;
        let end = timeout.map(|duration| at(kernel).cpus[cpu].clock + to_picoseconds(duration) + slack);
        sleep_in(kernel, State::Futex(address), end);
        if at(kernel).workers[number as usize].timed_out {
            FutexOutcome::TimedOut
        } else {
            FutexOutcome::Woken
        }
    }
}

fn wake(address: usize, count: u32) -> u32 {
    let Some(kernel) = inside_worker() else { return 0 };
    // SAFETY: as in `settle`.
    unsafe {
        system_call(kernel, at(kernel).costs.syscall + at(kernel).costs.futex);
        let mut woken = 0;
        while woken < count {
            let Some(worker) = at(kernel).futexes.pop(address) else {
                break;
            };
            let waker = at(kernel).cpu().running;
            at(kernel).end_sleep(worker, Some(waker));
            woken += 1;
            let cost = at(kernel).costs.wake;
            let cpu = usize::from(at(kernel).current);
            at(kernel).advance(cpu, Activity::Syscall, cost);
            settle(kernel);
        }
        woken
    }
}

// SAFETY: the words above; a number for each worker of a simulation, of the simulation's own table.
unsafe impl Machine for Simulated {
    type U32 = SimulatedU32;
    type U64 = SimulatedU64;
    type Ptr<T: 'static> = SimulatedPtr<T>;
    type Data<T> = SimulatedData<T>;

    fn fence(order: Ordering) {
        // The others cost nothing on x86, and little elsewhere.
        if order == Ordering::SeqCst
            && let Some(kernel) = inside_worker()
        {
            settle(kernel);
            // SAFETY: as in `settle`.
            unsafe { at(kernel).fence() };
        }
    }

    #[inline]
    fn spin_hint() {
        Self::spin_hint_of(0);
    }

    #[inline]
    fn spin_hint_of(polls: u32) {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `suspend`.
            unsafe {
                if at(kernel).spin_of(polls) {
                    suspend(kernel);
                    at(kernel).resume_polls();
                }
            }
        }
    }

    fn yield_now() {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `settle`.
            unsafe {
                system_call(kernel, at(kernel).costs.syscall);
                let cpu = usize::from(at(kernel).current);
                if !at(kernel).cpus[cpu].queue.is_empty() {
                    at(kernel).give_way(cpu);
                    settle(kernel);
                }
            }
        }
    }

    fn futex_wait(word: &SimulatedU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        wait(
            word.address(),
            || word.0.load(Ordering::Relaxed),
            expected,
            timeout,
        )
    }

    fn futex_wake(word: &SimulatedU32, count: u32) -> u32 {
        wake(word.address(), count)
    }

    fn futex_wait_half(
        word: &SimulatedU64,
        half: Half,
        expected: u32,
        timeout: Option<Duration>,
    ) -> FutexOutcome {
        let look = || half.of(word.0.load(Ordering::Relaxed));
        wait(word.address() + half.offset(), look, expected, timeout)
    }

    fn futex_wake_half(word: &SimulatedU64, half: Half, count: u32) -> u32 {
        wake(word.address() + half.offset(), count)
    }

    fn sleep(duration: Duration) {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `settle`.
            unsafe {
                system_call(kernel, at(kernel).costs.syscall);
                let end = at(kernel).cpu().clock + to_picoseconds(duration) + at(kernel).costs.timer_slack;
                sleep_in(kernel, State::Timer, Some(end));
            }
        }
    }

    fn now() -> u64 {
        match inside() {
            None => 0,
            // SAFETY: as in `settle`.
            Some(kernel) => unsafe {
                if at(kernel).current == NO_CPU {
                    return at(kernel).now / 1_000;
                }
                settle(kernel);
                let (cpu, cost) = (usize::from(at(kernel).current), at(kernel).costs.clock);
                at(kernel).advance(cpu, Activity::Latch, cost);
                at(kernel).cpus[cpu].clock / 1_000
            },
        }
    }

    fn cpu() -> CpuHint {
        match inside_worker() {
            None => CpuHint::default(),
            // SAFETY: as in `settle`.
            Some(kernel) => unsafe {
                let cpu = at(kernel).current;
                let core = at(kernel).costs.core_of[usize::from(cpu)];
                CpuHint {
                    cpu: u32::from(cpu),
                    core: u32::from(core),
                    node: u32::from(at(kernel).costs.socket_of_core[usize::from(core)]),
                }
            },
        }
    }

    fn cpu_counts() -> CpuCounts {
        match inside() {
            None => CpuCounts::default(),
            // SAFETY: as in `settle`.
            Some(kernel) => unsafe {
                let costs = &at(kernel).costs;
                CpuCounts {
                    cpus: costs.core_of.len() as u32,
                    cores: costs.socket_of_core.len() as u32,
                    nodes: costs.socket_of_core.last().map_or(0, |last| u32::from(*last) + 1),
                }
            },
        }
    }

    fn number_of(address: usize) -> usize {
        // SAFETY: as in `settle`.
        inside_worker().map_or(address, |kernel| unsafe { at(kernel).line_number(address) })
    }

    fn charge(work: Work) {
        if let Some(kernel) = inside_worker() {
            let Work::Nanos(nanoseconds) = work;
            charge(kernel, 0, nanoseconds * 1_000);
        }
    }

    fn begin_cpu_time(name: &'static str) {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `settle`.
            unsafe { at(kernel).begin_cpu_time(name) };
        }
    }

    fn end_cpu_time(name: &'static str) {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `settle`.
            unsafe { at(kernel).end_cpu_time(name) };
        }
    }

    fn workers() -> &'static Workers<Simulated> {
        SLOTS
            .get()
            .expect("Simulated::workers() outside of a simulation; use Simulation::enter")
    }

    fn worker() -> WorkerId {
        Self::known_worker().expect("Simulated::worker() outside of a worker of a simulation")
    }

    fn known_worker() -> Option<WorkerId> {
        let kernel = inside_worker()?;
        // SAFETY: as in `settle`.
        unsafe {
            let worker = at(kernel).cpu().running as usize;
            Some(WorkerId(at(kernel).workers[worker].slot))
        }
    }

    fn label(address: *const (), name: &'static str) {
        if let Some(kernel) = inside() {
            // SAFETY: as in `settle`.
            unsafe { at(kernel).lines.label(address.addr(), name) };
        }
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `settle`.
            unsafe {
                let worker = at(kernel).cpu().running;
                at(kernel).workers[worker as usize].label = Some(name);
            }
        }
    }
}
