//! A line on standard error before a signal ends the process.
//!
//! A fault in unsafe code, a page that cannot be read into memory, `kill -ABRT` by a supervisor: the kernel ends the process
//! for these signals without a word, and the server's log stops in the middle. A handler cannot
//! repair anything, but it can write a line:
//!
//! 1. The handler writes the line with `write(2)`, which a handler may call at any moment, and nothing else of this program.
//!    It waits a second for a pipe that is full, with `poll(2)`: a process that is to end must not wait for the reader of its
//!    log.
//! 2. After a fault in reading or writing memory it puts back what was to happen before, and returns. The instruction is run
//!    again and faults again, and Rust's own handler tells whether a stack has overflowed.
//! 3. For every other cause it puts back the default and raises the signal again, which is blocked while the handler runs and
//!    arrives when that returns. (Rust's handler takes a SIGSEGV that another process has sent for one that is over.)
//!
//! So the process ends by the same signal as without the handler, with its core file, and its parent sees that signal.
//!
//! SIGKILL cannot be handled: of that (the kernel's out-of-memory killer, as a rule) only the kernel's log tells.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use std::io;

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, c_int, c_void, siginfo_t};

/// Signals that end a process by default, that no server can go on after, and their lines.
const LINES: [(c_int, &str); 7] = [
    (SIGABRT, "clearway: ended by SIGABRT\n"),
    (SIGBUS, "clearway: ended by SIGBUS\n"),
    (SIGFPE, "clearway: ended by SIGFPE\n"),
    (SIGILL, "clearway: ended by SIGILL\n"),
    (SIGSEGV, "clearway: ended by SIGSEGV\n"),
    (SIGSYS, "clearway: ended by SIGSYS\n"),
    (SIGTRAP, "clearway: ended by SIGTRAP\n"),
];

/// The time that the handler waits for standard error to take a line.
const PATIENCE_MS: c_int = 1_000;

/// Dispositions from before.
struct Before([UnsafeCell<MaybeUninit<libc::sigaction>>; LINES.len()]);

// SAFETY: each place is written once, by `tell_of_fatal_signals` before it installs that signal's handler, and read by that
// handler only. Installing a handler is a system call, which orders the write before any run of the handler.
unsafe impl Sync for Before {}

static BEFORE: Before = Before([const { UnsafeCell::new(MaybeUninit::uninit()) }; LINES.len()]);
static INSTALLED: std::sync::Once = std::sync::Once::new();

/// From now on the process writes a line to standard error when one of the signals ends it that tell of a fault, or of a
/// supervisor's impatience: SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP. What follows is as before.
pub fn tell_of_fatal_signals() -> io::Result<()> {
    let mut outcome = Ok(());
    INSTALLED.call_once(|| outcome = install());
    outcome
}

fn install() -> io::Result<()> {
    for (place, (signal, _)) in BEFORE.0.iter().zip(LINES) {
        // SAFETY: plain old data, for which zeros are valid: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = last_words as extern "C" fn(c_int, *const siginfo_t, *const c_void) as usize;
        // Rust gives each thread a stack for signals, which SIGSEGV needs when the thread's own has overflowed.
        action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO;
        // SAFETY: `signal` is a valid number, and the pointer is to a place for one `sigaction` that lives for ever. No
        // handler reads it yet (`Before`), and `Once` keeps other threads from writing it.
        let read = unsafe { libc::sigaction(signal, core::ptr::null(), (*place.get()).as_mut_ptr()) };
        // SAFETY: `action` is a whole `sigaction`, and its handler has the signature that its flags ask for.
        let set = unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
        if read != 0 || set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Steps 1 to 3.
extern "C" fn last_words(signal: c_int, info: *const siginfo_t, _context: *const c_void) {
    let Some(at) = LINES.iter().position(|(number, _)| *number == signal) else {
        return;
    };
    let line = LINES[at].1;
    let mut output = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the pointer is to one `pollfd`, as the number says; `poll` may be called in a handler.
    let has_room = unsafe { libc::poll(&raw mut output, 1, PATIENCE_MS) } > 0;
    if has_room {
        // SAFETY: the pointer and the length are those of a string that lives for ever; `write` may be called in a handler.
        // Whatever it answers, nothing else can be done.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    }
    // SAFETY: with SA_SIGINFO the kernel passes a pointer to what it tells of the signal. Positive: the kernel's own.
    let is_fault = unsafe { (*info).si_code } > 0;
    if is_fault && (signal == SIGSEGV || signal == SIGBUS) {
        // SAFETY: `install` has written the place before it installed this handler (`Before`); `sigaction` may be called in
        // a handler.
        unsafe { libc::sigaction(signal, (*BEFORE.0[at].get()).as_ptr(), core::ptr::null_mut()) };
        return;
    }
    // SAFETY: plain old data, for which zeros are valid: the default disposition.
    let default: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `default` is a whole `sigaction`; both may be called in a handler.
    unsafe {
        libc::sigaction(signal, &raw const default, core::ptr::null_mut());
        libc::raise(signal);
    }
}
