//! Foreign keys between sessions: a key that goes while a row comes that names it.

use crate::common::{Fixture, query, run};

fn orders(actions: &str) -> Fixture {
    Fixture::new(&setup(actions))
}

fn setup(actions: &str) -> String {
    format!(
        "create table customers (id int primary key, name text);
         create table orders (id int primary key, customer int references customers {actions});
         create index orders_customer on orders (customer);
         insert into customers values (1, 'alice'), (2, 'bob')"
    )
}

/// The session that comes second waits for the first, and then fails or goes on by how that has ended.
#[test]
fn a_key_and_a_row_that_names_it_wait_for_each_other() {
    for take in [
        "delete from customers where id = 1",
        "update customers set id = 10 where id = 1",
    ] {
        let taken = take.split(' ').next().unwrap_or_default().to_uppercase();
        orders("").play(&format!(
            "alice: begin => BEGIN
             alice: insert into orders values (1, 1) => INSERT 0 1
             bob:   {take} => waits
             alice: commit => COMMIT
             bob    => ERROR 23503
             alice: delete from orders => DELETE 1
             alice: begin => BEGIN
             alice: insert into orders values (1, 1) => INSERT 0 1
             bob:   {take} => waits
             alice: rollback => ROLLBACK
             bob    => {taken} 1"
        ));
        orders("").play(&format!(
            "alice: begin => BEGIN
             alice: {take} => {taken} 1
             bob:   insert into orders values (1, 1) => waits
             alice: commit => COMMIT
             bob    => ERROR 23503"
        ));
        orders("").play(&format!(
            "alice: begin => BEGIN
             alice: {take} => {taken} 1
             bob:   insert into orders values (1, 1) => waits
             alice: rollback => ROLLBACK
             bob    => INSERT 0 1"
        ));
    }
}

/// Rows that name one key do not wait for each other, nor for an update that leaves the key alone.
#[test]
fn rows_that_name_one_key_do_not_wait() {
    Fixture::sharing_rows(&setup("")).play(
        "alice: begin => BEGIN
         alice: insert into orders values (1, 1) => INSERT 0 1
         bob:   begin => BEGIN
         bob:   insert into orders values (2, 1) => INSERT 0 1
         carol: update customers set name = 'x' where id = 1 => UPDATE 1
         carol: update customers set id = 9 where id = 1 => waits
         alice: commit => COMMIT
         bob:   update orders set customer = 2 where id = 2 => UPDATE 1
         bob:   commit => COMMIT
         carol  => ERROR 23503
         carol: select name from customers where id = 1 => x",
    );
    // Each holds the key's row for its own row, and both change the row: the second waits, and no deadlock comes of it.
    Fixture::sharing_rows(&setup("")).play(
        "alice: begin => BEGIN
         bob:   begin => BEGIN
         alice: insert into orders values (1, 1) => INSERT 0 1
         bob:   insert into orders values (2, 1) => INSERT 0 1
         alice: update customers set name = 'a' => UPDATE 2
         bob:   update customers set name = 'b' => waits
         alice: commit => COMMIT
         bob    => UPDATE 2
         bob:   commit => COMMIT",
    );
}

/// A row that was committed after the snapshot of REPEATABLE READ keeps its key's row from going.
#[test]
fn rows_that_the_snapshot_misses_are_found() {
    for (actions, outcome) in [
        ("", "ERROR 23503"),
        ("on delete restrict", "ERROR 23503"),
        ("deferrable initially deferred", "DELETE 1"),
        ("on delete cascade", "ERROR 40001"),
        ("on delete set null", "ERROR 40001"),
    ] {
        let commit = match outcome {
            "DELETE 1" => "bob: commit => ERROR 23503",
            _ => "bob: rollback => ROLLBACK",
        };
        orders(actions).play(&format!(
            "bob:   begin isolation level repeatable read => BEGIN
             bob:   select count(*) from orders => 0
             alice: insert into orders values (1, 1) => INSERT 0 1
             bob:   delete from customers where id = 1 => {outcome}
             {commit}
             bob:   select count(*) from orders join customers on customers.id = customer => 1"
        ));
    }
    // What it shows goes too, and what it shows no more does not matter.
    orders("on delete cascade").play(
        "alice: insert into orders values (1, 1), (2, 1) => INSERT 0 2
         bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from orders => 2
         alice: delete from orders where id = 2 => DELETE 1
         bob:   insert into orders values (3, 1) => INSERT 0 1
         bob:   delete from customers where id = 1 => DELETE 1
         bob:   commit => COMMIT
         bob:   select count(*) from orders => 0",
    );
}

/// A key that has gone since the snapshot of REPEATABLE READ is not named by a new row.
#[test]
fn keys_that_went_after_the_snapshot_are_not_named() {
    orders("").play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from customers => 2
         alice: delete from customers where id = 1 => DELETE 1
         bob:   insert into orders values (1, 1) => ERROR 40001
         bob:   rollback => ROLLBACK",
    );
    // A key that came since is not there for it.
    orders("").play(
        "bob:   begin isolation level repeatable read => BEGIN
         bob:   select count(*) from customers => 2
         alice: insert into customers values (3, 'carol') => INSERT 0 1
         bob:   insert into orders values (1, 3) => ERROR 23503
         bob:   rollback => ROLLBACK
         bob:   insert into orders values (1, 3) => INSERT 0 1",
    );
}

