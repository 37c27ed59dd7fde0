//! Indexes and serial columns, over rollbacks and restarts.

use crate::common::{Fixture, query, run};

#[test]
fn indexes_are_built_used_and_kept() {
    let fixture = Fixture::new("create table words (id int, word text, n int)");
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into words select i, 'w' || (i % 100), i / 10 from generate_series(1, 5000) i",
    );
    query(
        &mut s,
        "create index by_word on words (word, n desc)"
            .replace(" desc", "")
            .as_str(),
    );
    query(&mut s, "alter table words add primary key (id)");
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'w7'"),
        "50"
    );
    assert_eq!(
        query(
            &mut s,
            "select id from words where word = 'w7' and n < 25 order by n"
        ),
        "7, 107, 207"
    );
    query(
        &mut s,
        "update words set word = 'other' where id <= 107 and word = 'w7'",
    );
    assert_eq!(
        query(&mut s, "select id from words where word = 'other' order by id"),
        "7, 107"
    );
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'w7'"),
        "48"
    );
    assert_eq!(
        run(&mut s, "create unique index twice on words (word)"),
        "ERROR 23505"
    );
    assert_eq!(
        run(&mut s, "alter table words add primary key (n)"),
        "ERROR 42P16"
    );
    query(&mut s, "insert into words values (9000, null, null)");
    assert_eq!(query(&mut s, "select id from words where word is null"), "9000");
    query(&mut s, "drop index by_word");
    assert_eq!(
        query(&mut s, "select count(*) from words where word = 'other'"),
        "2"
    );
    let report = fixture.engine.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(
        (report.tables, report.rows, report.index_entries),
        (1, 5001, 5001)
    );
}

#[test]
fn serial_columns_count_on_after_a_rollback_and_a_restart() {
    let fixture = Fixture::new("create table t (id serial primary key, x int)");
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "insert into t (x) values (1), (2) returning id"),
        "1, 2"
    );
    query(&mut s, "begin");
    assert_eq!(query(&mut s, "insert into t (x) values (3) returning id"), "3");
    query(&mut s, "rollback");
    assert_eq!(query(&mut s, "insert into t (x) values (4) returning id"), "4");
    query(&mut s, "truncate t restart identity");
    assert_eq!(query(&mut s, "insert into t (x) values (5) returning id"), "1");
}
