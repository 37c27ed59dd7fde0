//! Programs that `clearway` runs: those beside a bench end with it, whatever ends it; the one that `preload` is asked for is what
//! `clearway` becomes, or is refused.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
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

/// Locks a mutex three times, and says its name, its arguments and how many files it may open. Its exit code is 7.
const LOCKS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(int count, char **arguments)
{
    struct rlimit files;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    getrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < count; i++)
        printf("%s ", arguments[i]);
    printf("%lu\n", (unsigned long)files.rlim_cur);
    return 7;
}
"#;

/// The library, which cargo has built for this test.
fn library() -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .with_file_name("libclearway_pthread.so")
}

/// A directory as after an installation: `bin/clearway` and `lib/libclearway_pthread.so`. And the program that locks.
fn installed() -> tempfile::TempDir {
    // On the file system of the binary, which is large: a link to it is enough.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for name in ["bin", "lib"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    fs::hard_link(
        env!("CARGO_BIN_EXE_clearway"),
        directory.path().join("bin/clearway"),
    )
    .unwrap();
    fs::copy(library(), directory.path().join("lib/libclearway_pthread.so")).unwrap();
    fs::write(directory.path().join("locks.c"), LOCKS).unwrap();
    compile(directory.path(), "locks", &[]);
    directory
}

fn compile(directory: &Path, name: &str, more: &[&str]) {
    let compiler = Command::new("cc")
        .args(["-O2", "-pthread", "locks.c", "-o", name])
        .args(more)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(compiler.status.success(), "{compiler:?}");
}

/// `clearway preload` in the directory of an installation.
fn preload(directory: &Path, words: &[&str]) -> Output {
    Command::new(directory.join("bin/clearway"))
        .arg("preload")
        .args(words)
        .current_dir(directory)
        .env_remove("CLEARWAY_LATCH")
        .output()
        .unwrap()
}

