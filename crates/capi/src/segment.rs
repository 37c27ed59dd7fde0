//! Memory that processes share, for latches between them: `Segment` and `SegmentWorker` of `clearway_latch::interprocess`.

use std::ffi::{c_char, c_void};
use std::ptr::{self, NonNull};

use clearway_latch::interprocess::{ClassNumber, RecoveryReport, Segment, SegmentError, SegmentWorker};

use crate::{at, clearway_class_t};

/// Memory that processes share, with latches in it, as one process sees it. A process has one at a time.
pub struct clearway_segment_t(Segment);

/// A thread as a worker of a segment.
pub struct clearway_segment_worker_t(SegmentWorker<'static>);

/// The result of a function of segments.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_segment_result_t {
    /// Done.
    CLEARWAY_SEGMENT_OK = 0,
    /// The memory is too small.
    CLEARWAY_SEGMENT_TOO_SMALL = 1,
    /// The memory is NULL, or does not begin at a multiple of 128 bytes.
    CLEARWAY_SEGMENT_MISALIGNED = 2,
    /// There is no segment in the memory, or it is being made.
    CLEARWAY_SEGMENT_NOT_A_SEGMENT = 3,
    /// The segment was made by another version of the library.
    CLEARWAY_SEGMENT_OTHER_LAYOUT = 4,
    /// The segment was made with another size.
    CLEARWAY_SEGMENT_OTHER_SIZE = 5,
    /// The process has a segment already.
    CLEARWAY_SEGMENT_ALREADY_ATTACHED = 6,
    /// The thread is a worker already.
    CLEARWAY_SEGMENT_ALREADY_REGISTERED = 7,
    /// The caller is not the thread that registered, or a child of `fork` of it.
    CLEARWAY_SEGMENT_NOT_REGISTERED = 8,
    /// All worker slots are taken.
    CLEARWAY_SEGMENT_NO_SLOT = 9,
    /// The segment is full.
    CLEARWAY_SEGMENT_NO_ROOM = 10,
    /// There is no latch at this place, or it is not in the segment.
    CLEARWAY_SEGMENT_NOT_THERE = 11,
    /// The worker does not hold the latch in this mode, or leaves while it holds one.
    CLEARWAY_SEGMENT_NOT_HELD = 12,
    /// The worker holds 200 latches.
    CLEARWAY_SEGMENT_TOO_MANY_HELD = 13,
    /// A worker has died while it held or changed a latch: all processes have to end, and the segment to be made anew.
    CLEARWAY_SEGMENT_BROKEN = 14,
    /// Another process settles deaths at this time.
    CLEARWAY_SEGMENT_BUSY = 15,
    /// A reason that this version has no name for.
    CLEARWAY_SEGMENT_OTHER = 16,
    /// The process is of another PID namespace or time namespace than the one that made the segment.
    CLEARWAY_SEGMENT_OTHER_NAMESPACE = 17,
}

use clearway_segment_result_t::*;

impl From<SegmentError> for clearway_segment_result_t {
    fn from(error: SegmentError) -> Self {
        match error {
            SegmentError::TooSmall { .. } => CLEARWAY_SEGMENT_TOO_SMALL,
            SegmentError::Misaligned => CLEARWAY_SEGMENT_MISALIGNED,
            SegmentError::NotASegment => CLEARWAY_SEGMENT_NOT_A_SEGMENT,
            SegmentError::OtherLayout { .. } => CLEARWAY_SEGMENT_OTHER_LAYOUT,
            SegmentError::OtherSize { .. } => CLEARWAY_SEGMENT_OTHER_SIZE,
            SegmentError::AlreadyAttached => CLEARWAY_SEGMENT_ALREADY_ATTACHED,
            SegmentError::AlreadyRegistered => CLEARWAY_SEGMENT_ALREADY_REGISTERED,
            SegmentError::NotRegistered => CLEARWAY_SEGMENT_NOT_REGISTERED,
            SegmentError::NoSlot { .. } => CLEARWAY_SEGMENT_NO_SLOT,
            SegmentError::NoRoom { .. } => CLEARWAY_SEGMENT_NO_ROOM,
            SegmentError::NotThere => CLEARWAY_SEGMENT_NOT_THERE,
            SegmentError::NotHeld => CLEARWAY_SEGMENT_NOT_HELD,
            SegmentError::TooManyHeld => CLEARWAY_SEGMENT_TOO_MANY_HELD,
            SegmentError::Broken => CLEARWAY_SEGMENT_BROKEN,
            SegmentError::OtherNamespace => CLEARWAY_SEGMENT_OTHER_NAMESPACE,
            _ => CLEARWAY_SEGMENT_OTHER,
        }
    }
}

