//! The programs beside a bench end with it, whatever ends it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of a step; after it the test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// A bench beside two busy loops and a program that syncs a file.
fn bench(directory: &Path, duration: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    command
        .args([
            "bench",
            "--scale",
            "1",
            "--clients",
            "1",
            "--workload",
            "select-only",
            "--rounds",
            "1",
        ])
        .args([
            "--preset",
            "clearway",
            "--beside",
            "2",
            "--beside-syncs",
            "--duration",
            duration,
        ])
        .arg("--data")
        .arg(directory.join("data"))
        .arg("--out")
        .arg(directory.join("result"))
        .stdin(Stdio::null());
    command
}

/// Ends the process when the test fails.
struct Bench(Child);

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process's parent and session, and its command line; none if it has ended.
fn process(number: u32) -> Option<(u32, u32, String)> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let command = fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?;
    // One that has ended and was not waited for has no command line.
    let is_there = !command.is_empty();
    is_there.then_some((
        fields[1].parse().ok()?,
        fields[3].parse().ok()?,
        command.replace('\0', " "),
    ))
}

/// Numbers of the programs that the process of this number has started, once they are sessions of their own.
fn programs_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number| {
            process(*number).is_some_and(|(of, session, command)| {
                of == parent && session == *number && command.contains("other-program")
            })
        })
        .collect()
}

fn is_program(number: u32) -> bool {
    process(number).is_some_and(|(_, _, command)| command.contains("other-program"))
}

/// Ends programs that the test finds still there.
struct Programs(Vec<u32>);

impl Drop for Programs {
    fn drop(&mut self) {
        // A number may be another process's by now.
        for number in self.0.iter().filter(|number| is_program(**number)) {
            if let Some(process) = Pid::from_raw(*number as i32) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_bench_says_what_ran_beside_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench(directory.path(), "100ms").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains("Measured beside 2 busy loops and a program that syncs a file."),
        "{text}"
    );
    let json = fs::read_to_string(directory.path().join("result/result.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["parameters"]["beside"]["busy_loops"], 2);
    assert_eq!(json["parameters"]["beside"]["syncs_file"], true);
    assert!(json["provenance"]["others_share"].is_number(), "{json}");
    // The database alone is left: the synced file is gone.
    let left: Vec<_> = fs::read_dir(directory.path().join("data"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn the_programs_end_with_a_bench_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let child = bench(directory.path(), "1000s")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut bench = Bench(child);
    let number = bench.0.id();
    let mut programs = Programs(Vec::new());
    until("the programs do not start", || {
        programs.0 = programs_of(number);
        programs.0.len() == 3 || bench.0.try_wait().unwrap().is_some()
    });
    assert_eq!(programs.0.len(), 3, "the bench has ended");
    bench.0.kill().unwrap();
    bench.0.wait().unwrap();
    until("the programs do not end", || {
        !programs.0.iter().any(|number| is_program(*number))
    });
}

#[test]
fn a_program_without_its_bench_does_not_begin() {
    let output = Command::new(env!("CARGO_BIN_EXE_clearway"))
        .args(["other-program", "--parent", "1", "busy-loop"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("the bench has ended"),
        "{text}"
    );
}
