//! The state after the end: a clean one, and one in the middle of everything.
//!
//! A crash is played by copying the data directory while the engine runs and opening the copy: what the copy holds is
//! what the operating system had been given, which is what a killed process leaves.

mod common;
#[path = "../../storage/tests/support/copied_log.rs"]
mod copied_log;
#[path = "../../storage/tests/support/set_on_drop.rs"]
mod set_on_drop;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use clearway_engine::{Config, Discard, Engine, SessionInfo, Value};
use clearway_storage::disk::{Disk, DiskDirectory, DiskFile, LockHeld, NativeDisk, OpenMode};
use common::upserts::{self, Counted};
use common::{Fixture, config, query, run};
use copied_log::copy_log;
use set_on_drop::SetOnDrop;
use tempfile::TempDir;

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            // A file may be unlinked while we look.
            let _ = fs::copy(entry.path(), &target);
        }
    }
}

/// Opens what a crash at this moment would leave.
fn crash(fixture: &Fixture) -> Fixture {
    let directory = crashed(fixture);
    let engine = Engine::open(directory.path(), config()).unwrap();
    Fixture { engine, directory }
}

/// A copy of the directory as a crash at this moment would leave it.
///
/// The copy is not made in an instant, so its order matters: an old control file finds its log; pages copied before the
/// log are never ahead of it, and a page that was written while it was copied is whole in the log. The log is copied
/// from its end: a record says how far the log was durable, so what is before it must not be older in the copy.
fn crashed(fixture: &Fixture) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (fixture.directory.path(), directory.path());
    fs::copy(from.join("control"), to.join("control")).unwrap();
    copy_directory(&from.join("base"), &to.join("base"));
    copy_log(&from.join("pg_wal"), &to.join("pg_wal"));
    directory
}

fn reopen(fixture: Fixture) -> Fixture {
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    let engine = Engine::open(directory.path(), config()).unwrap();
    Fixture { engine, directory }
}

#[track_caller]
fn assert_sound(fixture: &Fixture) {
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn everything_is_there_after_a_clean_end() {
    let fixture = Fixture::new(
        "create table accounts (id int primary key, balance bigint, note text default 'none');
         insert into accounts (id, balance) values (1, 100), (2, 200);
         create index by_balance on accounts (balance);
         create table visits (id serial, who varchar(10))",
    );
    query(
        &mut fixture.session(),
        "insert into visits (who) values ('alice')",
    );
    query(
        &mut fixture.session(),
        "update accounts set balance = 150 where id = 1",
    );
    let fixture = reopen(fixture);
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select id, balance, note from accounts order by id"),
        "1|150|none, 2|200|none"
    );
    assert_eq!(query(&mut s, "select id from accounts where balance = 150"), "1");
    assert_eq!(run(&mut s, "insert into accounts values (2, 0)"), "ERROR 23505");
    assert_eq!(query(&mut s, "select count(*) from visits where id >= 1"), "1");
    let next: i64 = query(&mut s, "insert into visits (who) values ('bob') returning id")
        .parse()
        .unwrap();
    assert!(next > 1, "a sequence gave {next} again");
    assert_sound(&fixture);
}

#[test]
fn a_crash_keeps_what_was_committed_and_nothing_else() {
    let fixture = Fixture::new(
        "create table accounts (id int primary key, balance bigint);
         insert into accounts select i, 100 from generate_series(1, 1000) i",
    );
    fixture.engine.checkpoint().unwrap();
    let mut alice = fixture.session();
    query(&mut alice, "update accounts set balance = 0 where id <= 10");
    query(&mut alice, "delete from accounts where id > 990");
    let mut bob = fixture.session();
    query(&mut bob, "begin");
    query(
        &mut bob,
        "update accounts set balance = -1 where id between 20 and 30",
    );
    query(&mut bob, "insert into accounts values (5000, 1)");
    query(&mut bob, "create table half_made (id int primary key)");
    // Makes sure that Bob's changes are in the log, too.
    query(&mut alice, "update accounts set balance = 1 where id = 11");
    let after = crash(&fixture);
    let mut s = after.session();
    assert_eq!(query(&mut s, "select count(*) from accounts"), "990");
    assert_eq!(
        query(&mut s, "select sum(balance) from accounts where id <= 30"),
        "1901"
    );
    assert_eq!(
        query(&mut s, "select count(*) from accounts where id = 5000"),
        "0"
    );
    assert_eq!(run(&mut s, "select * from half_made"), "ERROR 42P01");
    query(&mut s, "insert into accounts values (5000, 2)");
    query(&mut s, "create table half_made (id int primary key)");
    assert_sound(&after);
}

