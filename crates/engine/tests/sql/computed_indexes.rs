//! Indexes on expressions and of a part of the rows: used, kept over changes and restarts, and right beside writers.

use std::thread;

use crate::common::{Fixture, query, run};

/// The plan of a query, in one line.
fn plan(session: &mut clearway_engine::Session, sql: &str) -> String {
    query(session, &format!("explain (costs off) {sql}"))
}

#[test]
fn plans_use_an_index_where_its_expression_and_predicate_are_asked_for() {
    let fixture = Fixture::new(
        "create table t (id int, name text, n int);
         insert into t select i, 'Name' || i, i % 100 from generate_series(1, 3000) i;
         create index by_lower on t (lower(name)); create index by_part on t (id) where n = 7;
         create index by_sum on t ((id + n)) where n > 50; create index by_name on t (name text_pattern_ops);
         create index by_not on t ((id + (1 + 1))) where not n > 3",
    );
    let mut s = fixture.session();
    query(&mut s, "analyze t; set enable_seqscan = off");
    for (sql, index, rows) in [
        (
            "select count(*) from t where lower(name) = 'name17'",
            "by_lower",
            "1",
        ),
        (
            "select count(*) from t where lower(name) like 'name17_'",
            "by_lower",
            "10",
        ),
        (
            "select count(*) from t where lower(name) in ('name1', 'name2')",
            "by_lower",
            "2",
        ),
        ("select count(*) from t where n = 7 and id < 500", "by_part", "5"),
        (
            "select count(*) from t where id + n = 151 and n > 60",
            "by_sum",
            "0",
        ),
        (
            "select count(*) from t where id + 2 = 302 and n <= 2",
            "by_not",
            "1",
        ),
        (
            "select count(*) from t where id + n = 152 and n = 76",
            "by_sum",
            "1",
        ),
        (
            "select count(*) from t where name like 'Name29__'",
            "by_name",
            "100",
        ),
    ] {
        let shown = plan(&mut s, sql);
        assert!(shown.contains(index), "{sql}: {shown}");
        assert_eq!(query(&mut s, sql), rows, "{sql}");
    }
    for sql in [
        "select * from t where upper(name) = 'NAME17'",
        "select * from t where n = 8 and id < 500",
        "select * from t where id + n = 151 and n > 40",
        "select * from t where name ilike 'name29__'",
    ] {
        let shown = plan(&mut s, sql);
        assert!(!shown.contains("by_"), "{sql}: {shown}");
    }
}

#[test]
fn they_are_kept_through_changes_and_a_restart() {
    let fixture = Fixture::new(
        "create table t (id int primary key, name text, done boolean not null default false);
         create unique index open_name on t (lower(name)) where not done",
    );
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into t select i, 'n' || i from generate_series(1, 500) i",
    );
    query(&mut s, "update t set done = true where id % 2 = 0");
    query(&mut s, "update t set name = upper(name) where id % 3 = 0");
    query(
        &mut s,
        "begin; update t set done = false where id < 100; rollback",
    );
    query(
        &mut s,
        "insert into t values (501, 'N2', false), (502, 'N4', true)",
    );
    assert_eq!(run(&mut s, "insert into t values (600, 'N1')"), "ERROR 23505");
    assert_eq!(
        run(&mut s, "update t set done = false where id = 2"),
        "ERROR 23505"
    );
    query(&mut s, "vacuum t");
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
    drop(s);
    let fixture = fixture.restarted();
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select id from t where lower(name) = 'n2' and not done"),
        "501"
    );
    assert_eq!(run(&mut s, "insert into t values (600, 'N1')"), "ERROR 23505");
    assert_eq!(run(&mut s, "insert into t values (600, 'N6')"), "INSERT 0 1");
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Writers move rows in and out of a partial unique index; whatever they do, at most one row is in it, and the check finds
/// each entry.
#[test]
fn a_partial_unique_index_holds_beside_writers() {
    let fixture = Fixture::new(
        "create table t (id int primary key, active boolean, v int);
         insert into t select i, false, 0 from generate_series(1, 8) i;
         create unique index one_active on t ((0)) where active",
    );
    thread::scope(|scope| {
        for worker in 0..4 {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut s = fixture.session();
                for round in 0..60 {
                    let id = (worker + round) % 8 + 1;
                    let outcome = run(
                        &mut s,
                        &format!("update t set active = true, v = v + 1 where id = {id}"),
                    );
                    assert!(outcome == "UPDATE 1" || outcome == "ERROR 23505", "{outcome}");
                    assert!(
                        ["0", "1"].contains(&query(&mut s, "select count(*) from t where active").as_str())
                    );
                    query(&mut s, &format!("update t set active = false where id = {id}"));
                }
            });
        }
    });
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

/// A row that another transaction refers to is updated where no key of it changes that a foreign key may lead to, and waited
/// for where one does: ON CONFLICT locks it as strongly as its update then asks for.
#[test]
fn on_conflict_locks_a_row_as_its_update_does() {
    Fixture::sharing_rows(
        "create table parent (id int primary key, name text, a int, b int generated always as (a * 2) stored unique);
         create unique index on parent (lower(name)); create table child (id int references parent);
         insert into parent values (1, 'one', 1)",
    )
    .play(
        "bob: begin => BEGIN
         bob: insert into child values (1) => INSERT 0 1
         alice: insert into parent values (1) on conflict (id) do update set name = 'ONE and more' => INSERT 0 1
         alice: insert into parent values (1) on conflict (id) do update set a = 5 => waits
         bob: commit => COMMIT
         alice => INSERT 0 1
         alice: select name, b from parent => ONE and more|10",
    );
}

/// The texts of an index are bound again at each start, so what they name keeps its name.
#[test]
fn a_name_in_the_text_of_an_index_stays() {
    let fixture = Fixture::new(
        "create type feeling as enum ('sad', 'ok'); create type pair as (a int, b text); create table part (a int);
         create table feels (name text, m feeling, inside pair, whole part);
         create index on feels (name) where m = 'sad'; create index on feels (((inside).b));
         create index on feels (((whole).a))",
    );
    let mut session = fixture.session();
    let renames = [
        "alter type feeling rename value 'sad' to 'blue'",
        "alter type pair rename attribute b to c",
        "alter table part rename a to b",
    ];
    for sql in renames {
        assert_eq!(run(&mut session, sql), "ERROR 0A000", "{sql}");
    }
    query(&mut session, "drop table feels");
    for sql in renames {
        assert!(!run(&mut session, sql).starts_with("ERROR"), "{sql}");
    }
}
