//! Memory: a statement that wants or holds too much ends with 53200, and the server goes on.
//!
//! Rust ends the process when an allocation fails, and the kernel ends a process that takes more than its machine or its
//! control group has. A client decides how much a statement takes. So:
//!
//! 1. **Large requests are weighed before they are made** ([`require`]): texts that expressions make, the texts of a row
//!    once more for what copies it, messages and COPY lines on their way in, sort buffers and hash
//!    tables, the planning of long statements, stacks, sessions, and the start of the server. A request that
//!    cannot be met is refused there, and a plan that can go on with less memory does so (a sort writes a run).
//! 2. **What grows by small pieces is watched** (`pressure`): when the process as a whole has too much, the statement
//!    whose session holds the most ends.
//! 3. **Until it has ended, the program's allocator has a reserve** ([`ProcessMemory`]): so an allocation that was
//!    not weighed succeeds too.
//!
//! # Weighing
//! A request must be had from both of these:
//! 1. The operating system, with `HEADROOM` beside it for what others allocate meanwhile without asking. Where memory
//!    is limited by address space (`ulimit -v`) or not overcommitted, this is where a statement learns of it.
//! 2. `server_memory`: what the process has and the request must not exceed it. By default that is nine tenths of what
//!    the machine has, or the process's control group if that is less. So the statement is refused before the kernel
//!    would kill the server. What the process has is what it has resident: that is what the kernel counts.
//!
//! With a [`ProcessMemory`] requests are weighed together: each is a promise until it has been allocated. Requests below
//! [`WEIGHED_MIN`] are not weighed: they touch nothing that sessions share, and the headroom is for them.
//!
//! # Without a [`ProcessMemory`]
//! A program that embeds the engine need not install one. Then requests are weighed one by one, and 2. and 3. of the first
//! list are missing.

mod machine;
mod pressure;
mod process;

use std::cell::Cell;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::memory::Weigher;

pub(crate) use machine::machine_bytes;
pub(crate) use pressure::{attention, must_end, scarcity_error};
pub use process::{ProcessMemory, install};

pub use clearway_sql::memory::WEIGHED_MIN;

/// Bytes that stay for others beside a request.
const HEADROOM: usize = 32 << 20;

/// Bytes of the latches, the log's buffer, the allocator and the first sessions, beside the pages, at the start.
const START_BYTES: usize = 96 << 20;

/// Bytes that the process may have; 0: no limit. The process's, as its memory is: the last engine that was opened sets it.
static LIMIT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// True if this thread may have a promise left.
    static PROMISED: Cell<bool> = const { Cell::new(false) };
}

/// Asks for memory before it is allocated; 53200 if it cannot be had.
#[inline]
pub fn require(bytes: usize) -> Result<(), EngineError> {
    if bytes < WEIGHED_MIN {
        return Ok(());
    }
    weigh(bytes, LIMIT.load(Ordering::Relaxed))
}

#[cold]
fn weigh(bytes: usize, limit: u64) -> Result<()> {
    if !promised(bytes) {
        return Err(refused_by_system(bytes));
    }
    if limit != 0 && used_after(bytes) > limit {
        // What others have freed may still be resident.
        process::give_back();
        let used = used_after(bytes);
        if used > limit {
            end_promise();
            return Err(refused_by_limit(used.saturating_sub(bytes as u64), limit, bytes));
        }
    }
    Ok(())
}

/// True if the system has these bytes and all that were promised.
fn promised(bytes: usize) -> bool {
    let Some(process) = process::installed() else {
        return can_be_had(bytes.saturating_add(HEADROOM));
    };
    let promised = process.promise(bytes, HEADROOM);
    PROMISED.set(promised);
    promised
}

/// Bytes that the process will have with all that was promised, of which `bytes` are the caller's.
fn used_after(bytes: usize) -> u64 {
    let promised = process::installed().map_or(bytes as u64, ProcessMemory::promised_bytes);
    used().saturating_add(promised)
}

/// Bytes that the process has.
fn used() -> u64 {
    machine::resident_bytes().unwrap_or(0)
}

/// The calling thread's statement has ended: what it was promised and did not take is for others.
#[inline]
pub(crate) fn statement_ended() {
    if PROMISED.get() {
        end_promise();
    }
}

#[cold]
fn end_promise() {
    PROMISED.set(false);
    if let Some(process) = process::installed() {
        process.drop_promise();
    }
}

/// The calling thread is about to end: what it has allocated and freed is told. Without this call the sum over all threads
/// is wrong by up to 64 KiB from then on.
pub fn thread_ends() {
    statement_ended();
    if let Some(process) = process::installed() {
        process.settle();
    }
}

/// The calling thread's statement was out of memory, and has freed what it had: the system gets it back.
#[cold]
pub(crate) fn after_refusal() {
    statement_ended();
    process::give_back();
}

/// Bytes that the calling thread has allocated and not freed, as far as that is known.
#[inline]
pub(crate) fn of_thread() -> u64 {
    process::installed().map_or(0, |process| process.thread_bytes().max(0) as u64)
}

