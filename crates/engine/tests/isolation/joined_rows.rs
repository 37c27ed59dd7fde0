//! Rows that a statement finds beside others: changed and locked on the newest version, with their partners.

use crate::accounts;
use crate::common::Fixture;

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
