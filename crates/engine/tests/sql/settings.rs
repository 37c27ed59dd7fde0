//! SET, SHOW, set_config, notices, and statements about the server.

use clearway_engine::{Collected, Session, SqlState};

use crate::common::{Fixture, error, query, run};
use crate::shop;

#[test]
fn settings_are_shown_and_undone() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(query(&mut s, "show server_version_num"), "150000");
    query(&mut s, "set application_name = 'till'");
    assert_eq!(query(&mut s, "show application_name"), "till");
    query(&mut s, "begin; set local synchronous_commit = off");
    assert_eq!(query(&mut s, "show synchronous_commit"), "off");
    query(&mut s, "commit");
    assert_eq!(query(&mut s, "show synchronous_commit"), "on");
    query(&mut s, "begin isolation level repeatable read");
    assert_eq!(query(&mut s, "show transaction_isolation"), "repeatable read");
    query(&mut s, "rollback");
    assert_eq!(run(&mut s, "set client_encoding = 'LATIN1'"), "ERROR 0A000");
}

#[test]
fn set_config_sets_for_the_session_or_the_transaction() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let show = |session: &mut Session| query(session, "show statement_timeout");
    // What pg_dump says first.
    assert_eq!(
        query(
            &mut session,
            "select pg_catalog.set_config('search_path', '', false)"
        ),
        ""
    );
    assert_eq!(query(&mut session, "show search_path"), "");
    assert_eq!(
        query(
            &mut session,
            "select set_config('statement_timeout', '5000', false)"
        ),
        "5s"
    );
    assert_eq!(show(&mut session), "5s");
    run(&mut session, "begin");
    assert_eq!(
        query(&mut session, "select set_config('statement_timeout', '7s', true)"),
        "7s"
    );
    assert_eq!(show(&mut session), "7s");
    run(&mut session, "commit");
    assert_eq!(show(&mut session), "5s");
    run(&mut session, "begin");
    query(
        &mut session,
        "select set_config('statement_timeout', '9s', false)",
    );
    run(&mut session, "rollback");
    assert_eq!(show(&mut session), "5s");
    // For a transaction that is the statement alone, it ends with it.
    assert_eq!(
        query(&mut session, "select set_config('statement_timeout', '8s', true)"),
        "8s"
    );
    assert_eq!(show(&mut session), "5s");
    let wrong = error(
        &mut session,
        "select set_config('statement_timeout', '-3', false)",
    );
    assert_eq!(wrong.sqlstate(), SqlState::INVALID_PARAMETER_VALUE);
    let unknown = error(&mut session, "select set_config('no_such_thing', '1', false)");
    assert_eq!(unknown.sqlstate(), SqlState::UNDEFINED_OBJECT);
    // An error takes back what the same statement set.
    error(
        &mut session,
        "select set_config('statement_timeout', '1s', false), 1 / 0",
    );
    assert_eq!(show(&mut session), "5s");
    assert_eq!(
        query(
            &mut session,
            "select set_config('statement_timeout', null, false)"
        ),
        "0"
    );
}

#[test]
fn set_constraints_knows_its_constraints() {
    let fixture = Fixture::new("create table t (a int primary key)");
    let mut session = fixture.session();
    assert_eq!(
        run(&mut session, "set constraints all deferred"),
        "SET CONSTRAINTS"
    );
    let unknown = error(&mut session, "set constraints nonsense immediate");
    assert_eq!(unknown.sqlstate(), SqlState::UNDEFINED_OBJECT);
    assert_eq!(unknown.message(), "constraint \"nonsense\" does not exist");
    let fixed = error(&mut session, "set constraints t_pkey deferred");
    assert_eq!(fixed.sqlstate(), SqlState::WRONG_OBJECT_TYPE);
    assert_eq!(
        error(&mut session, "set constraints nonsense").sqlstate(),
        SqlState::SYNTAX_ERROR
    );
}

