//! Large requests for memory, weighed before they are made.
//!
//! This crate makes texts and stacks as large as a client asks for, and knows nothing of what the process may have. The
//! program that does installs a [`Weigher`]; without one every request is granted.

use std::sync::OnceLock;

use crate::error::Result;

/// Requests of fewer bytes are not weighed.
pub const WEIGHED_MIN: usize = 1 << 20;

/// The process's answers to requests: `Ok`, or 53200.
#[derive(Debug, Clone, Copy)]
pub struct Weigher {
    /// Grants so many bytes, or refuses them.
    pub bytes: fn(usize) -> Result<()>,
    /// Grants a mapping of so many bytes, such as a stack, or refuses it.
    pub space: fn(usize) -> Result<()>,
}

static WEIGHER: OnceLock<Weigher> = OnceLock::new();

/// Installs the process's weigher. The first one stays.
pub fn weigh_by(weigher: Weigher) {
    let _ = WEIGHER.set(weigher);
}

/// Asks for memory before it is allocated; 53200 if it cannot be had.
#[inline]
pub fn require(bytes: usize) -> Result<()> {
    if bytes < WEIGHED_MIN {
        return Ok(());
    }
    WEIGHER.get().map_or(Ok(()), |weigher| (weigher.bytes)(bytes))
}

/// 53200 if there is no address space for a mapping of so many bytes.
pub(crate) fn require_space(bytes: usize) -> Result<()> {
    WEIGHER.get().map_or(Ok(()), |weigher| (weigher.space)(bytes))
}
