//! The environment variables, read once, at the first lock call of the process.
//!
//! | variable | holds |
//! | --- | --- |
//! | `CLEARWAY_LATCH` | the latch under mutexes: a name of [`Choice`] |
//! | `CLEARWAY_REPORT` | the file to which the table is appended, or `stderr`; not set: nothing is counted |
//! | `CLEARWAY_REPORT_SIGNAL` | a signal that writes the table at once, by name or number |
//!
//! Two threads that read at once read the same. A value that means nothing ends the process with a message and exit code 1: a
//! measurement of something else than was asked for would look like one.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::os::raw::{c_char, c_int};

use crate::tell::tell;
use crate::{layout, platform};

/// The lock under a mutex.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Choice {
    /// libc's own locks, of all kinds: for a table of what they do, and as the baseline of a measurement.
    Libc = 1,
    /// An `SrwMutex` changed by instructions that cannot fail.
    FetchAddBts = 2,
    /// An `SrwMutex` changed by compare-and-swap.
    CasLoop = 3,
    /// An `SrwMutex` changed by instructions that cannot fail, whose releases wake no thread while a woken one is awake.
    SingleWake = 4,
    /// The exclusive mode of an `SsuxLock`.
    Ssux = 5,
}

/// Names, as in `clearway bench latches`.
const NAMES: [(&CStr, Choice); 5] = [
    (c"srw-single-wake", Choice::SingleWake),
    (c"srw-fetch-add-bts", Choice::FetchAddBts),
    (c"srw-cas-loop", Choice::CasLoop),
    (c"ssux", Choice::Ssux),
    (c"libc", Choice::Libc),
];

/// Without `CLEARWAY_LATCH`.
const DEFAULT: Choice = Choice::SingleWake;

/// Set in the word if the acquisitions are counted.
const REPORTS: u32 = 1 << 8;

/// 0: not read yet. Else a choice, and perhaps `REPORTS`.
static SETTING: AtomicU32 = AtomicU32::new(0);

/// The signal that writes the table; 0: none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

const PATH_BYTES: usize = libc::PATH_MAX as usize;

