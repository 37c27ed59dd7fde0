//! Sessions: their number, the settings and the activity that they report, what ends their statements, and what their
//! own end undoes.

mod common;

use std::time::{Duration, Instant};

use clearway_engine::{Collected, Config, Session, SessionInfo, SessionState, TransactionStatus};
use common::{Fixture, config, error, query, reset_statement_timeout, run};

/// Waits until something is so.
#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A session as others see it.
fn seen(fixture: &Fixture, session: &Session) -> clearway_engine::SessionActivity {
    let all = fixture.engine.activity();
    let found = all
        .into_iter()
        .find(|one| one.process_id == session.cancel_key().0);
    found.unwrap()
}

#[test]
fn a_session_that_goes_away_gives_everything_back() {
    let fixture = Fixture::new("create table t (i int primary key); insert into t values (1)");
    let mut other = fixture.session();
    assert_eq!(fixture.engine.session_count(), 1);
    let mut gone = fixture.session();
    assert_eq!(fixture.engine.session_count(), 2);
    query(&mut gone, "begin");
    query(&mut gone, "update t set i = 2");
    query(&mut gone, "create table u (i int)");
    drop(gone);
    assert_eq!(fixture.engine.session_count(), 1);
    // Neither the row nor the name of the table is taken any more.
    query(&mut other, "set lock_timeout = '30s'");
    assert_eq!(query(&mut other, "update t set i = 3 where i = 1"), "UPDATE 1");
    assert_eq!(query(&mut other, "create table u (i int)"), "CREATE TABLE");
}

#[test]
fn sessions_are_limited_and_have_numbers_of_their_own() {
    let limited = Config {
        max_connections: 3,
        ..config()
    };
    let fixture = Fixture::with_config("", limited);
    let open: Vec<Session> = (0..3).map(|_| fixture.session()).collect();
    let refused = fixture.engine.session(SessionInfo::default()).unwrap_err();
    assert_eq!(refused.sqlstate().as_str(), "53300");
    let mut numbers: Vec<u32> = open.iter().map(|session| session.cancel_key().0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((numbers.len(), numbers[0] > 0), (3, true));
    drop(open);
    assert_eq!(fixture.engine.session_count(), 0);
    fixture.session();
}

#[test]
fn a_statement_is_cancelled_by_number_and_secret() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let (number, secret) = session.cancel_key();
    assert!(!fixture.engine.cancel(number, secret.wrapping_add(1)));
    assert!(!fixture.engine.cancel(number.wrapping_add(1), secret));
    let engine = std::sync::Arc::clone(&fixture.engine);
    let sleeper = std::thread::spawn(move || {
        let cancelled = error(&mut session, "select pg_sleep(100)");
        (cancelled, session)
    });
    wait_until(|| {
        engine
            .activity()
            .iter()
            .any(|one| one.state == SessionState::Active)
    });
    assert!(engine.cancel(number, secret));
    let (cancelled, mut session) = sleeper.join().unwrap();
    assert_eq!(cancelled.sqlstate().as_str(), "57014");
    assert!(cancelled.message().contains("user request"), "{cancelled}");
    // A request that comes between two statements hits neither.
    assert!(engine.cancel(number, secret));
    assert_eq!(query(&mut session, "select 1"), "1");
}

