//! Long statements are planned within a limit for all sessions together, and give their part back however they end.

mod common;

use std::sync::Arc;

use clearway_engine::{Collected, Config, EngineError, Session, SqlState};
use common::{Fixture, config, query, reset_statement_timeout, run};

/// Some 100 kB, for which 153 MB are reserved.
fn long(of: &str) -> String {
    format!(
        "select count(*) from t where x in ({}1)",
        format!("{of}, ").repeat(100_000 / (of.len() + 2))
    )
}

fn fixture(planning_memory: &str) -> Fixture {
    let config = Config {
        planning_memory: planning_memory.parse().unwrap(),
        ..config()
    };
    Fixture::with_config("create table t (x int); insert into t values (1)", config)
}

#[track_caller]
fn assert_refused(error: &EngineError) {
    assert_eq!(error.sqlstate(), SqlState::OUT_OF_MEMORY, "{error:?}");
    assert!(error.detail().unwrap().contains("may take 153"), "{error:?}");
    assert!(error.hint().unwrap().contains("COPY"), "{error:?}");
}

fn simple(session: &mut Session, sql: &str) -> EngineError {
    session
        .execute_simple(sql, &mut Collected::default())
        .unwrap_err()
}

#[test]
fn what_is_too_long_for_the_limit_is_refused_wherever_it_comes() {
    let fixture = fixture("100MB");
    let mut session = fixture.session();
    let long = long("1");
    assert_refused(&simple(&mut session, &long));
    assert_refused(&session.prepare(&long, &[]).unwrap_err());
    // The text of PREPARE is long as well.
    assert_eq!(
        simple(&mut session, &format!("prepare p as {long}")).sqlstate(),
        SqlState::OUT_OF_MEMORY
    );
    // Short ones do not count, and rows of an INSERT far less.
    assert_eq!(query(&mut session, "select count(*) from t"), "1");
    let rows = format!("insert into t values (1){}", ", (2)".repeat(20_000));
    assert_eq!(run(&mut session, &rows), "INSERT 0 20001");
    let fails = format!("{rows}, (3");
    assert!(run(&mut session, &fails).starts_with("ERROR"));
}

/// The limit has room for one at a time: what is not given back is missed by the next.
#[test]
fn memory_is_given_back_however_a_statement_ends() {
    let fixture = fixture("300MB");
    let mut session = fixture.session();
    let good = long("1");
    for _ in 0..3 {
        assert_eq!(query(&mut session, &good), "1");
        for (sql, sqlstate) in [
            (good.replace("count", "cuont"), "42883"),
            (good.replace(" from ", " form "), "42601"),
            (good.replacen("1, 1", "1 / 0, 1", 1), "22012"),
            (good.replacen("1, 1", "1, missing", 1), "42703"),
        ] {
            assert_eq!(run(&mut session, &sql), format!("ERROR {sqlstate}"));
        }
        run(&mut session, "set statement_timeout = '1ms'");
        assert_eq!(run(&mut session, &good), "ERROR 57014");
        reset_statement_timeout(&mut session);
        let prepared = session.prepare(&good, &[]).unwrap();
        // Its plan counts while it is kept, and again when it was made anew.
        run(&mut session, "create table other (x int)");
        session
            .execute(&prepared, &[], 0, &mut Collected::default())
            .unwrap();
        session.sync().unwrap();
        run(&mut session, "drop table other");
        drop(Arc::clone(&prepared));
    }
}

/// A kept plan holds its part, so with many of them the limit is met.
#[test]
fn kept_plans_count() {
    let fixture = fixture("300MB");
    let sessions: Vec<Session> = (0..20).map(|_| fixture.session()).collect();
    let long = long("1");
    let mut kept = Vec::new();
    let mut refused = 0;
    for mut session in sessions {
        match session.prepare(&long, &[]) {
            Ok(prepared) => kept.push((session, prepared)),
            Err(error) => {
                assert_refused(&error);
                refused += 1;
            }
        }
    }
    assert!(
        kept.len() > 3 && refused > 3,
        "{} kept, {refused} refused",
        kept.len()
    );
    drop(kept);
    let mut session = fixture.session();
    assert_eq!(query(&mut session, &long), "1");
}