pub(crate) fn result_of(result: Result<(), SegmentError>) -> clearway_segment_result_t {
    result.map_or_else(Into::into, |()| CLEARWAY_SEGMENT_OK)
}

/// The findings of `clearway_segment_recover_dead`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct clearway_segment_report_t {
    /// Workers that had died asleep on a latch: the wake-ups that were meant for them have gone on.
    pub asleep: u32,
    /// Workers that had died outside of all latches.
    pub outside: u32,
    /// Workers that have died asleep and wait for one that lives, which is stopped or has no CPU: call again.
    pub unsettled: u32,
    /// Workers that have died holding or changing a latch. Not 0: the segment is broken.
    pub holders: u32,
    /// The process of the first of these, or 0.
    pub holder_pid: u32,
    /// The offset of a latch that it held or was changing, or 0.
    pub holder_latch: u64,
}

/// # Safety
/// `segment` was made by `clearway_segment_create` or `_attach`, and is not detached.
unsafe fn segment_at<'a>(segment: *const clearway_segment_t) -> &'a Segment {
    // SAFETY: the caller's.
    &unsafe { at(segment) }.0
}

/// # Safety
/// `worker` was made by `clearway_segment_register` and has not left.
#[inline(always)]
pub(crate) unsafe fn worker_at<'a>(worker: *const clearway_segment_worker_t) -> &'a SegmentWorker<'static> {
    // SAFETY: the caller's.
    &unsafe { at(worker) }.0
}

/// Writes a made segment to `segment`, or NULL.
///
/// # Safety
/// `segment` may be written.
unsafe fn hand_out(
    made: Result<Segment, SegmentError>,
    segment: *mut *mut clearway_segment_t,
) -> clearway_segment_result_t {
    let (place, result) = match made {
        Ok(made) => (
            Box::into_raw(Box::new(clearway_segment_t(made))),
            CLEARWAY_SEGMENT_OK,
        ),
        Err(error) => (ptr::null_mut(), error.into()),
    };
    // SAFETY: the caller's.
    unsafe { segment.write(place) };
    result
}

/// The size of a segment for so many workers, which are the threads of all processes together, and so many bytes of latches
/// and data.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_segment_size(workers: u32, bytes: usize) -> usize {
    Segment::size_for(workers, bytes)
}

/// Makes a segment in memory that processes share, and attaches the process to it. A child of `fork` is attached, too.
///
/// # Safety
/// `memory` leads to `size` bytes that may be written, that no process uses, and that stay mapped until the segment is
/// detached; `segment` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_create(
    memory: *mut c_void,
    size: usize,
    workers: u32,
    segment: *mut *mut clearway_segment_t,
) -> clearway_segment_result_t {
    let made = match NonNull::new(memory.cast::<u8>()) {
        // SAFETY: the caller's.
        Some(memory) => unsafe { Segment::create(memory, size, workers) },
        None => Err(SegmentError::Misaligned),
    };
    // SAFETY: the caller's.
    unsafe { hand_out(made, segment) }
}

