//! SERIALIZABLE: stories of sessions of which one has to give up, and of those that go on.
//!
//! Mutations that they are for: `crates/engine/mutations/serializable.toml`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../txn/tests/support/dependency_circle.rs"]
mod dependency_circle;

mod definitions;
mod random;
mod read_only;

use clearway_engine::Collected;
use common::{Fixture, config, query};

const DOCTORS: &str = "create table doctors (name text primary key, on_call boolean, ward int);
    create index on doctors (ward);
    insert into doctors values ('alice', true, 1), ('bob', true, 1), ('carol', true, 2)";

/// Both transactions read and write; the second commit fails.
#[track_caller]
fn skew(setup: &str, (alice_reads, alice_writes): (&str, &str), (bob_reads, bob_writes): (&str, &str)) {
    let fixture = Fixture::new(setup);
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    for session in [&mut alice, &mut bob] {
        query(session, "begin isolation level serializable");
    }
    query(&mut alice, alice_reads);
    query(&mut bob, bob_reads);
    query(&mut alice, alice_writes);
    let written = common::run(&mut bob, bob_writes);
    let first = common::run(&mut alice, "commit");
    let second = common::run(&mut bob, "commit");
    assert_eq!(first, "COMMIT", "{alice_reads}; {alice_writes}");
    let has_failed = second == "ERROR 40001" || written == "ERROR 40001" && second == "ROLLBACK";
    assert!(has_failed, "{bob_reads}; {bob_writes}: {written}, {second}");
    // Run again, it succeeds.
    for sql in ["begin isolation level serializable", bob_reads, bob_writes] {
        query(&mut bob, sql);
    }
    assert_eq!(query(&mut bob, "commit"), "COMMIT");
}

#[test]
fn one_of_two_doctors_stays() {
    Fixture::new(DOCTORS).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level serializable => BEGIN
         alice: select count(*) from doctors where on_call => 3
         bob:   select count(*) from doctors where on_call => 3
         alice: update doctors set on_call = false where name = 'alice' => UPDATE 1
         bob:   update doctors set on_call = false where name = 'bob' => UPDATE 1
         alice: commit => COMMIT
         bob:   commit => ERROR 40001
         bob:   select count(*) from doctors where on_call => 2",
    );
}

#[test]
fn write_skew_is_found_whatever_way_the_rows_are_found() {
    let writes = (
        "update doctors set on_call = false where name = 'alice'",
        "update doctors set on_call = false where name = 'bob'",
    );
    for (alice_reads, bob_reads) in [
        // By key, each the other's row.
        (
            "select on_call from doctors where name = 'bob'",
            "select on_call from doctors where name = 'alice'",
        ),
        // A list of keys, a range, another index, from end to end.
        (
            "select on_call from doctors where name in ('alice', 'bob')",
            "select on_call from doctors where name in ('alice', 'bob')",
        ),
        (
            "select on_call from doctors where name between 'a' and 'c'",
            "select on_call from doctors where name between 'a' and 'c' order by name desc",
        ),
        (
            "set local enable_seqscan = off; select count(*) from doctors where ward = 1",
            "set local enable_seqscan = off; select count(*) from doctors where ward = 1",
        ),
        ("select count(*) from doctors", "select count(*) from doctors"),
        // Inside other queries.
        (
            "select 1 where exists (select from doctors where name = 'bob' and on_call)",
            "with d as materialized (select * from doctors) select count(*) from d join doctors using (name)",
        ),
        (
            "prepare p as select * from doctors where name = $1; execute p('bob')",
            "declare c cursor for select * from doctors; fetch all from c",
        ),
    ] {
        skew(DOCTORS, (alice_reads, writes.0), (bob_reads, writes.1));
    }
}

