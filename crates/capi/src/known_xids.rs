//! The running transactions of another server, as the log that is replayed tells of them: `KnownXids`.

use clearway_machine::Native;
use clearway_txn::{
    KnownXids, KnownXidsError, KnownXidsOptions, ReplayedXids, RunningTransactions, RunningXids, Xid,
};

use crate::{at, clearway_xid_t};

/// The known transactions.
pub struct clearway_known_xids_t(KnownXids<Native>);

/// The operations of replay, for one thread at a time.
pub struct clearway_replayed_xids_t(ReplayedXids<'static, Native>);

/// The transactions that ran at one moment. One thread at a time uses it.
pub struct clearway_running_xids_t(RunningXids);

/// The reason why a call is refused.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_known_xids_result_t {
    /// None: it was done.
    CLEARWAY_KNOWN_XIDS_OK = 0,
    /// Transactions are added in ascending order.
    CLEARWAY_KNOWN_XIDS_OUT_OF_ORDER = 1,
    /// More run than the capacity.
    CLEARWAY_KNOWN_XIDS_NO_ROOM = 2,
    /// No record of the running transactions has been replayed.
    CLEARWAY_KNOWN_XIDS_UNKNOWN = 3,
    /// Running transactions may be missing, so that there is no snapshot yet.
    CLEARWAY_KNOWN_XIDS_NOT_COMPLETE = 4,
    /// A record contradicts itself.
    CLEARWAY_KNOWN_XIDS_BAD_RECORD = 5,
    /// Another reason, of a later version of the library.
    CLEARWAY_KNOWN_XIDS_OTHER = 6,
}

impl clearway_known_xids_result_t {
    fn of<T>(result: Result<T, KnownXidsError>) -> Self {
        match result {
            Ok(_) => Self::CLEARWAY_KNOWN_XIDS_OK,
            Err(KnownXidsError::OutOfOrder { .. }) => Self::CLEARWAY_KNOWN_XIDS_OUT_OF_ORDER,
            Err(KnownXidsError::NoRoom { .. }) => Self::CLEARWAY_KNOWN_XIDS_NO_ROOM,
            Err(KnownXidsError::Unknown) => Self::CLEARWAY_KNOWN_XIDS_UNKNOWN,
            Err(KnownXidsError::NotComplete(_)) => Self::CLEARWAY_KNOWN_XIDS_NOT_COMPLETE,
            Err(KnownXidsError::BadRecord(_)) => Self::CLEARWAY_KNOWN_XIDS_BAD_RECORD,
            Err(_) => Self::CLEARWAY_KNOWN_XIDS_OTHER,
        }
    }
}

/// A record of the running transactions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct clearway_running_record_t {
    /// The record says nothing of transactions from here on; all others that are not listed have ended.
    pub next: clearway_xid_t,
    /// The oldest that runs, or `next`.
    pub oldest_running: clearway_xid_t,
    /// The newest that has ended.
    pub newest_ended: clearway_xid_t,
    /// The running ones with their subtransactions, in ascending order.
    pub running: *const clearway_xid_t,
    /// Number of those.
    pub running_count: usize,
    /// Those that are prepared, which only their own end removes.
    pub prepared: *const clearway_xid_t,
    /// Number of those.
    pub prepared_count: usize,
    /// True if subtransactions are missing in `running`.
    pub overflowed: bool,
}

/// # Safety
/// `xids` leads to `count` numbers, which stay as they are; it may be NULL if there are none.
unsafe fn list<'a>(xids: *const clearway_xid_t, count: usize) -> &'a [Xid] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's; an xid is a number of 64 bits.
    unsafe { std::slice::from_raw_parts(xids.cast::<Xid>(), count) }
}

/// The known transactions of a server of `sessions` sessions, of which, with subtransactions, `capacity` can run at once; 0
/// for 65 a session. Nothing is known yet. Freed by `clearway_known_xids_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn clearway_known_xids_new(sessions: u32, capacity: u32) -> *mut clearway_known_xids_t {
    let mut options = KnownXidsOptions::for_sessions(sessions);
    if capacity != 0 {
        options.capacity = capacity;
    }
    Box::into_raw(Box::new(clearway_known_xids_t(KnownXids::new(options))))
}

/// Frees known transactions.
///
/// # Safety
/// `known` is NULL or was made by `clearway_known_xids_new`; no thread uses it any more, and no thread replays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_known_xids_free(known: *mut clearway_known_xids_t) {
    if !known.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(known) });
    }
}

/// The operations of replay; NULL while another caller has them. Given back by `clearway_replayed_xids_free`.
///
/// # Safety
/// `known` was made by `clearway_known_xids_new`, and is freed after what is returned.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_known_xids_replay(
    known: *mut clearway_known_xids_t,
) -> *mut clearway_replayed_xids_t {
    // SAFETY: the caller's.
    let known: &'static clearway_known_xids_t = unsafe { at(known) };
    let replay = known.0.replay();
    replay.map_or(std::ptr::null_mut(), |replay| {
        Box::into_raw(Box::new(clearway_replayed_xids_t(replay)))
    })
}

