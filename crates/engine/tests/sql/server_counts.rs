//! Counts of the server and of the database: `pg_stat_wal`, `pg_stat_database`, `pg_stat_bgwriter`, and their resets.

use clearway_engine::{Config, Engine, SessionInfo};

use crate::common::{Fixture, config, error, query, run};
use crate::shop;

#[test]
fn the_log_is_counted_as_it_is_written() {
    let fixture = shop();
    let mut s = fixture.session();
    let columns = "wal_records, wal_fpi, wal_bytes, wal_write, wal_sync";
    let counts = |s: &mut _| -> Vec<u64> {
        let shown = query(s, &format!("select {columns} from pg_stat_wal"));
        shown.split('|').map(|count| count.parse().unwrap()).collect()
    };
    query(&mut s, "checkpoint");
    let before = counts(&mut s);
    run(&mut s, "update items set stock = 7");
    run(&mut s, "checkpoint");
    let after = counts(&mut s);
    let more: Vec<u64> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| after - before)
        .collect();
    // Three changes and a commit at least, one of them with the page.
    assert!(
        more[0] >= 4 && more[1] >= 1 && more[2] >= 4 * 32 && more[3] >= 1,
        "{more:?}"
    );
    assert_eq!(
        query(
            &mut s,
            "select wal_write_time is null and wal_sync_time is null, wal_buffers_full from pg_stat_wal"
        ),
        "t|0"
    );
    query(&mut s, "select pg_stat_reset_shared('wal')");
    let reset = counts(&mut s);
    assert!(
        reset
            .iter()
            .zip(&after)
            .all(|(reset, after)| reset < after || *after == 0),
        "{reset:?}"
    );
}

/// The log goes on in its next file, and the one before is full.
#[test]
fn a_switch_goes_on_in_the_next_file_of_the_log() {
    let fixture = shop();
    let mut s = fixture.session();
    let file = "select pg_walfile_name(pg_current_wal_insert_lsn())";
    assert_eq!(query(&mut s, file), "000000010000000000000001");
    let next = query(&mut s, "select pg_switch_wal()");
    assert_eq!(next, "0/2000000");
    // A position between two files is one of the first.
    assert_eq!(
        query(
            &mut s,
            "select pg_walfile_name('0/2000000'), pg_walfile_name('0/2000001')"
        ),
        "000000010000000000000001|000000010000000000000002"
    );
    run(&mut s, "insert into log values (1, 'x')");
    assert_eq!(query(&mut s, file), "000000010000000000000002");
    assert_eq!(query(&mut s, "select pg_switch_wal()"), "0/3000000");
    assert_eq!(query(&mut s, "select count(*) from log"), "1");
    query(&mut s, "create role joe; set role joe");
    assert_eq!(
        error(&mut s, "select pg_switch_wal()").sqlstate().as_str(),
        "42501"
    );
    // Recovery reads what fills the files.
    drop(s);
    let Fixture { engine, directory } = fixture;
    engine.storage().stop_threads();
    drop(engine);
    let engine = Engine::open(directory.path(), config()).unwrap();
    assert!(engine.recovery().records > 100, "{:?}", engine.recovery());
    let mut s = engine.session(SessionInfo::default()).unwrap();
    assert_eq!(query(&mut s, "select count(*) from log"), "1");
}

