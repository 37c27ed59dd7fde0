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

macro_rules! counts {
    ($($(#[$of:meta])+ $count:ident,)*) => {
        /// The counts of one session, or of all that have closed.
        #[derive(Debug, Default)]
        pub(crate) struct SessionCounts {
            $($count: AtomicU64,)*
        }

        /// Counts as they were at a moment.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct CountedWork {
            $($(#[$of])+ pub(crate) $count: u64,)*
        }

        impl SessionCounts {
            /// The counts now.
            pub(crate) fn now(&self) -> CountedWork {
                CountedWork {
                    $($count: self.$count.load(Ordering::Relaxed),)*
                }
            }

            /// Adds the counts of a session that closes; one session at a time.
            pub(crate) fn take_over(&self, session: &SessionCounts) {
                let closed = session.now();
                $(add(&self.$count, closed.$count);)*
            }
        }

        impl CountedWork {
            /// The work since an earlier reading.
            pub(crate) fn since(&self, before: &CountedWork) -> CountedWork {
                CountedWork {
                    $($count: self.$count.saturating_sub(before.$count),)*
                }
            }
        }

        impl std::ops::AddAssign for CountedWork {
            fn add_assign(&mut self, other: CountedWork) {
                $(self.$count += other.$count;)*
            }
        }
    };
}

counts! {
    /// Transactions that committed, those that only read among them.
    commits,
    /// Transactions that rolled back.
    rollbacks,
    /// Pages found in memory: see [`PageCounts`].
    hit,
    /// Pages read from their files.
    read,
    /// Pages written to their files, or added to them.
    written,
    /// Statements that ended without an error,
    statements,
    /// and with one.
    errors,
    /// Rows in the tags of statements, and those that portals have sent before their tags.
    rows,
    /// Rows that transactions had inserted at their end, those that rolled back among them,
    inserted,
    /// updated,
    updated,
    /// and deleted.
    deleted,
    /// Errors that ended a deadlock.
    deadlocks,
    /// Temporary files,
    temporary_files,
    /// and the bytes written to them.
    temporary_bytes,
    /// Microseconds in which a statement ran, up to its answer,
    active_us,
    /// and in which a transaction was open without one.
    idle_in_transaction_us,
    /// Sessions of clients, which a session counts when it closes,
    sessions,
    /// microseconds that they were open,
    session_us,
    /// and those that an administrator ended.
    sessions_killed,
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

    /// The rows so far.
    #[inline]
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// An error of the session has ended a deadlock.
    pub(crate) fn deadlock_ended(&self) {
        add(&self.deadlocks, 1);
    }

    /// The session's transaction, which has ended, had inserted, updated and deleted so many rows.
    pub(crate) fn rows_changed(&self, inserted: u64, updated: u64, deleted: u64) {
        add(&self.inserted, inserted);
        add(&self.updated, updated);
        add(&self.deleted, deleted);
    }

    /// The session was at work for so long. A clock that was set back counts nothing.
    #[inline]
    pub(crate) fn was_active(&self, elapsed_us: i64) {
        add(&self.active_us, u64::try_from(elapsed_us).unwrap_or(0));
    }

    /// The session's transaction was open for so long without a statement.
    #[inline]
    pub(crate) fn was_idle_in_transaction(&self, elapsed_us: i64) {
        add(
            &self.idle_in_transaction_us,
            u64::try_from(elapsed_us).unwrap_or(0),
        );
    }

    /// The session of a client closes, which was open for so long.
    pub(crate) fn closes(&self, open_us: i64, is_killed: bool) {
        add(&self.sessions, 1);
        add(&self.session_us, u64::try_from(open_us).unwrap_or(0));
        add(&self.sessions_killed, u64::from(is_killed));
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
        session.was_active(3);
        session.was_active(-7);
        session.was_idle_in_transaction(5);
        session.closes(9, true);
        closed.take_over(&session);
        closed.take_over(&session);
        let sum = closed.now();
        assert_eq!((sum.commits, sum.rollbacks), (4, 2));
        assert_eq!(
            (sum.statements, sum.errors, sum.rows, sum.deadlocks),
            (2, 2, 14, 2)
        );
        assert_eq!((sum.active_us, sum.idle_in_transaction_us), (6, 10));
        assert_eq!((sum.sessions, sum.session_us, sum.sessions_killed), (2, 18, 2));
    }
}
