//! Long values that joins, sorts, groups and windows hand on by their places: what comes out is what went in, by every method
//! and within little memory.

use clearway_engine::{Collected, Completion, Session};

use crate::common::{Fixture, query, show_value};

/// Two tables of keys and values; a value is its key 3,000 times, or NULL, or short: the key itself.
fn two() -> Fixture {
    let fixture = Fixture::new(
        "create table l (id int primary key, k text, v text, j jsonb);
         create table r (id int primary key, l int, k text, v text, b bytea);
         create index r_l on r (l);
         alter table l alter v set storage external;
         alter table r alter v set storage external",
    );
    let mut session = fixture.session();
    query(
        &mut session,
        "insert into l select g, k, case when g % 7 = 3 then null when g % 5 = 1 then k else repeat(k, 3000) end,
           to_jsonb(repeat(k, 3000)) from (select g, 'l' || g as k from generate_series(1, 40) g) x",
    );
    query(
        &mut session,
        "insert into r select g, nullif(g % 30, 4), k, case when g % 5 = 2 then k else repeat(k, 3000) end,
           convert_to(repeat(k, 3000), 'UTF8') from (select g, 'r' || g as k from generate_series(1, 60) g) x",
    );
    query(&mut session, "analyze");
    fixture
}

/// Queries whose columns are pairs of a key and a value of it.
const QUERIES: &[&str] = &[
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id",
    "select l.k, l.v, r.k, r.v from l left join r on r.l = l.id and r.v <> 'r2'",
    "select l.k, l.v, r.k, r.v from l right join r on r.l = l.id",
    "select l.k, l.v, r.k, r.v from l full join r on r.l = l.id",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id where l.v like 'l1%' and length(r.v) > 100",
    "select l.k, l.v, r.k, r.v from l join r on r.l < l.id and r.id % 20 = 3",
    "select l.k, l.v, r.k, r.v, m.k, m.v from l join r on r.l = l.id join l m on m.id = r.id - 10",
    "select l.k, l.v from l where exists (select 1 from r where r.l = l.id)",
    "select l.k, l.v from l where not exists (select 1 from r where r.l = l.id)",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id order by r.id desc, l.id",
    "select l.k, l.v, l.k, l.v, r.k, r.v from l join r on r.l = l.id order by r.id limit 7 offset 3",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id order by l.v, r.v",
    "select a.k, a.v, b.k, b.v from l a join l b on a.v = b.v and b.id > 3",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id and length(r.v) > length(l.v)",
    "select k, v, k, reverse(reverse(v)) from l order by id desc",
    "select k, v from l order by id desc",
    "select k, v from l order by v, id",
    "select k, v from l where v like 'l2%' order by id desc",
    "select distinct on (l) k, v from r order by l, id desc",
    "select distinct k, v from l order by k",
    "select k, v from l order by id for update",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id order by r.id for update of l",
    "select l.k, lag(l.v, 0) over (order by r.id), r.k, r.v from l join r on r.l = l.id",
    "select l.k, l.v, max(r.k), max(r.v) from l join r on r.l = l.id and r.id = 5 group by l.k, l.v",
    "select max(k), v from l group by v having count(*) < 9 order by 1",
    "select k, v from l group by v, k having v like 'l2%'",
    "select k, v from l group by rollup (k, v)",
    "select k, v, k, reverse(reverse(v)) from l group by k, v",
    "select k, v from (select k, v, count(*) n from r group by v, k) x where n = 1",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id group by r.k, l.v, r.v, l.k order by r.k, l.k",
    "select k, v, max(k), max(v) from l group by k, v",
    "select k, v, max(k) over w, max(v) over w from l window w as (partition by k)",
    "select distinct l.k, l.v from l join r on r.l = l.id",
    "select distinct k, j #>> '{}' from l",
    "select k, v from (select k, v, row_number() over (order by id desc) n from r) x where n % 3 = 1",
    "select k, v from (select k, v, j, rank() over (partition by id % 3 order by k) n from l) x order by n, k",
    "select l.k, l.v, r.k, r.v from l join r on r.l = l.id order by count(*) over (partition by l.id), r.id",
    "select k, v from l union select k, v from r union select k, v from l",
    "select k, v from l intersect select k, v from l where id > 3",
    "select k, v from l except all select k, v from l where id > 3",
    "select k, v from (select l.k, l.v from l join r on r.l = l.id order by r.id limit 9) x",
    "select l.k, l.v, x.k, x.v from l, lateral (select k, v from r where r.l = l.id order by id desc limit 1) x",
    "with x as materialized (select l.k, l.v, r.id from l join r on r.l = l.id) select a.k, a.v, b.k, b.v from x a join x b on b.id = a.id",
    "select l.k, l.v from l join r on r.l = l.id union all select k, v from r order by 1",
    "select l.k, (select l.v), r.k, (select r.v from l m where m.id = l.id) from l join r on r.l = l.id",
    "select l.k, l.j #>> '{}', r.k, convert_from(r.b, 'UTF8') from l join r on r.l = l.id order by r.id",
    "select x.k, x.j #>> '{}' from (select l.k, l.j, r.id from l join r on r.l = l.id order by r.id) x",
];

