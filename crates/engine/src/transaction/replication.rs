//! Waiting for standbys: after a session's own commit, and before an answer.
//!
//! The promises, and the sessions that wait: [`clearway_storage::commit::lock_release`], *Replication*.
//!
//! A commit's wait has no limit in time, and `statement_timeout` does not end it: the commit is there already. A cancel
//! request does, and the end of the server. Then the client gets a warning about what is not promised. An answer tells
//! of others' commits, and may be withheld: the time limit ends its wait, too.
//!
//! | waits | ended by | the client gets |
//! | --- | --- | --- |
//! | a commit | a cancel | a warning, and that the commit succeeded, which is so on this server |
//! | | the server's end | 57P01 with the same detail, and not whether the commit succeeded |
//! | an answer | a cancel, `statement_timeout` | 57014 in its place |
//! | | the server's end | 57P01, and nothing of the answer |

use clearway_storage::Lsn;
use clearway_storage::sync_replication::{ReplicationLevel, ReplicationWait, SyncReplication};

use crate::interrupt::Interrupts;
use crate::output::Notice;
use clearway_sql::error::{EngineError, SqlState};

/// The end of a wait for standbys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandbyWait {
    /// Enough of them have it, or none is asked for.
    Replicated,
    /// A cancel request has ended it.
    Canceled,
    /// The server stops.
    Terminated,
}

/// The purpose of the wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitedFor {
    /// The session's own commit.
    Commit,
    /// The commits that an answer depends on.
    Answer,
}

impl WaitedFor {
    fn detail(self) -> &'static str {
        match self {
            WaitedFor::Commit => {
                "The transaction has already committed locally, but might not have been replicated to the standby."
            }
            WaitedFor::Answer => {
                "The answer depends on transactions that have committed locally, but might not have been replicated to \
                 the standby."
            }
        }
    }

    /// For a client whose wait was canceled.
    #[cold]
    pub(crate) fn warning(self) -> Notice {
        Notice::warning(
            SqlState::WARNING,
            "canceling wait for synchronous replication due to user request",
        )
        .with_detail(self.detail())
    }

    /// `error`, which ends the wait: what it was for is said beside.
    #[cold]
    pub(crate) fn stopped(self, error: EngineError) -> EngineError {
        error.with_detail(self.detail())
    }

    /// For a client whose connection ends.
    #[cold]
    pub(crate) fn terminated(self) -> EngineError {
        EngineError::new(
            SqlState::ADMIN_SHUTDOWN,
            "canceling the wait for synchronous replication and terminating connection due to administrator command",
        )
        .with_detail(self.detail())
    }
}

/// The outcome of `wait` for the session of `interrupts`.
pub(super) fn outcome(wait: ReplicationWait, interrupts: &Interrupts) -> StandbyWait {
    match wait {
        ReplicationWait::Replicated => StandbyWait::Replicated,
        ReplicationWait::Stopped if interrupts.server_stops() => StandbyWait::Terminated,
        ReplicationWait::Stopped => StandbyWait::Canceled,
    }
}

/// Waits until the session's commit, which is durable up to `position`, is replicated.
pub(super) fn wait_for_commit(
    replication: &SyncReplication,
    position: Lsn,
    level: ReplicationLevel,
    interrupts: &Interrupts,
) -> StandbyWait {
    let wait = replication.wait(position, level, || interrupts.canceled_or_stopped());
    let outcome = outcome(wait, interrupts);
    if outcome == StandbyWait::Canceled {
        // The rest of the statement goes on: it was committed.
        interrupts.take_cancel();
    }
    outcome
}
