//! Attempts for a time, and the condition variable, under loom: every schedule of a few workers within a bound of
//! preemptions, under weak memory.
//!
//! Loom's clock goes on at each look, and a sleep with a limit ends after the others have had their turn, by a wake-up that
//! came before or because its time is over. A worker that is left asleep is a deadlock; data that two workers reach without
//! the latch having ordered them is a causality violation; what a worker that gave up has left in the word is seen at the
//! end, when the word must be idle. The mutations that the cases are for are in `crates/latch/mutations/timed.toml`.
//!
//! Survived, and why: under `CasLoop` and `FetchAddBts` a worker that gives up need not pass a wake on. The owner that it saw
//! wakes one of those registered when it releases, whatever was woken before.
//!
//! `cargo test -p clearway-latch --features loom --test loom_timed --release`

#[path = "support/explore.rs"]
mod explore;
#[path = "support/sleeps.rs"]
mod sleeps;

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwCondvar, SrwMutex, SsuxLock, SsuxProtocol,
};
use clearway_machine::{DataCell, Loom, Machine, Semaphore};
use explore::explore;
use loom::thread;
use sleeps::Sleeps;

/// Four looks at loom's clock: a worker that nothing holds up sleeps once, and gives up after that.
const BRIEF: Duration = Duration::from_micros(4);

/// A latch and what is beside it, with data under it.
struct Shared<L> {
    latch: L,
    data: <Loom as Machine>::Data<u64>,
}

impl<L> Shared<L> {
    /// The caller holds the latch exclusively.
    fn add_one(&self) -> u64 {
        // SAFETY: exclusive; loom fails the test if that does not order the accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
        1
    }

    /// The caller holds the latch.
    fn read(&self) -> u64 {
        // SAFETY: held; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }
}

/// The turn of a worker at the latch, which returns what it has added.
type Step<L> = fn(&Shared<L>) -> u64;

/// Runs each of `steps` by a worker of its own, the first by the model's own thread. Returns the data, and what was added.
fn run<L: Send + Sync + 'static>(latch: L, steps: &[Step<L>]) -> (Arc<Shared<L>>, u64) {
    // The machine's globals come to life before there is a thread to race with.
    Loom::workers();
    let shared = Arc::new(Shared {
        latch,
        data: DataCell::new(0),
    });
    let threads: Vec<_> = steps[1..]
        .iter()
        .map(|step| {
            let (shared, step) = (Arc::clone(&shared), *step);
            thread::spawn(move || step(&shared))
        })
        .collect();
    let mut added = steps[0](&shared);
    for thread in threads {
        added += thread.join().unwrap();
    }
    (shared, added)
}

type Mutex<P> = SrwMutex<Sleeps, Loom, P>;

fn lock<P: HolderProtocol>(shared: &Shared<Mutex<P>>) -> u64 {
    let _guard = shared.latch.exclusive();
    shared.add_one()
}

fn lock_twice<P: HolderProtocol>(shared: &Shared<Mutex<P>>) -> u64 {
    lock(shared) + lock(shared)
}

fn try_lock_for<P: HolderProtocol>(shared: &Shared<Mutex<P>>) -> u64 {
    let guard = shared.latch.try_exclusive_for(BRIEF);
    guard.map_or(0, |_guard| shared.add_one())
}

/// Alice takes the mutex twice, Bob gives up, Carol must get it.
fn mutex_gives_up<P: HolderProtocol>(preemptions: usize) {
    explore(preemptions, || {
        let steps = [lock_twice::<P>, try_lock_for::<P>, lock::<P>];
        let (shared, added) = run(Mutex::<P>::idle(), &steps);
        let word = format!("{:?}", shared.latch);
        assert!(word.contains("0x00000000"), "a registration is left: {word}");
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), added);
    });
}

fn lock_to_be_freed<P: HolderProtocol>(shared: &Shared<Mutex<P>>) -> u64 {
    std::mem::forget(shared.latch.exclusive());
    let added = shared.add_one();
    // SAFETY: held, by a guard that is forgotten.
    unsafe { shared.latch.release_to_be_freed() };
    added
}