/// Gives back the operations of replay.
///
/// # Safety
/// `replay` is NULL or came from `clearway_known_xids_replay`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_replayed_xids_free(replay: *mut clearway_replayed_xids_t) {
    if !replay.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(replay) });
    }
}

/// Replays a record of the running transactions.
///
/// # Safety
/// `replay` came from `clearway_known_xids_replay`, and one thread uses it; the record's pointers lead to as many numbers as
/// it says.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_replayed_xids_apply(
    replay: *mut clearway_replayed_xids_t,
    record: *const clearway_running_record_t,
) -> clearway_known_xids_result_t {
    // SAFETY: the caller's.
    let (replay, record) = unsafe { (&mut *replay, at(record)) };
    // SAFETY: the caller's.
    let (running, prepared) = unsafe {
        (
            list(record.running, record.running_count),
            list(record.prepared, record.prepared_count),
        )
    };
    clearway_known_xids_result_t::of(replay.0.apply(&RunningTransactions {
        next: Xid(record.next),
        oldest_running: Xid(record.oldest_running),
        newest_ended: Xid(record.newest_ended),
        running,
        overflowed: record.overflowed,
        prepared,
    }))
}

/// All transactions from `from` to `to` have begun.
///
/// # Safety
/// `replay` came from `clearway_known_xids_replay`, and one thread uses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_replayed_xids_add(
    replay: *mut clearway_replayed_xids_t,
    from: clearway_xid_t,
    to: clearway_xid_t,
) -> clearway_known_xids_result_t {
    // SAFETY: the caller's.
    let replay = unsafe { &mut *replay };
    clearway_known_xids_result_t::of(replay.0.add(Xid(from), Xid(to)))
}

/// `xid` and its `count` subtransactions have ended, at one moment. Those that are not known are ignored.
///
/// # Safety
/// `replay` came from `clearway_known_xids_replay`, and one thread uses it; `children` leads to `count` numbers, or is NULL
/// if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_replayed_xids_remove(
    replay: *mut clearway_replayed_xids_t,
    xid: clearway_xid_t,
    children: *const clearway_xid_t,
    count: usize,
) {
    // SAFETY: the caller's.
    let (replay, children) = unsafe { (&mut *replay, list(children, count)) };
    replay.0.remove_tree(Xid(xid), children);
}

/// Replay has nothing to do at the moment.
///
/// # Safety
/// `replay` came from `clearway_known_xids_replay`, and one thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_replayed_xids_idle(replay: *mut clearway_replayed_xids_t) {
    // SAFETY: the caller's.
    unsafe { &mut *replay }.0.idle();
}

/// A list of running transactions, for `clearway_known_xids_snapshot`. Freed by `clearway_running_xids_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn clearway_running_xids_new() -> *mut clearway_running_xids_t {
    Box::into_raw(Box::new(clearway_running_xids_t(RunningXids::default())))
}

/// Frees a list of running transactions.
///
/// # Safety
/// `running` is NULL or was made by `clearway_running_xids_new`; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_running_xids_free(running: *mut clearway_running_xids_t) {
    if !running.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(running) });
    }
}

/// Lists in `running` what runs at one moment of the call.
///
/// # Safety
/// `known` was made by `clearway_known_xids_new`; `running` was made by `clearway_running_xids_new`, and one thread uses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_known_xids_snapshot(
    known: *mut clearway_known_xids_t,
    running: *mut clearway_running_xids_t,
) -> clearway_known_xids_result_t {
    // SAFETY: the caller's.
    let (known, running) = unsafe { (at(known), &mut *running) };
    clearway_known_xids_result_t::of(known.0.snapshot(&mut running.0))
}

/// True if `xid` had not ended.
///
/// # Safety
/// `running` was made by `clearway_running_xids_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_running_xids_is_running(
    running: *const clearway_running_xids_t,
    xid: clearway_xid_t,
) -> bool {
    // SAFETY: the caller's.
    unsafe { at(running) }.0.is_running(Xid(xid))
}

/// The oldest that ran, or the end if none did.
///
/// # Safety
/// `running` was made by `clearway_running_xids_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_running_xids_oldest(
    running: *const clearway_running_xids_t,
) -> clearway_xid_t {
    // SAFETY: the caller's.
    unsafe { at(running) }.0.xmin().0
}

/// The end: all transactions from there on count as running.
///
/// # Safety
/// `running` was made by `clearway_running_xids_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_running_xids_end(
    running: *const clearway_running_xids_t,
) -> clearway_xid_t {
    // SAFETY: the caller's.
    unsafe { at(running) }.0.xmax().0
}

/// The running ones before the end, in ascending order, and their number in `count`. They stay until the next call that
/// changes or frees `running`.
///
/// # Safety
/// `running` was made by `clearway_running_xids_new`; `count` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_running_xids_list(
    running: *const clearway_running_xids_t,
    count: *mut usize,
) -> *const clearway_xid_t {
    // SAFETY: the caller's.
    let xids = unsafe { at(running) }.0.xids();
    // SAFETY: the caller's.
    unsafe { count.write(xids.len()) };
    xids.as_ptr().cast()
}
