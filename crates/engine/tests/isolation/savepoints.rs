//! Savepoints: what a transaction and the others see after it has gone back to one, and who goes on.

use crate::common::{Fixture, query};
use crate::{ACCOUNTS, accounts};

/// Names, and what RELEASE and ROLLBACK TO leave of them.
#[test]
fn savepoints_are_a_stack_of_names() {
    accounts().play(
        "alice: begin => BEGIN
         alice: savepoint a => SAVEPOINT
         alice: update accounts set balance = 1 where id = 1 => UPDATE 1
         alice: savepoint b => SAVEPOINT
         alice: update accounts set balance = 2 where id = 1 => UPDATE 1
         alice: savepoint a => SAVEPOINT
         alice: update accounts set balance = 3 where id = 1 => UPDATE 1
         # The newest of the two.
         alice: rollback to a => ROLLBACK
         alice: select balance from accounts where id = 1 => 2
         alice: release a => RELEASE
         alice: rollback to b => ROLLBACK
         alice: select balance from accounts where id = 1 => 1
         alice: release a => RELEASE
         alice: rollback to b => ERROR 3B001
         alice: rollback to a => ERROR 3B001
         alice: rollback => ROLLBACK
         alice: select balance from accounts where id = 1 => 100",
    );
}

/// A failed block takes ROLLBACK TO, and lives again.
#[test]
fn a_failed_block_goes_back() {
    accounts().play(
        "alice: begin => BEGIN
         alice: insert into accounts values (3, 'carol', 300) => INSERT 0 1
         alice: savepoint a => SAVEPOINT
         alice: insert into accounts values (4, 'dan', 400), (3, 'carol', 300) => ERROR 23505
         alice: select 1 => ERROR 25P02
         alice: savepoint b => ERROR 25P02
         alice: release a => ERROR 25P02
         alice: rollback to b => ERROR 3B001
         alice: rollback to a => ROLLBACK
         alice: select count(*) from accounts => 3
         alice: savepoint a => SAVEPOINT
         alice: select 1 / 0 => ERROR 22012
         alice: commit => ROLLBACK
         alice: select count(*) from accounts => 2
         alice: savepoint a => ERROR 25P01
         alice: release a => ERROR 25P01
         alice: rollback to a => ERROR 25P01",
    );
}

/// Others wait for a row that is changed or locked behind a savepoint, and go on when that is taken back; also by an
/// error, before the client asks for it. What was locked before stays so.
#[test]
fn those_who_wait_for_a_row_go_on() {
    for change in [
        "update accounts set balance = 1 where id = 1 => UPDATE 1",
        "delete from accounts where id = 1 => DELETE 1",
        "select id from accounts where id = 1 for update => 1",
        "update accounts set id = 9 where id = 1 => UPDATE 1",
    ] {
        for (back, shown) in [("rollback to a", "ROLLBACK"), ("select 1 / 0", "ERROR 22012")] {
            accounts().play(&format!(
                "alice: begin => BEGIN
                 alice: select id from accounts where id = 2 for update => 2
                 alice: savepoint a => SAVEPOINT
                 alice: {change}
                 alice: update accounts set balance = 7 where id = 2 => UPDATE 1
                 bob:   update accounts set balance = balance + 5 where id = 1 => waits
                 carol: update accounts set balance = balance + 5 where id = 2 => waits
                 alice: {back} => {shown}
                 bob    => UPDATE 1
                 bob:   update accounts set balance = balance + 5 where id = 1 => UPDATE 1
                 carol  => waits
                 alice: rollback to a => ROLLBACK
                 alice: select balance from accounts where id = 2 => 200
                 alice: commit => COMMIT
                 carol  => UPDATE 1
                 bob:   select id, balance from accounts order by id => 1|110, 2|205"
            ));
        }
    }
}

/// A key that was taken or freed behind a savepoint: others wait for it, and find it as it was.
#[test]
fn those_who_wait_for_a_key_go_on() {
    accounts().play(
        "alice: begin => BEGIN
         alice: insert into accounts values (3, 'alice', 300) => INSERT 0 1
         alice: savepoint a => SAVEPOINT
         alice: insert into accounts values (4, 'alice', 400) => INSERT 0 1
         # Its own row, and one that was there: neither key is free while they may come back.
         alice: delete from accounts where id in (1, 3) => DELETE 2
         bob:   insert into accounts values (4, 'bob', 4) => waits
         carol: insert into accounts values (3, 'carol', 3) => waits
         dan:   insert into accounts values (1, 'dan', 1) => waits
         alice: rollback to a => ROLLBACK
         bob    => INSERT 0 1
         dan    => ERROR 23505
         carol  => waits
         alice: commit => COMMIT
         carol  => ERROR 23505
         bob:   select id, owner from accounts order by id => 1|alice, 2|bob, 3|alice, 4|bob",
    );
}

