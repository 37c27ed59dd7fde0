//! Marks and changed definitions: what was read of rows that get other places, or by an index that goes, has been read.

use crate::common::{self, Fixture, query};

const TABLES: &str = "create table t (id int primary key, v int, w text);
    create index t_v on t (v);
    insert into t select i, i, 'x' from generate_series(1, 100) i;
    create table u (id int primary key)";

/// Alice reads `t` and writes `u`, and commits; then the definition changes; Bob, who has read `u` before, writes `t`.
#[track_caller]
fn between(reads: &str, changes: &str, writes: &str) {
    let fixture = Fixture::new(TABLES);
    let (mut alice, mut bob, mut owner) = (fixture.session(), fixture.session(), fixture.session());
    for session in [&mut alice, &mut bob] {
        query(session, "begin isolation level serializable");
    }
    query(&mut bob, "select * from u where id = 1");
    query(&mut alice, "set local enable_seqscan = off");
    query(&mut alice, reads);
    query(&mut alice, "insert into u values (1)");
    query(&mut alice, "commit");
    if !changes.is_empty() {
        query(&mut owner, changes);
    }
    let written = common::run(&mut bob, writes);
    assert_eq!(written, "ERROR 40001", "{reads}; {changes}; {writes}");
}

#[test]
fn an_index_that_is_dropped() {
    let reads = "select count(*) from t where v between 200 and 300";
    let writes = "insert into t values (250, 250, 'y')";
    between(reads, "", writes);
    between(reads, "drop index t_v", writes);
    between(reads, "drop index concurrently t_v", writes);
    between(
        reads,
        "alter table t drop column v",
        "insert into t values (250, 'y')",
    );
}

#[test]
fn an_index_that_is_made_anew() {
    let reads = "select count(*) from t where v between 200 and 300";
    let writes = "insert into t values (250, 250, 'y')";
    // CONCURRENTLY waits for Bob's snapshot, and so for his end.
    between(reads, "reindex index t_v", writes);
}

/// TRUNCATE and DROP TABLE write all rows; a table without rows too.
#[test]
fn a_table_that_is_emptied() {
    for reads in [
        "select w from t where id = 7",
        "select w from t where id = 700",
        "select count(*) from t",
    ] {
        between(reads, "", "truncate t");
        between(reads, "", "drop table t");
    }
}

/// The rows of the new table are at other places, under the same number.
#[test]
fn a_table_that_is_rewritten() {
    let fixture = Fixture::new(TABLES);
    let (mut alice, mut bob, mut owner) = (fixture.session(), fixture.session(), fixture.session());
    query(&mut owner, "delete from t where id < 50");
    query(&mut bob, "begin isolation level serializable");
    query(&mut bob, "select * from u where id = 1");
    query(&mut alice, "begin isolation level serializable");
    query(&mut alice, "select * from t where id = 77");
    query(&mut alice, "insert into u values (1)");
    query(&mut alice, "commit");
    query(&mut owner, "alter table t alter column v type bigint");
    let marks = "select locktype, page is null from pg_locks where mode = 'SIReadLock' and relation = 't'::regclass order by 1";
    assert_eq!(query(&mut owner, marks), "relation|t, tuple|f");
    // Bob's snapshot is older than the table, so it cannot use it at all.
    assert_eq!(
        common::run(&mut bob, "update t set v = 0 where id = 77"),
        "ERROR 40001"
    );
}
