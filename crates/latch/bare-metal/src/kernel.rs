//! The bare metal: system calls of Linux on x86-64, and what a compiler expects of any machine.

use core::arch::{asm, global_asm, naked_asm};
use core::cell::UnsafeCell;
use core::fmt::Write;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::time::Duration;

use clearway_machine::{FutexOutcome, FutexWord};

const WRITE: usize = 1;
const ARCH_PRCTL: usize = 158;
const FUTEX: usize = 202;
const CLOCK_GETTIME: usize = 228;
const EXIT_GROUP: usize = 231;

/// # Safety
/// As the call asks.
unsafe fn system_call(number: usize, arguments: [usize; 4]) -> isize {
    let result;
    // SAFETY: the kernel changes rax, rcx and r11 and, in memory, what the caller answers for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2], in("r10") arguments[3],
            out("rcx") _, out("r11") _,
            options(nostack)
        );
    }
    result
}

/// The data that a worker's base register points to.
#[repr(C)]
struct Local {
    worker: u32,
}

static LOCALS: [Local; 2] = [Local { worker: 0 }, Local { worker: 1 }];

/// The number of the worker that calls.
pub(crate) fn worker() -> u32 {
    let worker;
    // SAFETY: `start` and `clone` have pointed the base register to one of `LOCALS`.
    unsafe { asm!("mov {:e}, fs:[0]", out(reg) worker, options(nostack, readonly, preserves_flags)) };
    worker
}

/// Nanoseconds since some instant.
pub(crate) fn now() -> u64 {
    const MONOTONIC: usize = 1;
    let mut time = [0_u64; 2];
    // SAFETY: the kernel writes two words, and there are two.
    let result = unsafe { system_call(CLOCK_GETTIME, [MONOTONIC, (&raw mut time).addr(), 0, 0]) };
    assert_eq!(result, 0, "clock_gettime");
    time[0] * 1_000_000_000 + time[1]
}

const FUTEX_WAIT_PRIVATE: usize = 128;
const FUTEX_WAKE_PRIVATE: usize = 129;

/// `Platform::wait`.
pub(crate) fn wait(word: FutexWord<'_>, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
    const INTERRUPTED: isize = -4;
    const CHANGED: isize = -11;
    const TIMED_OUT: isize = -110;
    let time = timeout.map(|timeout| [timeout.as_secs(), u64::from(timeout.subsec_nanos())]);
    let time = time.as_ref().map_or(0, |time| core::ptr::from_ref(time).addr());
    let arguments = [word.address().addr(), FUTEX_WAIT_PRIVATE, expected as usize, time];
    // SAFETY: the word and the time outlive the call.
    match unsafe { system_call(FUTEX, arguments) } {
        0 | INTERRUPTED => FutexOutcome::Woken,
        CHANGED => FutexOutcome::Changed,
        TIMED_OUT => FutexOutcome::TimedOut,
        error => panic!("futex wait: error {error}"),
    }
}

/// `Platform::wake`.
pub(crate) fn wake(word: FutexWord<'_>, count: u32) -> u32 {
    // As the kernel's counts are signed.
    let count = count.min(i32::MAX as u32) as usize;
    // SAFETY: the kernel does not touch the word.
    let woken = unsafe { system_call(FUTEX, [word.address().addr(), FUTEX_WAKE_PRIVATE, count, 0]) };
    u32::try_from(woken).expect("futex wake")
}

#[repr(C, align(16))]
struct Stack(UnsafeCell<[u8; 256 * 1024]>);

// SAFETY: only the second worker uses it, and there is one at a time.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(UnsafeCell::new([0; 256 * 1024]));

