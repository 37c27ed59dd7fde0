//! Commands on directories that are no databases, and on one that is.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use support::engine_with_a_table;

/// Runs a command to its end: whether it succeeded, and all it said.
fn clearway(arguments: &[&str], data: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_clearway"))
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// `clearway serve --data /etc`, and `clearway check` of what is no database, leave everything as it was.
#[test]
fn a_directory_with_other_files_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("hosts"), "127.0.0.1 localhost\n").unwrap();
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"]] {
        let (success, said) = clearway(command, directory.path());
        assert!(!success && said.contains("no database"), "{command:?}: {said}");
        assert_eq!(content(directory.path()).len(), 1);
    }
    let missing = directory.path().join("missing");
    let (success, said) = clearway(&["check"], &missing);
    assert!(!success && said.contains("no such directory"), "{said}");
    assert!(!missing.exists());
}

/// `clearway check` after a crash sees what recovery will bring back, and changes no byte.
#[test]
fn a_check_after_a_crash_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let engine = engine_with_a_table(&data);
    drop(engine);
    // A background thread of the engine may be writing still, and then it has the lock.
    let deadline = Instant::now() + Duration::from_secs(120);
    while Engine::open_read_only(&data, Config::default()).is_err() {
        assert!(
            Instant::now() < deadline,
            "the engine does not let go of its directory"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = content(&data);
    for _ in 0..2 {
        let (success, said) = clearway(&["check"], &data);
        assert!(
            success && said.contains("recovered") && said.contains("1000 rows"),
            "{said}"
        );
        assert!(content(&data) == before, "the check has written something");
    }
}

/// `clearway init` makes a directory once; its superuser has the password, which stands in no file.
#[test]
fn init_makes_a_directory_with_a_superuser() {
    let directory = tempfile::tempdir().unwrap();
    let (password, data) = (directory.path().join("password"), directory.path().join("data"));
    fs::write(&password, "open sesame\n").unwrap();
    let init = [
        "init",
        "--username",
        "boss",
        "--pwfile",
        password.to_str().unwrap(),
    ];
    let (success, said) = clearway(&init, &data);
    assert!(success && said.contains("its superuser is \"boss\""), "{said}");
    let made = content(&data);
    let (success, said) = clearway(&init, &data);
    assert!(!success && said.contains("not an empty directory"), "{said}");
    assert_eq!(content(&data), made);
    let holds = |bytes: &Vec<u8>| bytes.windows(11).any(|part| part == b"open sesame");
    assert!(!made.values().any(holds));
    assert!(String::from_utf8_lossy(&made[&data.join("pg_hba.conf")]).contains("scram-sha-256"));

    // A server with a file of rules that it does not understand does not start, and names the line.
    let rules = fs::read(data.join("pg_hba.conf")).unwrap();
    fs::write(data.join("pg_hba.conf"), "# first\nhost all all trust\n").unwrap();
    let (success, said) = clearway(&["serve", "--listen", "127.0.0.1:0"], &data);
    assert!(!success && said.contains("line 2 of pg_hba.conf"), "{said}");
    fs::write(data.join("pg_hba.conf"), rules).unwrap();

    let engine = Engine::open(&data, Config::default()).unwrap();
    assert!(engine.verifier_of("boss").unwrap().fits("open sesame"));
    let other = clearway_engine::SessionInfo {
        user: "other".to_owned(),
        ..Default::default()
    };
    assert!(engine.session(other).is_err());
}
