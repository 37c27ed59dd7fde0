//! `clearway status`, `stop` and `reload` on a directory.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use served::Served;

const CONFIG: &str = "shared_buffers = \"2MB\"\n";

/// The command's exit code, and what it said.
fn command(words: &[&str], data: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    let output = command.args(words).arg("--data").arg(data).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

#[test]
fn a_server_is_found_told_and_ended_by_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let data = server.data();
    for words in [&["status"][..], &["stop"], &["reload"]] {
        let (code, said) = command(words, &data);
        assert_eq!(code, 4, "{words:?}: {said}");
    }
    let mut client = server.start("", CONFIG);
    let (code, said) = command(&["status"], &data);
    assert_eq!(code, 0, "{said}");
    let expected = format!(
        "a primary runs on {}: process {}, timeline 1\n",
        data.display(),
        server.id()
    );
    assert_eq!(said, expected);

    std::fs::write(
        directory.path().join("clearway.toml"),
        format!("{CONFIG}work_mem = \"7MB\"\n"),
    )
    .unwrap();
    let (code, said) = command(&["reload"], &data);
    assert_eq!(code, 0, "{said}");
    server.said("read the configuration again: work_mem changed");
    assert_eq!(client.value("show work_mem"), "7MB");

    let (code, said) = command(&["stop"], &data);
    assert_eq!(code, 0, "{said}");
    assert!(server.ended().success());
    assert!(server.log().ends_with("LOG:  shut down\n"), "{}", server.log());
    for words in [&["status"][..], &["stop"], &["reload"]] {
        let (code, said) = command(words, &data);
        assert_eq!(code, 3, "{words:?}: {said}");
    }

    // At once, and another server on another directory stays.
    let other = tempfile::tempdir().unwrap();
    let mut beside = Served::in_directory(other.path());
    beside.start("", CONFIG);
    server.start("", CONFIG);
    let (code, said) = command(&["stop", "--mode", "immediate"], &data);
    assert_eq!(code, 0, "{said}");
    assert!(!server.ended().success());
    assert!(beside.is_running());
    assert_eq!(command(&["status"], &beside.data()).0, 0);
}

#[test]
fn a_supervisor_is_told_when_the_server_is_ready_reloads_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(served::PATIENCE)).unwrap();
    let told = || {
        let mut bytes = [0; 4096];
        let length = supervisor.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut server = Served::in_directory(directory.path());
    server.spawn(&format!("export NOTIFY_SOCKET={}", path.display()), CONFIG);
    let text = told();
    assert!(text.starts_with("READY=1\nSTATUS=ready on /"), "{text}");
    // What is ready answers.
    server.connect().unwrap();
    assert_eq!(command(&["reload"], &server.data()).0, 0);
    let text = told();
    assert!(text.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{text}");
    assert_eq!(told(), "READY=1\n");
    assert_eq!(command(&["stop"], &server.data()).0, 0);
    assert_eq!(told(), "STOPPING=1\n");
    assert!(server.ended().success());
}

/// A supervisor that has ended is no reason to end.
#[test]
fn a_server_starts_although_its_supervisor_does_not_listen() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let gone = directory.path().join("gone");
    server.start(&format!("export NOTIFY_SOCKET={}", gone.display()), CONFIG);
    server.said("the supervisor (NOTIFY_SOCKET) does not listen");
}
