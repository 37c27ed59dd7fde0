//! Two sessions and what they see of each other.
//!
//! | phenomenon | READ COMMITTED | REPEATABLE READ |
//! | --- | --- | --- |
//! | dirty read | never | never |
//! | non-repeatable read | possible | never |
//! | phantom | possible | never |
//! | lost update | possible when the client computes; never within one UPDATE | never: 40001 |
//! | write skew | possible | possible: this is snapshot isolation |
//!
//! SERIALIZABLE has a file of its own: `../serializable`.

#[path = "../common/mod.rs"]
mod common;

mod chains;
mod deferrable_keys;
mod foreign_keys;
mod joined_rows;
mod long_values;
mod on_conflict;
mod row_locks;
mod savepoints;
mod savepoints_random;
mod system_columns;

use common::Fixture;

const ACCOUNTS: &str = "create table accounts (id int primary key, owner text, balance int);
    insert into accounts values (1, 'alice', 100), (2, 'bob', 200)";

fn accounts() -> Fixture {
    Fixture::new(ACCOUNTS)
}

#[test]
fn dirty_reads_do_not_happen() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set balance = 0 where id = 1 => UPDATE 1
         bob:   select balance from accounts where id = 1 => 100
         alice: select balance from accounts where id = 1 => 0
         alice: rollback => ROLLBACK
         bob:   select balance from accounts where id = 1 => 100",
    );
}

#[test]
fn uncommitted_inserts_and_deletes_are_seen_by_no_other_session() {
    accounts().play(
        "alice: begin => BEGIN
         alice: insert into accounts values (3, 'carol', 300) => INSERT 0 1
         alice: delete from accounts where id = 2 => DELETE 1
         bob:   select id from accounts order by id => 1, 2
         alice: select id from accounts order by id => 1, 3
         alice: commit => COMMIT
         bob:   select id from accounts order by id => 1, 3",
    );
}

#[test]
fn read_committed_reads_what_was_committed_since() {
    accounts().play(
        "bob:   begin => BEGIN
         bob:   select balance from accounts where id = 1 => 100
         alice: update accounts set balance = 50 where id = 1 => UPDATE 1
         # A non-repeatable read.
         bob:   select balance from accounts where id = 1 => 50
         alice: insert into accounts values (3, 'carol', 300) => INSERT 0 1
         # A phantom.
         bob:   select count(*) from accounts => 3
         bob:   commit => COMMIT",
    );
}

#[test]
fn repeatable_read_does_not() {
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select balance from accounts where id = 1 => 100
         alice: update accounts set balance = 50 where id = 1 => UPDATE 1
         alice: insert into accounts values (3, 'carol', 300) => INSERT 0 1
         alice: delete from accounts where id = 2 => DELETE 1
         bob:   select balance from accounts where id = 1 => 100
         bob:   select count(*), sum(balance) from accounts => 2|300
         bob:   select id from accounts where id >= 2 order by id => 2
         bob:   commit => COMMIT
         bob:   select id, balance from accounts order by id => 1|50, 3|300",
    );
}

#[test]
fn the_snapshot_of_repeatable_read_is_taken_at_the_first_statement() {
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         alice: update accounts set balance = 50 where id = 1 => UPDATE 1
         bob:   select balance from accounts where id = 1 => 50
         bob:   commit => COMMIT",
    );
}

#[test]
fn an_update_that_waited_works_on_the_newest_row() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set balance = balance - 30 where id = 1 => UPDATE 1
         bob:   update accounts set balance = balance + 5 where id = 1 => waits
         alice: commit => COMMIT
         bob    => UPDATE 1
         bob:   select balance from accounts where id = 1 => 75",
    );
}

#[test]
fn an_update_that_waited_for_a_rollback_works_on_the_old_row() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set balance = balance - 30 where id = 1 => UPDATE 1
         bob:   update accounts set balance = balance + 5 where id = 1 => waits
         alice: rollback => ROLLBACK
         bob    => UPDATE 1
         bob:   select balance from accounts where id = 1 => 105",
    );
}

