//! Memory that a client decides about is asked for before it is taken.
//!
//! Rust ends the process when an allocation fails. So code that is about to allocate much at a client's wish
//! ([`require`]) asks first. What cannot be had ends that statement with 53200, and the server goes on.
//!
//! A request is weighed twice:
//! 1. What the process has resident and the request together must not exceed `server_memory`. By default that is nine
//!    tenths of what the machine has, or the process's control group if that is less. So the statement is refused before
//!    the kernel would kill the server.
//! 2. The operating system must have the request, and `HEADROOM` beside it for what others allocate meanwhile without
//!    asking. It is allocated for a moment and given back. Where memory is limited by address space (`ulimit -v`) or not
//!    overcommitted, this is where a statement learns of it.
//!
//! # What this covers
//! Texts that expressions make, the texts of a row and the message that takes them to the client, the planning of long
//! statements, new sessions, and the start of the server. Requests below [`WEIGHED_MIN`] are not weighed: they touch
//! nothing that sessions share, and the headroom is for them. Two large requests at the same moment are weighed one by
//! one and may both find what is there for one of them; the headroom makes that unlikely, not impossible. Sorts and
//! groupings have their own limit, `work_mem`.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::Config;
use crate::error::{EngineError, Result, SqlState};

/// Requests of fewer bytes are not weighed.
pub const WEIGHED_MIN: usize = 1 << 20;

/// Memory that is left for others beside a request.
const HEADROOM: usize = 32 << 20;

/// Memory of the latches, the log's buffer, the allocator and the first sessions beside the pages, at the start.
const START_BYTES: usize = 96 << 20;

/// Bytes that the process may have; 0: no limit. The process's, as its memory is: the last engine that was opened sets it.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Asks for memory before it is allocated; 53200 if it cannot be had.
#[inline]
pub fn require(bytes: usize) -> Result<()> {
    if bytes < WEIGHED_MIN {
        return Ok(());
    }
    weigh(bytes, LIMIT.load(Ordering::Relaxed))
}

#[cold]
fn weigh(bytes: usize, limit: u64) -> Result<()> {
    if limit != 0 {
        let resident = resident_bytes().unwrap_or(0);
        if resident.saturating_add(bytes as u64) > limit {
            return Err(out_of_memory(
                format!(
                    "The server has {} MB of {} MB, and {} MB more are wanted.",
                    resident >> 20,
                    limit >> 20,
                    megabytes(bytes)
                ),
                "Use fewer or shorter values at a time, or raise server_memory in the configuration file.",
            ));
        }
    }
    if can_be_had(bytes.saturating_add(HEADROOM)) {
        return Ok(());
    }
    Err(out_of_memory(
        format!("The operating system refuses {} MB.", megabytes(bytes)),
        "Use fewer or shorter values at a time, or give the server more memory (ulimit -v, control groups).",
    ))
}

fn out_of_memory(detail: String, hint: &str) -> EngineError {
    EngineError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(detail)
        .with_hint(hint)
}

fn megabytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

/// True if the operating system has this many bytes now.
fn can_be_had(bytes: usize) -> bool {
    let mut probe = Vec::<u8>::new();
    let had = probe.try_reserve_exact(bytes).is_ok();
    // Otherwise a compiler may take the allocation out, and the answer would be yes.
    std::hint::black_box(&mut probe);
    had
}

/// 53200 for a session that the server has no memory for.
pub(crate) fn require_for_session() -> Result<()> {
    let limit = LIMIT.load(Ordering::Relaxed);
    match resident_bytes() {
        Some(resident) if limit != 0 && resident > limit => Err(out_of_memory(
            format!("The server has {} MB of {} MB.", resident >> 20, limit >> 20),
            "Wait until other sessions have ended, or raise server_memory in the configuration file.",
        )),
        _ => Ok(()),
    }
}

/// Sets the limit, and asks for what an engine with this configuration takes at its start.
pub(crate) fn prepare(config: &Config) -> Result<()> {
    let limit = match config.server_memory.bytes() {
        0 => machine_bytes().map_or(0, |bytes| bytes / 10 * 9),
        bytes => bytes,
    };
    LIMIT.store(limit, Ordering::Relaxed);
    let pages = config.shared_buffers.bytes() as usize;
    let wanted = pages.saturating_add(START_BYTES);
    if can_be_had(wanted) {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::OUT_OF_MEMORY,
        format!(
            "out of memory at the start: shared_buffers is {}, and with it the server needs {} MB",
            config.shared_buffers,
            megabytes(wanted)
        ),
    )
    .with_hint("Lower shared_buffers in the configuration file, or give the server more memory (ulimit -v)."))
}

/// Bytes of the process that are in memory.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The unit of `statm`, on the machines that this runs on.
const PAGE_BYTES: u64 = 4096;

/// The memory of the machine, or of the control group of the process, if that is less.
fn machine_bytes() -> Option<u64> {
    let of_group = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|file| bytes_in(Path::new(file)));
    let of_machine = crate::config::memory_bytes();
    [of_group, of_machine].into_iter().flatten().min()
}

/// The number in a file; `None` if there is none ("max").
fn bytes_in(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
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
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(machine_bytes().unwrap() > 1 << 20);
    }
}
