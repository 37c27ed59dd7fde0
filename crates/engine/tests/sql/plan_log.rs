//! Plans of slow statements in the server's log: `auto_explain`.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use clearway_engine::{Collected, Completion, Session};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Fixture, error, query, run};

/// A log that keeps the messages of the thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Message<'m>(&'m mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = writeln!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The messages that statements leave in the log.
fn told(s: &mut Session, statements: &[&str]) -> String {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for sql in statements {
            let ran = run(s, sql);
            assert!(!ran.starts_with("ERROR"), "{sql}: {ran}");
        }
    });
    let told = log.0.lock().unwrap();
    told.clone()
}

fn fixture() -> Fixture {
    Fixture::new(
        "create table t (a int primary key, b int); insert into t select n, n from generate_series(1, 50) n",
    )
}

#[test]
fn a_slow_statement_is_told_with_its_plan() {
    let fixture = fixture();
    let mut s = fixture.session();
    assert!(!told(&mut s, &["select count(*) from t"]).contains("plan:"));
    query(&mut s, "set auto_explain.log_min_duration = '1h'");
    assert!(!told(&mut s, &["select count(*) from t"]).contains("plan:"));
    query(&mut s, "set auto_explain.log_min_duration = '20ms'");
    let log = told(&mut s, &["select a, pg_sleep(0.03) from t where a = 1"]);
    assert!(
        log.contains(" ms  plan:\nQuery Text: select a, pg_sleep(0.03) from t where a = 1\n"),
        "{log}"
    );
    assert!(log.contains("Index Scan using t_pkey on t  (cost="), "{log}");
    assert!(!log.contains("actual"), "{log}");
    query(&mut s, "set auto_explain.log_min_duration = 0");
    let log = told(
        &mut s,
        &["prepare p (int) as select b from t where b = $1", "execute p(7)"],
    );
    assert!(
        log.contains("Query Text: select b from t where b = $1\n"),
        "{log}"
    );
    // What is read in parts, EXPLAIN and COPY are not told.
    let quiet = [
        "explain select 1",
        "begin; declare c cursor for select a from t; fetch 2 from c; commit",
    ];
    assert!(!told(&mut s, &quiet).contains("plan:"));
    query(&mut s, "create role joe; set role joe");
    assert_eq!(
        error(&mut s, "set auto_explain.log_min_duration = -1")
            .sqlstate()
            .as_str(),
        "42501"
    );
}

#[test]
fn a_measured_statement_answers_as_always_and_tells_what_it_did() {
    let fixture = fixture();
    let mut s = fixture.session();
    query(&mut s, "set auto_explain.log_min_duration = 0");
    query(&mut s, "set auto_explain.log_analyze = on");
    query(&mut s, "set auto_explain.log_timing = off");
    let log = told(&mut s, &["select a from t where b > 20"]);
    assert!(log.contains("Seq Scan on t  (cost="), "{log}");
    assert!(
        log.contains(" (actual rows=30 loops=1)\n  Filter: (b > 20)\n  Rows Removed by Filter: 20\n"),
        "{log}"
    );
    assert_eq!(
        query(
            &mut s,
            "select count(*), (select max(b) from t) from t where b > 20"
        ),
        "30|50"
    );
    let log = told(&mut s, &["update t set b = 0 where b > 40 returning a"]);
    assert!(
        log.contains("Update on t") && log.contains(" (actual rows=10 loops=1)\n"),
        "{log}"
    );
    assert_eq!(query(&mut s, "select count(*) from t where b = 0"), "10");
    // A second run counts anew.
    let log = told(&mut s, &["select a from t where b > 20"]);
    assert!(
        log.contains(" (actual rows=20 loops=1)\n  Filter: (b > 20)\n  Rows Removed by Filter: 30\n"),
        "{log}"
    );
    query(&mut s, "set auto_explain.log_format = json");
    query(&mut s, "set auto_explain.log_buffers = on");
    query(&mut s, "set auto_explain.log_settings = on");
    query(&mut s, "set enable_seqscan = off");
    let log = told(&mut s, &["select b from t where a = 7"]);
    let (_, plan) = log.split_once("plan:\n").unwrap();
    let plan: serde_json::Value = serde_json::from_str(plan).expect(plan);
    assert_eq!(plan[0]["Query Text"], "select b from t where a = 7");
    assert_eq!(plan[0]["Plan"]["Actual Rows"], 1);
    assert_eq!(plan[0]["Settings"]["enable_seqscan"], "off");
    assert!(
        plan[0]["Plan"]["Shared Hit Blocks"].as_u64().unwrap() > 0,
        "{plan}"
    );
}

/// The texts of a plan are as free of passwords as the statement that they are from.
#[test]
fn a_plan_shows_no_password() {
    let fixture = Fixture::new("create table servers (dsn text)");
    let mut s = fixture.session();
    query(&mut s, "set auto_explain.log_min_duration = 0");
    for format in ["text", "json"] {
        query(&mut s, &format!("set auto_explain.log_format = {format}"));
        let log = told(
            &mut s,
            &["select * from servers where dsn = 'host=a password=secret'"],
        );
        assert!(log.contains("Filter") && log.contains("********"), "{log}");
        assert!(!log.contains("secret"), "{log}");
    }
}

/// A portal goes on where it stopped, though the plan of its first part would have had counters.
#[test]
fn a_portal_has_all_its_rows() {
    let fixture = fixture();
    let mut s = fixture.session();
    query(&mut s, "set auto_explain.log_min_duration = '1h'");
    query(&mut s, "set auto_explain.log_analyze = on");
    let sql = "with c as materialized (select a from t where a <= 10) select a from c";
    let all = s.prepare(sql, &[]).unwrap();
    let mut out = Collected::default();
    let Completion::Suspended(portal) = s.execute(&all, &[], 1, &mut out).unwrap() else {
        panic!("all rows came at once");
    };
    s.resume(portal, 0, &mut out).unwrap();
    assert_eq!(out.rows.len(), 10);
}

/// A setting of PostgreSQL's module that is not here would otherwise be taken, and have no effect.
#[test]
fn a_setting_that_is_not_there_is_an_error() {
    let fixture = fixture();
    let mut s = fixture.session();
    for sql in [
        "set auto_explain.sample_rate = 0.01",
        "set auto_explain.log_triggers to default",
    ] {
        assert_eq!(error(&mut s, sql).sqlstate().as_str(), "42704", "{sql}");
    }
}
