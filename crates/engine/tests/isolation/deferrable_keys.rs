//! Deferrable keys between sessions: a duplicate that is there until a commit.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Fixture, query, run};
use crate::savepoints_random::Random;

const SEATS: &str = "create table seats (id int primary key, place int unique deferrable initially deferred);
    insert into seats values (1, 10), (2, 20)";

fn seats() -> Fixture {
    Fixture::new(SEATS)
}

/// The second of two inserts of one key goes on, and its commit waits for the first one's end.
#[test]
fn the_commit_waits_for_a_row_with_the_same_key() {
    for (end, tag, outcome) in [
        ("commit", "COMMIT", "ERROR 23505"),
        ("rollback", "ROLLBACK", "COMMIT"),
    ] {
        seats().play(&format!(
            "alice: begin => BEGIN
             alice: insert into seats values (3, 30) => INSERT 0 1
             bob:   begin => BEGIN
             bob:   insert into seats values (4, 30) => INSERT 0 1
             bob:   commit => waits
             alice: {end} => {tag}
             bob    => {outcome}
             alice: select count(*) from seats where place = 30 => 1"
        ));
    }
}

/// A row that goes in time is no duplicate, and one whose deletion is taken back is.
#[test]
fn the_commit_waits_for_a_row_that_may_go() {
    for take in [
        "delete from seats where id = 1",
        "update seats set place = 11 where id = 1",
    ] {
        let taken = take.split(' ').next().unwrap_or_default().to_uppercase();
        for (end, tag, outcome) in [
            ("commit", "COMMIT", "INSERT 0 1"),
            ("rollback", "ROLLBACK", "ERROR 23505"),
        ] {
            seats().play(&format!(
                "alice: begin => BEGIN
                 alice: {take} => {taken} 1
                 bob:   insert into seats values (4, 10) => waits
                 alice: {end} => {tag}
                 bob    => {outcome}"
            ));
        }
    }
    // Back by a savepoint, while its deleter goes on.
    seats().play(
        "alice: begin => BEGIN
         alice: savepoint s => SAVEPOINT
         alice: delete from seats where id = 1 => DELETE 1
         bob:   insert into seats values (4, 10) => waits
         alice: rollback to s => ROLLBACK
         alice: commit => COMMIT
         bob    => ERROR 23505",
    );
}

/// Two that exchange keys with one another, each with a row in doubt for the other's: one ends.
#[test]
fn rows_in_doubt_for_each_other_are_a_deadlock() {
    seats().play(
        "alice: set deadlock_timeout = '60s' => SET
         bob:   set deadlock_timeout = '5ms' => SET
         alice: begin => BEGIN
         bob:   begin => BEGIN
         alice: update seats set place = 20 where id = 1 => UPDATE 1
         bob:   update seats set place = 10 where id = 2 => UPDATE 1
         alice: commit => waits
         bob:   commit => ERROR 40P01
         alice  => ERROR 23505",
    );
}

/// REPEATABLE READ: a check sees what has been committed since the snapshot.
#[test]
fn rows_that_the_snapshot_misses_are_duplicates() {
    for level in ["repeatable read", "serializable"] {
        seats().play(&format!(
            "alice: begin isolation level {level} => BEGIN
             alice: select count(*) from seats => 2
             bob:   insert into seats values (3, 30) => INSERT 0 1
             alice: insert into seats values (4, 30) => INSERT 0 1
             alice: commit => ERROR 23505"
        ));
    }
}

/// SET CONSTRAINTS … IMMEDIATE waits and looks as the commit does; afterwards the row is looked after by those that come.
#[test]
fn a_row_that_was_checked_is_found_by_those_behind() {
    seats().play(
        "alice: begin => BEGIN
         bob:   begin => BEGIN
         bob:   insert into seats values (3, 30) => INSERT 0 1
         alice: insert into seats values (4, 30) => INSERT 0 1
         alice: set constraints seats_place_key immediate => waits
         bob:   rollback => ROLLBACK
         alice  => SET CONSTRAINTS
         bob:   insert into seats values (5, 30) => waits
         alice: commit => COMMIT
         bob    => ERROR 23505",
    );
}

/// One that is checked at the statement's end waits there.
#[test]
fn an_immediate_key_is_checked_at_the_statements_end() {
    Fixture::new(
        "create table seats (id int primary key, place int unique deferrable);
         insert into seats values (1, 10), (2, 11), (3, 12)",
    )
    .play(
        "alice: begin => BEGIN
         alice: update seats set place = place + 1 => UPDATE 3
         bob:   insert into seats values (4, 10) => waits
         carol: insert into seats values (5, 14) => INSERT 0 1
         alice: update seats set place = place + 1 where id = 3 => ERROR 23505
         alice: rollback => ROLLBACK
         bob    => ERROR 23505",
    );
}

