//! The switch of a program that holds all mutants of a crate: which of them is on.
//!
//! A site is a place in the sources with one or more mutants, whose numbers follow one another from `first`.
//!
//! | `MUTANT` | meaning |
//! | --- | --- |
//! | a number | this mutant is on |
//! | `record` | none is on; those whose site is reached are marked in the file `MUTANTS_REACHED`, a byte a mutant |
//! | absent | none is on |
//!
//! A mutant is not marked where its site was reached and its value was that of the unchanged code: a test in which
//! that is always so cannot tell the two apart.

use std::env;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering::Relaxed};

const NONE: u32 = u32::MAX;
const RECORD: u32 = u32::MAX - 1;

static CHOSEN: AtomicU32 = AtomicU32::new(NONE);
/// The file of marks in memory: what is written there stays, however the process ends.
static MARKS: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());

/// Runs before `main`, so that no test's thread, allocator or coroutine has to look at the environment.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = read_environment;

unsafe extern "C" {
    fn mmap(address: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
}

const READ_AND_WRITE: i32 = 3;
const SHARED: i32 = 1;

extern "C" fn read_environment() {
    let Ok(chosen) = env::var("MUTANT") else { return };
    if chosen != "record" {
        CHOSEN.store(chosen.parse().expect("MUTANT is a number"), Relaxed);
        return;
    }
    let path = env::var_os("MUTANTS_REACHED").expect("MUTANTS_REACHED names the file of marks");
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file of marks opens");
    let length = file.metadata().expect("the file of marks has a length").len() as usize;
    // SAFETY: a new mapping, which stays until the process ends.
    let marks = unsafe { mmap(ptr::null_mut(), length, READ_AND_WRITE, SHARED, file.as_raw_fd(), 0) };
    assert!(marks.addr() != usize::MAX, "the file of marks cannot be mapped");
    MARKS.store(marks.cast(), Relaxed);
    CHOSEN.store(RECORD, Relaxed);
}

fn mark(mutant: u32) {
    // SAFETY: while CHOSEN is RECORD, MARKS has a byte for each mutant.
    unsafe { (*MARKS.load(Relaxed).add(mutant as usize)).store(1, Relaxed) }
}

/// Which mutant of the site is on, counted from 1; 0 if none is. Marks all of them.
#[inline(always)]
pub fn at(first: u32, count: u32) -> u32 {
    if CHOSEN.load(Relaxed) == RECORD {
        (first..first + count).for_each(mark);
    }
    unmarked(first, count)
}

/// The same, and marks none.
#[inline(always)]
pub fn unmarked(first: u32, count: u32) -> u32 {
    let offset = CHOSEN.load(Relaxed).wrapping_sub(first);
    if offset < count { offset + 1 } else { 0 }
}

/// The value of the mutant that is on, or the original. Marks the mutants whose value is another.
#[inline(always)]
pub fn choose<const COUNT: usize>(first: u32, original: bool, mutants: [bool; COUNT]) -> bool {
    match unmarked(first, COUNT as u32) {
        0 if CHOSEN.load(Relaxed) == RECORD => {
            (first..).zip(mutants).filter(|&(_, value)| value != original).for_each(|(mutant, _)| mark(mutant));
            original
        }
        0 => original,
        number => mutants[number as usize - 1],
    }
}

/// Whether `left` decides the result of `&&` (which false does) or `||` (true), and the other of them if the mutant is on.
#[inline(always)]
pub fn decides(mutant: u32, left: bool, decisive: bool) -> bool {
    if unmarked(mutant, 1) == 1 {
        return left != decisive;
    }
    if left == decisive && CHOSEN.load(Relaxed) == RECORD {
        mark(mutant);
    }
    left == decisive
}

/// The right side of `&&` or `||`, where the mutant's result is the left one.
#[inline(always)]
pub fn right(mutant: u32, left: bool, right: bool) -> bool {
    if left != right && CHOSEN.load(Relaxed) == RECORD {
        mark(mutant);
    }
    right
}
