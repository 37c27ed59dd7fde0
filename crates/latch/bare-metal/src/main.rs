//! The latches in a program with no operating system under them: neither std nor libc nor an allocator, only
//! `core`.
//!
//! The kernel of this machine serves as the bare metal, so that the program runs like any other. It is
//! reached by bare system calls: `clone` for a second CPU, `futex` for sleeping, `clock_gettime` for a timer,
//! `write` for a console, `exit_group` to switch off. A base register leads to the worker's number, as it
//! leads to the CPU's in a kernel.
//!
//! First two workers use the latches of one word, with no platform installed, and poll. Then the program
//! installs a platform and uses the other latches. `crates/latch/benches/bare-metal` builds it, checks that
//! nothing else was linked, and runs it. The exit status is 0, or 1 after a panic, whose message goes to
//! standard error.
//!
//! With an argument the program uses a latch that has an owner although no platform is installed, and must
//! fail.

#![no_std]
#![no_main]

mod kernel;

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use clearway_latch::{
    AdaptiveLatch, ClassOf, HybridLatch, LatchClass, Latched, LwLockVariant, Mutex, ReadBiasedLatch,
    RwLock, SpinPolicy, SrwMutex, SsuxLock, SuxLock, Unclassed, classes,
};
use clearway_machine::{Bare, Platform, WaitEvent, WorkerId, WorkerMemory, Workers};

/// Steps of a worker in one round.
const STEPS: u64 = 50_000;
/// Rounds after which two workers ought to have met. A round takes milliseconds, and they may have one CPU
/// between them.
const ROUNDS_MAX: u64 = 1_000;

static COUNT: Mutex<u64> = Mutex::new(0);
static PAIR: RwLock<(u64, u64)> = RwLock::new((0, 0));
static SRW: SrwMutex = SrwMutex::new();
static SSUX: SsuxLock = SsuxLock::new();
static SUX: SuxLock = SuxLock::new();
static HYBRID: HybridLatch = HybridLatch::new();
static WORDS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Adds one to a word under a latch. Not atomically, so that a latch that lets two in is seen to.
fn add(word: &AtomicU64) {
    word.store(word.load(Relaxed) + 1, Relaxed);
}

/// Both words, which are equal whenever no worker writes.
fn assert_equal_words() {
    assert_eq!(WORDS[0].load(Relaxed), WORDS[1].load(Relaxed));
}

/// The work of both workers before a platform is installed.
fn words() {
    for step in 0..STEPS {
        *COUNT.lock() += 1;

        if step % 4 == 0 {
            let mut pair = PAIR.write();
            pair.0 += 1;
            pair.1 += 1;
        } else {
            let pair = PAIR.read();
            assert_eq!(pair.0, pair.1);
        }

        let held = SRW.exclusive();
        WORDS.iter().for_each(add);
        drop(held);

        if step % 4 == 0 {
            let update = SSUX.update();
            let _exclusive = update.exclusive();
            let _same = SRW.exclusive();
            WORDS.iter().for_each(add);
        } else {
            let _shared = SSUX.shared();
        }
    }
}

/// A HybridLatch before a platform is installed. By one worker, since none could be put on a list.
fn optimistic() {
    let version = HYBRID.optimistic().expect("no worker writes");
    assert!(HYBRID.validate(version));
    drop(HYBRID.exclusive());
    assert!(!HYBRID.validate(version), "a worker has written");
    assert_eq!(HYBRID.read(|| WORDS[0].load(Relaxed)), WORDS[0].load(Relaxed));
    assert!(HYBRID.try_exclusive_at(version).is_none());
}

static MEMORY: WorkerMemory<2> = WorkerMemory::new();
static WORKERS: Workers<Bare> = Workers::within(&MEMORY);
static PLATFORM: Platform = Platform {
    workers: &WORKERS,
    worker: || Some(WorkerId(kernel::worker())),
    now: kernel::now,
    wait: kernel::wait,
    wake: kernel::wake,
    ..Platform::polling()
};

