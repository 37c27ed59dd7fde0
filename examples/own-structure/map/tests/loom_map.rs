//! The accounts under loom: every schedule of two and three workers within a bound of preemptions, under weak memory.
//!
//! A worker that is left asleep shows as a deadlock, below which its latch and its line are named; rows that two workers reach
//! without a latch between them show as a causality violation.
//!
//! `mutations/map.toml` has the mistakes that this has caught. `examples/copy-to --check` plants its first one in a copy, and
//! looks at the report.
//!
//! `cargo test -p own-structure --features loom --release --test loom_map`

use std::sync::Arc;

use clearway_machine::{Loom, Machine};
use loom::thread;
use own_structure::{AccountError, Accounts};

/// Accounts on pages of their own, unless a case says otherwise.
const ALICE: u64 = 0;
const BOB: u64 = 1;

/// Tries every schedule with at most so many preemptions. Alice and Bob have 10 each.
fn explore(pages: usize, preemptions: usize, case: impl Fn(&Arc<Accounts<Loom>>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        // The machine's globals come to life before there is a thread to race with.
        Loom::workers();
        // std's Arc: loom's own would be asked again while a failed case unwinds.
        let accounts = Arc::new(Accounts::on_pages(pages));
        accounts.open(ALICE, 10).unwrap();
        accounts.open(BOB, 10).unwrap();
        case(&accounts);
    });
}

fn beside<R: 'static>(
    accounts: &Arc<Accounts<Loom>>,
    work: impl FnOnce(&Accounts<Loom>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let accounts = Arc::clone(accounts);
    thread::spawn(move || work(&accounts))
}

/// Two workers open one account: one of them does.
#[test]
fn an_account_is_opened_once() {
    explore(1, 3, |accounts| {
        let other = beside(accounts, |accounts| accounts.open(7, 70));
        let mine = accounts.open(7, 7);
        let theirs = other.join().unwrap();
        let refused = Err(AccountError::Open(7));
        assert!((mine == refused) != (theirs == refused), "{mine:?}, {theirs:?}");
        assert_eq!(accounts.balance(7), Some(if mine.is_ok() { 7 } else { 70 }));
    });
}

/// Carol looks at a page while an account is opened on it. Seen to catch: rows changed in update mode (causality violation).
#[test]
fn a_reader_sees_an_account_or_none() {
    explore(1, 3, |accounts| {
        let carol = beside(accounts, |accounts| {
            [ALICE, 7].map(|account| accounts.balance(account))
        });
        accounts.open(7, 7).unwrap();
        let [alice, new] = carol.join().unwrap();
        assert_eq!(alice, Some(10));
        assert!(new.is_none() || new == Some(7), "{new:?}");
    });
}

/// Carol adds up the accounts while Alice pays Bob. Seen to catch: the later page made exclusive first (deadlock); a total
/// that lets each page go before the next one.
#[test]
fn a_total_is_of_one_instant() {
    explore(2, 3, |accounts| {
        let carol = beside(accounts, Accounts::total);
        accounts.pay(ALICE, BOB, 4).unwrap();
        assert_eq!(carol.join().unwrap(), 20);
        assert_eq!(
            [accounts.balance(ALICE), accounts.balance(BOB)],
            [Some(6), Some(14)]
        );
    });
}

/// Seen to catch: latches taken in the order of payer and payee (deadlock).
#[test]
fn payments_in_both_directions_end() {
    explore(2, 3, |accounts| {
        let bob = beside(accounts, |accounts| accounts.pay(BOB, ALICE, 3).unwrap());
        accounts.pay(ALICE, BOB, 5).unwrap();
        bob.join().unwrap();
        assert_eq!(
            [accounts.balance(ALICE), accounts.balance(BOB)],
            [Some(8), Some(12)]
        );
    });
}

/// Both pay from what only one of them can pay. Seen to catch: a balance that is read before the latch keeps others out.
#[test]
fn no_account_pays_twice() {
    explore(2, 3, |accounts| {
        let other = beside(accounts, |accounts| accounts.pay(ALICE, BOB, 8));
        let mine = accounts.pay(ALICE, BOB, 7);
        let theirs = other.join().unwrap();
        assert_eq!([mine, theirs].iter().filter(|paid| paid.is_ok()).count(), 1);
        assert_eq!(accounts.total(), 20);
    });
}

/// A reader, a total and a payment on two pages.
#[test]
fn three_workers_end() {
    explore(2, 2, |accounts| {
        let carol = beside(accounts, Accounts::total);
        let dave = beside(accounts, |accounts| accounts.balance(BOB));
        accounts.pay(ALICE, BOB, 4).unwrap();
        assert_eq!(carol.join().unwrap(), 20);
        let seen = dave.join().unwrap();
        assert!(seen == Some(10) || seen == Some(14), "{seen:?}");
    });
}
