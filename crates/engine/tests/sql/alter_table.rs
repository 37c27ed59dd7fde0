//! ALTER TABLE beside other sessions, prepared statements, and over a restart.

use crate::common::{Fixture, query};

fn notes() -> Fixture {
    Fixture::new(
        "create table notes (id int primary key, text text); insert into notes values (1, 'one'), (2, 'two')",
    )
}

const CHANGES: &str = "alter table notes add column number int default 7, add column at date;
    insert into notes values (3, 'three', 8, '2000-01-01');
    alter table notes drop column text, add column late text default 'x';
    alter table notes rename column number to n;
    alter table notes rename to papers;
    update papers set at = '2001-01-01' where id = 2";

#[test]
fn rows_of_all_ages_are_read_after_a_restart() {
    let rows = "select * from papers order by id";
    let found = "1|7||x, 2|7|2001-01-01|x, 3|8|2000-01-01|x";
    let names = "select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'papers'::regclass and attnum > 0";
    let fixture = notes();
    query(&mut fixture.session(), CHANGES);
    assert_eq!(query(&mut fixture.session(), rows), found);
    let fixture = fixture.restarted();
    assert_eq!(query(&mut fixture.session(), rows), found);
    assert_eq!(
        query(&mut fixture.session(), names),
        "id ........pg.dropped.2........ n at late"
    );
    fixture.play(
        "alice: insert into papers values (4, 1) => INSERT 0 1
         alice: select * from papers where id = 4 => 4|1||x
         alice: delete from papers where late = 'x' => DELETE 4
         alice: vacuum papers => VACUUM
         alice: select count(*) from papers => 0",
    );
}

#[test]
fn readers_wait_for_the_end_of_the_change() {
    notes().play(
        "alice: begin => BEGIN
         alice: alter table notes add column n int default 5 => ALTER TABLE
         bob: select * from notes where id = 1 => waits
         alice: commit => COMMIT
         bob => 1|one|5
         alice: begin => BEGIN
         alice: alter table notes drop column text => ALTER TABLE
         bob: select * from notes where id = 1 => waits
         alice: rollback => ROLLBACK
         bob => 1|one|5",
    );
}

#[test]
fn a_snapshot_of_before_reads_older_rows_by_the_new_definition() {
    notes().play(
        "bob: begin isolation level repeatable read => BEGIN
         bob: select 1 => 1
         alice: alter table notes add column n int default 5 => ALTER TABLE
         alice: update notes set n = 6 => UPDATE 2
         bob: select * from notes order by id => 1|one|5, 2|two|5
         bob: commit => COMMIT
         bob: begin isolation level repeatable read => BEGIN
         bob: select 1 => 1
         alice: alter table notes alter column n type text => ALTER TABLE
         bob: select * from notes order by id => ERROR 40001
         bob: rollback => ROLLBACK
         bob: select * from notes order by id => 1|one|6, 2|two|6",
    );
}

#[test]
fn prepared_statements_are_planned_anew() {
    notes().play(
        "alice: prepare one as select text from notes where id = $1 => PREPARE
         alice: prepare enter as insert into notes (id) values ($1) => PREPARE
         alice: execute one(1) => one
         alice: alter table notes add column first int default 3 => ALTER TABLE
         alice: execute one(2) => two
         alice: execute enter(3) => INSERT 0 1
         alice: select first from notes where id = 3 => 3
         alice: alter table notes drop column first => ALTER TABLE
         alice: execute enter(4) => INSERT 0 1
         alice: alter table notes drop column text => ALTER TABLE
         alice: execute one(1) => ERROR 42703",
    );
}

#[test]
fn an_index_over_columns_that_moved_leads_to_the_rows() {
    notes().play(
        "alice: alter table notes add column a int default 1, add column b int default 2 => ALTER TABLE
         alice: create index notes_b on notes (b) => CREATE INDEX
         alice: update notes set b = 9 where id = 2 => UPDATE 1
         alice: alter table notes drop column a => ALTER TABLE
         alice: set enable_seqscan = off => SET
         alice: select id from notes where b = 2 => 1
         alice: select id from notes where b = 9 => 2
         alice: insert into notes values (3, 'three', 9) => INSERT 0 1
         alice: select id from notes where b = 9 order by id => 2, 3
         alice: alter table notes alter column b type bigint => ALTER TABLE
         alice: select id from notes where b = 9::bigint order by id => 2, 3
         alice: insert into notes values (3, 'again', 9) => ERROR 23505",
    );
}