/// A long value is there with its row or not at all, and with the row's version.
#[test]
fn a_crash_keeps_long_values_whole() {
    let fixture = Fixture::new(
        "create table notes (id int primary key, n int default 0, note text);
         create view noise as select string_agg(md5(g::text), '') as value from generate_series(1, 3000) g;
         insert into notes (id, note) select g, g || value from noise, generate_series(1, 4) g",
    );
    fixture.engine.checkpoint().unwrap();
    let mut alice = fixture.session();
    query(&mut alice, "update notes set note = note || '!' where id = 1");
    query(&mut alice, "update notes set n = 1 where id = 2");
    query(&mut alice, "delete from notes where id = 3");
    let mut bob = fixture.session();
    query(&mut bob, "begin");
    query(&mut bob, "update notes set note = 'bob' where id in (2, 4)");
    query(
        &mut bob,
        "insert into notes (id, note) select 5, value from noise",
    );
    query(
        &mut alice,
        "insert into notes values (6, 0, repeat('six', 10000))",
    );
    let after = crash(&fixture);
    let mut s = after.session();
    let right = "select id, n, note = id || value, note = id || value || '!', length(note) from notes, noise order by id";
    let expected = "1|0|f|t|96002, 2|1|t|f|96001, 4|0|t|f|96001, 6|0|f|f|30000";
    assert_eq!(query(&mut s, right), expected);
    query(&mut s, "insert into notes (id, note) select 5, value from noise");
    query(&mut s, "vacuum notes");
    drop(s);
    let after = reopen(after);
    let mut s = after.session();
    assert_eq!(
        query(&mut s, "select count(*), sum(length(note)) from notes"),
        "5|414004"
    );
    assert_sound(&after);
}

#[test]
fn dropped_and_truncated_tables_stay_so() {
    let fixture = Fixture::new(
        "create table a (id int primary key);
         create table b (id int primary key);
         insert into a select i from generate_series(1, 500) i;
         insert into b select i from generate_series(1, 500) i",
    );
    let mut s = fixture.session();
    query(&mut s, "truncate a");
    query(&mut s, "insert into a values (7)");
    query(&mut s, "drop table b");
    query(&mut s, "begin");
    query(&mut s, "truncate a");
    let after = crash(&fixture);
    let mut s = after.session();
    assert_eq!(query(&mut s, "select id from a"), "7");
    assert_eq!(query(&mut s, "select id from a where id = 7"), "7");
    assert_eq!(run(&mut s, "select * from b"), "ERROR 42P01");
    assert_sound(&after);
}

/// The server acknowledges each of these without waiting for the log, and removes files. A crash may lose the
/// statement or keep it; a table is never left without its rows.
#[test]
fn files_of_an_asynchronous_drop_go_after_its_commit_is_on_disk() {
    for (statement, gone) in [
        ("drop table t", "ERROR 42P01"),
        ("truncate t", "0"),
        ("drop index by_b", "500"),
        ("begin; drop table t; commit", "ERROR 42P01"),
    ] {
        let quiet = Config {
            synchronous_commit: false.into(),
            // The background writer would hide the fault.
            wal_writer_delay: "1h".parse().unwrap(),
            ..config()
        };
        let fixture = Fixture::with_config(
            "create table t (a int primary key, b int);
             create index by_b on t (b);
             insert into t select i, i from generate_series(1, 500) i",
            quiet,
        );
        fixture.engine.checkpoint().unwrap();
        run(&mut fixture.session(), statement);
        let after = crash(&fixture);
        let mut s = after.session();
        for sql in [
            "select count(*) from t",
            "select count(*) from t where a between 1 and 500",
            "select count(*) from t where b between 1 and 500",
        ] {
            let found = run(&mut s, sql);
            assert!(
                found == "500" || found == gone,
                "after \"{statement}\": {sql}: {found}"
            );
        }
        assert_sound(&after);
    }
}

#[test]
fn crashes_under_load_lose_no_acknowledged_transfer() {
    let fixture = Fixture::new(
        "create table accounts (id int primary key, balance bigint);
         create table history (worker int, number bigint, amount bigint);
         insert into accounts select i, 0 from generate_series(1, 100) i",
    );
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for (worker, acknowledged) in acknowledged.iter().enumerate() {
            let engine = Arc::clone(&fixture.engine);
            let stop = &stop;
            scope.spawn(move || transfer(&engine, worker as i32, acknowledged, stop));
        }
        let _stop = SetOnDrop(&stop);
        for round in 0..4 {
            std::thread::sleep(std::time::Duration::from_millis(120));
            if round == 2 {
                fixture.engine.checkpoint().unwrap();
            }
            let known: Vec<u64> = acknowledged
                .iter()
                .map(|count| count.load(Ordering::SeqCst))
                .collect();
            let after = crash(&fixture);
            let mut s = after.session();
            let sums = query(&mut s, "select sum(balance) from accounts");
            let booked = query(&mut s, "select coalesce(sum(amount), 0) from history");
            assert_eq!(sums, booked, "round {round}");
            for (worker, known) in known.iter().enumerate() {
                let sql =
                    format!("select count(*), coalesce(max(number), 0) from history where worker = {worker}");
                let found = query(&mut s, &sql);
                let (count, last) = found.split_once('|').unwrap();
                assert_eq!(count, last, "worker {worker} has gaps in round {round}");
                assert!(
                    last.parse::<u64>().unwrap() >= *known,
                    "worker {worker}: {last} of {known} in round {round}"
                );
            }
            assert_sound(&after);
        }
    });
    assert!(acknowledged.iter().all(|count| count.load(Ordering::SeqCst) > 0));
}

