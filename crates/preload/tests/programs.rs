//! Programs in C and C++, compiled without a warning, which say the same without the library and with it, over every latch.
//!
//! Mutations of the library, in `crates/preload/mutations`, are errors that one of these programs shows.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The names of `CLEARWAY_LATCH`.
const OURS: [&str; 4] = ["srw-single-wake", "srw-fetch-add-bts", "srw-cas-loop", "ssux"];

/// The library, which cargo has built for this test.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.with_file_name("libclearway_pthread.so")
}

fn compiled(name: &str, directory: &Path) -> PathBuf {
    compiled_as(name, &directory.join(name).with_extension(""), &[])
}

fn compiled_as(name: &str, program: &Path, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let is_c = name.ends_with(".c");
    let mut compiler = Command::new(if is_c { "cc" } else { "c++" });
    compiler
        .arg(if is_c { "-std=gnu11" } else { "-std=c++17" })
        .args([
            "-O2",
            "-pthread",
            "-rdynamic",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
        ])
        .arg(program)
        .arg(&source)
        .args(more);
    let output = compiler
        .output()
        .unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(
        output.status.success(),
        "{compiler:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program.to_path_buf()
}

/// Runs a program that ends by itself; not for longer than two minutes.
fn run(program: &Path, latch: Option<&str>, setting: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("120");
    if let Some(latch) = latch {
        // Not under `timeout`, which would get the library too.
        command
            .arg("env")
            .arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("CLEARWAY_LATCH={latch}"));
        command.args(setting.iter().map(|(name, value)| format!("{name}={value}")));
    }
    command.arg(program).output().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The program says the same without the library and with it, and whether its calls are counted or not.
fn says_the_same(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled(name, directory.path());
    let report = directory.path().join("report");
    let report = report.to_str().unwrap();
    let alone = run(&program, None, &[]);
    assert!(alone.status.success(), "{}", said(&alone));
    for latch in OURS.iter().copied().chain(["libc"]) {
        for setting in [&[][..], &[("CLEARWAY_REPORT", report)]] {
            let preloaded = run(&program, Some(latch), setting);
            assert_eq!(said(&preloaded), said(&alone), "{latch}, {setting:?}");
        }
    }
}

#[test]
fn mutexes() {
    says_the_same("mutexes.c");
}

#[test]
fn reader_writer_locks_and_spinlocks() {
    says_the_same("rwlocks.c");
}

#[test]
fn condition_variables_and_cancellation() {
    says_the_same("conditions.c");
}

#[test]
fn many_threads() {
    says_the_same("stress.c");
}

#[test]
fn forks_and_processes() {
    says_the_same("forks.c");
}

#[test]
fn the_standard_library_of_cpp() {
    says_the_same("standard_library.cpp");
}

/// A program's own `malloc` may use the locks (L2). The library of this test is built with all features of the latches.
#[test]
fn no_call_allocates() {
    says_the_same("allocator.c");
}

/// No lock call looks a function of libc's up, which would take the loader's lock.
#[test]
fn a_constructor_may_wait_for_a_thread_that_locks() {
    let directory = tempfile::tempdir().unwrap();
    compiled_as(
        "loaded.c",
        &directory.path().join("loaded.so"),
        &["-shared", "-fPIC"],
    );
    let program = compiled("loads.c", directory.path());
    for latch in [None, Some("ssux"), Some("libc")] {
        let output = run(&program, latch, &[]);
        assert!(output.status.success(), "{latch:?}: {}", said(&output));
        assert_eq!(output.stdout, b"the constructor is through\n", "{latch:?}");
    }
}

/// A wait that neither libc nor this library can do alone is a poll, which is told once.
#[test]
fn a_shared_condition_with_a_private_mutex_is_polled() {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled("mixed.c", directory.path());
    for latch in OURS {
        let output = run(&program, Some(latch), &[]);
        assert!(output.status.success(), "{latch}: {}", said(&output));
        assert_eq!(output.stdout, b"all turns are taken\n", "{latch}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "libclearway_pthread: a condition variable that processes share is waited for with a mutex that they do not \
             share: such waits poll\n",
            "{latch}"
        );
    }
    let alone = run(&program, None, &[]);
    assert!(
        alone.status.success() && alone.stderr.is_empty(),
        "{}",
        said(&alone)
    );
}

/// A child owns what its thread owned (L6). glibc's child is another thread.
#[test]
fn a_child_owns_what_its_thread_owned() {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled("forks.c", directory.path());
    for latch in OURS {
        let output = Command::new("timeout")
            .args(["120", "env"])
            .arg(format!("LD_PRELOAD={}", library().display()))
            .arg(format!("CLEARWAY_LATCH={latch}"))
            .arg(&program)
            .arg("owned")
            .output()
            .unwrap();
        assert!(output.status.success(), "{latch}: {}", said(&output));
    }
}

#[test]
fn a_setting_that_means_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled("counted.c", directory.path());
    let refused = run(&program, Some("srw-two-words"), &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "libclearway_pthread: CLEARWAY_LATCH is srw-two-words, which is none of srw-single-wake, srw-fetch-add-bts, \
         srw-cas-loop, ssux or libc\n"
    );
    let setting = [
        ("CLEARWAY_REPORT", "stderr"),
        ("CLEARWAY_REPORT_SIGNAL", "KILLER"),
    ];
    let refused = run(&program, Some("ssux"), &setting);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("CLEARWAY_REPORT_SIGNAL is KILLER"),
        "{}",
        said(&refused)
    );
}

