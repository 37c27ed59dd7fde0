//! The process's memory, as the program's allocator knows it.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// The program's allocator, as the engine asks it and tells it. A library cannot choose the allocator of a program, so
/// the program installs one that can answer, and hands it to [`install`].
///
/// Sizes are in bytes. A call neither fails nor blocks for long.
pub trait ProcessMemory: Sync {
    /// Bytes that the calling thread has allocated and not freed; less than 0 if it has freed what others allocated.
    fn thread_bytes(&self) -> i64;
    /// Bytes that all threads have allocated and not freed.
    fn allocated_bytes(&self) -> u64;
    /// Bytes in use of what the allocator keeps for when the system has nothing.
    fn reserve_bytes(&self) -> u64;
    /// Promises bytes to the calling thread if the system has these, all others that were promised, and `beside` more.
    /// Replaces an earlier promise. What the thread allocates is taken from it.
    fn promise(&self, bytes: usize, beside: usize) -> bool;
    /// The calling thread takes no more of its promise.
    fn drop_promise(&self);
    /// Bytes that were promised and not taken.
    fn promised_bytes(&self) -> u64;
    /// True if the system has so many bytes now, in one piece.
    fn has(&self, bytes: usize) -> bool;
    /// True if the system has so much address space now, beside what the allocator has for itself.
    fn has_space(&self, bytes: usize) -> bool;
    /// True if the system has refused memory since the last call of [`recovered`](Self::recovered).
    fn is_short(&self) -> bool;
    /// The system has memory again. From now on, attention is raised when more than `mark` bytes are allocated.
    fn recovered(&self, mark: u64);
    /// Attention, to be raised (Relaxed) when the system refuses memory or the mark is passed.
    fn watch(&self, attention: &'static AtomicBool);
    /// Gives freed memory back to the system.
    fn give_back(&self);
    /// The calling thread is about to end.
    fn settle(&self);
}

/// Raised by the allocator; lowered by `pressure`.
pub(super) static ATTENTION: AtomicBool = AtomicBool::new(false);

static INSTALLED: OnceLock<&'static dyn ProcessMemory> = OnceLock::new();

/// Has the engines of this process ask `process` from now on. A second call changes nothing.
pub fn install(process: &'static dyn ProcessMemory) {
    if INSTALLED.set(process).is_ok() {
        process.watch(&ATTENTION);
    }
}

#[inline]
pub(super) fn installed() -> Option<&'static dyn ProcessMemory> {
    INSTALLED.get().copied()
}

pub(super) fn give_back() {
    if let Some(process) = installed() {
        process.give_back();
    }
}
