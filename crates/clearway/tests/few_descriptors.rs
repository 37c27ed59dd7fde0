//! A database with more tables than the process may open files: it works, it takes clients, and it starts again after a
//! kill.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use served::{Client, Served};

const TABLES: usize = 100;

/// Each table has a primary key, so that it has two files. The limit leaves room for 16 files of tables.
const LIMIT: &str = "ulimit -n 96";

/// Many tables in one message each way.
fn run(client: &mut Client, statement: impl Fn(usize) -> String) {
    let statements: Vec<String> = (0..TABLES).map(statement).collect();
    client.query(&statements.join(";")).unwrap();
}

fn clients_get_in(server: &Served) {
    let clients: Vec<Client> = (0..8)
        .map(|_| server.connect().expect("a client gets in"))
        .collect();
    drop(clients);
}

#[test]
fn tables_need_no_descriptor_each() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let config = "shared_buffers = \"2MB\"\nmax_connections = 16\n";
    let mut client = server.start(LIMIT, config);
    run(&mut client, |table| {
        format!("create table t{table} (a int primary key)")
    });
    clients_get_in(&server);
    run(&mut client, |table| {
        format!("insert into t{table} values ({table})")
    });
    client.query("checkpoint").unwrap();
    // Files that the log makes and that are dropped later in it.
    let again = "truncate t0; insert into t0 values (1000);";
    client.query(&again.repeat(TABLES)).unwrap();
    run(&mut client, |table| format!("insert into t{table} values (7000)"));
    clients_get_in(&server);
    assert!(server.open_files() <= 96);
    server.signal("KILL");
    server.ended();

    let mut client = server.start(LIMIT, config);
    for table in 1..TABLES {
        let sum = client.value(&format!("select sum(a) from t{table}"));
        assert_eq!(sum, (table + 7_000).to_string());
    }
    assert_eq!(client.value("select sum(a) from t0"), "8000");
    clients_get_in(&server);
    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());

    let check = format!(
        "{LIMIT}; exec {} check --data {}",
        env!("CARGO_BIN_EXE_clearway"),
        server.data().display()
    );
    let check = std::process::Command::new("sh")
        .args(["-c", &check])
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
}

/// A limit that is too low for the connections of the configuration serves fewer, and says so.
#[test]
fn a_limit_below_the_connections_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let _first = server.start(LIMIT, "shared_buffers = \"2MB\"\n");
    let log = server.log();
    assert!(
        log.contains("only 16 connections can be served, not 500"),
        "{log}"
    );
    let _others: Vec<Client> = (1..16).map(|_| server.connect().unwrap()).collect();
    let refused = server.connect().err().unwrap();
    assert_eq!(refused.0, "53300");
}