/// Methods, and memory.
const SETTINGS: &[&str] = &[
    "set enable_hashjoin = on",
    "set enable_mergejoin = off; set enable_nestloop = off",
    "set enable_hashjoin = off; set enable_nestloop = off",
    "set enable_hashjoin = off; set enable_mergejoin = off",
    "set work_mem = '64kB'",
    "set work_mem = '64kB'; set enable_mergejoin = off; set enable_nestloop = off",
    "set work_mem = '64kB'; set enable_hashjoin = off; set enable_mergejoin = off; set enable_indexscan = off",
];

/// The keys of a query's rows; each value is looked at and left out.
fn keys(out: &Collected, sql: &str) -> Vec<String> {
    let of = |pair: &[clearway_engine::Value]| {
        let (key, value) = (show_value(&pair[0]), &pair[1]);
        let is_null = value.is_null();
        if !is_null {
            let value = show_value(value);
            assert!(
                value == key || value == key.repeat(3_000),
                "{sql}: {key} has {:.40}",
                value
            );
        }
        format!("{key}{}", if is_null { "-" } else { "" })
    };
    out.rows
        .iter()
        .map(|row| row.chunks(2).map(of).collect::<Vec<_>>().join(" "))
        .collect()
}

fn run(session: &mut Session, sql: &str) -> Vec<String> {
    let mut out = Collected::default();
    session
        .execute_simple(sql, &mut out)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    keys(&out, sql)
}

/// The same by a portal that sends three rows at a time.
fn run_in_parts(session: &mut Session, sql: &str) -> Vec<String> {
    let prepared = session.prepare(sql, &[]).unwrap();
    let mut out = Collected::default();
    query(session, "begin");
    let mut sent = session.execute(&prepared, &[], 3, &mut out).unwrap();
    while let Completion::Suspended(portal) = sent {
        // Its places stay what they are, whatever becomes of the rows.
        if out.rows.len() == 3 {
            query(session, "delete from r");
            query(session, "update l set v = 'new'");
        }
        sent = session.resume(portal, 3, &mut out).unwrap();
    }
    query(session, "rollback");
    keys(&out, sql)
}

#[test]
fn joins_and_sorts_give_the_values_of_their_places() {
    let fixture = two();
    for sql in QUERIES {
        let mut expected: Option<Vec<String>> = None;
        for settings in SETTINGS {
            let mut session = fixture.session();
            query(&mut session, settings);
            let mut found = run(&mut session, sql);
            let mut in_parts = run_in_parts(&mut session, sql);
            if !sql.contains("for update") {
                assert_eq!(in_parts.len(), found.len(), "{settings}: {sql}");
            }
            // Without a whole order, methods differ in it.
            found.sort();
            in_parts.sort();
            if !sql.contains("for update") {
                assert_eq!(in_parts, found, "{settings}: {sql}");
            }
            assert!(!found.is_empty(), "{sql}");
            match &expected {
                None => expected = Some(found),
                Some(expected) => assert_eq!(&found, expected, "{settings}: {sql}"),
            }
        }
    }
}

/// The pages that a query reads, and its plan.
fn pages(session: &mut Session, sql: &str) -> (u64, String) {
    let explain = "explain (analyze, buffers, costs off, timing off, summary off)";
    let plan = query(session, &format!("{explain} {sql}"));
    let hits = plan
        .split("shared hit=")
        .nth(1)
        .unwrap_or_else(|| panic!("{plan}"));
    let digits = hits.split(|c: char| !c.is_ascii_digit()).next();
    (digits.unwrap().parse().unwrap(), plan)
}

#[test]
fn a_row_without_a_partner_is_not_restored() {
    let fixture = two();
    let mut session = fixture.session();
    query(
        &mut session,
        "set enable_mergejoin = off; set enable_nestloop = off",
    );
    let mut pages = |sql: &str| -> u64 {
        let (pages, plan) = pages(&mut session, sql);
        assert!(plan.contains("Hash"), "{plan}");
        pages
    };
    let one = pages("select l.v from r join l on r.l = l.id and r.id = 5");
    let all = pages("select l.v from r join l on r.l = l.id");
    assert!(all > one + 50, "{one} pages for a row, {all} for all");
}

#[test]
fn a_key_of_several_grouping_sets_is_restored_once() {
    let fixture = two();
    let mut session = fixture.session();
    let mut pages = |by: &str| {
        let counted = format!("select count(*) from (select count(*) from l group by {by}) x");
        pages(&mut session, &counted).0
    };
    let (none, one) = (pages("k"), pages("k, v"));
    let four = pages("grouping sets ((k, v), (v, id), (v), (v, id, k))");
    assert!(
        one > none + 50,
        "{none} pages without a long value, {one} with it"
    );
    assert!(four < one + 50, "{one} pages for a set, {four} for four");
}
