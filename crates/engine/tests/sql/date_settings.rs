//! DateStyle and TimeZone. The values are PostgreSQL 15's.

use clearway_engine::Session;

use crate::common::{Fixture, error, query, run};

fn session_in(fixture: &Fixture, zone: &str, style: &str) -> Session {
    let mut session = fixture.session();
    run(&mut session, &format!("set timezone = '{zone}'"));
    run(&mut session, &format!("set datestyle = {style}"));
    session
}

#[test]
fn values_are_read_and_shown_by_the_settings() {
    let fixture = Fixture::new("");
    let mut s = session_in(&fixture, "America/New_York", "Postgres, DMY");
    for (sql, rows) in [
        (
            "select '2024-07-04 12:00+00'::timestamptz, '2024-01-04 12:00'::timestamptz, '04/07/2024'::date, \
             '2024-07-04 12:00'::timestamp",
            "Thu 04 Jul 08:00:00 2024 EDT|Thu 04 Jan 12:00:00 2024 EST|04-07-2024|Thu 04 Jul 12:00:00 2024",
        ),
        (
            "select to_json('2024-07-04 12:00+00'::timestamptz), array_to_json(array['2024-07-04 12:00'::timestamp]), \
             array['2024-07-04'::date], row('2024-07-04'::date, 1)::text",
            "\"2024-07-04T08:00:00-04:00\"|[\"2024-07-04T12:00:00\"]|{04-07-2024}|(04-07-2024,1)",
        ),
        (
            "select to_char('2024-07-04 12:00+00'::timestamptz, 'YYYY HH24 TZ tz TZH TZM OF')",
            "2024 08 EDT edt -04 00 -04",
        ),
    ] {
        assert_eq!(query(&mut s, sql), rows, "{sql}");
    }
    run(
        &mut s,
        "set timezone = '<-03:30>+3:30'; set datestyle = 'SQL, YMD'",
    );
    assert_eq!(
        query(
            &mut s,
            "select '2024-07-04 12:00+00'::timestamptz, '24/07/04'::date, \
             to_char('2024-07-04 12:00+00'::timestamptz, 'TZ OF TZH:TZM')"
        ),
        "07/04/2024 08:30:00 -03:30|07/04/2024|-03:30 -03:30 -03:30"
    );
    run(&mut s, "set datestyle = 'German'");
    assert_eq!(
        query(
            &mut s,
            "select '2024-07-04 12:00+00'::timestamptz, '04.07.2024'::date, '0044-03-15 BC'::date"
        ),
        "04.07.2024 08:30:00 -03:30|04.07.2024|15.03.0044 BC"
    );
    assert_eq!(query(&mut s, "show datestyle"), "German, DMY");
    assert_eq!(run(&mut s, "set datestyle = 'iso, sql'"), "ERROR 22023");
    assert_eq!(run(&mut s, "select '13/13/2024'::date"), "ERROR 22008");
}

#[test]
fn conversions_and_arithmetic_are_those_of_the_zone() {
    let fixture = Fixture::new("");
    let mut s = session_in(&fixture, "America/New_York", "ISO, MDY");
    for (sql, rows) in [
        (
            "select '2024-07-04 12:00'::timestamptz at time zone 'UTC', ('2024-07-04 02:00+00'::timestamptz)::date, \
             ('2024-07-04 02:00+00'::timestamptz)::time, ('2024-07-04 02:00+00'::timestamptz)::timetz",
            "2024-07-04 16:00:00|2024-07-03|22:00:00|22:00:00-04",
        ),
        // A day on a clock that is put forward has 23 hours.
        (
            "select '2024-03-09 12:00'::timestamptz + interval '1 day', \
             '2024-03-09 12:00'::timestamptz + interval '24 hours', \
             '2024-03-10 12:00'::timestamptz - '2024-03-09 12:00'::timestamptz",
            "2024-03-10 12:00:00-04|2024-03-10 13:00:00-04|23:00:00",
        ),
        (
            "select x from generate_series('2024-03-09 00:00'::timestamptz, '2024-03-11 00:00', '1 day') x",
            "2024-03-09 00:00:00-05, 2024-03-10 00:00:00-05, 2024-03-11 00:00:00-04",
        ),
        (
            "select date_trunc('day', '2024-07-04 02:00+00'::timestamptz), \
             date_trunc('day', '2024-07-04 02:00+00'::timestamptz, 'Asia/Tokyo'), \
             extract(timezone from '2024-07-04'::timestamptz), extract(hour from '2024-07-04 02:00+00'::timestamptz)",
            "2024-07-03 00:00:00-04|2024-07-03 11:00:00-04|-14400|22",
        ),
        (
            "select age('2024-07-04'::timestamptz, '2024-01-01 12:00'::timestamptz), make_timestamptz(2024,7,4,12,0,0)",
            "6 mons 2 days 12:00:00|2024-07-04 12:00:00-04",
        ),
        (
            "select now()::date = current_date, now()::timestamp = localtimestamp, now() = 'now'::timestamptz, \
             current_time = 'now'::timetz, 'today'::timestamptz = current_date",
            "t|t|t|t|t",
        ),
    ] {
        assert_eq!(query(&mut s, sql), rows, "{sql}");
    }
}

