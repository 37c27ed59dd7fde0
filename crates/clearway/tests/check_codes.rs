//! The output of `clearway check`, and its exit codes.

mod support;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use support::engine_with_a_table;

/// Runs the check: its exit code, standard output and standard error.
fn check(data: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_clearway"))
        .args(["check", "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_exit_code_tells_damage_from_a_check_that_could_not_be_made() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let engine = engine_with_a_table(&data);
    engine.shutdown().unwrap();
    drop(engine);

    let (code, said, _) = check(&data);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("1 table") && said.contains("1000 rows") && said.contains("no problems"),
        "{said}"
    );

    // The table's heap is the first relation that was made.
    let heap = data.join("base").join("16");
    let file = OpenOptions::new().write(true).open(&heap).unwrap();
    file.write_all_at(&[0; 8192], 8192).unwrap();
    let (code, said, errors) = check(&data);
    assert_eq!(code, Some(1), "{said} {errors}");
    let problem = format!(
        "problem: table \"t\": page 1 of {} (offset 8192): zeros",
        heap.display()
    );
    assert!(said.contains(&problem), "{said}");
    assert!(errors.contains("1 problem in"), "{errors}");

    let (code, _, errors) = check(directory.path());
    assert_eq!(code, Some(2), "{errors}");
}