#[test]
fn time_limits_end_statements_and_waits() {
    let fixture = Fixture::new("create table t (i int primary key); insert into t values (1)");
    let mut session = fixture.session();
    query(&mut session, "set statement_timeout = '20ms'");
    let late = error(&mut session, "select pg_sleep(100)");
    assert_eq!(late.sqlstate().as_str(), "57014");
    assert!(late.message().contains("statement timeout"), "{late}");
    let late = error(
        &mut session,
        "select count(*) from generate_series(1, 1000000000000)",
    );
    assert_eq!(late.sqlstate().as_str(), "57014");
    reset_statement_timeout(&mut session);
    let begin = Instant::now();
    query(&mut session, "select pg_sleep(0.03)");
    assert!(begin.elapsed() >= Duration::from_millis(30));
    let mut holder = fixture.session();
    query(&mut holder, "begin; update t set i = 1");
    query(&mut session, "set lock_timeout = '20ms'");
    assert_eq!(run(&mut session, "update t set i = 1"), "ERROR 55P03");
    assert_eq!(run(&mut session, "drop table t"), "ERROR 55P03");
    // Each waits for the lock of the table, in its own way; one that does not end by this time gets another error.
    query(&mut session, "set statement_timeout = '20s'");
    for sql in [
        "begin; lock table t",
        "truncate t",
        "alter table t add j int",
        "create index on t (i)",
        "reindex table t",
        "create index concurrently waits_for_writers on t (i)",
    ] {
        assert_eq!(run(&mut session, sql), "ERROR 55P03", "{sql}");
        run(&mut session, "rollback");
    }
    query(
        &mut holder,
        "commit; begin; lock table t in share update exclusive mode",
    );
    for sql in ["vacuum t", "vacuum", "analyze t", "analyze", "vacuum analyze t"] {
        assert_eq!(run(&mut session, sql), "ERROR 55P03", "{sql}");
    }
    query(
        &mut holder,
        "commit; begin isolation level repeatable read; select * from t",
    );
    let indexes = "select count(*) from pg_indexes where indexname like 'waits_for_snapshots%'";
    assert_eq!(
        run(
            &mut session,
            "create index concurrently waits_for_snapshots on t (i)"
        ),
        "ERROR 55P03"
    );
    assert_eq!(
        query(&mut session, indexes),
        "1",
        "an index that is not finished stays"
    );
    query(&mut holder, "commit");
    for index in ["waits_for_snapshots", "waits_for_writers"] {
        query(&mut session, &format!("drop index concurrently {index}"));
    }
    assert_eq!(query(&mut session, "update t set i = 1"), "UPDATE 1");
}

#[test]
fn a_deadlock_has_one_victim() {
    let fixture = Fixture::with_config(
        "create table t (i int primary key, n int); insert into t values (1, 0), (2, 0)",
        Config {
            deadlock_timeout: "10ms".parse().unwrap(),
            ..config()
        },
    );
    let (mut a, mut b) = (fixture.session(), fixture.session());
    query(&mut a, "begin; update t set n = n + 1 where i = 1");
    query(&mut b, "begin; update t set n = n + 1 where i = 2");
    let other = std::thread::spawn(move || (run(&mut b, "update t set n = n + 1 where i = 1"), b));
    let mine = run(&mut a, "update t set n = n + 1 where i = 2");
    run(&mut a, "commit");
    let (theirs, mut b) = other.join().unwrap();
    run(&mut b, "commit");
    let mut both = [mine, theirs];
    both.sort();
    assert_eq!(both, ["ERROR 40P01", "UPDATE 1"]);
    assert_eq!(query(&mut a, "select sum(n) from t"), "2");
}

#[test]
fn the_states_of_a_session_are_shown() {
    let fixture = Fixture::new("create table t (i int)");
    let mut session = fixture.session();
    let fresh = seen(&fixture, &session);
    assert_eq!(
        (fresh.state, fresh.query_start, fresh.transaction_start),
        (SessionState::Idle, None, None)
    );
    query(&mut session, "begin");
    query(&mut session, "insert into t values (1)");
    let inside = seen(&fixture, &session);
    assert_eq!(inside.state, SessionState::IdleInTransaction);
    assert_eq!(session.transaction_status(), TransactionStatus::InTransaction);
    assert!(inside.transaction_id.is_some());
    assert!(
        inside.transaction_start >= Some(inside.backend_start),
        "{inside:?}"
    );
    assert!(inside.query_start >= inside.transaction_start, "{inside:?}");
    assert!(inside.state_change >= inside.query_start.unwrap(), "{inside:?}");
    run(&mut session, "select 1 / 0");
    let failed = seen(&fixture, &session);
    assert_eq!(failed.state, SessionState::IdleInFailedTransaction);
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    query(&mut session, "rollback");
    let after = seen(&fixture, &session);
    assert_eq!(
        (after.state, after.transaction_start, after.transaction_id),
        (SessionState::Idle, None, None)
    );
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    // The row of the view is that of this very statement.
    let own = "select state, query, datname, backend_type, application_name, xact_start = now(), query_start >= backend_start
        from pg_stat_activity where pid = pg_backend_pid()";
    query(&mut session, "set application_name = 'till'");
    let row = query(&mut session, own);
    assert_eq!(row, format!("active|{own}|postgres|client backend|till|t|t"));
    query(&mut session, "begin; set application_name = 'undone'");
    assert_eq!(seen(&fixture, &session).application_name, "undone");
    query(&mut session, "rollback");
    assert_eq!(seen(&fixture, &session).application_name, "till");
    query(&mut session, "discard all");
    assert_eq!(seen(&fixture, &session).application_name, "");
}