/// Bob gives up while Alice releases a mutex that may be freed then: her release marks it as one with waiters only while there
/// are some.
fn mutex_gives_up_to_be_freed<P: HolderProtocol>(preemptions: usize) {
    explore(preemptions, || {
        let (shared, added) = run(Mutex::<P>::idle(), &[lock_to_be_freed::<P>, try_lock_for::<P>]);
        let word = format!("{:?}", shared.latch);
        assert!(word.contains("0x00000000"), "a mark is left: {word}");
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), added);
    });
}

type Ssux<P> = SsuxLock<Sleeps, Loom, P>;

fn exclusive<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    let _guard = shared.latch.exclusive();
    shared.add_one()
}

fn shared<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    let _guard = shared.latch.shared();
    shared.read();
    0
}

fn exclusive_for<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    let guard = shared.latch.try_exclusive_for(BRIEF);
    guard.map_or(0, |_guard| shared.add_one())
}

fn shared_for<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    if let Some(_guard) = shared.latch.try_shared_for(BRIEF) {
        shared.read();
    }
    0
}

fn update_for<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    if let Some(_guard) = shared.latch.try_update_for(BRIEF) {
        shared.read();
    }
    0
}

/// An updater that upgrades if readers leave in time.
fn upgrade_for<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    match shared.latch.update().try_exclusive_for(BRIEF) {
        Ok(_guard) => shared.add_one(),
        Err(guard) => {
            shared.read();
            drop(guard);
            0
        }
    }
}

fn ssux<P: SsuxProtocol>(steps: &'static [Step<Ssux<P>>], preemptions: usize) {
    explore(preemptions, move || {
        let (shared, added) = run(Ssux::<P>::idle(), steps);
        let state = format!("{:?}", shared.latch);
        assert!(state.contains("0x00000000"), "a registration is left: {state}");
        // Readers are admitted, and a writer after them.
        drop(shared.latch.shared());
        let _guard = shared.latch.exclusive();
        assert_eq!(shared.read(), added);
    });
}

fn ssux_writer_gives_up<P: SsuxProtocol>(preemptions: usize) {
    ssux::<P>(&[shared::<P>, exclusive_for::<P>, shared::<P>], preemptions);
    ssux::<P>(&[exclusive::<P>, exclusive_for::<P>, shared::<P>], preemptions);
}

fn ssux_reader_gives_up<P: SsuxProtocol>(preemptions: usize) {
    ssux::<P>(&[exclusive::<P>, shared_for::<P>, exclusive::<P>], preemptions);
    ssux::<P>(&[exclusive::<P>, shared_for::<P>, shared::<P>], preemptions);
}

fn ssux_updater_gives_up<P: SsuxProtocol>(preemptions: usize) {
    ssux::<P>(&[exclusive::<P>, update_for::<P>, shared::<P>], preemptions);
    ssux::<P>(&[shared::<P>, upgrade_for::<P>, shared::<P>], preemptions);
}

/// Bob gives an upgrade up for which Alice's reading has lasted too long, and keeps update mode until Carol has read beside
/// him: nothing keeps her out any more, and she has been woken if she slept.
fn ssux_upgrade_is_withdrawn<P: SsuxProtocol>(preemptions: usize) {
    explore(preemptions, || {
        Loom::workers();
        let beside = Arc::new((Ssux::<P>::idle(), Semaphore::<Loom>::new()));
        let reader = {
            let beside = Arc::clone(&beside);
            thread::spawn(move || drop(beside.0.shared()))
        };
        let updater = {
            let beside = Arc::clone(&beside);
            thread::spawn(move || {
                if let Err(_update) = beside.0.update().try_exclusive_for(BRIEF) {
                    beside.1.wait();
                }
            })
        };
        drop(beside.0.shared());
        beside.1.post();
        reader.join().unwrap();
        updater.join().unwrap();
    });
}

type Condvar<P> = (Mutex<P>, SrwCondvar<Sleeps, Loom, P>);

