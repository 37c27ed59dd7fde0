//! Rows that other transactions have replaced several times while a statement waits for them.

use crate::common::{self, Fixture};

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