/// The reads of statements that change rows count as any others.
#[test]
fn what_a_change_reads_counts() {
    let tables = "create table a (id int primary key, v int); create table b (id int primary key, v int);
        insert into a values (1, 1), (2, 2); insert into b values (1, 1), (2, 2)";
    for (alice, bob) in [
        (
            "insert into a select id + 10, v from b",
            "insert into b select id + 10, v from a",
        ),
        (
            "update a set v = b.v + 1 from b where a.id = b.id and b.id = 1",
            "update b set v = a.v + 1 from a where a.id = b.id and a.id = 1",
        ),
        (
            "update a set v = (select v from b where id = 1) where id = 1 returning v",
            "update b set v = (select v from a where id = 1) where id = 1 returning v",
        ),
        (
            "delete from a where id = 1 and exists (select from b where id = 2)",
            "delete from b where id = 2 and exists (select from a where id = 1)",
        ),
        (
            "merge into a using b on a.id = b.id when matched then update set v = b.v + 5",
            "merge into b using a on a.id = b.id when matched then update set v = a.v + 5",
        ),
        (
            "insert into a values (1, 0) on conflict (id) do update set v = (select sum(v) from b)",
            "insert into b values (1, 0) on conflict (id) do update set v = (select sum(v) from a)",
        ),
    ] {
        skew(tables, ("select 1", alice), ("select 1", bob));
    }
}

#[test]
fn phantoms_are_seen() {
    let ledger = "create table ledger (id int primary key, account int, amount int);
        create index on ledger (account);
        insert into ledger select i, i % 50, i from generate_series(1, 400) i";
    // A key that is not there.
    skew(
        ledger,
        (
            "select 1 from ledger where id = 1002",
            "insert into ledger values (1001, 7, 1)",
        ),
        (
            "select 1 from ledger where id = 1001",
            "insert into ledger values (1002, 7, 1)",
        ),
    );
    for (reads, alice_adds, bob_adds) in [
        // Some that are not there.
        (
            "select 1 from ledger where id in (1001, 1002)",
            "insert into ledger values (1001, 7, 1)",
            "insert into ledger values (1002, 7, 1)",
        ),
        (
            "select 1 from ledger where id > 1000",
            "insert into ledger values (1001, 7, 1)",
            "insert into ledger values (1002, 7, 1)",
        ),
        // By an index that is not unique: an account without rows.
        (
            "set local enable_seqscan = off; select sum(amount) from ledger where account = 77",
            "insert into ledger values (1001, 77, 1)",
            "insert into ledger values (1002, 77, 1)",
        ),
        // A row that an update moves there, and one by COPY.
        (
            "set local enable_seqscan = off; select sum(amount) from ledger where account between 60 and 80",
            "update ledger set account = 70 where id = 1",
            "update ledger set account = 71 where id = 2",
        ),
        (
            "select sum(amount) from ledger",
            "insert into ledger values (1001, 77, 1)",
            "insert into ledger values (1002, 78, 1)",
        ),
    ] {
        skew(ledger, (reads, alice_adds), (reads, bob_adds));
    }
}

/// Rows that split the pages of an index between a look at a range and a row that comes into it.
#[test]
fn splits_of_an_index_lose_nothing() {
    let fixture = Fixture::new(
        "create table t (id int primary key, pad text); insert into t select i * 1000, repeat('x', 200) from generate_series(1, 50) i;
         create table u (id int primary key); ",
    );
    let (mut alice, mut bob, mut other) = (fixture.session(), fixture.session(), fixture.session());
    for session in [&mut alice, &mut bob] {
        query(session, "begin isolation level serializable");
    }
    query(
        &mut alice,
        "select count(*) from t where id between 20001 and 20999",
    );
    query(&mut bob, "select count(*) from u where id = 1");
    query(
        &mut other,
        "insert into t select i, 'y' from generate_series(21000, 24000) i on conflict do nothing",
    );
    query(
        &mut other,
        "insert into t select i, 'y' from generate_series(16001, 20000) i on conflict do nothing",
    );
    query(&mut alice, "insert into u values (1)");
    query(&mut alice, "commit");
    assert_eq!(
        common::run(&mut bob, "insert into t values (20500, 'z')"),
        "ERROR 40001"
    );
}