/// Waits until the data is `wanted` or more.
fn wait_for<P: HolderProtocol>(shared: &Shared<Condvar<P>>, wanted: u64) -> u64 {
    let mut guard = shared.latch.0.exclusive();
    while shared.read() < wanted {
        shared.latch.1.wait(&mut guard);
    }
    0
}

/// Takes one from the data as soon as there is one.
fn take<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
    let mut guard = shared.latch.0.exclusive();
    while shared.read() == 0 {
        shared.latch.1.wait(&mut guard);
    }
    // SAFETY: as in `add_one`.
    shared.data.with_mut(|data| unsafe { *data -= 1 });
    0
}

fn notify_one<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
    lock_beside(shared);
    shared.latch.1.notify_one();
    0
}

fn lock_beside<P: HolderProtocol>(shared: &Shared<Condvar<P>>) {
    let _guard = shared.latch.0.exclusive();
    shared.add_one();
}

/// Puts one there for each of two workers that take, and notifies for each.
fn put_two<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
    notify_one(shared) + notify_one(shared)
}

fn notify_all<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
    lock_beside(shared);
    shared.latch.1.notify_all();
    0
}

/// Waits for what may not come, and gives up.
fn wait_briefly<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
    let mut guard = shared.latch.0.exclusive();
    while shared.read() == 0 {
        if shared.latch.1.wait_for(&mut guard, BRIEF) {
            return 0;
        }
    }
    shared.read();
    0
}

fn condvar<P: HolderProtocol>(steps: &'static [Step<Condvar<P>>], preemptions: usize) {
    explore(preemptions, move || {
        let (shared, _) = run((Mutex::idle(), SrwCondvar::idle()), steps);
        assert_eq!(shared.latch.1.waiters(), 0, "a waiter is left");
    });
}

fn condvar_one_each<P: HolderProtocol>(preemptions: usize) {
    condvar::<P>(&[put_two::<P>, take::<P>, take::<P>], preemptions);
}

fn condvar_all<P: HolderProtocol>(preemptions: usize) {
    fn one<P: HolderProtocol>(shared: &Shared<Condvar<P>>) -> u64 {
        wait_for(shared, 1)
    }
    condvar::<P>(&[notify_all::<P>, one::<P>, one::<P>], preemptions);
}

fn condvar_gives_up<P: HolderProtocol>(preemptions: usize) {
    condvar::<P>(&[notify_all::<P>, wait_briefly::<P>, take::<P>], preemptions);
}

macro_rules! cases {
    ($($name:ident: $case:ident::<$type:ty>($preemptions:expr);)*) => {
        $(#[test] fn $name() { $case::<$type>($preemptions) })*
    };
}

cases! {
    loom_mutex_gives_up_single_wake: mutex_gives_up::<SingleWake>(2);
    loom_mutex_gives_up_fetch_add: mutex_gives_up::<FetchAddBts>(2);
    loom_mutex_gives_up_cas_loop: mutex_gives_up::<CasLoop>(2);
    loom_mutex_gives_up_to_be_freed: mutex_gives_up_to_be_freed::<SingleWake>(3);
    loom_writer_gives_up_one_word: ssux_writer_gives_up::<OneWord>(2);
    loom_writer_gives_up_two_words: ssux_writer_gives_up::<SingleWake>(2);
    loom_reader_gives_up_one_word: ssux_reader_gives_up::<OneWord>(2);
    loom_reader_gives_up_two_words: ssux_reader_gives_up::<SingleWake>(2);
    loom_updater_gives_up_one_word: ssux_updater_gives_up::<OneWord>(2);
    loom_updater_gives_up_two_words: ssux_updater_gives_up::<SingleWake>(2);
    loom_upgrade_is_withdrawn_one_word: ssux_upgrade_is_withdrawn::<OneWord>(3);
    loom_upgrade_is_withdrawn_two_words: ssux_upgrade_is_withdrawn::<SingleWake>(2);
    loom_condvar_one_each: condvar_one_each::<SingleWake>(2);
    loom_condvar_all: condvar_all::<SingleWake>(2);
    loom_condvar_gives_up: condvar_gives_up::<SingleWake>(2);
}
