//! Values that are stored apart from their rows: which of them a session sees, and when their pieces go.

use crate::common::{Fixture, query, run};

/// Two rows with 16,000 bytes that do not get shorter, and the size of what is stored apart.
fn notes() -> Fixture {
    Fixture::new(
        "create table notes (id int primary key, n int default 0, note text);
         create view noise as select string_agg(md5(g::text), '') as value from generate_series(1, 500) g;
         create view apart as select pg_relation_size(reltoastrelid) / 8192 as pages from pg_class where relname = 'notes';
         insert into notes (id, note) select g, g || value from noise, generate_series(1, 2) g",
    )
}

#[track_caller]
fn assert_sound(fixture: &Fixture) {
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// A snapshot finds the values of the rows that it sees, whatever was updated, deleted and vacuumed since.
///
/// Caught mutation: pieces are vacuumed whatever the horizon (`vacuum_long_values`).
#[test]
fn an_older_snapshot_reads_the_older_value() {
    let fixture = notes();
    fixture.play(
        "alice: begin isolation level repeatable read => BEGIN
         alice: select count(*) from notes => 2
         bob:   begin => BEGIN
         bob:   declare c cursor for select id, length(note), left(note, 3) from notes => DECLARE CURSOR
         bob:   fetch 1 from c => 1|16001|1c4
         carol: update notes set note = repeat('new ', 5000) where id = 1 => UPDATE 1
         carol: delete from notes where id = 2 => DELETE 1
         carol: vacuum notes => VACUUM
         carol: insert into notes (id, note) select 3, value || value from noise => INSERT 0 1
         carol: vacuum notes => VACUUM
         alice: select id, md5(note) = (select md5(notes.id || value) from noise) from notes order by id => 1|t, 2|t
         bob:   fetch 1 from c => 2|16001|2c4
         bob:   commit => COMMIT
         alice: commit => COMMIT
         alice: select id, length(note), left(note, 4) from notes order by id => 1|20000|new , 3|32000|c4ca",
    );
    assert_sound(&fixture);
}

/// A statement of READ COMMITTED that has waited goes on with the newest version, whose value its snapshot does not see.
#[test]
fn the_newest_version_has_its_own_value() {
    for (statement, tag) in [
        ("update notes set note = note || '!' where id = 1", "UPDATE 1"),
        (
            "update notes set note = note || '!' from noise where id = 1 and value <> note",
            "UPDATE 1",
        ),
        (
            "insert into notes values (1) on conflict (id) do update set note = notes.note || '!'",
            "INSERT 0 1",
        ),
        (
            "merge into notes using (values (1)) v(i) on i = id when matched then update set note = note || '!'",
            "MERGE 1",
        ),
        (
            "with n as (select id, note from notes where id = 1 for update) update notes set note = n.note || '!' from n where n.id = notes.id",
            "UPDATE 1",
        ),
    ] {
        let fixture = notes();
        fixture.play(&format!(
            "alice: begin => BEGIN
             alice: update notes set note = 'alice: ' || note where id = 1 => UPDATE 1
             bob:   {statement} => waits
             alice: commit => COMMIT
             bob    => {tag}
             carol: vacuum notes => VACUUM
             bob:   select length(note), left(note, 9), right(note, 1) from notes where id = 1 => 16009|alice: 1c|!
             bob:   update notes set n = 1 => UPDATE 2
             bob:   select sum(length(note)) from notes => 32010"
        ));
        assert_sound(&fixture);
    }
}

/// An UPDATE of another column leaves the pieces where they are, also by ways that write the whole row.
///
/// Caught mutations: pointers that the new version has are deleted (`delete_pieces`); all columns are encoded anew
/// (`encode_new`).
#[test]
fn an_update_of_another_column_writes_no_piece() {
    let fixture = notes();
    fixture.play(
        "alice: select pages from apart => 4
         alice: update notes set n = n + 1 => UPDATE 2
         alice: update notes set n = n + 1 returning length(note) => 16001, 16001
         alice: update notes set n = n + 1, id = id from noise where value <> note => UPDATE 2
         alice: insert into notes values (1), (2) on conflict (id) do update set n = notes.n + 1 => INSERT 0 2
         alice: merge into notes using (values (1), (2)) v(i) on i = id when matched then update set n = n + 1 => MERGE 2
         alice: select pages, (select sum(n) from notes) from apart => 4|10
         alice: alter table notes add column later text default 'x' => ALTER TABLE
         alice: update notes set later = 'y' where id = 1 => UPDATE 1
         alice: update notes set id = id + 10 => UPDATE 2
         alice: select pages from apart => 4
         alice: select id, length(note), later from notes order by id => 11|16001|y, 12|16001|x",
    );
    assert_sound(&fixture);
}

/// Pieces of a value that was replaced, deleted, rolled back, taken back or refused are free after a vacuum: the file does not
/// grow.
///
/// Caught mutations: no `delete_replaced` in `update_row`, no `delete_of` in `delete_row`, no vacuum of the pieces.
#[test]
fn pieces_that_no_row_leads_to_are_freed() {
    let fixture = notes();
    let mut s = fixture.session();
    let insert = "insert into notes (id, note) select 3, value from noise";
    for turn in 0..12 {
        for sql in [
            "update notes set note = note || '.'",
            "update notes set note = left(note, 16000) from noise where length(value) < length(note)",
            "merge into notes using noise on true when matched then update set note = notes.id || value",
            "insert into notes select id, 0, note || '!' from notes on conflict (id) do update set note = excluded.note",
            "begin; savepoint s; update notes set note = note || 's'; rollback to s; delete from notes; rollback",
            insert,
            insert,
            "delete from notes where id = 3",
            "begin; insert into notes (id, note) select g, value from noise, generate_series(4, 5) g; rollback",
        ] {
            let _ = run(&mut s, sql);
            query(&mut s, "vacuum notes");
        }
        let pages: u32 = query(&mut s, "select pages from apart").parse().unwrap();
        assert!(pages <= 16, "{pages} pages after {turn} turns");
    }
    assert_eq!(query(&mut s, "select sum(length(note)) from notes"), "32004");
    assert_sound(&fixture);
    query(&mut s, "truncate notes");
    assert_eq!(query(&mut s, "select pages from apart"), "0");
}

/// Dropping a column leaves its pieces to the next update of the row, and dropping the table leaves none.
#[test]
fn a_dropped_column_gives_its_pieces_back() {
    let fixture = notes();
    fixture.play(
        "alice: alter table notes drop column note => ALTER TABLE
         alice: alter table notes add column note text => ALTER TABLE
         alice: vacuum notes => VACUUM
         alice: select pages from apart => 4
         alice: update notes set n = 1, note = 'short' => UPDATE 2
         alice: vacuum notes => VACUUM
         alice: update notes set note = id || value from noise => UPDATE 2
         alice: select pages, (select sum(length(note)) from notes) from apart => 4|32002",
    );
    assert_sound(&fixture);
}