/// Runs `work` in the caller and in a second worker, from the moment that both are there, and returns when
/// both have.
pub(crate) fn with_second_worker<T: Sync>(shared: &T, work: fn(&T)) {
    /// The second worker's argument. When that worker's stack is free the kernel sets `lives` to 0 and wakes
    /// its sleeper.
    #[repr(C)]
    struct Start<'a, T> {
        lives: AtomicU32,
        begun: AtomicU32,
        shared: &'a T,
        work: fn(&T),
    }
    extern "C" fn begin<T>(start: &Start<'_, T>) {
        start.begun.store(1, Relaxed);
        (start.work)(start.shared);
    }
    let start = Start {
        lives: AtomicU32::new(1),
        begun: AtomicU32::new(0),
        shared,
        work,
    };
    let top = STACK.0.get().addr() + size_of::<Stack>();
    let begin: extern "C" fn(&Start<'_, T>) = begin::<T>;
    // SAFETY: the stack is free, because the last worker on it has been waited for, and `start` lives until
    // this one has been.
    let thread = unsafe {
        clone(
            top,
            begin as *const (),
            (&raw const start).cast(),
            start.lives.as_ptr(),
            &LOCALS[1],
        )
    };
    assert!(thread > 0, "clone: error {thread}");
    while start.begun.load(Relaxed) == 0 {
        core::hint::spin_loop();
    }
    work(shared);
    // Acquire: what the second worker did comes before the kernel's 0, and before what the caller does next.
    while start.lives.load(Acquire) != 0 {
        // Not FUTEX_WAIT_PRIVATE: the kernel's wake-up is for shared futexes.
        // SAFETY: the word outlives the call.
        unsafe { system_call(FUTEX, [start.lives.as_ptr().addr(), 0, 1, 0]) };
    }
}

/// Starts a thread on the stack that ends at `top`, which calls `begin(start)`, ends, and has the kernel
/// clear `lives`. Returns its number, or an error below zero.
///
/// # Safety
/// The stack is free, and it, `start` and `lives` stay until `lives` is 0.
#[unsafe(naked)]
unsafe extern "C" fn clone(
    top: usize,
    begin: *const (),
    start: *const (),
    lives: *mut u32,
    local: &'static Local,
) -> isize {
    // CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, CHILD_CLEARTID.
    naked_asm!(
        "sub rdi, 16",
        "mov [rdi], rsi",
        "mov [rdi + 8], rdx",
        "mov rsi, rdi",
        "mov edi, 0x2d0f00",
        "xor edx, edx",
        "mov r10, rcx",
        "mov eax, 56",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "xor ebp, ebp",
        "pop rax",
        "pop rdi",
        "call rax",
        "xor edi, edi",
        "mov eax, 60",
        "syscall",
        "ud2",
    )
}

// The kernel enters here, with the number of arguments on the stack.
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, [rsp]",
    "and rsp, -16",
    "call {start}",
    "ud2",
    start = sym start
);

/// The program's own name is the first argument.
extern "C" fn start(argument_count: usize) -> ! {
    const SET_FS: usize = 0x1002;
    // SAFETY: `LOCALS` is static, and nothing else of this program uses the base register.
    let result = unsafe { system_call(ARCH_PRCTL, [SET_FS, (&raw const LOCALS[0]).addr(), 0, 0]) };
    assert_eq!(result, 0, "arch_prctl");
    crate::main(argument_count > 1);
    exit(0)
}

fn exit(status: usize) -> ! {
    // SAFETY: nothing comes after it.
    unsafe { system_call(EXIT_GROUP, [status, 0, 0, 0]) };
    loop {
        core::hint::spin_loop();
    }
}

/// Writes to standard error.
pub(crate) fn print(message: core::fmt::Arguments<'_>) {
    struct StandardError;
    impl Write for StandardError {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            // SAFETY: the kernel reads the text.
            unsafe { system_call(WRITE, [2, text.as_ptr().addr(), text.len(), 0]) };
            Ok(())
        }
    }
    let _ = StandardError.write_fmt(message);
}

#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    print(format_args!("{info}\n"));
    exit(1)
}

// What a compiler calls of any machine's C library.

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; the direction flag is clear in every function.
    unsafe {
        asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack))
    };
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; the direction flag is clear in every function.
    unsafe {
        asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8, options(nostack))
    };
    to
}

/// `core` as it is delivered names it in its tables for unwinding, which nothing reads.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