/// The command is refused with this exit code, in these words.
fn is_refused(directory: &Path, words: &[&str], code: i32, why: &str) {
    let output = preload(directory, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    assert!(said.contains(why), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?} has run");
}

#[test]
fn preload_becomes_the_program_with_our_latches_under_its_locks() {
    let directory = installed();
    let directory = directory.path();
    let alone = Command::new("./locks")
        .args(["-x", "y"])
        .current_dir(directory)
        .output()
        .unwrap();
    let words = [
        "--latch", "ssux", "--report", "waits", "--signal", "USR2", "--", "./locks", "-x", "y",
    ];
    let output = preload(directory, &words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the program's own: {said}");
    assert!(said.is_empty(), "{said}");
    assert_eq!(
        output.stdout, alone.stdout,
        "the same name, arguments and limit of files"
    );
    let table = fs::read_to_string(directory.join("waits")).unwrap();
    assert!(table.starts_with("locks (process "), "{table}");
    assert!(table.contains("mutexes by ssux: 1 pairs"), "{table}");
    assert!(
        table
            .lines()
            .any(|line| line.trim_start().starts_with("3   0.00%")),
        "{table}"
    );

    // A script runs a program that does, and a library that is there already stays there.
    fs::write(
        directory.join("script"),
        "#!/bin/sh\necho $LD_PRELOAD\nexec ./locks\n",
    )
    .unwrap();
    fs::set_permissions(directory.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(directory.join("bin/clearway"))
        .args(["preload", "--report", "stderr", "script"])
        .current_dir(directory)
        .env("PATH", format!(":{}", std::env::var("PATH").unwrap()))
        .env("LD_PRELOAD", "libpthread.so.0")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let first = said.lines().next().unwrap();
    assert!(
        first.ends_with("/lib/libclearway_pthread.so:libpthread.so.0"),
        "{said}"
    );
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("locks (process "),
        "{output:?}"
    );
}

#[test]
fn preload_refuses_what_the_loader_would_leave_alone() {
    let directory = installed();
    let directory = directory.path();
    let executable = |name: &str| {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    compile(directory, "static", &["-static"]);
    fs::write(directory.join("script"), "#! ./static -x\n").unwrap();
    fs::write(directory.join("again"), "#!./again\n").unwrap();
    fs::write(directory.join("text"), "some words, but no program of any kind\n").unwrap();
    fs::write(
        directory.join("half"),
        &fs::read(directory.join("locks")).unwrap()[..70],
    )
    .unwrap();
    for name in ["script", "again", "text", "half"] {
        executable(name);
    }
    is_refused(
        directory,
        &["nowhere-to-be-found"],
        127,
        "no program nowhere-to-be-found",
    );
    is_refused(directory, &["./nowhere"], 127, "./nowhere: No such file");
    is_refused(directory, &["./bin"], 126, "./bin is a directory");
    is_refused(directory, &["./locks.c"], 126, "./locks.c: Permission denied");
    is_refused(directory, &["./static"], 126, "./static is linked statically");
    is_refused(directory, &["./script"], 126, "./static is linked statically");
    is_refused(directory, &["./again"], 126, "is a script of a script");
    is_refused(directory, &["./text"], 126, "is neither a program nor a script");
    is_refused(directory, &["./half"], 126, "cannot be read");
    // A program of another user's rights: one is made, or one that each system has is taken.
    if rustix::process::geteuid().is_root() {
        fs::copy(directory.join("locks"), directory.join("marked")).unwrap();
        std::os::unix::fs::chown(directory.join("marked"), Some(1), None).unwrap();
        fs::set_permissions(directory.join("marked"), fs::Permissions::from_mode(0o4755)).unwrap();
        is_refused(
            directory,
            &["./marked"],
            126,
            "other rights than yours (set-user-ID)",
        );
    } else {
        is_refused(directory, &["su"], 126, "other rights than yours (set-user-ID)");
    }

    is_refused(
        directory,
        &["--report", "no/such/place", "./locks"],
        1,
        "no/such/place",
    );
    is_refused(directory, &["--signal", "USR2", "./locks"], 2, "--report");
    let report = ["--report", "waits", "--signal"];
    is_refused(
        directory,
        &[&report[..], &["KILLER", "./locks"]].concat(),
        2,
        "USR1, USR2, PROF",
    );
    is_refused(
        directory,
        &["--library", "locks.c", "./locks"],
        1,
        "locks.c: no shared library",
    );
    fs::create_dir(directory.join("a place")).unwrap();
    fs::rename(
        directory.join("lib/libclearway_pthread.so"),
        directory.join("a place/library.so"),
    )
    .unwrap();
    is_refused(
        directory,
        &["./locks"],
        1,
        "cargo build --release -p clearway-preload",
    );
    is_refused(
        directory,
        &["--library", "a place/library.so", "./locks"],
        1,
        "a blank",
    );
    assert!(!directory.join("waits").exists(), "a table of nothing");
}

/// The command and the library know the same latches.
#[test]
fn preload_knows_the_latches_of_the_library() {
    let directory = installed();
    let directory = directory.path();
    let names = |text: &str| {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let latches = words.filter(|word| *word == "libc" || *word == "ssux" || word.starts_with("srw-"));
        latches.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let of_library = Command::new(directory.join("locks"))
        .env("LD_PRELOAD", library())
        .env("CLEARWAY_LATCH", "nonsense")
        .output()
        .unwrap();
    let of_library = String::from_utf8(of_library.stderr).unwrap();
    assert!(of_library.contains("nonsense, which is none of"), "{of_library}");
    let of_command = preload(directory, &["--latch", "nonsense", "./locks"]);
    assert_eq!(of_command.status.code(), Some(2));
    let of_command = String::from_utf8(of_command.stderr).unwrap();
    assert_eq!(
        names(&of_command),
        names(&of_library),
        "{of_command}\n{of_library}"
    );
    assert_eq!(names(&of_command).len(), 5, "{of_command}");
}