/// Locks of tables that were taken behind a savepoint go, those from before stay.
#[test]
fn locks_of_tables_are_released() {
    let fixture = Fixture::new(
        "create table a (x int); create table b (x int); insert into a values (1); insert into b values (1)",
    );
    fixture.play(
        "alice: begin => BEGIN
         alice: insert into a values (2) => INSERT 0 1
         alice: savepoint s => SAVEPOINT
         alice: insert into b values (2) => INSERT 0 1
         alice: lock table a in share mode => LOCK TABLE
         bob:   truncate b => waits
         carol: truncate a => waits
         alice: rollback to s => ROLLBACK
         bob    => TRUNCATE TABLE
         alice: select count(*) from b => 0
         alice: commit => COMMIT
         carol  => TRUNCATE TABLE",
    );
}

/// The lock of the definitions is one of them. Another session's table is there for the transaction afterwards.
#[test]
fn definitions_are_taken_back() {
    accounts().play(
        "alice: begin => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: create table notes (id serial primary key, t text) => CREATE TABLE
         alice: insert into notes (t) values ('a') => INSERT 0 1
         alice: drop table accounts => DROP TABLE
         bob:   create table notes (x int) => waits
         alice: rollback to s => ROLLBACK
         bob    => CREATE TABLE
         bob:   insert into notes values (7) => INSERT 0 1
         alice: select * from notes => 7
         alice: select count(*) from accounts => 2
         alice: create index on notes (x) => CREATE INDEX
         alice: savepoint t => SAVEPOINT
         alice: alter table notes add column y int default 5 => ALTER TABLE
         alice: truncate accounts => TRUNCATE TABLE
         alice: insert into accounts values (9, 'x', 9) => INSERT 0 1
         alice: select * from notes => 7|5
         alice: rollback to t => ROLLBACK
         alice: insert into notes values (8) => INSERT 0 1
         alice: commit => COMMIT
         bob:   select * from notes order by x => 7, 8
         bob:   select id from accounts order by id => 1, 2",
    );
}

/// REPEATABLE READ keeps its snapshot, and meets what others have committed as before.
#[test]
fn repeatable_read_keeps_its_snapshot() {
    accounts().play(
        "alice: begin isolation level repeatable read => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: select balance from accounts where id = 1 => 100
         bob:   update accounts set balance = 500 where id = 1 => UPDATE 1
         alice: update accounts set balance = 1 where id = 1 => ERROR 40001
         alice: rollback to s => ROLLBACK
         alice: select balance from accounts where id = 1 => 100
         alice: update accounts set balance = 1 where id = 2 => UPDATE 1
         alice: rollback to s => ROLLBACK
         alice: update accounts set balance = balance + 1 where id = 2 => UPDATE 1
         alice: select balance from accounts order by id => 100, 201
         alice: commit => COMMIT
         bob:   select balance from accounts order by id => 500, 201",
    );
}

/// A deadlock costs what was done since the newest savepoint; the other goes on at once.
#[test]
fn a_deadlock_costs_the_newest_savepoint() {
    accounts().play(
        "alice: begin => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: update accounts set balance = 1 where id = 1 => UPDATE 1
         bob:   set deadlock_timeout = '1h' => SET
         bob:   begin => BEGIN
         bob:   update accounts set balance = 2 where id = 2 => UPDATE 1
         bob:   update accounts set balance = 2 where id = 1 => waits
         alice: update accounts set balance = 1 where id = 2 => ERROR 40P01
         bob    => UPDATE 1
         bob:   commit => COMMIT
         alice: rollback to s => ROLLBACK
         alice: update accounts set balance = balance + 1 => UPDATE 2
         alice: commit => COMMIT
         bob:   select balance from accounts order by id => 3, 3",
    );
}

/// Ten thousand savepoints inside each other, each with a row: the way back is by one, by many, and by an error.
#[test]
fn savepoints_inside_each_other() {
    let fixture = Fixture::new("create table t (x int primary key)");
    let mut session = fixture.session();
    query(&mut session, "begin");
    for number in 0..10_000 {
        query(&mut session, &format!("savepoint s{number}"));
        query(&mut session, &format!("insert into t values ({number})"));
    }
    let count = |session: &mut _, expected: u32| {
        assert_eq!(query(session, "select count(*) from t"), expected.to_string());
    };
    crate::common::error(&mut session, "insert into t values (0)");
    query(&mut session, "rollback to s9999");
    count(&mut session, 9_999);
    query(&mut session, "rollback to s5000");
    count(&mut session, 5_000);
    query(&mut session, "release s2500");
    count(&mut session, 5_000);
    query(&mut session, "rollback to s1000");
    count(&mut session, 1_000);
    query(&mut session, "commit");
    count(&mut fixture.session(), 1_000);
}

