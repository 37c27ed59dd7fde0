//! The log of a server: what its settings make it tell, in whose name, and what happens when nothing reads it.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Instant;

use served::{Client, PATIENCE, Served};

const SMALL: &str = "shared_buffers = \"2MB\"\n";

fn pid(client: &mut Client) -> String {
    client.value("select pg_backend_pid()")
}

/// Each event is a line that names its session, and tells of it once.
#[test]
fn the_log_tells_what_its_settings_ask_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let config = format!(
        "{SMALL}log_connections = true\nlog_disconnections = true\nlog_statement = \"ddl\"\nlog_temp_files = 0\n"
    );
    let mut client = server.start("", &config);
    let session = pid(&mut client);
    let line = format!(" UTC [{session}] alice@postgres ");
    server.said("LOG:  connection received: host=[local]\n");
    server.said(&format!(
        "{line}LOG:  connection authorized: user=alice database=postgres\n"
    ));

    client.query("create table t (a int, b text)").unwrap();
    server.said(&format!(
        "{line}LOG:  statement: create table t (a int, b text)\n"
    ));
    client
        .query("insert into t select n, repeat('x', 100) from generate_series(1, 5000) n")
        .unwrap();
    client.query("set log_statement = 'mod'").unwrap();
    client.query("update t set a = a where a = 1").unwrap();
    server.said(&format!(
        "{line}LOG:  statement: update t set a = a where a = 1\n"
    ));
    client.query("prepare p as delete from t where a = -1").unwrap();
    client.query("execute p").unwrap();
    server.said(&format!("{line}LOG:  execute: "));

    // An error, with its statement; a password is not shown.
    let failed = client
        .query("alter role carol password 'very secret'")
        .unwrap_err();
    assert_eq!(failed.0, "42704");
    server.said(&format!("{line}ERROR:  role \"carol\" does not exist\n"));
    server.said(&format!("{line}STATEMENT:  alter role carol password"));
    client.query("select 1/\n0").unwrap_err();
    server.said(&format!("{line}STATEMENT:  select 1/\n\t0\n"));

    // A statement that takes its time is a line, and a quick one none.
    client
        .query("set log_min_duration_statement = '1h'; select 'quick'")
        .unwrap();
    client
        .query("set log_min_duration_statement = '50ms'; select 'slow', pg_sleep(0.06)")
        .unwrap();
    server.said_line("a duration", |line| {
        line.contains("LOG:  duration: ") && line.ends_with("select 'slow', pg_sleep(0.06)")
    });
    client.query("set log_min_duration_statement = -1").unwrap();

    client.query("set work_mem = '64kB'").unwrap();
    client.query("select * from t order by b desc, a desc").unwrap();
    server.said("LOG:  temporary file: path \"");
    client.query("checkpoint").unwrap();
    server.said("LOG:  checkpoint complete");

    drop(client);
    server.said(&format!("{line}LOG:  disconnection: session time: 0:0"));
    let log = server.log();
    for absent in ["very secret", "'quick'", "insert into t", "statement: execute p"] {
        assert!(!log.contains(absent), "{absent}: {log}");
    }
    server.signal("TERM");
    assert!(server.ended().success());
    assert!(server.log().ends_with("LOG:  shut down\n"), "{}", server.log());
}

/// Who changes what the log tells of could hide what it does.
#[test]
fn only_superusers_change_what_the_log_tells_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut superuser = server.start("", &format!("{SMALL}log_statement = \"all\"\n"));
    superuser.query("create role joe login").unwrap();
    let mut joe = server.connect_as("joe").unwrap();
    for sql in [
        "set log_statement = none",
        "set log_min_duration_statement = 0",
        "set log_temp_files = 0",
        "set log_lock_waits = on",
        "select set_config('log_statement', 'none', false)",
        "alter role joe set log_statement = none",
    ] {
        let refused = joe.query(sql).unwrap_err();
        assert_eq!(refused.0, "42501", "{sql}: {}", refused.1);
    }
    assert_eq!(joe.value("show log_statement"), "all");
    // A superuser may, for the role too.
    superuser.query("alter role joe set log_statement = ddl").unwrap();
    let mut joe = server.connect_as("joe").unwrap();
    assert_eq!(joe.value("show log_statement"), "ddl");
}

#[test]
fn a_reload_changes_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", SMALL);
    client.query("select 'before'").unwrap();
    let config = format!(
        "{SMALL}log_destination = \"jsonlog\"\nlog_statement = \"all\"\nlog_min_messages = \"log\"\n"
    );
    std::fs::write(server.directory.join("clearway.toml"), config).unwrap();
    assert_eq!(client.value("select pg_reload_conf()"), "t");
    client.query("select 'after'").unwrap();
    client.query("select 1/0").unwrap_err();
    client.query("select 'last'").unwrap();
    server.said("select 'last'");
    let log = server.log();
    assert!(!log.contains("before"), "{log}");
    let (_, json) = log.split_once('{').unwrap();
    let lines = format!("{{{json}");
    let mut statements = Vec::new();
    for line in lines.lines() {
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_ne!(
            object["error_severity"], "ERROR",
            "below log_min_messages: {line}"
        );
        if object["message"].as_str().unwrap().starts_with("statement: ") {
            assert_eq!(
                (&object["user"], &object["dbname"]),
                (&"alice".into(), &"postgres".into()),
                "{line}"
            );
            statements.push(object["message"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        statements,
        ["select 'after'", "select 1/0", "select 'last'"].map(|sql| format!("statement: {sql}"))
    );
}

/// A server whose log goes to a pipe, all statements included, after so many of them that no pipe and no buffer has room for
/// their lines. Sessions wait for no reader, or this does not return.
fn server_with_full_pipe(directory: &std::path::Path) -> (Served, std::process::ChildStderr) {
    let mut server = Served::in_directory(directory);
    server.spawn_into("", &format!("{SMALL}log_statement = \"all\"\n"), Stdio::piped());
    let pipe = server.log_pipe();
    let mut client = server.first_client();
    let long = format!("select 1 /* {} */", "x".repeat(7_000));
    for _ in 0..500 {
        client.query(&long).unwrap();
    }
    (server, pipe)
}

#[test]
fn sessions_wait_for_no_reader_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (mut server, pipe) = server_with_full_pipe(directory.path());
    // Now it is read: the lines that are missing are counted, and those that come are there.
    let mut lines = BufReader::new(pipe).lines();
    let mut next = || lines.next().expect("the log goes on").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !next().contains("WARNING:  lost ") {
        assert!(Instant::now() < deadline, "no line tells of lost ones");
    }
    server.connect().unwrap().query("select 'found again'").unwrap();
    while !next().ends_with("LOG:  statement: select 'found again'") {
        assert!(Instant::now() < deadline, "the log does not go on");
    }
    server.signal("TERM");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.last().unwrap().ends_with("LOG:  shut down"), "{rest:?}");
    assert!(server.ended().success());
}

/// The end of the process waits for the reader, but not for ever: in order, by a fault, by a signal.
#[test]
fn a_server_ends_although_nothing_reads_its_log() {
    for (signal, by) in [("TERM", None), ("QUIT", None), ("ABRT", Some(6))] {
        let directory = tempfile::tempdir().unwrap();
        let (mut server, mut pipe) = server_with_full_pipe(directory.path());
        server.signal(signal);
        let status = server.ended();
        assert_eq!(status.signal(), by, "{signal}: {status}");
        let mut left = Vec::new();
        pipe.read_to_end(&mut left).unwrap();
        assert!(!left.is_empty());
    }
}
