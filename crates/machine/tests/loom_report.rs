//! The report of a deadlock under loom: one panic, and the line of each worker that is asleep.
//!
//! Seen to fail, also by `mutations/checkers.toml`: without the note of a wait no line is named; with words that go on
//! asking loom while a guard is dropped, or shared by loom's `Arc`, the test aborts in a panic within a panic.
//!
//! `cargo test -p clearway-machine --features loom --test loom_report`

use std::process::Command;
use std::sync::Arc;

use clearway_machine::{AtomicWord, DeathInWait, Loom, Machine, Semaphore};
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;

/// A latch that wakes no worker.
struct Forgetful {
    taken: <Loom as Machine>::U32,
}

/// Its holder, which accesses the word when it is dropped, also while a thread unwinds.
struct Holder<'a>(&'a Forgetful);

impl Forgetful {
    fn idle() -> Self {
        Self {
            taken: <Loom as Machine>::U32::new(0),
        }
    }

    #[track_caller]
    fn acquire(&self) -> Holder<'_> {
        Loom::label(std::ptr::from_ref(self).cast(), "Forgetful");
        self.wait();
        Holder(self)
    }

    fn wait(&self) {
        while self.taken.compare_exchange(0, 1, Acquire, Acquire).is_err() {
            Loom::futex_wait(&self.taken, 1, None);
        }
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.0.taken.store(0, Release);
    }
}

/// Alice and Bob want one latch; one of them sleeps for ever, and the other holds another latch meanwhile.
#[test]
#[ignore = "it fails, as it should: a_deadlock_names_the_line_of_a_sleeper runs it"]
fn a_sleeper_is_left() {
    loom::model(|| {
        Loom::workers();
        let latch = Arc::new(Forgetful::idle());
        let other = Arc::clone(&latch);
        let bob = thread::spawn(move || drop(other.acquire()));
        let inner = Forgetful::idle();
        let _held = inner.acquire();
        drop(latch.acquire());
        bob.join().unwrap();
    });
}

/// A worker waits for a post that never comes, after another has died in its wait.
#[test]
#[ignore = "it fails, as it should: the_caller_of_a_semaphore_is_named runs it"]
fn a_post_is_missing() {
    loom::model(|| {
        Loom::workers();
        let semaphore = Semaphore::<Loom>::new();
        let died = Loom::run_until_death(DeathInWait::BeforeSleep, || semaphore.wait());
        assert!(died.is_err());
        semaphore.wait();
    });
}

/// The report of a case of this file, which fails.
fn failure_of(case: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--ignored", "--exact", case, "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(101),
        "that of a failed test, not of an abort: {said}"
    );
    assert_eq!(said.matches("panicked at").count(), 1, "{said}");
    let head = format!("Asleep, and no worker is left that would wake them ({case}):\n");
    let report = said.split_once(&head);
    report.unwrap_or_else(|| panic!("no report: {said}")).1.to_owned()
}

#[test]
fn a_deadlock_names_the_line_of_a_sleeper() {
    let report = failure_of("a_sleeper_is_left");
    let line = report.lines().next().unwrap();
    assert!(line.contains("tests/loom_report.rs:"), "{line}");
    assert!(
        line.ends_with(", on word A, which held 1: Loom::futex_wait(&self.taken, 1, None);"),
        "{line}"
    );
    let line = report.lines().nth(1).unwrap();
    let wanted = "    the latch it last waited for: Forgetful, wanted at ";
    assert!(
        line.starts_with(wanted) && line.contains("tests/loom_report.rs:"),
        "{line}"
    );
    assert!(line.contains(".acquire())"), "{line}");
}

#[test]
fn the_caller_of_a_semaphore_is_named() {
    let report = failure_of("a_post_is_missing");
    let line = report.lines().next().unwrap();
    assert!(line.contains("tests/loom_report.rs:"), "{line}");
    assert!(
        line.ends_with(", on word A, which held 0: semaphore.wait();"),
        "{line}"
    );
}