/// Transactions that touch different rows by keys do not disturb each other.
#[test]
fn different_keys_go_on() {
    let fixture = Fixture::new(DOCTORS);
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    for (session, name) in [(&mut alice, "alice"), (&mut bob, "bob")] {
        query(session, "begin isolation level serializable");
        query(session, &format!("select * from doctors where name = '{name}'"));
        query(
            session,
            &format!("update doctors set ward = 9 where name = '{name}'"),
        );
        query(
            session,
            &format!("insert into doctors values ('{name} the second', true, 3)"),
        );
    }
    assert_eq!(query(&mut alice, "commit"), "COMMIT");
    assert_eq!(query(&mut bob, "commit"), "COMMIT");
}

#[test]
fn transactions_of_other_levels_are_not_looked_at() {
    Fixture::new(DOCTORS).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level repeatable read => BEGIN
         alice: select count(*) from doctors where on_call => 3
         bob:   select count(*) from doctors where on_call => 3
         alice: update doctors set on_call = false where name = 'alice' => UPDATE 1
         bob:   update doctors set on_call = false where name = 'bob' => UPDATE 1
         alice: commit => COMMIT
         bob:   commit => COMMIT",
    );
}

#[test]
fn a_lost_update_is_one_of_snapshot_isolation() {
    Fixture::new(DOCTORS).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level serializable => BEGIN
         bob:   select ward from doctors where name = 'alice' => 1
         alice: update doctors set ward = 5 where name = 'alice' => UPDATE 1
         bob:   update doctors set ward = ward + 1 where name = 'alice' => waits
         alice: commit => COMMIT
         bob    => ERROR 40001
         bob:   rollback => ROLLBACK",
    );
}

/// A read from before ROLLBACK TO counts.
#[test]
fn marks_stay_after_rollback_to() {
    Fixture::new(DOCTORS).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level serializable => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: select on_call from doctors where name = 'bob' => t
         alice: rollback to s => ROLLBACK
         bob:   select on_call from doctors where name = 'alice' => t
         alice: update doctors set on_call = false where name = 'alice' => UPDATE 1
         bob:   update doctors set on_call = false where name = 'bob' => UPDATE 1
         bob:   commit => COMMIT
         alice: commit => ERROR 40001",
    );
}

/// A transaction that has to give up cannot go back to a savepoint and commit.
#[test]
fn a_savepoint_does_not_save_a_pivot() {
    Fixture::new(DOCTORS).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level serializable => BEGIN
         alice: select on_call from doctors where name = 'bob' => t
         bob:   select on_call from doctors where name = 'alice' => t
         bob:   update doctors set on_call = false where name = 'bob' => UPDATE 1
         bob:   commit => COMMIT
         alice: savepoint s => SAVEPOINT
         alice: update doctors set on_call = false where name = 'alice' => ERROR 40001
         alice: rollback to s => ROLLBACK
         alice: commit => ERROR 40001
         alice: select count(*) from doctors where on_call => 2",
    );
}

/// A foreign key's look for the parent is not the transaction's read; what a cascade writes is its write.
#[test]
fn foreign_keys() {
    let tables = "create table parents (id int primary key, v int);
        create table children (id int primary key, parent int references parents on delete cascade);
        create index on children (parent);
        create table log (id int primary key);
        insert into parents values (1, 0), (2, 0); insert into children values (10, 1), (20, 2)";
    Fixture::sharing_rows(tables).play(
        "alice: begin isolation level serializable => BEGIN
         bob:   begin isolation level serializable => BEGIN
         bob:   select count(*) from children where id = 11 => 0
         alice: insert into children values (11, 1) => INSERT 0 1
         bob:   update parents set v = 1 where id = 1 => UPDATE 1
         alice: commit => COMMIT
         bob:   commit => COMMIT",
    );
    // The cascade takes a row that the other has read.
    skew(
        tables,
        (
            "select * from children where id = 10",
            "insert into log values (1)",
        ),
        (
            "select * from log where id = 1",
            "delete from parents where id = 1",
        ),
    );
}

