//! A value that depends on the log, and on no commit (S10).

use super::SeenCommits;
use crate::page::Lsn;

/// A value that a client may be shown when the log is secured up to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the value is there once it is noted"]
pub struct Unsecured<T> {
    value: T,
    position: Lsn,
}

impl<T> Unsecured<T> {
    /// `value` may be shown when the log is secured up to `position`.
    pub const fn new(value: T, position: Lsn) -> Self {
        Self { value, position }
    }

    /// The value, for the session of `seen`, whose answers with rows depend on it from now on. `secured`: up to where the
    /// log is.
    #[inline]
    pub fn noted_in(self, seen: &SeenCommits, secured: Lsn) -> T {
        if self.position > secured {
            seen.note_value(self.position);
        }
        self.value
    }
}
