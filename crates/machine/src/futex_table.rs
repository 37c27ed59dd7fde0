//! The futexes of the checkers: a table of sleepers under one of the checker's own mutexes, which stands for
//! the kernel's lock of a bucket.

/// A sleeper, and `wait` and `wake` over the table `$table`, of the checker `$checker`.
macro_rules! futex_table {
    ($checker:ident, $table:expr) => {
        /// One thread asleep on a futex.
        struct Sleeper {
            address: usize,
            thread: $checker::thread::Thread,
            woken: Arc<AtomicBool>,
        }

        $checker::thread_local! {
            /// Futex waits of the thread that are still to end without a cause.
            static ENDING_EARLY: core::cell::Cell<u32> = core::cell::Cell::new(0);
        }

        fn end_waits_early(count: u32) {
            ENDING_EARLY.with(|waits| waits.set(count));
        }

        /// True if this wait of the calling thread ends without a cause.
        fn ends_early() -> bool {
            ENDING_EARLY.with(|waits| {
                let left = waits.get();
                waits.set(left.saturating_sub(1));
                left > 0
            })
        }

        /// Sleeps on `address` while `look`, which reads the word there, returns `expected`.
        fn wait(
            address: usize,
            look: impl FnOnce() -> u32,
            expected: u32,
            timeout: Option<Duration>,
        ) -> FutexOutcome {
            let woken = Arc::new(AtomicBool::new(false));
            {
                let mut sleepers = $table.lock().unwrap();
                if look() != expected {
                    return FutexOutcome::Changed;
                }
                if ends_early() {
                    return FutexOutcome::Woken;
                }
                sleepers.push(Sleeper {
                    address,
                    thread: $checker::thread::current(),
                    woken: Arc::clone(&woken),
                });
            }
            if timeout.is_some() {
                $checker::thread::yield_now();
                let mut sleepers = $table.lock().unwrap();
                // Under the lock, as in the kernel: a sleeper that a waker has found was woken.
                let place = sleepers
                    .iter()
                    .position(|sleeper| Arc::ptr_eq(&sleeper.woken, &woken));
                return match place {
                    Some(place) => {
                        sleepers.remove(place);
                        FutexOutcome::TimedOut
                    }
                    None => FutexOutcome::Woken,
                };
            }
            while !woken.load(Ordering::Relaxed) {
                $checker::thread::park();
            }
            FutexOutcome::Woken
        }

        fn wake(address: usize, count: u32) -> u32 {
            let mut sleepers = $table.lock().unwrap();
            let mut woken = 0;
            while woken < count {
                let Some(position) = sleepers
                    .iter()
                    .position(|sleeper| sleeper.address == address)
                else {
                    break;
                };
                let sleeper = sleepers.remove(position);
                sleeper.woken.store(true, Ordering::Relaxed);
                sleeper.thread.unpark();
                woken += 1;
            }
            woken
        }
    };
}

pub(crate) use futex_table;