#[test]
fn a_change_is_followed_by_what_was_planned_before() {
    let fixture = Fixture::new("create table t (id int, at timestamptz, day date)");
    let mut s = session_in(&fixture, "UTC", "ISO, MDY");
    query(
        &mut s,
        "insert into t values (1, '2024-07-04 23:30', '2024-07-04')",
    );
    let text = "select at, at::date, day::text, '01/02/2024'::date, '2024-01-01'::timestamptz from t";
    let in_utc = "2024-07-04 23:30:00+00|2024-07-04|2024-07-04|2024-01-02|2024-01-01 00:00:00+00";
    let in_paris = "05/07/2024 01:30:00 CEST|05/07/2024|04/07/2024|01/02/2024|01/01/2024 00:00:00 CET";
    // A text that comes often keeps its plan.
    for _ in 0..3 {
        assert_eq!(query(&mut s, text), in_utc);
    }
    query(&mut s, &format!("prepare p as {text}"));
    run(&mut s, "set timezone = 'Europe/Paris'");
    run(&mut s, "set datestyle = 'SQL, DMY'");
    for _ in 0..3 {
        assert_eq!(query(&mut s, text), in_paris);
    }
    // The literals of a prepared statement are those that were prepared, and its rows are converted here and now; also
    // when it has to be planned anew.
    let prepared = "05/07/2024 01:30:00 CEST|05/07/2024|04/07/2024|02/01/2024|01/01/2024 01:00:00 CET";
    assert_eq!(query(&mut s, "execute p"), prepared);
    run(&mut s, "create index on t (id)");
    assert_eq!(query(&mut s, "execute p"), prepared);
    // A transaction that rolls back takes its settings with it.
    run(&mut s, "begin");
    run(&mut s, "set local timezone = 'Asia/Tokyo'");
    assert_eq!(query(&mut s, "select at from t"), "05/07/2024 08:30:00 JST");
    run(&mut s, "rollback");
    assert_eq!(query(&mut s, "select at from t"), "05/07/2024 01:30:00 CEST");
    query(&mut s, "select set_config('timezone', 'UTC', false)");
    assert_eq!(
        query(&mut s, text),
        "04/07/2024 23:30:00 UTC|04/07/2024|04/07/2024|01/02/2024|01/01/2024 00:00:00 UTC"
    );
    run(&mut s, "reset timezone");
    run(&mut s, "reset datestyle");
    assert_eq!(query(&mut s, text), in_utc);
}

#[test]
fn sessions_on_one_thread_keep_theirs() {
    let fixture = Fixture::new("");
    let mut one = session_in(&fixture, "Asia/Tokyo", "ISO");
    let mut other = session_in(&fixture, "Europe/Paris", "German");
    for _ in 0..2 {
        let text = "select '2024-07-04 12:00+00'::timestamptz";
        assert_eq!(query(&mut one, text), "2024-07-04 21:00:00+09");
        assert_eq!(query(&mut other, text), "04.07.2024 14:00:00 CEST");
    }
}

#[test]
fn definitions_mean_what_they_meant_when_they_were_made() {
    let mut fixture = Fixture::new("");
    let mut s = session_in(&fixture, "Europe/Paris", "SQL, DMY");
    for sql in [
        "create table t (id int, day date default '01/02/2024', at timestamptz default '01/02/2024 12:00', \
         n int default 1, \
         late bool generated always as (day > '01/03/2024') stored, check (day < '05/06/2030'))",
        "create index late on t (id) where day > '01/02/2023'",
        "create view v as select '01/02/2024'::date as day, '01/02/2024 12:00'::timestamptz as at, t.at::date as now from t",
        "create domain d as date default '03/04/2024' check (value > '01/02/2020')",
        "insert into t (id) values (1)",
        "alter table t add added timestamptz default '03/02/2024 12:00'",
        "analyze t",
    ] {
        assert!(!run(&mut s, sql).starts_with("ERROR"), "{sql}");
    }
    assert_eq!(
        query(&mut s, "select day, at, added from t"),
        "01/02/2024|01/02/2024 12:00:00 CET|03/02/2024 12:00:00 CET"
    );
    drop(s);
    for _ in 0..2 {
        let mut s = session_in(&fixture, "UTC", "ISO, MDY");
        run(&mut s, "delete from t");
        query(&mut s, "insert into t (id) values (2)");
        assert_eq!(
            query(&mut s, "select id, day, at, late, added from t"),
            "2|2024-02-01|2024-02-01 11:00:00+00|f|2024-02-03 11:00:00+00"
        );
        assert_eq!(
            query(&mut s, "select * from v"),
            "2024-02-01|2024-02-01 11:00:00+00|2024-02-01"
        );
        assert!(
            error(&mut s, "insert into t (day) values ('2030-06-06')")
                .to_string()
                .contains("t_day_check")
        );
        assert_eq!(
            query(&mut s, "insert into t (day) values ('2030-06-04') returning late"),
            "t"
        );
        assert_eq!(
            query(
                &mut s,
                "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass and adnum = 3"
            ),
            "'2024-02-01 11:00:00+00'::timestamp with time zone"
        );
        run(&mut s, "create temp table of_domain (a d, b int)");
        query(&mut s, "insert into of_domain (b) values (1)");
        assert_eq!(query(&mut s, "select a from of_domain"), "2024-04-03");
        drop(s);
        fixture = fixture.restarted();
    }
}

#[test]
fn what_depends_on_the_settings_is_no_key() {
    let fixture = Fixture::new("create table t (at timestamptz, clock time, day date, local timestamp)");
    let mut s = fixture.session();
    for expr in [
        "(at::date)",
        "(day::timestamptz)",
        "(local::timestamptz)",
        "(at::timestamp)",
        "(clock::timetz)",
        "(day::text)",
        "(at::text)",
        "date_trunc('day', at)",
        "(at + interval '1 day')",
        "extract(hour from at)",
    ] {
        assert_eq!(
            run(&mut s, &format!("create index on t ({expr})")),
            "ERROR 42P17",
            "{expr}"
        );
    }
    for expr in ["(at at time zone 'UTC')", "(local::date)", "(day::timestamp)"] {
        assert_eq!(
            run(&mut s, &format!("create index on t ({expr})")),
            "CREATE INDEX",
            "{expr}"
        );
    }
}