/// Attaches the process to a segment that another process has made, wherever it is mapped here.
///
/// # Safety
/// As of `clearway_segment_create`, but that other processes use the memory by this library.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_attach(
    memory: *mut c_void,
    size: usize,
    segment: *mut *mut clearway_segment_t,
) -> clearway_segment_result_t {
    let made = match NonNull::new(memory.cast::<u8>()) {
        // SAFETY: the caller's.
        Some(memory) => unsafe { Segment::attach(memory, size) },
        None => Err(SegmentError::Misaligned),
    };
    // SAFETY: the caller's.
    unsafe { hand_out(made, segment) }
}

/// Ends the process's part in the segment. The memory may be unmapped after that.
///
/// # Safety
/// `segment` was made by `clearway_segment_create` or `_attach`; all threads of the process have left it, and use nothing of
/// it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_detach(segment: *mut clearway_segment_t) {
    // SAFETY: the caller's.
    drop(unsafe { Box::from_raw(segment) });
}

/// Makes the calling thread a worker.
///
/// # Safety
/// `segment` is a segment, and `worker` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_register(
    segment: *const clearway_segment_t,
    worker: *mut *mut clearway_segment_worker_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's. It lives longer than the worker, which has left when it is detached.
    let segment: &'static Segment = unsafe { segment_at(segment) };
    let (place, result) = match segment.register() {
        Ok(made) => (
            Box::into_raw(Box::new(clearway_segment_worker_t(made))),
            CLEARWAY_SEGMENT_OK,
        ),
        Err(error) => (ptr::null_mut(), error.into()),
    };
    // SAFETY: the caller's.
    unsafe { worker.write(place) };
    result
}

/// The thread is no worker any more. `CLEARWAY_SEGMENT_NOT_HELD` if it holds a latch: then it stays one. In a child of `fork`
/// this frees the copy of its parent's worker, and nothing else.
///
/// # Safety
/// `worker` was made by `clearway_segment_register`, by this thread or its parent's, and is not used after it has left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_leave(
    worker: *mut clearway_segment_worker_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    if unsafe { worker_at(worker) }.is_current_and_holds() {
        return CLEARWAY_SEGMENT_NOT_HELD;
    }
    // SAFETY: the caller's.
    drop(unsafe { Box::from_raw(worker) });
    CLEARWAY_SEGMENT_OK
}

/// Takes `size` bytes at a multiple of `alignment` (a power of two up to 128) for latches and data, and writes their offset,
/// which means the same in every process. They are never given back.
///
/// # Safety
/// `segment` is a segment, and `offset` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_reserve(
    segment: *const clearway_segment_t,
    size: usize,
    alignment: usize,
    offset: *mut u64,
) -> clearway_segment_result_t {
    if !alignment.is_power_of_two() || alignment > 128 {
        return CLEARWAY_SEGMENT_MISALIGNED;
    }
    // SAFETY: the caller's.
    match unsafe { segment_at(segment) }.reserve(size, alignment) {
        Ok(taken) => {
            // SAFETY: the caller's.
            unsafe { offset.write(taken) };
            CLEARWAY_SEGMENT_OK
        }
        Err(error) => error.into(),
    }
}

/// The address in this process of `size` bytes that were taken at `offset`, or NULL if they were not.
///
/// # Safety
/// `segment` is a segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_address(
    segment: *const clearway_segment_t,
    offset: u64,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's.
    let place = unsafe { segment_at(segment) }.address_of(offset, size);
    place.map_or(ptr::null_mut(), |place| place.as_ptr().cast())
}

/// Has this process mean `class` by the number that latches in segments keep.
///
/// # Safety
/// `class` was made by `clearway_class_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_set_class(number: u8, class: *const clearway_class_t) {
    // SAFETY: the caller's.
    ClassNumber(number).set(unsafe { clearway_class_t::of(class) });
}

