//! The end of a session by the command of another, wherever it is.

mod support;

use std::time::Duration;

use support::*;

#[test]
fn a_session_is_ended_wherever_it_waits() {
    let server = TestServer::start();
    let mut boss = server.client();
    boss.query("create table t (i int); insert into t values (1)");
    boss.query("create role other login");
    for (setup, statement) in [
        ("", ""),
        ("listen a", ""),
        ("begin; update t set i = 2", ""),
        ("", "select pg_sleep(60)"),
        ("", "select pg_advisory_lock(1)"),
        ("", "copy t from stdin"),
    ] {
        boss.query("select pg_advisory_lock(1)");
        let mut victim = server.client();
        let number = victim.value("select pg_backend_pid()");
        if !setup.is_empty() {
            victim.query(setup);
        }
        if !statement.is_empty() {
            victim.send(&query(statement));
            let active = format!(
                "select state || coalesce(wait_event, '') from pg_stat_activity where pid = {number}"
            );
            while boss.value(&active) == "idleClientRead" {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(
            boss.value(&format!("select pg_terminate_backend({number}, 60000)")),
            "t",
            "{statement}"
        );
        let last = victim.until_closed().pop().unwrap();
        assert_eq!(last.sqlstate(), "57P01", "{setup} {statement}");
        assert_eq!(last.field(b'S').unwrap(), "FATAL");
        // What it held is free.
        assert_eq!(boss.value("select count(*) from t where i = 1"), "1");
        boss.query("set lock_timeout = '10s'; update t set i = 1");
    }
    let refused = {
        let mut other = server.connect();
        other.start(&[("user", "other")]);
        let number = boss.value("select pg_backend_pid()");
        other.query(&format!("select pg_terminate_backend({number})"))
    };
    let error = refused.iter().find(|reply| reply.kind == b'E').unwrap();
    assert_eq!(error.sqlstate(), "42501");
}
