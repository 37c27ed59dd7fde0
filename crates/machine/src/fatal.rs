//! Unrecoverable errors: report and abort.

/// Ends the process with `message` on standard error. Without std it panics, and the program's panic handler
/// decides what happens; it must not return to the caller.
///
/// For errors that no caller can repair, where unwinding would leave latches in an undefined state.
#[cold]
#[inline(never)]
pub fn fatal(message: core::fmt::Arguments<'_>) -> ! {
    #[cfg(feature = "std")]
    {
        crate::stderr_line(format_args!("clearway: {message}"));
        std::process::abort()
    }
    #[cfg(not(feature = "std"))]
    panic!("clearway: {message}")
}
