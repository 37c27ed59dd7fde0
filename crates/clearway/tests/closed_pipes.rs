//! The reader of an output may go at any time: a terminal is closed, a log collector ends, `head` has seen enough.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of a step; after it the test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

fn clearway() -> Command {
    Command::new(env!("CARGO_BIN_EXE_clearway"))
}

/// Ends the process when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(data: &Path, sockets: &Path, stderr: Stdio) -> Server {
        let child = clearway()
            .args(["serve", "--listen", "none", "--data"])
            .arg(data)
            .arg("--socket-dir")
            .arg(sockets)
            .env("CLEARWAY_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Server(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn wait(&mut self, what: &str) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the server did not end after {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The answer's first byte to a start-up packet: `R` for a session, `E` while the database starts.
fn answer(sockets: &Path) -> Option<u8> {
    let mut client = UnixStream::connect(sockets.join(".s.PGSQL.5433")).ok()?;
    let body = b"\0\x03\0\0user\0alice\0database\0postgres\0\0";
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(body);
    std::io::Write::write_all(&mut client, &packet).ok()?;
    let mut first = [0];
    client.read_exact(&mut first).ok()?;
    Some(first[0])
}

fn wait_for_sessions(server: &mut Server, sockets: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while answer(sockets) != Some(b'R') {
        assert!(Instant::now() < deadline, "the server does not serve");
        assert_eq!(server.0.try_wait().unwrap(), None, "the server ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Alice starts a server whose messages go to her terminal, and closes the terminal. Weeks later the machine is shut
/// down: SIGTERM must end the server with its checkpoint, although each message it wants to write fails.
#[test]
fn a_server_without_a_reader_of_its_messages_stops_on_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut server = Server::start(&data, directory.path(), Stdio::piped());
    drop(server.0.stderr.take());
    wait_for_sessions(&mut server, directory.path());
    server.signal(Signal::TERM);
    let status = server.wait("SIGTERM");
    assert!(status.success(), "{status}");
    // It was a stop in order: nothing is left to recover.
    let checked = clearway().args(["check", "--data"]).arg(&data).output().unwrap();
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(
        checked.status.success() && said.contains("nothing to recover"),
        "{said}"
    );
}

/// `clearway mechanisms | head -0`.
#[test]
fn a_listing_without_a_reader_is_no_panic() {
    for command in [&["mechanisms"][..], &["simulate", "list"]] {
        let mut child = clearway()
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.is_empty(), "{command:?}: {said}");
    }
}

/// A result that goes to a full disk is not a success.
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = clearway().arg("mechanisms").stdout(full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("standard output"),
        "{said}"
    );
}
