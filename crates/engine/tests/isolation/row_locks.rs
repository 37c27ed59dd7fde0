//! Row locks of four strengths: the matrix of what waits for what, and the stories of `row_locks.txt`.

use std::fmt::Write;

use crate::common::{Fixture, config, run};

/// A statement on row 1 of `job`, and its answer.
type Action = (&'static str, &'static str);

/// From the weakest to the strongest: each with the strength that it locks the row in.
const ACTIONS: [(usize, Action); 8] = [
    (0, ("select amount from job where id = 1 for key share", "1")),
    (1, ("select amount from job where id = 1 for share", "1")),
    (2, ("select amount from job where id = 1 for no key update", "1")),
    (2, ("update job set amount = 1 where id = 1", "UPDATE 1")),
    (2, ("update job set note = 8 where id = 1", "UPDATE 1")),
    (3, ("select amount from job where id = 1 for update", "1")),
    (3, ("update job set id = 8 where id = 1", "UPDATE 1")),
    (3, ("delete from job where id = 1", "DELETE 1")),
];

/// Place `b` of entry `a`: a transaction that has locked a row in strength `a` keeps another one out that asks for `b`.
const CONFLICTS: [[bool; 4]; 4] = [
    [false, false, false, true],
    [false, false, true, true],
    [false, true, true, true],
    [true, true, true, true],
];

fn job(row_locks: &str) -> Fixture {
    let mut config = config();
    config.mechanisms.set(&format!("row_locks={row_locks}")).unwrap();
    let setup = "create table job (id int primary key, amount int, note int);
        create index on job (note);
        insert into job values (1, 1, 10), (2, 2, 20)";
    Fixture::with_config(setup, config)
}

/// Alice locks the row by each action, and Bob comes by each: waiting, not waiting, leaving the row out. Alice rolls
/// back, so Bob finds the row as it was.
#[test]
fn each_action_waits_for_those_that_its_strength_conflicts_with() {
    let fixture = job("shared");
    for (held, (first, first_answer)) in ACTIONS {
        for (asked, (second, second_answer)) in ACTIONS {
            let waits = CONFLICTS[held][asked];
            let mut story = format!("alice: begin => BEGIN\nalice: {first} => {first_answer}\n");
            if second.starts_with("select") {
                let (nowait, skipped) = if waits { ("ERROR 55P03", "") } else { ("1", "1") };
                writeln!(story, "bob: {second} nowait => {nowait}").unwrap();
                writeln!(story, "bob: {second} skip locked => {skipped}").unwrap();
            }
            story += "bob: begin => BEGIN\n";
            if waits {
                writeln!(story, "bob: {second} => waits\nalice: rollback => ROLLBACK").unwrap();
                writeln!(story, "bob => {second_answer}").unwrap();
            } else {
                writeln!(
                    story,
                    "bob: {second} => {second_answer}\nalice: rollback => ROLLBACK"
                )
                .unwrap();
            }
            story += "bob: rollback => ROLLBACK\n";
            fixture.play(&story);
        }
    }
}

/// The holders of a row count one by one: each that is left keeps the others out.
#[test]
fn each_holder_of_a_row_is_waited_for() {
    job("shared").play(
        "alice: begin => BEGIN
         alice: select id from job where id = 1 for share => 1
         bob:   begin => BEGIN
         bob:   select id from job where id = 1 for key share => 1
         carol: begin => BEGIN
         carol: select id from job where id = 1 for key share => 1
         dave:  update job set amount = 3 where id = 1 => waits
         alice: commit => COMMIT
         dave   => UPDATE 1
         dave:  delete from job where id = 1 => waits
         bob:   rollback => ROLLBACK
         erin:  select id from job where id = 1 for update nowait => ERROR 55P03
         carol: commit => COMMIT
         dave   => DELETE 1",
    );
}

/// Under `row_locks = exclusive` one transaction at a time locks a row.
#[test]
fn exclusive_row_locks_keep_all_others_out() {
    let fixture = job("exclusive");
    for (_, (first, answer)) in ACTIONS {
        for (_, (second, _)) in ACTIONS
            .iter()
            .filter(|(_, (second, _))| second.starts_with("select"))
        {
            fixture.play(&format!(
                "alice: begin => BEGIN
                 alice: {first} => {answer}
                 bob: {second} nowait => ERROR 55P03
                 alice: rollback => ROLLBACK"
            ));
        }
    }
}

#[test]
fn stories_end_as_in_postgresql() {
    for story in include_str!("row_locks.txt").split("\nstory: ").skip(1) {
        let (name, lines) = story.split_once('\n').unwrap();
        eprintln!("{name}");
        job("shared").play(lines);
    }
}

/// Alice shares more rows than a transaction has one by one, and gets the table: nothing of her locks is lost.
#[test]
fn a_transaction_that_shares_many_rows_keeps_all_of_them() {
    let fixture = job("shared");
    fixture.play(
        "alice: insert into job select x, 0, 0 from generate_series(3, 20000) x => INSERT 0 19998
         alice: begin => BEGIN
         alice: select id from job where id = 1 for share => 1
         alice: select count(*) from (select id from job for key share) rows => 20000
         bob:   update job set amount = 5 where id = 1 => waits
         carol: delete from job where id = 2 => waits
         dave:  delete from job where id = 20000 => waits
         erin:  select count(*) from (select id from job for share) rows => 20000
         alice: commit => COMMIT
         bob    => UPDATE 1
         carol  => DELETE 1
         dave   => DELETE 1
         erin:  update job set amount = 7 where id = 19999 => UPDATE 1",
    );
    assert_eq!(fixture.engine.storage().locks.rows().escalations(), 2);
}

/// Bob replaces a version that Alice holds, and vacuum removes it: another row may stand there, and nothing of her is left
/// at that place.
#[test]
fn a_removed_version_is_held_no_more() {
    let fixture = job("shared");
    let [mut alice, mut bob] = [(); 2].map(|()| fixture.session());
    let rows = fixture.engine.storage().locks.rows();
    // Bob's transaction is the older one: Alice's does not keep the version that he replaces.
    assert_eq!(
        run(&mut bob, "begin; insert into job values (3, 3, 30)"),
        "BEGIN; INSERT 0 1"
    );
    assert_eq!(
        run(&mut alice, "begin; select id from job where id = 1 for key share"),
        "1"
    );
    assert_eq!(rows.held_rows(), 1);
    assert_eq!(
        run(&mut bob, "update job set amount = 5 where id = 1; commit"),
        "UPDATE 1; COMMIT"
    );
    assert_eq!(rows.held_rows(), 2);
    assert_eq!(run(&mut bob, "vacuum job"), "VACUUM");
    assert_eq!(rows.held_rows(), 1);
    assert_eq!(
        run(&mut bob, "delete from job where id = 1 and false"),
        "DELETE 0"
    );
    assert_eq!(
        run(&mut bob, "select id from job where id = 1 for update nowait"),
        "ERROR 55P03"
    );
    assert_eq!(run(&mut alice, "commit"), "COMMIT");
    assert_eq!(rows.held_rows(), 0);
    assert_eq!(run(&mut bob, "delete from job where id = 1"), "DELETE 1");
}
