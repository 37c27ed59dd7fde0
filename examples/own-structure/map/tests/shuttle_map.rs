//! The accounts under shuttle: more workers, pages and steps than loom can exhaust, in random schedules.
//!
//! `cargo test -p own-structure --features shuttle --release --test shuttle_map`

use std::sync::Arc;

use clearway_machine::Shuttle;
use own_structure::{AccountError, Accounts};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const WORKERS: u64 = 4;
const STEPS: u64 = 5;
const ACCOUNTS: u64 = 5;
const SCHEDULES: usize = 2_000;

fn step(accounts: &Accounts<Shuttle>, number: u64) {
    let mut random = thread_rng();
    let [from, to] = [(); 2].map(|()| random.gen_range(0..ACCOUNTS));
    match random.gen_range(0..4) {
        0 => assert_eq!(accounts.total(), u128::from(ACCOUNTS * 10)),
        1 => assert!(
            accounts
                .balance(from)
                .is_some_and(|balance| balance <= ACCOUNTS * 10)
        ),
        2 => assert_eq!(accounts.open(to, number), Err(AccountError::Open(to))),
        _ => match accounts.pay(from, to, random.gen_range(1..8)) {
            Ok(()) => (),
            Err(error) => assert_eq!(error, AccountError::TooLittle(from)),
        },
    }
}

#[test]
fn every_total_is_the_first_one() {
    shuttle::check_random(
        || {
            let accounts = Arc::new(Accounts::<Shuttle>::on_pages(3));
            (0..ACCOUNTS).for_each(|account| accounts.open(account, 10).unwrap());
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let accounts = Arc::clone(&accounts);
                    thread::spawn(move || (0..STEPS).for_each(|_| step(&accounts, number)))
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            assert_eq!(accounts.total(), u128::from(ACCOUNTS * 10));
        },
        SCHEDULES,
    );
}
