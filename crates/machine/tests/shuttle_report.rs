//! The report of a deadlock under shuttle: the line of each worker that is asleep.
//!
//! `cargo test -p clearway-machine --features shuttle --test shuttle_report`

use std::process::Command;
use std::sync::Arc;

use clearway_machine::{Semaphore, Shuttle};
use shuttle::thread;

/// Two workers share a post.
#[test]
#[ignore = "it fails, as it should: a_deadlock_names_the_line_of_a_sleeper runs it"]
fn a_post_is_missing() {
    let case = || {
        let semaphore = Arc::new(Semaphore::<Shuttle>::new());
        let other = Arc::clone(&semaphore);
        let worker = thread::spawn(move || other.wait());
        semaphore.post();
        semaphore.wait();
        worker.join().unwrap();
    };
    shuttle::check_random(case, 1);
}

#[test]
fn a_deadlock_names_the_line_of_a_sleeper() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--ignored", "--exact", "a_post_is_missing", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(101),
        "that of a failed test, not of an abort: {said}"
    );
    let report = said.split_once("Asleep, and no worker is left that would wake them (a_post_is_missing):\n");
    let (_, report) = report.unwrap_or_else(|| panic!("no report: {said}"));
    let line = report.lines().next().unwrap();
    assert!(line.contains("tests/shuttle_report.rs:"), "{line}");
    assert!(line.contains(", on word A, which held 0: "), "{line}");
}
