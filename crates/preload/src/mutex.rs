//! Mutexes.
//!
//! | bytes | hold, under libc | hold, if the mutex is ours |
//! | --- | --- | --- |
//! | 0–7 | lock word, count | the latch |
//! | 8–11 | owner | how many times the owner has it beyond the first |
//! | 16–19 | kind: type and flags | the same: the mark (L1) |
//! | 24–31 | a list's link | the owner, of a recursive or checked mutex (L4) |
//!
//! The functions return what POSIX's return. Where POSIX leaves it open they do as glibc: a normal mutex that is not held is
//! released without an error and without an effect.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize};
use std::os::raw::c_int;

use libc::{EAGAIN, EBUSY, EDEADLK, EPERM, ETIMEDOUT, pthread_mutex_t};

use crate::deadline::Deadline;
use crate::latch::{Cas, Exclusive, FetchAdd, Ssux, WakesOne};
use crate::layout;
use crate::libc_functions as real;
use crate::setting::{Choice, Setting};

/// The bytes of a mutex.
#[repr(C, align(8))]
struct Bytes {
    latch: [u32; 2],
    again: AtomicU32,
    _users: u32,
    kind: AtomicI32,
    _spins: u32,
    owner: AtomicUsize,
}

const _: () = {
    assert!(size_of::<Bytes>() <= size_of::<pthread_mutex_t>());
    assert!(align_of::<Bytes>() <= align_of::<pthread_mutex_t>());
    assert!(size_of::<Ssux>() <= size_of::<[u32; 2]>() && size_of::<FetchAdd>() <= size_of::<[u32; 2]>());
    assert!(core::mem::offset_of!(Bytes, kind) == layout::MUTEX_KIND);
};

/// The type, in a kind.
const TYPE: c_int = 3;
/// Flags of a kind that ask libc for or against the elision of locks, and mean nothing here.
const ELISION: c_int = 0x300;
/// The kind of a mutex that is destroyed, as glibc writes it.
const DESTROYED: c_int = -1;

/// The kind of a mutex.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Recursive,
    Checked,
    /// Handed on.
    Libc,
}

impl Bytes {
    /// The mutex at `mutex`.
    ///
    /// # Safety
    /// `mutex` leads to one.
    #[inline(always)]
    unsafe fn at<'a>(mutex: *mut pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's; all that is accessed is atomic.
        unsafe { &*mutex.cast() }
    }

    #[inline(always)]
    fn kind(&self, setting: Setting) -> Kind {
        let kind = self.kind.load(Relaxed);
        if kind & !(TYPE | ELISION) != 0 || setting.is_libc() {
            return Kind::Libc;
        }
        match kind & TYPE {
            libc::PTHREAD_MUTEX_RECURSIVE => Kind::Recursive,
            libc::PTHREAD_MUTEX_ERRORCHECK => Kind::Checked,
            // Adaptive ones too.
            _ => Kind::Normal,
        }
    }

    /// True for the kind that most mutexes are of, which is ours.
    #[inline(always)]
    fn is_default(&self) -> bool {
        self.kind.load(Relaxed) == 0
    }

    /// True for a recursive mutex that is ours, without a flag of elision.
    #[inline(always)]
    fn is_recursive(&self) -> bool {
        self.kind.load(Relaxed) == libc::PTHREAD_MUTEX_RECURSIVE
    }

    /// L4.
    #[inline]
    fn is_owned_by_caller(&self) -> bool {
        self.owner.load(Relaxed) == caller()
    }

    /// The latch, for `act`.
    #[inline(always)]
    fn with<R>(&self, setting: Setting, act: impl Act<R>) -> R {
        let latch = (&raw const self.latch).cast::<()>();
        // SAFETY, here and below: of the size and alignment of the latch, which is idle when it is zero, and of this type for
        // the life of the process.
        let choice = setting.choice();
        // One comparison for the default, where a `match` is a jump through a table.
        if choice == Choice::SingleWake {
            // SAFETY: as above.
            return act.on(unsafe { &*latch.cast::<WakesOne>() });
        }
        match choice {
            // SAFETY: as above.
            Choice::FetchAddBts => act.on(unsafe { &*latch.cast::<FetchAdd>() }),
            // SAFETY: as above.
            Choice::CasLoop => act.on(unsafe { &*latch.cast::<Cas>() }),
            // SAFETY: as above.
            Choice::SingleWake => act.on(unsafe { &*latch.cast::<WakesOne>() }),
            // SAFETY: as above. Mutexes of libc do not come here.
            Choice::Ssux | Choice::Libc => act.on(unsafe { &*latch.cast::<Ssux>() }),
        }
    }
}

