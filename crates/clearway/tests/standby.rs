//! `clearway standby` and `clearway promote` on directories that are none, and the copy that a standby begins with.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clearway_storage::directory_state::directory_state;

const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is killed when the test ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[&str], data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    command
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null());
    command
}

/// Runs a command that must fail; what it said.
fn fails(arguments: &[&str], data: &Path) -> String {
    let output = command(arguments, data).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success(), "{arguments:?}: {said}");
    said
}

/// A server on a port of its own, and its address.
fn server(data: &Path) -> (Process, String) {
    let mut child = command(&["serve", "--listen", "127.0.0.1:0"], data)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let process = Process(child);
    let address = lines
        .find_map(|line| {
            Some(
                line.ok()?
                    .split_once("ready to accept connections on ")?
                    .1
                    .to_owned(),
            )
        })
        .expect("the server's address");
    // It may go on saying things.
    std::thread::spawn(move || lines.for_each(drop));
    (process, address)
}

#[test]
fn what_is_no_standby_is_not_promoted() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let said = fails(&["promote"], &data);
    assert!(said.contains("no such directory"), "{said}");
    let said = fails(&["promote"], directory.path());
    assert!(said.contains("the directory is empty"), "{said}");
    let (_server, _) = server(&data);
    let said = fails(&["promote"], &data);
    assert!(said.contains("is not a standby's directory"), "{said}");
}

#[test]
fn what_cannot_be_followed_is_said_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for (arguments, expected) in [
        (&["standby"][..], "which server is to be followed"),
        (&["standby", "--from", "host=192.0.2.1"], "not on this machine"),
        (&["standby", "--from", "host=/tmp", "--create-slot"], "give both"),
        (
            &[
                "standby",
                "--listen",
                "127.0.0.1:0",
                "--from",
                "host=127.0.0.1 port=1",
            ],
            "could not connect to the server at 127.0.0.1:1",
        ),
    ] {
        let said = fails(arguments, &data);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!data.exists());
    }
    let foreign = directory.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("hosts"), "").unwrap();
    let arguments = [
        "standby",
        "--listen",
        "127.0.0.1:0",
        "--from",
        "host=127.0.0.1 port=1",
    ];
    let said = fails(&arguments, &foreign);
    assert!(said.contains("holds no database"), "{said}");
}

/// The copy is a standby's directory: `serve` and `promote` say what to do with it, and `check` finds it sound.
#[test]
fn a_standby_begins_with_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    let (primary, standby) = (directory.path().join("primary"), directory.path().join("standby"));
    let (_server, address) = server(&primary);
    let (host, port) = address.rsplit_once(':').unwrap();
    let from = format!("host={host} port={port}");
    let arguments = [
        "standby",
        "--from",
        &from,
        "--listen",
        "127.0.0.1:0",
        "--slot",
        "one",
        "--create-slot",
    ];
    let follower = command(&arguments, &standby)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut follower = Process(follower);
    let deadline = Instant::now() + PATIENCE;
    while !directory_state(&standby).is_ok_and(|state| state.standby) {
        assert!(Instant::now() < deadline, "no copy");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = follower.0.kill();
    follower.0.wait().unwrap();
    let said = fails(&["serve", "--listen", "127.0.0.1:0"], &standby);
    assert!(
        said.contains("clearway standby") && said.contains("clearway promote"),
        "{said}"
    );
    let said = fails(&["promote"], &standby);
    assert!(said.contains("no server runs on"), "{said}");
    let output = command(&["check"], &standby).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
}
