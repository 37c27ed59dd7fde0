//! A feature that PostgreSQL has and this engine lacks is refused as such: 0A000 with a name and a place.
//! Text that is no SQL is 42601.

mod common;

use clearway_engine::SqlState;
use common::{Fixture, error, run};

/// A line is a statement that PostgreSQL 15 parses.
const STATEMENTS: &str = include_str!("unsupported/statements.sql");

/// None of them is called a syntax error, and what is refused has a name and a place.
#[test]
fn statements_of_postgresql_are_no_syntax_errors() {
    let fixture = Fixture::new("create table t (id int primary key, x int)");
    let mut session = fixture.session();
    let mut refused = 0;
    for sql in STATEMENTS.lines() {
        let shown = run(&mut session, sql);
        assert_ne!(shown, "ERROR 42601", "{sql}");
        if shown != "ERROR 0A000" {
            // Some are done, and the next one is to find the table as it was.
            run(&mut session, "rollback");
            run(&mut session, "deallocate all");
            run(&mut session, "drop table if exists t, u");
            run(&mut session, "create table t (id int primary key, x int)");
            continue;
        }
        refused += 1;
        let error = error(&mut session, sql);
        let message = error.message();
        let named = [" is not supported", " are not supported"]
            .iter()
            .any(|end| message.strip_suffix(end).is_some_and(|name| !name.is_empty()))
            // PostgreSQL's own refusal.
            || message.starts_with("FULL JOIN is only supported with ");
        assert!(named, "{sql}: {message}");
        let length = sql.chars().count() as u32;
        assert!(
            error
                .position()
                .is_some_and(|position| (1..=length).contains(&position)),
            "{sql}: {error:?}"
        );
    }
    assert!(refused > 310, "only {refused} are refused");
}

/// Statements with the message that refuses them, and its place.
const REFUSED: &[(&str, &str, u32)] = &[
    (
        "  create extension if not exists e",
        "CREATE EXTENSION is not supported",
        3,
    ),
    (
        "/* é */ alter publication p add table t",
        "ALTER PUBLICATION is not supported",
        9,
    ),
    ("create trusted language l", "CREATE LANGUAGE is not supported", 1),
    (
        "create text search parser p ()",
        "CREATE TEXT SEARCH PARSER is not supported",
        1,
    ),
    (
        "create foreign table f (a int) server s",
        "CREATE FOREIGN TABLE is not supported",
        1,
    ),
    (
        "alter index i attach partition j",
        "ALTER INDEX is not supported",
        1,
    ),
    (
        "drop materialized view v",
        "DROP MATERIALIZED VIEW is not supported",
        6,
    ),
    (
        "select 1; create tablespace u",
        "CREATE TABLESPACE is not supported",
        11,
    ),
    (
        "create index i on only t (x)",
        "CREATE INDEX … ON ONLY is not supported",
        16,
    ),
    (
        "alter table t set tablespace s",
        "ALTER TABLE … SET TABLESPACE is not supported",
        15,
    ),
    (
        "alter table t inherit u",
        "ALTER TABLE … INHERIT is not supported",
        15,
    ),
    ("vacuum full t", "VACUUM FULL is not supported", 8),
    ("vacuum (analyze, full) t", "VACUUM FULL is not supported", 18),
    ("vacuum (full true) t", "VACUUM FULL is not supported", 9),
    (
        "explain create table u as select 1",
        "CREATE within another statement is not supported",
        9,
    ),
];

#[test]
fn what_is_refused_has_its_name_and_its_place() {
    let fixture = Fixture::new("create table t (id int primary key, x int)");
    let mut session = fixture.session();
    for &(sql, message, position) in REFUSED {
        let error = error(&mut session, sql);
        assert_eq!(
            error.sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{sql}: {error:?}"
        );
        assert_eq!(error.message(), message, "{sql}");
        assert_eq!(error.position(), Some(position), "{sql}");
    }
}

/// A mistake is a mistake, also in a statement that has a clause of PostgreSQL's elsewhere.
#[test]
fn mistakes_are_syntax_errors() {
    let fixture = Fixture::new("create table t (id int primary key, x int)");
    let mut session = fixture.session();
    for sql in [
        "selec 1",
        "create tabel t (a int)",
        "create viw v as select 1",
        "create",
        "alter",
        "alter tabel t add x int",
        "insert into t (id) overriding values (1)",
        "insert into t valus (1)",
        "select * frm t for no key update",
        "select * from t for no key",
        "create table u (a int,, b int) using heap",
        "create table u (a int) of",
        "alter table t inhrit u",
        "update t set = 1 where current of c",
        "select 'rows from' 1 2",
        "set xml",
        "explain explain select 1",
        "tables t",
    ] {
        let error = error(&mut session, sql);
        assert_eq!(error.sqlstate(), SqlState::SYNTAX_ERROR, "{sql}: {error:?}");
    }
}
