//! The contract of a latch that can lie in a segment.

/// A latch that can lie in a segment.
///
/// # Safety
/// `is_made` may be called of any bytes, and is true of those alone that were made a latch of this kind, as far as a number of
/// 32 bits says so.
pub(super) unsafe trait Placed: Sized {
    /// True if a latch was made here.
    fn is_made(&self) -> bool;
}