/// More changes than `work_mem` has room for are taken back from a temporary file.
#[test]
fn many_changes_are_taken_back() {
    let fixture = Fixture::new("create table t (x int primary key, y int)");
    let mut session = fixture.session();
    for sql in [
        "insert into t select g, 0 from generate_series(1, 20000) g",
        "set work_mem = '64kB'",
        "begin",
        "update t set y = 1 where x <= 10",
        "savepoint s",
        "update t set y = y + 1",
        "delete from t where x % 3 = 0",
        "savepoint inside",
        "insert into t select g, 5 from generate_series(20001, 30000) g",
        "update t set x = -x",
        "rollback to s",
    ] {
        query(&mut session, sql);
    }
    let sums = "select count(*), sum(x), sum(y), min(x) from t";
    assert_eq!(query(&mut session, sums), "20000|200010000|10|1");
    query(&mut session, "commit");
    query(&mut session, "vacuum t");
    assert_eq!(query(&mut session, sums), "20000|200010000|10|1");
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

/// A lock from before the savepoint is what it was, not what it has become since.
#[test]
fn locks_of_rows_come_back_in_their_strength() {
    for stronger in [
        "select id from accounts where id = 1 for update => 1",
        "update accounts set id = 9 where id = 1 => UPDATE 1",
        "delete from accounts where id = 1 => DELETE 1",
    ] {
        Fixture::sharing_rows(ACCOUNTS).play(&format!(
            "alice: begin => BEGIN
             alice: select id from accounts where id = 1 for no key update => 1
             alice: savepoint s => SAVEPOINT
             alice: {stronger}
             bob:   select id from accounts where id = 1 for key share => waits
             alice: rollback to s => ROLLBACK
             bob    => 1
             carol: update accounts set balance = 5 where id = 1 => waits
             alice: commit => COMMIT
             carol  => UPDATE 1"
        ));
    }
}

/// A row that is shared behind a savepoint is free again, and one that waits for it goes on; one that was shared before stays
/// shared, in the strength that it was.
#[test]
fn shared_locks_are_taken_back() {
    Fixture::sharing_rows(ACCOUNTS).play(
        "alice: begin => BEGIN
         alice: select id from accounts where id = 2 for key share => 2
         alice: savepoint s => SAVEPOINT
         alice: select id from accounts where id in (1, 2) order by id for share => 1, 2
         bob:   update accounts set balance = 5 where id = 1 => waits
         carol: update accounts set balance = 6 where id = 2 => waits
         alice: rollback to s => ROLLBACK
         bob    => UPDATE 1
         carol  => UPDATE 1
         # Carol's version of the row is Alice's too.
         carol: delete from accounts where id = 2 => waits
         alice: commit => COMMIT
         carol  => DELETE 1",
    );
}

/// A foreign key's lock behind a savepoint goes with the row that it was for, and one from before stays.
#[test]
fn locks_of_foreign_keys_are_taken_back() {
    Fixture::sharing_rows(
        "create table p (id int primary key); create table c (p int references p); insert into p values (1), (2)",
    )
    .play(
        "alice: begin => BEGIN
         alice: insert into c values (1) => INSERT 0 1
         alice: savepoint s => SAVEPOINT
         alice: insert into c values (1), (2) => INSERT 0 2
         bob:   delete from p where id = 2 => waits
         alice: rollback to s => ROLLBACK
         bob    => DELETE 1
         bob:   delete from p where id = 1 => waits
         alice: commit => COMMIT
         bob    => ERROR 23503",
    );
}

/// Checks that wait for the commit: those of rows that are taken back are forgotten, those that passed by what is taken back
/// come again, and so does the mode of SET CONSTRAINTS.
#[test]
fn deferred_constraints_are_taken_back() {
    let fixture = Fixture::new(
        "create table p (id int primary key);
         create table c (id int primary key, p int references p deferrable initially deferred)",
    );
    fixture.play(
        "alice: begin => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: insert into c values (1, 7) => INSERT 0 1
         alice: rollback to s => ROLLBACK
         alice: commit => COMMIT
         alice: begin => BEGIN
         alice: insert into c values (1, 7) => INSERT 0 1
         alice: savepoint s => SAVEPOINT
         alice: insert into p values (7) => INSERT 0 1
         alice: set constraints all immediate => SET CONSTRAINTS
         alice: rollback to s => ROLLBACK
         alice: commit => ERROR 23503
         alice: begin => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: set constraints all immediate => SET CONSTRAINTS
         alice: insert into c values (1, 7) => ERROR 23503
         alice: rollback to s => ROLLBACK
         alice: insert into c values (1, 7) => INSERT 0 1
         alice: insert into p values (7) => INSERT 0 1
         alice: commit => COMMIT
         alice: select count(*) from c => 1",
    );
}