#[test]
fn where_is_evaluated_again_on_the_newest_row() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set balance = 10 where id = 1 => UPDATE 1
         bob:   update accounts set balance = balance - 100 where id = 1 and balance >= 100 => waits
         alice: commit => COMMIT
         # Not enough money any more.
         bob    => UPDATE 0
         bob:   select balance from accounts where id = 1 => 10",
    );
}

#[test]
fn a_row_whose_key_moved_away_is_left_alone() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set id = 11 where id = 1 => UPDATE 1
         bob:   delete from accounts where id = 1 => waits
         alice: commit => COMMIT
         bob    => DELETE 0
         bob:   select id from accounts order by id => 2, 11",
    );
}

#[test]
fn a_row_deleted_meanwhile_is_gone() {
    accounts().play(
        "alice: begin => BEGIN
         alice: delete from accounts where id = 1 => DELETE 1
         bob:   update accounts set balance = 0 where id = 1 => waits
         alice: commit => COMMIT
         bob    => UPDATE 0",
    );
}

#[test]
fn repeatable_read_lets_the_first_updater_win() {
    accounts().play(
        "alice: begin isolation level repeatable read => BEGIN
         bob:   begin isolation level repeatable read => BEGIN
         alice: select balance from accounts where id = 1 => 100
         bob:   select balance from accounts where id = 1 => 100
         alice: update accounts set balance = 90 where id = 1 => UPDATE 1
         bob:   update accounts set balance = 80 where id = 1 => waits
         alice: commit => COMMIT
         bob    => ERROR 40001
         bob:   select 1 => ERROR 25P02
         bob:   commit => ROLLBACK
         bob:   select balance from accounts where id = 1 => 90",
    );
}

#[test]
fn repeatable_read_also_loses_to_an_update_that_is_over() {
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from accounts => 2
         alice: update accounts set balance = 90 where id = 1 => UPDATE 1
         alice: delete from accounts where id = 2 => DELETE 1
         bob:   update accounts set balance = 80 where id = 1 => ERROR 40001
         bob:   rollback => ROLLBACK
         bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from accounts => 1
         bob:   update accounts set balance = 80 where id = 1 => UPDATE 1
         bob:   commit => COMMIT",
    );
}

#[test]
fn repeatable_read_goes_on_when_the_first_updater_rolls_back() {
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select balance from accounts where id = 1 => 100
         alice: begin => BEGIN
         alice: update accounts set balance = 90 where id = 1 => UPDATE 1
         bob:   update accounts set balance = balance + 1 where id = 1 => waits
         alice: rollback => ROLLBACK
         bob    => UPDATE 1
         bob:   commit => COMMIT
         bob:   select balance from accounts where id = 1 => 101",
    );
}

#[test]
fn a_lost_update_needs_a_client_that_computes_under_read_committed() {
    accounts().play(
        "alice: begin => BEGIN
         bob:   begin => BEGIN
         alice: select balance from accounts where id = 1 => 100
         bob:   select balance from accounts where id = 1 => 100
         alice: update accounts set balance = 110 where id = 1 => UPDATE 1
         alice: commit => COMMIT
         # Bob's 120 knows nothing of Alice's 10.
         bob:   update accounts set balance = 120 where id = 1 => UPDATE 1
         bob:   commit => COMMIT
         alice: select balance from accounts where id = 1 => 120",
    );
}

#[test]
fn select_for_update_prevents_it() {
    accounts().play(
        "alice: begin => BEGIN
         bob:   begin => BEGIN
         alice: select balance from accounts where id = 1 for update => 100
         bob:   select balance from accounts where id = 1 for update => waits
         alice: update accounts set balance = 110 where id = 1 => UPDATE 1
         alice: commit => COMMIT
         bob    => 110
         bob:   update accounts set balance = 130 where id = 1 => UPDATE 1
         bob:   commit => COMMIT
         alice: select balance from accounts where id = 1 => 130",
    );
}

