//! Transactions that only read: the anomaly that they can make visible, and safe snapshots.

use crate::common::{Fixture, query};

/// A batch of receipts is closed while a receipt of it is on its way, and a report is made of the closed batch.
const BATCHES: &str = "create table control (id int primary key, batch int);
    create table receipts (id int primary key, batch int, amount int);
    create index on receipts (batch);
    insert into control values (1, 1)";

#[test]
fn a_report_of_a_closed_batch_stays_true() {
    Fixture::new(BATCHES).play(
        "clerk:   begin isolation level serializable => BEGIN
         clerk:   select batch from control where id = 1 => 1
         closer:  begin isolation level serializable => BEGIN
         closer:  update control set batch = 2 where id = 1 => UPDATE 1
         closer:  commit => COMMIT
         report:  begin isolation level serializable read only => BEGIN
         report:  select batch from control where id = 1 => 2
         report:  select sum(amount) from receipts where batch = 1 => 
         report:  commit => COMMIT
         clerk:   insert into receipts values (1, 1, 100) => ERROR 40001
         clerk:   rollback => ROLLBACK",
    );
}

/// A report that began before the batch was closed is no harm.
#[test]
fn an_older_report_lets_the_clerk_go_on() {
    Fixture::new(BATCHES).play(
        "clerk:   begin isolation level serializable => BEGIN
         clerk:   select batch from control where id = 1 => 1
         report:  begin isolation level serializable read only => BEGIN
         report:  select batch from control where id = 1 => 1
         closer:  begin isolation level serializable => BEGIN
         closer:  update control set batch = 2 where id = 1 => UPDATE 1
         closer:  commit => COMMIT
         report:  select sum(amount) from receipts where batch = 1 => 
         report:  commit => COMMIT
         clerk:   insert into receipts values (1, 1, 100) => INSERT 0 1
         clerk:   commit => COMMIT",
    );
}

#[test]
fn a_deferrable_one_waits_for_a_safe_snapshot() {
    let fixture = Fixture::new(BATCHES);
    fixture.play(
        "clerk:   begin isolation level serializable => BEGIN
         clerk:   select batch from control where id = 1 => 1
         closer:  begin isolation level serializable => BEGIN
         closer:  update control set batch = 2 where id = 1 => UPDATE 1
         closer:  commit => COMMIT
         report:  begin isolation level serializable read only deferrable => BEGIN
         report:  select batch from control where id = 1 => waits for a safe snapshot
         clerk:   insert into receipts values (1, 1, 100) => INSERT 0 1
         clerk:   select count(*) from pg_stat_activity where cardinality(pg_safe_snapshot_blocking_pids(pid)) = 1 => 1
         clerk:   commit => COMMIT
         report   => 2
         # The first snapshot was not safe; the second one shows the receipt.
         report:  select sum(amount) from receipts where batch = 1 => 100
         report:  select count(*) from pg_locks where mode = 'SIReadLock' => 0
         report:  commit => COMMIT",
    );
}

#[test]
fn the_wait_for_a_safe_snapshot_can_be_cancelled() {
    Fixture::new(BATCHES).play(
        "clerk:   begin isolation level serializable => BEGIN
         clerk:   insert into receipts values (1, 1, 100) => INSERT 0 1
         report:  begin isolation level serializable read only deferrable => BEGIN
         report:  select batch from control where id = 1 => waits for a safe snapshot
         cancel: report
         report   => ERROR 57014
         report:  rollback => ROLLBACK
         report:  begin isolation level serializable read only deferrable => BEGIN
         report:  set statement_timeout = '50ms' => SET
         report:  select batch from control where id = 1 => ERROR 57014
         report:  rollback => ROLLBACK
         clerk:   rollback => ROLLBACK",
    );
}

/// Behind a savepoint the transaction goes on, and waits for another snapshot: the first one was not safe.
#[test]
fn a_wait_that_was_cancelled_leaves_no_snapshot() {
    Fixture::new(BATCHES).play(
        "clerk:   begin isolation level serializable => BEGIN
         clerk:   select batch from control where id = 1 => 1
         closer:  begin isolation level serializable => BEGIN
         closer:  update control set batch = 2 where id = 1 => UPDATE 1
         closer:  commit => COMMIT
         report:  begin isolation level serializable read only deferrable => BEGIN
         report:  savepoint a => SAVEPOINT
         report:  select batch from control where id = 1 => waits for a safe snapshot
         cancel: report
         report   => ERROR 57014
         report:  rollback to a => ROLLBACK
         report:  select batch from control where id = 1 => waits for a safe snapshot
         clerk:   insert into receipts values (1, 1, 100) => INSERT 0 1
         clerk:   commit => COMMIT
         report   => 2
         report:  select sum(amount) from receipts where batch = 1 => 100
         report:  commit => COMMIT",
    );
}

/// READ ONLY ends with the savepoint behind which it was set; what was read until then counts.
#[test]
fn a_transaction_that_was_read_only_for_a_while_writes() {
    Fixture::new(BATCHES).play(
        "alice: begin isolation level serializable => BEGIN
         alice: savepoint a => SAVEPOINT
         alice: set transaction read only => SET
         alice: select count(*) from receipts where id = 1 => 0
         bob:   begin isolation level serializable => BEGIN
         bob:   select count(*) from control where id = 7 => 0
         bob:   insert into receipts values (1, 1, 100) => INSERT 0 1
         bob:   commit => COMMIT
         alice: rollback to a => ROLLBACK
         alice: insert into control values (7, 7) => ERROR 40001
         alice: rollback => ROLLBACK",
    );
}

/// Those that write nothing, and a snapshot that is known to be safe, leave no marks.
#[test]
fn a_read_only_transaction_alone_marks_nothing() {
    let fixture = Fixture::new(BATCHES);
    let (mut report, mut watcher) = (fixture.session(), fixture.session());
    query(&mut report, "begin isolation level serializable read only");
    query(&mut report, "select * from control");
    query(&mut report, "select * from control");
    let marks = "select count(*) from pg_locks where mode = 'SIReadLock'";
    assert_eq!(query(&mut watcher, marks), "0");
}
