//! Counts of the work of sessions: transactions, statements, rows, pages, temporary files.
//!
//! A session adds to counts of its own, which others may read at any time: no cache line is shared by sessions that work.
//! The counts of a session that closes go to the engine's, under the lock of the list of sessions. So a sum that is taken
//! under this lock has each session once, and never falls.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_storage::PageCounts;

thread_local! {
    static FILES: Cell<TemporaryFiles> = const { Cell::new(TemporaryFiles { files: 0, bytes: 0 }) };
}

/// Temporary files that a thread has made, and the bytes that it has written to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TemporaryFiles {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl TemporaryFiles {
    /// Those of the calling thread that no one has taken; they are taken by this.
    #[inline]
    pub(crate) fn not_taken() -> TemporaryFiles {
        FILES.take()
    }

    /// The calling thread has made so many, and has written so many bytes to some.
    pub(crate) fn add(files: u64, bytes: usize) {
        let counted = FILES.get();
        FILES.set(TemporaryFiles {
            files: counted.files + files,
            bytes: counted.bytes + bytes as u64,
        });
    }
}

/// The counts of one session, or of all that have closed.
#[derive(Debug, Default)]
pub(crate) struct SessionCounts {
    commits: AtomicU64,
    rollbacks: AtomicU64,
    hit: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    statements: AtomicU64,
    errors: AtomicU64,
    rows: AtomicU64,
    deadlocks: AtomicU64,
    temporary_files: AtomicU64,
    temporary_bytes: AtomicU64,
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
    /// Statements that ended without an error,
    pub(crate) statements: u64,
    /// and with one.
    pub(crate) errors: u64,
    /// Rows in the tags of statements.
    pub(crate) rows: u64,
    /// Errors that ended a deadlock.
    pub(crate) deadlocks: u64,
    /// Temporary files,
    pub(crate) temporary_files: u64,
    /// and the bytes written to them.
    pub(crate) temporary_bytes: u64,
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
        let temporary = TemporaryFiles::not_taken();
        add(&self.temporary_files, temporary.files);
        add(&self.temporary_bytes, temporary.bytes);
    }

    /// A statement of the session has ended without an error.
    #[inline]
    pub(crate) fn statement_ended(&self) {
        add(&self.statements, 1);
    }

    /// A statement of the session has ended with an error.
    pub(crate) fn statement_failed(&self) {
        add(&self.errors, 1);
    }

    /// A statement has so many rows in its tag.
    #[inline]
    pub(crate) fn rows_told(&self, rows: u64) {
        add(&self.rows, rows);
    }

    /// An error of the session has ended a deadlock.
    pub(crate) fn deadlock_ended(&self) {
        add(&self.deadlocks, 1);
    }

    /// The counts now.
    pub(crate) fn now(&self) -> CountedWork {
        CountedWork {
            commits: self.commits.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            hit: self.hit.load(Ordering::Relaxed),
            read: self.read.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            deadlocks: self.deadlocks.load(Ordering::Relaxed),
            temporary_files: self.temporary_files.load(Ordering::Relaxed),
            temporary_bytes: self.temporary_bytes.load(Ordering::Relaxed),
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
        add(&self.statements, closed.statements);
        add(&self.errors, closed.errors);
        add(&self.rows, closed.rows);
        add(&self.deadlocks, closed.deadlocks);
        add(&self.temporary_files, closed.temporary_files);
        add(&self.temporary_bytes, closed.temporary_bytes);
    }
}

impl std::ops::AddAssign for CountedWork {
    fn add_assign(&mut self, other: CountedWork) {
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.hit += other.hit;
        self.read += other.read;
        self.written += other.written;
        self.statements += other.statements;
        self.errors += other.errors;
        self.rows += other.rows;
        self.deadlocks += other.deadlocks;
        self.temporary_files += other.temporary_files;
        self.temporary_bytes += other.temporary_bytes;
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
        session.statement_ended();
        session.statement_failed();
        session.rows_told(7);
        session.deadlock_ended();
        closed.take_over(&session);
        closed.take_over(&session);
        let sum = closed.now();
        assert_eq!((sum.commits, sum.rollbacks), (4, 2));
        assert_eq!(
            (sum.statements, sum.errors, sum.rows, sum.deadlocks),
            (2, 2, 14, 2)
        );
    }
}
