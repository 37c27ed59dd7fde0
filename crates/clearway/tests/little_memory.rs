//! A server whose memory is limited: a statement that wants or holds too much is refused, and the server lives.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use served::{Answer, Client, Served};
use tempfile::TempDir;

/// Three texts of 200 MB in a row.
const LARGE: &str = "select repeat('x', 200000000), repeat('y', 200000000), repeat('z', 200000000)";

/// The address space of a container without overcommit: 1.16 GB beside the program's own code.
fn system_limit() -> String {
    let code = std::fs::metadata(env!("CARGO_BIN_EXE_clearway")).unwrap().len();
    format!("ulimit -v {}", 1_160_000 + code / 1_024)
}

/// The configuration of a server that needs little.
const SMALL: &str = "shared_buffers = \"2MB\"\nmax_connections = 8\n";

/// A server under these limits and this configuration, in a directory of its own, and a client.
fn started(limits: &str, config: &str) -> (TempDir, Served, Client) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let client = server.start(limits, config);
    (directory, server, client)
}

fn is_out_of_memory(answer: Answer) {
    assert_eq!(answer.err().map(|error| error.0).as_deref(), Some("53200"));
}

/// As in a container without overcommit: the operating system refuses.
#[test]
fn what_the_system_refuses_ends_the_statement() {
    let (_directory, mut server, mut client) = started(&system_limit(), SMALL);
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
    let (_directory, _server, mut client) =
        started("", "shared_buffers = \"2MB\"\nserver_memory = \"300MB\"\n");
    is_out_of_memory(client.query(LARGE));
    is_out_of_memory(client.query("select length(repeat('x', 200000000))"));
    assert_eq!(client.value("select length(repeat('x', 20000000))"), "20000000");
}

/// Groups that a session collects are small pieces, which are not weighed. The system refuses one of them, the reserve has
/// it, and the session ends its statement. (Without the reserve the process ends.)
#[test]
fn what_grows_by_small_pieces_ends_when_nothing_is_left() {
    let (_directory, server, mut client) = started(&system_limit(), SMALL);
    let mut other = server.connect().unwrap();
    client.query("set work_mem = '2000000kB'").unwrap();
    for _ in 0..2 {
        let grouped = client.query(
            "select count(*) from generate_series(1, 500000) g group by repeat('x', 5000) || g limit 1",
        );
        is_out_of_memory(grouped);
        assert_eq!(other.value("select 1"), "1");
    }
    assert_eq!(client.value("select length(repeat('x', 100000000))"), "100000000");
    assert_eq!(reserve_in_use(&mut other), 0);
}

fn reserve_in_use(client: &mut Client) -> u64 {
    let bytes = client.value("select bytes from clearway_memory where name = 'reserve in use'");
    bytes.parse().unwrap()
}

/// A message for which there is no memory is read to its end and refused; the connection goes on behind it.
#[test]
fn a_message_that_does_not_fit_is_refused_in_its_place() {
    let config = format!("{SMALL}max_message_size = \"1GB\"\n");
    let (_directory, _server, mut client) = started(&system_limit(), &config);
    let long = vec![b'x'; 700 << 20];
    client.query("create table t (a text)").unwrap();
    is_out_of_memory(client.run_with("select length($1::text)", &long));
    assert_eq!(client.value("select 1"), "1");
    is_out_of_memory(client.copy("copy t from stdin", &[b"one\n", &long, b"\n"]));
    assert_eq!(client.value("select count(*) from t"), "0");
    let query = ["select length('", std::str::from_utf8(&long).unwrap(), "')"].concat();
    is_out_of_memory(client.query(&query));
    assert_eq!(client.value("select 2"), "2");
}

/// The memory of a session is shown to others.
#[test]
fn a_session_shows_what_it_holds() {
    let (_directory, server, mut client) = started("", "shared_buffers = \"2MB\"\nserver_memory = \"1GB\"\n");
    let mut other = server.connect().unwrap();
    let text = format!("prepare p as select '{}'", "x".repeat(1 << 20));
    client.query(&text).unwrap();
    client.value("select 1");
    let held = other.value("select max(bytes) from clearway_memory where name = 'session'");
    let held: u64 = held.parse().unwrap();
    assert!((1 << 20..30 << 20).contains(&held), "{held} bytes");
    let limit = other.value("select bytes from clearway_memory where name = 'limit'");
    assert_eq!(limit, (1u64 << 30).to_string());
}

