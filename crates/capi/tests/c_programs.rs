//! The programs of `examples/c`, compiled with all warnings as errors against an installed library, static and shared.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory in which cargo has put the libraries of this crate.
fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().to_owned()
}

fn output_of(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}{complaint}",
        output.status
    );
    said.into_owned()
}

fn installed(prefix: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    output_of(
        Command::new(root.join("../../scripts/install-capi"))
            .arg(prefix)
            .arg(built()),
    );
}

/// The flags that pkg-config gives for the library installed below `prefix`.
fn flags(prefix: &Path, wanted: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    let said = output_of(
        command
            .args(wanted)
            .arg("clearway-capi")
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    said.split_whitespace().map(str::to_owned).collect()
}

/// Programs that make and free what the library allocates.
const UNDER_VALGRIND: [&str; 2] = ["transfers.c", "standby.c"];

fn compiler(source: &Path) -> Command {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let mut command = Command::new(if is_c { "cc" } else { "c++" });
    command.arg(if is_c { "-std=c11" } else { "-std=c++17" });
    command.args(["-O2", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command
}

#[test]
fn programs_in_c_and_cpp_compile_without_a_warning_and_run() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path();
    installed(prefix);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/c");
    let mut count = 0;
    for source in std::fs::read_dir(sources).unwrap() {
        let source = source.unwrap().path();
        if source.extension().is_some_and(|extension| extension == "h") {
            continue;
        }
        let name = source.file_name().unwrap().to_owned();
        let shared = prefix.join(&name).with_extension("shared");
        let mut command = compiler(&source);
        command.arg("-o").arg(&shared).arg(&source);
        output_of(command.args(flags(prefix, &["--cflags", "--libs"])));
        output_of(Command::new(&shared).env("LD_LIBRARY_PATH", prefix.join("lib")));
        let whole = prefix.join(&name).with_extension("static");
        let mut command = compiler(&source);
        command.arg("-o").arg(&whole).arg(&source);
        command
            .args(flags(prefix, &["--cflags"]))
            .arg(prefix.join("lib/libclearway_capi.a"));
        output_of(command.args(["-ldl", "-lm"]));
        output_of(&mut Command::new(&whole));
        if UNDER_VALGRIND.iter().any(|source| name == *source) {
            // Fair turns: a thread that polls for another one gives way to it.
            let mut command = Command::new("valgrind");
            command.args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
            command.args(["--leak-check=full", "--errors-for-leak-kinds=definite"]);
            output_of(command.arg(&whole));
        }
        count += 1;
    }
    assert_eq!(count, 8);
}

/// A program that was linked with the library asks the loader for it by a name with the number of its interface.
#[test]
fn the_shared_library_says_its_name() {
    let said = output_of(
        Command::new("readelf")
            .arg("-d")
            .arg(built().join("libclearway_capi.so")),
    );
    assert!(said.contains("Library soname: [libclearway_capi.so.0]"), "{said}");
}

/// Each function of the header is in the library under its name, and no other of this crate.
#[test]
fn the_library_exports_what_the_header_declares() {
    let header = include_str!("../include/clearway.h");
    let mut declared: Vec<&str> = header
        .split(|sign: char| !(sign.is_alphanumeric() || sign == '_'))
        .filter(|word| word.starts_with("clearway_") && header.contains(&format!("{word}(")))
        .collect();
    declared.sort_unstable();
    declared.dedup();
    let said = output_of(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(built().join("libclearway_capi.so")),
    );
    let mut exported: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("clearway_"))
        .collect();
    exported.sort_unstable();
    assert!(declared.len() > 30);
    assert_eq!(exported, declared);
}
