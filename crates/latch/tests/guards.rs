//! Sizes, and where guards may go: what `src/lib.rs` and the README say of them.

use clearway_latch::{
    AdaptiveExclusive, AdaptiveLatch, Condvar, HybridExclusive, HybridLatch, LwLock, LwLockExclusive, Mutex,
    MutexGuard, ReadBiasedLatch, RwLock, RwLockReadGuard, SpinLatch, SrwCondvar, SrwMutex, SrwMutexGuard,
    SsuxExclusive, SsuxLock, SsuxShared, SuxExclusive, SuxExclusiveForIo, SuxLock, SuxUpdateForIo,
};
use clearway_machine::Native;

/// Says of a type whether it is `Send`: the constant of the bounded implementation hides the other one.
struct SendOf<T>(std::marker::PhantomData<T>);

trait OfAll {
    const IS_SEND: bool = false;
}

impl<T> OfAll for SendOf<T> {}

impl<T: Send> SendOf<T> {
    const IS_SEND: bool = true;
}

// A guard stays with its thread, but for those of an I/O.
const _: () = {
    assert!(SendOf::<u8>::IS_SEND && !SendOf::<*const u8>::IS_SEND);
    assert!(!SendOf::<LwLockExclusive<'static, Native>>::IS_SEND);
    assert!(!SendOf::<AdaptiveExclusive<'static>>::IS_SEND);
    assert!(!SendOf::<HybridExclusive<'static>>::IS_SEND);
    assert!(!SendOf::<SrwMutexGuard<'static>>::IS_SEND);
    assert!(!SendOf::<SsuxShared<'static>>::IS_SEND);
    assert!(!SendOf::<SsuxExclusive<'static>>::IS_SEND);
    assert!(!SendOf::<SuxExclusive<'static>>::IS_SEND);
    assert!(!SendOf::<MutexGuard<'static, u8>>::IS_SEND);
    assert!(!SendOf::<RwLockReadGuard<'static, u8>>::IS_SEND);
    assert!(SendOf::<SuxUpdateForIo<'static>>::IS_SEND);
    assert!(SendOf::<SuxExclusiveForIo<'static>>::IS_SEND);
};

#[test]
fn a_latch_has_the_size_that_is_told() {
    assert_eq!(size_of::<LwLock>(), 24);
    assert_eq!(size_of::<ReadBiasedLatch<16>>(), 2_304);
    assert_eq!(size_of::<AdaptiveLatch<16>>(), 2_176);
    assert_eq!(size_of::<HybridLatch>(), 8);
    assert_eq!((size_of::<SrwMutex>(), size_of::<SrwCondvar>()), (4, 8));
    assert_eq!((size_of::<SsuxLock>(), size_of::<SuxLock>()), (8, 16));
    assert_eq!(size_of::<SpinLatch>(), 16);
    assert_eq!(
        (
            size_of::<Mutex<()>>(),
            size_of::<RwLock<()>>(),
            size_of::<Condvar>()
        ),
        (4, 8, 8)
    );
}
