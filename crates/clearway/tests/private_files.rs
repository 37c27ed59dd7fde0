//! A database is readable by its owner alone, whatever the umask, and by the owner's group if that is wanted.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use served::Served;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All that is in a directory, and in the directories in it.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while next < found.len() {
        if found[next].is_dir() {
            found.extend(
                fs::read_dir(&found[next])
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        next += 1;
    }
    found
}

/// Makes a database under a umask that takes nothing, with tables, log, slots and temporary files.
fn made_with(server: &mut Served, config: &str) {
    let mut client = server.start("umask 000", config);
    client
        .query("create table t (a int primary key, b text)")
        .unwrap();
    let rows = "insert into t select i, repeat('secret', 20) from generate_series(1, 2000) i";
    client.query(rows).unwrap();
    client
        .query("set work_mem = '64kB'; select * from t order by b, a desc")
        .unwrap();
    client.query("checkpoint").unwrap();
}

fn all_have_modes(data: &Path, directories: u32, files: u32) {
    let found = everything(data);
    assert!(found.len() > 6, "{found:?}");
    for path in found {
        let expected = if path.is_dir() { directories } else { files };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

#[test]
fn files_are_their_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    // As an administrator may have made it.
    fs::create_dir(server.data()).unwrap();
    fs::set_permissions(server.data(), Permissions::from_mode(0o755)).unwrap();
    made_with(&mut server, "shared_buffers = \"2MB\"\n");
    all_have_modes(&server.data(), 0o700, 0o600);
    assert_eq!(
        server.connect().unwrap().value("show data_directory_mode"),
        "0700"
    );
    // Who may connect is not for the umask to say.
    let socket = directory.path().join(".s.PGSQL.5433");
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    assert_eq!(mode(&socket), 0o777);
}

#[test]
fn the_group_reads_if_it_may() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    made_with(
        &mut server,
        "shared_buffers = \"2MB\"\nallow_group_access = true\n",
    );
    all_have_modes(&server.data(), 0o750, 0o640);
    server.signal("TERM");
    server.ended();
    // From then on the directory's own mode says so.
    let mut client = server.start("umask 077", "shared_buffers = \"2MB\"\n");
    client.query("create table u (a int primary key)").unwrap();
    assert_eq!(client.value("show data_directory_mode"), "0750");
    all_have_modes(&server.data(), 0o750, 0o640);
}

/// A database that more users may read or write is not started on, as with PostgreSQL.
#[test]
fn other_modes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let config = "shared_buffers = \"2MB\"\n";
    server.start("", config);
    server.signal("TERM");
    server.ended();
    for wrong in [0o755, 0o770, 0o701] {
        fs::set_permissions(server.data(), Permissions::from_mode(wrong)).unwrap();
        server.spawn("", config);
        assert!(!server.ended().success());
        let log = server.log();
        assert!(log.contains("has invalid permissions"), "{log}");
        assert!(
            log.contains("u=rwx (chmod 0700) or u=rwx,g=rx (chmod 0750)"),
            "{log}"
        );
    }
    fs::set_permissions(server.data(), Permissions::from_mode(0o700)).unwrap();
    server.start("", config);
}
