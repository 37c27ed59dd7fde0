//! The end, when going on would be wrong.

/// Ends the process with `message` on standard error. Without std it panics, and what then happens is up to the program's panic
/// handler, which must not return to whoever called.
///
/// For what no caller can make good, and where unwinding would leave latches in a state that nobody expects.
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