/// READ COMMITTED looks for a key when the statement has ended, and for a deferred one at the commit.
#[test]
fn keys_that_come_in_time_are_found() {
    orders("deferrable initially deferred").play(
        "alice: begin => BEGIN
         alice: insert into orders values (1, 3) => INSERT 0 1
         bob:   insert into customers values (3, 'carol') => INSERT 0 1
         alice: commit => COMMIT
         alice: begin => BEGIN
         alice: insert into orders values (2, 4) => INSERT 0 1
         alice: set constraints all immediate => ERROR 23503
         bob:   insert into customers values (4, 'dave') => INSERT 0 1
         alice: rollback => ROLLBACK
         alice: begin => BEGIN
         alice: insert into orders values (2, 5) => INSERT 0 1
         alice: commit => ERROR 23503
         alice: select count(*) from orders => 1",
    );
}

/// A foreign key that is added waits for those that change either table, and what they have stored is looked at.
#[test]
fn added_keys_hold_for_what_was_stored_meanwhile() {
    Fixture::new(
        "create table customers (id int primary key);
         create table orders (id int primary key, customer int);
         insert into customers values (1)",
    )
    .play(
        "alice: begin => BEGIN
         alice: insert into orders values (1, 1) => INSERT 0 1
         bob:   alter table orders add foreign key (customer) references customers => waits
         alice: delete from customers where id = 1 => DELETE 1
         alice: commit => COMMIT
         bob    => ERROR 23503
         alice: delete from orders => DELETE 1
         alice: begin => BEGIN
         alice: insert into customers values (2) => INSERT 0 1
         bob:   alter table orders add foreign key (customer) references customers => waits
         alice: commit => COMMIT
         bob    => ALTER TABLE
         alice: insert into orders values (1, 1) => ERROR 23503",
    );
}

const ORPHANS: [&str; 3] = [
    "select count(*) from kept k where not exists (select from parents p where p.id = k.parent)",
    "select count(*) from cascaded c where not exists (select from parents p where p.id = c.parent)",
    "select count(*) from emptied e where parent is not null \
     and not exists (select from parents p where p.id = e.parent)",
];

/// Sessions under both isolation levels insert, move and delete rows on both sides of three foreign keys: no row is ever
/// without the one that it names.
#[test]
fn no_row_is_left_without_the_one_that_it_names() {
    let fixture = Fixture::new(
        "create table parents (id int primary key, n int default 0);
         create table kept (id serial primary key, parent int not null references parents on update cascade);
         create table cascaded (id serial primary key,
             parent int not null references parents on delete cascade on update cascade
             deferrable initially deferred);
         create table emptied (id serial primary key, parent int references parents on delete set null on update set null);
         create index on cascaded (parent);
         insert into parents select generate_series(1, 8)",
    );
    std::thread::scope(|scope| {
        for number in 0..8u64 {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut session = fixture.session();
                if number % 2 == 1 {
                    run(
                        &mut session,
                        "set default_transaction_isolation = 'repeatable read'",
                    );
                }
                let mut random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for _ in 0..150 {
                    let mut next = |bound: u64| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        random % bound
                    };
                    let (one, other, table) = (next(8) + 1, next(8) + 1, next(3) as usize);
                    let table = ["kept", "cascaded", "emptied"][table];
                    let statement = match next(8) {
                        0..=2 => format!("insert into {table} (parent) values ({one}), ({one})"),
                        3 => format!("delete from parents where id = {one}"),
                        4 => format!("insert into parents values ({one}) on conflict do nothing"),
                        5 => format!("update parents set id = {one} where id = {other}"),
                        6 => format!("delete from {table} where parent = {one}"),
                        _ => format!("update {table} set parent = {one} where parent = {other}"),
                    };
                    let ended = run(&mut session, &statement);
                    let known = ["23503", "23505", "40001", "40P01"];
                    let is_known = known.iter().any(|code| ended == format!("ERROR {code}"));
                    assert!(is_known || !ended.contains("ERROR"), "{statement}: {ended}");
                }
            });
        }
    });
    let mut session = fixture.session();
    for orphans in ORPHANS {
        assert_eq!(query(&mut session, orphans), "0", "{orphans}");
    }
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

/// Neither a new foreign key nor its validation is in a reader's way, and validation is in no writer's.
#[test]
fn readers_go_on_while_a_key_is_added() {
    let fixture = Fixture::new(
        "create table parent (id int primary key); insert into parent values (1), (2);
         create table child (parent int); insert into child values (1)",
    );
    fixture.play(
        "
        alice: begin => BEGIN
        alice: alter table child add constraint k foreign key (parent) references parent not valid => ALTER TABLE
        bob:   select * from child => 1
        bob:   select * from parent => 1, 2
        bob:   insert into child values (3) => waits
        alice: commit => COMMIT
        bob => ERROR 23503
        alice: begin => BEGIN
        alice: alter table child validate constraint k => ALTER TABLE
        bob:   select * from child => 1
        bob:   insert into child values (2) => INSERT 0 1
        bob:   insert into child values (4) => ERROR 23503
        bob:   delete from parent where id = 1 => ERROR 23503
        carol: alter table child validate constraint k => waits
        alice: commit => COMMIT
        carol => ALTER TABLE
        ",
    );
}
