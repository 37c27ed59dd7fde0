//! Latches between processes, with processes: children that are programs of their own, map the segment elsewhere, and are killed.
//!
//! A child is this test program again, with a role in its environment. The memory is a file without a name that children open by
//! their parent's descriptor. A parent that waits for what never comes says so after `PATIENCE`.

#[path = "support/random.rs"]
mod random;

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clearway_latch::interprocess::{ClassNumber, RecoveryReport, Segment, SegmentError, SegmentWorker};
use clearway_latch::{LatchClass, LatchMode, LwLockFairnessVariant, SpinPolicy};
use clearway_machine::{Switch, WaitEvent};
use random::Random;

const WORKERS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers of this class sleep at once.
static SLEEPS: LatchClass = LatchClass::new("sleeps", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
const CLASS: ClassNumber = ClassNumber(7);

/// The data in the segment beside the latch, which protects `pair`.
#[repr(C)]
struct Data {
    pair: [AtomicU64; 2],
    /// Children that are about to acquire the latch, or have done so, for the parent.
    ready: AtomicU64,
    /// Rounds of the children that live.
    progress: AtomicU64,
    stop: AtomicU64,
}

impl Data {
    /// The caller holds the latch exclusively.
    fn add_one(&self) {
        for word in &self.pair {
            word.store(word.load(Relaxed) + 1, Relaxed);
            std::hint::spin_loop();
        }
    }

    /// The caller holds the latch.
    fn check(&self) -> u64 {
        let [first, second] = [&self.pair[0], &self.pair[1]].map(|word| word.load(Relaxed));
        assert_eq!(first, second, "a writer is inside, or died there unnoticed");
        first
    }
}

/// A mapping of a segment's file.
struct Mapping {
    address: NonNull<u8>,
    size: usize,
}

impl Mapping {
    /// Maps the file, not at `elsewhere`.
    fn of(file: &File, size: usize, elsewhere: usize) -> Self {
        let map = || {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            // SAFETY: a new mapping, at an address that the kernel chooses.
            let address =
                unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, file.as_raw_fd(), 0) };
            assert_ne!(address, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
            NonNull::new(address.cast::<u8>()).unwrap()
        };
        let mut address = map();
        if address.addr().get() == elsewhere {
            // The first mapping stays, so the second is another.
            address = map();
        }
        Self { address, size }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`; segments over it are dropped before.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.size) };
    }
}

/// A process's view of a segment. Fields are dropped in this order.
struct View {
    segment: Segment,
    latch: u64,
    data: u64,
    mapping: Mapping,
    file: File,
}

impl View {
    fn new(fairness: LwLockFairnessVariant) -> Self {
        CLASS.set(&SLEEPS);
        let size = Segment::size_for(WORKERS, 8192);
        // SAFETY: the name ends with a zero.
        let descriptor = unsafe { libc::memfd_create(c"segment".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(descriptor >= 0);
        // SAFETY: opened above.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(size as u64).unwrap();
        let mapping = Mapping::of(&file, size, 0);
        // SAFETY: new memory, which lives longer than the segment.
        let segment = unsafe { Segment::create(mapping.address, size, WORKERS) }.unwrap();
        let latch = segment.place_lwlock(CLASS, fairness).unwrap();
        let data = segment.reserve(size_of::<Data>(), align_of::<Data>()).unwrap();
        Self {
            segment,
            latch,
            data,
            mapping,
            file,
        }
    }

    fn data(&self) -> &Data {
        let place = self.segment.address_of(self.data, size_of::<Data>()).unwrap();
        // SAFETY: reserved for it, zero from the file's making, and used through atomics alone.
        unsafe { place.cast().as_ref() }
    }

    fn child(&self, role: &str) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role_of_a_child", "--nocapture", "--test-threads=1"])
            .env("CLEARWAY_ROLE", role)
            .env(
                "CLEARWAY_FILE",
                format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()),
            )
            .env(
                "CLEARWAY_PLACES",
                format!(
                    "{} {} {} {}",
                    self.mapping.size,
                    self.mapping.address.addr(),
                    self.latch,
                    self.data
                ),
            )
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// A child's.
    fn of_environment() -> Self {
        CLASS.set(&SLEEPS);
        let path = std::env::var("CLEARWAY_FILE").unwrap();
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let places = std::env::var("CLEARWAY_PLACES").unwrap();
        let places: Vec<usize> = places.split(' ').map(|place| place.parse().unwrap()).collect();
        let [size, of_parent, latch, data] = places[..] else {
            panic!("{places:?}");
        };
        let mapping = Mapping::of(&file, size, of_parent);
        assert_ne!(mapping.address.addr().get(), of_parent);
        // SAFETY: the parent's segment, and the mapping lives longer.
        let segment = unsafe { Segment::attach(mapping.address, size) }.unwrap();
        Self {
            segment,
            latch: latch as u64,
            data: data as u64,
            mapping,
            file,
        }
    }

    fn recover(&self) -> RecoveryReport {
        self.segment
            .recover_dead()
            .unwrap()
            .expect("no other process recovers")
    }

    /// Calls again while a worker that lives has no CPU to go on; the sum.
    fn recover_all(&self) -> RecoveryReport {
        let mut all = RecoveryReport::default();
        await_that("all deaths are settled", || {
            let report = self.recover();
            all.asleep += report.asleep;
            all.outside += report.outside;
            all.holders = report.holders;
            report.unsettled == 0 || !all.holders.is_empty()
        });
        all
    }
}

/// A child, which is killed if the test ends before it.
struct Process(Child);

impl Process {
    fn signal(&self, signal: i32) {
        // SAFETY: the number of a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    /// True if all its threads are in the state that the kernel shows so: S asleep, T stopped.
    fn is_in_state(&self, state: char) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        threads.map(Result::unwrap).all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rfind(')')
                .is_some_and(|end| stat[end + 1..].trim_start().starts_with(state))
        })
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn expect_success(&mut self) {
        await_that("a child has ended", || self.0.try_wait().unwrap().is_some());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// One segment in a process at a time.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Not a test of its own: what a child does.
#[test]
fn role_of_a_child() {
    let Ok(role) = std::env::var("CLEARWAY_ROLE") else {
        return;
    };
    let view = View::of_environment();
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let data = view.data();
    data.ready.fetch_add(1, Release);
    match role.as_str() {
        "once" => once(&view, &worker, LatchMode::Exclusive),
        "once_shared" => once(&view, &worker, LatchMode::Shared),
        "work" => {
            // All at once, or each would be alone.
            await_that("all are ready", || data.ready.load(Acquire) == 3);
            for round in 0..2_000 {
                if round % 4 == 0 {
                    let _held = worker.shared(latch).unwrap();
                    data.check();
                } else {
                    let _held = worker.exclusive(latch).unwrap();
                    data.check();
                    data.add_one();
                    if round % 8 == 1 {
                        // Others find the latch held, and sleep.
                        std::thread::yield_now();
                    }
                }
            }
        }
        "go_on" => {
            while data.stop.load(Relaxed) == 0 {
                let held = match worker.exclusive(latch) {
                    Err(SegmentError::Broken) => return,
                    held => held.unwrap(),
                };
                data.check();
                data.add_one();
                drop(held);
                data.progress.fetch_add(1, Relaxed);
            }
        }
        "die_inside" | "die_inside_shared" => {
            let mode = if role == "die_inside" {
                LatchMode::Exclusive
            } else {
                LatchMode::Shared
            };
            worker.acquire(latch, mode).unwrap();
            data.pair[0].fetch_add(1, Relaxed);
            data.ready.fetch_add(1, Release);
            std::thread::sleep(PATIENCE);
        }
        role => panic!("no role {role}"),
    }
}

fn once(view: &View, worker: &SegmentWorker<'_>, mode: LatchMode) {
    let latch = view.segment.lwlock(view.latch).unwrap();
    worker.acquire(latch, mode).unwrap();
    if mode == LatchMode::Exclusive {
        view.data().add_one();
    }
    view.data().check();
    // SAFETY: acquired above.
    unsafe { worker.release(latch, mode) }.unwrap();
}

/// Starts a child, and waits until it is a worker.
fn ready_child(view: &View, role: &str) -> Process {
    let before = view.data().ready.load(Acquire);
    let child = view.child(role);
    await_that("a child is ready", || view.data().ready.load(Acquire) > before);
    child
}

fn going_on(view: &View) -> [Process; 2] {
    [ready_child(view, "go_on"), ready_child(view, "go_on")]
}

/// Starts a child that sleeps on the latch, which the caller holds.
fn sleeper(view: &View, role: &str) -> Process {
    let child = ready_child(view, role);
    // After that it enters no sleep but the latch's.
    await_that("a child sleeps", || child.is_in_state('S'));
    child
}

// Mutation: futexes of all processes are private.
#[test]
fn processes_exclude_each_other_at_different_addresses() {
    let _one = one_at_a_time();
    for fairness in LwLockFairnessVariant::ALL {
        let view = View::new(*fairness);
        let mut children: Vec<_> = (0..3).map(|_| view.child("work")).collect();
        children.iter_mut().for_each(Process::expect_success);
        assert_eq!(view.data().check(), 3 * 1_500);
        assert!(view.segment.processes().is_empty());
    }
}

/// The order of what happens to the first sleeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// It dies on the list, and is taken off before the release.
    KillRecoverRelease,
    /// It dies on the list, and the release wakes it.
    KillReleaseRecover,
    /// The release wakes it, and it dies before it can look: stopped meanwhile, it has not run.
    StopReleaseKillRecover,
}

#[test]
fn the_wake_up_of_a_process_killed_asleep_goes_to_the_next() {
    let _one = one_at_a_time();
    let stories = [
        Story::KillRecoverRelease,
        Story::KillReleaseRecover,
        Story::StopReleaseKillRecover,
    ];
    for fairness in LwLockFairnessVariant::ALL {
        for story in stories {
            for role in ["once", "once_shared"] {
                let view = View::new(*fairness);
                let worker = view.segment.register().unwrap();
                let held = worker
                    .exclusive(view.segment.lwlock(view.latch).unwrap())
                    .unwrap();
                let mut killed = sleeper(&view, role);
                let mut lives = sleeper(&view, "once");
                if story == Story::StopReleaseKillRecover {
                    killed.signal(libc::SIGSTOP);
                    await_that("the child is stopped", || killed.is_in_state('T'));
                    drop(held);
                    killed.kill();
                    assert_eq!(view.recover().asleep, 1);
                } else {
                    killed.kill();
                    if story == Story::KillRecoverRelease {
                        assert_eq!(view.recover().asleep, 1);
                        drop(held);
                    } else {
                        drop(held);
                        assert_eq!(view.recover().asleep, 1);
                    }
                }
                lives.expect_success();
                assert_eq!(view.data().check(), 1, "{fairness:?} {story:?} {role}");
                assert!(!view.segment.lwlock(view.latch).unwrap().is_held());
            }
        }
    }
}

#[test]
fn a_process_killed_at_any_moment_is_settled_or_found() {
    const ROUNDS: u64 = 150;
    let _one = one_at_a_time();
    let mut random = Random(std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap()));
    let mut view = View::new(LwLockFairnessVariant::Barging);
    let mut lives = going_on(&view);
    let (mut settled, mut found) = (0, 0);
    for round in 0..ROUNDS {
        let mut killed = ready_child(&view, "go_on");
        std::thread::sleep(Duration::from_micros(random.below(1_500)));
        killed.kill();
        let report = view.recover_all();
        if report.holders.is_empty() {
            assert_eq!(report.asleep + report.outside, 1, "{round}: {report:?}");
            settled += 1;
            let before = view.data().progress.load(Relaxed);
            await_that("those that live go on", || {
                view.data().progress.load(Relaxed) > before + 20
            });
            continue;
        }
        found += 1;
        assert_eq!(report.holders.len(), 1);
        assert_eq!(report.holders[0].process.pid(), killed.0.id());
        assert!(view.segment.is_broken());
        lives.iter_mut().for_each(Process::kill);
        drop(view);
        view = View::new(LwLockFairnessVariant::ALL[(round % 4) as usize]);
        lives = going_on(&view);
    }
    view.data().stop.store(1, Relaxed);
    lives.iter_mut().for_each(Process::expect_success);
    assert!(view.segment.processes().is_empty());
    assert!(
        settled > 0 && found > 0,
        "{settled} settled, {found} found inside"
    );
}

#[test]
fn a_process_killed_inside_breaks_the_segment() {
    let _one = one_at_a_time();
    for role in ["die_inside", "die_inside_shared"] {
        let view = View::new(LwLockFairnessVariant::Barging);
        let worker = view.segment.register().unwrap();
        let latch = view.segment.lwlock(view.latch).unwrap();
        let mut killed = view.child(role);
        await_that("the child is inside", || view.data().ready.load(Acquire) == 2);
        assert_eq!(view.recover(), RecoveryReport::default(), "it lives");
        assert_eq!(view.segment.processes().len(), 2, "it lives");
        killed.kill();
        let [living] = view.segment.processes()[..] else {
            panic!("the dead one is none to be ended");
        };
        assert_eq!(living.pid(), std::process::id());
        let report = view.recover();
        let [holder] = &report.holders[..] else {
            panic!("{report:?}");
        };
        assert_eq!(holder.process.pid(), killed.0.id());
        assert_eq!(holder.changing, None);
        let held: Vec<_> = holder
            .held
            .iter()
            .map(|held| (held.offset, held.is_exclusive))
            .collect();
        assert_eq!(held, [(view.latch, role == "die_inside")]);
        // Nothing goes on in it.
        assert_eq!(
            worker.try_acquire(latch, LatchMode::Shared),
            Err(SegmentError::Broken)
        );
        assert_eq!(worker.shared(latch).unwrap_err(), SegmentError::Broken);
        assert_eq!(view.segment.recover_dead(), Err(SegmentError::Broken));
        drop(worker);
        assert_eq!(view.segment.register().unwrap_err(), SegmentError::Broken);
        let (address, size) = (view.mapping.address, view.mapping.size);
        let View { segment, mapping, .. } = view;
        drop(segment);
        // SAFETY: mapped until below.
        let attached = unsafe { Segment::attach(address, size) };
        assert_eq!(attached.unwrap_err(), SegmentError::Broken);
        drop(mapping);
    }
}

/// Ends a child of `fork` after `checks`, with an error if they panic: a thread that panics as its process's only one ends it with
/// success.
fn end_fork(checks: impl FnOnce()) -> ! {
    let result = catch_unwind(AssertUnwindSafe(checks));
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

#[test]
fn a_child_of_a_fork_is_not_its_parents_worker() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let held = worker.exclusive(latch).unwrap();
    // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = catch_unwind(AssertUnwindSafe(|| worker.acquire(latch, LatchMode::Shared)));
        // A copy of the guard and of the worker: neither releases anything.
        drop(held);
        drop(worker);
        end_fork(|| {
            assert_eq!(refused.unwrap(), Err(SegmentError::NotRegistered));
            let again = view.segment.register().unwrap();
            assert_eq!(again.try_acquire(latch, LatchMode::Shared), Ok(false));
            view.data().ready.store(1, Release);
            // The parent's latch is none of the child's for the check of the order of latches, either.
            assert!(again.shared(latch).is_ok());
        });
    }
    await_that("the child was refused", || view.data().ready.load(Acquire) == 1);
    assert_eq!(view.segment.processes().len(), 2);
    assert!(latch.is_held());
    assert_eq!(view.recover(), RecoveryReport::default());
    drop(held);
    let mut status = 0;
    // SAFETY: writes the status of the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(!latch.is_held());
}

#[test]
fn a_copy_of_a_worker_that_has_left_is_not_the_next_worker_of_its_slot() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let slot = worker.id();
    // SAFETY: the child uses this thread's data alone, and ends without running what the harness has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        end_fork(|| {
            await_that("the parent has left", || view.data().stop.load(Acquire) == 1);
            let again = view.segment.register().unwrap();
            let latch = view.segment.lwlock(view.latch).unwrap();
            assert_eq!(again.id(), slot);
            let refused = worker.acquire(latch, LatchMode::Shared);
            assert_eq!(refused, Err(SegmentError::NotRegistered));
            // The copy of the parent's.
            drop(worker);
            assert!(again.shared(latch).is_ok());
            assert_eq!(view.segment.processes().len(), 1);
        });
    }
    drop(worker);
    view.data().stop.store(1, Release);
    let mut status = 0;
    // SAFETY: writes the status of the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn the_worker_after_the_last_and_the_latch_after_the_last_are_refused() {
    const HELD_MAX: usize = 200;
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let worker = view.segment.register().unwrap();
    let latch = view.segment.lwlock(view.latch).unwrap();
    let all_are_in = Barrier::new(WORKERS as usize);
    std::thread::scope(|scope| {
        for _ in 1..WORKERS {
            scope.spawn(|| {
                let worker = view.segment.register();
                all_are_in.wait();
                all_are_in.wait();
                drop(worker.unwrap());
            });
        }
        all_are_in.wait();
        let refused = scope.spawn(|| view.segment.register().map(drop)).join().unwrap();
        all_are_in.wait();
        assert_eq!(refused, Err(SegmentError::NoSlot { workers: WORKERS }));
    });
    let latches: Vec<_> = (0..=HELD_MAX)
        .map(|_| {
            view.segment
                .place_lwlock(CLASS, LwLockFairnessVariant::Barging)
                .unwrap()
        })
        .map(|offset| view.segment.lwlock(offset).unwrap())
        .collect();
    let (last, held) = latches.split_last().unwrap();
    for latch in held {
        worker.acquire(latch, LatchMode::Exclusive).unwrap();
    }
    assert_eq!(
        worker.acquire(last, LatchMode::Exclusive),
        Err(SegmentError::TooManyHeld)
    );
    assert_eq!(
        worker.try_acquire(last, LatchMode::Exclusive),
        Err(SegmentError::TooManyHeld)
    );
    assert!(!last.is_held() && held.iter().all(|latch| latch.is_held()));
    for latch in held {
        // SAFETY: acquired above.
        unsafe { worker.release(latch, LatchMode::Exclusive) }.unwrap();
    }
    assert!(!held.iter().any(|latch| latch.is_held()) && !latch.is_held());
}

#[test]
fn what_is_no_segment_of_this_program_is_refused() {
    let _one = one_at_a_time();
    let view = View::new(LwLockFairnessVariant::Barging);
    let (address, size) = (view.mapping.address, view.mapping.size);
    // SAFETY: for each of these: mapped as long as this test, and refused or dropped at once.
    let attach = |address: NonNull<u8>, size| unsafe { Segment::attach(address, size).map(drop) };
    assert_eq!(attach(address, size), Err(SegmentError::AlreadyAttached));
    let worker = view.segment.register().unwrap();
    assert_eq!(
        view.segment.register().unwrap_err(),
        SegmentError::AlreadyRegistered
    );
    assert_eq!(
        view.segment.lwlock(view.latch + 4).unwrap_err(),
        SegmentError::NotThere
    );
    assert_eq!(
        view.segment.lwlock(view.latch + 2).unwrap_err(),
        SegmentError::NotThere
    );
    assert_eq!(view.segment.lwlock(0).unwrap_err(), SegmentError::NotThere);
    assert_eq!(view.segment.lwlock(u64::MAX).unwrap_err(), SegmentError::NotThere);
    assert!(matches!(
        view.segment.reserve(1 << 30, 8),
        Err(SegmentError::NoRoom { .. })
    ));
    let latch = view.segment.lwlock(view.latch).unwrap();
    // SAFETY: refused.
    let released = unsafe { worker.release(latch, LatchMode::Shared) };
    assert_eq!(released, Err(SegmentError::NotHeld));
    drop(worker);
    let View {
        segment,
        mapping,
        file,
        ..
    } = view;
    drop(segment);
    assert_eq!(attach(address, size), Ok(()));
    let other_size = Err(SegmentError::OtherSize {
        made: size as u64,
        given: size as u64 - 4096,
    });
    assert_eq!(attach(address, size - 4096), other_size);
    // SAFETY: within the mapping.
    let beside = unsafe { address.add(64) };
    assert_eq!(attach(beside, size - 64), Err(SegmentError::Misaligned));
    assert!(matches!(attach(address, 64), Err(SegmentError::TooSmall { .. })));
    // SAFETY: the number of workers, which no process uses now.
    let workers = unsafe { AtomicU32::from_ptr(address.as_ptr().add(24).cast()) };
    for wrong in [0, u32::MAX] {
        let right = workers.swap(wrong, Relaxed);
        assert_eq!(right, WORKERS);
        assert_eq!(attach(address, size), Err(SegmentError::NotASegment));
        workers.store(right, Relaxed);
    }
    // SAFETY: the word of the layout, which no process uses now.
    unsafe { *address.as_ptr().add(8) ^= 1 };
    assert!(matches!(
        attach(address, size),
        Err(SegmentError::OtherLayout { .. })
    ));
    // SAFETY: the magic.
    unsafe { *address.as_ptr() ^= 1 };
    assert_eq!(attach(address, size), Err(SegmentError::NotASegment));
    drop(mapping);
    drop(file);
}