/// A path that ends with a zero.
struct Path(UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: written before the settings are known, and by each thread that reads them in the same way; read afterwards.
unsafe impl Sync for Path {}

static PLACE: Path = Path(UnsafeCell::new([0; PATH_BYTES]));

/// The settings of this process.
#[derive(Clone, Copy)]
pub(crate) struct Setting(u32);

impl Setting {
    /// The settings; the same at each call.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        match SETTING.load(Ordering::Relaxed) {
            0 => Self::read(),
            word => Self(word),
        }
    }

    /// The settings as they are known now, which may be not at all.
    #[inline(always)]
    pub(crate) fn known() -> Self {
        Self(SETTING.load(Ordering::Relaxed))
    }

    /// True if the settings are known, mutexes are ours, and nothing is counted.
    #[inline(always)]
    pub(crate) fn is_ours_uncounted(self) -> bool {
        self.0.wrapping_sub(Choice::FetchAddBts as u32) <= Choice::Ssux as u32 - Choice::FetchAddBts as u32
    }

    #[inline(always)]
    pub(crate) fn choice(self) -> Choice {
        match self.0 & 0xff {
            2 => Choice::FetchAddBts,
            3 => Choice::CasLoop,
            4 => Choice::SingleWake,
            5 => Choice::Ssux,
            _ => Choice::Libc,
        }
    }

    /// True if nothing is ours.
    #[inline(always)]
    pub(crate) fn is_libc(self) -> bool {
        self.0 & 0xff == Choice::Libc as u32
    }

    /// True if acquisitions are counted.
    #[inline(always)]
    pub(crate) fn reports(self) -> bool {
        self.0 & REPORTS != 0
    }

    /// The name of the latch under mutexes.
    pub(crate) fn name(self) -> &'static CStr {
        let named = NAMES.iter().find(|(_, choice)| *choice == self.choice());
        named.map_or(c"libc", |(name, _)| *name)
    }

    /// The path of the file for the table, or `stderr`.
    pub(crate) fn place(self) -> &'static CStr {
        // SAFETY: see `Path`.
        CStr::from_bytes_until_nul(unsafe { &*PLACE.0.get() }).unwrap_or(c"stderr")
    }

    /// The signal that writes the table.
    pub(crate) fn signal(self) -> Option<c_int> {
        Some(SIGNAL.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    #[cold]
    #[inline(never)]
    fn read() -> Self {
        platform::install();
        let mut choice = match variable(c"CLEARWAY_LATCH") {
            None => DEFAULT,
            Some(name) => match NAMES.iter().find(|(known, _)| *known == name) {
                Some((_, choice)) => *choice,
                None => refuse(
                    c"CLEARWAY_LATCH",
                    name,
                    "srw-single-wake, srw-fetch-add-bts, srw-cas-loop, ssux or libc",
                ),
            },
        };
        if !layout::is_as_expected() {
            tell(format_args!(
                "this libc lays its locks out in another way than glibc 2.25 to 2.41: its own are used"
            ));
            choice = Choice::Libc;
        }
        let mut word = choice as u32;
        if let Some(place) = variable(c"CLEARWAY_REPORT") {
            keep_place(place);
            word |= REPORTS;
            if let Some(signal) = variable(c"CLEARWAY_REPORT_SIGNAL") {
                match signal_named(signal) {
                    Some(signal) => SIGNAL.store(signal, Ordering::Relaxed),
                    None => refuse(c"CLEARWAY_REPORT_SIGNAL", signal, "USR1, USR2, PROF or a number"),
                }
            }
        }
        SETTING.store(word, Ordering::Relaxed);
        Self(word)
    }
}

/// The value of an environment variable, `None` if it is empty too.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a name that ends with a zero. The value is used before the program can change it.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: null, or a string that ends with a zero.
    (!value.is_null())
        .then(|| unsafe { CStr::from_ptr(value) })
        .filter(|value| !value.is_empty())
}

fn refuse(variable: &CStr, value: &CStr, known: &str) -> ! {
    let (variable, value) = (variable.to_str().unwrap_or(""), value.to_bytes().escape_ascii());
    tell(format_args!("{variable} is {value}, which is none of {known}"));
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// Keeps `place`: `stderr`, or the path of a file, in the directory in which the process begins.
fn keep_place(place: &CStr) {
    let place = place.to_bytes();
    // SAFETY: see `Path`.
    let path = unsafe { &mut *PLACE.0.get() };
    let mut length = 0;
    if place != b"stderr" && !place.starts_with(b"/") {
        // SAFETY: a buffer of that size.
        if !unsafe { libc::getcwd(path.as_mut_ptr().cast::<c_char>(), path.len() - 1) }.is_null() {
            length = path.iter().position(|byte| *byte == 0).unwrap_or(0);
            path[length] = b'/';
            length += 1;
        }
    }
    let Some(room) = path.get_mut(length..=length + place.len()) else {
        tell(format_args!(
            "CLEARWAY_REPORT is longer than a path may be: the table goes to standard error"
        ));
        path[..7].copy_from_slice(b"stderr\0");
        return;
    };
    room[..place.len()].copy_from_slice(place);
    room[place.len()] = 0;
}

fn signal_named(name: &CStr) -> Option<c_int> {
    match name.to_bytes() {
        b"USR1" | b"SIGUSR1" => Some(libc::SIGUSR1),
        b"USR2" | b"SIGUSR2" => Some(libc::SIGUSR2),
        b"PROF" | b"SIGPROF" => Some(libc::SIGPROF),
        _ => {
            let number: c_int = name.to_str().ok()?.parse().ok()?;
            (1..=64).contains(&number).then_some(number)
        }
    }
}

/// Reads the settings when the library is loaded, so that a mistake is told of even by a program without locks, and looks up
/// libc's functions.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        Setting::current();
        crate::libc_functions::look_up_all();
    }
    at_load
};
