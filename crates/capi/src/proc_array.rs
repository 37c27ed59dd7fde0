//! The array of running transactions, and snapshots of it: `ProcArray` and `Snapshot`.

use std::ffi::c_int;

use clearway_machine::Native;
use clearway_txn::{ProcArray, ProcArrayOptions, ProcId, Snapshot, XID_LIMIT, Xid};

use crate::commit_log::{EINVAL, number_of};
use crate::{at, clearway_commit_log_t, clearway_xid_t};

/// An array of running transactions.
pub struct clearway_proc_array_t(ProcArray<Native>);

/// A session's place in the array. One thread at a time uses it.
pub type clearway_session_t = u32;

/// The transactions that had finished at one moment. One thread at a time uses it, with one array and its commit log.
pub struct clearway_snapshot_t(Snapshot);

/// A new array for `sessions` sessions. `first` is the next transaction number to be handed out; all before it have ended.
/// NULL if `first` is less than `CLEARWAY_XID_FIRST` or not less than `CLEARWAY_XID_LIMIT`. Freed by `clearway_proc_array_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn clearway_proc_array_new(
    sessions: u32,
    first: clearway_xid_t,
) -> *mut clearway_proc_array_t {
    if !(Xid::FIRST_NORMAL..XID_LIMIT).contains(&Xid(first)) {
        return std::ptr::null_mut();
    }
    let array = ProcArray::new(sessions, ProcArrayOptions::default(), Xid(first));
    Box::into_raw(Box::new(clearway_proc_array_t(array)))
}

/// Frees an array.
///
/// # Safety
/// `array` is NULL or was made by `clearway_proc_array_new`; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_proc_array_free(array: *mut clearway_proc_array_t) {
    if !array.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(array) });
    }
}

/// Writes a free place to `session`; false, and nothing is written, if all are taken.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`; `session` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_proc_array_attach(
    array: *mut clearway_proc_array_t,
    session: *mut clearway_session_t,
) -> bool {
    // SAFETY: the caller's.
    let attached = unsafe { at(array) }.0.attach();
    // SAFETY: the caller's.
    attached.map(|proc| unsafe { session.write(proc.0) }).is_ok()
}

/// Gives back a place, whose transaction has ended.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_proc_array_detach(
    array: *mut clearway_proc_array_t,
    session: clearway_session_t,
) {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.detach(ProcId(session));
}

/// Begins a transaction of `session`, which runs none, and returns its number. No row has it before the call returns.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_proc_array_assign_xid(
    array: *mut clearway_proc_array_t,
    session: clearway_session_t,
) -> clearway_xid_t {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.assign_xid(ProcId(session)).0
}

/// Ends the transaction `xid` of `session`, after the commit log says how; with 0 the session ran none. The snapshots of the
/// session hold nothing back any more.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_proc_array_end(
    array: *mut clearway_proc_array_t,
    session: clearway_session_t,
    xid: clearway_xid_t,
) {
    let xid = Some(Xid(xid)).filter(|xid| xid.is_valid());
    // SAFETY: the caller's.
    unsafe { at(array) }.0.end(ProcId(session), xid);
}

/// True if `xid` runs. One that does not run and has no status in the commit log was cut off by a crash.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_proc_array_is_running(
    array: *mut clearway_proc_array_t,
    xid: clearway_xid_t,
) -> bool {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.is_running(Xid(xid))
}

/// The transaction number that is handed out next.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_proc_array_next_xid(array: *mut clearway_proc_array_t) -> clearway_xid_t {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.next_xid().0
}

/// The oldest transaction that a snapshot, one in use or a later one, may regard as running. A row that a transaction before
/// it has deleted, and committed, is seen by no session.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_proc_array_horizon(array: *mut clearway_proc_array_t) -> clearway_xid_t {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.horizon().0
}

/// A snapshot that regards every transaction as running, until one is taken into it. Freed by `clearway_snapshot_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn clearway_snapshot_new() -> *mut clearway_snapshot_t {
    Box::into_raw(Box::new(clearway_snapshot_t(Snapshot::default())))
}

/// Frees a snapshot.
///
/// # Safety
/// `snapshot` is NULL or was made by `clearway_snapshot_new`; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_snapshot_free(snapshot: *mut clearway_snapshot_t) {
    if !snapshot.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(snapshot) });
    }
}

/// Takes a snapshot into `snapshot`, and holds back the horizon for `session`, until `clearway_proc_array_clear_xmin` or
/// `clearway_proc_array_end`. A session that has several holds it back for the oldest.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`, `snapshot` by `clearway_snapshot_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_proc_array_snapshot(
    array: *mut clearway_proc_array_t,
    session: clearway_session_t,
    snapshot: *mut clearway_snapshot_t,
) {
    // SAFETY: the caller's; one thread uses the snapshot.
    let (array, snapshot) = unsafe { (at(array), &mut *snapshot) };
    array.0.snapshot(ProcId(session), &mut snapshot.0);
}

/// `session` uses no snapshot any more, and holds back the horizon no longer.
///
/// # Safety
/// `array` was made by `clearway_proc_array_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_proc_array_clear_xmin(
    array: *mut clearway_proc_array_t,
    session: clearway_session_t,
) {
    // SAFETY: the caller's.
    unsafe { at(array) }.0.clear_xmin(ProcId(session));
}

/// Writes to `sees` whether `xid` had committed when the snapshot was taken. A session looks for its own transaction first:
/// of that the answer means nothing. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number of the
/// log's device; only with 0 it writes.
///
/// # Safety
/// `snapshot` was made by `clearway_snapshot_new`, `log` by `clearway_commit_log_new`; `sees` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_snapshot_sees(
    snapshot: *const clearway_snapshot_t,
    xid: clearway_xid_t,
    log: *mut clearway_commit_log_t,
    sees: *mut bool,
) -> c_int {
    if Xid(xid) >= XID_LIMIT {
        return EINVAL;
    }
    // SAFETY: the caller's.
    match unsafe { at(snapshot).0.sees(Xid(xid), &at(log).0) } {
        Ok(seen) => {
            // SAFETY: the caller's.
            unsafe { sees.write(seen) };
            0
        }
        Err(error) => number_of(&error),
    }
}
