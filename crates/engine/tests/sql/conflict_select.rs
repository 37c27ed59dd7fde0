//! INSERT … ON CONFLICT DO SELECT, which PostgreSQL has since 19.

use crate::common::{Fixture, error, query, run};

#[test]
fn rows_come_as_they_are_or_are_inserted() {
    let fixture = Fixture::new(
        "create table t (id int primary key, name text unique, n int default 7);
         insert into t values (1, 'one', 10), (2, 'two', 20)",
    );
    let mut session = fixture.session();
    for (sql, rows) in [
        (
            "insert into t values (1, 'x', 0), (3, 'three', 30) on conflict (id) do select returning id, name, n",
            "1|one|10, 3|three|30",
        ),
        (
            "insert into t (id, name) select 9, 'two' on conflict (name) do select returning *, xmax = 0",
            "2|two|20|t",
        ),
        (
            "insert into t values (1, 'y', 11), (2, 'z', 12) on conflict (id) do select where t.n < excluded.n returning t.id",
            "1",
        ),
        (
            "insert into t as s values (1, 'y', 11), (2, 'z', 12) on conflict on constraint t_pkey do select \
             for no key update where s.id + 10 = excluded.n and s.ctid is not null returning s.id, s.xmax <> 0, s.n",
            "1|t|10, 2|t|20",
        ),
        (
            "with found as (insert into t values (4, 'four') on conflict (id) do select for key share returning id, n) \
             select sum(n) from found",
            "7",
        ),
        (
            "insert into t values (5, 'five'), (5, 'five') on conflict (id) do select returning id",
            "5, 5",
        ),
        ("select count(*), sum(n) from t", "5|74"),
        (
            "explain (costs off) insert into t values (1) on conflict (id) do select for share where t.n > 1 returning id",
            "Insert on t,   Conflict Resolution: SELECT FOR SHARE,   Conflict Arbiter Indexes: t_pkey,   \
             Conflict Filter: (n > 1),   ->  Result",
        ),
    ] {
        assert_eq!(query(&mut session, sql).replace('\'', ""), rows, "{sql}");
    }
}

#[test]
fn what_it_needs_is_told() {
    let fixture = Fixture::new(
        "create table t (id int primary key, n int); create role reader; grant select, insert on t to reader;
         insert into t values (1, 2)",
    );
    let mut session = fixture.session();
    for (sql, state, words) in [
        (
            "insert into t values (1) on conflict (id) do select",
            "42601",
            "requires a RETURNING clause",
        ),
        (
            "insert into t values (1) on conflict do select returning id",
            "42601",
            "DO SELECT requires inference specification",
        ),
        (
            "insert into t values (1), (9), (9) on conflict (id) do select for update returning id",
            "21000",
            "DO SELECT command cannot affect row a second time",
        ),
        (
            "insert into t values (1) on conflict (n) do select returning id",
            "42P10",
            "no unique",
        ),
        (
            "insert into t values (1) on conflict (id) do select for returning id",
            "42601",
            "",
        ),
    ] {
        let told = error(&mut session, sql);
        assert_eq!(told.sqlstate().as_str(), state, "{sql}: {told}");
        assert!(told.message().contains(words), "{sql}: {told}");
    }
    run(&mut session, "set role reader");
    let select = "insert into t values (1) on conflict (id) do select";
    assert_eq!(query(&mut session, &format!("{select} returning n")), "2");
    assert_eq!(
        run(&mut session, &format!("{select} for share returning n")),
        "ERROR 42501"
    );
    run(&mut session, "reset role; create view v as select * from t");
    assert_eq!(
        run(
            &mut session,
            "insert into v values (1) on conflict (id) do select returning n"
        ),
        "ERROR 0A000"
    );
}