#[test]
fn notices_below_the_wanted_level_are_not_sent() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let notices = |session: &mut Session, sql: &str| {
        let mut out = Collected::default();
        session.execute_simple(sql, &mut out).unwrap();
        out.notices.len()
    };
    assert_eq!(notices(&mut session, "drop table if exists t"), 1);
    run(&mut session, "set client_min_messages = warning");
    assert_eq!(notices(&mut session, "drop table if exists t"), 0);
    assert_eq!(notices(&mut session, "commit"), 1);
    run(&mut session, "set client_min_messages = error");
    assert_eq!(notices(&mut session, "commit"), 0);
}

#[test]
fn utility_statements() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(query(&mut s, "vacuum"), "VACUUM");
    assert_eq!(query(&mut s, "vacuum analyze items"), "VACUUM");
    assert_eq!(query(&mut s, "analyze"), "ANALYZE");
    assert_eq!(query(&mut s, "checkpoint"), "CHECKPOINT");
    assert_eq!(run(&mut s, "begin; vacuum"), "ERROR 25001");
    query(&mut s, "rollback");
    assert!(query(&mut s, "explain select * from items where id = 1").contains("items_pkey"));
    assert_eq!(query(&mut s, "drop table if exists nothing, log"), "DROP TABLE");
    assert_eq!(
        query(&mut s, "create table if not exists items (id int)"),
        "CREATE TABLE"
    );
}

#[test]
fn escapes_in_plain_strings_are_warned_of_where_they_stand() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let said = |session: &mut Session, sql: &str| {
        let mut out = Collected::default();
        let ended = session.execute_simple(sql, &mut out);
        let told = out.notices.iter().map(|notice| {
            assert_eq!((notice.severity, notice.sqlstate.as_str()), ("WARNING", "22P06"));
            assert!(notice.hint.is_some());
            format!("{} at {}", notice.message, notice.position.unwrap())
        });
        let told: Vec<String> = told.collect();
        let error = ended
            .err()
            .map(|error| format!("{} at {:?}", error.message(), error.position()));
        told.into_iter().chain(error).collect::<Vec<_>>().join("; ")
    };
    run(&mut session, "set standard_conforming_strings = off");
    let escape = "nonstandard use of escape in a string literal";
    assert_eq!(
        said(&mut session, "select 'é\\t\\\\', '\\\\', E'\\t', '\\''"),
        format!(
            "{escape} at 8; nonstandard use of \\\\ in a string literal at 17; \
             nonstandard use of \\' in a string literal at 30"
        )
    );
    // Errors are placed in the text as the client wrote it.
    assert_eq!(
        said(&mut session, "select 1; select '\\u0041' x, '\\u0042' + nosuch"),
        format!("{escape} at 18; {escape} at 30; column \"nosuch\" does not exist at Some(41)")
    );
    assert_eq!(
        said(&mut session, "select 'a\\tb' )"),
        format!("{escape} at 8; syntax error at or near \")\" at Some(15)")
    );
    // The places of one text are not those of the next.
    let without = "select 1, 2, nosuch";
    let nosuch = "column \"nosuch\" does not exist at Some(14)";
    assert_eq!(said(&mut session, without), nosuch);
    let mut out = Collected::default();
    let error = session
        .prepare_to("select '\\u0041', nosuch", &[], &mut out)
        .unwrap_err();
    assert_eq!((out.notices.len(), error.position()), (1, Some(18)));
    assert_eq!(said(&mut session, without), nosuch);
    // Nor are those of a text without an error.
    run(&mut session, "select '\\u0041'");
    assert_eq!(said(&mut session, without), nosuch);
    session
        .prepare_to("select '\\u0041'", &[], &mut Collected::default())
        .unwrap();
    assert_eq!(said(&mut session, without), nosuch);
    run(&mut session, "set escape_string_warning = off");
    assert_eq!(said(&mut session, "select 'é\\t\\\\'"), "");
    run(
        &mut session,
        "reset standard_conforming_strings; reset escape_string_warning",
    );
    assert_eq!(said(&mut session, "select 'é\\t\\\\'"), "");
    assert_eq!(
        said(&mut session, "select E'\\u0041', nosuch"),
        "column \"nosuch\" does not exist at Some(19)"
    );
}
