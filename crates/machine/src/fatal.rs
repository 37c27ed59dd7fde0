//! Errors that no caller can be given: reports, and the end of the process.
//!
//! | | for | then |
//! | --- | --- | --- |
//! | [`report`] | what an operator should know, and the program can live with | it goes on |
//! | [`fatal`] | an error of the system that no caller can repair | the process ends |
//! | [`invariant!`](crate::invariant) | a rule of a module that the program itself has broken | the process ends |
//!
//! Neither is for what comes from outside: a client's bytes, a file, a peer are wrong with an error of their own.

/// Takes a message in the place of standard error; the second argument is true for the last message of a process that
/// ends, which it has to write before it returns. It is called with latches held, so it takes none that its callers may
/// hold, and calls neither [`report`] nor [`fatal`].
#[cfg(feature = "std")]
pub type Reporter = fn(core::fmt::Arguments<'_>, bool);

#[cfg(feature = "std")]
static REPORTER: std::sync::OnceLock<Reporter> = std::sync::OnceLock::new();

/// Has `reporter` take what [`report`] and [`fatal`] tell: the program's log, whose earlier lines are to stand before it. A
/// second call changes nothing.
#[cfg(feature = "std")]
pub fn set_reporter(reporter: Reporter) {
    let _ = REPORTER.set(reporter);
}

#[cfg(feature = "std")]
fn tell(message: core::fmt::Arguments<'_>, is_last: bool) {
    match REPORTER.get() {
        Some(reporter) => reporter(message, is_last),
        None => crate::stderr_line(format_args!("clearway: {message}")),
    }
}

/// Writes `message` to standard error, if there is one, or gives it to the program's reporter. Without std it is lost.
#[cold]
#[inline(never)]
pub fn report(message: core::fmt::Arguments<'_>) {
    #[cfg(feature = "std")]
    tell(message, false);
    let _ = message;
}

/// Ends the process with `message` on standard error. Without std it panics, and the program's panic handler
/// decides what happens; it must not return to the caller.
///
/// For errors that no caller can repair, where unwinding would leave latches in an undefined state.
#[cold]
#[inline(never)]
pub fn fatal(message: core::fmt::Arguments<'_>) -> ! {
    #[cfg(feature = "std")]
    {
        tell(message, true);
        std::process::abort()
    }
    #[cfg(not(feature = "std"))]
    panic!("clearway: {message}")
}

/// Ends the process with the number of a rule that does not hold, in release builds too.
///
/// ```
/// # use clearway_machine::invariant;
/// # let (written, end) = (7, 7);
/// invariant!(R2, written == end, "written at {written}, but the log ends at {end}");
/// ```
///
/// The rule is one that the head of the module numbers; `2 of catalog` names one of another module. What follows the
/// condition is a message as of `format!`, with the values that broke the rule. It is evaluated only then.
///
/// For the boundaries at which a module relies on a rule that others keep. Going on with it broken would damage data
/// or give wrong answers, and unwinding would run destructors that rely on it too.
#[macro_export]
macro_rules! invariant {
    ($rule:tt $(of $module:ident $(:: $inner:ident)*)?, $holds:expr, $($message:tt)+) => {
        if !$holds {
            $crate::broken_invariant(
                concat!(stringify!($rule) $(, " of ", stringify!($module) $(, "::", stringify!($inner))*)?),
                module_path!(),
                line!(),
                format_args!($($message)+),
            )
        }
    };
}

/// The end of a process in which [`invariant!`] has found a broken rule.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn broken_invariant(rule: &str, module: &str, line: u32, message: core::fmt::Arguments<'_>) -> ! {
    fatal(format_args!(
        "rule {rule} is broken in {module}, line {line}: {message}"
    ))
}
