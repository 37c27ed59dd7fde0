//! Names: the search path, and names that do not exist.

use clearway_engine::{Session, SqlState};

use crate::common::{Fixture, error, query, run};
use crate::shop;

#[test]
fn names_that_do_not_exist() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(run(&mut s, "select * from nothing"), "ERROR 42P01");
    assert_eq!(run(&mut s, "select colour from items"), "ERROR 42703");
    assert_eq!(run(&mut s, "select nosuch(1)"), "ERROR 42883");
    assert_eq!(run(&mut s, "selec 1"), "ERROR 42601");
    assert_eq!(run(&mut s, "set no_such_setting = 1"), "ERROR 42704");
    assert_eq!(run(&mut s, "create table items (id int)"), "ERROR 42P07");
    assert_eq!(run(&mut s, "drop table nothing"), "ERROR 42P01");
    assert_eq!(
        run(&mut s, "select * from items a join log b on a.nothing"),
        "ERROR 42703"
    );
    assert_eq!(run(&mut s, "rollback to a"), "ERROR 25P01");
}

#[test]
fn names_are_looked_for_along_the_search_path() {
    let fixture = Fixture::new("create table t (a int); insert into t values (7)");
    let mut session = fixture.session();
    let ok = |session: &mut Session, sql: &str| run(session, sql);
    // A schema that does not exist is no error, as in PostgreSQL; a name is not found there.
    assert_eq!(ok(&mut session, "set search_path to nowhere"), "SET");
    assert_eq!(
        error(&mut session, "select * from t").sqlstate(),
        SqlState::UNDEFINED_TABLE
    );
    assert_eq!(query(&mut session, "select a from public.t"), "7");
    assert_eq!(
        query(
            &mut session,
            "select count(*) from pg_tables where schemaname = 'public'"
        ),
        "1"
    );
    assert_eq!(query(&mut session, "select current_schema() is null"), "t");
    let refused = error(&mut session, "create table u (a int)");
    assert_eq!(refused.sqlstate(), SqlState::INVALID_SCHEMA_NAME);
    assert_eq!(refused.message(), "no schema has been selected to create in");
    assert_eq!(ok(&mut session, "create table public.u (a int)"), "CREATE TABLE");
    assert_eq!(ok(&mut session, "set search_path to nowhere, public"), "SET");
    assert_eq!(query(&mut session, "select a from t"), "7");
    assert_eq!(query(&mut session, "select current_schema()"), "public");
    // A prepared statement is planned anew.
    ok(&mut session, "prepare p as select a from t");
    ok(&mut session, "set search_path to ''");
    assert_eq!(
        error(&mut session, "execute p").sqlstate(),
        SqlState::UNDEFINED_TABLE
    );
    ok(&mut session, "reset search_path");
    assert_eq!(query(&mut session, "execute p"), "7");
}

/// Words that begin a clause or a join of other databases are names like any others.
#[test]
fn words_of_other_databases_name_tables() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    for word in [
        "anti",
        "asof",
        "connect",
        "format",
        "global",
        "match_condition",
        "match_recognize",
        "open",
        "output",
        "partition",
        "pivot",
        "prewhere",
        "qualify",
        "semi",
        "settings",
        "top",
        "unpivot",
    ] {
        let statement = format!("create table {word} (id int, {word} int); insert into {word} values (1, 2)");
        assert_eq!(
            run(&mut session, &statement),
            "CREATE TABLE; INSERT 0 1",
            "{word}"
        );
        for (statement, rows) in [
            (format!("select {word}.id from {word} where {word}.id = 1"), "1"),
            (format!("select {word} + 1 from {word} {word} where id = 1"), "3"),
            (
                format!(
                    "select top.id, {word}.id from {word} as top, {word} {word} where top.id = {word}.id"
                ),
                "1|1",
            ),
            (
                format!("select a.id from {word} a join {word} on a.id = {word}.id"),
                "1",
            ),
        ] {
            if word != "top" || !statement.contains("as top") {
                assert_eq!(query(&mut session, &statement), rows, "{statement}");
            }
        }
    }
}
