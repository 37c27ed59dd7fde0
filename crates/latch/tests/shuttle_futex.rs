//! The futex latches under shuttle: more workers and more steps than loom can exhaust, in random schedules.
//!
//! Overlap inside a latch is seen by the data cell, a sleeper left behind as a deadlock. A failing schedule
//! is printed and can be replayed with `shuttle::replay`.
//!
//! Seen to catch a mutation that needs more workers than loom has here: a reader that goes to sleep with `WAKING` set
//! (deadlock). Loom shows the same of a writer, with three preemptions.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_futex --release`

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwMutex, SsuxLock, SsuxProtocol, SsuxUpdate,
    Unclassed,
};
use clearway_machine::{AtomicWord, DataCell, Machine, Shuttle};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const WORKERS: usize = 6;
const STEPS: usize = 4;
const SCHEDULES: usize = 2_000;

type Word = <Shuttle as Machine>::U32;

struct Shared<L> {
    latch: L,
    data: <Shuttle as Machine>::Data<u64>,
    /// Holders of U and X.
    owners: Word,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L> Shared<L> {
    fn add_one(&self) -> u64 {
        // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
        self.data.with_mut(|data| unsafe { *data += 1 });
        1
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; the cell fails the test on overlap.
        self.data.with(|data| unsafe { *data })
    }

    fn owning<R>(&self, act: impl FnOnce() -> R) -> R {
        assert_eq!(self.owners.fetch_add(1, Relaxed), 0, "two that hold U or X");
        let result = act();
        self.owners.fetch_sub(1, Relaxed);
        result
    }
}

/// Runs `step` by many workers at once and compares what they have added with what is there.
fn random<L: Sync + Send + 'static>(idle: fn() -> L, step: fn(&Shared<L>) -> u64) -> impl Fn() + Send + Sync {
    move || {
        let shared = Arc::new(Shared {
            latch: idle(),
            data: DataCell::new(0),
            owners: Word::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || (0..STEPS).map(|_| step(&shared)).sum::<u64>())
            })
            .collect();
        let added: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(shared.read(), added);
    }
}

fn mutex_step<P: HolderProtocol>(shared: &Shared<SrwMutex<Unclassed, Shuttle, P>>) -> u64 {
    if thread_rng().gen_range(0..4) == 0 {
        shared.latch.try_exclusive().map_or(0, |_guard| shared.add_one())
    } else {
        let _guard = shared.latch.exclusive();
        shared.add_one()
    }
}

type Ssux<P> = SsuxLock<Unclassed, Shuttle, P>;

fn upgrade<P: SsuxProtocol>(shared: &Shared<Ssux<P>>, guard: SsuxUpdate<'_, Unclassed, Shuttle, P>) -> u64 {
    let before = shared.owning(|| shared.read());
    let _guard = guard.exclusive();
    shared.owning(|| {
        assert_eq!(shared.read(), before, "a worker wrote beside an update");
        shared.add_one()
    })
}

fn ssux_step<P: SsuxProtocol>(shared: &Shared<Ssux<P>>) -> u64 {
    let latch = &shared.latch;
    match thread_rng().gen_range(0..12) {
        0..=2 => {
            let _guard = latch.shared();
            shared.read();
            0
        }
        3 | 4 => {
            let _guard = latch.exclusive();
            shared.owning(|| shared.add_one())
        }
        5 => {
            let _guard = latch.update();
            shared.owning(|| shared.read());
            0
        }
        6 => upgrade(shared, latch.update()),
        7 => {
            let guard = latch.exclusive();
            let added = shared.owning(|| shared.add_one());
            let guard = guard.update();
            let read = shared.owning(|| shared.read());
            let _guard = guard.shared();
            assert_eq!(shared.read(), read, "a worker wrote beside a reader");
            added
        }
        8 => {
            let guard = latch.exclusive();
            let added = shared.owning(|| shared.add_one());
            let _guard = guard.shared();
            shared.read();
            added
        }
        9 => match latch.shared().try_update() {
            Ok(guard) => upgrade(shared, guard),
            Err(_still_shared) => {
                shared.read();
                0
            }
        },
        10 => latch.try_update().map_or(0, |guard| match guard.try_exclusive() {
            Ok(_guard) => shared.owning(|| shared.add_one()),
            Err(_still_update) => {
                shared.owning(|| shared.read());
                0
            }
        }),
        _ => latch
            .try_exclusive()
            .map_or(0, |_guard| shared.owning(|| shared.add_one())),
    }
}

macro_rules! explored {
    ($latch:ident by $step:ident: $($protocol:ident = $module:ident),*) => {
        $(mod $module {
            use super::*;

            #[test]
            fn shuttle_random() {
                shuttle::check_random(random($latch::idle, $step::<$protocol>), SCHEDULES);
            }

            #[test]
            fn shuttle_few_preemptions() {
                shuttle::check_pct(random($latch::idle, $step::<$protocol>), SCHEDULES, 3);
            }
        })*
    };
}

explored!(SrwMutex by mutex_step:
    CasLoop = mutex_cas_loop,
    FetchAddBts = mutex_fetch_add_bts,
    SingleWake = mutex_single_wake
);
explored!(SsuxLock by ssux_step:
    CasLoop = cas_loop,
    FetchAddBts = fetch_add_bts,
    SingleWake = single_wake,
    OneWord = one_word
);