/// Without polling, so that workers sleep and must be woken.
static SLEEPING: LatchClass = LatchClass::new("sleeping", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
static LEARNING: LatchClass = LatchClass::new("learning", WaitEvent::UserLatch, 0);

/// The latches that keep a list, or an owner.
struct Listed {
    queued: Latched<u64>,
    single_cas: Latched<u64>,
    read_biased: ReadBiasedLatch<2>,
    adaptive: AdaptiveLatch<2>,
    words: [AtomicU64; 3],
}

/// The work of both workers under the platform.
fn lists(listed: &Listed) {
    for step in 0..STEPS {
        *listed.queued.exclusive() += 1;
        *listed.single_cas.exclusive() += 1;
        assert!(*listed.queued.shared() > step);

        {
            let _held = listed.read_biased.exclusive();
            add(&listed.words[0]);
        }
        {
            let _held = listed.adaptive.exclusive();
            add(&listed.words[1]);
        }
        let _reading = (listed.read_biased.shared(), listed.adaptive.shared());
        {
            let _outer = SUX.exclusive();
            let _again = SUX.exclusive();
            add(&listed.words[2]);
        }
        {
            let _held = HYBRID.exclusive();
            WORDS.iter().for_each(add);
        }
        if let Some(version) = HYBRID.optimistic() {
            let seen = (WORDS[0].load(Relaxed), WORDS[1].load(Relaxed));
            assert!(!HYBRID.validate(version) || seen.0 == seen.1);
        }
        let _shared = HYBRID.shared();
        assert_equal_words();
    }
}

/// Runs `work` in both workers until they have had a conflict at latches of each class. Returns how often
/// each worker has made a step.
fn contend<T: Sync>(shared: &T, work: fn(&T), classes: &[&LatchClass]) -> u64 {
    for round in 1..=ROUNDS_MAX {
        kernel::with_second_worker(shared, work);
        if classes
            .iter()
            .all(|class| class.statistics().exclusive.conflicts > 0)
        {
            return round * STEPS;
        }
    }
    panic!("two workers never met in {ROUNDS_MAX} rounds");
}

/// The program. `unknown`: without a platform that names the workers.
fn main(unknown: bool) {
    if unknown {
        drop(SUX.exclusive());
        return;
    }
    let steps = contend(&(), |()| words(), &[Unclassed::class()]);
    assert_eq!(*COUNT.lock(), 2 * steps);
    assert_eq!(*PAIR.read(), (steps / 2, steps / 2));
    assert_equal_words();
    assert_eq!(WORDS[0].load(Relaxed), 2 * steps + steps / 2);
    optimistic();

    // SAFETY: each of the two threads has a number of its own in its base register, for as long as it lives.
    unsafe { Bare::install(&PLATFORM) };
    let listed = Listed {
        queued: Latched::new(&SLEEPING, LwLockVariant::Queued, 0),
        single_cas: Latched::new(&LEARNING, LwLockVariant::SingleCas, 0),
        read_biased: ReadBiasedLatch::new(&SLEEPING, LwLockVariant::SingleCas),
        adaptive: AdaptiveLatch::new(&LEARNING),
        words: [const { AtomicU64::new(0) }; 3],
    };
    let steps = contend(&listed, lists, &[&SLEEPING, &LEARNING]);
    assert_eq!(*listed.queued.shared(), 2 * steps);
    assert_eq!(*listed.single_cas.shared(), 2 * steps);
    assert!(listed.words.iter().all(|word| word.load(Relaxed) == 2 * steps));
    assert_equal_words();

    for class in classes() {
        let counted = class.statistics();
        kernel::print(format_args!(
            "{}: {} exclusive conflicts, {} sleeps\n",
            class.name, counted.exclusive.conflicts, counted.exclusive.sleeps
        ));
    }
}
