//! The commit log, two bits a transaction, whose pages the program reads and writes: `CommitLog`.

use std::ffi::{c_int, c_void};
use std::io;

use clearway_txn::{
    COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, Status, StatusDevice,
    XID_LIMIT, Xid,
};

use crate::at;

/// A transaction's number. 0 is none, 1 counts as committed; `CLEARWAY_XID_FIRST` is the least that is handed out.
pub type clearway_xid_t = u64;

/// The least transaction number that is handed out.
pub const CLEARWAY_XID_FIRST: u64 = 2;
/// The commit log has a place for every number before this one.
pub const CLEARWAY_XID_LIMIT: u64 = 140_325_171_494_912;
/// The bytes of a page of the commit log.
pub const CLEARWAY_COMMIT_LOG_PAGE_SIZE: usize = 8192;
/// The bytes at the start of each page that are the program's, for a checksum or the like; the log leaves them as they are.
pub const CLEARWAY_COMMIT_LOG_PAGE_HEADER: usize = 24;

const _: () = {
    assert!(CLEARWAY_XID_FIRST == Xid::FIRST_NORMAL.0);
    assert!(CLEARWAY_XID_LIMIT == XID_LIMIT.0);
    assert!(CLEARWAY_COMMIT_LOG_PAGE_SIZE == COMMIT_LOG_PAGE_SIZE);
    assert!(CLEARWAY_COMMIT_LOG_PAGE_HEADER == COMMIT_LOG_PAGE_HEADER);
};

/// The place where the pages of a commit log are kept. Its functions are called by any thread that uses the log, while it
/// holds latches of it, so they use neither the log nor a transaction array.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct clearway_status_device_t {
    /// Handed to the functions.
    pub context: *mut c_void,
    /// Reads page `number`: writes its bytes to `page` and returns 1; 0 if it was never written; or an error number of the
    /// system as a negative number.
    pub read_page: unsafe extern "C" fn(context: *mut c_void, number: u32, page: *mut u8) -> c_int,
    /// Writes page `number`, after making the program's log durable up to `lsn`; returns 0, or an error number as a negative
    /// number.
    pub write_page:
        unsafe extern "C" fn(context: *mut c_void, number: u32, page: *const u8, lsn: u64) -> c_int,
}

// SAFETY: `clearway_commit_log_new` demands functions that any thread may call with the context.
unsafe impl Send for clearway_status_device_t {}
// SAFETY: as above.
unsafe impl Sync for clearway_status_device_t {}

/// The error that a function of the device has returned.
fn error_of(returned: c_int) -> io::Error {
    io::Error::from_raw_os_error(returned.checked_neg().unwrap_or(c_int::MAX))
}

impl StatusDevice for clearway_status_device_t {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        // SAFETY: as `clearway_commit_log_new` demands; the page has as many bytes.
        match unsafe { (self.read_page)(self.context, number, page.as_mut_ptr()) } {
            1 => Ok(true),
            0 => {
                page.fill(0);
                Ok(false)
            }
            returned => Err(error_of(returned)),
        }
    }

    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        // SAFETY: as `clearway_commit_log_new` demands; the page has as many bytes.
        match unsafe { (self.write_page)(self.context, number, page.as_ptr(), lsn) } {
            0 => Ok(()),
            returned => Err(error_of(returned)),
        }
    }
}

/// The number of the system for an argument that cannot be meant.
pub(crate) const EINVAL: c_int = 22;

/// The number of the system for `error`.
pub(crate) fn number_of(error: &io::Error) -> c_int {
    // Of an error without a number: input or output failed.
    error.raw_os_error().unwrap_or(5)
}

/// A commit log.
pub struct clearway_commit_log_t(pub(crate) CommitLog<clearway_machine::Native, clearway_status_device_t>);

/// The end of a transaction.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_status_t {
    /// It has not ended, or a crash has cut it off.
    CLEARWAY_IN_PROGRESS = 0,
    /// It has committed.
    CLEARWAY_COMMITTED = 1,
    /// It was rolled back.
    CLEARWAY_ABORTED = 2,
}

/// A new log over the pages of `device`, with none in memory; freed by `clearway_commit_log_free`.
///
/// # Safety
/// Any thread may call the functions of `device` with its context, until the log is freed. They write and read
/// `CLEARWAY_COMMIT_LOG_PAGE_SIZE` bytes of the page and no others, and do not unwind.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_commit_log_new(
    device: clearway_status_device_t,
) -> *mut clearway_commit_log_t {
    let log = CommitLog::new(device, CommitLogOptions::default());
    Box::into_raw(Box::new(clearway_commit_log_t(log)))
}

/// Frees a log. What was not flushed is lost.
///
/// # Safety
/// `log` is NULL or was made by `clearway_commit_log_new`; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_commit_log_free(log: *mut clearway_commit_log_t) {
    if !log.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(log) });
    }
}

/// Notes how `xid`, which is at least `CLEARWAY_XID_FIRST`, has ended. The page is written to the device after the program's
/// log up to `lsn`. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number of the device.
///
/// # Safety
/// `log` was made by `clearway_commit_log_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_commit_log_set(
    log: *mut clearway_commit_log_t,
    xid: clearway_xid_t,
    status: clearway_status_t,
    lsn: u64,
) -> c_int {
    if Xid(xid) >= XID_LIMIT {
        return EINVAL;
    }
    let status = match status {
        clearway_status_t::CLEARWAY_IN_PROGRESS => Status::InProgress,
        clearway_status_t::CLEARWAY_COMMITTED => Status::Committed,
        clearway_status_t::CLEARWAY_ABORTED => Status::Aborted,
    };
    // SAFETY: the caller's.
    let set = unsafe { at(log) }.0.set(Xid(xid), status, lsn);
    set.map_or_else(|error| number_of(&error), |()| 0)
}

/// Writes to `status` how `xid` has ended. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number
/// of the device; only with 0 it writes. A caller that does not know whether it still runs asks the transaction array first.
///
/// # Safety
/// `log` was made by `clearway_commit_log_new`; `status` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_commit_log_get(
    log: *mut clearway_commit_log_t,
    xid: clearway_xid_t,
    status: *mut clearway_status_t,
) -> c_int {
    if Xid(xid) >= XID_LIMIT {
        return EINVAL;
    }
    // SAFETY: the caller's.
    let found = match unsafe { at(log) }.0.get(Xid(xid)) {
        Ok(Status::Committed) => clearway_status_t::CLEARWAY_COMMITTED,
        Ok(Status::Aborted) => clearway_status_t::CLEARWAY_ABORTED,
        Ok(_) => clearway_status_t::CLEARWAY_IN_PROGRESS,
        Err(error) => return number_of(&error),
    };
    // SAFETY: the caller's.
    unsafe { status.write(found) };
    0
}

/// Writes all pages that have changed to the device. Returns 0, or an error number of the device.
///
/// # Safety
/// `log` was made by `clearway_commit_log_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_commit_log_flush(log: *mut clearway_commit_log_t) -> c_int {
    // SAFETY: the caller's.
    let flushed = unsafe { at(log) }.0.flush_all();
    flushed.map_or_else(|error| number_of(&error), |()| 0)
}