fn refused_by_limit(used: u64, limit: u64, bytes: usize) -> EngineError {
    out_of_memory(
        format!(
            "The server has {} MB of {} MB, and {} MB more are wanted.",
            used >> 20,
            limit >> 20,
            megabytes(bytes)
        ),
        "Use fewer or shorter values at a time, or raise server_memory in the configuration file.",
    )
}

fn refused_by_system(bytes: usize) -> EngineError {
    out_of_memory(
        format!("The operating system refuses {} MB.", megabytes(bytes)),
        "Use fewer or shorter values at a time, or give the server more memory (ulimit -v, control groups).",
    )
}

fn out_of_memory(detail: String, hint: &str) -> EngineError {
    EngineError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(detail)
        .with_hint(hint)
}

fn megabytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

/// True if the operating system has so many bytes now.
fn can_be_had(bytes: usize) -> bool {
    if let Some(process) = process::installed() {
        return process.has(bytes);
    }
    let mut probe = Vec::<u8>::new();
    let had = probe.try_reserve_exact(bytes).is_ok();
    // Otherwise a compiler may take the allocation out, and the answer would be yes.
    std::hint::black_box(&mut probe);
    had
}

/// Bytes of a new thread beside its stack: of its own, of the C library, of the allocator.
const THREAD_BYTES: usize = 4 << 20;

/// 53200 if there is no address space for a thread with a stack of so many bytes. A thread that starts and finds nothing
/// for its signal stack ends the process.
pub fn require_thread(stack_bytes: usize) -> Result<(), EngineError> {
    require_space(stack_bytes + THREAD_BYTES)
}

/// 53200 if there is no address space for a mapping of so many bytes, such as a stack.
pub(crate) fn require_space(bytes: usize) -> Result<()> {
    match process::installed() {
        Some(process) if !process.has_space(bytes) => Err(refused_by_system(bytes)),
        _ => Ok(()),
    }
}

/// 53200 for a session that the server has no memory for.
pub(crate) fn require_for_session() -> Result<()> {
    if attention() && pressure::look() {
        return Err(scarcity_error(0).with_hint(
            "Wait until other sessions have ended, or give the server more memory (server_memory, ulimit -v).",
        ));
    }
    let limit = LIMIT.load(Ordering::Relaxed);
    let used = used();
    if limit == 0 || used <= limit {
        return Ok(());
    }
    Err(out_of_memory(
        format!("The server has {} MB of {} MB.", used >> 20, limit >> 20),
        "Wait until other sessions have ended, or raise server_memory in the configuration file.",
    ))
}

/// Sets the limit (0: by the machine), and asks for what an engine with so much for pages takes at its start.
pub(crate) fn prepare(server_memory: u64, shared_buffers: u64, shown: impl Display) -> Result<()> {
    let limit = match server_memory {
        0 => machine::available_bytes().map_or(0, |bytes| bytes / 10 * 9),
        bytes => bytes,
    };
    LIMIT.store(limit, Ordering::Relaxed);
    clearway_sql::memory::weigh_by(Weigher {
        bytes: require,
        space: require_space,
    });
    pressure::begin();
    let wanted = (shared_buffers as usize).saturating_add(START_BYTES);
    if can_be_had(wanted) {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::OUT_OF_MEMORY,
        format!(
            "out of memory at the start: shared_buffers is {shown}, and with it the server needs {} MB",
            megabytes(wanted)
        ),
    )
    .with_hint("Lower shared_buffers in the configuration file, or give the server more memory (ulimit -v)."))
}

/// Numbers of the process, by name, in bytes; `None` where it is not known.
pub(crate) fn of_process() -> Vec<(&'static str, Option<u64>)> {
    let process = process::installed();
    let limit = LIMIT.load(Ordering::Relaxed);
    vec![
        ("limit", (limit != 0).then_some(limit)),
        ("resident", machine::resident_bytes()),
        ("allocated", process.map(ProcessMemory::allocated_bytes)),
        ("promised", process.map(ProcessMemory::promised_bytes)),
        ("reserve in use", process.map(ProcessMemory::reserve_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_beyond_the_limit_is_refused_and_a_small_one_is_not_weighed() {
        let error = weigh(64 << 20, 1 << 20).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::OUT_OF_MEMORY);
        assert!(
            error.detail().unwrap().contains("64 MB more are wanted"),
            "{error:?}"
        );
        assert!(error.hint().unwrap().contains("server_memory"));
        weigh(2 << 20, 1 << 50).unwrap();
        weigh(2 << 20, 0).unwrap();
        require(WEIGHED_MIN - 1).unwrap();
    }

    /// More than an address has bits.
    #[test]
    fn what_the_system_has_not_got_is_refused() {
        let error = weigh(1 << 60, 0).unwrap_err();
        assert!(error.detail().unwrap().contains("operating system"), "{error:?}");
    }
}
