//! Whose turn it is to end a session's transaction: the session's own, or that of a worker that may not wait for the
//! session's client.
//!
//! A transaction that only reads holds two things that others wait for: the xmin in its slot of the array, and relation
//! locks. A standby's replay has to get rid of both in bounded time, and most of such transactions belong to sessions that
//! wait for their clients, which may never come back. So replay ends the transaction in the session's place.
//!
//! # An example
//! | time | Alice's session | turn | replay |
//! | --- | --- | --- | --- |
//! | 1 | reads under a snapshot, in a block, and answers | session | finds her xmin; not its turn: asks her to cancel |
//! | 2 | waits for Alice's next message | idle | |
//! | 3 | | ending | takes the turn, clears her xmin, releases her locks |
//! | 4 | | ended | goes on |
//! | 5 | the next message: finds that her transaction was ended, and says so | session | |
//!
//! # States
//! | word | whose turn | goes to |
//! | --- | --- | --- |
//! | `IDLE` | no worker's: the session waits for its client | `SESSION` by the session, `ENDING` by a worker |
//! | `SESSION` | the session's: it is inside a call | `IDLE` by the session |
//! | `ENDING` | the worker's | `ENDED`, or `IDLE` if there was nothing to end, by that worker |
//! | `ENDED` + a reason | no worker's | `SESSION` by the session, which learns the reason |
//!
//! # Rules
//! - T1: the slot in the array, the list of locks and the snapshot of a session are touched by the one whose turn it is.
//!   For a session this is rule 6 of the crate, of which `try_end` is the exception.
//! - T2: a session takes its turn before it touches them, and gives it back before it waits for its client.
//! - T3: a session whose turn begins after an end learns of that before it goes on, once.
//! - T4: a worker's turn is a few stores and latches long. It waits for nothing that a session does in its turn. If the
//!   worker unwinds in its turn, the process ends: the session would wait for ever, and its transaction is half ended.
//!
//! # Why not two flags
//! "I am at work" and "your transaction is over", each written by one side and read by the other, need a fence on both
//! sides, and leave the case that both were set: the session has begun to read, and its xmin is being cleared. One of the
//! two would have to take back what it did. One word has no such case.
//!
//! # Costs
//! A compare-and-swap and a store for each call of a session, on a line that no other worker reads unless there is a
//! conflict; a primary's sessions take no turns. A session that comes while a worker is at it yields its CPU until the
//! worker is done (T4).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Native, fatal};

const IDLE: u32 = 0;
const SESSION: u32 = 1;
const ENDING: u32 = 2;
/// The reason is above.
const ENDED: u32 = 3;
const STATE_BITS: u32 = 2;
const STATE_MASK: u32 = (1 << STATE_BITS) - 1;

/// Result of an attempt to end a session's transaction in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndAttempt {
    /// It was ended.
    Ended,
    /// There was nothing to end.
    Nothing,
    /// The session is inside a call: only itself can end it.
    SessionIsBusy,
}

/// Whose turn it is to touch a session's transaction; the module says how.
#[derive(Debug)]
pub struct TransactionTurn<M: Machine = Native>(M::U32);

impl<M: Machine> Default for TransactionTurn<M> {
    fn default() -> Self {
        Self(M::U32::new(IDLE))
    }
}

impl<M: Machine> TransactionTurn<M> {
    /// The session begins a call (T2). The reason, if its transaction was ended since its last one (T3). A session whose
    /// last call never ended, because it panicked, still has its turn.
    #[inline]
    pub fn begin(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `try_end`; the session sees what the worker did, or undid.
        match self.0.compare_exchange(IDLE, SESSION, Acquire, Acquire) {
            Ok(_) => None,
            Err(found) => self.begin_slow(found),
        }
    }

    #[cold]
    fn begin_slow(&self, mut found: u32) -> Option<u32> {
        loop {
            match found & STATE_MASK {
                SESSION => return None,
                ENDED => {
                    // Relaxed: no other worker changes this state.
                    self.0.store(SESSION, Relaxed);
                    return Some(found >> STATE_BITS);
                }
                ENDING => M::yield_now(),
                _ => {}
            }
            // Acquire: as in `begin`.
            match self.0.compare_exchange(IDLE, SESSION, Acquire, Acquire) {
                Ok(_) => return None,
                Err(now) => found = now,
            }
        }
    }

    /// The session's call ends (T2).
    #[inline]
    pub fn end(&self) {
        // Release: pairs with the Acquire in `try_end`; a worker finds the transaction as the session left it.
        self.0.store(IDLE, Release);
    }

    /// Calls `end_transaction` unless it is the session's turn; that ends the session's transaction and says so, or finds
    /// that there is nothing to end. The session learns `reason`, which has 30 bits.
    pub fn try_end(&self, reason: u32, end_transaction: impl FnOnce() -> bool) -> EndAttempt {
        debug_assert!(
            reason < 1 << (32 - STATE_BITS),
            "a reason of more bits than there are"
        );
        // Acquire: pairs with the Release in `end`.
        match self.0.compare_exchange(IDLE, ENDING, Acquire, Relaxed) {
            Ok(_) => {}
            Err(SESSION) => return EndAttempt::SessionIsBusy,
            Err(_) => return EndAttempt::Nothing,
        }
        let unwinding = WorkersTurn;
        let has_ended = end_transaction();
        std::mem::forget(unwinding);
        let (next, attempt) = if has_ended {
            (reason << STATE_BITS | ENDED, EndAttempt::Ended)
        } else {
            (IDLE, EndAttempt::Nothing)
        };
        // Release: pairs with the Acquire in `begin`.
        self.0.store(next, Release);
        attempt
    }
}

/// The turn of a worker that may not unwind (T4).
struct WorkersTurn;

impl Drop for WorkersTurn {
    #[cold]
    fn drop(&mut self) {
        fatal(format_args!(
            "T4: a worker failed while it ended a session's transaction in its place; stopping"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for the process in which a worker fails.
    const FAILING: &str = "CLEARWAY_TEST_FAILING_WORKER";

    /// T4: the session would wait for ever for the end of the worker's turn.
    #[test]
    fn a_worker_that_fails_in_its_turn_ends_the_process() {
        if std::env::var_os(FAILING).is_some() {
            let _ = std::panic::catch_unwind(|| {
                TransactionTurn::<Native>::default().try_end(7, || panic!("an end that fails"))
            });
            std::process::exit(0);
        }
        let failing = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "transaction_turn::tests::a_worker_that_fails_in_its_turn_ends_the_process",
            ])
            .env(FAILING, "1")
            .output()
            .unwrap();
        assert_eq!(failing.status.code(), None, "it is ended by a signal");
        let said = String::from_utf8_lossy(&failing.stderr);
        assert!(said.contains("T4: a worker failed"), "{said}");
    }

    #[test]
    fn a_session_learns_once_that_its_transaction_was_ended() {
        let turn = TransactionTurn::<Native>::default();
        assert_eq!(turn.begin(), None);
        let ended = turn.try_end(7, || unreachable!("it is the session's turn"));
        assert_eq!(ended, EndAttempt::SessionIsBusy);
        turn.end();
        assert_eq!(turn.try_end(7, || false), EndAttempt::Nothing);
        assert_eq!(turn.try_end(7, || true), EndAttempt::Ended);
        assert_eq!(turn.try_end(8, || true), EndAttempt::Nothing, "once is enough");
        assert_eq!(turn.begin(), Some(7));
        turn.end();
        assert_eq!(turn.begin(), None);
        assert_eq!(turn.begin(), None, "a call that ended in a panic");
    }
}