#[test]
fn a_lock_alone_changes_nothing() {
    accounts().play(
        "alice: begin => BEGIN
         alice: select balance from accounts where id = 1 for update => 100
         bob:   select balance from accounts where id = 1 => 100
         bob:   update accounts set balance = 7 where id = 1 => waits
         alice: commit => COMMIT
         bob    => UPDATE 1
         carol: begin isolation level repeatable read => BEGIN
         carol: select balance from accounts where id = 2 => 200
         alice: begin => BEGIN
         alice: select balance from accounts where id = 2 for update => 200
         alice: commit => COMMIT
         # Locked, not changed: no reason for 40001.
         carol: update accounts set balance = 201 where id = 2 => UPDATE 1
         carol: commit => COMMIT",
    );
}

#[test]
fn impatient_lockers_do_not_wait() {
    accounts().play(
        "alice: begin => BEGIN
         alice: select id from accounts where id = 1 for update => 1
         bob:   select id from accounts where id = 1 for update nowait => ERROR 55P03
         bob:   select id from accounts order by id for update skip locked => 2
         bob:   select id from accounts order by id limit 1 for update skip locked => 2
         bob:   set lock_timeout = '50ms' => SET
         bob:   update accounts set balance = 0 where id = 1 => ERROR 55P03
         bob:   set lock_timeout = 0 => SET
         bob:   set statement_timeout = '50ms' => SET
         bob:   update accounts set balance = 0 where id = 1 => ERROR 57014
         alice: commit => COMMIT",
    );
}

#[test]
fn write_skew_is_possible_under_snapshot_isolation() {
    let hospital = Fixture::new(
        "create table doctors (name text primary key, on_call boolean);
         insert into doctors values ('alice', true), ('bob', true)",
    );
    hospital.play(
        "alice: begin isolation level repeatable read => BEGIN
         bob:   begin isolation level repeatable read => BEGIN
         alice: select count(*) from doctors where on_call => 2
         bob:   select count(*) from doctors where on_call => 2
         alice: update doctors set on_call = false where name = 'alice' => UPDATE 1
         bob:   update doctors set on_call = false where name = 'bob' => UPDATE 1
         alice: commit => COMMIT
         bob:   commit => COMMIT
         # Each saw the other on call. SERIALIZABLE prevents it.
         bob:   select count(*) from doctors where on_call => 0",
    );
}

#[test]
fn a_deadlock_costs_one_of_the_two_its_transaction() {
    let fixture = accounts();
    let crosswise = |name: &'static str, first: i32, second: i32, meet: &std::sync::Barrier| {
        let mut session = fixture.session();
        common::query(&mut session, "begin");
        common::query(
            &mut session,
            &format!("update accounts set owner = '{name}' where id = {first}"),
        );
        meet.wait();
        let result = common::run(
            &mut session,
            &format!("update accounts set owner = '{name}' where id = {second}"),
        );
        let end = common::run(&mut session, "commit");
        (result, end)
    };
    let meet = std::sync::Barrier::new(2);
    let (alice, bob) = std::thread::scope(|scope| {
        let alice = scope.spawn(|| crosswise("alice", 1, 2, &meet));
        let bob = scope.spawn(|| crosswise("bob", 2, 1, &meet));
        (alice.join().unwrap(), bob.join().unwrap())
    });
    let victim = ("ERROR 40P01".to_owned(), "ROLLBACK".to_owned());
    let survivor = ("UPDATE 1".to_owned(), "COMMIT".to_owned());
    let name = if alice == victim { "bob" } else { "alice" };
    assert!([(victim.clone(), survivor.clone()), (survivor, victim)].contains(&(alice, bob)));
    let owners = common::query(&mut fixture.session(), "select owner from accounts order by id");
    assert_eq!(owners, format!("{name}, {name}"));
}

