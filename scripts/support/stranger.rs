//! A program of someone who has the package `clearway-latch` and no more: each latch that its first page names for
//! a program of threads, under threads. `scripts/packages` builds and runs it.

use std::thread;
use std::time::Duration;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, Condvar, HybridCell, LatchClass, Latched, LatchedBy, LwLockOptions, Mutex,
    RecursiveRwLock, RwLock, SlotChoice, SsuxLock, SuxLock,
};
use clearway_machine::WaitEvent;

const THREADS: u64 = 4;
const ROUNDS: u64 = 10_000;

static TOTAL: Mutex<u64> = Mutex::new(0);
static DONE: Condvar = Condvar::new();
static NAMES: RwLock<Vec<u64>> = RwLock::new(Vec::new());
static CLASS: LatchClass = LatchClass::new("Accounts", WaitEvent::User1, 100);
static ACCOUNTS: Latched<[u64; 2]> = Latched::in_static(&CLASS, LwLockOptions::BEST, [THREADS * ROUNDS, 0]);
static TREE: RecursiveRwLock<u64> = RecursiveRwLock::new(7);
static PAGE: SsuxLock = SsuxLock::new();
const ADAPTIVE: AdaptiveOptions =
    AdaptiveOptions { lwlock: LwLockOptions::BEST, bias: BiasPolicy::Adaptive, slot: SlotChoice::Worker };
static ROUTES: LatchedBy<AdaptiveLatch, u64> = LatchedBy::in_static_with(AdaptiveLatch::in_static(&CLASS, ADAPTIVE), 0);

fn works(number: u64) {
    for round in 0..ROUNDS {
        {
            let mut accounts = ACCOUNTS.exclusive();
            accounts[0] -= 1;
            accounts[1] += 1;
        }
        if round % 100 == 0 {
            let update = PAGE.update();
            drop(update.exclusive().shared());
            NAMES.write().push(number);
            *ROUTES.exclusive() += 1;
        }
        assert_eq!(ACCOUNTS.shared().iter().sum::<u64>(), THREADS * ROUNDS);
    }
    *TOTAL.lock() += ROUNDS;
    DONE.notify_all();
}

fn main() {
    WaitEvent::User1.name_as("Accounts").unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || works(number));
        }
        let mut total = TOTAL.lock();
        let late = DONE.wait_while_for(&mut total, |total| *total < THREADS * ROUNDS, Duration::from_secs(600));
        assert!(!late.timed_out());
    });
    assert_eq!(*ACCOUNTS.shared(), [0, THREADS * ROUNDS]);
    assert_eq!(NAMES.read().len() as u64, THREADS * ROUNDS / 100);
    assert_eq!(*ROUTES.shared(), THREADS * ROUNDS / 100);
    let outer = TREE.read();
    assert!(*TREE.read() == *outer && TREE.try_write_for(Duration::from_millis(1)).is_none());
    drop(outer);
    assert!(NAMES.try_write_for(Duration::from_millis(1)).is_some());

    // An exclusive hold that its owner takes again.
    let tree: SuxLock = SuxLock::new();
    let root = tree.exclusive();
    drop(tree.exclusive());
    assert!(tree.is_owned_by_caller());
    drop(root);
    assert!(tree.try_shared().is_some());
    let length: HybridCell<u64, 1> = HybridCell::new(6);
    length.update(|length| *length += 1);
    assert_eq!(length.read(), 7);
    println!("{} steps under each latch", THREADS * ROUNDS);
}
