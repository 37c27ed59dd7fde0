//! A session's number.

/// A session's slot in the array of running transactions; not the thread's worker slot, since one thread may drive
/// several sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcId(pub u32);