#[test]
fn a_unique_key_waits_for_the_transaction_that_inserts_it() {
    accounts().play(
        "alice: begin => BEGIN
         alice: insert into accounts values (3, 'alice', 0) => INSERT 0 1
         bob:   insert into accounts values (3, 'bob', 0) => waits
         alice: commit => COMMIT
         bob    => ERROR 23505
         alice: begin => BEGIN
         alice: insert into accounts values (4, 'alice', 0) => INSERT 0 1
         bob:   insert into accounts values (4, 'bob', 0) => waits
         alice: rollback => ROLLBACK
         bob    => INSERT 0 1
         alice: select owner from accounts where id = 4 => bob",
    );
}

#[test]
fn a_key_is_free_again_once_its_row_is_surely_deleted() {
    accounts().play(
        "alice: begin => BEGIN
         alice: delete from accounts where id = 1 => DELETE 1
         bob:   insert into accounts values (1, 'bob', 0) => waits
         alice: commit => COMMIT
         bob    => INSERT 0 1
         bob:   select owner from accounts where id = 1 => bob",
    );
}

#[test]
fn sessions_that_wait_for_a_row_get_it_in_turn() {
    accounts().play(
        "alice: begin => BEGIN
         alice: update accounts set owner = owner || 'a' where id = 1 => UPDATE 1
         bob:   update accounts set owner = owner || 'b' where id = 1 => waits
         carol: update accounts set owner = owner || 'c' where id = 1 => waits
         dave:  update accounts set owner = owner || 'd' where id = 1 => waits
         alice: commit => COMMIT
         bob    => UPDATE 1
         carol  => UPDATE 1
         dave   => UPDATE 1
         alice: select owner from accounts where id = 1 => aliceabcd",
    );
}

#[test]
fn a_statement_does_not_see_its_own_changes() {
    accounts().play(
        "alice: insert into accounts select id + 10, owner, balance from accounts => INSERT 0 2
         alice: update accounts set id = id + 100 => UPDATE 4
         alice: select id from accounts order by id => 101, 102, 111, 112",
    );
}

#[test]
fn definitions_are_transactional() {
    accounts().play(
        "alice: begin => BEGIN
         alice: create table notes (id serial primary key, text text) => CREATE TABLE
         alice: insert into notes (text) values ('mine'), ('alone') => INSERT 0 2
         alice: select id, text from notes order by id => 1|mine, 2|alone
         bob:   select * from notes => ERROR 42P01
         alice: rollback => ROLLBACK
         alice: select * from notes => ERROR 42P01
         alice: begin => BEGIN
         alice: drop table accounts => DROP TABLE
         alice: create table accounts (id int) => CREATE TABLE
         alice: select count(*) from accounts => 0
         bob:   select balance from accounts where id = 1 => waits
         alice: rollback => ROLLBACK
         bob    => 100",
    );
}

#[test]
fn a_dropped_table_is_gone_for_sessions_that_waited() {
    accounts().play(
        "alice: begin => BEGIN
         alice: drop table accounts => DROP TABLE
         bob:   select balance from accounts where id = 1 => waits
         alice: commit => COMMIT
         bob    => ERROR 42P01",
    );
}

#[test]
fn truncate_waits_for_readers_and_is_revocable() {
    accounts().play(
        "bob:   begin => BEGIN
         bob:   select count(*) from accounts => 2
         alice: begin => BEGIN
         alice: truncate accounts => waits
         bob:   commit => COMMIT
         alice  => TRUNCATE TABLE
         alice: insert into accounts values (1, 'new', 1) => INSERT 0 1
         alice: select count(*) from accounts => 1
         alice: rollback => ROLLBACK
         bob:   select count(*) from accounts => 2",
    );
}

#[test]
fn an_old_snapshot_is_turned_away_from_a_truncated_table() {
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select 1 => 1
         alice: truncate accounts => TRUNCATE TABLE
         bob:   select count(*) from accounts => ERROR 40001
         bob:   rollback => ROLLBACK
         bob:   select count(*) from accounts => 0",
    );
}

