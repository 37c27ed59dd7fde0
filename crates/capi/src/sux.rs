//! A latch with shared, update and exclusive modes, of eight bytes: `SsuxLock`. Without its update mode it is a
//! reader-writer latch.

use std::time::Duration;

use clearway_latch::SsuxLock;
use clearway_latch::lock_api::{
    GuardNoSend, RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeTimed,
};

use crate::at;

/// A latch with three modes. Idle when its bytes are zero. Not recursive.
///
/// Any number of threads hold it shared, beside one that holds it in update mode, or one holds it exclusively.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_sux_t {
    word: u64,
}

// The word of C is that of the latch, and zero is idle.
const _: () = {
    assert!(size_of::<clearway_sux_t>() == size_of::<SsuxLock>());
    assert!(align_of::<clearway_sux_t>() >= align_of::<SsuxLock>());
    // SAFETY: of the same size, and every value of a word is one.
    assert!(unsafe { std::mem::transmute::<SsuxLock, u64>(SsuxLock::new()) } == 0);
};

/// # Safety
/// `latch` leads to a latch.
#[inline(always)]
unsafe fn sux_at<'a>(latch: *mut clearway_sux_t) -> &'a SsuxLock {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(latch.cast_const().cast()) }
}

/// Takes the latch in shared mode: with other readers and one updater.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_lock_shared(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.lock_shared();
}

/// Takes the latch in shared mode if that needs no waiting; whether it did.
///
/// # Safety
/// `latch` leads to a latch.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_shared(latch: *mut clearway_sux_t) -> bool {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.try_lock_shared().is_some()
}

/// Takes the latch in shared mode within so many nanoseconds; whether it did.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_shared_for(
    latch: *mut clearway_sux_t,
    nanoseconds: u64,
) -> bool {
    // SAFETY: the caller's.
    let latch = unsafe { sux_at(latch) };
    latch
        .try_lock_shared_for(Duration::from_nanos(nanoseconds))
        .is_some()
}

/// Releases the latch that the thread holds in shared mode.
///
/// # Safety
/// The thread holds the latch in shared mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_unlock_shared(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).unlock_shared(GuardNoSend::new()) };
}

/// Takes the latch in update mode: with readers, and without another updater.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_lock_update(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.lock_upgradable();
}

/// Takes the latch in update mode if that needs no waiting; whether it did.
///
/// # Safety
/// `latch` leads to a latch.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_update(latch: *mut clearway_sux_t) -> bool {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.try_lock_upgradable().is_some()
}

/// Takes the latch in update mode within so many nanoseconds; whether it did.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_update_for(
    latch: *mut clearway_sux_t,
    nanoseconds: u64,
) -> bool {
    // SAFETY: the caller's.
    let latch = unsafe { sux_at(latch) };
    latch
        .try_lock_upgradable_for(Duration::from_nanos(nanoseconds))
        .is_some()
}

/// Releases the latch that the thread holds in update mode.
///
/// # Safety
/// The thread holds the latch in update mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_unlock_update(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).unlock_upgradable(GuardNoSend::new()) };
}

/// Takes the latch in exclusive mode: alone.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_lock_exclusive(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.lock_exclusive();
}

/// Takes the latch in exclusive mode if that needs no waiting; whether it did.
///
/// # Safety
/// `latch` leads to a latch.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_exclusive(latch: *mut clearway_sux_t) -> bool {
    // SAFETY: the caller's.
    unsafe { sux_at(latch) }.try_lock_exclusive().is_some()
}

/// Takes the latch in exclusive mode within so many nanoseconds; whether it did.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_lock_exclusive_for(
    latch: *mut clearway_sux_t,
    nanoseconds: u64,
) -> bool {
    // SAFETY: the caller's.
    let latch = unsafe { sux_at(latch) };
    latch
        .try_lock_exclusive_for(Duration::from_nanos(nanoseconds))
        .is_some()
}

/// Releases the latch that the thread holds in exclusive mode.
///
/// # Safety
/// The thread holds the latch in exclusive mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_unlock_exclusive(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).unlock_exclusive(GuardNoSend::new()) };
}

/// From update to exclusive mode, as soon as no thread reads any more. Readers that come after the call wait.
///
/// # Safety
/// The thread holds the latch in update mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_update_to_exclusive(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).upgrade(GuardNoSend::new()) };
}

/// From update to exclusive mode if no thread reads; whether it did. If not, the latch is held in update mode.
///
/// # Safety
/// The thread holds the latch in update mode.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_update_to_exclusive(latch: *mut clearway_sux_t) -> bool {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).try_upgrade(GuardNoSend::new()) }.is_ok()
}

/// From update to exclusive mode within so many nanoseconds; whether it did. If not, the latch is held in update mode.
///
/// # Safety
/// The thread holds the latch in update mode.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_sux_try_update_to_exclusive_for(
    latch: *mut clearway_sux_t,
    nanoseconds: u64,
) -> bool {
    let time = Duration::from_nanos(nanoseconds);
    // SAFETY: the caller's.
    unsafe { sux_at(latch).try_upgrade_for(GuardNoSend::new(), time) }.is_ok()
}

/// From update to shared mode. No thread writes in between.
///
/// # Safety
/// The thread holds the latch in update mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_update_to_shared(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).downgrade_upgradable(GuardNoSend::new()) };
}

/// From exclusive to update mode. No other thread writes in between.
///
/// # Safety
/// The thread holds the latch in exclusive mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_exclusive_to_update(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).downgrade_to_upgradable(GuardNoSend::new()) };
}

/// From exclusive to shared mode. No thread writes in between.
///
/// # Safety
/// The thread holds the latch in exclusive mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_sux_exclusive_to_shared(latch: *mut clearway_sux_t) {
    // SAFETY: the caller's.
    unsafe { sux_at(latch).downgrade(GuardNoSend::new()) };
}