fn transfer(engine: &Arc<Engine>, worker: i32, acknowledged: &AtomicU64, stop: &AtomicBool) {
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let out = &mut Discard::default();
    let begin = session.prepare("begin", &[]).unwrap();
    let update = session
        .prepare("update accounts set balance = balance + $1 where id = $2", &[])
        .unwrap();
    let insert = session
        .prepare("insert into history values ($1, $2, $3)", &[])
        .unwrap();
    let commit = session.prepare("commit", &[]).unwrap();
    let mut number = 0i64;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let amount = number % 17 - 8;
        let account = ((number * 31 + i64::from(worker) * 7) % 100 + 1) as i32;
        session.execute(&begin, &[], 0, out).unwrap();
        session
            .execute(&update, &[Value::Int8(amount), Value::Int4(account)], 0, out)
            .unwrap();
        session
            .execute(
                &insert,
                &[Value::Int4(worker), Value::Int8(number), Value::Int8(amount)],
                0,
                out,
            )
            .unwrap();
        session.execute(&commit, &[], 0, out).unwrap();
        session.sync().unwrap();
        acknowledged.store(number as u64, Ordering::SeqCst);
    }
}

/// Opening fails twice, names what is missing, and removes no file.
#[track_caller]
fn assert_refused(directory: &Path, missing: &str) {
    let files = || {
        let names = fs::read_dir(directory.join("base")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    for _ in 0..3 {
        let error = Engine::open(directory, config()).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "XX001");
        assert!(error.message().contains(missing), "{error}");
        assert_eq!(files(), before);
    }
}

/// The largest file is that of a table. Without it the database does not open, be it after a clean end or after a crash
/// whose log holds changes of that table.
#[test]
fn a_table_without_its_file_is_an_error() {
    for clean in [true, false] {
        let fixture =
            Fixture::new("create table t (a int); insert into t select i from generate_series(1, 2000) i");
        fixture.engine.checkpoint().unwrap();
        query(&mut fixture.session(), "update t set a = 0 where a = 1");
        if clean {
            fixture.engine.shutdown().unwrap();
        }
        let directory = crashed(&fixture);
        let base = directory.path().join("base");
        let largest = fs::read_dir(&base)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .max_by_key(|path| fs::metadata(path).unwrap().len())
            .unwrap();
        fs::remove_file(&largest).unwrap();
        assert_refused(directory.path(), largest.file_name().unwrap().to_str().unwrap());
    }
}

/// A disk on which the log writer takes a tenth of a second to make a segment, and the tables' files open only once it has
/// begun.
#[derive(Debug, Default)]
struct SlowLogWriter {
    has_begun: AtomicBool,
}

impl Disk for SlowLogWriter {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let of_tables = path.parent().is_some_and(|parent| parent.ends_with("base"));
        if thread::current().name() == Some("wal-writer") {
            self.has_begun.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(100));
        } else if of_tables {
            let patience = Instant::now() + Duration::from_millis(100);
            while !self.has_begun.load(Ordering::SeqCst) && Instant::now() < patience {
                thread::yield_now();
            }
        }
        NativeDisk.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>> {
        NativeDisk.open_directory(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        NativeDisk.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        NativeDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        NativeDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        NativeDisk.remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>> {
        NativeDisk.lock(path)
    }
}

/// If `open` returns an error the directory is closed, although the log writer holds the storage when it fails: it has
/// a segment to make.
///
/// Mutation: the threads of a storage whose engine does not start are not stopped → "in use".
#[test]
fn a_failed_open_leaves_nothing_behind() {
    let fixture =
        Fixture::new("create table t (a int); insert into t select i from generate_series(1, 2000) i");
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    // A catalog without its tables.
    fs::write(directory.path().join("base").join("1"), b"").unwrap();
    for _ in 0..4 {
        let segments = fs::read_dir(directory.path().join("pg_wal")).unwrap();
        let mut segments: Vec<_> = segments.map(|entry| entry.unwrap().path()).collect();
        segments.sort();
        for ahead in &segments[1..] {
            fs::remove_file(ahead).unwrap();
        }
        let disk = Arc::new(SlowLogWriter::default());
        let error =
            Engine::open_on(Arc::clone(&disk) as Arc<dyn Disk>, directory.path(), config()).unwrap_err();
        assert_ne!(error.sqlstate().as_str(), "55006", "{error}");
        assert!(
            disk.has_begun.load(Ordering::SeqCst),
            "the log writer was at work"
        );
    }
}

/// An empty catalog beside the files of tables: the tables are not taken for leftovers.
#[test]
fn a_lost_catalog_takes_no_table_with_it() {
    let fixture = Fixture::new("create table t (a int); insert into t values (1)");
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    fs::write(directory.path().join("base").join("1"), b"").unwrap();
    assert_refused(directory.path(), "base/1");
}

/// A file that this database did not make is not a leftover of it.
#[test]
fn a_foreign_file_among_the_tables_stays() {
    let fixture = Fixture::new("create table t (a int); insert into t values (1)");
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    let foreign = directory.path().join("base").join("4000000");
    fs::write(&foreign, b"Alice's copy of a table").unwrap();
    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut s = engine.session(SessionInfo::default()).unwrap();
    assert_eq!(query(&mut s, "select a from t"), "1");
    assert_eq!(fs::read(&foreign).unwrap(), b"Alice's copy of a table");
}

#[test]
fn one_directory_one_engine() {
    let fixture = Fixture::new("create table t (a int)");
    let error = Engine::open(fixture.directory.path(), config()).unwrap_err();
    assert!(error.message().contains("another server"), "{error}");
}

#[test]
fn a_damaged_page_is_an_error_that_names_the_file() {
    let fixture =
        Fixture::new("create table t (a int); insert into t select i from generate_series(1, 2000) i");
    fixture.engine.shutdown().unwrap();
    let Fixture { engine, directory } = fixture;
    drop(engine);
    let base = directory.path().join("base");
    let largest = fs::read_dir(&base)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max_by_key(|path| fs::metadata(path).unwrap().len());
    let path = largest.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[8192 + 4000] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut s = engine.session(SessionInfo::default()).unwrap();
    let error = common::error(&mut s, "select count(*) from t");
    assert_eq!(error.sqlstate().as_str(), "XX001");
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        error.message().contains(name) && error.message().contains("8192"),
        "{error}"
    );
}

#[test]
fn a_crash_leaves_nothing_of_temporary_tables() {
    let fixture = Fixture::new("create table t (v text); insert into t values ('stays')");
    let relations = |fixture: &Fixture| fixture.engine.storage().list_rels().unwrap();
    let before = relations(&fixture);
    let mut session = fixture.session();
    run(
        &mut session,
        "create temp table t (id serial primary key, v text)",
    );
    let insert = "insert into t (v) select g::text from generate_series(1, 1000) g";
    run(&mut session, insert);
    fixture.engine.checkpoint().unwrap();
    run(&mut session, insert);
    let after = crash(&fixture);
    assert_eq!(relations(&after), before);
    assert_eq!(query(&mut after.session(), "select v from t"), "stays");
    assert_eq!(query(&mut session, "select count(*) from t"), "2000");
}

/// A crash between the storing of rows and their withdrawal, or after: what was acknowledged has been counted, once.
#[test]
fn a_crash_loses_no_upsert() {
    let fixture = Fixture::new(upserts::SETUP);
    let counted = Counted::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        for number in 0..4 {
            let (fixture, counted, stop) = (&fixture, &counted, &stop);
            scope.spawn(move || {
                upserts::count(&mut fixture.session(), number, counted, |_| {
                    !stop.load(Ordering::SeqCst)
                });
            });
        }
        for _ in 0..4 {
            let seen = counted.acknowledged.load(Ordering::SeqCst);
            let patience = Instant::now() + Duration::from_secs(120);
            while counted.acknowledged.load(Ordering::SeqCst) < seen + 100 {
                assert!(Instant::now() < patience, "nothing is counted");
                thread::sleep(Duration::from_millis(1));
            }
            let acknowledged = counted.acknowledged.load(Ordering::SeqCst);
            let after = crash(&fixture);
            let begun = counted.begun.load(Ordering::SeqCst);
            let mut session = after.session();
            for then in ["select 1", "vacuum counts"] {
                run(&mut session, then);
                let found: u64 = query(&mut session, upserts::SUM).parse().unwrap();
                assert!(
                    (acknowledged..=begun).contains(&found),
                    "{found} of {acknowledged} to {begun}"
                );
                upserts::assert_keys_are_unique(&mut session);
                assert_sound(&after);
            }
        }
    });
}
