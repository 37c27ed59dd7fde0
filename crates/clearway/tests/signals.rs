//! A server's reactions to signals: it reads its configuration again, ends in one way or another, or does nothing.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use served::{Client, PATIENCE, Served};

const CONFIG: &str = "shared_buffers = \"2MB\"\n";

/// Waits until the server has said so.
fn said(server: &Served, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !server.log().contains(words) {
        assert!(Instant::now() < deadline, "no \"{words}\" in: {}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn setting(client: &mut Client, name: &str) -> String {
    client.value(&format!("select setting from pg_settings where name = '{name}'"))
}

#[test]
fn a_hang_up_reads_the_configuration_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", CONFIG);
    let file = directory.path().join("clearway.toml");
    client.query("create table t (a int primary key)").unwrap();
    client.query("set work_mem = '1MB'").unwrap();

    // As after the loss of a standby, the other way round: from now on commits wait for one that is not there.
    let waits =
        format!("{CONFIG}synchronous_standby_names = \"nobody\"\nwork_mem = \"8MB\"\nmax_connections = 20\n");
    fs::write(&file, waits).unwrap();
    server.signal("HUP");
    said(&server, "synchronous_standby_names, work_mem changed");
    said(&server, "at the next start: max_connections");
    assert_eq!(client.value("show synchronous_standby_names"), "nobody");
    assert_eq!(
        client.value("show work_mem"),
        "1MB",
        "the session has set it itself"
    );
    assert_eq!(client.value("show max_connections"), "500");
    let pending = "select name from pg_settings where pending_restart";
    assert_eq!(client.value(pending), "max_connections");
    let waiting = std::thread::spawn({
        let mut client = server.connect().unwrap();
        move || client.query("insert into t values (1)")
    });

    // A file with an error changes nothing.
    fs::write(&file, "shared_bufers = \"2MB\"\n").unwrap();
    server.signal("HUP");
    said(&server, "the settings stay as they are");
    assert_eq!(client.value("show synchronous_standby_names"), "nobody");
    assert_eq!(client.value("select pg_reload_conf()"), "f");
    assert!(!waiting.is_finished());

    // The way out for commits that wait.
    fs::write(&file, CONFIG).unwrap();
    assert_eq!(client.value("select pg_reload_conf()"), "t");
    waiting.join().unwrap().unwrap();
    assert_eq!(setting(&mut client, "synchronous_standby_names"), "");
    assert_eq!(
        client.value("select count(*) from pg_settings where pending_restart"),
        "0"
    );
    let mut new = server.connect().unwrap();
    assert_eq!(new.value("show work_mem"), "4MB");
    assert_eq!(setting(&mut new, "shared_buffers"), "256", "pages of 8 kB");
}

#[test]
fn signals_end_the_server_in_their_way() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", CONFIG);
    client.query("create table t (a int primary key)").unwrap();
    server.signal("HUP");
    said(&server, "read the configuration again: nothing has changed");
    client.query("insert into t values (1)").unwrap();
    for (ends, is_clean) in [("QUIT", false), ("INT", true), ("TERM", true)] {
        server.signal(ends);
        assert_eq!(server.ended().success(), is_clean, "{ends}");
        let mut client = server.start("", CONFIG);
        let found = if is_clean {
            "nothing to recover"
        } else {
            "recovered:"
        };
        assert!(server.log().contains(found), "{ends}: {}", server.log());
        assert_eq!(client.value("select count(*) from t"), "1");
        assert!(server.is_running());
    }
}

/// A tool's timer, a UPS daemon and a mistyped number send signals that end a process by default, and mean nothing to a
/// server.
#[test]
fn signals_that_mean_nothing_end_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", CONFIG);
    let named = [
        ("USR1", "SIGUSR1"),
        ("USR2", "SIGUSR2"),
        ("ALRM", "SIGALRM"),
        ("VTALRM", "SIGVTALRM"),
        ("PROF", "SIGPROF"),
        ("POLL", "SIGIO"),
        ("STKFLT", "signal 16"),
        ("PWR", "signal 30"),
        ("PIPE", ""),
        ("URG", ""),
        ("WINCH", ""),
        ("CHLD", ""),
    ];
    let of_real_time: Vec<String> = (35..=64).map(|number| number.to_string()).collect();
    for (name, _) in named {
        server.signal(name);
    }
    for number in &of_real_time {
        server.signal(number);
    }
    for (_, told) in named.iter().filter(|(_, told)| !told.is_empty()) {
        said(&server, &format!("{told} means nothing to a server"));
    }
    for number in &of_real_time {
        said(&server, &format!("signal {number} means nothing to a server"));
    }
    assert_eq!(client.value("select 1"), "1");
    // Each kind once.
    server.signal("ALRM");
    server.signal("HUP");
    said(&server, "read the configuration again");
    assert_eq!(server.log().matches("SIGALRM").count(), 1);
    assert!(server.is_running());
}

/// The kernel says that the limit of CPU time is reached, and says so again a second later, while the server shuts down.
#[test]
fn the_limit_of_cpu_time_shuts_the_server_down() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("ulimit -S -t 2", CONFIG);
    client.query("create table t (a int primary key)").unwrap();
    client.query("insert into t values (1)").unwrap();
    let began = Instant::now();
    // Work until the kernel has had enough of it.
    let spent = loop {
        assert!(began.elapsed() < PATIENCE, "no limit: {}", server.log());
        let counted = "select count(*) from generate_series(1, 200000)";
        if let Err(error) = client.query(counted) {
            break error;
        }
    };
    assert!(server.ended().success(), "{spent:?} {}", server.log());
    let log = server.log();
    assert!(
        log.contains("the limit of CPU time (ulimit -t) is reached"),
        "{log}"
    );
    assert!(log.contains("shut down"), "{log}");
    let mut client = server.start("", CONFIG);
    assert!(server.log().contains("nothing to recover"), "{}", server.log());
    assert_eq!(client.value("select count(*) from t"), "1");
}

/// A signal that no process outlives ends the server as ever, and not without a word.
#[test]
fn a_signal_that_ends_the_server_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let signals = [
        ("ABRT", 6),
        ("BUS", 7),
        ("FPE", 8),
        ("ILL", 4),
        ("SEGV", 11),
        ("SYS", 31),
        ("TRAP", 5),
    ];
    for (name, number) in signals {
        drop(server.start("", CONFIG));
        server.signal(name);
        let status = server.ended();
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
        let told = format!("clearway: ended by SIG{name}");
        assert!(server.log().contains(&told), "{name}: {}", server.log());
    }
}
