//! The limit of a file's size (`ulimit -f`) ends a statement, not the server.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use served::Served;

#[test]
fn a_table_at_the_limit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    // A log segment has 16 MiB and fits. A block of ulimit is 512 bytes or, with some shells, 1,024.
    let mut client = server.start("ulimit -f 32768", "");
    client.query("create table t (a int, b text)").unwrap();
    // Otherwise the rows are compressed.
    client.query("alter table t alter b set storage plain").unwrap();
    let rows = "insert into t select i, repeat('x', 8000) from generate_series(1, 5000) as i";
    let (sqlstate, message) = client.query(rows).unwrap_err();
    assert_eq!(sqlstate, "53400", "{message}");
    assert!(message.contains("ulimit -f"), "{message}");
    client.query("insert into t values (1, 'fits')").unwrap();
    assert_eq!(client.value("select count(*) from t"), "1");
    assert!(server.is_running());
}