/// A lock timeout ends the wait of a check, and the transaction with it.
#[test]
fn a_check_does_not_wait_beyond_the_lock_timeout() {
    seats().play(
        "alice: begin => BEGIN
         alice: insert into seats values (3, 30) => INSERT 0 1
         bob:   set lock_timeout = '20ms' => SET
         bob:   insert into seats values (4, 30) => ERROR 55P03
         alice: commit => COMMIT
         bob:   select count(*) from seats => 3",
    );
}

/// A row that ON CONFLICT leaves out is not checked.
#[test]
fn a_row_that_is_left_out_is_not_checked() {
    Fixture::new(
        "create table seats (place int unique deferrable initially deferred, id int primary key);
         insert into seats values (10, 1)",
    )
    .play(
        "alice: begin => BEGIN
         alice: insert into seats values (30, 3) => INSERT 0 1
         bob:   insert into seats values (10, 3) on conflict (id) do nothing => waits
         alice: commit => COMMIT
         bob    => INSERT 0 0
         bob:   insert into seats values (10, 4) on conflict (id) do nothing => ERROR 23505",
    );
    // Bob's row is in doubt when another key of it keeps him waiting, and is withdrawn when its id is taken meanwhile.
    Fixture::new(
        "create table seats (place int unique deferrable initially deferred, code int unique, id int primary key);
         insert into seats values (10, 1, 1)",
    )
    .play(
        "carol: begin => BEGIN
         carol: insert into seats values (90, 5, 9) => INSERT 0 1
         bob:   begin => BEGIN
         bob:   insert into seats values (10, 5, 3) on conflict (id) do nothing => waits
         alice: insert into seats values (30, 3, 3) => INSERT 0 1
         carol: rollback => ROLLBACK
         bob    => INSERT 0 0
         # The table would not change while a check waits.
         bob:   alter table seats add column note text => ALTER TABLE
         bob:   commit => COMMIT
         alice: select count(*) from seats => 2",
    );
}

/// The statements of a transaction of the test below.
fn random_statements(random: &mut Random) -> Vec<String> {
    let mut statements = vec!["begin".to_owned()];
    for _ in 0..1 + random.below(3) {
        let (id, other, place) = (random.below(ROWS), random.below(ROWS), random.below(ROWS + 4));
        statements.push(match random.below(5) {
            0 => format!("delete from seats where id = {id}"),
            1 => format!("insert into seats values ({id}, {place}, 1) on conflict (id) do nothing"),
            2 => "savepoint s".to_owned(),
            3 => format!("update seats set place = {place}, x = x + 1 where id = {id}"),
            _ => format!(
                "update seats set place = case id when {id} then (select place from seats where id = {other}) \
                 else (select place from seats where id = {id}) end where id in ({id}, {other})"
            ),
        });
    }
    if random.below(3) == 0 && statements.iter().any(|one| one == "savepoint s") {
        statements.push("rollback to s".to_owned());
    }
    if random.below(4) == 0 {
        statements.push("set constraints all immediate".to_owned());
    }
    statements
}

/// Rows that are there at the beginning, and the most that there are.
const ROWS: i32 = 8;

/// Sessions put rows at random places, and end each transaction one way or the other. What is committed never has two rows
/// at one place: not in between, as a reader sees it, and not at the end.
#[test]
fn committed_rows_never_share_a_key() {
    const WRITERS: u64 = 3;
    const TRANSACTIONS: usize = 150;
    let fixture = Fixture::new(
        "create table seats (id int primary key, place int unique deferrable initially deferred, x int);
         insert into seats select i, i, 0 from generate_series(0, 7) i",
    );
    let shared =
        "select place, count(*) from seats where place is not null group by place having count(*) > 1";
    let writers_left = AtomicU64::new(WRITERS);
    let committed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (fixture, writers_left, committed) = (&fixture, &writers_left, &committed);
            scope.spawn(move || {
                let _left = Left(writers_left);
                let mut session = fixture.session();
                run(&mut session, "set deadlock_timeout = '5ms'");
                let mut random = Random(writer);
                for _ in 0..TRANSACTIONS {
                    let statements = random_statements(&mut random);
                    let is_refused = statements
                        .iter()
                        .any(|sql| run(&mut session, sql).starts_with("ERROR"));
                    let end = if is_refused || random.below(8) == 0 {
                        "rollback"
                    } else {
                        "commit"
                    };
                    let outcome = run(&mut session, end);
                    if outcome == "COMMIT" {
                        committed.fetch_add(1, Ordering::Relaxed);
                    } else {
                        let expected = ["ROLLBACK", "ERROR 23505", "ERROR 40P01"];
                        assert!(expected.contains(&outcome.as_str()), "{statements:?}: {outcome}");
                    }
                }
            });
        }
        let mut reader = fixture.session();
        while writers_left.load(Ordering::Relaxed) > 0 {
            assert_eq!(query(&mut reader, shared), "", "committed rows share a place");
        }
    });
    assert_eq!(query(&mut fixture.session(), shared), "");
    let committed = committed.into_inner();
    assert!(
        committed > TRANSACTIONS as u64 / 5,
        "{committed} transactions have committed"
    );
}

/// Counts a thread out when it ends, by a panic too.
struct Left<'c>(&'c AtomicU64);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
