//! The accounts on the real machine: more threads than CPUs.

use std::thread;

use clearway_machine::Watchdog;
use own_structure::{AccountError, Accounts, ROWS_MAX};

const THREADS: u64 = 8;
const STEPS: u64 = 4_000;
const ACCOUNTS: u64 = 7;

#[test]
fn every_total_is_the_first_one() {
    let _watchdog = Watchdog::over_test();
    let accounts: Accounts = Accounts::on_pages(3);
    (0..ACCOUNTS).for_each(|account| accounts.open(account, 100).unwrap());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let accounts = &accounts;
            scope.spawn(move || {
                for step in 0..STEPS {
                    let (from, to) = ((number + step) % ACCOUNTS, (number * step) % ACCOUNTS);
                    match accounts.pay(from, to, step % 50) {
                        Ok(()) | Err(AccountError::TooLittle(_)) => (),
                        Err(error) => panic!("{error}"),
                    }
                    if step % 7 == 0 {
                        assert_eq!(accounts.total(), u128::from(ACCOUNTS * 100));
                    }
                }
            });
        }
    });
    assert_eq!(accounts.total(), u128::from(ACCOUNTS * 100));
}

#[test]
fn an_error_changes_nothing() {
    let accounts: Accounts = Accounts::on_pages(1);
    let rows = ROWS_MAX as u64;
    (0..rows).for_each(|account| accounts.open(account, account).unwrap());
    assert_eq!(accounts.open(rows, 0), Err(AccountError::NoRoom(rows)));
    assert_eq!(accounts.open(3, 0), Err(AccountError::Open(3)));
    assert_eq!(accounts.pay(3, rows, 1), Err(AccountError::Missing(rows)));
    assert_eq!(accounts.pay(rows, 3, 1), Err(AccountError::Missing(rows)));
    assert_eq!(accounts.pay(3, 4, 4), Err(AccountError::TooLittle(3)));
    assert_eq!(accounts.pay(3, 3, 3), Ok(()));
    let rich: Accounts = Accounts::on_pages(2);
    rich.open(0, u64::MAX).unwrap();
    rich.open(1, 1).unwrap();
    assert_eq!(rich.pay(1, 0, 1), Err(AccountError::TooMuch(0)));
    assert_eq!(rich.total(), u128::from(u64::MAX) + 1);
    assert_eq!(accounts.total(), (0..u128::from(rows)).sum());
}
