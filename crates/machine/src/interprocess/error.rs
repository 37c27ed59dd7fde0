//! Errors of memory that processes share.

use core::fmt;

/// The reason why a segment, or a thread's part in it, could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// The memory is too small for the workers that it is to have.
    TooSmall {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that there are.
        given: u64,
    },
    /// The memory does not begin at a multiple of 128 bytes.
    Misaligned,
    /// There is no segment in the memory, or it is not made to the end yet.
    NotASegment,
    /// The segment was made by a program of another layout: another version of the library, or other features.
    OtherLayout {
        /// The number in the segment.
        found: u64,
        /// The number of the caller's program.
        expected: u64,
    },
    /// The segment was made in memory of another size.
    OtherSize {
        /// Bytes when it was made.
        made: u64,
        /// Bytes that the caller has mapped.
        given: u64,
    },
    /// The process has a segment already. It has one at a time.
    AlreadyAttached,
    /// The thread is a worker of the segment already.
    AlreadyRegistered,
    /// The calling thread is no worker of the segment, or is no longer: a child of `fork` is not the worker that its parent
    /// is.
    NotRegistered,
    /// All worker slots are taken.
    NoSlot {
        /// As many as there are.
        workers: u32,
    },
    /// The part of the segment for latches and data is full.
    NoRoom {
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// There is nothing of that kind at this place of the segment.
    NotThere,
    /// The worker does not hold the latch, or not in this mode.
    NotHeld,
    /// The worker holds as many latches as can be noted.
    TooManyHeld,
    /// The process is of another PID namespace or time namespace than the one that made the segment: they would take each
    /// other for dead.
    OtherNamespace,
    /// A worker has died while it held a latch or changed one: every process has to end, and the segment to be made anew.
    Broken,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { needed, given } => {
                write!(f, "a segment for these workers needs {needed} bytes, and has {given}")
            }
            Self::Misaligned => f.write_str("the memory of a segment begins at a multiple of 128 bytes"),
            Self::NotASegment => f.write_str("there is no segment in this memory, or it is not ready yet"),
            Self::OtherLayout { found, expected } => write!(
                f,
                "the segment is of layout {found:#x}, and this program of {expected:#x}: it was built from another version or \
                 with other features"
            ),
            Self::OtherSize { made, given } => {
                write!(f, "the segment was made with {made} bytes, and {given} are mapped")
            }
            Self::AlreadyAttached => f.write_str("the process has a segment, and can have one at a time"),
            Self::AlreadyRegistered => f.write_str("the thread is a worker of the segment already"),
            Self::NotRegistered => f.write_str("the thread is no worker of the segment"),
            Self::NoSlot { workers } => write!(f, "all {workers} worker slots of the segment are taken"),
            Self::NoRoom { wanted, left } => {
                write!(f, "the segment has {left} bytes left, and {wanted} are wanted")
            }
            Self::NotThere => f.write_str("there is no such latch at this place of the segment"),
            Self::NotHeld => f.write_str("the worker does not hold the latch in this mode"),
            Self::TooManyHeld => f.write_str("the worker holds as many latches as the segment can note"),
            Self::OtherNamespace => {
                f.write_str("the segment was made in another PID or time namespace than the process's")
            }
            Self::Broken => f.write_str(
                "a worker has died while it held or changed a latch of the segment, which has to be made anew",
            ),
        }
    }
}

impl core::error::Error for SegmentError {}