/// Finds the workers whose processes have died, and settles what they have left; any process may call it at any time. A
/// supervisor does when a child has ended. The calling thread takes no latch of the segment: if all that call this wait for a
/// latch that a dead worker holds, none finds the death. `CLEARWAY_SEGMENT_BUSY` while another process does it. The report is
/// written in each case, as zeros without a result.
///
/// # Safety
/// `segment` is a segment, and `report` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_recover_dead(
    segment: *const clearway_segment_t,
    report: *mut clearway_segment_report_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (found, result) = match unsafe { segment_at(segment) }.recover_dead() {
        Ok(Some(found)) => (found, CLEARWAY_SEGMENT_OK),
        Ok(None) => (RecoveryReport::default(), CLEARWAY_SEGMENT_BUSY),
        Err(error) => (RecoveryReport::default(), error.into()),
    };
    let first = found.holders.first();
    let latch = first.and_then(|holder| holder.held.first().map(|held| held.offset).or(holder.changing));
    let found = clearway_segment_report_t {
        asleep: found.asleep,
        outside: found.outside,
        unsettled: found.unsettled,
        holders: found.holders.len() as u32,
        holder_pid: first.map_or(0, |holder| holder.process.pid()),
        holder_latch: latch.unwrap_or(0),
    };
    // SAFETY: the caller's.
    unsafe { report.write(found) };
    result
}

/// True once a worker was found dead that held or changed a latch.
///
/// # Safety
/// `segment` is a segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_is_broken(segment: *const clearway_segment_t) -> bool {
    // SAFETY: the caller's.
    unsafe { segment_at(segment) }.is_broken()
}

/// Writes the numbers of the processes that have workers and live, the caller's among them, to `pids`, `room` of them at most;
/// how many there are. After a break: the processes to end. The number of one that ends meanwhile, and whose parent waits for
/// it, may become a stranger's.
///
/// # Safety
/// `segment` is a segment, and `room` numbers may be written at `pids`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_processes(
    segment: *const clearway_segment_t,
    pids: *mut u32,
    room: usize,
) -> usize {
    // SAFETY: the caller's.
    let all = unsafe { segment_at(segment) }.processes();
    for (number, process) in all.iter().take(room).enumerate() {
        // SAFETY: the caller's.
        unsafe { pids.add(number).write(process.pid()) };
    }
    all.len()
}

/// The meaning of a result, in English. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_segment_result_text(result: clearway_segment_result_t) -> *const c_char {
    let text = match result {
        CLEARWAY_SEGMENT_OK => c"done",
        CLEARWAY_SEGMENT_TOO_SMALL => c"the memory is too small for these workers",
        CLEARWAY_SEGMENT_MISALIGNED => c"the memory does not begin at a multiple of 128 bytes",
        CLEARWAY_SEGMENT_NOT_A_SEGMENT => c"there is no segment in this memory, or it is not ready yet",
        CLEARWAY_SEGMENT_OTHER_LAYOUT => c"the segment was made by another version of the library",
        CLEARWAY_SEGMENT_OTHER_SIZE => c"the segment was made with another size",
        CLEARWAY_SEGMENT_ALREADY_ATTACHED => c"the process has a segment already",
        CLEARWAY_SEGMENT_ALREADY_REGISTERED => c"the thread is a worker of the segment already",
        CLEARWAY_SEGMENT_NOT_REGISTERED => c"the thread is no worker of the segment",
        CLEARWAY_SEGMENT_NO_SLOT => c"all worker slots of the segment are taken",
        CLEARWAY_SEGMENT_NO_ROOM => c"the segment is full",
        CLEARWAY_SEGMENT_NOT_THERE => c"there is no such latch at this place of the segment",
        CLEARWAY_SEGMENT_NOT_HELD => c"the latch is not held in this mode, or one is still held",
        CLEARWAY_SEGMENT_TOO_MANY_HELD => c"the worker holds as many latches as can be noted",
        CLEARWAY_SEGMENT_BROKEN => c"a worker has died while it held or changed a latch of the segment",
        CLEARWAY_SEGMENT_BUSY => c"another process settles deaths",
        CLEARWAY_SEGMENT_OTHER => c"a reason without a name",
        CLEARWAY_SEGMENT_OTHER_NAMESPACE => {
            c"the segment was made in another PID or time namespace than the process's"
        }
    };
    text.as_ptr()
}
