//! Counts of the work of sessions: transactions and pages.
//!
//! A session adds to counts of its own, which others may read at any time: no cache line is shared by sessions that work.
//! The counts of a session that closes go to the engine's, under the lock of the list of sessions. So a sum that is taken
//! under this lock has each session once, and never falls.

use std::sync::atomic::{AtomicU64, Ordering};

use clearway_storage::PageCounts;

/// The counts of one session, or of all that have closed.
#[derive(Debug, Default)]
pub(crate) struct SessionCounts {
    commits: AtomicU64,
    rollbacks: AtomicU64,
    hit: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

/// Counts as they were at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CountedWork {
    /// Transactions that committed, those that only read among them.
    pub(crate) commits: u64,
    /// Transactions that rolled back.
    pub(crate) rollbacks: u64,
    /// Pages used: see [`PageCounts`], of which a read without a pin is no part.
    pub(crate) hit: u64,
    /// Pages read from their files.
    pub(crate) read: u64,
    /// Pages written to their files, or added to them.
    pub(crate) written: u64,
}

/// Adds to a count that no other thread writes.
fn add(count: &AtomicU64, more: u64) {
    if more > 0 {
        count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

impl SessionCounts {
    /// The session's transaction has ended, on the calling thread, which serves the session.
    pub(crate) fn transaction_ended(&self, committed: bool) {
        add(if committed { &self.commits } else { &self.rollbacks }, 1);
        let pages = PageCounts::not_taken();
        add(&self.hit, pages.hit);
        add(&self.read, pages.read);
        add(&self.written, pages.written);
    }

    /// The counts now.
    pub(crate) fn now(&self) -> CountedWork {
        CountedWork {
            commits: self.commits.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            hit: self.hit.load(Ordering::Relaxed),
            read: self.read.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }

    /// Adds the counts of a session that closes; one thread at a time.
    pub(crate) fn take_over(&self, session: &SessionCounts) {
        let closed = session.now();
        add(&self.commits, closed.commits);
        add(&self.rollbacks, closed.rollbacks);
        add(&self.hit, closed.hit);
        add(&self.read, closed.read);
        add(&self.written, closed.written);
    }
}

impl std::ops::AddAssign for CountedWork {
    fn add_assign(&mut self, other: CountedWork) {
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.hit += other.hit;
        self.read += other.read;
        self.written += other.written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_closes_leaves_its_counts() {
        let (closed, session) = (SessionCounts::default(), SessionCounts::default());
        session.transaction_ended(true);
        session.transaction_ended(true);
        session.transaction_ended(false);
        closed.take_over(&session);
        closed.take_over(&session);
        assert_eq!((closed.now().commits, closed.now().rollbacks), (4, 2));
    }
}