/// Something to do with a latch of any type.
trait Act<R> {
    fn on(self, latch: &impl Exclusive) -> R;
}

struct Acquire;
struct TryAcquire;
struct AcquireBy(Deadline);
struct Release;
struct IsHeld;

impl Act<()> for Acquire {
    #[inline(always)]
    fn on(self, latch: &impl Exclusive) {
        latch.acquire();
    }
}

impl Act<bool> for TryAcquire {
    #[inline(always)]
    fn on(self, latch: &impl Exclusive) -> bool {
        latch.try_acquire()
    }
}

impl Act<c_int> for AcquireBy {
    fn on(self, latch: &impl Exclusive) -> c_int {
        // What is free needs no time that makes sense.
        if latch.try_acquire() {
            return 0;
        }
        loop {
            match self.0.left() {
                Err(error) => return error,
                Ok(left) if left.is_zero() => return ETIMEDOUT,
                Ok(left) if latch.try_acquire_for(left) => return 0,
                // The clock may have been set back.
                Ok(_) => {}
            }
        }
    }
}

impl Act<()> for Release {
    #[inline(always)]
    fn on(self, latch: &impl Exclusive) {
        if latch.is_held() {
            // SAFETY: held, by a caller that may release it.
            unsafe { latch.release() };
        }
    }
}

impl Act<bool> for IsHeld {
    fn on(self, latch: &impl Exclusive) -> bool {
        latch.is_held()
    }
}

/// The number of the calling thread, its `pthread_self`: the same over a fork, and of no other thread that lives.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn caller() -> usize {
    let thread;
    // SAFETY: reads the word in which the ABI keeps the address of the thread's control block, which is glibc's `pthread_self`.
    // A call would take as long as the rest of an acquisition.
    unsafe {
        core::arch::asm!("mov {}, fs:[16]", out(reg) thread, options(nostack, preserves_flags, readonly, pure));
    }
    thread
}

/// The number of the calling thread, its `pthread_self`: the same over a fork, and of no other thread that lives.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn caller() -> usize {
    // SAFETY: no arguments.
    unsafe { libc::pthread_self() as usize }
}

/// Acquires by `acquire` what has an owner.
#[inline]
fn acquire_owned(bytes: &Bytes, kind: Kind, if_own: c_int, acquire: impl FnOnce() -> c_int) -> c_int {
    if bytes.is_owned_by_caller() {
        if kind == Kind::Checked {
            return if_own;
        }
        let Some(again) = bytes.again.load(Relaxed).checked_add(1) else {
            return EAGAIN;
        };
        bytes.again.store(again, Relaxed);
        return 0;
    }
    let result = acquire();
    if result == 0 {
        bytes.owner.store(caller(), Relaxed);
    }
    result
}

/// Acquires a mutex of the default type or a recursive one, if that needs no waiting. Returns whether it did so.
#[inline(always)]
pub(crate) unsafe fn try_lock_usual(setting: Setting, mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    if bytes.is_default() {
        return bytes.with(setting, TryAcquire);
    }
    let attempt = || if bytes.with(setting, TryAcquire) { 0 } else { EBUSY };
    bytes.is_recursive() && acquire_owned(bytes, Kind::Recursive, EBUSY, attempt) == 0
}