#[test]
fn an_index_made_while_others_wait_has_their_rows() {
    accounts().play(
        "alice: begin => BEGIN
         alice: create unique index by_owner on accounts (owner) => CREATE INDEX
         bob:   insert into accounts values (3, 'alice', 0) => waits
         carol: select count(*) from accounts => 2
         alice: commit => COMMIT
         bob    => ERROR 23505
         bob:   insert into accounts values (3, 'carol', 0) => INSERT 0 1
         bob:   select id from accounts where owner = 'carol' => 3",
    );
}

#[test]
fn a_session_that_vanishes_frees_its_locks() {
    let fixture = accounts();
    let mut alice = fixture.session();
    common::query(&mut alice, "begin");
    common::query(&mut alice, "update accounts set balance = 0 where id = 1");
    let mut bob = fixture.session();
    let waiting = std::thread::spawn(move || {
        common::run(&mut bob, "update accounts set balance = balance + 1 where id = 1")
    });
    std::thread::sleep(std::time::Duration::from_millis(30));
    drop(alice);
    assert_eq!(waiting.join().unwrap(), "UPDATE 1");
    assert_eq!(
        common::query(
            &mut fixture.session(),
            "select balance from accounts where id = 1"
        ),
        "101"
    );
}

#[test]
fn a_cancel_request_ends_a_wait_and_a_loop() {
    let fixture = accounts();
    let mut alice = fixture.session();
    common::query(&mut alice, "begin");
    common::query(&mut alice, "update accounts set balance = 0 where id = 1");
    for sql in [
        "update accounts set balance = 1 where id = 1",
        "select count(*) from generate_series(1, 1000000000000)",
    ] {
        let mut bob = fixture.session();
        let (process_id, secret) = bob.cancel_key();
        let running = std::thread::spawn(move || {
            let shown = common::run(&mut bob, sql);
            (bob, shown)
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(
            !fixture.engine.cancel(process_id, secret.wrapping_add(1)),
            "a wrong secret"
        );
        assert!(fixture.engine.cancel(process_id, secret));
        let (mut bob, shown) = running.join().unwrap();
        assert_eq!(shown, "ERROR 57014");
        assert_eq!(common::query(&mut bob, "select 1"), "1");
    }
}

#[test]
fn an_old_snapshot_uses_no_index_that_lacks_its_versions() {
    Fixture::new("create table t (id int primary key, x int); insert into t values (1, 1)").play(
        "alice: begin isolation level repeatable read => BEGIN
         alice: select x from t => 1
         bob:   begin => BEGIN
         bob:   update t set x = 2 where id = 1 => UPDATE 1
         bob:   create index t_x on t (x) => CREATE INDEX
         bob:   commit => COMMIT
         # A definition of her own, which is no reason to trust Bob's index: it leads from 2 to her row with 1.
         alice: create table other (id int) => CREATE TABLE
         alice: select id, x from t where x = 2 => ERROR 40001
         alice: rollback => ROLLBACK
         alice: select id, x from t where x = 2 => 1|2",
    );
}

#[test]
fn own_definitions_are_no_obstacle_to_repeatable_read() {
    Fixture::new("create table t (id int primary key, x int); insert into t values (1, 1)").play(
        "alice: begin isolation level repeatable read => BEGIN
         alice: select x from t => 1
         alice: create index t_x on t (x) => CREATE INDEX
         alice: select id from t where x = 1 => 1
         alice: create table other (id int) => CREATE TABLE
         alice: insert into other values (1) => INSERT 0 1
         alice: truncate other => TRUNCATE TABLE
         alice: select count(*) from other => 0
         alice: select id from t where x = 1 => 1
         alice: commit => COMMIT",
    );
}

#[test]
fn read_uncommitted_reads_what_is_committed() {
    Fixture::new("create table t (a int); insert into t values (1)").play(
        "
        alice: begin => BEGIN
        alice: update t set a = 2 => UPDATE 1
        bob:   begin isolation level read uncommitted => BEGIN
        bob:   select a from t => 1
        bob:   update t set a = a + 10 => waits
        alice: commit => COMMIT
        bob    => UPDATE 1
        bob:   select a from t => 12
        bob:   commit => COMMIT
        ",
    );
}
