//! CHECK constraints in prepared statements, COPY and views, beside other sessions, and over a restart.

use crate::common::{Fixture, error, query, run};

fn notes() -> Fixture {
    Fixture::new(
        "create table notes (id int primary key, n int check (n > 0), text text);
         insert into notes values (1, 10, 'one'), (2, 20, 'two')",
    )
}

#[test]
fn an_error_tells_the_row_and_the_constraint() {
    let fixture = notes();
    let mut session = fixture.session();
    for sql in [
        "insert into notes values (3, -1, null)",
        "update notes set id = 3, n = -1, text = null where id = 1",
        "insert into notes values (1, 1, 'x') on conflict (id) do update set id = 3, n = -1, text = null",
    ] {
        let error = error(&mut session, sql);
        assert_eq!(error.sqlstate().as_str(), "23514", "{sql}");
        assert_eq!(
            error.message(),
            "new row for relation \"notes\" violates check constraint \"notes_n_check\""
        );
        assert_eq!(
            error.detail(),
            Some("Failing row contains (3, -1, null)."),
            "{sql}"
        );
        let object = error.object().expect("an object");
        assert_eq!(object.schema.as_deref(), Some("public"));
        assert_eq!(object.table.as_deref(), Some("notes"));
        assert_eq!(object.constraint.as_deref(), Some("notes_n_check"));
    }
    assert_eq!(
        query(&mut session, "select * from notes order by id"),
        "1|10|one, 2|20|two"
    );
}

#[test]
fn they_hold_after_a_restart_and_for_columns_that_moved() {
    let fixture = notes();
    query(
        &mut fixture.session(),
        "alter table notes add check (length(text) < n); alter table notes rename column n to size;
         alter table notes add constraint late check (id < 5) not valid; alter table notes drop column id",
    );
    let fixture = fixture.restarted();
    let mut session = fixture.session();
    let definitions = "select string_agg(conname || ' ' || pg_get_constraintdef(oid), ', ' order by conname)
        from pg_constraint where conrelid = 'notes'::regclass";
    assert_eq!(
        query(&mut session, definitions),
        "notes_check CHECK ((length(text) < size)), notes_n_check CHECK ((size > 0))"
    );
    assert_eq!(
        run(&mut session, "insert into notes values (0, null)"),
        "ERROR 23514"
    );
    assert_eq!(
        run(&mut session, "insert into notes values (2, 'long')"),
        "ERROR 23514"
    );
    assert_eq!(
        run(&mut session, "insert into notes values (5, 'long')"),
        "INSERT 0 1"
    );
}

#[test]
fn a_statement_that_is_prepared_is_checked_by_the_constraints_of_now() {
    notes().play(
        "alice: prepare put as insert into notes values ($1, $2, 'x') => PREPARE
         alice: execute put(3, 100) => INSERT 0 1
         bob: alter table notes add constraint small check (n < 50) not valid => ALTER TABLE
         alice: execute put(4, 100) => ERROR 23514
         alice: execute put(4, 40) => INSERT 0 1
         bob: alter table notes validate constraint small => ERROR 23514
         bob: delete from notes where id = 3 => DELETE 1
         bob: alter table notes validate constraint small => ALTER TABLE
         bob: alter table notes drop constraint small => ALTER TABLE
         alice: execute put(5, 100) => INSERT 0 1",
    );
}

#[test]
fn an_update_that_waited_checks_the_newer_row() {
    Fixture::new(
        "create table pairs (id int primary key, a int, b int, check (a < b)); insert into pairs values (1, 1, 10)",
    )
    .play(
        "alice: begin => BEGIN
         alice: update pairs set b = 3 where id = 1 => UPDATE 1
         bob: update pairs set a = 5 where id = 1 => waits
         alice: commit => COMMIT
         bob => ERROR 23514
         bob: select a, b from pairs => 1|3",
    );
}
