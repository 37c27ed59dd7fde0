//! A server whose memory is limited: a statement that wants too much is refused, and the server lives.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use served::Served;

/// Three texts of 200 MB in a row.
const LARGE: &str = "select repeat('x', 200000000), repeat('y', 200000000), repeat('z', 200000000)";

fn is_out_of_memory(answer: served::Answer) {
    assert_eq!(answer.err().map(|error| error.0).as_deref(), Some("53200"));
}

/// As in a container without overcommit: the operating system refuses.
#[test]
fn what_the_system_refuses_ends_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start(
        "ulimit -v 1200000",
        "shared_buffers = \"2MB\"\nmax_connections = 8\n",
    );
    let mut other = server.connect().unwrap();
    for _ in 0..2 {
        is_out_of_memory(client.query(LARGE));
        assert_eq!(client.value("select length(repeat('x', 1000000))"), "1000000");
        assert_eq!(other.value("select 1"), "1");
    }
    assert!(server.is_running());
}

#[test]
fn a_limit_of_the_servers_own_ends_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", "shared_buffers = \"2MB\"\nserver_memory = \"300MB\"\n");
    is_out_of_memory(client.query(LARGE));
    is_out_of_memory(client.query("select length(repeat('x', 200000000))"));
    assert_eq!(client.value("select length(repeat('x', 20000000))"), "20000000");
}

/// Memory that is too little for the start is an error that names the setting.
#[test]
fn too_little_for_the_start_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    server.spawn("ulimit -v 600000", "shared_buffers = \"1GB\"\n");
    assert!(!server.ended().success());
    let log = server.log();
    assert!(
        log.contains("shared_buffers is 1GB") && log.contains("needs 1120 MB"),
        "{log}"
    );
    assert!(!log.contains("panicked"), "{log}");
}
