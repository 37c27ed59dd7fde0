//! The locks that are measured, each as a program holds it: Clearway's by the first page of `clearway-latch`, and others'.

use std::sync::PoisonError;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, LatchClass, Latched, LatchedBy, LwLockFairnessVariant, LwLockOptions,
};
use clearway_machine::WaitEvent;
use clearway_peers::measure::{Lock, Pair, measure};
use clearway_peers::schedule::Subject;

static CLASS: LatchClass = LatchClass::new("Peers", WaitEvent::UserLatch, 0);

/// A [`Lock`] around a library's own container.
macro_rules! lock {
    ($(#[doc = $text:literal])+ $name:ident, $lock:ty, $idle:expr, $read:ident, $write:ident $(, $unpoisoned:expr)?) => {
        $(#[doc = $text])+
        pub struct $name($lock);

        impl Lock for $name {
            fn idle() -> Self {
                Self($idle)
            }
            #[inline]
            fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
                let guard = self.0.$read();
                $(let guard = guard.unwrap_or_else($unpoisoned);)?
                // A mutex's guard is used as a reader's.
                look(&*guard)
            }
            #[inline]
            fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
                let guard = self.0.$write();
                $(let guard = guard.unwrap_or_else($unpoisoned);)?
                let mut guard = guard;
                change(&mut guard)
            }
        }
    };
}

lock! {
    /// Clearway's Mutex: 4 bytes.
    ClearwayMutex, clearway_latch::Mutex<Pair>, clearway_latch::Mutex::new(Pair::default()), lock, lock
}
lock! {
    /// Clearway's RwLock: 8 bytes.
    ClearwayRwLock, clearway_latch::RwLock<Pair>, clearway_latch::RwLock::new(Pair::default()), read, write
}
lock! {
    /// Clearway's LwLock with the variants of its preset.
    ClearwayLwLock, Latched<Pair>, Latched::new(&CLASS, LwLockOptions::BEST, Pair::default()), shared, exclusive
}
lock! {
    /// Clearway's LwLock with `lwlock_fairness = writer-claims`.
    ClearwayWriterClaims, Latched<Pair>, Latched::new(&CLASS, WRITER_CLAIMS, Pair::default()), shared, exclusive
}
lock! {
    /// Clearway's adaptive latch.
    ClearwayAdaptive, LatchedBy<AdaptiveLatch, Pair>, adaptive(), shared, exclusive
}
lock! {
    /// The standard library's Mutex.
    StdMutex, std::sync::Mutex<Pair>, std::sync::Mutex::default(), lock, lock, PoisonError::into_inner
}
lock! {
    /// The standard library's RwLock.
    StdRwLock, std::sync::RwLock<Pair>, std::sync::RwLock::default(), read, write, PoisonError::into_inner
}
lock! {
    /// parking_lot's Mutex.
    ParkingLotMutex, parking_lot::Mutex<Pair>, parking_lot::Mutex::default(), lock, lock
}
lock! {
    /// parking_lot's RwLock.
    ParkingLotRwLock, parking_lot::RwLock<Pair>, parking_lot::RwLock::default(), read, write
}
lock! {
    /// crossbeam's ShardedLock: a lock for each of eight groups of readers.
    ShardedLock, crossbeam_utils::sync::ShardedLock<Pair>, Default::default(), read, write, PoisonError::into_inner
}
lock! {
    /// usync's Mutex.
    UsyncMutex, usync::Mutex<Pair>, usync::Mutex::default(), lock, lock
}
lock! {
    /// usync's RwLock.
    UsyncRwLock, usync::RwLock<Pair>, usync::RwLock::default(), read, write
}
lock! {
    /// noxu-sync's Mutex.
    NoxuMutex, noxu_sync::Mutex<Pair>, noxu_sync::Mutex::default(), lock, lock
}
lock! {
    /// noxu-sync's RwLock.
    NoxuRwLock, noxu_sync::RwLock<Pair>, noxu_sync::RwLock::default(), read, write
}
lock! {
    /// spin's Mutex, which never sleeps.
    SpinMutex, spin::Mutex<Pair>, spin::Mutex::default(), lock, lock
}
lock! {
    /// spin's RwLock, which never sleeps.
    SpinRwLock, spin::RwLock<Pair>, spin::RwLock::default(), read, write
}

const WRITER_CLAIMS: LwLockOptions = LwLockOptions {
    fairness: LwLockFairnessVariant::WriterClaims,
    ..LwLockOptions::BEST
};

fn adaptive() -> LatchedBy<AdaptiveLatch, Pair> {
    let latch = AdaptiveLatch::with_options(&CLASS, AdaptiveOptions::default());
    LatchedBy::with_latch(latch, Pair::default())
}

/// Calls `$with!(name, type, has readers, is ours)` for each lock.
macro_rules! for_each_lock {
    ($with:ident) => {
        $with!("clearway-mutex", ClearwayMutex, false, true);
        $with!("clearway-rwlock", ClearwayRwLock, true, true);
        $with!("clearway-lwlock", ClearwayLwLock, true, true);
        $with!("clearway-writer-claims", ClearwayWriterClaims, true, true);
        $with!("clearway-adaptive", ClearwayAdaptive, true, true);
        $with!("std-mutex", StdMutex, false, false);
        $with!("std-rwlock", StdRwLock, true, false);
        $with!("parking_lot-mutex", ParkingLotMutex, false, false);
        $with!("parking_lot-rwlock", ParkingLotRwLock, true, false);
        $with!("crossbeam-sharded", ShardedLock, true, false);
        $with!("usync-mutex", UsyncMutex, false, false);
        $with!("usync-rwlock", UsyncRwLock, true, false);
        $with!("noxu-mutex", NoxuMutex, false, false);
        $with!("noxu-rwlock", NoxuRwLock, true, false);
        $with!("spin-mutex", SpinMutex, false, false);
        $with!("spin-rwlock", SpinRwLock, true, false);
    };
}
#[allow(unused_imports, reason = "the contended bench calls the locks by their names")]
pub(crate) use for_each_lock;

/// All of them.
#[allow(dead_code, reason = "the uncontended bench calls the locks by their types")]
pub fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    macro_rules! add {
        ($name:literal, $lock:ty, $has_readers:literal, $is_ours:literal) => {
            subjects.push(Subject {
                name: $name,
                has_readers: $has_readers,
                is_ours: $is_ours,
                measure: measure::<$lock>,
            });
        };
    }
    for_each_lock!(add);
    subjects
}