/// The row of the table that ends with the call from `function`: its fields.
fn row_of<'a>(table: &'a str, latch: &str, function: &str) -> Vec<&'a str> {
    let is_wanted =
        |line: &&str| line.contains(&format!(" {latch},")) && line.ends_with(&format!(" {function}"));
    let mut rows = table.lines().filter(is_wanted);
    let row = rows
        .next()
        .unwrap_or_else(|| panic!("no row of {latch} in {function}:\n{table}"));
    assert!(
        rows.next().is_none(),
        "two rows of {latch} in {function}:\n{table}"
    );
    row.split_whitespace().collect()
}

/// The time that these fields begin with.
fn milliseconds(fields: &[&str]) -> f64 {
    let number: f64 = fields[0]
        .parse()
        .unwrap_or_else(|_| panic!("no time: {fields:?}"));
    match fields[1] {
        "ns" => number / 1e6,
        "us" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        unit => panic!("no unit of time: {unit}"),
    }
}

/// The program's acquisitions are known, so the table's counts are; of times only what must be so.
#[test]
fn the_table_counts_each_acquisition_by_latch_and_call_site() {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled("counted.c", directory.path());
    for latch in OURS.iter().copied().chain(["libc"]) {
        let report = directory.path().join(format!("{latch}.report"));
        let setting = [
            ("CLEARWAY_REPORT", report.to_str().unwrap()),
            ("CLEARWAY_REPORT_SIGNAL", "USR2"),
        ];
        let output = run(&program, Some(latch), &setting);
        assert!(output.status.success(), "{latch}: {}", said(&output));
        let text = std::fs::read_to_string(&report).unwrap();
        // At the signal, at the exit of the child, and at the exit.
        let tables: Vec<_> = text.split("counted (process ").skip(1).collect();
        let [at_signal, of_child, table] = tables[..] else {
            panic!("{latch}: {} tables:\n{text}", tables.len());
        };
        let quiet = row_of(of_child, "quiet_mutex", "in_child");
        assert_eq!(quiet[..2], ["5", "0.00%"], "{latch}:\n{text}");
        let left = row_of(of_child, "left_mutex", "in_child");
        assert!(milliseconds(&left[2..]) >= 20.0, "it holds for 20 ms: {text}");
        assert_eq!(of_child.lines().count(), 4, "no row of the parent's:\n{text}");
        for table in [at_signal, table] {
            let quiet = row_of(table, "quiet_mutex", "quiet");
            assert_eq!(quiet[..2], ["1000", "0.00%"], "{latch}:\n{text}");
        }
        let tries = row_of(table, "quiet_mutex", "tries");
        assert_eq!(tries[..2], ["9", "0.00%"], "{latch}:\n{text}");
        let waited = row_of(table, "waited_mutex", "waits");
        assert_eq!(waited[..2], ["1", "100.00%"], "{latch}:\n{text}");
        assert!(milliseconds(&waited[2..]) >= 40.0, "it waits for 50 ms: {text}");
        let holder = row_of(table, "waited_mutex", "holds");
        assert_eq!(holder[..2], ["1", "0.00%"], "{latch}:\n{text}");
        assert!(milliseconds(&holder[2..]) >= 50.0, "it holds for 50 ms: {text}");
        for (function, mode) in [("reads", "read"), ("writes", "write")] {
            let row = row_of(table, "counted_rwlock", function);
            assert_eq!(row[..2], ["7", "0.00%"], "{latch}:\n{text}");
            assert!(row.contains(&mode), "{latch}:\n{text}");
        }
        let again = row_of(table, "waited_mutex", "waits_for_condition");
        assert_eq!(again[..2], ["1", "0.00%"], "{latch}:\n{text}");
        let before = row_of(table, "waited_mutex", "begins_to_wait");
        assert!(
            milliseconds(&before[2..]) < 1_000.0,
            "it waits for a second, and holds no mutex meanwhile: {text}"
        );
    }
}
