//! A checker's failed execution: the workers that are asleep when a checker finds a deadlock, and whether one has failed.
//!
//! A checker says that threads are blocked, and not where: all that it sees is a park inside this crate. So each futex wait
//! notes its caller's line, and after a panic of a deadlock a report has a line for each sleeper: the latch by its file, the
//! step by its line, the word by the text there and by a letter, which two sleepers on one word share. A second line says which
//! latch of the program the sleeper has last begun to wait for: by its class's name, and by the line that wanted it.
//!
//! All threads of an execution are coroutines of one thread of the operating system. So the notes are that thread's, and
//! tests that run side by side do not see each other's.

use core::cell::{Cell, RefCell};
use core::panic::Location;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::Once;

use crate::stderr_line;

/// Accesses that the frames of a failed execution may make while they are unwound.
const ACCESSES_MAX: u32 = 100_000;

std::thread_local! {
    static ASLEEP: RefCell<Vec<Asleep>> = const { RefCell::new(Vec::new()) };
    /// Accesses left to a failed execution; none: no panic so far.
    static FAILED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A worker asleep.
struct Asleep {
    thread: String,
    address: usize,
    expected: u32,
    at: &'static Location<'static>,
    wanted: Option<Wanted>,
}

/// A wait for a latch that a worker has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The latch, by the name of its class.
    pub(crate) name: &'static str,
    /// The line that asked for it.
    pub(crate) at: &'static Location<'static>,
}

/// The note of a wait, for as long as it lasts.
pub(crate) struct Note {
    address: usize,
    thread: String,
}

impl Note {
    /// Notes that `thread` is about to sleep on the word at `address`, which holds `expected`, and the latch that it has last
    /// wanted.
    pub(crate) fn of(
        thread: String,
        address: usize,
        expected: u32,
        at: &'static Location<'static>,
        wanted: Option<Wanted>,
    ) -> Self {
        watch_panics();
        ASLEEP.with_borrow_mut(|all| {
            all.push(Asleep {
                thread: thread.clone(),
                address,
                expected,
                at,
                wanted,
            });
        });
        Self { address, thread }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A failed test's frames may be dropped with their thread, behind its locals.
        let _ = ASLEEP.try_with(|all| {
            let mut all = all.borrow_mut();
            let is_this = |asleep: &Asleep| asleep.address == self.address && asleep.thread == self.thread;
            // A report has taken the notes that it shows.
            if let Some(place) = all.iter().position(is_this) {
                all.remove(place);
            }
        });
    }
}

/// From the first call of the program on, panics are seen: each marks its execution as failed, and one of a deadlock is
/// followed by the report.
pub(crate) fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            FAILED.set(Some(ACCESSES_MAX));
            if is_deadlock(panic) {
                report();
            }
        }));
    });
}

/// True if the message is a checker's about a deadlock.
fn is_deadlock(panic: &PanicHookInfo<'_>) -> bool {
    let payload = panic.payload();
    let message = payload.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
    message.is_some_and(|message| message.starts_with("deadlock"))
}

/// The calling thread's next unwinding is no failure: a worker of a test dies.
pub(crate) fn forget_failure() {
    FAILED.set(None);
}

/// True while the frames of an execution that has panicked are unwound. The checker's execution is over then, and an access
/// to it would be a panic within a panic, which aborts the test and with it the report.
#[cfg(feature = "loom")]
pub(crate) fn is_unwinding() -> bool {
    if !std::thread::panicking() {
        return false;
    }
    let Some(left) = FAILED.get() else {
        return false;
    };
    if left == 0 {
        // A loop that waits for what another worker writes would not end.
        stderr_line(format_args!(
            "clearway-machine: a destructor waits for another worker after a test has failed"
        ));
        std::process::abort();
    }
    FAILED.set(Some(left - 1));
    true
}

/// Writes the report, past the capture of a test's output: what follows a deadlock may abort the test. In one write, since
/// tests run side by side.
fn report() {
    let all = ASLEEP.take();
    if all.is_empty() {
        return;
    }
    let mut report = String::from("Asleep, and no worker is left that would wake them");
    if let Some(test) = std::thread::current().name() {
        report += &format!(" ({test})");
    }
    report.push(':');
    let mut words: Vec<usize> = Vec::new();
    for asleep in &all {
        let known = words.iter().position(|word| *word == asleep.address);
        let word = known.unwrap_or(words.len());
        if known.is_none() {
            words.push(asleep.address);
        }
        report += &format!(
            "\n  {} at {}, on word {}, which held {}: {}",
            asleep.thread,
            asleep.at,
            letter(word),
            asleep.expected,
            line_of(asleep.at).unwrap_or_default()
        );
        if let Some(wanted) = asleep.wanted {
            report += &format!(
                "\n    the latch it last waited for: {}, wanted at {}: {}",
                wanted.name,
                wanted.at,
                line_of(wanted.at).unwrap_or_default()
            );
        }
    }
    stderr_line(format_args!("{report}"));
}

/// A, B, …; after Z numbers.
fn letter(word: usize) -> String {
    match u8::try_from(word) {
        Ok(word) if word < 26 => char::from(b'A' + word).to_string(),
        _ => word.to_string(),
    }
}

/// The text of the line, if its file is found: the compiler's paths begin at the workspace, and a test runs in its package.
fn line_of(at: &Location<'_>) -> Option<String> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let text = here
        .ancestors()
        .find_map(|folder| std::fs::read_to_string(folder.join(at.file())).ok())?;
    let line = text.lines().nth((at.line() as usize).checked_sub(1)?)?;
    Some(line.trim().to_owned())
}
