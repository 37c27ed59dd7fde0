//! Sessions that insert with ON CONFLICT at the same time.

use std::sync::atomic::Ordering;

use crate::common::upserts::{self, Counted};
use crate::common::{Fixture, query, run};
use crate::{ACCOUNTS, accounts};

/// ON CONFLICT waits for the row in its way, and then does to it as it is what it says, or inserts.
#[test]
fn on_conflict_waits_for_the_row_in_its_way() {
    let upsert = "insert into accounts values (3, 'bob', 5) on conflict (id) \
         do update set owner = accounts.owner || '+', balance = accounts.balance + excluded.balance";
    let nothing = "insert into accounts values (3, 'bob', 5) on conflict do nothing";
    let insert = "insert into accounts values (3, 'alice', 300)";
    for (statement, end, tag, row) in [
        (upsert, "commit", "INSERT 0 1", "alice+|305"),
        (upsert, "rollback", "INSERT 0 1", "bob|5"),
        (nothing, "commit", "INSERT 0 0", "alice|300"),
        (nothing, "rollback", "INSERT 0 1", "bob|5"),
    ] {
        accounts().play(&format!(
            "alice: begin => BEGIN
             alice: {insert} => INSERT 0 1
             bob:   {statement} => waits
             alice: {end} => {upper}
             bob    => {tag}
             bob:   select owner, balance from accounts where id = 3 => {row}",
            upper = end.to_uppercase(),
        ));
    }
    // The row in the way is changed, moved or deleted.
    for (change, row) in [
        ("update accounts set balance = 400 where id = 3", "alice+|405"),
        ("update accounts set id = 4 where id = 3", "bob|5"),
        ("delete from accounts where id = 3", "bob|5"),
    ] {
        let tag = change.split(' ').next().unwrap_or_default().to_uppercase();
        accounts().play(&format!(
            "alice: {insert} => INSERT 0 1
             alice: begin => BEGIN
             alice: {change} => {tag} 1
             bob:   {upsert} => waits
             alice: commit => COMMIT
             bob    => INSERT 0 1
             bob:   select owner, balance from accounts where id = 3 => {row}"
        ));
        // The same when it is the lock that is waited for.
        accounts().play(&format!(
            "alice: {insert} => INSERT 0 1
             alice: begin => BEGIN
             alice: select id from accounts where id = 3 for update => 3
             bob:   {upsert} => waits
             alice: {change} => {tag} 1
             alice: commit => COMMIT
             bob    => INSERT 0 1
             bob:   select owner, balance from accounts where id = 3 => {row}"
        ));
    }
}

/// DO SELECT waits for a row that another transaction inserts or changes, as its key may go, and gives it or inserts its own.
/// It waits for locks of a row that is there only if it asks for one, and then holds the row.
#[test]
fn do_select_gives_the_row_that_is_there() {
    let select = "insert into accounts values (3, 'bob', 5) on conflict (id) do select";
    let insert = "insert into accounts values (3, 'alice', 300)";
    for (end, row) in [("commit", "alice|300"), ("rollback", "bob|5")] {
        accounts().play(&format!(
            "alice: begin => BEGIN
             alice: {insert} => INSERT 0 1
             bob:   {select} returning owner, balance => waits
             alice: {end} => {upper}
             bob    => {row}",
            upper = end.to_uppercase(),
        ));
    }
    accounts().play(&format!(
        "alice: {insert} => INSERT 0 1
         alice: begin => BEGIN
         alice: select balance from accounts where id = 3 for update => 300
         bob:   {select} returning balance => 300
         bob:   {select} for update returning balance => waits
         alice: update accounts set balance = 400 where id = 3 => UPDATE 1
         alice: commit => COMMIT
         bob    => 400"
    ));
    for (lock, others) in [("for share", "waits"), ("for key share", "UPDATE 1")] {
        let end = if others == "waits" {
            "alice  => UPDATE 1"
        } else {
            ""
        };
        Fixture::sharing_rows(ACCOUNTS).play(&format!(
            "alice: {insert} => INSERT 0 1
             bob:   begin => BEGIN
             bob:   {select} {lock} where accounts.balance < excluded.balance returning balance =>
             alice: update accounts set balance = 400 where id = 3 => {others}
             bob:   commit => COMMIT
             {end}"
        ));
    }
    // A row that is gone when its lock is there.
    accounts().play(&format!(
        "alice: {insert} => INSERT 0 1
         alice: begin => BEGIN
         alice: delete from accounts where id = 3 => DELETE 1
         bob:   {select} for no key update returning owner => waits
         alice: commit => COMMIT
         bob    => bob"
    ));
}

