//! A session's transaction, ended by itself or in its place, under loom.
//!
//! `cargo test -p clearway-txn --features loom --test loom_transaction_turn --release`
//!
//! A session's knowledge of its transaction is a cell here, as long as it has one: loom reports two workers that touch
//! it at once, or one after the other without an order between them.
//!
//! Caught mutations (`mutations/transaction_turn.toml`): a turn given back without Release, by the session and by the
//! worker; a turn taken without Acquire; a worker that does not look whose turn it is.

mod support;

use std::sync::Arc;

use clearway_machine::Loom;
use clearway_txn::{EndAttempt, TransactionTurn};
use loom::cell::UnsafeCell;
use loom::thread;
use support::explore;

#[derive(Default)]
struct Session {
    turn: TransactionTurn<Loom>,
    /// Snapshots that the transaction has taken; 0: there is no transaction.
    transaction: UnsafeCell<u32>,
}

// SAFETY: the cell is touched under the turn alone, and loom checks that.
unsafe impl Sync for Session {}
// SAFETY: as above.
unsafe impl Send for Session {}

impl Session {
    fn transaction(&self) -> u32 {
        // SAFETY: the caller has the turn.
        self.transaction.with(|at| unsafe { *at })
    }

    fn set_transaction(&self, snapshots: u32) {
        // SAFETY: the caller has the turn.
        self.transaction.with_mut(|at| unsafe { *at = snapshots });
    }

    /// Ends the transaction in the session's place.
    fn try_end(&self) -> EndAttempt {
        self.turn.try_end(9, || {
            let found = self.transaction() != 0;
            if found {
                self.set_transaction(0);
            }
            found
        })
    }
}

/// Two statements of one transaction, while a worker wants it to end. The second statement finds the transaction as the
/// first has left it, or learns that it was ended and finds none.
#[test]
fn loom_a_transaction_is_ended_between_two_statements() {
    explore(3, || {
        let session = Arc::new(Session::default());
        let worker = {
            let session = Arc::clone(&session);
            thread::spawn(move || session.try_end())
        };
        assert_eq!(session.turn.begin(), None, "there is no transaction to end yet");
        session.set_transaction(1);
        session.turn.end();
        match session.turn.begin() {
            None => assert_eq!(session.transaction(), 1, "T3: ended, and not told"),
            Some(reason) => {
                assert_eq!((reason, session.transaction()), (9, 0), "T3: told, and not ended");
            }
        }
        session.turn.end();
        let _ = worker.join().unwrap();
    });
}

/// Two workers want it to end, and the session closes. The transaction ends once.
#[test]
fn loom_a_transaction_ends_once() {
    explore(2, || {
        let session = Arc::new(Session::default());
        assert_eq!(session.turn.begin(), None);
        session.set_transaction(1);
        session.turn.end();
        let worker = {
            let session = Arc::clone(&session);
            thread::spawn(move || session.try_end() == EndAttempt::Ended)
        };
        let by_other = session.try_end() == EndAttempt::Ended;
        let told = session.turn.begin().is_some();
        let by_session = session.transaction() == 1;
        session.set_transaction(0);
        let by_worker = worker.join().unwrap();
        let ends = [by_other, by_worker, by_session];
        assert_eq!(ends.iter().filter(|ended| **ended).count(), 1, "{ends:?}");
        assert_eq!(told, !by_session);
    });
}
