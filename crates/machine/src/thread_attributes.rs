//! A thread's policy, nice value and slice, as the kernel reads and sets them together.

use std::io;

/// As long as `sched_attr` was when slices could first be set; the kernel accepts that from then on.
const ATTRIBUTES_BYTES: u32 = size_of::<libc::sched_attr>() as u32;

/// Gives the thread these attributes, all of them.
pub(crate) fn set_attributes(thread: libc::pid_t, attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads `size` bytes of the struct, which outlives the call; a number that names no thread is an
    // error.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const *attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The thread's policy, nice value and slice.
pub(crate) fn attributes_of(thread: libc::pid_t) -> io::Result<libc::sched_attr> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut attributes: libc::sched_attr = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes at most the given number of bytes, the struct's size; a number that names no thread is an
    // error.
    match unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            &raw mut attributes,
            ATTRIBUTES_BYTES,
            0,
        )
    } {
        0 => Ok(attributes),
        _ => Err(io::Error::last_os_error()),
    }
}