/// Under REPEATABLE READ a row that the snapshot does not show is an error, and so is one that has been changed since.
#[test]
fn on_conflict_under_repeatable_read() {
    for statement in [
        "insert into accounts values (3, 'bob', 5) on conflict (id) do update set balance = 5",
        "insert into accounts values (3, 'bob', 5) on conflict (id) do nothing",
        "insert into accounts values (3, 'bob', 5) on conflict (id) do select returning id",
        "insert into accounts values (3, 'bob', 5) on conflict (id) do select for share returning id",
    ] {
        accounts().play(&format!(
            "bob:   begin isolation level repeatable read => BEGIN
             bob:   select count(*) from accounts => 2
             alice: insert into accounts values (3, 'alice', 300) => INSERT 0 1
             bob:   {statement} => ERROR 40001
             bob:   rollback => ROLLBACK
             bob:   select balance from accounts where id = 3 => 300"
        ));
    }
    accounts().play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from accounts => 2
         alice: update accounts set balance = 7 where id = 1 => UPDATE 1
         bob:   insert into accounts values (1, 'bob', 5) on conflict (id) do update set balance = 5 => ERROR 40001
         bob:   rollback => ROLLBACK",
    );
}

/// Under REPEATABLE READ the newest version of a row is the one that the snapshot shows, however often the row was updated
/// before: by the others, and by earlier statements of the transaction itself.
#[test]
fn on_conflict_under_repeatable_read_updates_the_row_that_it_shows() {
    let upsert = "insert into accounts values (1, 'bob', 5) \
         on conflict (id) do update set balance = accounts.balance + excluded.balance";
    let nothing = "insert into accounts values (1, 'bob', 5) on conflict (id) do nothing";
    accounts().play(&format!(
        "alice: update accounts set balance = 200 where id = 1 => UPDATE 1
         alice: update accounts set balance = 300 where id = 1 => UPDATE 1
         bob:   begin isolation level repeatable read => BEGIN
         bob:   {nothing} => INSERT 0 0
         bob:   {upsert} => INSERT 0 1
         bob:   {nothing} => INSERT 0 0
         bob:   {upsert} => INSERT 0 1
         bob:   commit => COMMIT
         bob:   select balance from accounts where id = 1 => 310"
    ));
}

/// Many sessions count by ON CONFLICT DO UPDATE under both isolation levels, while others delete and move what is there:
/// no count is lost, no counting session sees 23505, and no key has two rows. What was withdrawn is removed by vacuum.
#[test]
fn on_conflict_loses_no_update() {
    let fixture = Fixture::new(upserts::SETUP);
    let counted = Counted::default();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (fixture, counted) = (&fixture, &counted);
            scope.spawn(move || {
                upserts::count(&mut fixture.session(), number, counted, |round| round < 100);
            });
        }
    });
    let mut session = fixture.session();
    let total = counted.acknowledged.load(Ordering::SeqCst).to_string();
    for after in ["select 1", "vacuum counts"] {
        run(&mut session, after);
        assert_eq!(query(&mut session, upserts::SUM), total);
        upserts::assert_keys_are_unique(&mut session);
        let report = fixture.engine.check().unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }
}