/// A refusal by a foreign key tells what is there, and the transaction goes on behind a savepoint: it has read it.
#[test]
fn an_answer_of_a_foreign_key_counts() {
    let tables = "create table parents (id int primary key);
        create table children (id int primary key, parent int references parents);
        create index on children (parent);
        create table log (id int primary key);
        insert into parents values (1); insert into children values (10, 1)";
    Fixture::new(tables).play(
        "alice: begin isolation level serializable => BEGIN
         alice: savepoint a => SAVEPOINT
         alice: insert into children values (20, 2) => ERROR 23503
         alice: rollback to a => ROLLBACK
         bob:   begin isolation level serializable => BEGIN
         bob:   select count(*) from log where id = 1 => 0
         bob:   insert into parents values (2) => INSERT 0 1
         bob:   commit => COMMIT
         alice: insert into log values (1) => ERROR 40001
         alice: rollback => ROLLBACK",
    );
    // The shared lock on the row that was found lasts until Alice's end, and Bob deletes it then.
    Fixture::sharing_rows(tables).play(
        "alice: begin isolation level serializable => BEGIN
         alice: savepoint a => SAVEPOINT
         alice: delete from parents where id = 1 => ERROR 23503
         alice: rollback to a => ROLLBACK
         bob:   begin isolation level serializable => BEGIN
         bob:   select count(*) from log where id = 1 => 0
         bob:   delete from children where id = 10 => waits
         alice: insert into log values (1) => INSERT 0 1
         alice: commit => COMMIT
         bob    => ERROR 40001
         bob:   rollback => ROLLBACK",
    );
}

/// Sequences, temporary tables and the catalog are not marked.
#[test]
fn what_is_not_marked() {
    let fixture = Fixture::new("create sequence s; create table t (id int primary key)");
    let (mut alice, mut watcher) = (fixture.session(), fixture.session());
    query(&mut alice, "create temp table private (id int primary key)");
    query(&mut alice, "begin isolation level serializable");
    query(&mut alice, "insert into private values (1)");
    query(&mut alice, "select * from private");
    query(&mut alice, "select nextval('s')");
    query(&mut alice, "select count(*) from pg_class");
    let marks = "select count(*) from pg_locks where mode = 'SIReadLock'";
    assert_eq!(query(&mut watcher, marks), "0");
    query(&mut alice, "select * from t where id = 1");
    assert_eq!(query(&mut watcher, marks), "1");
}

#[test]
fn marks_are_locks_that_others_can_list() {
    let fixture = Fixture::new(DOCTORS);
    let (mut alice, mut bob, mut watcher) = (fixture.session(), fixture.session(), fixture.session());
    query(&mut bob, "begin isolation level serializable");
    query(&mut bob, "select 1 from doctors where name = 'nobody'");
    query(&mut alice, "begin isolation level serializable");
    query(&mut alice, "select * from doctors where name = 'alice'");
    query(&mut alice, "select count(*) from doctors where on_call");
    query(&mut alice, "commit");
    let marks = "select locktype, relation::regclass::text, granted from pg_locks where mode = 'SIReadLock' order by 1, 2";
    assert_eq!(
        query(&mut watcher, marks),
        "page|doctors_pkey|t, page|doctors_pkey|t, relation|doctors|t",
        "those of a transaction that has committed stay while another runs"
    );
    query(&mut bob, "commit");
    assert_eq!(query(&mut watcher, marks), "");
}

