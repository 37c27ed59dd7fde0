//! Two sessions and what they see of each other.
//!
//! | phenomenon | READ COMMITTED | REPEATABLE READ |
//! | --- | --- | --- |
//! | dirty read | never | never |
//! | non-repeatable read | possible | never |
//! | phantom | possible | never |
//! | lost update | possible when the client computes; never within one UPDATE | never: 40001 |
//! | write skew | possible | possible: this is snapshot isolation |

#[path = "../common/mod.rs"]
mod common;

mod foreign_keys;
mod on_conflict;
mod row_locks;
mod savepoints;
mod savepoints_random;

use common::{Fixture, config};

const ACCOUNTS: &str = "create table accounts (id int primary key, owner text, balance int);
    insert into accounts values (1, 'alice', 100), (2, 'bob', 200)";

fn accounts() -> Fixture {
    Fixture::new(ACCOUNTS)
}

/// A database in which transactions share rows, whatever the environment chooses.
fn sharing(setup: &str) -> Fixture {
    let mut config = config();
    config.mechanisms.set("row_locks=shared").unwrap();
    Fixture::with_config(setup, config)
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

fn accounts_with_limits() -> Fixture {
    Fixture::new(
        "create table accounts (id int primary key, owner text, balance int);
         insert into accounts values (1, 'alice', 100), (2, 'bob', 200);
         create table limits (owner text, least int);
         insert into limits values ('alice', 50), ('bob', 50)",
    )
}

/// UPDATE … FROM, DELETE … USING and those with a query in WHERE: the newest row stands beside the same partner, and all
/// conditions are looked at again.
#[test]
fn joined_rows_are_looked_at_again_on_the_newest_version() {
    for (statement, fits, does_not) in [
        (
            "update accounts set balance = balance + 1 from limits where limits.owner = accounts.owner and balance > least",
            "UPDATE 2",
            "UPDATE 1",
        ),
        (
            "update accounts set balance = balance + 1 where balance > (select min(least) from limits)",
            "UPDATE 2",
            "UPDATE 1",
        ),
        (
            "delete from accounts using limits where limits.owner = accounts.owner and balance > least",
            "DELETE 2",
            "DELETE 1",
        ),
        (
            "delete from accounts where balance > (select min(least) from limits)",
            "DELETE 2",
            "DELETE 1",
        ),
    ] {
        for (balance, tag) in [(70, fits), (10, does_not)] {
            let row = match (tag, balance) {
                ("UPDATE 2", _) => "71",
                ("DELETE 2", _) => "",
                _ => "10",
            };
            accounts_with_limits().play(&format!(
                "alice: begin => BEGIN
                 alice: update accounts set balance = {balance} where id = 1 => UPDATE 1
                 bob:   {statement} => waits
                 alice: commit => COMMIT
                 bob    => {tag}
                 bob:   select balance from accounts where id = 1 => {row}"
            ));
        }
        accounts_with_limits().play(&format!(
            "bob:   begin isolation level repeatable read => BEGIN
             bob:   select balance from accounts where id = 2 => 200
             alice: update accounts set balance = 70 where id = 1 => UPDATE 1
             bob:   {statement} => ERROR 40001
             bob:   rollback => ROLLBACK"
        ));
    }
}

/// A row is changed once, however many partners it has, and by the first of them.
#[test]
fn a_row_with_several_partners_is_changed_once() {
    accounts_with_limits().play(
        "alice: insert into limits values ('alice', 60), ('alice', 70) => INSERT 0 2
         alice: update accounts set balance = balance + 1 from limits where limits.owner = accounts.owner => UPDATE 2
         alice: select balance from accounts order by id => 101, 201
         alice: delete from accounts using limits where limits.owner = accounts.owner => DELETE 2",
    );
}

/// MERGE chooses its WHEN again on the newest version, or finds the row not matched any more.
#[test]
fn merge_chooses_again_on_the_newest_version() {
    let merge = "merge into accounts a using limits l on l.owner = a.owner and a.balance > l.least \
         when matched and balance < 90 then delete \
         when matched then update set balance = a.balance + 1 \
         when not matched then insert values (l.least, l.owner, 0)";
    for (alice, row) in [
        // Another WHEN fits.
        ("update accounts set balance = 70 where id = 1", "2|201"),
        // The same one does, with the newest row.
        ("update accounts set balance = 300 where id = 1", "1|301, 2|201"),
        // ON does not hold.
        (
            "update accounts set balance = 10 where id = 1",
            "1|10, 2|201, 50|0",
        ),
        ("delete from accounts where id = 1", "2|201, 50|0"),
    ] {
        let tag = alice.split(' ').next().unwrap_or_default().to_uppercase();
        accounts_with_limits().play(&format!(
            "alice: begin => BEGIN
             alice: {alice} => {tag} 1
             bob:   {merge} => waits
             alice: commit => COMMIT
             bob    => MERGE 2
             bob:   select id, balance from accounts order by id => {row}"
        ));
        accounts_with_limits().play(&format!(
            "bob:   begin isolation level repeatable read => BEGIN
             bob:   select balance from accounts where id = 2 => 200
             alice: {alice} => {tag} 1
             bob:   {merge} => ERROR 40001
             bob:   rollback => ROLLBACK"
        ));
        accounts_with_limits().play(&format!(
            "alice: begin => BEGIN
             alice: {alice} => {tag} 1
             bob:   {merge} => waits
             alice: rollback => ROLLBACK
             bob    => MERGE 2
             bob:   select id, balance from accounts order by id => 1|101, 2|201"
        ));
    }
}

/// The second row of the source finds the row changed by this statement, behind the version that another transaction made.
#[test]
fn merge_finds_its_own_change_behind_another_transactions() {
    accounts_with_limits().play(
        "alice: insert into limits values ('alice', 60) => INSERT 0 1
         alice: begin => BEGIN
         alice: update accounts set balance = 300 where id = 1 => UPDATE 1
         bob:   merge into accounts a using limits l on l.owner = a.owner when matched then update set balance = 0 => waits
         alice: commit => COMMIT
         bob    => ERROR 21000
         bob:   select id, balance from accounts order by id => 1|300, 2|200",
    );
}

/// FOR UPDATE over a join: the newest version stands beside the same partner, and ON and WHERE are looked at again.
#[test]
fn locked_rows_of_a_join_are_looked_at_again() {
    let from = "accounts a join limits l on l.owner = a.owner and a.balance > l.least";
    let left = "accounts a left join limits l on l.owner = a.owner and a.balance > l.least";
    let within = "(select * from accounts) a, (select * from limits) l where l.owner = a.owner and a.balance > l.least";
    let nested =
        "accounts a, limits l where l.owner = a.owner and a.balance > (select min(least) from limits)";
    for (query, alice, rows) in [
        (
            from,
            "update accounts set balance = 70 where id = 1",
            "alice|70|50, bob|200|50",
        ),
        (
            from,
            "update accounts set balance = 10 where id = 1",
            "bob|200|50",
        ),
        (
            from,
            "update limits set least = 60 where owner = 'alice'",
            "alice|100|60, bob|200|50",
        ),
        (
            from,
            "update limits set least = 160 where owner = 'alice'",
            "bob|200|50",
        ),
        (from, "delete from limits where owner = 'alice'", "bob|200|50"),
        (
            left,
            "update accounts set balance = 10 where id = 1",
            "alice|10|, bob|200|50",
        ),
        (
            within,
            "update accounts set balance = 70 where id = 1",
            "alice|70|50, bob|200|50",
        ),
        (
            within,
            "update limits set least = 160 where owner = 'alice'",
            "bob|200|50",
        ),
        (
            nested,
            "update accounts set balance = 10 where id = 1",
            "bob|200|50",
        ),
    ] {
        let tag = alice.split(' ').next().unwrap_or_default().to_uppercase();
        let of = if query == left { "of a" } else { "" };
        let bob = format!("select a.owner, balance, least from {query} order by a.id for update {of}");
        accounts_with_limits().play(&format!(
            "alice: begin => BEGIN
             alice: {alice} => {tag} 1
             bob:   {bob} => waits
             alice: commit => COMMIT
             bob    => {rows}"
        ));
        accounts_with_limits().play(&format!(
            "alice: begin => BEGIN
             alice: {alice} => {tag} 1
             bob:   {bob} nowait => ERROR 55P03
             bob:   {bob} skip locked => bob|200|50
             alice: rollback => ROLLBACK"
        ));
        accounts_with_limits().play(&format!(
            "bob:   begin isolation level repeatable read => BEGIN
             bob:   select balance from accounts where id = 2 => 200
             alice: {alice} => {tag} 1
             bob:   {bob} => ERROR 40001
             bob:   rollback => ROLLBACK"
        ));
    }
}

/// A lock over a join keeps others from the rows of each relation that it is for, and of no other.
#[test]
fn locks_over_joins_are_those_of_their_relations() {
    let join = "select a.id from accounts a join limits l on l.owner = a.owner where a.id = 1";
    let of_account = "update accounts set balance = 0 where id = 1";
    let of_limit = "update limits set least = 0 where owner = 'alice'";
    for (clause, account, limit) in [
        ("for update", "waits", "waits"),
        ("for update of a", "waits", "UPDATE 1"),
        ("for no key update of l", "UPDATE 1", "waits"),
        ("for share of l for update of a", "waits", "waits"),
    ] {
        for (statement, outcome) in [(of_account, account), (of_limit, limit)] {
            let after = match outcome {
                "waits" => "bob    => UPDATE 1",
                _ => "",
            };
            accounts_with_limits().play(&format!(
                "alice: begin => BEGIN
                 alice: {join} {clause} => 1
                 bob:   {statement} => {outcome}
                 alice: commit => COMMIT
                 {after}"
            ));
        }
    }
}

/// Through a view, and a query in FROM, only the rows are locked that the conditions around it leave.
#[test]
fn locks_through_views_are_of_the_rows_that_are_found() {
    for query in [
        "select balance from rich where id = 1",
        "select balance from (select * from accounts) s where id = 1",
        "select balance from (select * from rich) s where id = 1",
    ] {
        accounts().play(&format!(
            "alice: create view rich as select * from accounts where balance >= 100 => CREATE VIEW
             alice: begin => BEGIN
             alice: {query} for update => 100
             carol: update accounts set balance = 1 where id = 2 => UPDATE 1
             bob:   update accounts set balance = 1 where id = 1 => waits
             alice: commit => COMMIT
             bob    => UPDATE 1"
        ));
    }
    // With a limit the query locks the rows that it gives.
    accounts().play(
        "alice: begin => BEGIN
         alice: select balance from (select * from accounts order by id desc limit 1) s for update => 200
         carol: update accounts set balance = 1 where id = 1 => UPDATE 1
         bob:   update accounts set balance = 1 where id = 2 => waits
         alice: commit => COMMIT
         bob    => UPDATE 1",
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
         bob:   set statement_timeout = '50ms' => SET
         bob:   set lock_timeout = 0 => SET
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
         # Each saw the other on call. SERIALIZABLE, which would prevent it, is refused rather than faked.
         bob:   select count(*) from doctors where on_call => 0
         bob:   begin isolation level serializable => ERROR 0A000",
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

/// Rows in groups, once without an index on the group and once with one.
fn groups() -> [Fixture; 2] {
    let rows = "create table t (id int primary key, grp int, v int)";
    let fixtures = [
        Fixture::new(rows),
        Fixture::new(&format!("{rows}; create index t_grp on t (grp)")),
    ];
    for (fixture, path) in fixtures.iter().zip(["Seq Scan", "t_grp"]) {
        let plan = common::query(&mut fixture.session(), "explain select v from t where grp = 1");
        assert!(plan.contains(path), "the stories should run by {path}: {plan}");
    }
    fixtures
}

/// A statement that waits for the row of group 1.
struct Waiting {
    sql: &'static str,
    /// Its answer when it has found the row with 77 in group 1.
    found: &'static str,
    /// Its answer when it has found none.
    none: &'static str,
    /// Row 1 afterwards, if it was found.
    after: &'static str,
}

const WAITING: [Waiting; 3] = [
    Waiting {
        sql: "update t set v = v + 100 where grp = 1",
        found: "UPDATE 1",
        none: "UPDATE 0",
        after: "1|1|177",
    },
    Waiting {
        sql: "delete from t where grp = 1",
        found: "DELETE 1",
        none: "DELETE 0",
        after: "",
    },
    Waiting {
        sql: "select v from t where grp = 1 for update",
        found: "77",
        none: "",
        after: "1|1|77",
    },
];

/// Plays a story about two rows with each of the waiting statements (`{sql}`) and what becomes of it, by a scan of the
/// table and by an index.
///
/// Caught by these stories: leaving a row out at the first version that is held, or at the first that is replaced;
/// not evaluating WHERE again; waiting without a place in the queue.
#[track_caller]
fn play_with_each(story: &str) {
    for fixture in groups() {
        for waiting in &WAITING {
            let reset = "delete from t; insert into t values (1, 1, 0), (2, 2, 0)";
            common::query(&mut fixture.session(), reset);
            let story = story
                .replace("{sql}", waiting.sql)
                .replace("{found}", waiting.found)
                .replace("{none}", waiting.none)
                .replace("{after}", waiting.after);
            fixture.play(&story);
        }
    }
}

#[test]
fn a_version_between_the_seen_and_the_newest_decides_nothing() {
    play_with_each(
        "alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         alice: update t set grp = 1, v = 77 where id = 1 => UPDATE 1
         bob:   {sql} => waits
         alice: commit => COMMIT
         bob    => {found}
         carol: select id, grp, v from t where id = 1 => {after}",
    );
}

#[test]
fn a_version_in_between_that_would_do_decides_nothing_either() {
    play_with_each(
        "alice: begin => BEGIN
         alice: update t set v = 5 where id = 1 => UPDATE 1
         alice: update t set grp = 3, v = 77 where id = 1 => UPDATE 1
         bob:   {sql} => waits
         alice: commit => COMMIT
         bob    => {none}
         carol: select id, grp, v from t where id = 1 => 1|3|77",
    );
}

#[test]
fn a_row_that_passes_through_other_transactions_is_judged_at_its_end() {
    play_with_each(
        "alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         carol: begin => BEGIN
         # Carol comes before Bob, so she is the first in line for the row.
         carol: update t set grp = 1, v = 77 where id = 1 => waits
         bob:   {sql} => waits
         alice: commit => COMMIT
         carol  => UPDATE 1
         bob    => waits
         carol: commit => COMMIT
         bob    => {found}
         dave:  select id, grp, v from t where id = 1 => {after}",
    );
}

#[test]
fn the_last_transaction_in_the_chain_may_roll_back() {
    play_with_each(
        "alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         carol: begin => BEGIN
         carol: update t set grp = 1, v = 77 where id = 1 => waits
         bob:   {sql} => waits
         alice: commit => COMMIT
         carol  => UPDATE 1
         bob    => waits
         carol: rollback => ROLLBACK
         # Alice's version is the newest, and it is in group 2.
         bob    => {none}
         dave:  select id, grp, v from t where id = 1 => 1|2|0",
    );
}

#[test]
fn a_chain_may_end_in_a_deletion() {
    play_with_each(
        "alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         alice: update t set grp = 1, v = 77 where id = 1 => UPDATE 1
         alice: delete from t where id = 1 => DELETE 1
         # Another row takes its keys: it is not the row that was seen.
         alice: insert into t values (1, 1, 500) => INSERT 0 1
         bob:   {sql} => waits
         alice: commit => COMMIT
         bob    => {none}
         carol: select id, grp, v from t where id = 1 => 1|1|500",
    );
}

#[test]
fn a_row_that_moved_to_other_pages_is_followed_there() {
    play_with_each(
        "alice: insert into t select n, 9, 0 from generate_series(10, 2000) as s(n) => INSERT 0 1991
         alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         alice: update t set grp = 3, id = 5000 where id = 1 => UPDATE 1
         alice: update t set grp = 1, v = 77, id = 1 where id = 5000 => UPDATE 1
         bob:   {sql} => waits
         alice: commit => COMMIT
         bob    => {found}
         carol: select id, grp, v from t where id = 1 => {after}",
    );
}

#[test]
fn repeatable_read_gives_up_at_the_first_replacement() {
    play_with_each(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select v from t where id = 1 => 0
         alice: begin => BEGIN
         alice: update t set grp = 2 where id = 1 => UPDATE 1
         alice: update t set grp = 1, v = 77 where id = 1 => UPDATE 1
         bob:   {sql} => waits
         alice: commit => COMMIT
         bob    => ERROR 40001
         bob:   rollback => ROLLBACK",
    );
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