#[test]
fn a_client_that_is_silent_for_too_long_is_told_why() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let limit = |session: &Session| {
        let (limit, error) = session.idle_limit()?;
        Some((limit.as_millis(), error.sqlstate().as_str().to_owned()))
    };
    assert_eq!(limit(&session), None);
    query(&mut session, "set idle_session_timeout = '2s'");
    assert_eq!(limit(&session), Some((2_000, "57P05".to_owned())));
    query(&mut session, "begin");
    assert_eq!(limit(&session), None);
    query(&mut session, "set idle_in_transaction_session_timeout = 300");
    assert_eq!(limit(&session), Some((300, "25P03".to_owned())));
    query(&mut session, "commit; set idle_session_timeout = 0");
    assert_eq!(limit(&session), None);
}

#[test]
fn a_session_starts_with_the_settings_its_client_asks_for() {
    let fixture = Fixture::new("");
    let with = |settings: &[(&str, &str)]| {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        fixture.engine.session(SessionInfo {
            user: "alice".to_owned(),
            settings: settings.collect(),
            ..SessionInfo::default()
        })
    };
    let mut session = with(&[
        ("application_name", "till"),
        ("Statement_Timeout", "90s"),
        ("work_mem", "1MB"),
        ("my.own", "x"),
        ("TimeZone", "Europe/Vienna"),
        ("default_transaction_isolation", "repeatable read"),
    ])
    .unwrap();
    assert_eq!(
        query(&mut session, "select current_user, session_user"),
        "alice|alice"
    );
    assert_eq!(query(&mut session, "show session_authorization"), "alice");
    assert_eq!(query(&mut session, "show timezone"), "Europe/Vienna");
    assert_eq!(
        query(&mut session, "show transaction_isolation"),
        "repeatable read"
    );
    assert_eq!(seen(&fixture, &session).application_name, "till");
    assert_eq!(seen(&fixture, &session).user, "alice");
    query(
        &mut session,
        "set statement_timeout = '5min'; set work_mem = '2MB'; set my.own = 'y'",
    );
    query(&mut session, "reset all");
    assert_eq!(
        query(
            &mut session,
            "select current_setting('statement_timeout'), current_setting('work_mem'), current_setting('my.own')"
        ),
        "90s|1MB|x"
    );
    assert_eq!(session.setting("work_mem").as_deref(), Some("1MB"));
    assert_eq!(session.setting("nothing"), None);
    for (name, value, state) in [
        ("nothing", "1", "42704"),
        ("work_mem", "much", "22023"),
        ("statement_timeout", "soon", "22023"),
    ] {
        assert_eq!(
            with(&[(name, value)]).unwrap_err().sqlstate().as_str(),
            state,
            "{name}"
        );
    }
    let elsewhere = SessionInfo {
        database: "nowhere".to_owned(),
        ..SessionInfo::default()
    };
    assert_eq!(
        fixture.engine.session(elsewhere).unwrap_err().sqlstate().as_str(),
        "3D000"
    );
}

/// The names are those that PostgreSQL 15 reports, but for `is_superuser` and the like, which clients do not read.
#[test]
fn a_client_is_told_of_the_settings_that_it_reads() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    let told: Vec<(&str, String)> = session.reported_settings();
    for (name, value) in [
        ("application_name", ""),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("integer_datetimes", "on"),
        ("server_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("TimeZone", "UTC"),
    ] {
        assert!(told.contains(&(name, value.to_owned())), "{name} {told:?}");
    }
    assert!(
        told.iter()
            .any(|(name, value)| *name == "server_version" && value.starts_with("15"))
    );
    assert!(!told.iter().any(|(name, _)| *name == "work_mem"));
    let all = query(&mut session, "show all");
    assert!(
        all.contains("work_mem|4MB|") && all.contains("application_name||"),
        "{all}"
    );
    assert_eq!(
        query(
            &mut session,
            "select name, setting, unit from pg_settings where name = 'work_mem'"
        ),
        "work_mem|4096|kB"
    );
    let mut out = Collected::default();
    session.execute_simple("begin; begin", &mut out).unwrap();
    assert_eq!(out.notices.len(), 1);
    query(&mut session, "set client_min_messages = error");
    let mut out = Collected::default();
    session.execute_simple("begin", &mut out).unwrap();
    assert!(out.notices.is_empty());
}