#[test]
fn the_error_says_why() {
    let fixture = Fixture::new(DOCTORS);
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    for session in [&mut alice, &mut bob] {
        query(session, "begin isolation level serializable");
        query(session, "select * from doctors");
    }
    query(&mut alice, "delete from doctors where name = 'alice'");
    query(&mut bob, "delete from doctors where name = 'bob'");
    query(&mut alice, "commit");
    let error = bob
        .execute_simple("commit", &mut Collected::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not serialize access due to read/write dependencies among transactions (40001); Reason code: Canceled on \
         identification as a pivot, during commit attempt.; hint: The transaction might succeed if retried."
    );
}

#[test]
fn the_level_is_set_and_shown_in_each_way() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let shown = |session: &mut clearway_engine::Session| query(session, "show transaction_isolation");
    for begin in [
        "begin isolation level serializable",
        "start transaction isolation level serializable",
        "begin; set transaction isolation level serializable",
        "begin; set local transaction_isolation to 'serializable'",
    ] {
        query(&mut session, begin);
        assert_eq!(shown(&mut session), "serializable", "{begin}");
        query(&mut session, "rollback");
    }
    query(
        &mut session,
        "set session characteristics as transaction isolation level serializable",
    );
    assert_eq!(shown(&mut session), "serializable");
    query(
        &mut session,
        "set default_transaction_isolation = 'read committed'",
    );
    assert_eq!(shown(&mut session), "read committed");
    query(
        &mut session,
        "begin isolation level serializable read only deferrable",
    );
    assert_eq!(query(&mut session, "show transaction_deferrable"), "on");
    query(&mut session, "select 1");
    assert_eq!(
        common::run(&mut session, "set transaction not deferrable"),
        "ERROR 25001"
    );
}

/// Many rows: marks become coarse, and still find what they have to.
#[test]
fn many_rows() {
    let setup = "create table t (id int primary key, v int); insert into t select i, 0 from generate_series(1, 30000) i;
        create table u (id int primary key, v int); insert into u select i, 0 from generate_series(1, 30000) i";
    skew(
        setup,
        (
            "select sum(v) from t where id < 29000",
            "update u set v = 1 where id between 100 and 20000",
        ),
        (
            "select v from u where id = 19000",
            "update t set v = 1 where id = 28000",
        ),
    );
}

#[test]
fn under_other_mechanisms() {
    for assignment in [
        "snapshot=csn",
        "snapshot=scan",
        "commit_order=unordered",
        "lock_release=after-flush",
    ] {
        let mut config = config();
        config.mechanisms.set(assignment).unwrap();
        Fixture::with_config(DOCTORS, config).play(
            "alice: begin isolation level serializable => BEGIN
             bob:   begin isolation level serializable => BEGIN
             alice: select on_call from doctors where name = 'bob' => t
             bob:   select on_call from doctors where name = 'alice' => t
             alice: update doctors set on_call = false where name = 'alice' => UPDATE 1
             alice: commit => COMMIT
             bob:   update doctors set on_call = false where name = 'bob' => ERROR 40001
             bob:   rollback => ROLLBACK",
        );
    }
}

/// Both have seen that a key is missing. The second is not told of the first one's row, which it has not seen: it is to
/// try again.
#[test]
fn a_key_that_both_have_missed_is_no_duplicate() {
    let fixture = Fixture::new("create table keys (id int primary key)");
    for (look, enter) in [
        ("select * from keys", "insert into keys values (1)"),
        ("select * from keys where id = 2", "insert into keys values (2)"),
    ] {
        fixture.play(&format!(
            "alice: begin isolation level serializable => BEGIN
             bob:   begin isolation level serializable => BEGIN
             alice: {look} =>
             bob:   {look} =>
             alice: {enter} => INSERT 0 1
             bob:   {enter} => waits
             alice: commit => COMMIT
             bob    => ERROR 40001
             bob:   rollback => ROLLBACK
             bob:   begin isolation level serializable => BEGIN
             bob:   select count(*) from keys => 1
             bob:   {enter} => ERROR 23505
             bob:   rollback => ROLLBACK
             bob:   truncate keys => TRUNCATE TABLE"
        ));
    }
}