/// Statements that want much, each in its own way.
fn greedy(client: &mut Client, kind: usize, turn: usize) -> Answer {
    match kind {
        // A sort.
        0 => {
            client.query("set work_mem = '500MB'")?;
            client.query(
                "select repeat('x', 4000) || g from generate_series(1, 20000) g order by 1 desc limit 1 offset 19999",
            )
        }
        // A line of COPY data.
        1 => {
            let piece = vec![b'x'; 10 << 20];
            client.copy("copy t from stdin", &[&piece, &piece, &piece, &piece, b"\n"])
        }
        // A parameter.
        2 => client.run_with(
            "select length($1::text || $1::text || $1::text)",
            &vec![b'x'; 15 << 20],
        ),
        // Prepared statements, which stay.
        3 => {
            let text = "x".repeat(900_000);
            for number in 0..12 {
                client.query(&format!("prepare p{turn}_{number} as select '{text}'"))?;
            }
            client.query("deallocate all")
        }
        // Texts.
        4 => client.query("select length(repeat('x', 60000000) || repeat('y', 60000000))"),
        // Groups.
        _ => {
            client.query("set work_mem = '500MB'")?;
            client.query(
                "select count(*) from generate_series(1, 20000) g group by repeat('x', 4000) || g limit 1",
            )
        }
    }
}

/// Two dozen sessions want much more together than there is, for some seconds. A statement is done or gets 53200, small
/// ones of another session are always done, and in the end the memory is there again.
fn crowd(limits: &str, config: &str) {
    let (_directory, mut server, mut small) = started(limits, config);
    small.query("create table t (a text)").unwrap();
    small.query("create table n (id int primary key, n int)").unwrap();
    small.query("insert into n values (1, 0)").unwrap();
    let (end, refused, done) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let server_ref = &server;
    thread::scope(|scope| {
        for number in 0..24 {
            let (end, refused, done) = (&end, &refused, &done);
            scope.spawn(move || {
                let mut turn = 0;
                while !end.load(Ordering::Relaxed) {
                    // A new session may be refused too.
                    let mut client = match server_ref.connect() {
                        Ok(client) => client,
                        Err((state, message)) => {
                            assert_eq!(state, "53200", "{message}: {}", server_ref.log());
                            refused.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(20));
                            continue;
                        }
                    };
                    for _ in 0..4 {
                        if end.load(Ordering::Relaxed) {
                            break;
                        }
                        turn += 1;
                        match greedy(&mut client, (number + turn) % 6, turn) {
                            Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                            // A line of COPY data that was long enough for a row is not for a page.
                            Err((state, _)) if state == "54000" => done.fetch_add(1, Ordering::Relaxed),
                            Err((state, message)) => {
                                assert_eq!(state, "53200", "{message}: {}", server_ref.log());
                                refused.fetch_add(1, Ordering::Relaxed)
                            }
                        };
                    }
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(8);
        let mut count = 0;
        let ends = EndOnDrop(&end);
        while Instant::now() < until {
            small.query("update n set n = n + 1 where id = 1").unwrap();
            count += 1;
        }
        drop(ends);
        assert_eq!(small.value("select n from n"), count.to_string());
    });
    assert!(server.is_running(), "{}", server.log());
    let (refused, done) = (refused.into_inner(), done.into_inner());
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
    let given_back = Instant::now() + Duration::from_secs(20);
    while small.query("select length(repeat('x', 60000000))").is_err() || server.connect().is_err() {
        assert!(Instant::now() < given_back, "memory was not given back");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
    eprintln!(
        "{done} done, {refused} refused, {} of the reserve in use",
        reserve_in_use(&mut small)
    );
}

/// Sessions end when the test fails too.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_crowd_shares_what_the_system_gives() {
    crowd(
        "ulimit -v 1500000",
        "shared_buffers = \"4MB\"\nmax_connections = 60\n",
    );
}

#[test]
fn a_crowd_shares_what_the_server_may_have() {
    crowd(
        "",
        "shared_buffers = \"4MB\"\nmax_connections = 60\nserver_memory = \"500MB\"\n",
    );
}

/// Too little for the start is told with the setting.
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

/// True if the program tells its version after the lines of `shell`. If it does not, the kernel or the system's loader has
/// no room for its code.
fn tells_its_version(shell: &str) -> bool {
    let program = env!("CARGO_BIN_EXE_clearway");
    let script = format!("ulimit -c 0; {shell}\nexec \"$@\"");
    let told = Command::new("sh")
        .args(["-c", &script, "sh", program, "--version"])
        .output()
        .unwrap();
    told.status.success() && told.stdout.starts_with(b"clearway ")
}

/// However little there is: either it serves, or it says that memory is missing.
#[test]
fn any_limit_at_the_start_is_told_or_enough() {
    for megabytes in (100..420).step_by(20) {
        let limit = format!("ulimit -v {}", megabytes << 10);
        if !tells_its_version(&limit) {
            // A build without optimisation has more code than the least limits.
            assert!(megabytes < 160, "{megabytes} MB are too little for the code");
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut server = Served::in_directory(directory.path());
        server.spawn(&limit, SMALL);
        let until = Instant::now() + served::PATIENCE;
        while server.is_running() && !server.log().contains("ready to accept") {
            assert!(Instant::now() < until, "{megabytes} MB: {}", server.log());
            thread::sleep(Duration::from_millis(5));
        }
        let log = server.log();
        assert!(
            log.contains("ready to accept") || log.contains("memory"),
            "{megabytes} MB: {log}"
        );
        assert!(
            !log.contains("panicked") && !log.contains("allocation of"),
            "{megabytes} MB: {log}"
        );
    }
}
