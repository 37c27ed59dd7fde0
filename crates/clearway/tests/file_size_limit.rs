//! The limit of a file's size (`ulimit -f`) ends a statement, not the server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a step; after it the test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ends the process when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kinds of the messages up to the next ReadyForQuery.
fn replies(client: &mut UnixStream) -> String {
    let mut kinds = String::new();
    while !kinds.ends_with('Z') {
        let mut head = [0; 5];
        client.read_exact(&mut head).expect("the server answers");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        client.read_exact(&mut body).unwrap();
        kinds.push(char::from(head[0]));
    }
    kinds
}

fn query(client: &mut UnixStream, sql: &str) -> String {
    let mut message = vec![b'Q'];
    message.extend((sql.len() as u32 + 5).to_be_bytes());
    message.extend(sql.as_bytes());
    message.push(0);
    client.write_all(&message).unwrap();
    replies(client)
}

#[test]
fn a_table_at_the_limit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    // A log segment has 16 MiB and fits. A block of ulimit is 512 bytes or, with some shells, 1,024.
    let script = "ulimit -c 0; ulimit -f 32768; exec \"$@\"";
    let child = Command::new("sh")
        .args([
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_clearway"),
            "serve",
            "--listen",
            "none",
        ])
        .arg("--data")
        .arg(directory.path().join("data"))
        .arg("--socket-dir")
        .arg(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Server(child);
    let deadline = Instant::now() + PATIENCE;
    let startup = b"\0\0\0\x26\0\x03\0\0user\0alice\0database\0postgres\0\0";
    let mut client = loop {
        assert!(Instant::now() < deadline, "the server does not serve");
        if let Ok(mut client) = UnixStream::connect(directory.path().join(".s.PGSQL.5433")) {
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            client.write_all(startup).unwrap();
            let mut first = [0];
            // While the database starts, clients are told to wait.
            if client.read_exact(&mut first).is_ok() && first == *b"R" {
                let mut rest = [0; 8];
                client.read_exact(&mut rest).unwrap();
                replies(&mut client);
                break client;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(query(&mut client, "create table t (a int, b text)"), "CZ");
    let rows = "insert into t select i, repeat('x', 8000) from generate_series(1, 5000) as i";
    assert_eq!(query(&mut client, rows), "EZ");
    assert_eq!(query(&mut client, "insert into t values (1, 'fits')"), "CZ");
    assert_eq!(query(&mut client, "select count(*) from t"), "TDCZ");
}