/// Pages that are read from the file of a table, of its index and of its long values are counted for each.
#[test]
fn pages_read_from_files_are_counted_by_relation() {
    let fixture = Fixture::with_config(
        "create table t (a int primary key, v text, w text);
         alter table t alter v set storage external;
         insert into t select n, repeat('v', 3000), repeat('w', 900) from generate_series(1, 1200) n;
         create table small (a int primary key); insert into small values (1)",
        Config {
            shared_buffers: "1MB".parse().unwrap(),
            autovacuum: false,
            ..config()
        },
    );
    let mut s = fixture.session();
    let sizes = "select pg_relation_size('t') / 8192, pg_relation_size('t_pkey') / 8192";
    let sizes = query(&mut s, sizes);
    let (pages, entries) = sizes.split_once('|').unwrap();
    query(&mut s, "select pg_stat_reset()");
    let of_t = "select heap_blks_read, idx_blks_read, toast_blks_read, heap_blks_hit is null from pg_statio_user_tables where relname = 't'";
    assert_eq!(query(&mut s, of_t), "0|0|0|t");
    query(&mut s, "select sum(length(w)) from t");
    // The table is larger than the pool, of 128 pages: the others were read, each once.
    let read = query(&mut s, of_t);
    let (read, others) = read.split_once('|').unwrap();
    let (read, pages): (u64, u64) = (read.parse().unwrap(), pages.parse().unwrap());
    assert!(
        read <= pages && read + 128 >= pages && read > 0,
        "{read} of {pages}"
    );
    assert_eq!(others, "0|0|t");
    query(&mut s, "select count(v) from t where length(v) = 3000");
    let read = query(&mut s, of_t);
    let read: Vec<&str> = read.split('|').collect();
    assert!(read[2].parse::<u64>().unwrap() >= 400, "{read:?}");
    query(&mut s, "set enable_seqscan = off");
    query(&mut s, "select a from t where a = 7");
    let of_index =
        "select idx_blks_read between 1 and 3 from pg_statio_user_indexes where indexrelname = 't_pkey'";
    assert_eq!(query(&mut s, of_index), "t", "of {entries}");
    query(
        &mut s,
        "select pg_stat_reset_single_table_counters('t'::regclass)",
    );
    assert_eq!(query(&mut s, of_t), "0|0|0|t");
    assert_eq!(
        query(
            &mut s,
            "select toast_blks_read is null from pg_statio_user_tables where relname = 'small'"
        ),
        "t"
    );
}

#[test]
fn a_reset_begins_the_counts_anew_and_leaves_those_that_decide() {
    let fixture = shop();
    let mut s = fixture.session();
    // A session adds to a table's counts when it closes, at the latest.
    let changed = |changes: &[&str]| {
        let mut other = fixture.session();
        changes.iter().for_each(|sql| drop(run(&mut other, sql)));
    };
    changed(&["update items set stock = 7", "delete from items where id = 1"]);
    run(&mut s, "checkpoint");
    let of_table = "select n_tup_upd, n_tup_del, n_dead_tup > 0, n_mod_since_analyze from pg_stat_user_tables where relname = 'items'";
    assert_eq!(query(&mut s, of_table), "3|1|t|7");
    query(
        &mut s,
        "select pg_stat_reset_single_table_counters('log'::regclass)",
    );
    assert_eq!(query(&mut s, of_table), "3|1|t|7");
    query(
        &mut s,
        "select pg_stat_reset_single_table_counters('items'::regclass)",
    );
    assert_eq!(query(&mut s, of_table), "0|0|t|7");

    let of_database = "select tup_updated, tup_deleted, xact_commit < 3, \
                       stats_reset > (select backend_start from pg_stat_activity where pid = pg_backend_pid()) from pg_stat_database";
    assert!(query(&mut s, of_database).ends_with("|f|f"));
    query(&mut s, "select pg_stat_reset()");
    assert_eq!(query(&mut s, of_database), "0|0|t|t");
    changed(&["update items set stock = 8 where id = 2"]);
    assert!(query(&mut s, of_database).starts_with("1|0|"));
    assert!(query(&mut s, of_table).starts_with("1|0|"));

    let of_writer = "select checkpoints_req, buffers_checkpoint from pg_stat_bgwriter";
    assert_ne!(query(&mut s, of_writer), "0|0");
    query(&mut s, "select pg_stat_reset_shared('bgwriter')");
    assert_eq!(query(&mut s, of_writer), "0|0");
    run(&mut s, "checkpoint");
    assert!(query(&mut s, of_writer).starts_with("1|"));

    let archiver = "select archived_count, failed_count, stats_reset from pg_stat_archiver";
    let before = query(&mut s, archiver);
    query(&mut s, "select pg_stat_reset_shared('archiver')");
    assert_ne!(query(&mut s, archiver), before);
    query(&mut s, "select pg_stat_reset_shared('recovery_prefetch')");
}

#[test]
fn resets_are_for_superusers_and_of_what_there_is() {
    let fixture = shop();
    let mut s = fixture.session();
    let refused = error(&mut s, "select pg_stat_reset_shared('everything')");
    assert_eq!(refused.sqlstate().as_str(), "22023");
    assert_eq!(refused.message(), "unrecognized reset target: \"everything\"");
    query(&mut s, "create role joe");
    query(&mut s, "set role joe");
    for sql in [
        "select pg_stat_reset()",
        "select pg_stat_reset_shared('wal')",
        "select pg_stat_reset_single_table_counters(1)",
    ] {
        assert_eq!(error(&mut s, sql).sqlstate().as_str(), "42501", "{sql}");
    }
}
