//! A segment, and processes that use it: children that are programs of their own and map it elsewhere.
//!
//! A child is the test program again, with a role in its environment. The memory is a file without a name that children open by
//! their parent's descriptor. A parent that waits for what never comes says so after `PATIENCE`.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clearway_latch::interprocess::{ClassNumber, RecoveryReport, Segment};
use clearway_latch::{LatchClass, LwLockFairnessVariant, SpinPolicy};
use clearway_machine::WaitEvent;

pub const WORKERS: u32 = 8;
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Workers of this class sleep at once.
static SLEEPS: LatchClass = LatchClass::new("sleeps", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
pub const CLASS: ClassNumber = ClassNumber(7);

/// The data in the segment beside the latches, one of which protects `pair`.
#[repr(C)]
pub struct Data {
    pub pair: [AtomicU64; 2],
    /// Children that are about to acquire the latch, or have done so, for the parent.
    pub ready: AtomicU64,
    /// Rounds of the children that live.
    pub progress: AtomicU64,
    pub stop: AtomicU64,
}

impl Data {
    /// The caller holds the latch exclusively.
    pub fn add_one(&self) {
        for word in &self.pair {
            word.store(word.load(Relaxed) + 1, Relaxed);
            std::hint::spin_loop();
        }
    }

    /// The caller holds the latch.
    pub fn check(&self) -> u64 {
        let [first, second] = [&self.pair[0], &self.pair[1]].map(|word| word.load(Relaxed));
        assert_eq!(first, second, "a writer is inside, or died there unnoticed");
        first
    }
}

/// A mapping of a segment's file.
pub struct Mapping {
    pub address: NonNull<u8>,
    pub size: usize,
}

impl Mapping {
    /// Maps the file, not at `elsewhere`.
    pub fn of(file: &File, size: usize, elsewhere: usize) -> Self {
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
pub struct View {
    pub segment: Segment,
    /// Offsets of an LwLock, a mutex, a latch with three modes, and the data.
    pub latch: u64,
    pub mutex: u64,
    pub rwlock: u64,
    pub data: u64,
    pub mapping: Mapping,
    pub file: File,
}

impl View {
    pub fn new(fairness: LwLockFairnessVariant) -> Self {
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
        let mutex = segment.place_mutex(CLASS).unwrap();
        let rwlock = segment.place_rwlock(CLASS).unwrap();
        let data = segment.reserve(size_of::<Data>(), align_of::<Data>()).unwrap();
        Self {
            segment,
            latch,
            mutex,
            rwlock,
            data,
            mapping,
            file,
        }
    }

    pub fn data(&self) -> &Data {
        let place = self.segment.address_of(self.data, size_of::<Data>()).unwrap();
        // SAFETY: reserved for it, zero from the file's making, and used through atomics alone.
        unsafe { place.cast().as_ref() }
    }

    pub fn child(&self, role: &str) -> Process {
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
                    "{} {} {} {} {} {}",
                    self.mapping.size,
                    self.mapping.address.addr(),
                    self.latch,
                    self.mutex,
                    self.rwlock,
                    self.data
                ),
            )
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// A child's.
    pub fn of_environment() -> Self {
        CLASS.set(&SLEEPS);
        let path = std::env::var("CLEARWAY_FILE").unwrap();
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let places = std::env::var("CLEARWAY_PLACES").unwrap();
        let places: Vec<usize> = places.split(' ').map(|place| place.parse().unwrap()).collect();
        let [size, of_parent, latch, mutex, rwlock, data] = places[..] else {
            panic!("{places:?}");
        };
        let mapping = Mapping::of(&file, size, of_parent);
        assert_ne!(mapping.address.addr().get(), of_parent);
        // SAFETY: the parent's segment, and the mapping lives longer.
        let segment = unsafe { Segment::attach(mapping.address, size) }.unwrap();
        Self {
            segment,
            latch: latch as u64,
            mutex: mutex as u64,
            rwlock: rwlock as u64,
            data: data as u64,
            mapping,
            file,
        }
    }

    pub fn recover(&self) -> RecoveryReport {
        self.segment
            .recover_dead()
            .unwrap()
            .expect("no other process recovers")
    }

    /// Calls again while a worker that lives has no CPU to go on; the sum.
    pub fn recover_all(&self) -> RecoveryReport {
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
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: i32) {
        // SAFETY: the number of a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    /// True if all its threads are in the state that the kernel shows so: S asleep, T stopped.
    pub fn is_in_state(&self, state: char) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        threads.map(Result::unwrap).all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rfind(')')
                .is_some_and(|end| stat[end + 1..].trim_start().starts_with(state))
        })
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn expect_success(&mut self) {
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

pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// One segment in a process at a time.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child, and waits until it is a worker.
pub fn ready_child(view: &View, role: &str) -> Process {
    let before = view.data().ready.load(Acquire);
    let child = view.child(role);
    await_that("a child is ready", || view.data().ready.load(Acquire) > before);
    child
}

/// Starts a child that sleeps on the latch, which the caller holds.
pub fn sleeper(view: &View, role: &str) -> Process {
    let child = ready_child(view, role);
    // After that it enters no sleep but the latch's.
    await_that("a child sleeps", || child.is_in_state('S'));
    child
}

/// The order of what happens to the first sleeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// It dies asleep, and is settled before the release.
    KillRecoverRelease,
    /// It dies asleep, and is settled after the release.
    KillReleaseRecover,
    /// It is stopped when the release comes, and dies before it can look.
    StopReleaseKillRecover,
}

pub const STORIES: [Story; 3] = [
    Story::KillRecoverRelease,
    Story::KillReleaseRecover,
    Story::StopReleaseKillRecover,
];

impl Story {
    /// `killed` sleeps on a latch that the caller holds, and gives back by `release`.
    pub fn happens(self, view: &View, killed: &mut Process, release: impl FnOnce()) {
        if self == Self::StopReleaseKillRecover {
            killed.signal(libc::SIGSTOP);
            await_that("the child is stopped", || killed.is_in_state('T'));
            release();
            killed.kill();
            assert_eq!(view.recover().asleep, 1);
            return;
        }
        killed.kill();
        if self == Self::KillRecoverRelease {
            assert_eq!(view.recover().asleep, 1);
            release();
        } else {
            release();
            assert_eq!(view.recover().asleep, 1);
        }
    }
}

/// Ends a child of `fork` after `checks`, with an error if they panic: a thread that panics as its process's only one ends it with
/// success.
pub fn end_fork(checks: impl FnOnce()) -> ! {
    let result = catch_unwind(AssertUnwindSafe(checks));
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}
