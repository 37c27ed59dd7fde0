//! The futexes of the checkers: a table of sleepers under one of the checker's own mutexes, which stands for
//! the kernel's lock of a bucket.

/// The moment in a futex wait at which a worker of a test dies, as a process is killed. For tests of what others do about
/// that: `run_until_death` of the checkers' machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathInWait {
    /// Before it sleeps, and before it has compared the word.
    BeforeSleep,
    /// After it was woken, or has found another value than it expected.
    AfterSleep,
}

/// The end of a thread of a test in a futex wait on this half of a word.
#[derive(Debug)]
pub(crate) struct Death(pub(crate) crate::Half);

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

        $checker::thread_local! {
            /// The wait for a latch that the thread has last begun.
            static WANTED: core::cell::Cell<Option<$crate::asleep::Wanted>> = core::cell::Cell::new(None);
        }

        /// The calling thread begins to wait for the latch of this name at the caller's line.
        #[track_caller]
        fn note_wanted(name: &'static str) {
            // The frames of a failed execution are no threads of the checker any more.
            if !std::thread::panicking() {
                let at = core::panic::Location::caller();
                WANTED.with(|wanted| wanted.set(Some($crate::asleep::Wanted { name, at })));
            }
        }

        $checker::thread_local! {
            /// The end of the thread in its next futex wait, if a test has asked for it.
            static DYING: core::cell::Cell<Option<$crate::DeathInWait>> = core::cell::Cell::new(None);
        }

        /// Runs `life` until it ends, or until its first futex wait, in which it dies at `end`: then an error. Nothing of
        /// what it was about to do happens, as after a kill.
        fn run_until_death<R>(end: $crate::DeathInWait, life: impl FnOnce() -> R) -> Result<R, $crate::Half> {
            DYING.with(|dying| dying.set(Some(end)));
            let lived = std::panic::catch_unwind(core::panic::AssertUnwindSafe(life));
            DYING.with(|dying| dying.set(None));
            lived.map_err(
                |cause| match cause.downcast::<$crate::futex_table::Death>() {
                    Ok(death) => death.0,
                    Err(cause) => std::panic::resume_unwind(cause),
                },
            )
        }

        /// Ends the calling thread's life if it is to die here.
        fn die_if(end: $crate::DeathInWait, half: $crate::Half) {
            if DYING.with(|dying| dying.get()) == Some(end) {
                $crate::asleep::forget_failure();
                std::panic::resume_unwind(Box::new($crate::futex_table::Death(half)));
            }
        }

        /// The table, locked. A checker runs its threads on one thread of the host, on which it counts panics: while one of
        /// its threads dies, the others poison what they unlock.
        fn sleepers() -> $checker::sync::MutexGuard<'static, Vec<Sleeper>> {
            $table
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        /// A futex wait of the caller's caller on this half of a word, in which the thread may die.
        #[track_caller]
        fn wait(
            half: $crate::Half,
            address: usize,
            look: impl FnOnce() -> u32,
            expected: u32,
            timeout: Option<Duration>,
        ) -> FutexOutcome {
            die_if($crate::DeathInWait::BeforeSleep, half);
            let outcome = wait_alive(address, look, expected, timeout);
            die_if($crate::DeathInWait::AfterSleep, half);
            outcome
        }

        /// Sleeps on `address` while `look`, which reads the word there, returns `expected`.
        #[track_caller]
        fn wait_alive(
            address: usize,
            look: impl FnOnce() -> u32,
            expected: u32,
            timeout: Option<Duration>,
        ) -> FutexOutcome {
            let woken = Arc::new(AtomicBool::new(false));
            {
                let mut sleepers = sleepers();
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
                let mut sleepers = sleepers();
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
            let thread = $checker::thread::current();
            let named = thread.name().map(str::to_owned);
            let named = named.unwrap_or_else(|| format!("{:?}", thread.id()));
            let wanted = WANTED.with(|wanted| wanted.get());
            let at = core::panic::Location::caller();
            let _note = $crate::asleep::Note::of(named, address, expected, at, wanted);
            while !woken.load(Ordering::Relaxed) {
                $checker::thread::park();
            }
            FutexOutcome::Woken
        }

        fn wake(address: usize, count: u32) -> u32 {
            let mut sleepers = sleepers();
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