/// Releases a mutex of the default type, or a recursive one that the caller owns. Returns whether it released.
#[inline(always)]
pub(crate) unsafe fn unlock_usual(setting: Setting, mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    if bytes.is_default() {
        bytes.with(setting, Release);
        return true;
    }
    let is_own = bytes.is_recursive() && bytes.is_owned_by_caller();
    if is_own {
        release_owned(bytes, setting);
    }
    is_own
}

/// Gives back one of the acquisitions of an owner, the caller.
#[inline(always)]
fn release_owned(bytes: &Bytes, setting: Setting) {
    match bytes.again.load(Relaxed).checked_sub(1) {
        Some(again) => bytes.again.store(again, Relaxed),
        None => {
            bytes.owner.store(0, Relaxed);
            bytes.with(setting, Release);
        }
    }
}

/// `pthread_mutex_lock`.
#[inline(always)]
pub(crate) unsafe fn lock(setting: Setting, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    match bytes.kind(setting) {
        Kind::Normal => {
            bytes.with(setting, Acquire);
            0
        }
        // SAFETY: the caller's.
        Kind::Libc => unsafe { real::pthread_mutex_lock(mutex) },
        kind => acquire_owned(bytes, kind, EDEADLK, || {
            bytes.with(setting, Acquire);
            0
        }),
    }
}

/// `pthread_mutex_trylock`.
#[inline(always)]
pub(crate) unsafe fn try_lock(setting: Setting, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    let attempt = || if bytes.with(setting, TryAcquire) { 0 } else { EBUSY };
    match bytes.kind(setting) {
        Kind::Normal => attempt(),
        // SAFETY: the caller's.
        Kind::Libc => unsafe { real::pthread_mutex_trylock(mutex) },
        kind => acquire_owned(bytes, kind, EBUSY, attempt),
    }
}

/// `pthread_mutex_clocklock` and `pthread_mutex_timedlock`, of a mutex that is not handed on; `None` if it is.
pub(crate) unsafe fn lock_by(
    setting: Setting,
    mutex: *mut pthread_mutex_t,
    deadline: Deadline,
) -> Option<c_int> {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    match bytes.kind(setting) {
        Kind::Normal => Some(bytes.with(setting, AcquireBy(deadline))),
        Kind::Libc => None,
        kind => Some(acquire_owned(bytes, kind, EDEADLK, || {
            bytes.with(setting, AcquireBy(deadline))
        })),
    }
}

/// `pthread_mutex_unlock`.
#[inline(always)]
pub(crate) unsafe fn unlock(setting: Setting, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    match bytes.kind(setting) {
        Kind::Normal => bytes.with(setting, Release),
        // SAFETY: the caller's.
        Kind::Libc => return unsafe { real::pthread_mutex_unlock(mutex) },
        Kind::Recursive | Kind::Checked => {
            if !bytes.is_owned_by_caller() {
                return EPERM;
            }
            release_owned(bytes, setting);
        }
    }
    0
}

/// `pthread_mutex_destroy`.
pub(crate) unsafe fn destroy(setting: Setting, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    if bytes.kind(setting) == Kind::Libc {
        // SAFETY: the caller's.
        return unsafe { real::pthread_mutex_destroy(mutex) };
    }
    if bytes.with(setting, IsHeld) {
        return EBUSY;
    }
    bytes.kind.store(DESTROYED, Relaxed);
    0
}

/// True if libc has the mutex.
pub(crate) unsafe fn is_libc(setting: Setting, mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: the caller's.
    unsafe { Bytes::at(mutex) }.kind(setting) == Kind::Libc
}

/// True if the caller may not release the mutex, by what the mutex knows.
pub(crate) unsafe fn is_of_another(setting: Setting, mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(mutex) };
    matches!(bytes.kind(setting), Kind::Recursive | Kind::Checked) && !bytes.is_owned_by_caller()
}
